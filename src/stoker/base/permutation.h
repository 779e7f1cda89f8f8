// A keyed permutation of [0, size): O(1) memory, O(1) access to any place, size up to 2^48.
// A Feistel network over the next even power of two, walked until the result is in range (at most 4 tries on average).
// Immutable; safe from any thread.
#pragma once

#include <cstdint>

namespace stoker {

class Permutation {
 public:
  static constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 48;

  // Throws Error(usage) when `size` is above kMaxSize.
  Permutation(std::uint64_t size, std::uint64_t key);

  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t operator()(std::uint64_t place) const noexcept;  // place < size()
  std::uint64_t inverse(std::uint64_t element) const noexcept;   // the place of `element`

 private:
  std::uint64_t encrypt(std::uint64_t value) const noexcept;
  std::uint64_t decrypt(std::uint64_t value) const noexcept;
  std::uint64_t round(std::uint64_t half, int index) const noexcept;

  static constexpr int kRounds = 6;
  std::uint64_t size_;
  std::uint64_t half_mask_ = 0;
  int half_bits_ = 0;
  std::uint64_t keys_[kRounds];
};

}  // namespace stoker
