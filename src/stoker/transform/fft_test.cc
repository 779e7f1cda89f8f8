#include "stoker/transform/fft.h"

#include <cmath>
#include <complex>
#include <numbers>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/base/scratch.h"
#include "stoker/transform/take.h"
#include "stoker/transform/without_wide_kernels_test.h"

namespace stoker::transform {
namespace {

std::vector<double> noise_of(std::uint32_t size, std::uint32_t lane) {
  Random random(7, size, lane);
  std::vector<double> values(size);
  for (double& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

// By the definition of the transform, in double precision.
double power_of(const std::vector<double>& signal, std::uint32_t bin) {
  std::complex<double> sum = 0;
  for (std::size_t n = 0; n < signal.size(); ++n) {
    const double turn = static_cast<double>(bin * n % signal.size()) / static_cast<double>(signal.size());
    sum += std::polar(signal[n], -2 * std::numbers::pi * turn);
  }
  return std::norm(sum);
}

std::vector<float> powers_of(std::uint32_t size) {
  const RealFft fft(size);
  Scratch scratch;
  float* const input = take<float>(scratch, fft.buffer_floats());
  float* const work = take<float>(scratch, fft.buffer_floats());
  std::fill_n(input, fft.buffer_floats(), 0.0F);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::vector<double> signal = noise_of(size, lane);
    for (std::uint32_t n = 0; n < size; ++n) input[fft.place(n) + lane] = static_cast<float>(signal[n]);
  }
  float* const power = take<float>(scratch, fft.bins() * kLanes);
  fft.power(input, work, power);
  return {power, power + fft.bins() * kLanes};
}

TEST(Fft, OfEveryLengthIsTheTransformByDefinition) {
  for (const std::uint32_t size : {2,  3,  4,  5,  6,   7,   8,   9,   10,  11,  14,  15,  16,   25,   27,
                                   30, 64, 77, 97, 105, 194, 200, 256, 320, 400, 480, 512, 1000, 1023, 1024}) {
    const std::vector<float> powers = powers_of(size);
    for (std::uint32_t lane = 0; lane < kLanes; lane += 7) {
      const std::vector<double> signal = noise_of(size, lane);
      for (std::uint32_t bin = 0; bin <= size / 2; bin += 1 + size / 64) {
        ASSERT_NEAR(powers[bin * kLanes + lane], power_of(signal, bin), 2e-6 * size) << size << " bin " << bin;
      }
    }
  }
}

TEST(Fft, IsTheSameWithAndWithoutWideKernels) {
  for (const std::uint32_t size : {7u, 30u, 400u, 512u}) {
    const std::vector<float> wide = powers_of(size);
    const WithoutWideKernels plain;
    ASSERT_EQ(wide, powers_of(size)) << size;
  }
}

}  // namespace
}  // namespace stoker::transform
