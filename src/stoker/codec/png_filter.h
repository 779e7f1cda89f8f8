// The row filters of PNG: undone in place for the decoder, applied for the writer. Pure; safe from any thread. Private
// to this folder.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker::codec {

// Undoes filter `filter` of a row of `count` bytes. `above` is the finished row before it, or null for the first;
// `step` is the distance to the pixel on the left in bytes (1, 2, 3, 4, 6 or 8). False: there is no such filter.
bool unfilter(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above, std::size_t count,
              std::size_t step) noexcept;

// Undoes `rows` rows that lie one after the other, each `count` bytes after its filter byte. Four at a time are faster
// than one by one. False: one has a filter that there is not.
bool unfilter_rows(std::uint8_t* first, std::uint32_t rows, const std::uint8_t* above, std::size_t count,
                   std::size_t step) noexcept;

// `unfilter` in portable loops, for machines without AVX2 and as the measure of the kernels.
bool unfilter_portable(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above, std::size_t count,
                       std::size_t step) noexcept;

// Applies filter `filter` (0 to 4) to a row of `count` bytes; `above` is the row before it, zeros for the first, and
// `step` at most `count`. Returns the sum of the results as absolute values of signed bytes: the usual guess of how
// well the row compresses.
std::uint64_t filter_row(std::uint8_t filter, const std::uint8_t* row, const std::uint8_t* above, std::size_t count,
                         std::size_t step, std::uint8_t* out) noexcept;

// The neighbour (left, above, corner) that is nearest to left + above - corner. The specification's three distances
// come down to comparing with 3 * corner - (left + above), which has a shorter chain of dependent steps.
constexpr int paeth(int left, int above, int corner) noexcept {
  const int threshold = 3 * corner - (left + above);
  const int low = left < above ? left : above;
  const int high = left < above ? above : left;
  const int inner = high <= threshold ? low : corner;
  return threshold <= low ? high : inner;
}

}  // namespace stoker::codec
