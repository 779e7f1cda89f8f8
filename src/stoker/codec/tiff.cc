// Reads directories: a directory is a list of tags, each with a type, a count, and its values or their place.
#include "stoker/codec/tiff.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "stoker/codec/byte_order.h"

namespace stoker::codec {
namespace {

constexpr std::uint64_t kMostTags = 4096;

enum Tag : std::uint16_t {
  kSubfileType = 254,
  kWidth = 256,
  kHeight = 257,
  kBits = 258,
  kCompression = 259,
  kFillOrder = 266,
  kDescription = 270,
  kStripOffsets = 273,
  kSamples = 277,
  kRowsPerStrip = 278,
  kStripBytes = 279,
  kPlanar = 284,
  kPredictor = 317,
  kTileWidth = 322,
  kTileHeight = 323,
  kTileOffsets = 324,
  kTileBytes = 325,
  kSampleFormat = 339,
  kImageDepth = 32997,
};

struct Entry {
  std::uint16_t type = 0;
  std::uint64_t count = 0;
  std::uint64_t at = 0;  // of the values in the file
};

// Bytes of one value; 0: not a whole number.
std::uint64_t whole_bytes(std::uint16_t type) noexcept {
  switch (type) {
    case 1:  // BYTE
    case 6:
      return 1;
    case 3:  // SHORT
    case 8:
      return 2;
    case 4:  // LONG
    case 9:
    case 13:  // IFD
      return 4;
    case 16:  // LONG8
    case 17:
    case 18:
      return 8;
    default:
      return 0;
  }
}

std::uint64_t whole_at(const std::byte* at, std::uint64_t bytes, bool swap) noexcept {
  switch (bytes) {
    case 1:
      return static_cast<std::uint64_t>(*at);
    case 2:
      return swap ? big16(at) : little16(at);
    case 4:
      return swap ? big32(at) : little32(at);
    default:
      return swap ? __builtin_bswap64(little64(at)) : little64(at);
  }
}

class DirectoryReader {
 public:
  DirectoryReader(TiffInput& input, const TiffHeader& header, Scratch& scratch) noexcept
      : input_(input), header_(header), scratch_(scratch) {}

  Result read(std::uint64_t directory, TiffPage& page) noexcept {
    std::span<std::byte> tags;
    if (const Result result = read_tags(directory, tags, page.next); !result.ok()) return result;
    if (const Result result = read_form(directory, tags, page); !result.ok()) return result;
    return {};
  }

 private:
  std::uint64_t tag_bytes() const noexcept { return header_.is_big ? 20 : 12; }

  Result fill(std::uint64_t offset, std::span<std::byte> into) noexcept {
    const std::uint64_t size = input_.size_bytes();
    if (offset > size || into.size() > size - offset) {
      return failed(Code::truncated, "the directory of a page points beyond the end", offset);
    }
    return input_.read(offset, into) ? Result{} : failed(Code::io, "the file could not be read", offset);
  }

  Result read_tags(std::uint64_t directory, std::span<std::byte>& tags, std::uint64_t& next) noexcept {
    std::array<std::byte, 8> raw{};
    const std::uint64_t count_bytes = header_.is_big ? 8 : 2, offset_bytes = header_.is_big ? 8 : 4;
    if (const Result result = fill(directory, std::span(raw).first(count_bytes)); !result.ok()) return result;
    const std::uint64_t count = whole_at(raw.data(), count_bytes, header_.swap_bytes);
    if (count == 0 || count > kMostTags) {
      return failed(Code::corrupt, "a page has no tags, or more than there are", directory);
    }
    tags = scratch_.take(count * tag_bytes() + offset_bytes);
    if (tags.data() == nullptr) return failed(Code::no_memory, "no room for the directory of a page");
    if (const Result result = fill(directory + count_bytes, tags); !result.ok()) return result;
    next = whole_at(tags.data() + count * tag_bytes(), offset_bytes, header_.swap_bytes);
    tags = tags.first(count * tag_bytes());
    directory_ = directory + count_bytes;
    return {};
  }

  bool find(std::span<const std::byte> tags, Tag wanted, Entry& entry) const noexcept {
    const bool swap = header_.swap_bytes;
    for (std::size_t at = 0; at < tags.size(); at += tag_bytes()) {
      const std::byte* const tag = tags.data() + at;
      if (whole_at(tag, 2, swap) != wanted) continue;
      const std::uint64_t size = header_.is_big ? 8 : 4;
      entry.type = static_cast<std::uint16_t>(whole_at(tag + 2, 2, swap));
      entry.count = whole_at(tag + 4, size, swap);
      const std::uint64_t unit = std::max<std::uint64_t>(entry.type == 2 ? 1 : whole_bytes(entry.type), 1);
      const bool is_inside = entry.count <= size / unit;
      entry.at = is_inside ? directory_ + at + 4 + size : whole_at(tag + 4 + size, size, swap);
      return entry.count != 0;
    }
    return false;
  }

