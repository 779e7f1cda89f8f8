// Counter-based random numbers (Philox4x32-10): a pure function of a key and a counter, so that a sample's
// augmentation depends on (seed, epoch, sample id) and on nothing else: not on threads, order, or what was drawn
// before.
#pragma once

#include <array>
#include <cstdint>

#include "stoker/base/hash.h"

namespace stoker {

// One block of Philox4x32-10 (Salmon et al., 2011).
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// A stream of numbers for one sample. Cheap to make (no state but a counter); not shared between threads.
class Random {
 public:
  // `stream` separates independent uses for one sample, such as the views of a multi-crop.
  constexpr Random(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample_id, std::uint32_t stream = 0) noexcept
      : key_{static_cast<std::uint32_t>(mix(seed, epoch)), static_cast<std::uint32_t>(mix(seed, epoch) >> 32)},
        counter_{0, stream, static_cast<std::uint32_t>(sample_id), static_cast<std::uint32_t>(sample_id >> 32)} {}

  constexpr std::uint32_t next() noexcept {
    if (used_ == 4) {
      block_ = philox(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_[used_++];
  }

  // In [0, 1), 32 bits of it.
  constexpr double uniform() noexcept { return next() * 0x1p-32; }
  constexpr double uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }
  // In [0, n), without bias worth naming (n < 2^32).
  constexpr std::uint32_t below(std::uint32_t n) noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{next()} * n) >> 32);
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  std::uint32_t used_ = 4;
};

}  // namespace stoker
