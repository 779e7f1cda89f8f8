#include "stoker/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace stoker {
namespace {

constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t read_u32(const std::uint8_t* at) noexcept {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | at[3];
}

std::string_view text_of(const std::uint8_t* bytes, std::size_t count) noexcept {
  return {reinterpret_cast<const char*>(bytes), count};
}

// The key, padded to a block and mixed with `byte`, as the first block of a hash.
Sha256 keyed(std::string_view key, std::uint8_t byte) noexcept {
  std::array<std::uint8_t, 64> block{};
  std::memcpy(block.data(), key.data(), key.size());
  for (std::uint8_t& each : block) each ^= byte;
  Sha256 hash;
  hash.add(text_of(block.data(), block.size()));
  return hash;
}

}  // namespace

void Sha256::take_block(const std::uint8_t* block) noexcept {
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i) w[i] = read_u32(block + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t first =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const std::uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<std::uint32_t, 8> more = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += more[i];
}

void Sha256::add(std::string_view text) noexcept {
  bytes_ += text.size();
  const auto* at = reinterpret_cast<const std::uint8_t*>(text.data());
  std::size_t left = text.size();
  if (rest_bytes_ > 0) {
    const std::size_t taken = std::min(left, rest_.size() - rest_bytes_);
    std::copy_n(at, taken, rest_.begin() + static_cast<std::ptrdiff_t>(rest_bytes_));
    rest_bytes_ += taken;
    at += taken;
    left -= taken;
    if (rest_bytes_ < rest_.size()) return;
    take_block(rest_.data());
    rest_bytes_ = 0;
  }
  for (; left >= 64; at += 64, left -= 64) take_block(at);
  std::copy_n(at, left, rest_.begin());
  rest_bytes_ = left;
}

Digest Sha256::digest() noexcept {
  const std::uint64_t bits = bytes_ * 8;
  std::array<std::uint8_t, 72> end{0x80};  // then zeros up to 8 bytes before the end of a block, then the length
  const std::size_t zeros = (rest_bytes_ < 56 ? 55 : 119) - rest_bytes_;
  for (std::size_t i = 0; i < 8; ++i) end[1 + zeros + i] = static_cast<std::uint8_t>(bits >> (56 - 8 * i));
  add(text_of(end.data(), 1 + zeros + 8));
  Digest digest;
  for (std::size_t i = 0; i < 32; ++i) digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Digest sha256(std::string_view text) noexcept {
  Sha256 hash;
  hash.add(text);
  return hash.digest();
}

HmacKey::HmacKey(std::string_view key) noexcept {
  Digest hashed;
  if (key.size() > 64) {
    hashed = sha256(key);
    key = text_of(hashed.data(), hashed.size());
  }
  inner_ = keyed(key, 0x36);
  outer_ = keyed(key, 0x5c);
}

HmacKey::HmacKey(const Digest& key) noexcept : HmacKey(text_of(key.data(), key.size())) {}

Digest HmacKey::sign(std::string_view text) const noexcept {
  Sha256 inner = inner_, outer = outer_;
  inner.add(text);
  const Digest digest = inner.digest();
  outer.add(text_of(digest.data(), digest.size()));
  return outer.digest();
}

void write_hex(const Digest& digest, char* out) noexcept {
  for (const std::uint8_t byte : digest) {
    *out++ = "0123456789abcdef"[byte >> 4];
    *out++ = "0123456789abcdef"[byte & 15];
  }
}

}  // namespace stoker
