#include "stoker/codec/exif.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <string_view>

#include "stoker/codec/byte_order.h"
#include "stoker/codec/image.h"

namespace stoker::codec {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;

bool counts_columns_back(Orientation orientation) noexcept {
  return orientation == Orientation::mirrored || orientation == Orientation::half_turn ||
         orientation == Orientation::transversed || orientation == Orientation::three_quarter_turn;
}
bool counts_rows_back(Orientation orientation) noexcept {
  return orientation == Orientation::half_turn || orientation == Orientation::mirrored_half_turn ||
         orientation == Orientation::quarter_turn || orientation == Orientation::transversed;
}

Orientation orientation_of(std::uint32_t number) noexcept {
  return number >= 1 && number <= 8 ? static_cast<Orientation>(number) : Orientation::upright;
}

bool take_prefix(Bytes& bytes, std::string_view prefix) noexcept {
  if (bytes.size() < prefix.size() || std::memcmp(bytes.data(), prefix.data(), prefix.size()) != 0) return false;
  bytes = bytes.subspan(prefix.size());
  return true;
}

// ---- Exif: a small TIFF file

// Both byte orders. Reading beyond the end gives nothing.
class Tiff {
 public:
  explicit Tiff(Bytes bytes) noexcept : bytes_(bytes) {
    known_ = take_prefix(bytes, {"II*\0", 4}) || (is_big_ = take_prefix(bytes, {"MM\0*", 4}));
  }

  bool is_known() const noexcept { return known_; }
  std::optional<std::uint32_t> byte(std::uint64_t at) const noexcept {
    if (!has(at, 1)) return {};
    return static_cast<std::uint8_t>(bytes_[at]);
  }
  std::optional<std::uint32_t> word(std::uint64_t at) const noexcept {
    if (!has(at, 2)) return {};
    return is_big_ ? big16(&bytes_[at]) : little16(&bytes_[at]);
  }
  std::optional<std::uint32_t> double_word(std::uint64_t at) const noexcept {
    if (!has(at, 4)) return {};
    return is_big_ ? big32(&bytes_[at]) : little32(&bytes_[at]);
  }
  bool has(std::uint64_t at, std::uint64_t size) const noexcept {
    return at <= bytes_.size() && size <= bytes_.size() - at;
  }

 private:
  Bytes bytes_;
  bool known_ = false, is_big_ = false;
};

// The first value of an entry that holds its values itself; none if it has another form. Pillow takes bytes and texts
// for no number: they are 0, which turns nothing and stands before what XMP says.
std::optional<std::uint32_t> value_of(const Tiff& tiff, std::uint64_t entry) noexcept {
  enum : std::uint32_t { kByte = 1, kText, kShort, kLong, kSignedByte = 6, kUndefined, kSignedShort, kSignedLong };
  const std::uint32_t type = tiff.word(entry + 2).value_or(0), count = tiff.double_word(entry + 4).value_or(0);
  if (count == 0) return {};
  if ((type == kByte || type == kText || type == kUndefined) && count <= 4) return 0;
  if (type == kSignedByte && count <= 4) return tiff.byte(entry + 8);
  if ((type == kShort || type == kSignedShort) && count <= 2) return tiff.word(entry + 8);
  if ((type == kLong || type == kSignedLong) && count == 1) return tiff.double_word(entry + 8);
  return {};
}

// The orientation in the first directory; none if it has no such tag.
std::optional<std::uint32_t> find_in_exif(Bytes exif) noexcept {
  const Tiff tiff(exif);
  if (!tiff.is_known()) return {};
  const std::uint64_t directory = tiff.double_word(4).value_or(0);
  const std::uint32_t entries = tiff.word(directory).value_or(0);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::uint64_t entry = directory + 2 + std::uint64_t{i} * 12;
    if (!tiff.has(entry, 12)) return {};
    if (tiff.word(entry) != kOrientationTag) continue;
    if (const auto value = value_of(tiff, entry)) return value;
  }
  return {};
}

// ---- XMP: a text, in which Pillow looks for tiff:Orientation="6" or <tiff:Orientation>6

std::optional<std::uint32_t> find_in_xmp(Bytes xmp) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(xmp.data()), xmp.size());
  constexpr std::string_view kName = "tiff:Orientation";
  for (std::size_t at = text.find(kName); at != text.npos; at = text.find(kName, at + 1)) {
    std::string_view rest = text.substr(at + kName.size());
    if (rest.starts_with("=\"")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with(">")) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return static_cast<std::uint32_t>(rest[0] - '0');
  }
  return {};
}

// ---- where they are

// ---- turning

// In tiles, so that both the rows read and the rows written stay in the cache.
template <std::size_t kPixelBytes>
void turn(Orientation orientation, const Pixels& stored, const Pixels& into) noexcept {
  constexpr std::uint32_t kTile = 16;
  const bool exchanged = exchanges_sides(orientation);
  const std::ptrdiff_t along = kPixelBytes, down = static_cast<std::ptrdiff_t>(stored.stride_bytes);
  const std::ptrdiff_t column = counts_columns_back(orientation) ? -along : along;
  const std::ptrdiff_t row = counts_rows_back(orientation) ? -down : down;
  const std::byte* first = stored.data;
  if (column < 0) first += std::ptrdiff_t{stored.width - 1} * along;
  if (row < 0) first += std::ptrdiff_t{stored.height - 1} * down;
  const std::ptrdiff_t step_x = exchanged ? row : column, step_y = exchanged ? column : row;
  for (std::uint32_t top = 0; top < into.height; top += kTile) {
    for (std::uint32_t left = 0; left < into.width; left += exchanged ? kTile : into.width) {
      const std::uint32_t right = exchanged ? std::min(left + kTile, into.width) : into.width;
      for (std::uint32_t y = top; y < std::min(top + kTile, into.height); ++y) {
        const std::byte* from = first + std::ptrdiff_t{left} * step_x + std::ptrdiff_t{y} * step_y;
        std::byte* to = into.data + y * into.stride_bytes + left * kPixelBytes;
        for (std::uint32_t x = left; x < right; ++x, from += step_x, to += kPixelBytes) {
          std::memcpy(to, from, kPixelBytes);
        }
      }
    }
  }
}

}  // namespace

