#include "stoker/base/permutation.h"

#include <bit>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"

namespace stoker {

Permutation::Permutation(std::uint64_t size, std::uint64_t key) : size_(size) {
  if (size > kMaxSize) throw Error(ErrorKind::usage, fmt::format("cannot shuffle {} samples: the most is 2^48", size));
  half_bits_ = size < 2 ? 1 : (std::bit_width(size - 1) + 1) / 2;
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
  for (int i = 0; i < kRounds; ++i) keys_[i] = mix(key, 0x5370u + static_cast<std::uint64_t>(i));
}

std::uint64_t Permutation::round(std::uint64_t half, int index) const noexcept {
  std::uint64_t x = (half + keys_[index]) * 0x9E3779B97F4A7C15ull;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ull;
  return (x >> 32) & half_mask_;
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const noexcept {
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & half_mask_;
  for (int i = 0; i < kRounds; ++i) left = std::exchange(right, left ^ round(right, i));
  return (left << half_bits_) | right;
}

std::uint64_t Permutation::decrypt(std::uint64_t value) const noexcept {
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & half_mask_;
  for (int i = kRounds - 1; i >= 0; --i) right = std::exchange(left, right ^ round(left, i));
  return (left << half_bits_) | right;
}

std::uint64_t Permutation::operator()(std::uint64_t place) const noexcept {
  if (size_ < 2) return place;
  do place = encrypt(place);
  while (place >= size_);
  return place;
}

std::uint64_t Permutation::inverse(std::uint64_t element) const noexcept {
  if (size_ < 2) return element;
  do element = decrypt(element);
  while (element >= size_);
  return element;
}

}  // namespace stoker
