// Numbers of a normal distribution (mean 0, deviation 1), 64 at a time: the kernels of wide.h draw them from the
// counter generator, two of two words (Box and Muller). Number i is a pure function of the key and i, to the bit on
// every CPU. One thread each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stoker::transform {

class NormalNumbers {
 public:
  static constexpr std::size_t kBlock = 64;

  explicit NormalNumbers(std::uint64_t key) noexcept;

  float next() noexcept {
    if (used_ == kBlock) fill();
    return numbers_[used_++];
  }
  // The next kBlock numbers, at the start or after a whole block; valid until the next call.
  const float* next_block() noexcept {
    fill();
    used_ = kBlock;
    return numbers_.data();
  }

 private:
  void fill() noexcept;

  std::uint32_t key_[2];
  std::uint32_t counter_ = 0;  // of the generator's next block
  std::size_t used_ = kBlock;
  alignas(32) std::array<float, kBlock> numbers_;
};

}  // namespace stoker::transform
