#include "stoker/codec/png_writer.h"

#include <cstring>
#include <new>
#include <utility>

#include <libdeflate.h>

#include "stoker/codec/inflate.h"
#include "stoker/codec/png_filter.h"

namespace stoker::codec {
namespace {

constexpr std::uint8_t kFilters = 5;
constexpr std::size_t kGrayStep = 2;           // bytes from one pixel to the next
constexpr std::uint32_t kMostSide = 1u << 24;  // far above any detector; keeps the sums below 2^64
constexpr std::size_t kSignature = 8, kChunkFrame = 12, kHeaderData = 13;
constexpr std::size_t kDataAt = kSignature + kChunkFrame + kHeaderData + 8;  // the zlib stream in the file

void put_big32(std::byte* at, std::uint32_t value) noexcept {
  value = __builtin_bswap32(value);
  std::memcpy(at, &value, 4);
}

// The data are at `chunk` + 8 already. Returns the byte behind the chunk.
std::byte* close_chunk(std::byte* chunk, const char* name, std::size_t data_bytes) noexcept {
  put_big32(chunk, static_cast<std::uint32_t>(data_bytes));
  std::memcpy(chunk + 4, name, 4);
  put_big32(chunk + 8 + data_bytes, crc32({chunk + 4, 4 + data_bytes}));
  return chunk + kChunkFrame + data_bytes;
}

void copy_big_endian(const std::uint16_t* from, std::size_t count, std::uint8_t* to) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t swapped = __builtin_bswap16(from[i]);
    std::memcpy(to + 2 * i, &swapped, 2);
  }
}

}  // namespace

void PngWriter::Freer::operator()(libdeflate_compressor* compressor) const noexcept {
  libdeflate_free_compressor(compressor);
}

PngWriter::PngWriter(int level) noexcept : compressor_(libdeflate_alloc_compressor(level)) {}
PngWriter::~PngWriter() = default;
PngWriter::PngWriter(PngWriter&&) noexcept = default;
PngWriter& PngWriter::operator=(PngWriter&&) noexcept = default;

void PngWriter::filter_image(const std::uint16_t* pixels, std::size_t width, std::size_t height) noexcept {
  const std::size_t count = width * kGrayStep;
  std::uint8_t *row = row_pair_.data(), *above = row + count;
  std::memset(above, 0, count);
  std::uint8_t* out = filtered_.data();
  for (std::size_t y = 0; y < height; ++y) {
    copy_big_endian(pixels + y * width, width, row);
    std::uint8_t best = 0;
    std::uint64_t least = ~std::uint64_t{0};
    for (std::uint8_t filter = 0; filter < kFilters; ++filter) {
      const std::uint64_t cost = filter_row(filter, row, above, count, kGrayStep, candidates_.data() + filter * count);
      if (cost < least) least = cost, best = filter;
    }
    *out++ = best;
    std::memcpy(out, candidates_.data() + best * count, count);
    out += count;
    std::swap(row, above);
  }
}

Result PngWriter::encode_gray16(const std::uint16_t* pixels, std::uint32_t width, std::uint32_t height,
                                Bytes& file) noexcept {
  file = {};
  if (width == 0 || height == 0) return failed(Code::corrupt, "an image without pixels");
  if (width > kMostSide || height > kMostSide) return failed(Code::too_large, "the image is too large for a PNG file");
  const std::uint64_t raw = (std::uint64_t{width} * kGrayStep + 1) * height;
  if (raw >= std::uint64_t{1} << 31) return failed(Code::too_large, "the image is too large for a PNG file");
  if (compressor_ == nullptr) return failed(Code::no_memory, "no memory for a compressor");
  const std::size_t bound = libdeflate_zlib_compress_bound(compressor_.get(), raw);
  try {
    filtered_.resize(raw);
    row_pair_.resize(std::size_t{width} * kGrayStep * 2);
    candidates_.resize(std::size_t{width} * kGrayStep * kFilters);
    file_.resize(kDataAt + bound + 4 + kChunkFrame);
  } catch (const std::bad_alloc&) {
    return failed(Code::no_memory, "no memory for the rows of an image");
  }
  filter_image(pixels, width, height);

  std::byte* at = file_.data();
  std::memcpy(at, "\x89PNG\r\n\x1A\n", kSignature);
  at += kSignature;
  put_big32(at + 8, width);
  put_big32(at + 12, height);
  const std::uint8_t kind[] = {16, 0, 0, 0, 0};  // bits, gray, and the only compression, filters and order of rows
  std::memcpy(at + 16, kind, sizeof kind);
  at = close_chunk(at, "IHDR", kHeaderData);
  const std::size_t bytes = libdeflate_zlib_compress(compressor_.get(), filtered_.data(), raw, at + 8, bound);
  if (bytes == 0) return failed(Code::too_large, "the compressed image does not fit its bound");
  at = close_chunk(at, "IDAT", bytes);
  at = close_chunk(at, "IEND", 0);
  file = {file_.data(), static_cast<std::size_t>(at - file_.data())};
  return {};
}

}  // namespace stoker::codec
