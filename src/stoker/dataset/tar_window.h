// The bytes of a tar shard, for a reader that goes mostly forwards, from header to header. Decides how much is read at
// once. Belongs to one thread.
//   in memory            nothing is read
//   a local file         16 KiB at each header
//   a store, with room   the whole shard in large steps; what was read is kept for the first epoch (HandOver)
//   a store, otherwise   windows that grow while the reader goes on where the last one ends. After a jump over a large
//                        member the window is small again: of large members only the headers are read
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "stoker/os/arena.h"
#include "stoker/storage/hand_over.h"
#include "stoker/storage/shared_reads.h"
#include "stoker/storage/source.h"

namespace stoker::dataset {

class TarWindow {
 public:
  // How shards of a store are read. Borrowed.
  struct Store {
    storage::SharedReads* reads = nullptr;   // null: by the source itself
    storage::HandOver* hand_over = nullptr;  // null: nothing is kept
    std::uint64_t most_bytes = 4 << 20;      // of a window
  };

  // `source` is borrowed.
  explicit TarWindow(const storage::Source& source) : TarWindow(source, Store()) {}
  TarWindow(const storage::Source& source, const Store& store);
  ~TarWindow();
  TarWindow(const TarWindow&) = delete;
  TarWindow& operator=(const TarWindow&) = delete;

  const storage::Source& source() const noexcept { return source_; }
  // Inside the source. Valid until the next call. Throws Error.
  std::span<const std::byte> bytes(std::uint64_t offset, std::uint64_t count);
  std::uint64_t most_bytes() const noexcept {
    return most_;
  }  // more than this makes the window larger than it should be
  // Hands the shard over, if all of it was read and there was room; `sample_bytes` as in HandOver::keep().
  void keep(std::uint64_t sample_bytes);

 private:
  void read(std::uint64_t offset, std::span<std::byte> into, const std::function<void()>& meanwhile = {});
  void move_to(std::uint64_t offset, std::uint64_t count);

  const storage::Source& source_;
  const Store store_;
  const std::uint64_t least_, most_;
  os::Arena whole_;                // of the shard; empty: there are windows
  std::vector<std::byte> window_;  // from at_ on
  std::uint64_t at_ = 0, filled_ = 0;
  std::uint64_t size_;  // of the last window
};

}  // namespace stoker::dataset
