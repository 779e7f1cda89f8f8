#include "stoker/storage/cache_table.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/base/round.h"
#include "stoker/os/fault.h"

namespace stoker::storage {
namespace {

constexpr std::uint64_t kMagic = 0x656c626174534b53;  // "SKStable"
constexpr std::uint32_t kTableVersion = 1;
constexpr std::uint64_t kDiskBlock = 4096;
constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 40;
// Victims of a large table are the best of this number of slots, a third to three quarters of them in use: on average
// they are among the 2 to 4 % that should go first.
constexpr int kDrawn = 64;
constexpr std::uint64_t kScannedWhole = CacheTable::kLeast;  // slots

using State = CacheEntry::State;

static_assert(sizeof(CacheEntry) == 64);

bool has_bytes_on_disk(State state) noexcept {
  return state == State::writing || state == State::present || state == State::leaving;
}

}  // namespace

struct CacheTable::Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t is_changing, is_replaced;
  std::uint32_t unused;
  std::uint64_t boot;
  std::uint64_t capacity;  // slots, a power of two
  std::uint64_t entries, used_bytes;
  std::uint64_t uses;   // of all objects so far
  std::uint64_t draws;  // random numbers taken
  CacheSeat seats[kSeats];
};

bool EvictionRule::knows(const CacheEntry& entry) const noexcept {
  return order != 0 && entry.order == order && entry.next_use > now;
}

bool EvictionRule::prefers_to_evict(const CacheEntry& a, const CacheEntry& b) const noexcept {
  const bool knows_a = knows(a), knows_b = knows(b);
  if (knows_a != knows_b) return !knows_a;
  return knows_a ? a.next_use > b.next_use : a.last_use < b.last_use;
}

bool EvictionRule::is_later(const NextUse& use, const CacheEntry& victim) const noexcept {
  return order != 0 && use.order == order && knows(victim) && use.next > victim.next_use;
}

CacheTable::CacheTable(os::SharedMapping mapping) noexcept : mapping_(std::move(mapping)) {}

CacheTable::Header& CacheTable::header() const noexcept {
  return *reinterpret_cast<Header*>(mapping_.bytes().data());
}

CacheEntry* CacheTable::slots() const noexcept {
  return reinterpret_cast<CacheEntry*>(mapping_.bytes().data() + round_up(sizeof(Header), kDiskBlock));
}

CacheEntry& CacheTable::at(std::uint64_t slot) noexcept {
  return slots()[slot];
}

CacheTable CacheTable::make(const std::string& path, std::uint64_t capacity, std::uint64_t boot) {
  assert(std::has_single_bit(capacity) && "the capacity of a table is a power of two");
  CacheTable table(os::SharedMapping::make(path, round_up(sizeof(Header), kDiskBlock) + capacity * sizeof(CacheEntry)));
  table.header().magic = kMagic;
  table.header().version = kTableVersion;
  table.header().boot = boot;
  table.header().capacity = capacity;
  return table;
}

// A table whose header can be believed, or none.
std::optional<CacheTable> CacheTable::map(const std::string& path) {
  os::SharedMapping mapping;
  try {
    mapping = os::SharedMapping::open(path);
  } catch (const Error&) {
    return std::nullopt;
  }
  const std::size_t size = mapping.bytes().size();
  if (size <= round_up(sizeof(Header), kDiskBlock)) return std::nullopt;
  CacheTable table(std::move(mapping));
  const Header& header = table.header();
  const bool is_valid = header.magic == kMagic && header.version == kTableVersion && header.capacity <= kMostEntries &&
                        std::has_single_bit(header.capacity) && header.entries <= header.capacity &&
                        size == round_up(sizeof(Header), kDiskBlock) + header.capacity * sizeof(CacheEntry);
  return is_valid ? std::optional(std::move(table)) : std::nullopt;
}

std::optional<CacheTable> CacheTable::open(const std::string& path, std::uint64_t boot) {
  auto table = map(path);
  if (table && (table->header().boot != boot || !table->is_usable() || !table->adds_up())) table.reset();
  return table;
}

std::optional<std::uint64_t> CacheTable::boot_of(const std::string& path) {
  const auto table = map(path);
  return table ? std::optional(table->header().boot) : std::nullopt;
}

bool CacheTable::adds_up() const noexcept {
  std::uint64_t entries = 0, used_bytes = 0;
  for (std::uint64_t slot = 0; slot < header().capacity; ++slot) {
    const CacheEntry& entry = slots()[slot];
    if (entry.state == State::empty) continue;
    if (entry.state > State::leaving || entry.seat >= kSeats) return false;
    ++entries;
    if (has_bytes_on_disk(entry.state)) used_bytes += charge(entry.bytes);
  }
  return entries == header().entries && used_bytes == header().used_bytes && entries < header().capacity;
}

std::uint64_t CacheTable::capacity_for(std::uint64_t entries) noexcept {
  return std::bit_ceil(std::max(kLeast, entries * 2));
}

std::uint64_t CacheTable::charge(std::uint64_t bytes) noexcept {
  return round_up(bytes, kDiskBlock);
}

bool CacheTable::is_usable() const noexcept {
  return std::atomic_ref(header().is_changing).load() == 0 && std::atomic_ref(header().is_replaced).load() == 0;
}

