// The discrete Fourier transform of eight real signals at once: one lane of a vector each, so that every length runs at
// full width. Any length from 2 on; products of 2, 3, 4 and 5 are the fast ones. Tables are computed in double
// precision, the rest in float32 in a fixed order, so that every machine gives the same numbers. Immutable; safe from
// any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker::transform {

inline constexpr std::size_t kLanes = 8;

class RealFft {
 public:
  explicit RealFft(std::uint32_t size);  // allocates; may throw std::bad_alloc

  std::uint32_t size() const noexcept { return size_; }
  std::uint32_t bins() const noexcept { return size_ / 2 + 1; }
  // Floats that `input` and `work` of power() have.
  std::size_t buffer_floats() const noexcept { return std::size_t{points_} * 2 * kLanes; }

  // Where sample n of a signal goes in `input`, before its lane is added. The odd samples of an even length are
  // imaginary parts.
  std::size_t place(std::uint32_t n) const noexcept {
    return size_ % 2 == 0 ? std::size_t{n} * kLanes : std::size_t{n} * 2 * kLanes;
  }

  // The squared magnitude of every bin of eight signals: power[bin][lane]. `input` is overwritten. All are 32-byte
  // aligned; `power` has bins() * kLanes floats, and may not overlap the others. An odd length needs zeros between its
  // samples.
  void power(float* input, float* work, float* power) const noexcept;

 private:
  friend struct FftKernel;
  struct Stage {
    std::uint32_t radix, rest;  // of the length before it: radix * rest
    std::size_t twiddles;       // place in twiddles_: [rest][radix - 1] pairs
    std::size_t roots;          // of a radix without a kernel of its own: place of `radix` pairs
  };

  std::uint32_t size_, points_;  // of the complex transform inside
  std::vector<Stage> stages_;
  std::vector<float> twiddles_;
  std::vector<float> turns_;  // e^(-2 pi i k / size), k = 0 ... points: cosine and sine
};

}  // namespace stoker::transform
