// Stored pixel values to Hounsfield units, or other rescaled units, plus kHuOffset as 16 bits. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/dicom/header.h"

namespace stoker::dicom {

inline constexpr int kHuOffset = 32768;  // -1000 HU is stored as 31768

struct StoredAs {
  std::uint32_t bits_allocated = 16, bits_stored = 16;  // the lowest bits; those above are dropped
  bool is_signed = false;
  bool is_big_endian = false;      // 16 bits
  bool are_pairs_swapped = false;  // 8 bits, as words of a big-endian file
};
StoredAs stored_as(const Header& header) noexcept;

// Converts `count` values. A value that is no whole number is rounded to the nearest one, halves to the even one, as
// numpy.rint does. Empty, or one clause on the value that does not fit: no part of `out` is then of use.
std::string rescale(Bytes stored, const StoredAs& as, double slope, double intercept, std::uint16_t* out,
                    std::size_t count);

}  // namespace stoker::dicom
