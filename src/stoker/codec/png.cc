// PNG: chunks -> one zlib stream (libdeflate) -> unfilter in place -> store. Colours come out as Pillow's (see
// codec.h): gamma, colour profiles and the colour key of tRNS change nothing; the alpha of a palette does.
#include <algorithm>
#include <cstring>

#include "stoker/codec/byte_order.h"
#include "stoker/codec/image.h"
#include "stoker/codec/inflate.h"
#include "stoker/codec/png_filter.h"
#include "stoker/codec/table.h"

namespace stoker::codec {
namespace {

constexpr std::size_t kSignatureBytes = 8, kChunkBytes = 12;  // length, name and CRC around a chunk's data
constexpr std::uint64_t kRounding = 4 * 64;                   // of the four pieces that decoding takes
constexpr std::uint32_t kBand = 4;                            // rows that are unfiltered before they are stored
constexpr std::uint8_t kGray = 0, kRgb = 2, kPalette = 3, kGrayAlpha = 4, kRgba = 6;

struct Chunk {
  std::uint32_t name = 0;
  std::uint64_t offset = 0;  // of the data
  Bytes data;

  bool is_critical() const noexcept { return (name & 0x20) == 0; }
  std::uint64_t next() const noexcept { return offset + data.size() + 4; }
};

struct Header {
  std::uint32_t width = 0, height = 0;
  std::uint8_t depth = 0, color = 0;
  bool interlaced = false;
  Bytes palette, alpha;       // PLTE, and tRNS of a palette image
  std::uint64_t data_at = 0;  // of the first IDAT chunk

  std::uint32_t samples() const noexcept {
    switch (color) {
      case kRgb:
        return 3;
      case kGrayAlpha:
        return 2;
      case kRgba:
        return 4;
      default:
        return 1;
    }
  }
  std::uint32_t pixel_bits() const noexcept { return samples() * depth; }
  std::uint32_t filter_bytes() const noexcept { return std::max(1u, pixel_bits() / 8); }
  std::uint64_t row_bytes(std::uint64_t columns) const noexcept { return (columns * pixel_bits() + 7) / 8; }
  ImageInfo info() const noexcept {
    const auto channels = static_cast<std::uint8_t>(color == kPalette ? (alpha.empty() ? 3 : 4) : samples());
    return {width, height, channels, static_cast<std::uint8_t>(depth == 16 ? 16 : 8)};
  }
};

// One of Adam7's seven passes, or the whole of an image that is not interlaced.
struct Pass {
  std::uint32_t x, y, x_step, y_step;

