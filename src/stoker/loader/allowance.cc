#include "stoker/loader/allowance.h"

#include <algorithm>

#include "stoker/base/round.h"
#include "stoker/base/units.h"
#include "stoker/loader/pending.h"
#include "stoker/os/arena.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kPage = 4096, kRingAlign = 64;

// Libraries, allocator and the threads that a loader usually has; see tests/faults/test_memory.py, which measures them.
constexpr std::uint64_t kBaseBytes = 3 * kMiB;
constexpr std::uint64_t kUsualThreads = 8;
constexpr std::uint64_t kThreadBytes = 192 * kKiB;  // touched stack, allocator arena, buffers

constexpr std::uint64_t kPointerBytes = sizeof(void*);
constexpr std::uint64_t kMostPlanBytes = 16 * kMiB;
constexpr std::uint64_t kErrorBytes = sizeof(SampleError) + 128;  // with its cause
constexpr std::uint64_t kRowBytes =
    sizeof(Row) + sizeof(std::uint64_t) + sizeof(meter::RowTimes) + kPointerBytes + kErrorBytes;
constexpr std::uint64_t kMostListBytes = 4 * kMiB;
constexpr std::uint64_t kUnitBytes =
    sizeof(Unit) + 4 * kPointerBytes + ByteRoom::kBytesPerBlock;  // with its places in queues, and its block
constexpr std::uint64_t kLeastPendings = 3, kLeastUnits = 64;

constexpr std::uint64_t kLeastWorking = 256 * kKiB;
constexpr std::uint64_t kRingSlack = 256 * kKiB;  // the piece at the end of a ring that is too short for a block
constexpr std::uint64_t kLimitMost = std::uint64_t{1} << 50;

// A row of several parts: what they take beside their bytes, and their places in a unit.
constexpr std::uint64_t kPartSlack = 2 * kRingAlign, kDirectPartSlack = 3 * kPage;

std::uint64_t for_parts(const Demand& demand, std::uint64_t each) noexcept {
  return demand.most_parts > 1 ? demand.most_parts * each : 0;
}

std::uint64_t unit_bytes(const Demand& demand) noexcept {
  return kUnitBytes + for_parts(demand, sizeof(Part));
}

// What a sample takes on the ring: its bytes, one to see that it grew, and alignment; with O_DIRECT whole pages.
std::uint64_t on_ring(std::uint64_t bytes) noexcept {
  return round_up(bytes + 1, kRingAlign) + kRingAlign;
}
std::uint64_t on_ring_direct(std::uint64_t bytes) noexcept {
  return round_up(bytes + 1, kPage) + 3 * kPage;
}

// Twice, because sweeps need one to fill while the other is used.
std::uint64_t ring_for_one(std::uint64_t bytes) noexcept {
  return 2 * os::Arena::rounded(on_ring_direct(bytes));
}

std::uint64_t minus(std::uint64_t a, std::uint64_t b) noexcept {
  return a > b ? a - b : 0;
}

std::uint64_t least_units(std::uint64_t batch_size, bool varies) noexcept {
  return varies ? batch_size + kLeastUnits : kLeastUnits;
}

std::uint64_t pending_bytes(std::uint64_t batch_size) noexcept {
  return sizeof(Pending) + batch_size * kRowBytes;
}

std::uint64_t plan_bytes(const Demand& demand) noexcept {
  const std::uint64_t least = kLeastPendings * pending_bytes(demand.batch_size) +
                              least_units(demand.batch_size, demand.varies) * unit_bytes(demand);
  return std::max(least, std::min(demand.limit_bytes / 48, kMostPlanBytes));
}

// Two thirds while that is little; of more, a third, which leaves room for keeping the data itself.
std::uint64_t working_share(std::uint64_t room) noexcept {
  return room / 3 + std::min(room / 3, 256 * kMiB);
}

// Rows of one length: two batches, then the largest sample, then what decoding it takes.
void allow_fixed_rows(const Demand& demand, std::uint64_t room, Allowance& allowance) noexcept {
  if (room < 2 * demand.batch_bytes) return;
  room -= 2 * demand.batch_bytes;
  allowance.batch_bytes = demand.batch_bytes;
  allowance.encoded_bytes = demand.largest_bytes;
  if (!demand.in_place) {
    const std::uint64_t most = minus(os::Arena::within(room / 4), 4 * kPage + for_parts(demand, kPartSlack));
    allowance.encoded_bytes = std::min(demand.largest_bytes, most);
    allowance.ring_bytes = ring_for_one(allowance.encoded_bytes + for_parts(demand, kPartSlack));
    if (allowance.ring_bytes > room) return;
    room -= allowance.ring_bytes;
  }
  allowance.working_bytes = os::Arena::within(working_share(room));
  // A sample that is only copied needs working memory when it stands in for a bad one.
  if (!demand.decodes) {
    allowance.working_bytes = std::min(allowance.working_bytes, os::Arena::rounded(demand.largest_bytes + kPage));
  }
  allowance.spare_bytes = room - allowance.working_bytes;
  allowance.is_enough =
      (demand.in_place || allowance.encoded_bytes >= std::min(demand.usual_bytes, demand.largest_bytes)) &&
      (!demand.decodes || allowance.working_bytes >= kLeastWorking);
}

