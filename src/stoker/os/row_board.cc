#include "stoker/os/row_board.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cstring>
#include <limits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stoker/base/round.h"

namespace stoker::os {
namespace {

constexpr std::size_t kLine = 64;
using Word = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

// Returns at once if the word is no longer `seen`; else when it is rung, after `timeout`, or for no reason.
void sleep_on(Word& word, std::uint32_t seen, std::chrono::nanoseconds timeout) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec time{static_cast<time_t>(seconds.count()), static_cast<long>((timeout - seconds).count())};
  (void)::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void ring(Word& word) noexcept {
  word.fetch_add(1, std::memory_order_seq_cst);
  (void)::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

constexpr bool is_final(std::uint32_t outcome) noexcept {
  return outcome != RowBoard::unclaimed && outcome < RowBoard::first_worker;
}

}  // namespace

struct RowBoard::Head {
  alignas(kLine) Word published;  // rung after publish() and close()
  alignas(kLine) Word finished;   // rung when the last row of an item is finished
  alignas(kLine) Word closed;
};

struct RowBoard::Slot {
  alignas(kLine) std::atomic<std::uint64_t> item;
  Word rows, finished_rows, text_bytes;
};

struct RowBoard::Tally {
  alignas(kLine) std::atomic<std::uint64_t> rows;
  std::atomic<std::uint64_t> busy_ns;
};

namespace {

std::size_t slot_bytes(const RowBoard::Size& size, std::size_t head) noexcept {
  return round_up(head + size.rows * sizeof(Word) + size.text_bytes, kLine);
}

}  // namespace

std::size_t RowBoard::bytes_for(const Size& size) noexcept {
  return sizeof(Head) + size.workers * sizeof(Tally) + size.slots * slot_bytes(size, sizeof(Slot));
}

RowBoard::RowBoard(std::span<std::byte> memory, const Size& size) : memory_(memory), size_(size) {
  assert(memory.size() >= bytes_for(size) && "a board needs bytes_for() bytes");
}

RowBoard::Head& RowBoard::head() const noexcept {
  return *reinterpret_cast<Head*>(memory_.data());
}

RowBoard::Tally& RowBoard::tally_at(std::uint32_t worker) const noexcept {
  return reinterpret_cast<Tally*>(memory_.data() + sizeof(Head))[worker];
}

RowBoard::Slot& RowBoard::slot_at(std::uint32_t slot) const noexcept {
  return *reinterpret_cast<Slot*>(memory_.data() + sizeof(Head) + size_.workers * sizeof(Tally) +
                                  slot * slot_bytes(size_, sizeof(Slot)));
}

Word* RowBoard::rows_at(std::uint32_t slot) const noexcept {
  return reinterpret_cast<Word*>(reinterpret_cast<std::byte*>(&slot_at(slot)) + sizeof(Slot));
}

// Free rows come last: a worker may claim one as soon as it sees it, and then reads the rest. A worker that still looks
// through the item that had the slot before finds only rows of this one, whose number it reads after its claim.
void RowBoard::publish(std::uint32_t slot, std::uint64_t item, std::uint32_t first, std::uint32_t rows,
                       std::span<const std::byte> text) noexcept {
  assert(rows <= size_.rows && first <= rows && text.size() <= size_.text_bytes && "an item fits the board");
  Slot& at = slot_at(slot);
  Word* const row = rows_at(slot);
  std::memcpy(reinterpret_cast<std::byte*>(row + size_.rows), text.data(), text.size());
  at.text_bytes.store(static_cast<std::uint32_t>(text.size()), std::memory_order_relaxed);
  at.finished_rows.store(first, std::memory_order_relaxed);
  at.rows.store(rows, std::memory_order_relaxed);
  at.item.store(item, std::memory_order_release);
  for (std::uint32_t r = 0; r < first; ++r) row[r].store(done, std::memory_order_release);
  for (std::uint32_t r = rows; r < size_.rows; ++r) row[r].store(done, std::memory_order_release);
  for (std::uint32_t r = first; r < rows; ++r) row[r].store(unclaimed, std::memory_order_release);
  ring(head().published);
}

void RowBoard::cancel(std::uint32_t slot) noexcept {
  Word* const row = rows_at(slot);
  const std::uint32_t rows = slot_at(slot).rows.load(std::memory_order_relaxed);
  for (std::uint32_t r = 0; r < rows; ++r) {
    std::uint32_t expected = unclaimed;
    row[r].compare_exchange_strong(expected, canceled, std::memory_order_acq_rel);
  }
}

bool RowBoard::is_finished(std::uint32_t slot) const noexcept {
  const Word* const row = rows_at(slot);
  const std::uint32_t rows = slot_at(slot).rows.load(std::memory_order_relaxed);
  return std::all_of(row, row + rows, [](const Word& word) { return is_final(word.load(std::memory_order_acquire)); });
}

void RowBoard::wait(std::uint32_t slot, std::chrono::nanoseconds timeout) const noexcept {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const std::uint32_t seen = head().finished.load(std::memory_order_seq_cst);
    const auto now = std::chrono::steady_clock::now();
    if (is_finished(slot) || now >= end) return;
    sleep_on(head().finished, seen, end - now);
  }
}

std::uint32_t RowBoard::outcome(std::uint32_t slot, std::uint32_t row) const noexcept {
  return rows_at(slot)[row].load(std::memory_order_acquire);
}

std::optional<RowBoard::Claim> RowBoard::lose(std::uint32_t worker) noexcept {
  for (std::uint32_t s = 0; s < size_.slots; ++s) {
    Slot& slot = slot_at(s);
    Word* const row = rows_at(s);
    const std::uint32_t rows = slot.rows.load(std::memory_order_relaxed);
    for (std::uint32_t r = 0; r < rows; ++r) {
      if (row[r].load(std::memory_order_acquire) != first_worker + worker) continue;
      const Claim claim{s, r, slot.item.load(std::memory_order_relaxed)};
      row[r].store(lost, std::memory_order_release);
      slot.finished_rows.fetch_add(1, std::memory_order_acq_rel);
      return claim;
    }
  }
  return std::nullopt;
}

RowBoard::Work RowBoard::work_of(std::uint32_t worker) const noexcept {
  const Tally& tally = tally_at(worker);
  return {tally.rows.load(std::memory_order_relaxed), tally.busy_ns.load(std::memory_order_relaxed)};
}

void RowBoard::close() noexcept {
  head().closed.store(1, std::memory_order_release);
  ring(head().published);
}

bool RowBoard::is_closed() const noexcept {
  return head().closed.load(std::memory_order_acquire) != 0;
}

std::optional<RowBoard::Claim> RowBoard::try_claim(std::uint32_t worker) noexcept {
  std::uint64_t after = 0;  // items up to this one have no free row
  for (;;) {
    std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
    std::uint32_t slot = size_.slots;
    for (std::uint32_t s = 0; s < size_.slots; ++s) {
      const std::uint64_t item = slot_at(s).item.load(std::memory_order_acquire);
      if (item > after && item < oldest) {
        oldest = item;
        slot = s;
      }
    }
    if (slot == size_.slots) return std::nullopt;
    Word* const row = rows_at(slot);
    for (std::uint32_t r = 0; r < size_.rows; ++r) {
      std::uint32_t expected = unclaimed;
      if (row[r].load(std::memory_order_relaxed) == unclaimed &&
          row[r].compare_exchange_strong(expected, first_worker + worker, std::memory_order_acq_rel)) {
        return Claim{slot, r, slot_at(slot).item.load(std::memory_order_relaxed)};
      }
    }
    after = oldest;
  }
}

std::optional<RowBoard::Claim> RowBoard::claim(std::uint32_t worker, std::chrono::nanoseconds timeout) noexcept {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const std::uint32_t seen = head().published.load(std::memory_order_seq_cst);
    if (is_closed()) return std::nullopt;
    if (const auto claimed = try_claim(worker)) return claimed;
    const auto now = std::chrono::steady_clock::now();
    if (now >= end) return std::nullopt;
    sleep_on(head().published, seen, end - now);
  }
}