  // The first value of a tag, or `fallback` where there is no such tag.
  Result first(std::span<const std::byte> tags, Tag tag, std::uint64_t fallback, std::uint64_t& value) noexcept {
    Entry entry;
    value = fallback;
    if (!find(tags, tag, entry)) return {};
    std::array<std::byte, 8> raw{};
    const std::uint64_t bytes = whole_bytes(entry.type);
    if (bytes == 0) return failed(Code::corrupt, "a tag is not a whole number", entry.at);
    if (const Result result = fill(entry.at, std::span(raw).first(bytes)); !result.ok()) return result;
    value = whole_at(raw.data(), bytes, header_.swap_bytes);
    return {};
  }

  // `count` values of a tag, which must have them. They take no more memory than four times their bytes in the file.
  Result all(std::span<const std::byte> tags, Tag tag, std::uint64_t count,
             std::span<const std::uint64_t>& values) noexcept {
    Entry entry;
    if (!find(tags, tag, entry)) return failed(Code::corrupt, "a page without places of its strips or tiles");
    const std::uint64_t bytes = whole_bytes(entry.type);
    if (bytes == 0) return failed(Code::corrupt, "a tag is not a whole number", entry.at);
    if (entry.count < count) return failed(Code::corrupt, "a page has places for too few strips or tiles", entry.at);
    const std::uint64_t size = input_.size_bytes();
    if (entry.at > size || count > (size - entry.at) / bytes) {
      return failed(Code::truncated, "the directory of a page points beyond the end", entry.at);
    }
    const std::span<std::byte> room = scratch_.take(count * sizeof(std::uint64_t));
    if (room.data() == nullptr) return failed(Code::no_memory, "no room for the directory of a page");
    const std::span<std::byte> raw = room.last(count * bytes);
    if (const Result result = fill(entry.at, raw); !result.ok()) return result;
    // Each value is written at or before the place that it is read from, so the values may be widened in place.
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t value = whole_at(raw.data() + i * bytes, bytes, header_.swap_bytes);
      std::memcpy(room.data() + i * sizeof value, &value, sizeof value);
    }
    values = {reinterpret_cast<const std::uint64_t*>(room.data()), count};
    return {};
  }

  static Result read_packing(std::uint64_t compression, TiffForm& form) noexcept {
    switch (compression) {
      case 1:
        form.packing = TiffPacking::none;
        return {};
      case 5:
        form.packing = TiffPacking::lzw;
        return {};
      case 8:
      case 32946:
        form.packing = TiffPacking::deflate;
        return {};
      case 32773:
        form.packing = TiffPacking::packbits;
        return {};
      case 50000:
        form.packing = TiffPacking::zstd;
        return {};
      case 2:
      case 3:
      case 4:
        return failed(Code::unsupported, "CCITT fax compression in a TIFF");
      case 6:
      case 7:
        return failed(Code::unsupported, "JPEG compression in a TIFF");
      case 33003:
      case 33005:
      case 34712:
        return failed(Code::unsupported, "JPEG 2000 compression in a TIFF");
      case 34925:
        return failed(Code::unsupported, "LZMA compression in a TIFF");
      case 34887:
        return failed(Code::unsupported, "LERC compression in a TIFF");
      case 50001:
        return failed(Code::unsupported, "WebP compression in a TIFF");
      default:
        return failed(Code::unsupported, "a compression of TIFF that this version does not read");
    }
  }

  static Result read_dtype(std::uint64_t bits, std::uint64_t format, TiffForm& form) noexcept {
    struct Known {
      std::uint64_t bits, format;
      DType dtype;
    };
    static constexpr Known kKnown[] = {{8, 1, DType::u8},   {16, 1, DType::u16}, {32, 1, DType::u32},
                                       {64, 1, DType::u64}, {8, 2, DType::i8},   {16, 2, DType::i16},
                                       {32, 2, DType::i32}, {64, 2, DType::i64}, {16, 3, DType::f16},
                                       {32, 3, DType::f32}, {64, 3, DType::f64}};
    if (format == 4) format = 1;  // "undefined"
    for (const Known& known : kKnown) {
      if (known.bits != bits || known.format != format) continue;
      form.dtype = known.dtype;
      return {};
    }
    return failed(Code::unsupported, "pixels that are not of 8, 16, 32 or 64 bits, or complex");
  }

