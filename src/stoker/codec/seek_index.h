// Places in the scan of one JPEG file from which decoding can start, so that a region costs only what it touches. They
// are noted while the file is decoded for the first time. A plain view of memory that the caller owns, keeps beside the
// file's identity, and guards: places of another file may decode to wrong pixels, though never out of bounds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker::codec {

struct Checkpoint {
  std::uint32_t byte = 0;                   // that has the next bit, from the start of the scan as it lies in the file
  std::array<std::int16_t, 3> predictor{};  // the brightness of the last block, by component
  std::uint8_t bit = 0;                     // of the byte, from the top
  std::uint8_t unused = 0;
};
static_assert(sizeof(Checkpoint) == 12);

// places[i] is where MCU (i + 1) * step begins, for i < known. The decoder uses those, and adds those it comes by next
// while there is room.
struct SeekIndex {
  std::uint32_t step = 8;  // in MCUs; at least 1
  std::span<Checkpoint> places;
  std::uint32_t known = 0;
};

// MCUs of a JPEG file, as its header says; 0 for files whose places cannot be noted (progressive, CMYK, not a JPEG).
std::uint32_t seekable_mcus(std::span<const std::byte> file) noexcept;
// Whether this CPU runs the decoder that notes and uses places at all.
bool can_seek() noexcept;

}  // namespace stoker::codec
