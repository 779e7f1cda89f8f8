// Bytes that are read from disk once and stay in memory: the storage `ram`. Sources (a .npy, the shards of a pack) are
// mapped and read ahead from their start by a thread of the store while the first epoch already runs; their memory is
// the page cache's, so that processes share it and nothing is held twice. Sources without a descriptor are copied
// instead. Files and objects of their own are kept as they are read.
// What does not fit the limit is never kept, so that a fixed share of the data is read again each epoch and nothing is
// thrown out. find and keep are safe from any thread; the rest belongs to the owner, before start().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "stoker/base/text.h"
#include "stoker/os/arena.h"
#include "stoker/os/mapping.h"
#include "stoker/os/shared_segment.h"
#include "stoker/storage/source.h"

namespace stoker::storage {

class RamStore {
 public:
  explicit RamStore(std::uint64_t limit_bytes) noexcept : limit_(limit_bytes) {}
  ~RamStore() { stop(); }
  RamStore(const RamStore&) = delete;
  RamStore& operator=(const RamStore&) = delete;

  // Takes room for as much of the source as fits. The source must outlive the store. `whole`: all its bytes, if they
  // are in memory already; they are dropped where they do not fit. Throws Error.
  void add(const Source& source, os::Arena whole = {});
  // Takes room for the first of `count` files that fit; they are known by their number. Throws Error.
  // With `sharing`, processes of this machine hold the files once, together. Each writes at most what fits its own
  // limit, so that they have room for the limits of all. Where they cannot share, this process holds what fits on its
  // own, and note() says why.
  struct Sharing {
    std::uint64_t key = 0;  // of the job and of the files: only processes with the same files may have the same key
    int processes = 1;
    std::string folder;  // see SharedSegment
  };
  void add_files(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& bytes_of,
                 const std::optional<Sharing>& sharing = {});
  void start();
  void stop() noexcept;  // ends the reading ahead at the next piece; what is there stays

  // Empty if these bytes are not there yet, or will never be. What was there once stays.
  std::span<const std::byte> find(const Source& source, std::uint64_t offset, std::uint64_t bytes) const noexcept;
  std::span<const std::byte> find_file(std::uint64_t number, std::uint64_t bytes) const noexcept;
  void keep_file(std::uint64_t number, std::span<const std::byte> bytes) noexcept;

  // What add_files needs beside the bytes, per file.
  static constexpr std::uint64_t kBytesPerFile = sizeof(std::uint64_t) + 1;

  struct Figures {
    std::uint64_t wanted_bytes = 0;  // of all that was added
    std::uint64_t room_bytes = 0;    // of it that will be there
    std::uint64_t held_bytes = 0;    // of it that is there
    std::uint64_t memory_bytes = 0;  // with what is kept beside it
  };
  Figures figures() const noexcept;
  Text note() const { return note_; }  // why files are not shared; empty: they are, or need not be
  Text problem() const;                // why reading ahead ended early; empty: it did not

 private:
  struct Part {
    const Source* source = nullptr;
    os::Mapping mapping;  // of its descriptor
    os::Arena copy;       // where it has none
    std::span<const std::byte> bytes;
    std::uint64_t room = 0;
    std::atomic<std::uint64_t> loaded{0};  // bytes from the start that are there
  };

  std::uint64_t left() const noexcept { return limit_ - memory_; }
  void read_ahead();
  void load(Part& part);
  void map(Part& part);
  void copy(Part& part);

  const std::uint64_t limit_;
  std::uint64_t memory_ = 0, wanted_ = 0, room_ = 0;
  std::vector<std::unique_ptr<Part>> parts_;
  std::unordered_map<const Source*, Part*> by_source_;

  // Files: in memory of this process, or of several (shared_).
  bool share_files(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& bytes_of,
                   const Sharing& sharing);
  os::Arena files_;
  std::unique_ptr<os::SharedSegment> shared_;
  std::byte* file_bytes_ = nullptr;
  std::vector<std::uint64_t> ends_;  // of the files' places behind file_bytes_
  std::unique_ptr<std::atomic<std::uint8_t>[]> own_states_;
  std::atomic<std::uint8_t>* states_ = nullptr;
  std::atomic<std::uint64_t> own_held_{0};
  std::atomic<std::uint64_t>* files_held_ = &own_held_;
  std::uint64_t share_ = 0;                         // of this process in the shared files
  std::uint64_t most_written_ = ~std::uint64_t{0};  // by this process
  std::atomic<std::uint64_t> written_{0};
  Text note_;

  std::thread thread_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex problem_mutex_;
  Text problem_;
};

}  // namespace stoker::storage