Orientation orientation_of_jpeg(Bytes bytes) noexcept {
  enum : std::uint8_t { kSos = 0xDA, kEoi = 0xD9, kApp1 = 0xE1 };
  std::optional<std::uint32_t> by_exif, by_xmp;
  bool has_exif = false;
  std::size_t at = 2;
  while (at < bytes.size() && bytes[at] == std::byte{0xFF}) {
    while (at + 1 < bytes.size() && bytes[at + 1] == std::byte{0xFF}) ++at;  // fill bytes
    if (bytes.size() - at < 4) break;
    const auto marker = static_cast<std::uint8_t>(bytes[at + 1]);
    const std::size_t size = big16(&bytes[at + 2]);
    if (marker == kSos || marker == kEoi || size < 2 || size > bytes.size() - at - 2) break;
    if (marker == kApp1) {
      constexpr std::string_view kExif{"Exif\0\0", 6}, kXmp{"http://ns.adobe.com/xap/1.0/\0", 29};
      Bytes content = bytes.subspan(at + 4, size - 2);
      if (!has_exif && take_prefix(content, kExif)) {
        take_prefix(content, kExif);  // some writers put it there twice
        by_exif = find_in_exif(content);
        has_exif = true;
      } else if (take_prefix(content, kXmp)) {
        by_xmp = find_in_xmp(content);
      }
    }
    at += 2 + size;
  }
  return orientation_of(by_exif ? *by_exif : by_xmp.value_or(1));
}

Orientation orientation_of_webp(Bytes bytes) noexcept {
  constexpr std::size_t kHeader = 12, kAround = 8;  // name and length of a chunk
  std::optional<std::uint32_t> by_exif, by_xmp;
  for (std::size_t at = kHeader; at <= bytes.size() && bytes.size() - at >= kAround;) {
    const std::size_t size = little32(&bytes[at + 4]);
    if (size > bytes.size() - at - kAround) break;
    Bytes content = bytes.subspan(at + kAround, size);
    const std::uint32_t name = little32(&bytes[at]);
    if (name == tag("EXIF")) {
      while (take_prefix(content, {"Exif\0\0", 6})) {
      }
      by_exif = find_in_exif(content);
    } else if (name == tag("XMP ")) {
      by_xmp = find_in_xmp(content);
    }
    at += kAround + size + size % 2;
  }
  return orientation_of(by_exif ? *by_exif : by_xmp.value_or(1));
}

Orientation orientation_of_png(Bytes bytes) noexcept {
  constexpr std::size_t kSignature = 8, kAround = 12;  // length, name and sum of a chunk
  for (std::size_t at = kSignature; at <= bytes.size() && bytes.size() - at >= kAround;) {
    const std::size_t size = big32(&bytes[at]);
    if (size > bytes.size() - at - kAround) break;
    const std::uint32_t name = little32(&bytes[at + 4]);
    if (name == tag("eXIf")) return orientation_of(find_in_exif(bytes.subspan(at + 8, size)).value_or(1));
    if (name == tag("IEND")) break;
    at += kAround + size;
  }
  return Orientation::upright;
}

Rect stored_rect(Orientation orientation, const Rect& upright, std::uint32_t width, std::uint32_t height) noexcept {
  Rect rect = upright;
  if (exchanges_sides(orientation)) rect = {upright.y, upright.x, upright.height, upright.width};
  if (counts_columns_back(orientation)) rect.x = width - rect.x - rect.width;
  if (counts_rows_back(orientation)) rect.y = height - rect.y - rect.height;
  return rect;
}

Corner upright_corner(Orientation orientation, const StoredArea& area, std::uint32_t width,
                      std::uint32_t height) noexcept {
  const std::int64_t x = counts_columns_back(orientation) ? width - area.right : area.left;
  const std::int64_t y = counts_rows_back(orientation) ? height - area.bottom : area.top;
  return exchanges_sides(orientation) ? Corner{y, x} : Corner{x, y};
}

void turn_upright(Orientation orientation, const Pixels& stored, const Pixels& into) noexcept {
  assert(stored.channels == into.channels && stored.dtype == into.dtype && "turn_upright: another kind of pixels");
  assert(stored.width == (exchanges_sides(orientation) ? into.height : into.width) &&
         stored.height == (exchanges_sides(orientation) ? into.width : into.height) && "turn_upright: another size");
  switch (stored.channels * size_of(stored.dtype)) {
    case 1:
      return turn<1>(orientation, stored, into);
    case 2:
      return turn<2>(orientation, stored, into);
    case 3:
      return turn<3>(orientation, stored, into);
    case 4:
      return turn<4>(orientation, stored, into);
    case 6:
      return turn<6>(orientation, stored, into);
    case 8:
      return turn<8>(orientation, stored, into);
    default:
      assert(false && "turn_upright: no such pixels");
  }
}

}  // namespace stoker::codec
