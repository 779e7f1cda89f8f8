// The table of a disk cache: which objects are there, who fetches what, and what to evict next. It lies in a file that
// all processes of a node map. It locks nothing: for every call, const or not, the caller holds the lock of the cache.
// A process may be killed in the middle of a change. The mark `is_changing` then stays set, and the next process that
// gets the lock makes a new table from the names of the files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stoker/os/shared_mapping.h"
#include "stoker/storage/cache_key.h"
#include "stoker/storage/next_use.h"

namespace stoker::storage {

struct CacheEntry {
  enum class State : std::uint8_t {
    empty,
    claimed,  // `seat` fetches it; there is no file
    writing,  // `seat` writes its file; its bytes count
    present,
    leaving,  // `seat` removes its file; its bytes count
  };

  CacheKey key;
  std::uint64_t checksum = 0, bytes = 0;
  std::uint64_t order = 0, next_use = 0;  // see NextUse
  std::uint64_t last_use = 0;             // a number that grows with each use of any object
  State state = State::empty;
  bool is_awaited = false;  // claimed, and somebody else needs it too; leaving, and it is fetched again
  std::uint16_t seat = 0;
  std::uint32_t generation = 0;  // of its file: one that was fetched again has another

  CachedFile file() const noexcept { return {key, bytes, checksum}; }
};

// A process that uses the cache. Seats are numbered as the bytes of the lock file that their owners hold; 0 is nobody.
struct CacheSeat {
  std::uint64_t order = 0, now = 0;  // what it said last
  std::uint32_t is_taken = 0;        // still set in a seat that nobody holds: its owner was killed
  std::uint32_t has_asked = 0;
};

// What goes first where room is needed.
struct EvictionRule {
  std::uint64_t order =
      0;                  // what all processes follow; 0: they disagree or do not say, and the least recently used goes
  std::uint64_t now = 0;  // the position of the slowest of them

  // Objects that this order does not use again go first, the least recently used of them before others. Then the one
  // whose next use is farthest.
  bool prefers_to_evict(const CacheEntry& a, const CacheEntry& b) const noexcept;  // a rather than b
  // Whether a newcomer is used later than `victim`, so that it had better not be kept.
  bool is_later(const NextUse& use, const CacheEntry& victim) const noexcept;

 private:
  bool knows(const CacheEntry& entry) const noexcept;
};

class CacheTable {
 public:
  static constexpr unsigned kSeats = 256;
  static constexpr std::uint64_t kLeast = 1024;  // entries

  CacheTable() noexcept = default;
  // `boot` tells starts of the machine apart: what a table held may not have reached the disk before one.
  static CacheTable make(const std::string& path, std::uint64_t capacity, std::uint64_t boot);  // throws Error
  // None: missing, damaged, of another version or boot, or a change was interrupted.
  static std::optional<CacheTable> open(const std::string& path, std::uint64_t boot);
  static std::optional<std::uint64_t> boot_of(const std::string& path);  // of any table of this version
  bool is_in_place(const std::string& path) const noexcept { return mapping_.is_in_place(path); }
  static std::uint64_t capacity_for(std::uint64_t entries) noexcept;
  static std::uint64_t charge(std::uint64_t bytes) noexcept;  // what a file of this length takes on the disk

  explicit operator bool() const noexcept { return static_cast<bool>(mapping_); }
  bool is_usable() const noexcept;  // neither changing nor replaced
  void set_changing(bool changing) noexcept;
  void set_replaced() noexcept;  // processes that map it open the file of its name again

  CacheEntry* find(const CacheKey& key) noexcept;
  bool has_room() const noexcept;                    // for one more entry, and lookups stay short
  bool is_full() const noexcept;                     // for good: insert() is not allowed
  CacheEntry& insert(const CacheKey& key) noexcept;  // of a key that is not there; claimed by nobody
  void erase(CacheEntry& entry) noexcept;            // entries may move: pointers to others are void
  void copy_to(CacheTable& other) const noexcept;    // all entries, seats and counts, to an empty one that has room

  // Changes the state and what all files take together.
  void set_state(CacheEntry& entry, CacheEntry::State state) noexcept;
  void touch(CacheEntry& entry, const NextUse& use) noexcept;
  // Among all in a small table, else among some that are drawn at random. Null: there is nothing to evict.
  CacheEntry* choose_victim(const EvictionRule& rule) noexcept;
  EvictionRule rule() const noexcept;

  std::uint64_t used_bytes() const noexcept;  // charge() of all files
  std::uint64_t entries() const noexcept;
  std::uint64_t capacity() const noexcept;
  CacheEntry& at(std::uint64_t slot) noexcept;  // slot < capacity(); may be empty
  CacheSeat& seat(unsigned number) noexcept;    // 1 <= number < kSeats

 private:
  struct Header;
  explicit CacheTable(os::SharedMapping mapping) noexcept;
  static std::optional<CacheTable> map(const std::string& path);
  std::uint64_t home(const CacheKey& key) const noexcept;
  bool adds_up() const noexcept;

  Header& header() const noexcept;
  CacheEntry* slots() const noexcept;

  os::SharedMapping mapping_;
};

}  // namespace stoker::storage
