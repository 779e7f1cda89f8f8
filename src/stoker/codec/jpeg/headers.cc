#include "stoker/codec/jpeg/headers.h"

#include <cstring>

#include "stoker/codec/byte_order.h"

namespace stoker::codec::jpeg {

constexpr std::array<std::uint8_t, 256> kNaturalOrder = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

namespace {

constexpr std::uint32_t kMaxSide = 65500;  // libjpeg's

enum Marker : std::uint8_t {
  kSof0 = 0xC0,
  kSof1 = 0xC1,
  kDht = 0xC4,
  kRst0 = 0xD0,
  kRst7 = 0xD7,
  kSoi = 0xD8,
  kEoi = 0xD9,
  kSos = 0xDA,
  kDqt = 0xDB,
  kDri = 0xDD,
  kApp0 = 0xE0,
  kApp14 = 0xEE,
  kApp15 = 0xEF,
  kCom = 0xFE,
};

// The content of one segment. Past its end it gives zeros, and is no longer whole.
class Segment {
 public:
  explicit Segment(Bytes bytes) noexcept : rest_(bytes) {}

  std::uint32_t byte() noexcept { return take(1) ? static_cast<std::uint8_t>(taken_[0]) : 0; }
  std::uint32_t word() noexcept { return take(2) ? big16(taken_.data()) : 0; }
  void copy(void* into, std::size_t size) noexcept {
    if (take(size)) std::memcpy(into, taken_.data(), size);
  }
  bool is_empty() const noexcept { return rest_.empty(); }
  bool was_whole() const noexcept { return whole_; }
  // Everything was taken, and nothing more.
  bool is_used_up() const noexcept { return whole_ && rest_.empty(); }
  bool starts_with(std::string_view text, std::size_t least_size) const noexcept {
    return rest_.size() >= least_size && std::memcmp(rest_.data(), text.data(), text.size()) == 0;
  }

 private:
  bool take(std::size_t size) noexcept {
    whole_ = whole_ && size <= rest_.size();
    if (!whole_) return false;
    taken_ = rest_.first(size);
    rest_ = rest_.subspan(size);
    return true;
  }