void CacheTable::set_changing(bool changing) noexcept {
  std::atomic_ref(header().is_changing).store(changing ? 1 : 0);
}

void CacheTable::set_replaced() noexcept {
  std::atomic_ref(header().is_replaced).store(1);
}

std::uint64_t CacheTable::used_bytes() const noexcept {
  return header().used_bytes;
}

std::uint64_t CacheTable::entries() const noexcept {
  return header().entries;
}

std::uint64_t CacheTable::capacity() const noexcept {
  return header().capacity;
}

CacheSeat& CacheTable::seat(unsigned number) noexcept {
  assert(number > 0 && number < kSeats && "there is no such seat");
  return header().seats[number];
}

std::uint64_t CacheTable::home(const CacheKey& key) const noexcept {
  return key.low & (header().capacity - 1);
}

CacheEntry* CacheTable::find(const CacheKey& key) noexcept {
  std::uint64_t slot = home(key);
  for (std::uint64_t looked = 0; looked < header().capacity; ++looked) {
    CacheEntry& entry = slots()[slot];
    if (entry.state == State::empty) return nullptr;
    if (entry.key == key) return &entry;
    slot = (slot + 1) & (header().capacity - 1);
  }
  return nullptr;
}

bool CacheTable::has_room() const noexcept {
  return header().entries < header().capacity / 4 * 3;
}

bool CacheTable::is_full() const noexcept {
  return header().entries >= header().capacity / 16 * 15;
}

CacheEntry& CacheTable::insert(const CacheKey& key) noexcept {
  assert(!is_full() && "a full table takes no more");
  std::uint64_t slot = home(key);
  while (slots()[slot].state != State::empty) slot = (slot + 1) & (header().capacity - 1);
  CacheEntry& entry = slots()[slot];
  entry = {};
  entry.key = key;
  os::shared_step();
  entry.state = State::claimed;
  ++header().entries;
  return entry;
}

// Closes the gap by moving back those behind it that came to lie away from their home.
void CacheTable::erase(CacheEntry& entry) noexcept {
  if (has_bytes_on_disk(entry.state)) header().used_bytes -= charge(entry.bytes);
  --header().entries;
  const std::uint64_t mask = header().capacity - 1;
  auto gap = static_cast<std::uint64_t>(&entry - slots());
  for (std::uint64_t slot = (gap + 1) & mask; slots()[slot].state != State::empty; slot = (slot + 1) & mask) {
    const std::uint64_t from_home = (slot - home(slots()[slot].key)) & mask;
    if (from_home < ((slot - gap) & mask)) continue;
    os::shared_step();
    slots()[gap] = slots()[slot];
    gap = slot;
  }
  os::shared_step();
  slots()[gap] = {};
}

void CacheTable::copy_to(CacheTable& other) const noexcept {
  for (std::uint64_t slot = 0; slot < header().capacity; ++slot) {
    if (slots()[slot].state == State::empty) continue;
    const std::uint64_t entries = other.header().entries;
    other.insert(slots()[slot].key) = slots()[slot];
    other.header().entries = entries + 1;
  }
  other.header().used_bytes = header().used_bytes;
  other.header().uses = header().uses;
  other.header().draws = header().draws;
  std::copy(std::begin(header().seats), std::end(header().seats), std::begin(other.header().seats));
}

void CacheTable::set_state(CacheEntry& entry, State state) noexcept {
  const bool had = has_bytes_on_disk(entry.state), has = has_bytes_on_disk(state);
  if (had && !has) header().used_bytes -= charge(entry.bytes);
  if (!had && has) header().used_bytes += charge(entry.bytes);
  os::shared_step();
  entry.state = state;
}

void CacheTable::touch(CacheEntry& entry, const NextUse& use) noexcept {
  entry.last_use = ++header().uses;
  entry.order = use.order;
  entry.next_use = use.is_known() ? use.next : 0;
}

CacheEntry* CacheTable::choose_victim(const EvictionRule& rule) noexcept {
  CacheEntry* victim = nullptr;
  const auto look_at = [&](CacheEntry& entry) {
    if (victim == nullptr || rule.prefers_to_evict(entry, *victim)) victim = &entry;
  };
  if (header().capacity > kScannedWhole) {
    for (int drawn = 0; drawn < kDrawn; ++drawn) {
      const std::uint64_t slot = mix(header().draws++, header().capacity) & (header().capacity - 1);
      if (slots()[slot].state == State::present) look_at(slots()[slot]);
    }
    if (victim != nullptr) return victim;
  }
  for (std::uint64_t slot = 0; slot < header().capacity; ++slot) {
    if (slots()[slot].state == State::present) look_at(slots()[slot]);
  }
  return victim;
}

EvictionRule CacheTable::rule() const noexcept {
  EvictionRule rule;
  for (unsigned number = 1; number < kSeats; ++number) {
    const CacheSeat& seat = header().seats[number];
    if (seat.is_taken == 0 || seat.has_asked == 0) continue;
    if (seat.order == 0 || (rule.order != 0 && rule.order != seat.order)) return {};
    rule.now = rule.order == 0 ? seat.now : std::min(rule.now, seat.now);
    rule.order = seat.order;
  }
  return rule;
}

}  // namespace stoker::storage