// Rows that vary: the encoded bytes of a whole batch are in memory at once, beside two batches of the longest rows.
void allow_varying_rows(const Demand& demand, std::uint64_t room, Allowance& allowance) noexcept {
  const std::uint64_t places = demand.batch_size + 1;
  const std::uint64_t most = minus(minus(os::Arena::within(room / 4), kRingSlack) / places,
                                   2 * kRingAlign + 1 + for_parts(demand, kPartSlack));
  allowance.encoded_bytes = std::min(demand.largest_bytes, most);
  allowance.ring_bytes =
      os::Arena::rounded(places * on_ring(allowance.encoded_bytes + for_parts(demand, kPartSlack)) + kRingSlack);
  if (allowance.ring_bytes > room) return;
  room -= allowance.ring_bytes;
  const std::uint64_t least_working = os::Arena::rounded(allowance.encoded_bytes + kPage);
  allowance.working_bytes = os::Arena::within(demand.decodes ? std::max(room / 4, least_working) : least_working);
  if (allowance.working_bytes > room) return;
  room -= allowance.working_bytes;
  allowance.spare_bytes = room / 8;
  allowance.batch_bytes = os::Arena::within((room - allowance.spare_bytes) / 2);
  allowance.spare_bytes = room - 2 * allowance.batch_bytes;
  allowance.is_enough = allowance.encoded_bytes >= std::min(demand.usual_bytes, demand.largest_bytes) &&
                        allowance.batch_bytes >= demand.batch_bytes &&
                        (!demand.decodes || allowance.working_bytes >= kLeastWorking);
}

}  // namespace

Allowance allow(const Demand& demand) noexcept {
  Allowance allowance;
  allowance.plan_bytes = plan_bytes(demand);
  allowance.list_of_errors_bytes = std::min(demand.limit_bytes / 24, kMostListBytes);
  allowance.fixed_bytes = kBaseBytes + demand.list_bytes + allowance.plan_bytes + allowance.list_of_errors_bytes;
  const std::uint64_t room = minus(demand.limit_bytes, allowance.fixed_bytes);
  if (demand.varies) {
    allow_varying_rows(demand, room, allowance);
  } else {
    allow_fixed_rows(demand, room, allowance);
  }
  return allowance;
}

std::uint64_t enough_limit(const Demand& demand, const std::function<bool(const Allowance&)>& suits) {
  const auto suits_at = [&](std::uint64_t limit) {
    Demand changed = demand;
    changed.limit_bytes = limit;
    const Allowance allowance = allow(changed);
    return allowance.is_enough && suits(allowance);
  };
  std::uint64_t low = demand.limit_bytes, high = std::max<std::uint64_t>(low, kMiB);
  while (!suits_at(high)) {
    if (high > kLimitMost) return 0;
    low = high;
    high *= 2;
  }
  while (high - low > high / 1000) {
    const std::uint64_t middle = low + (high - low) / 2;
    (suits_at(middle) ? high : low) = middle;
  }
  return high;
}

PlanCounts plans_within(std::uint64_t plan_bytes, const Demand& demand) noexcept {
  const std::uint64_t least = least_units(demand.batch_size, demand.varies) * unit_bytes(demand);
  const std::uint64_t pending = pending_bytes(demand.batch_size);
  PlanCounts counts;
  counts.pendings = std::max(kLeastPendings, minus(plan_bytes, least) / 2 / pending);
  counts.units = minus(plan_bytes, counts.pendings * pending) / unit_bytes(demand);
  return counts;
}

std::uint64_t direct_bytes(const Demand& demand) noexcept {
  const std::uint64_t parts = for_parts(demand, kDirectPartSlack);
  if (demand.varies) return (demand.batch_size + 1) * (on_ring_direct(0) - on_ring(0) + parts);
  return parts > 0 ? 2 * os::Arena::rounded(parts) : 0;
}

std::uint64_t thread_bytes(std::uint64_t threads) noexcept {
  return minus(threads, kUsualThreads) * kThreadBytes;
}

}  // namespace stoker::loader