  std::uint32_t columns(const Header& header) const noexcept { return count(header.width, x, x_step); }
  std::uint32_t rows(const Header& header) const noexcept { return count(header.height, y, y_step); }
  static std::uint32_t count(std::uint32_t size, std::uint32_t first, std::uint32_t step) noexcept {
    return size <= first ? 0 : (size - first + step - 1) / step;
  }
};

constexpr Pass kWhole[] = {{0, 0, 1, 1}};
constexpr Pass kAdam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                           {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

std::span<const Pass> passes(const Header& header) noexcept {
  return header.interlaced ? std::span<const Pass>(kAdam7) : std::span<const Pass>(kWhole);
}

// What all rows inflate to, with the filter byte of each.
std::uint64_t inflated_bytes(const Header& header) noexcept {
  std::uint64_t bytes = 0;
  for (const Pass& pass : passes(header)) {
    const std::uint64_t columns = pass.columns(header);
    if (columns != 0) bytes += (header.row_bytes(columns) + 1) * pass.rows(header);
  }
  return bytes;
}

Result read_chunk(Bytes bytes, std::uint64_t at, Chunk& chunk) noexcept {
  if (bytes.size() - at < kChunkBytes) return failed(Code::truncated, "ends between two chunks", bytes.size());
  const std::uint32_t length = big32(&bytes[at]);
  if (length > 0x7FFFFFFF) return failed(Code::corrupt, "a chunk longer than 2^31", at);
  if (bytes.size() - at - kChunkBytes < length) return failed(Code::truncated, "a chunk goes beyond the end", at);
  chunk = {little32(&bytes[at + 4]), at + 8, bytes.subspan(at + 8, length)};
  return {};
}

Result check_sum(Bytes bytes, const Chunk& chunk) noexcept {
  const Bytes named = bytes.subspan(chunk.offset - 4, chunk.data.size() + 4);
  if (crc32(named) == big32(&bytes[chunk.offset + chunk.data.size()])) return {};
  return failed(Code::corrupt, "a chunk's CRC differs", chunk.offset - 8);
}

Result read_ihdr(const Chunk& chunk, Header& header) noexcept {
  if (chunk.name != tag("IHDR") || chunk.data.size() != 13) {
    return failed(Code::corrupt, "the first chunk is not IHDR", chunk.offset - 8);
  }
  const auto byte_at = [&chunk](std::size_t i) { return static_cast<std::uint8_t>(chunk.data[i]); };
  header.width = big32(&chunk.data[0]);
  header.height = big32(&chunk.data[4]);
  header.depth = byte_at(8);
  header.color = byte_at(9);
  header.interlaced = byte_at(12) == 1;
  if (header.width == 0 || header.height == 0) return failed(Code::corrupt, "an image without pixels", chunk.offset);
  if (std::uint64_t{header.width} * header.height > kMaxPixels) {
    return failed(Code::too_large, "more than 2^30 pixels", chunk.offset);
  }
  const std::uint8_t d = header.depth;
  const bool small = d == 1 || d == 2 || d == 4, large = d == 8 || d == 16;
  const bool fits = header.color == kGray                                                         ? small || large
                    : header.color == kPalette                                                    ? small || d == 8
                    : header.color == kRgb || header.color == kGrayAlpha || header.color == kRgba ? large
                                                                                                  : false;
  if (!fits) return failed(Code::corrupt, "a colour type and bit depth that do not go together", chunk.offset + 8);
  if (byte_at(10) != 0 || byte_at(11) != 0 || byte_at(12) > 1) {
    return failed(Code::corrupt, "an unknown compression, filter or interlace method", chunk.offset + 10);
  }
  return {};
}

// Everything up to the first IDAT.
Result read_header(Bytes bytes, Header& header) noexcept {
  if (bytes.size() < kSignatureBytes) return failed(Code::truncated, "shorter than a PNG signature", bytes.size());
  if (std::memcmp(bytes.data(), "\x89PNG\r\n\x1A\n", kSignatureBytes) != 0) {
    return failed(Code::corrupt, "no PNG signature", 0);
  }
  bool first = true;
  for (std::uint64_t at = kSignatureBytes;;) {
    Chunk chunk;
    if (const Result result = read_chunk(bytes, at, chunk); !result.ok()) return result;
    if (chunk.name == tag("IDAT") && !first) {
      header.data_at = at;
      return {};
    }
    const bool is_alpha = chunk.name == tag("tRNS") && header.color == kPalette;
    if (chunk.is_critical() || is_alpha) {
      if (const Result result = check_sum(bytes, chunk); !result.ok()) return result;
    }
    if (first) {
      if (const Result result = read_ihdr(chunk, header); !result.ok()) return result;
      first = false;
    } else if (chunk.name == tag("PLTE")) {
      if (chunk.data.size() > 768 || chunk.data.size() % 3 != 0) {
        return failed(Code::corrupt, "a palette that is not 1 to 256 colours", at);
      }
      header.palette = chunk.data;
    } else if (is_alpha) {
      header.alpha = chunk.data.first(std::min<std::size_t>(chunk.data.size(), 256));
    } else if (chunk.is_critical()) {
      return chunk.name == tag("IEND") ? failed(Code::corrupt, "no image data", at)
                                       : failed(Code::unsupported, "an unknown critical chunk", at);
    }
    at = chunk.next();
  }
}

// The zlib stream: the IDAT chunk itself where there is one, else a copy of all of them. `room` is what it must inflate
// to.
Result gather_stream(Bytes bytes, const Header& header, std::uint64_t room, Scratch& scratch, Bytes& stream) noexcept {
  std::uint64_t total = 0, count = 0;
  Chunk chunk;
  for (std::uint64_t at = header.data_at;; at = chunk.next()) {
    // A file that lacks what comes after its image is whole enough, as it is for Pillow.
    if (count > 0 && bytes.size() - at < kChunkBytes) break;
    if (count > 0 && little32(&bytes[at + 4]) != tag("IDAT")) break;
    if (const Result result = read_chunk(bytes, at, chunk); !result.ok()) return result;
    if (const Result result = check_sum(bytes, chunk); !result.ok()) return result;
    total += chunk.data.size();
    ++count;
  }
  if (room / kMaxExpansion > total) {
    return failed(Code::truncated, "less data than the image's size needs", header.data_at);
  }
  if (count == 1) {
    stream = chunk.data;
    return {};
  }
  const std::span<std::byte> copy = scratch.take(total);
  if (copy.data() == nullptr) return failed(Code::no_memory, "no room to join the image's data");
  std::size_t filled = 0;
  for (std::uint64_t at = header.data_at; count > 0; at = chunk.next(), --count) {
    if (const Result result = read_chunk(bytes, at, chunk); !result.ok()) return result;
    if (!chunk.data.empty()) std::memcpy(copy.data() + filled, chunk.data.data(), chunk.data.size());
    filled += chunk.data.size();
  }
  stream = copy;
  return {};
}

Result inflate_rows(Bytes stream, std::uint64_t offset, std::uint64_t wanted, Scratch& scratch,
                    std::span<std::byte>& rows) noexcept {
  // Some writers append a few bytes too many; Pillow overlooks them, so a second try has twice the room.
  const Scratch::Mark mark = scratch.mark();
  for (const std::uint64_t room : {wanted, 2 * wanted + 4096}) {
    scratch.rewind(mark);
    rows = scratch.take(room);
    if (rows.data() == nullptr) return failed(Code::no_memory, "no room to inflate the image");
    std::size_t written = 0;
    switch (inflate(Wrapper::zlib, stream, rows, written)) {
      case Inflated::ok:
        if (written < wanted) return failed(Code::truncated, "the image's rows end early", offset);
        return {};
      case Inflated::no_memory:
        return failed(Code::no_memory, "no room to inflate the image");
      case Inflated::bad_data:
        return failed(Code::corrupt, "damaged zlib data", offset);
      case Inflated::more_output:
        break;
    }
  }
  return failed(Code::corrupt, "the image's data is far longer than its size", offset);
}

// Rows as the filters leave them, to rows as store_row takes them.
class Unpacker {
 public:
  static std::size_t pixel_bytes(const Header& header) noexcept {
    return std::size_t{header.info().channels} * (header.depth == 16 ? 2 : 1);
  }

  Unpacker(const Header& header, std::byte* row) noexcept : header_(header), row_(row), info_(header.info()) {
    if (header.color != kPalette) return;
    for (std::size_t i = 0; i < 256; ++i) {  // colours that the palette lacks are black and opaque
      for (std::size_t c = 0; c < 3; ++c) {
        colors_[i][c] = i * 3 + c < header.palette.size() ? header.palette[i * 3 + c] : std::byte{0};
      }
      colors_[i][3] = i < header.alpha.size() ? header.alpha[i] : std::byte{255};
    }
  }

  Samples unpack(const std::byte* from, std::uint32_t first, std::uint32_t count) const noexcept {
    Samples row{row_, count, info_.channels, header_.depth == 16};
    if (header_.color == kPalette) {
      for (std::uint32_t i = 0; i < count; ++i) {
        std::memcpy(row_ + std::size_t{i} * info_.channels, colors_[value(from, first + i)], info_.channels);
      }
    } else if (header_.depth == 16) {
      from += std::size_t{first} * info_.channels * 2;
      for (std::size_t i = 0; i < std::size_t{count} * info_.channels; ++i) {
        const std::uint16_t sample = big16(from + 2 * i);
        std::memcpy(row_ + 2 * i, &sample, 2);
      }
    } else if (header_.depth == 8) {
      row.data = from + std::size_t{first} * info_.channels;
    } else {
      const std::uint32_t unit = 255 / ((1u << header_.depth) - 1);
      for (std::uint32_t i = 0; i < count; ++i) row_[i] = static_cast<std::byte>(value(from, first + i) * unit);
    }
    return row;
  }

 private:
  std::uint32_t value(const std::byte* from, std::uint32_t x) const noexcept {
    const std::uint32_t per_byte = 8u / header_.depth;
    const auto packed = static_cast<std::uint8_t>(from[x / per_byte]);
    return packed >> ((per_byte - 1 - x % per_byte) * header_.depth) & ((1u << header_.depth) - 1);
  }

  const Header& header_;
  std::byte* row_;
  ImageInfo info_;
  std::byte colors_[256][4];
};

struct Target {
  const ImageOptions& options;
  const Rect& region;
  const Pixels& into;

  std::byte* row(std::uint32_t y) const noexcept { return into.data + std::size_t{y - region.y} * into.stride_bytes; }
};

// Stores the pixels of one row of a pass that lie in the region, one by one where the pass has gaps.
void store_pass_row(const Unpacker& unpacker, const std::byte* row, const Pass& pass, std::uint32_t columns,
                    std::uint32_t y, const Target& target, std::byte* stored) noexcept {
  const Rect& region = target.region;
  if (pass.x_step == 1) {
    const Samples samples = unpacker.unpack(row, region.x, region.width);
    store_row(samples, target.options.color, target.into.dtype, target.row(y));
    return;
  }
  store_row(unpacker.unpack(row, 0, columns), target.options.color, target.into.dtype, stored);
  const std::size_t pixel = target.into.channels * size_of(target.into.dtype);
  for (std::uint32_t i = 0; i < columns; ++i) {
    const std::uint32_t x = pass.x + i * pass.x_step;
    if (x < region.x || x - region.x >= region.width) continue;
    std::memcpy(target.row(y) + (x - region.x) * pixel, stored + i * pixel, pixel);
  }
}

Result probe_png(Bytes bytes, ImageInfo& info) noexcept {
  Header header;
  if (const Result result = read_header(bytes, header); !result.ok()) return result;
  info = header.info();
  // The joined chunks, all rows, and one row unpacked and stored in another form.
  info.working_bytes = bytes.size() + inflated_bytes(header) + std::uint64_t{header.width} * 16 + kRounding;
  return {};
}

Result decode_png(Bytes bytes, const ImageOptions& options, const Rect& region, const Pixels& into, Scratch& scratch,
                  SeekIndex*) noexcept {
  Header header;
  if (const Result result = read_header(bytes, header); !result.ok()) return result;
  if (const Result result = check_request(header.info(), options, region, region, into); !result.ok()) return result;

  const std::uint64_t wanted = inflated_bytes(header);
  Bytes stream;
  if (const Result result = gather_stream(bytes, header, wanted, scratch, stream); !result.ok()) return result;
  std::span<std::byte> rows;
  if (const Result result = inflate_rows(stream, header.data_at, wanted, scratch, rows); !result.ok()) return result;
  const std::span<std::byte> unpacked = scratch.take(Unpacker::pixel_bytes(header) * header.width);
  const std::span<std::byte> stored = scratch.take(std::size_t{into.channels} * size_of(into.dtype) * header.width);
  if (unpacked.data() == nullptr || stored.data() == nullptr) return failed(Code::no_memory, "no room for a row");

  const Unpacker unpacker(header, unpacked.data());
  const Target target{options, region, into};
  std::byte* at = rows.data();
  for (const Pass& pass : passes(header)) {
    const std::uint32_t columns = pass.columns(header);
    if (columns == 0) continue;
    const std::size_t row_bytes = header.row_bytes(columns);
    const std::byte* above = nullptr;
    // Below the region nothing is wanted; a row of a pass with gaps may still have something to store.
    const std::uint32_t count = header.interlaced ? pass.rows(header) : region.y + region.height;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i % kBand == 0 &&
          !unfilter_rows(reinterpret_cast<std::uint8_t*>(at), std::min(kBand, count - i),
                         reinterpret_cast<const std::uint8_t*>(above), row_bytes, header.filter_bytes())) {
        return failed(Code::corrupt, "an unknown row filter", header.data_at);
      }
      const std::uint32_t y = pass.y + i * pass.y_step;
      std::byte* const row = at + 1;
      if (y >= region.y && y - region.y < region.height) {
        store_pass_row(unpacker, row, pass, columns, y, target, stored.data());
      }
      above = row;
      at = row + row_bytes;
    }
  }
  return {};
}

}  // namespace

extern constinit const Codec kPng{.name = "png",
                                  .title = "PNG",
                                  .extensions = {"png"},
                                  .magic = {{{0, "\x89PNG\r\n\x1A\n"}}},
                                  .decoder = ImageCodec{probe_png, decode_png, orientation_of_png}};

}  // namespace stoker::codec
