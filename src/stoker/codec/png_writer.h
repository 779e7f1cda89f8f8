// Writes PNG files of 16-bit gray values, such as CT slices. A writer keeps its memory from one image to the next; each
// thread uses its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "stoker/base/result.h"
#include "stoker/codec/codec.h"

struct libdeflate_compressor;

namespace stoker::codec {

class PngWriter {
 public:
  // Each row gets the filter that leaves the smallest sum of absolute differences, as libpng and Pillow choose it. On
  // CT slices libdeflate's level 4 gives files of about the size of zlib's level 6, Pillow's default.
  static constexpr int kLevel = 4;

  explicit PngWriter(int level = kLevel) noexcept;  // of libdeflate: 1 (fast) to 12 (small)
  ~PngWriter();
  PngWriter(PngWriter&&) noexcept;
  PngWriter& operator=(PngWriter&&) noexcept;

  // `pixels` holds `height` rows of `width` values, one after the other, in the machine's byte order. `file` is the
  // whole file; it is valid until the next call.
  Result encode_gray16(const std::uint16_t* pixels, std::uint32_t width, std::uint32_t height, Bytes& file) noexcept;

 private:
  struct Freer {
    void operator()(libdeflate_compressor* compressor) const noexcept;
  };

  void filter_image(const std::uint16_t* pixels, std::size_t width, std::size_t height) noexcept;

  std::unique_ptr<libdeflate_compressor, Freer> compressor_;
  std::vector<std::uint8_t> filtered_;    // all rows, each after its filter byte
  std::vector<std::uint8_t> row_pair_;    // this row and the one above it, big-endian
  std::vector<std::uint8_t> candidates_;  // the row filtered in each way
  std::vector<std::byte> file_;
};

}  // namespace stoker::codec
