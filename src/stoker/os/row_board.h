// A table of rows in shared memory, from which worker processes take one row after the other. One process, the
// producer, publishes items of many rows; each worker claims the first free row of the oldest item, works, and says how
// it went. A claim is one atomic exchange that names the worker. So the producer knows which row a worker had that
// died, and no other row is lost with it.
//
// The producer's functions belong to one thread; claim() and finish() to the one worker whose number they are given.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace stoker::os {

class RowBoard {
 public:
  enum Outcome : std::uint32_t { unclaimed = 0, done = 1, failed = 2, lost = 3, canceled = 4, first_worker = 16 };

  struct Size {
    std::uint32_t slots = 1, rows = 1, workers = 1;
    std::uint32_t text_bytes = 0;  // room for the text of an item
  };
  struct Claim {
    std::uint32_t slot = 0, row = 0;
    std::uint64_t item = 0;
  };
  struct Work {
    std::uint64_t rows = 0, busy_ns = 0;
  };

  static std::size_t bytes_for(const Size& size) noexcept;
  // `memory` holds zeros, or a board that another process made there with the same size. It stays mapped for the
  // board's life and begins at a page.
  RowBoard(std::span<std::byte> memory, const Size& size);

  // ---- the producer

  // `slot` must be finished. Rows from `first` on are free; those before it are done. Items are numbered from 1,
  // upwards.
  void publish(std::uint32_t slot, std::uint64_t item, std::uint32_t first, std::uint32_t rows,
               std::span<const std::byte> text) noexcept;
  void cancel(std::uint32_t slot) noexcept;  // rows that no worker has claimed are not run
  bool is_finished(std::uint32_t slot) const noexcept;
  // Returns when the item is finished, or after `timeout` at the latest.
  void wait(std::uint32_t slot, std::chrono::nanoseconds timeout) const noexcept;
  std::uint32_t outcome(std::uint32_t slot, std::uint32_t row) const noexcept;  // from first_worker on: being worked on
  // Of a worker that has died: its row, if it had one, is lost.
  std::optional<Claim> lose(std::uint32_t worker) noexcept;
  Work work_of(std::uint32_t worker) const noexcept;
  void close() noexcept;  // workers find nothing more

  // ---- a worker

  std::optional<Claim> try_claim(std::uint32_t worker) noexcept;
  // Waits for a free row; nothing after close(), or after `timeout`.
  std::optional<Claim> claim(std::uint32_t worker, std::chrono::nanoseconds timeout) noexcept;
  void finish(std::uint32_t worker, const Claim& claim, Outcome outcome, std::uint64_t busy_ns) noexcept;
  std::span<const std::byte> text(std::uint32_t slot) const noexcept;
  std::uint32_t rows(std::uint32_t slot) const noexcept;
  bool is_closed() const noexcept;

 private:
  struct Head;
  struct Slot;
  struct Tally;
  Slot& slot_at(std::uint32_t slot) const noexcept;
  std::atomic<std::uint32_t>* rows_at(std::uint32_t slot) const noexcept;
  Tally& tally_at(std::uint32_t worker) const noexcept;
  Head& head() const noexcept;

  std::span<std::byte> memory_;
  Size size_;
};

}  // namespace stoker::os