  Bytes rest_, taken_;
  bool whole_ = true;
};

// What the application markers say of the colours.
struct Claims {
  bool jfif = false, adobe = false;
  std::uint32_t adobe_transform = 0;
};

bool read_quant_tables(Segment segment, Frame& frame) noexcept {
  while (!segment.is_empty()) {
    const std::uint32_t slot = segment.byte();
    if (slot > 3) return false;  // or 16-bit values
    QuantTable& table = frame.quant[slot];
    for (std::size_t k = 0; k < 64; ++k) table.values[kNaturalOrder[k]] = static_cast<std::int16_t>(segment.byte());
    table.defined = true;
  }
  return segment.is_used_up();
}

bool read_huffman_codes(Segment segment, Frame& frame) noexcept {
  while (!segment.is_empty()) {
    const std::uint32_t slot = segment.byte();
    if ((slot & ~0x13u) != 0) return false;
    HuffmanCode& code = slot < 16 ? frame.dc[slot] : frame.ac[slot - 16];
    code = {};
    segment.copy(code.counts.data(), 16);
    std::size_t total = 0;
    for (const std::uint8_t count : code.counts) total += count;
    if (total > code.symbols.size()) return false;
    segment.copy(code.symbols.data(), total);
    code.defined = true;
  }
  return segment.is_used_up();
}

bool read_frame(Segment segment, Frame& frame) noexcept {
  const std::uint32_t bits = segment.byte();
  frame.height = segment.word();
  frame.width = segment.word();
  const std::uint32_t components = segment.byte();
  if (bits != 8 || (components != 1 && components != 3)) return false;
  if (frame.width == 0 || frame.height == 0 || frame.width > kMaxSide || frame.height > kMaxSide) return false;
  frame.components = static_cast<std::uint8_t>(components);
  for (std::uint32_t i = 0; i < components; ++i) {
    Component& component = frame.component[i];
    component.id = static_cast<std::uint8_t>(segment.byte());
    const std::uint32_t sampling = segment.byte();
    component.h = static_cast<std::uint8_t>(sampling >> 4);
    component.v = static_cast<std::uint8_t>(sampling & 15);
    component.quant = static_cast<std::uint8_t>(segment.byte());
    if (component.quant > 3) return false;
    for (std::uint32_t j = 0; j < i; ++j) {
      if (frame.component[j].id == component.id) return false;
    }
    if (component.h < 1 || component.v < 1 || component.h > (i == 0 ? 2 : 1) || component.v > (i == 0 ? 2 : 1)) {
      return false;
    }
  }
  // Alone in its scan, a component has one block per MCU whatever it says.
  if (components == 1) frame.component[0].h = frame.component[0].v = 1;
  return segment.is_used_up();
}

bool read_scan_header(Segment segment, Frame& frame) noexcept {
  if (segment.byte() != frame.components) return false;
  for (std::uint32_t i = 0; i < frame.components; ++i) {
    Component& component = frame.component[i];
    if (segment.byte() != component.id) return false;
    const std::uint32_t tables = segment.byte();
    if ((tables & ~0x33u) != 0) return false;
    component.dc = static_cast<std::uint8_t>(tables >> 4);
    component.ac = static_cast<std::uint8_t>(tables & 15);
    if (!frame.quant[component.quant].defined || !frame.dc[component.dc].defined || !frame.ac[component.ac].defined) {
      return false;
    }
  }
  return segment.byte() == 0 && segment.byte() == 63 && segment.byte() == 0 && segment.is_used_up();
}

bool read_application(Segment segment, std::uint32_t marker, Claims& claims) noexcept {
  if (marker == kApp0 && segment.starts_with({"JFIF\0", 5}, 14)) {
    claims.jfif = true;
    char name[5];
    segment.copy(name, 5);
    return segment.byte() == 1;  // libjpeg warns of other major versions
  }
  if (marker == kApp14 && segment.starts_with("Adobe", 12)) {
    claims.adobe = true;
    char before[11];
    segment.copy(before, 11);
    claims.adobe_transform = segment.byte();
  }
  return true;
}

// As libjpeg guesses it.
bool is_ycbcr(const Frame& frame, const Claims& claims) noexcept {
  if (claims.jfif) return true;
  if (claims.adobe) return claims.adobe_transform == 1;
  return !(frame.component[0].id == 'R' && frame.component[1].id == 'G' && frame.component[2].id == 'B');
}

}  // namespace

bool ends_properly(Bytes scan, bool has_restarts) noexcept {
  const std::byte* at = scan.data();
  const std::byte* const end = at + scan.size();
  while (at != end) {
    at = static_cast<const std::byte*>(std::memchr(at, 0xFF, static_cast<std::size_t>(end - at)));
    if (at == nullptr) return false;
    while (at != end && *at == std::byte{0xFF}) ++at;  // before the code of a marker there may be any number
    if (at == end) return false;
    const auto code = static_cast<std::uint8_t>(*at++);
    if (code == kEoi) return true;
    const bool is_data = code == 0;
    if (!is_data && !(has_restarts && code >= kRst0 && code <= kRst7)) return false;
  }
  return false;
}

bool read_headers(Bytes bytes, Frame& frame) noexcept {
  if (bytes.size() < 2 || big16(bytes.data()) != (0xFF00 | kSoi)) return false;
  Claims claims;
  std::size_t at = 2;
  for (;;) {
    if (bytes.size() - at < 4 || bytes[at] != std::byte{0xFF}) return false;
    const auto marker = static_cast<std::uint8_t>(bytes[at + 1]);
    const std::size_t size = big16(&bytes[at + 2]);
    if (size < 2 || size > bytes.size() - at - 2) return false;
    const Segment segment(bytes.subspan(at + 4, size - 2));
    at += 2 + size;
    bool certain = true;
    switch (marker) {
      case kSof0:
      case kSof1:
        certain = frame.components == 0 && read_frame(segment, frame);
        break;
      case kDht:
        certain = read_huffman_codes(segment, frame);
        break;
      case kDqt:
        certain = read_quant_tables(segment, frame);
        break;
      case kDri: {
        Segment content = segment;
        frame.restart_interval = content.word();
        certain = content.is_used_up();
        break;
      }
      case kSos:
        frame.scan_offset = at;
        return frame.components != 0 && read_scan_header(segment, frame) &&
               (frame.components == 1 || is_ycbcr(frame, claims));
      default:
        certain = marker == kCom || (marker >= kApp0 && marker <= kApp15 && read_application(segment, marker, claims));
        break;
    }
    if (!certain) return false;
  }
}

}  // namespace stoker::codec::jpeg
