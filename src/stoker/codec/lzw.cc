#include "stoker/codec/lzw.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "stoker/codec/byte_order.h"

namespace stoker::codec {
namespace {

constexpr std::uint32_t kClearCode = 256, kEndCode = 257, kFirstCode = 258, kCodes = 4096;

// A code stands for bytes that were written before: what its predecessor wrote, and the byte behind that.
struct Seen {
  std::uint32_t at, length;
};

// Codes of 9 to 12 bits, highest bit first. Behind the end there are end codes.
class CodeReader {
 public:
  explicit CodeReader(Bytes bytes) noexcept : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  std::uint32_t next(unsigned width) noexcept {
    if (count_ < width) fill();
    if (count_ < width) return kEndCode;
    count_ -= width;
    return static_cast<std::uint32_t>(bits_ >> count_) & ((1u << width) - 1);
  }

 private:
  void fill() noexcept {
    if (end_ - at_ >= 4) {
      bits_ = bits_ << 32 | big32(at_);
      at_ += 4;
      count_ += 32;
      return;
    }
    for (; at_ != end_; ++at_, count_ += 8) bits_ = bits_ << 8 | static_cast<std::uint64_t>(*at_);
  }

  const std::byte* at_;
  const std::byte* end_;
  std::uint64_t bits_ = 0;
  unsigned count_ = 0;  // of the low bits that were not handed out; below 44
};

}  // namespace

Result unpack_lzw(Bytes packed, std::span<std::byte> into, std::size_t& written) noexcept {
  written = 0;
  if (packed.size() >= 2 && packed[0] == std::byte{0} && (packed[1] & std::byte{1}) != std::byte{0}) {
    return failed(Code::unsupported, "LZW of before 1988, with codes from the lowest bit on", 0);
  }
  std::array<Seen, kCodes> seen;
  CodeReader codes(packed);
  std::uint32_t next = kFirstCode;
  unsigned width = 9;
  std::size_t out = 0;
  Seen before{0, 0};  // what the last code wrote; length 0: there is none since the table was cleared
  while (out < into.size()) {
    const std::uint32_t code = codes.next(width);
    if (code == kEndCode) break;
    if (code == kClearCode) {
      next = kFirstCode;
      width = 9;
      before.length = 0;
      continue;
    }
    Seen now{static_cast<std::uint32_t>(out), 1};
    if (code < 256) {
      into[out] = static_cast<std::byte>(code);
    } else {
      Seen source;
      if (code < next) {
        source = seen[code];
      } else if (code == next && before.length != 0) {
        source = {before.at, before.length + 1};  // its last byte is its first, which is written while it is copied
      } else {
        return failed(Code::corrupt, "damaged LZW data");
      }
      now.length = static_cast<std::uint32_t>(std::min<std::size_t>(source.length, into.size() - out));
      const std::byte* from = into.data() + source.at;
      std::byte* to = into.data() + out;
      if (source.at + now.length <= out) {
        std::memcpy(to, from, now.length);
      } else {
        for (std::uint32_t i = 0; i < now.length; ++i) to[i] = from[i];
      }
    }
    out += now.length;
    if (before.length != 0 && next < kCodes) {
      seen[next++] = {before.at, before.length + 1};
      if (next + 1 >= 1u << width && width < 12) ++width;
    }
    before = now;
  }
  written = out;
  return {};
}

}  // namespace stoker::codec
