// Writes fetched objects into the cache from where they lie, in a thread of its own: nothing is copied, and a slow disk
// does not hold up the network. The caller keeps the bytes until its inbox has the answer. What would wait behind too
// many other bytes is refused: the store is then faster than the disk, and the caller goes on without keeping it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "stoker/os/event.h"
#include "stoker/storage/cache_key.h"
#include "stoker/storage/next_use.h"

namespace stoker::storage {

class ObjectCache;

class CacheWriter {
 public:
  static constexpr std::uint64_t kMostWaiting = std::uint64_t{32} << 20;  // bytes, or one object

  // Where answers go: the tags of what was written, or was not.
  class Inbox {
   public:
    std::vector<std::uint64_t> take();
    int descriptor() const noexcept { return event_.descriptor(); }  // can be read once something is there

   private:
    friend class CacheWriter;
    std::mutex mutex_;
    std::vector<std::uint64_t> tags_;
    os::Event event_;
  };

  explicit CacheWriter(ObjectCache& cache);  // throws std::system_error if no thread can be started
  ~CacheWriter();
  CacheWriter(const CacheWriter&) = delete;
  CacheWriter& operator=(const CacheWriter&) = delete;

  struct Job {
    CacheKey key;
    std::span<const std::byte> bytes;
    NextUse use;
    Inbox* inbox = nullptr;
    std::uint64_t tag = 0;
  };
  bool offer(const Job& job);  // false: not taken. From any thread
  void cancel(Inbox& inbox);   // its jobs are over when this returns: written, or their claims released

 private:
  void run();

  ObjectCache& cache_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // the first is being written
  std::uint64_t waiting_bytes_ = 0;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace stoker::storage
