// How an object gets into the cache, each line under the lock of the table where it says so:
//
//   look     (lock)  the entry is `claimed` by this process's seat; others that ask find it busy
//   reserve  (lock)  victims become `leaving`; their files are removed without the lock; (lock) they leave the table.
//                    Once there is room, the entry is `writing` and its bytes count
//   write            the file is written to parts/ and renamed
//   commit   (lock)  the entry is `present`
//
// A process that is killed while it holds the lock leaves the table marked as changing: the next one makes a new table
// from the names of files. One that is killed without the lock leaves entries with its seat: the next process that
// finds that nobody holds the seat any more removes them, with their files. So every file has an entry, and the limit
// holds.
#include "stoker/storage/object_cache.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/units.h"
#include "stoker/os/entry.h"
#include "stoker/os/fault.h"
#include "stoker/os/file.h"
#include "stoker/os/fork.h"
#include "stoker/os/process.h"
#include "stoker/storage/cache_writer.h"

namespace stoker::storage {
namespace {

namespace fs = std::filesystem;
using State = CacheEntry::State;

constexpr std::uint64_t kTableByte = 0;
constexpr std::size_t kTrimAtOnce = 1024;  // files that are removed between two looks at the table
constexpr int kReserveTries = 8;           // other processes may take the room that was made
constexpr std::string_view kAbout =
    "Objects that Stoker downloaded, so that it need not download them again (cache_dir, cache_limit).\n"
    "You may delete this folder while nothing uses it. Stoker deletes files here to keep to its limit.\n";

// Calls use(name) for each file of a folder; a folder that is gone has none.
template <typename Use>
void for_each_name(const std::string& folder, Use&& use) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    use(at->path().filename().string());
  }
}

void adopt_folder(const std::string& cache_dir, const std::string& folder) {
  os::make_folders(cache_dir);
  const bool is_new = os::make_private_folder(folder);
  if (!os::is_ours(folder)) {
    throw Error(ErrorKind::permission, fmt::format("cannot cache objects in `{}`: it belongs to another user", folder),
                format_text("give a {} of your own", option("cache_dir")));
  }
  const std::string about = folder + "/about.txt";
  if (!is_new && fs::exists(about)) return;
  // Without about.txt, it may hold what a process makes that is here now, or was killed here, and nothing else.
  const auto is_foreign = [](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename();
    if (entry.is_directory()) return name != "parts" && name.find_first_not_of("0123456789abcdef") != std::string::npos;
    return name != "lock" && name != "table" && name != "table.new" && !name.starts_with(".about.txt.");
  };
  if (std::any_of(fs::directory_iterator(folder), fs::directory_iterator(), is_foreign) && !fs::exists(about)) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot cache objects in `{}`: the folder has files that are not of a cache", folder),
                format_text("give another {}", option("cache_dir")));
  }
  os::write_file(about, kAbout);
}

// 0 or the error number. Folders are made when they are missing: somebody may have removed them.
int write(const std::string& folder, const CachedFile& file, const std::string& aside,
          std::span<const std::byte> bytes) {
  const std::string path = fmt::format("{}/{}", folder, file_name(file));
  if (const int error_number = os::write_aside(aside, path, bytes); error_number != ENOENT) return error_number;
  try {
    os::make_private_folder(folder + "/parts");
    os::make_private_folder(fmt::format("{}/{}", folder, folder_name(static_cast<unsigned>(file.key.high >> 56))));
  } catch (const Error&) {  // then the file cannot be written either, and says why
  }
  return os::write_aside(aside, path, bytes);
}

}  // namespace

// Holds the table: its lock, and a table that is usable and marked as changing. Throws Error.
class ObjectCache::Held {
 public:
  explicit Held(ObjectCache& cache) : cache_(cache), lock_(cache.mutex_), exceptions_(std::uncaught_exceptions()) {
    cache_.lock_.lock(kTableByte);
    try {
      cache_.renew_table();
      cache_.table_.set_changing(true);
    } catch (...) {
      cache_.lock_.unlock(kTableByte);
      throw;
    }
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (std::uncaught_exceptions() == exceptions_) cache_.table_.set_changing(false);  // else it is made again
    cache_.lock_.unlock(kTableByte);
  }

 private:
  ObjectCache& cache_;
  std::scoped_lock<std::mutex> lock_;
  int exceptions_;
};