  Result read_form(std::uint64_t directory, std::span<const std::byte> tags, TiffPage& page) noexcept {
    const auto at_directory = [directory](Code code, const char* cause) { return failed(code, cause, directory); };
    TiffForm& form = page.form;
    std::uint64_t subfile, width, height, bits, compression, fill_order, samples, planar, predictor, format, depth;
    const struct {
      Tag tag;
      std::uint64_t fallback;
      std::uint64_t* value;
    } wanted[] = {
        {kSubfileType, 0, &subfile},     {kWidth, 0, &width},          {kHeight, 0, &height},   {kBits, 1, &bits},
        {kCompression, 1, &compression}, {kFillOrder, 1, &fill_order}, {kSamples, 1, &samples}, {kPlanar, 1, &planar},
        {kPredictor, 1, &predictor},     {kSampleFormat, 1, &format},  {kImageDepth, 1, &depth}};
    for (const auto& [tag, fallback, value] : wanted) {
      if (const Result result = first(tags, tag, fallback, *value); !result.ok()) return result;
    }
    page.is_reduced = (subfile & 5) != 0;
    if (width == 0 || height == 0 || width > 0xFFFFFFFF || height > 0xFFFFFFFF ||
        width * height > std::uint64_t{1} << 40) {
      return at_directory(Code::corrupt, "a page without pixels, or with more than a file can hold");
    }
    if (depth > 1) return at_directory(Code::unsupported, "pages of several planes (ImageDepth)");
    form.width = static_cast<std::uint32_t>(width);
    form.height = static_cast<std::uint32_t>(height);
    form.swap_bytes = header_.swap_bytes;
    if (samples == 0 || samples > 64) return at_directory(Code::unsupported, "more than 64 values per pixel");
    form.samples = static_cast<std::uint16_t>(samples);
    if (planar == 2 && samples > 1) return at_directory(Code::unsupported, "channels in planes of their own");
    if (fill_order != 1) return at_directory(Code::unsupported, "bits in reverse order (FillOrder 2)");
    if (const Result result = check_bits(tags, samples, bits); !result.ok()) return result;
    if (Result result = read_dtype(bits, format, form); !result.ok()) return result.offset = directory, result;
    if (size_of(form.dtype) == 1) form.swap_bytes = false;
    if (Result result = read_packing(compression, form); !result.ok()) return result.offset = directory, result;
    if (form.packing == TiffPacking::none || form.packing == TiffPacking::packbits) predictor = 1;
    const bool is_real = form.dtype == DType::f16 || form.dtype == DType::f32 || form.dtype == DType::f64;
    if (predictor < 1 || predictor > 3 || (predictor == 3 && !is_real)) {
      return at_directory(Code::unsupported, "a predictor of TIFF that this version does not read");
    }
    form.predictor = static_cast<std::uint8_t>(predictor);
    if (const Result result = read_segments(directory, tags, page); !result.ok()) return result;
    Entry text;
    if (find(tags, kDescription, text) && text.type == 2 && text.at < input_.size_bytes() &&
        text.count <= input_.size_bytes() - text.at) {
      page.description = text.at;
      page.description_bytes = text.count;
    }
    return {};
  }

  Result check_bits(std::span<const std::byte> tags, std::uint64_t samples, std::uint64_t bits) noexcept {
    Entry entry;
    if (samples == 1 || !find(tags, kBits, entry)) return {};
    std::span<const std::uint64_t> values;
    if (entry.count < samples) return {};
    if (const Result result = all(tags, kBits, samples, values); !result.ok()) return result;
    if (std::ranges::all_of(values, [bits](std::uint64_t value) { return value == bits; })) return {};
    return failed(Code::unsupported, "channels of different bits", entry.at);
  }

