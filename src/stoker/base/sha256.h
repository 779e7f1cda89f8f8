// SHA-256 and HMAC over it, for signatures. The functions are pure; an HmacKey may be used by many threads at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stoker {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  void add(std::string_view text) noexcept;
  Digest digest() noexcept;  // of everything that was added; the object is used up

 private:
  void take_block(const std::uint8_t* block) noexcept;

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> rest_{};
  std::size_t rest_bytes_ = 0;
  std::uint64_t bytes_ = 0;
};

Digest sha256(std::string_view text) noexcept;

// A key that signs many texts: what it contributes to each hash is computed once.
class HmacKey {
 public:
  explicit HmacKey(std::string_view key) noexcept;
  explicit HmacKey(const Digest& key) noexcept;

  Digest sign(std::string_view text) const noexcept;

 private:
  Sha256 inner_, outer_;
};

// 64 lower-case digits into `out`.
void write_hex(const Digest& digest, char* out) noexcept;

}  // namespace stoker