void RowBoard::finish(std::uint32_t worker, const Claim& claim, Outcome outcome, std::uint64_t busy_ns) noexcept {
  Tally& tally = tally_at(worker);
  tally.rows.fetch_add(1, std::memory_order_relaxed);
  tally.busy_ns.fetch_add(busy_ns, std::memory_order_relaxed);
  Slot& slot = slot_at(claim.slot);
  const std::uint32_t rows = slot.rows.load(std::memory_order_relaxed);
  // Counted before it is told: the producer may publish another item here as soon as all rows are told. Whoever sees
  // the full count afterwards rings, so that the last one told is among them.
  slot.finished_rows.fetch_add(1, std::memory_order_seq_cst);
  rows_at(claim.slot)[claim.row].store(outcome, std::memory_order_seq_cst);
  if (slot.finished_rows.load(std::memory_order_seq_cst) >= rows) ring(head().finished);
}

std::span<const std::byte> RowBoard::text(std::uint32_t slot) const noexcept {
  return {reinterpret_cast<const std::byte*>(rows_at(slot) + size_.rows),
          slot_at(slot).text_bytes.load(std::memory_order_relaxed)};
}

std::uint32_t RowBoard::rows(std::uint32_t slot) const noexcept {
  return slot_at(slot).rows.load(std::memory_order_relaxed);
}

}  // namespace stoker::os
