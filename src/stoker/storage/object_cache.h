// A disk cache for objects of a store: one per node, without a daemon. All processes that open the same folder share
// it through a mapped table (cache_table.h), and each object is fetched once for all of them. Files are whole and
// checked (cache_key.h); a process may be killed at any point. Only files that the cache wrote are ever removed.
//
//   cache_dir/objects/about.txt   says what this folder is: the cache touches no folder without it
//   cache_dir/objects/lock        byte 0: the table; byte n: held by the process that has seat n, as long as it lives
//   cache_dir/objects/table       the table
//   cache_dir/objects/parts/      files that are being written, named by seat
//   cache_dir/objects/00 .. ff/   whole files
//
// Every call is safe from any thread. No call but the constructor throws: a cache that fails says so once in notes(),
// and from then on finds nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "stoker/base/text.h"
#include "stoker/os/fd.h"
#include "stoker/os/lock_file.h"
#include "stoker/storage/cache_key.h"
#include "stoker/storage/cache_table.h"

namespace stoker::storage {

class CacheWriter;

class ObjectCache {
 public:
  // Throws Error: the folder cannot be written, belongs to another user or to something else, or is used by another
  // machine. `limit_bytes` bounds what the files take on the disk, those being written included: what is above it goes
  // now. Where processes give different ones, each keeps to its own.
  ObjectCache(const std::string& cache_dir, std::uint64_t limit_bytes);
  ~ObjectCache();
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(const ObjectCache&) = delete;

  enum class Found : std::uint8_t {
    hit,      // its file is there: read it, and compare with `checksum`
    claimed,  // the caller fetches it, then calls store() or release()
    busy,     // another one fetches it: ask again later
    outside,  // it is not kept: fetch it, and call nothing
  };
  struct Lookup {
    CacheKey key;
    std::uint64_t bytes = 0;
    NextUse use;
    Found found = Found::outside;  // these are the answer
    std::uint64_t checksum = 0;
    std::uint32_t generation = 0;  // of the file
  };
  void look(std::span<Lookup> lookups) noexcept;

  // Of a claim: writes the file, unless it is not worth the room. Blocks as long as the disk does. Whether it is kept.
  bool store(const CacheKey& key, std::span<const std::byte> bytes, const NextUse& use = {}) noexcept;
  void release(const CacheKey& key) noexcept;  // it is not fetched after all
  // Of a hit whose file is missing or not what `lookup` says. The next look() finds nothing, or the file that another
  // request has put in its place since.
  void drop(const Lookup& lookup, bool is_damaged) noexcept;

  int directory() const noexcept { return directory_.get(); }  // what file_name() is below
  std::string path_of(const CachedFile& file) const;
  std::uint64_t limit_bytes() const noexcept { return limit_; }
  CacheWriter* writer() noexcept;  // its thread starts with the first call; null: it cannot

  struct Stats {  // of this object
    std::uint64_t hits = 0, claims = 0, busy = 0, kept = 0, evicted = 0, passed_by = 0, damaged = 0;
  };
  Stats stats() const noexcept;
  struct Contents {  // of the whole cache
    std::uint64_t entries = 0, used_bytes = 0;
  };
  Contents contents() noexcept;
  // What a user should know, each once: a damaged file, a full disk, an object above the limit.
  std::vector<Text> notes() const;
  void note(const Text& text) noexcept;

 private:
  class Held;
  using Files = std::vector<CachedFile>;

  void remove(const CachedFile& file);
  bool note_folder(const CachedFile& file) noexcept;
  void take_seat();
  void clear_parts();
  void trim();
  void renew_table();
  void find_table_again();
  void rebuild();
  void grow();
  void reap(unsigned seat);
  void look_one(Lookup& lookup);
  CacheEntry* own(const CacheKey& key, CacheEntry::State state);
  void forget(const Files& leaving);
  enum class Room : std::uint8_t { reserved, not_yet, none };
  Room reserve(const CachedFile& file, const NextUse& use, Files& leaving);
  bool commit(const CachedFile& file, const NextUse& use);
  void stop(const std::string& why) noexcept;

  std::string folder_;
  std::uint64_t limit_, boot_ = 0;
  os::Fd directory_;
  os::LockFile lock_;
  std::mutex mutex_;  // before byte 0 of lock_: threads of one process share that
  CacheTable table_;
  unsigned seat_ = 0;
  std::uint64_t generation_;
  std::atomic<bool> is_stopped_{false};  // nothing is written any more
  std::atomic<bool> is_broken_{false};   // nothing is found any more
  std::atomic<std::uint64_t> parts_{0};
  mutable std::mutex notes_mutex_;
  std::vector<Text> notes_;
  std::uint64_t largest_above_limit_ = 0;  // bytes of the largest object that is not cached; 0: none
  struct {
    std::atomic<std::uint64_t> hits, claims, busy, kept, evicted, passed_by, damaged;
  } stats_{};
  std::once_flag writer_once_;
  std::unique_ptr<CacheWriter> writer_;
};

}  // namespace stoker::storage
