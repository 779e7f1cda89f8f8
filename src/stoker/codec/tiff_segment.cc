// Strips and tiles to elements: unpacked, in the machine's byte order, with the predictor undone.
#include <algorithm>
#include <cstring>

#include "stoker/codec/byte_order.h"
#include "stoker/codec/inflate.h"
#include "stoker/codec/lzw.h"
#include "stoker/codec/swap_values.h"
#include "stoker/codec/tiff.h"
#include "stoker/codec/unpack_zstd.h"

namespace stoker::codec {
namespace {

// A byte n: n + 1 bytes follow as they are, or one that is repeated 257 - n times; 128 is nothing.
std::size_t unpack_packbits(Bytes packed, std::span<std::byte> into) noexcept {
  std::size_t at = 0, out = 0;
  while (at < packed.size() && out < into.size()) {
    const auto n = static_cast<std::uint8_t>(packed[at++]);
    if (n < 128) {
      const std::size_t count = std::min({std::size_t{n} + 1, packed.size() - at, into.size() - out});
      if (count != 0) std::memcpy(&into[out], packed.data() + at, count);
      at += count;
      out += count;
    } else if (n > 128 && at < packed.size()) {
      const std::size_t count = std::min<std::size_t>(257u - n, into.size() - out);
      std::fill_n(into.begin() + static_cast<std::ptrdiff_t>(out), count, packed[at++]);
      out += count;
    }
  }
  return out;
}

template <typename T>
void add_along(std::byte* row, std::uint64_t values, std::size_t samples) noexcept {
  for (std::uint64_t i = samples; i < values; ++i) {
    const T sum = static_cast<T>(load<T>(row + i * sizeof(T)) + load<T>(row + (i - samples) * sizeof(T)));
    std::memcpy(row + i * sizeof(T), &sum, sizeof(T));
  }
}

void undo_differences(const TiffForm& form, std::byte* row) noexcept {
  const std::uint64_t values = std::uint64_t{form.segment_width} * form.samples;
  switch (size_of(form.dtype)) {
    case 1:
      return add_along<std::uint8_t>(row, values, form.samples);
    case 2:
      return add_along<std::uint16_t>(row, values, form.samples);
    case 4:
      return add_along<std::uint32_t>(row, values, form.samples);
    default:
      return add_along<std::uint64_t>(row, values, form.samples);
  }
}

// The row holds the highest bytes of all values, then the next ones, as differences.
void undo_real_differences(const TiffForm& form, std::byte* row, std::byte* planes) noexcept {
  const std::size_t size = size_of(form.dtype);
  const std::uint64_t values = std::uint64_t{form.segment_width} * form.samples, bytes = values * size;
  std::memcpy(planes, row, bytes);
  add_along<std::uint8_t>(planes, bytes, form.samples);
  for (std::uint64_t i = 0; i < values; ++i) {
    for (std::size_t b = 0; b < size; ++b) row[i * size + size - 1 - b] = planes[b * values + i];
  }
}

Result unpack_segment(const TiffForm& form, std::uint64_t least, Bytes encoded, std::span<std::byte> into) noexcept {
  std::size_t written = 0;
  switch (form.packing) {
    case TiffPacking::none:
      written = std::min<std::uint64_t>(encoded.size(), into.size());
      if (written != 0) std::memcpy(into.data(), encoded.data(), written);
      break;
    case TiffPacking::lzw:
      if (const Result result = unpack_lzw(encoded, into, written); !result.ok()) return result;
      break;
    case TiffPacking::deflate:
      switch (inflate(Wrapper::zlib, encoded, into, written)) {
        case Inflated::ok:
          break;
        case Inflated::bad_data:
          return failed(Code::corrupt, "damaged deflate data");
        case Inflated::more_output:
          return failed(Code::corrupt, "a strip or tile inflates to more than its size");
        case Inflated::no_memory:
          return failed(Code::no_memory, "no room to inflate a strip or tile");
      }
      break;
    case TiffPacking::packbits:
      written = unpack_packbits(encoded, into);
      break;
    case TiffPacking::zstd:
      if (const Result result = unpack_zstd(encoded, into, written); !result.ok()) return result;
      break;
  }
  if (written < least) return failed(Code::truncated, "a strip or tile has fewer pixels than its size");
  return {};
}

// Copies `rows` rows of a segment to their place in the page.
void place(const TiffForm& form, std::uint64_t segment, const std::byte* from, std::byte* page) noexcept {
  const std::uint64_t column = segment % form.across() * form.segment_width;
  const std::uint64_t row = segment / form.across() * form.segment_height;
  const std::uint64_t rows = std::min<std::uint64_t>(form.segment_height, form.height - row);
  const std::uint64_t bytes = std::min<std::uint64_t>(form.segment_width, form.width - column) * form.pixel_bytes();
  for (std::uint64_t y = 0; y < rows; ++y) {
    std::memcpy(page + ((row + y) * form.width + column) * form.pixel_bytes(), from + y * form.segment_row_bytes(),
                bytes);
  }
}

}  // namespace

std::uint64_t segment_working_bytes(const TiffForm& form) noexcept {
  return form.predictor == 3 ? Scratch::rounded(form.segment_row_bytes()) : 0;
}

Result decode_segment(const TiffForm& form, std::uint32_t rows, Bytes encoded, std::byte* into,
                      Scratch& scratch) noexcept {
  const std::uint64_t row_bytes = form.segment_row_bytes(), wanted = row_bytes * rows;
  if (encoded.empty()) {
    std::memset(into, 0, wanted);
    return {};
  }
  const std::span<std::byte> room(into, form.segment_bytes());
  if (const Result result = unpack_segment(form, wanted, encoded, room); !result.ok()) return result;
  if (form.predictor == 3) {
    const Scratch::Mark mark = scratch.mark();
    const std::span<std::byte> planes = scratch.take(row_bytes);
    if (planes.data() == nullptr) return failed(Code::no_memory, "no room for a row of a strip or tile");
    for (std::uint32_t y = 0; y < rows; ++y) undo_real_differences(form, into + y * row_bytes, planes.data());
    scratch.rewind(mark);
    return {};
  }
  if (form.swap_bytes) swap_values(into, wanted, size_of(form.dtype));
  if (form.predictor == 2) {
    for (std::uint32_t y = 0; y < rows; ++y) undo_differences(form, into + y * row_bytes);
  }
  return {};
}

std::uint64_t page_working_bytes(const TiffForm& form) noexcept {
  constexpr std::uint64_t kDirectory = 128 << 10;  // tags; places are counted below
  const std::uint64_t places = 2 * Scratch::rounded(form.segments() * sizeof(std::uint64_t));
  return kDirectory + places + Scratch::rounded(form.segment_bytes()) + segment_working_bytes(form);
}

Result decode_page(const TiffForm& form, Bytes file, std::byte* into, Scratch& scratch) noexcept {
  TiffBytes input(file);
  TiffHeader header;
  TiffPage page;
  if (const Result result = read_tiff_header(input, header); !result.ok()) return result;
  if (const Result result = read_tiff_page(input, header, header.first, page, scratch); !result.ok()) return result;
  const TiffForm& stored = page.form;
  if (stored.width != form.width || stored.height != form.height) {
    return failed(Code::mismatch, "a page of another size than the first");
  }
  if (stored.dtype != form.dtype || stored.samples != form.samples) {
    return failed(Code::mismatch, "a page of another element type, or of other channels, than the first");
  }
  // Whole strips are decoded where they belong; tiles and a short last strip are copied there.
  const bool all_fit = stored.segment_width == stored.width && stored.height % stored.segment_height == 0;
  std::span<std::byte> room;
  if (!all_fit) {
    if (stored.segment_bytes() > kMaxSegmentBytes) return failed(Code::too_large, "a strip or tile above 1 GiB");
    room = scratch.take(stored.segment_bytes());
    if (room.data() == nullptr) return failed(Code::no_memory, "no room for a strip or tile");
  }
  for (std::uint64_t i = 0; i < stored.segments(); ++i) {
    const std::uint64_t row = i / stored.across() * stored.segment_height;
    const auto rows = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(stored.is_tiled ? stored.segment_height : stored.height - row, stored.segment_height));
    const bool in_place = stored.segment_width == stored.width && stored.height - row >= stored.segment_height;
    std::byte* const to = in_place ? into + row * stored.segment_row_bytes() : room.data();
    const Bytes encoded = file.subspan(page.offsets[i], page.bytes[i]);
    if (Result result = decode_segment(stored, rows, encoded, to, scratch); !result.ok()) {
      result.offset = page.offsets[i];
      return result;
    }
    if (!in_place) place(stored, i, to, into);
  }
  return {};
}

}  // namespace stoker::codec
