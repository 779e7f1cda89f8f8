// The header of a NIfTI file, version 1 or 2, in either byte order. Elements lie behind it with x fastest, which is C
// order of z, y, x. Pure; safe from any thread; no memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stoker/codec/codec.h"

namespace stoker::codec {

inline constexpr std::size_t kNiftiHeaderBytes = 540;  // of version 2; version 1 has 348

struct NiftiInfo {
  DType dtype = DType::u8;
  std::array<std::uint64_t, 3> extents{};  // z, y, x
  std::uint32_t channels = 1;              // 3 and 4: colours that lie together
  bool swap_bytes = false;
  std::uint64_t data_offset = 0;
  std::uint64_t data_bytes = 0;
  std::array<double, 3> spacing{};  // z, y, x in mm; 0: not known
  double slope = 1, intercept = 0;
  std::uint8_t version = 1;
};

// `head` is the start of the file, kNiftiHeaderBytes or all of it. The file must be at least data_offset + data_bytes
// long, which the caller compares.
Result probe_nifti(Bytes head, NiftiInfo& info) noexcept;

}  // namespace stoker::codec
