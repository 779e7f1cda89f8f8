// The encoded bytes of chunks of volumes, for volumes whose reads wait for long: a thread of its own keeps many reads
// in flight. The fetch stage asks for the chunks of each patch when the patch is planned, and the worker takes them
// when it makes the patch. So a patch waits once for all of its chunks, and usually not at all. Its memory is a fixed
// share. A chunk that finds no room, or that nobody asked for, is read by the worker that needs it. Safe from any
// thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>

#include "stoker/dataset/volume.h"
#include "stoker/loader/byte_room.h"
#include "stoker/loader/chunk_key.h"
#include "stoker/meter/counters.h"
#include "stoker/storage/fetcher.h"

namespace stoker::loader {

class ChunkReader {
 public:
  // Holds at most `limit_bytes` of encoded chunks, for at most `rows_ahead` patches that are planned and not made.
  // Throws Error and std::system_error.
  ChunkReader(std::unique_ptr<storage::Fetcher> fetcher, std::uint64_t limit_bytes, std::uint64_t rows_ahead);
  ~ChunkReader();  // cancels what is in flight
  ChunkReader(const ChunkReader&) = delete;
  ChunkReader& operator=(const ChunkReader&) = delete;

  // Whether reads of this volume wait for long: it has chunks, and they lie in a store.
  static bool is_for(const dataset::Volume& volume) noexcept { return !volume.plain() && !volume.backends().empty(); }

  struct Wanted {
    const dataset::Volume* volume = nullptr;
    ChunkKey key;
  };
  // Reads the chunks of one patch, in this order, as soon as there is room. Those that were asked for already stay as
  // they are. Later calls come for later patches, or again for one that is being made.
  void ask(std::span<const Wanted> chunks);

  // The bytes of one chunk, which stay while this lives.
  class Taken {
   public:
    enum class State : std::uint8_t {
      read,
      absent,   // the volume has no such chunk
      failed,   // failure() says why
      missing,  // it was not asked for, or found no room: the worker reads it
      stopped,  // stop_waiting() was called
    };
    Taken() noexcept = default;
    Taken(Taken&& other) noexcept { swap(other); }
    Taken& operator=(Taken&& other) noexcept {
      Taken taken(std::move(other));
      swap(taken);
      return *this;
    }
    ~Taken() {
      if (reader_ != nullptr && block_.data != nullptr) reader_->give_back(block_);
    }

    State state() const noexcept { return state_; }
    bool has_waited() const noexcept { return has_waited_; }  // it was on its way
    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    const storage::Failure& failure() const noexcept { return *failure_; }

   private:
    friend class ChunkReader;
    void swap(Taken& other) noexcept {
      std::swap(reader_, other.reader_);
      std::swap(state_, other.state_);
      std::swap(has_waited_, other.has_waited_);
      std::swap(block_, other.block_);
      std::swap(bytes_, other.bytes_);
      std::swap(failure_, other.failure_);
    }
    ChunkReader* reader_ = nullptr;
    State state_ = State::missing;
    bool has_waited_ = false;
    ByteRoom::Block block_;
    std::span<const std::byte> bytes_;
    std::shared_ptr<const storage::Failure> failure_;
  };
  // Waits where the chunk is being read. The next that wants it has to ask again.
  Taken take(const ChunkKey& key);

  void forget();        // what was read or asked for, and nobody takes: the patches are not wanted any more
  void stop_waiting();  // nobody waits in take() from now on; the thread ends

  void add_to(meter::StageTotals& totals) const noexcept { totals.add(counters_); }
  storage::StoreFigures figures() const noexcept { return fetcher_->figures(); }
  std::uint64_t memory_bytes() const noexcept { return limit_bytes_; }

 private:
  struct Entry {
    enum class State : std::uint8_t { wanted, reading, done } state = State::wanted;
    const dataset::Volume* volume = nullptr;
    ChunkKey key;
    std::uint64_t asked = 0;  // the last call of ask() that named it
    bool is_dropped = false;  // nobody wants it: it goes when its read has ended
    ByteRoom::Block block;
    std::span<const std::byte> bytes;
    std::shared_ptr<const storage::Failure> failure;
  };

  void run() noexcept;
  void read_all();
  std::size_t begin_reads_locked(std::span<storage::Fetch> fetches, std::span<char> texts);
  void finish_locked(const storage::Fetched& fetched);
  bool drop_old_locked();
  void give_back(const ByteRoom::Block& block);
  void wake_locked();

  const std::uint64_t limit_bytes_, old_after_;
  const std::unique_ptr<storage::Fetcher> fetcher_;
  ByteRoom room_;
  meter::StageCounters counters_;

  mutable std::mutex mutex_;
  std::condition_variable asked_;     // for the thread
  std::condition_variable finished_;  // for workers
  std::unordered_map<ChunkKey, Entry, ChunkKey::Hash> entries_;
  std::deque<ChunkKey> queue_;  // wanted; a key may be stale, if its entry went or is another one
  std::uint64_t asks_ = 0;
  bool is_full_ = false;      // the next wanted one found no room
  bool is_fetching_ = false;  // the thread is inside Fetcher::wait()
  bool stopping_ = false, has_failed_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace stoker::loader