ObjectCache::ObjectCache(const std::string& cache_dir, std::uint64_t limit_bytes)
    : folder_(cache_dir + "/objects"),
      limit_(limit_bytes),
      boot_(hash_text(os::boot_id().value_or("unknown"))),
      generation_(os::fork_generation()) {
  try {
    adopt_folder(cache_dir, folder_);
    directory_ = os::open_file(folder_, O_RDONLY | O_DIRECTORY);
    lock_ = os::LockFile(folder_ + "/lock");
    take_seat();
    trim();
  } catch (const fs::filesystem_error& error) {
    throw system_error(error.code().value(), "cache objects in", folder_);
  } catch (const Error& error) {
    if (error.message().starts_with("cannot cache objects")) throw;
    throw Error(error.kind(), fmt::format("cannot cache objects: {}", error.message()),
                format_text("give a {} on a local disk that you may write to, or no {}", option("cache_dir"),
                            option("cache_limit")));
  }
}

ObjectCache::~ObjectCache() {
  if (generation_ != os::fork_generation()) {
    (void)writer_.release();  // its thread is not in this process
    return;
  }
  writer_.reset();
  try {
    const Held held(*this);
    table_.seat(seat_) = {};
  } catch (...) {  // the next to take the seat cleans up
  }
}

std::string ObjectCache::path_of(const CachedFile& file) const {
  return fmt::format("{}/{}", folder_, file_name(file));
}

void ObjectCache::remove(const CachedFile& file) {
  const int error_number = os::remove_file(path_of(file));
  if (error_number != 0 && !note_folder(file))
    stop(fmt::format("its files cannot be removed: {}", std::strerror(error_number)));
}