  Result read_segments(std::uint64_t directory, std::span<const std::byte> tags, TiffPage& page) noexcept {
    TiffForm& form = page.form;
    Entry entry;
    form.is_tiled = find(tags, kTileOffsets, entry);
    std::uint64_t width = form.width, height = form.height;
    if (form.is_tiled) {
      if (const Result result = first(tags, kTileWidth, 0, width); !result.ok()) return result;
      if (const Result result = first(tags, kTileHeight, 0, height); !result.ok()) return result;
    } else {
      if (const Result result = first(tags, kRowsPerStrip, height, height); !result.ok()) return result;
      height = std::min<std::uint64_t>(height, form.height);
    }
    if (width == 0 || height == 0 || width > 0xFFFFFFFF || height > 0xFFFFFFFF) {
      return failed(Code::corrupt, "strips or tiles without pixels", directory);
    }
    form.segment_width = static_cast<std::uint32_t>(width);
    form.segment_height = static_cast<std::uint32_t>(height);
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(width, height, &bytes) || __builtin_mul_overflow(bytes, form.pixel_bytes(), &bytes) ||
        (bytes > kMaxSegmentBytes && form.packing != TiffPacking::none)) {
      return failed(Code::too_large, "a strip or tile above 1 GiB", directory);
    }
    const std::uint64_t segments = form.segments();
    const Tag offsets = form.is_tiled ? kTileOffsets : kStripOffsets;
    const Tag counts = form.is_tiled ? kTileBytes : kStripBytes;
    if (const Result result = all(tags, offsets, segments, page.offsets); !result.ok()) return result;
    if (segments == 1 && !find(tags, counts, entry) && form.packing == TiffPacking::none) {
      // Old programs leave the size of the only strip out.
      const std::span<std::byte> room = scratch_.take(sizeof(std::uint64_t));
      if (room.data() == nullptr) return failed(Code::no_memory, "no room for the directory of a page");
      std::memcpy(room.data(), &bytes, sizeof bytes);
      page.bytes = {reinterpret_cast<const std::uint64_t*>(room.data()), 1};
    } else if (const Result result = all(tags, counts, segments, page.bytes); !result.ok()) {
      return result;
    }
    const std::uint64_t size = input_.size_bytes();
    for (std::uint64_t i = 0; i < segments; ++i) {
      if (page.offsets[i] > size || page.bytes[i] > size - page.offsets[i]) {
        return failed(Code::truncated, "a strip or tile goes beyond the end", page.offsets[i]);
      }
    }
    return {};
  }

  TiffInput& input_;
  const TiffHeader& header_;
  Scratch& scratch_;
  std::uint64_t directory_ = 0;  // of the first tag
};

}  // namespace

bool TiffBytes::read(std::uint64_t offset, std::span<std::byte> into) noexcept {
  if (offset > bytes_.size() || into.size() > bytes_.size() - offset) return false;
  if (!into.empty()) std::memcpy(into.data(), bytes_.data() + offset, into.size());
  return true;
}

const char* name(TiffPacking packing) noexcept {
  switch (packing) {
    case TiffPacking::none:
      return "uncompressed";
    case TiffPacking::lzw:
      return "lzw";
    case TiffPacking::deflate:
      return "deflate";
    case TiffPacking::packbits:
      return "packbits";
    case TiffPacking::zstd:
      return "zstd";
  }
  return "unknown";
}

Result read_tiff_header(TiffInput& input, TiffHeader& header) noexcept {
  header = {};
  std::array<std::byte, 16> raw{};
  const std::uint64_t size = std::min<std::uint64_t>(raw.size(), input.size_bytes());
  if (size < 8) return failed(Code::truncated, "shorter than a TIFF header", size);
  if (!input.read(0, std::span(raw).first(size))) return failed(Code::io, "the file could not be read", 0);
  if (std::memcmp(raw.data(), "MM", 2) == 0) {
    header.swap_bytes = true;
  } else if (std::memcmp(raw.data(), "II", 2) != 0) {
    return failed(Code::corrupt, "no TIFF header", 0);
  }
  const std::uint64_t version = whole_at(&raw[2], 2, header.swap_bytes);
  if (version == 42) {
    header.first = whole_at(&raw[4], 4, header.swap_bytes);
  } else if (version == 43) {
    if (size < 16) return failed(Code::truncated, "shorter than a BigTIFF header", size);
    if (whole_at(&raw[4], 2, header.swap_bytes) != 8) return failed(Code::unsupported, "a BigTIFF of other offsets", 4);
    header.is_big = true;
    header.first = whole_at(&raw[8], 8, header.swap_bytes);
  } else {
    return failed(Code::corrupt, "no TIFF header", 2);
  }
  return {};
}

Result read_tiff_page(TiffInput& input, const TiffHeader& header, std::uint64_t directory, TiffPage& page,
                      Scratch& scratch) noexcept {
  page = {};
  return DirectoryReader(input, header, scratch).read(directory, page);
}

}  // namespace stoker::codec
