// Many rows of the plan whose bytes lie in a few files, fetched together: sorted by their place, neighbours joined into
// large reads, all into one piece of memory. Filled by the thread that holds the plan, read by one I/O thread; the
// rows' bytes stay until every unit has been given back. Private to the engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "stoker/loader/pending.h"
#include "stoker/os/arena.h"
#include "stoker/storage/location.h"

namespace stoker::loader {

struct Sweep {
  // One row's bytes.
  struct Piece {
    Unit* unit = nullptr;
    std::uint32_t row = 0;  // of the unit
    storage::Range range;
  };
  // Pieces that lie side by side.
  struct alignas(64) Read {
    const storage::Source* source = nullptr;
    std::uint64_t offset = 0, bytes = 0;
    std::byte* into = nullptr;
    std::uint64_t room = 0;  // of `into`
    Sweep* sweep = nullptr;
    std::uint32_t first = 0, pieces = 0;
  };

  explicit Sweep(std::uint64_t bytes);

  void clear() noexcept;
  bool is_empty() const noexcept { return units.empty(); }
  // Whether the bytes of one more row fit, within `most` of all; the first row fits if it fits at all.
  bool has_room(const storage::Range& range, std::uint64_t most) const noexcept;
  bool could_hold(const storage::Range& range) const noexcept;
  void add(Unit& unit, std::uint32_t row, const storage::Range& range);
  void skip(const storage::Range& range) noexcept;  // in memory already: counts, so that sweeps stay of one size
  void arrange();                                   // sorts the pieces and makes the reads

  // Rows that are mixed with each other only belong to one window; a sweep ends with it.
  std::uint64_t epoch = 0, window = 0;
  std::vector<Unit*> units;
  std::vector<Piece> pieces;
  std::vector<Read> reads;
  std::size_t submitted = 0;            // of the reads
  std::atomic<std::uint32_t> users{0};  // units that are out, and the I/O thread while it submits

 private:
  os::Arena arena_;
  std::uint64_t used_ = 0;
};

}  // namespace stoker::loader