// Somebody made a folder where the file of an object belongs. It is not the cache's to remove, and costs that object.
bool ObjectCache::note_folder(const CachedFile& file) noexcept {
  try {
    const std::string path = path_of(file);
    if (os::look_up(path).kind != os::Entry::Kind::folder) return false;
    note(fmt::format("`{}` is a folder where the file of a cached object belongs: this object is not cached", path));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void ObjectCache::take_seat() {
  // First the table's lock alone: nobody has a seat to reap yet.
  lock_.lock(kTableByte);
  for (unsigned number = 1; number < CacheTable::kSeats && seat_ == 0; ++number) {
    if (lock_.try_lock(number)) seat_ = number;
  }
  lock_.unlock(kTableByte);
  if (seat_ == 0) {
    throw Error(ErrorKind::unavailable,
                fmt::format("cannot cache objects in `{}`: {} processes use it", folder_, CacheTable::kSeats - 1),
                format_text("give some of them another {}", option("cache_dir")));
  }
  const Held held(*this);
  for (unsigned number = 1; number < CacheTable::kSeats; ++number) {
    if (table_.seat(number).is_taken != 0 && (number == seat_ || !lock_.is_held(number))) reap(number);
  }
  table_.seat(seat_).is_taken = 1;
  clear_parts();
}

// Removes what an earlier run with a larger limit left. Objects that somebody fetches or writes stay.
void ObjectCache::trim() {
  std::vector<CacheEntry> present;
  {
    const Held held(*this);
    if (table_.used_bytes() <= limit_) return;
    for (std::uint64_t slot = 0; slot < table_.capacity(); ++slot) {
      if (table_.at(slot).state == State::present) present.push_back(table_.at(slot));
    }
    const EvictionRule rule = table_.rule();
    std::sort(present.begin(), present.end(),
              [&](const CacheEntry& a, const CacheEntry& b) { return rule.prefers_to_evict(a, b); });
  }
  for (std::size_t next = 0; next < present.size();) {
    Files leaving;
    {
      const Held held(*this);
      std::uint64_t freed = 0;
      for (; next < present.size() && leaving.size() < kTrimAtOnce && table_.used_bytes() - freed > limit_; ++next) {
        CacheEntry* const entry = table_.find(present[next].key);
        if (entry == nullptr || entry->state != State::present) continue;
        entry->seat = static_cast<std::uint16_t>(seat_);
        table_.set_state(*entry, State::leaving);
        freed += CacheTable::charge(entry->bytes);
        leaving.push_back(entry->file());
        ++stats_.evicted;
      }
    }
    if (leaving.empty()) return;
    for (const CachedFile& file : leaving) remove(file);
    const Held held(*this);
    forget(leaving);
  }
}

// What processes were writing when they were killed.
void ObjectCache::clear_parts() {
  for_each_name(folder_ + "/parts", [&](const std::string& name) {
    unsigned seat = 0;
    unsigned long long part = 0;
    char rest = 0;
    if (std::sscanf(name.c_str(), "%u-%llu%c", &seat, &part, &rest) != 2 || seat == 0 || seat >= CacheTable::kSeats)
      return;
    if (seat != seat_ && lock_.is_held(seat)) return;
    (void)os::remove_file(fmt::format("{}/parts/{}", folder_, name));
  });
}

// Opens the table of this name where another process replaced it, or makes it again. The lock is held.
void ObjectCache::renew_table() {
  if (table_ && table_.is_usable()) return;
  if (auto opened = CacheTable::open(folder_ + "/table", boot_)) {
    table_ = std::move(*opened);
  } else {
    rebuild();
  }
}

// Somebody may have removed the file of the table, and others may use a new one. With another lock file, theirs is
// another cache.
void ObjectCache::find_table_again() {
  if (!lock_.is_in_place()) throw Error(ErrorKind::not_found, "somebody removed its folder");
  const std::scoped_lock lock(mutex_);
  if (table_ && !table_.is_in_place(folder_ + "/table")) table_ = {};
}

// From the names of files. Claims are lost: two processes may then fetch the same object, which does no harm.
void ObjectCache::rebuild() {
  const auto for_each_file = [&](auto&& use) {
    for (unsigned number = 0; number < kFolders; ++number) {
      const std::string folder = folder_name(number);
      for_each_name(fmt::format("{}/{}", folder_, folder), [&](const std::string& name) {
        if (const auto file = parse_file_name(folder, name)) use(*file);
      });
    }
  };
  if (const auto boot = CacheTable::boot_of(folder_ + "/table"); boot && *boot != boot_) {
    for (unsigned number = 1; number < CacheTable::kSeats; ++number) {
      if (number == seat_ || !lock_.is_held(number)) continue;
      throw Error(ErrorKind::unavailable, fmt::format("cannot cache objects in `{}`: another machine uses it", folder_),
                  format_text("give each machine a {} of its own, on a local disk", option("cache_dir")));
    }
  }
  std::uint64_t files = 0;
  for_each_file([&](const CachedFile&) { ++files; });
  const std::string aside = folder_ + "/table.new";
  (void)os::remove_file(aside);
  CacheTable made = CacheTable::make(aside, CacheTable::capacity_for(files), boot_);
  for_each_file([&](const CachedFile& file) {
    const bool is_kept = made.has_room() && made.find(file.key) == nullptr &&
                         made.used_bytes() + CacheTable::charge(file.bytes) <= limit_;
    if (!is_kept) {
      remove(file);
      return;
    }
    CacheEntry& entry = made.insert(file.key);
    entry.bytes = file.bytes;
    entry.checksum = file.checksum;
    made.set_state(entry, State::present);
  });
  for (unsigned number = 1; number < CacheTable::kSeats; ++number) {
    if (number != seat_ && !lock_.is_held(number)) continue;
    made.seat(number).is_taken = 1;
  }
  if (table_) table_.set_replaced();
  if (const int error_number = os::rename_file(aside, folder_ + "/table"); error_number != 0) {
    throw system_error(error_number, "write", folder_ + "/table");
  }
  table_ = std::move(made);
}

// Twice as large, or as it is where the disk is full. The lock is held, and the table is marked as changing.
void ObjectCache::grow() {
  const std::string aside = folder_ + "/table.new";
  (void)os::remove_file(aside);
  try {
    CacheTable made = CacheTable::make(aside, table_.capacity() * 2, boot_);
    made.set_changing(true);
    table_.copy_to(made);
    table_.set_replaced();
    if (const int error_number = os::rename_file(aside, folder_ + "/table"); error_number != 0) {
      throw system_error(error_number, "write", folder_ + "/table");
    }
    table_ = std::move(made);
  } catch (const Error& error) {
    if (!table_.is_full()) return;
    stop(fmt::format("the table of the cache cannot grow: {}", error.message()));
  }
}

// Removes what a killed process left. The lock is held.
void ObjectCache::reap(unsigned seat) {
  std::vector<CacheKey> left;
  for (std::uint64_t slot = 0; slot < table_.capacity(); ++slot) {
    const CacheEntry& entry = table_.at(slot);
    if (entry.state != State::empty && entry.state != State::present && entry.seat == seat) left.push_back(entry.key);
  }
  for (const CacheKey& key : left) {
    CacheEntry* const entry = table_.find(key);
    if (entry == nullptr) continue;
    if (entry->state != State::claimed) remove(entry->file());
    table_.erase(*entry);
  }
  table_.seat(seat) = {};
}

void ObjectCache::look(std::span<Lookup> lookups) noexcept {
  for (Lookup& lookup : lookups) lookup.found = Found::outside;
  if (lookups.empty() || is_broken_) return;
  try {
    const Held held(*this);
    CacheSeat& seat = table_.seat(seat_);
    seat.has_asked = 1;
    seat.order = lookups.front().use.order;
    seat.now = lookups.front().use.now;
    for (Lookup& lookup : lookups) look_one(lookup);
  } catch (const std::exception& error) {
    for (Lookup& lookup : lookups) lookup.found = Found::outside;
    is_broken_ = true;
    stop(error.what());
  }
}

void ObjectCache::look_one(Lookup& lookup) {
  CacheEntry* entry = table_.find(lookup.key);
  if (entry != nullptr && entry->state != State::present && entry->seat != seat_ && !lock_.is_held(entry->seat)) {
    reap(entry->seat);
    entry = table_.find(lookup.key);
  }
  if (entry != nullptr) {
    if (entry->state == State::present) {
      lookup.found = Found::hit;
      lookup.checksum = entry->checksum;
      lookup.generation = entry->generation;
      table_.touch(*entry, lookup.use);
      ++stats_.hits;
    } else if (entry->state == State::leaving && !entry->is_awaited) {
      lookup.found = Found::outside;  // its file is going; it may come back the next time
      ++stats_.passed_by;
    } else {
      lookup.found = Found::busy;
      entry->is_awaited = true;
      ++stats_.busy;
    }
    return;
  }
  if (is_stopped_) return;
  if (CacheTable::charge(lookup.bytes) > limit_) {
    const std::scoped_lock lock(notes_mutex_);
    largest_above_limit_ = std::max(largest_above_limit_, lookup.bytes);
    return;
  }
  if (!table_.has_room()) grow();
  if (table_.is_full()) return;
  table_.insert(lookup.key).seat = static_cast<std::uint16_t>(seat_);
  lookup.found = Found::claimed;
  ++stats_.claims;
}

// The entry of this process in that state, or null. The lock is held.
CacheEntry* ObjectCache::own(const CacheKey& key, State state) {
  CacheEntry* const entry = table_.find(key);
  return entry != nullptr && entry->state == state && entry->seat == seat_ ? entry : nullptr;
}

void ObjectCache::release(const CacheKey& key) noexcept {
  if (is_broken_) return;
  try {
    const Held held(*this);
    if (CacheEntry* const entry = own(key, State::claimed)) table_.erase(*entry);
  } catch (const std::exception& error) {
    is_broken_ = true;
    stop(error.what());
  }
}

void ObjectCache::drop(const Lookup& lookup, bool is_damaged) noexcept {
  if (is_damaged) {
    ++stats_.damaged;
    note("a file of the object cache is damaged: it is fetched again, as any other one like it");
  }
  if (is_broken_) return;
  try {
    Files leaving;
    {
      const Held held(*this);
      CacheEntry* const entry = table_.find(lookup.key);
      if (entry == nullptr || entry->state != State::present || entry->checksum != lookup.checksum ||
          entry->generation != lookup.generation) {
        return;
      }
      entry->seat = static_cast<std::uint16_t>(seat_);
      entry->is_awaited = true;
      table_.set_state(*entry, State::leaving);
      leaving.push_back(entry->file());
    }
    remove(leaving.front());
    const Held held(*this);
    forget(leaving);
  } catch (const std::exception& error) {
    is_broken_ = true;
    stop(error.what());
  }
}

void ObjectCache::forget(const Files& leaving) {
  for (const CachedFile& file : leaving) {
    if (CacheEntry* const entry = own(file.key, State::leaving)) table_.erase(*entry);
  }
}

// Makes the claim an entry whose bytes count, or names the files that must leave first. The lock is held.
ObjectCache::Room ObjectCache::reserve(const CachedFile& file, const NextUse& use, Files& leaving) {
  CacheEntry* entry = own(file.key, State::claimed);
  if (entry == nullptr) return Room::none;  // a new table knows no claims
  const std::uint64_t need = CacheTable::charge(file.bytes);
  const EvictionRule rule = table_.rule();
  std::uint64_t freed = 0;
  while (table_.used_bytes() - freed + need > limit_) {
    CacheEntry* const victim = table_.choose_victim(rule);
    const bool is_worse = victim != nullptr && freed == 0 && !entry->is_awaited && rule.is_later(use, *victim);
    if (victim == nullptr || is_worse) {
      ++stats_.passed_by;
      table_.erase(*entry);
      return Room::none;
    }
    victim->seat = static_cast<std::uint16_t>(seat_);
    table_.set_state(*victim, State::leaving);
    freed += CacheTable::charge(victim->bytes);
    leaving.push_back(victim->file());
    ++stats_.evicted;
  }
  if (freed > 0) return Room::not_yet;
  entry->bytes = file.bytes;
  entry->checksum = file.checksum;
  table_.set_state(*entry, State::writing);
  return Room::reserved;
}

// Whether the file is in the table: a new one may know it already, or not at all. The lock is held.
bool ObjectCache::commit(const CachedFile& file, const NextUse& use) {
  CacheEntry* entry = table_.find(file.key);
  if (entry == nullptr) {
    if (table_.is_full() || table_.used_bytes() + CacheTable::charge(file.bytes) > limit_) return false;
    entry = &table_.insert(file.key);
    entry->bytes = file.bytes;
    entry->checksum = file.checksum;
  } else if (entry->checksum != file.checksum || entry->bytes != file.bytes) {
    return false;
  } else if (entry->state != State::present && entry->seat != seat_) {
    return true;  // another one takes care of the same file
  }
  table_.set_state(*entry, State::present);
  entry->is_awaited = false;
  table_.touch(*entry, use);
  entry->generation = static_cast<std::uint32_t>(entry->last_use);
  return true;
}

bool ObjectCache::store(const CacheKey& key, std::span<const std::byte> bytes, const NextUse& use) noexcept {
  if (is_stopped_ || is_broken_) {
    release(key);
    return false;
  }
  const CachedFile file{key, bytes.size(), hash_bytes(bytes)};
  try {
    find_table_again();
    Room room = Room::not_yet;
    Files leaving;
    for (int tries = 0; room == Room::not_yet && tries < kReserveTries; ++tries) {
      for (const CachedFile& victim : leaving) remove(victim);
      const Held held(*this);
      forget(std::exchange(leaving, {}));
      room = reserve(file, use, leaving);
    }
    if (room == Room::not_yet) {
      for (const CachedFile& victim : leaving) remove(victim);
      const Held held(*this);
      forget(leaving);
      if (CacheEntry* const entry = own(key, State::claimed)) table_.erase(*entry);
    }
    if (room != Room::reserved) return false;

    const std::string aside = fmt::format("{}/parts/{}-{}", folder_, seat_, parts_++);
    const int error_number = write(folder_, file, aside, bytes);
    bool is_kept = false;
    {
      const Held held(*this);
      if (error_number == 0) {
        is_kept = commit(file, use);
        if (!is_kept) remove(file);
      } else if (CacheEntry* const entry = own(key, State::writing)) {
        table_.erase(*entry);
      }
    }
    if (is_kept) ++stats_.kept;
    if (error_number != 0 && error_number != EMFILE && error_number != ENFILE && error_number != ENOMEM &&
        !note_folder(file)) {
      stop(std::strerror(error_number));
    }
    return is_kept;
  } catch (const std::exception& error) {
    is_broken_ = true;
    stop(error.what());
    return false;
  }
}

CacheWriter* ObjectCache::writer() noexcept {
  std::call_once(writer_once_, [this] {
    try {
      writer_ = std::make_unique<CacheWriter>(*this);
    } catch (const std::exception& error) {
      stop(fmt::format("no thread can be started: {}", error.what()));
    }
  });
  return writer_.get();
}

ObjectCache::Contents ObjectCache::contents() noexcept {
  try {
    const Held held(*this);
    return {table_.entries(), table_.used_bytes()};
  } catch (const std::exception&) {
    return {};
  }
}

ObjectCache::Stats ObjectCache::stats() const noexcept {
  return {stats_.hits, stats_.claims, stats_.busy, stats_.kept, stats_.evicted, stats_.passed_by, stats_.damaged};
}

void ObjectCache::stop(const std::string& why) noexcept {
  if (is_stopped_.exchange(true)) return;
  note(fmt::format("no more objects are cached in `{}`: {}", folder_, why));
}

void ObjectCache::note(const Text& text) noexcept {
  const std::scoped_lock lock(notes_mutex_);
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

std::vector<Text> ObjectCache::notes() const {
  const std::scoped_lock lock(notes_mutex_);
  std::vector<Text> notes = notes_;
  if (largest_above_limit_ > 0) {
    notes.push_back(format_text("{} {} is less than objects of up to {}: those above the limit are not cached",
                                option("cache_limit"), format_bytes(limit_), format_bytes(largest_above_limit_)));
  }
  return notes;
}

}  // namespace stoker::storage
