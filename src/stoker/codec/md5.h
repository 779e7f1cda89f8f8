// MD5 (RFC 1321), to compare with the sum that a FLAC file holds of its samples. Not for secrets. Private to this
// folder; one sum belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker::codec {

class Md5 {
 public:
  void add(std::span<const std::byte> bytes) noexcept;
  std::array<std::byte, 16> finish() noexcept;  // once

 private:
  void take_block(const std::byte* block) noexcept;

  std::array<std::uint32_t, 4> state_{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::array<std::byte, 64> rest_{};
  std::uint64_t total_ = 0;  // bytes so far
};

}  // namespace stoker::codec
