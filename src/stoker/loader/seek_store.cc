#include "stoker/loader/seek_store.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/os/file.h"
#include "stoker/os/file_lock.h"
#include "stoker/os/thread.h"

namespace stoker::loader {
namespace {

using codec::Checkpoint;

constexpr std::size_t kChunk = kMiB;
constexpr std::size_t kFirstSlots = 64;

}  // namespace

SeekStore::SeekStore(SeekOptions options) : options_(std::move(options)), budget_(options_.limit_bytes) {
  if (!options_.path.empty()) load();
  if (options_.packed) options_.packed->read_ahead();
}

SeekStore::~SeekStore() {
  if (saver_.joinable()) saver_.join();
}

SeekStore::Slot* SeekStore::find(Shard& shard, std::uint64_t identity) noexcept {
  if (shard.slots.empty()) return nullptr;
  for (std::size_t at = identity;; ++at) {
    Slot& slot = shard.slots[at & (shard.slots.size() - 1)];
    if (slot.identity == identity || slot.identity == 0) return &slot;
  }
}

// With what save() needs for a while.
std::uint64_t SeekStore::slot_bytes(std::size_t slots) noexcept {
  return slots * (sizeof(Slot) + sizeof(SeekRecord) + sizeof(SeekRow));
}

// For one more entry: at most three quarters of the slots are in use.
bool SeekStore::make_room_locked(Shard& shard) noexcept {
  if ((shard.used + 1) * 4 <= shard.slots.size() * 3) return true;
  const std::size_t wanted = std::max(kFirstSlots, shard.slots.size() * 2);
  if (!budget_.try_take(slot_bytes(wanted))) return false;
  std::vector<Slot> larger;
  try {
    larger.resize(wanted);
  } catch (const std::bad_alloc&) {
    budget_.give_back(slot_bytes(wanted));
    return false;
  }
  std::swap(larger, shard.slots);
  for (const Slot& slot : larger) {
    if (slot.identity != 0) *find(shard, slot.identity) = slot;
  }
  budget_.give_back(slot_bytes(larger.size()));
  return true;
}

std::byte* SeekStore::take(std::size_t bytes) noexcept {
  bytes = (bytes + 7) / 8 * 8;
  const std::scoped_lock lock(chunks_mutex_);
  if (chunks_.empty() || chunks_.back().size() - chunk_used_ < bytes) {
    const std::size_t size =
        os::Arena::rounded(std::max(bytes, std::min<std::size_t>(kChunk, budget_.limit_bytes() / 8)));
    if (!budget_.try_take(size)) return nullptr;
    try {
      chunks_.emplace_back(size);
    } catch (const std::exception&) {
      budget_.give_back(size);
      return nullptr;
    }
    chunk_used_ = 0;
  }
  return chunks_.back().data() + std::exchange(chunk_used_, chunk_used_ + bytes);
}

// Without a saved row, room for all places is taken as well.
SeekStore::Entry* SeekStore::add_locked(Shard& shard, std::uint64_t identity, std::uint32_t total,
                                        const SeekRow* saved) noexcept {
  if (!make_room_locked(shard)) return nullptr;
  std::byte* const memory = take(sizeof(Entry) + (saved == nullptr ? total * sizeof(Checkpoint) : 0));
  if (memory == nullptr) return nullptr;
  auto* const entry = new (memory) Entry;
  entry->total.store(total, std::memory_order_relaxed);
  entry->step = options_.step;
  if (saved != nullptr) {
    entry->step = saved->step;
    entry->saved.store(saved, std::memory_order_relaxed);
  } else {
    entry->places.store(reinterpret_cast<Checkpoint*>(memory + sizeof(Entry)), std::memory_order_relaxed);
  }
  Slot* const slot = find(shard, identity);
  slot->identity = identity;
  slot->entry = entry;
  ++shard.used;
  files_.fetch_add(1, std::memory_order_relaxed);
  return entry;
}

// Runs before any other thread knows the store. Only the table is read; places stay in the page cache, and each
// file's are checked when they are first asked for.
void SeekStore::load() {
  std::string why;
  saved_ = SeekFile::open(options_.path, why);
  if (!why.empty()) note_ = fmt::format("the saved seek index `{}` is rebuilt: {}", options_.path, why);
  for (const SeekRow& row : saved_.rows()) {
    if (row.identity == 0 || row.known == 0 || row.known > row.total || row.step == 0) continue;
    Shard& shard = shard_of(row.identity);
    if (const Slot* const slot = find(shard, row.identity); slot != nullptr && slot->identity != 0) continue;
    if (add_locked(shard, row.identity, row.total, &row) == nullptr) break;  // the rest is as if it was never seen
    places_.fetch_add(row.known, std::memory_order_relaxed);
  }
}

// The first thread that asks for a saved file's places decides whether they are sound; the caller has the right to
// extend the entry.
bool SeekStore::check_saved(Entry& entry, std::uint32_t total) noexcept {
  const SeekRow* const row = entry.saved.load(std::memory_order_relaxed);
  if (row == nullptr) return true;
  const std::span<const Checkpoint> places = saved_.places(*row);
  const bool whole = !places.empty() && row->known == total;
  Checkpoint* at = const_cast<Checkpoint*>(places.data());  // nothing is written to places that are all known
  if (!whole) {
    at = reinterpret_cast<Checkpoint*>(take(total * sizeof(Checkpoint)));
    if (at == nullptr) return false;
    if (!places.empty()) std::memcpy(at, places.data(), places.size_bytes());
  }
  if (places.empty()) places_.fetch_sub(row->known, std::memory_order_relaxed);  // damaged: found again
  entry.places.store(at, std::memory_order_release);
  entry.known.store(static_cast<std::uint32_t>(places.size()), std::memory_order_release);
  entry.saved.store(nullptr, std::memory_order_release);
  return true;
}

void SeekStore::lease(codec::Bytes file, Lease& lease) noexcept {
  // The header first: it costs far less than the identity, and a file that cannot have places needs none.
  const std::uint32_t mcus = codec::seekable_mcus(file);
  const std::uint64_t identity = mcus == 0 ? 0 : identity_of(file);
  if (identity == 0) return;
  if (options_.packed) {
    const SeekRow* const row = options_.packed->find(identity);
    const std::span<const Checkpoint> places =
        row != nullptr ? options_.packed->places(*row) : std::span<const Checkpoint>();
    if (!places.empty()) {
      lease.store_ = this;
      // The decoder writes places only behind those that are known, and here all are.
      lease.index_ = {
          .step = row->step, .places = {const_cast<Checkpoint*>(places.data()), places.size()}, .known = row->known};
      return;
    }
  }
  Shard& shard = shard_of(identity);
  Entry* entry = nullptr;
  {
    const std::scoped_lock lock(shard.mutex);
    if (const Slot* const slot = find(shard, identity); slot != nullptr && slot->identity != 0) entry = slot->entry;
  }
  if (entry == nullptr) {
    const std::uint32_t total = (mcus - 1) / options_.step;
    if (total == 0) return;
    const std::scoped_lock lock(shard.mutex);
    if (const Slot* const slot = find(shard, identity); slot != nullptr && slot->identity != 0) {
      entry = slot->entry;  // another thread was faster
    } else {
      entry = add_locked(shard, identity, total, nullptr);
    }
    if (entry == nullptr) return;
  }
  if (!entry->seen.load(std::memory_order_relaxed) && !entry->seen.exchange(true, std::memory_order_relaxed)) {
    seen_.fetch_add(1, std::memory_order_relaxed);
  }
  const std::uint32_t total = entry->total.load(std::memory_order_relaxed);
  std::uint32_t known = entry->known.load(std::memory_order_acquire);
  bool extends = known < total && !entry->extending.exchange(true, std::memory_order_acquire);
  if (extends) {
    const bool sound = check_saved(*entry, total);
    known = entry->known.load(std::memory_order_relaxed);
    if (!sound || known == total) {
      extends = false;
      entry->extending.store(false, std::memory_order_release);
    }
  }
  if (known == 0 && !extends) return;
  Checkpoint* const places = entry->places.load(std::memory_order_acquire);
  lease.store_ = this;
  lease.entry_ = entry;
  lease.extends_ = extends;
  lease.index_ = {.step = entry->step, .places = {places, extends ? total : known}, .known = known};
}

SeekStore::Lease::~Lease() {
  if (entry_ != nullptr) store_->finish(*this);
}

void SeekStore::finish(Lease& lease) noexcept {
  Entry& entry = *lease.entry_;
  if (lease.index_.places.empty()) {  // of no use, now and later
    entry.total.store(0, std::memory_order_relaxed);
    entry.known.store(0, std::memory_order_relaxed);
    return;  // and nobody extends it any more
  }
  if (!lease.extends_) return;
  const std::uint32_t before = entry.known.load(std::memory_order_relaxed);
  if (lease.index_.known > before && entry.total.load(std::memory_order_relaxed) != 0) {
    entry.known.store(lease.index_.known, std::memory_order_release);
    places_.fetch_add(lease.index_.known - before, std::memory_order_relaxed);
    unsaved_places_.fetch_add(lease.index_.known - before, std::memory_order_relaxed);
  }
  entry.extending.store(false, std::memory_order_release);
}

SeekStore::Figures SeekStore::figures() const noexcept {
  const std::uint64_t packed = options_.packed ? options_.packed->rows().size() : 0;
  return {packed + files_.load(std::memory_order_relaxed), places_.load(std::memory_order_relaxed),
          unsaved_places_.load(std::memory_order_relaxed), budget_.used_bytes()};
}

void SeekStore::save_soon() {
  const std::uint64_t unsaved = unsaved_places_.load(std::memory_order_relaxed);
  if (options_.path.empty() || unsaved == 0 || unsaved < places_.load(std::memory_order_relaxed) / 10) return;
  if (is_saving_.load(std::memory_order_acquire)) return;
  if (saver_.joinable()) saver_.join();
  is_saving_.store(true, std::memory_order_relaxed);
  try {
    saver_ = os::start_thread([this] { try_save(); });
  } catch (const std::exception&) {
    is_saving_.store(false, std::memory_order_relaxed);  // no thread to be had now: later, or at the end
  }
}

void SeekStore::finish_saving() {
  if (saver_.joinable()) saver_.join();
  if (!options_.path.empty() && unsaved_places_.load(std::memory_order_relaxed) > 0) try_save();
}

std::string SeekStore::problem() {
  const std::scoped_lock lock(problem_mutex_);
  return problem_;
}

void SeekStore::try_save() noexcept {
  std::string problem;
  try {
    save();
  } catch (const std::exception& error) {
    problem = fmt::format("the seek index is not saved, the next run notes it again: {}", error.what());
  }
  {
    const std::scoped_lock lock(problem_mutex_);
    std::swap(problem_, problem);
  }
  is_saving_.store(false, std::memory_order_release);
}

void SeekStore::save() {
  os::make_folders(options_.path.substr(0, options_.path.rfind('/')));
  // Ranks of one run, and other runs, save to the same file: one at a time, each adding to what is there.
  int error_number = 0;
  const os::FileLock turn = os::FileLock::wait_for(options_.path + ".lock", error_number);  // without it if need be

  const std::uint64_t unsaved = unsaved_places_.load(std::memory_order_relaxed);
  const bool all_seen = options_.files != 0 && seen_.load(std::memory_order_relaxed) >= options_.files;
  std::vector<SeekRecord> records;
  for (const Shard& shard : shards_) {
    const std::scoped_lock lock(shard.mutex);
    for (const Slot& slot : shard.slots) {
      if (slot.identity == 0) continue;
      SeekRecord record{{.identity = slot.identity, .step = slot.entry->step}, nullptr};
      if (!is_kept(*slot.entry, all_seen, record.row.known, record.row.total)) continue;
      record.places = slot.entry->places.load(std::memory_order_acquire);
      records.push_back(record);
    }
  }
  std::string why;
  const SeekFile there = SeekFile::open(options_.path, why);
  if (!all_seen) {
    for (const SeekRow& row : there.rows()) {
      const std::span<const Checkpoint> places = there.places(row);
      if (places.empty() || row.identity == 0) continue;
      Shard& shard = shard_of(row.identity);
      const std::scoped_lock lock(shard.mutex);
      const Slot* const slot = find(shard, row.identity);
      std::uint32_t known = 0, total = 0;
      const bool mine = slot != nullptr && slot->identity != 0 && is_kept(*slot->entry, all_seen, known, total);
      if (!mine) records.push_back({row, places.data()});
    }
  }
  write_seek_file(options_.path, records);
  unsaved_places_.fetch_sub(unsaved, std::memory_order_relaxed);
}

bool SeekStore::is_kept(const Entry& entry, bool all_seen, std::uint32_t& known, std::uint32_t& total) const noexcept {
  known = entry.known.load(std::memory_order_acquire);
  total = entry.total.load(std::memory_order_relaxed);
  return known > 0 && known <= total && (!all_seen || entry.seen.load(std::memory_order_relaxed));
}

}  // namespace stoker::loader
