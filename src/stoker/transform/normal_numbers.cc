#include "stoker/transform/normal_numbers.h"

#include <bit>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "stoker/base/hash.h"
#include "stoker/transform/wide.h"

namespace stoker::transform {
namespace {

constexpr std::size_t kCounters = NormalNumbers::kBlock / 4;  // one block of the generator is four words
constexpr std::size_t kPairs = NormalNumbers::kBlock / 2;

// std::sqrt sets errno, which keeps it from becoming a vector instruction.
[[gnu::always_inline]] inline void roots(float* values) noexcept {
#if defined(__x86_64__)
  for (std::size_t i = 0; i < kPairs; i += 4) _mm_store_ps(values + i, _mm_sqrt_ps(_mm_load_ps(values + i)));
#else
  for (std::size_t i = 0; i < kPairs; ++i) values[i] = std::sqrt(values[i]);
#endif
}

// -2 log((word + 1) / 2^32), within 1e-10 of itself. Sums of atanh's series, in double: a float cannot tell words near
// 2^32 apart.
[[gnu::always_inline]] inline float squared_radius(std::uint32_t word) noexcept {
  constexpr std::uint64_t kRootOfHalf = 0x3FE6A09E00000000;  // its first bits, as a double
  constexpr std::uint64_t kMore = std::uint64_t{64} << 52;   // so that exponents stay above 0
  const double u = (static_cast<double>(static_cast<std::int32_t>(word ^ 0x80000000U)) + 2147483649.0) * 0x1p-32;
  const auto bits = std::bit_cast<std::uint64_t>(u);
  const std::uint64_t exponent = (bits - kRootOfHalf + kMore) >> 52;
  const double whole = std::bit_cast<double>(exponent | 0x4330000000000000U) - (0x1p52 + 64);
  const double f = std::bit_cast<double>(bits + kMore - (exponent << 52)) - 1;
  const double s = f / (2 + f), z = s * s;
  const double series =
      1 + z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13))))));
  return static_cast<float>(-2 * (whole * 0.6931471805599453 + 2 * s * series));
}

struct DrawNormals {
  STOKER_KERNEL void run(std::uint32_t key_0, std::uint32_t key_1, std::uint32_t counter, float* into) noexcept {
    // philox() of base/random.h, kCounters at a time.
    std::uint32_t c0[kCounters], c1[kCounters], c2[kCounters], c3[kCounters];
    for (std::size_t i = 0; i < kCounters; ++i) {
      c0[i] = counter + static_cast<std::uint32_t>(i);
      c1[i] = c2[i] = c3[i] = 0;
    }
    for (int round = 0; round < 10; ++round) {
      for (std::size_t i = 0; i < kCounters; ++i) {
        const std::uint64_t a = std::uint64_t{0xD2511F53} * c0[i], b = std::uint64_t{0xCD9E8D57} * c2[i];
        c0[i] = static_cast<std::uint32_t>(b >> 32) ^ c1[i] ^ key_0;
        c2[i] = static_cast<std::uint32_t>(a >> 32) ^ c3[i] ^ key_1;
        c1[i] = static_cast<std::uint32_t>(b);
        c3[i] = static_cast<std::uint32_t>(a);
      }
      key_0 += 0x9E3779B9;
      key_1 += 0xBB67AE85;
    }
    alignas(32) float radius[kPairs], cosine[kPairs], sine[kPairs];
    for (std::size_t i = 0; i < kCounters; ++i) radius[i] = squared_radius(c0[i]);
    for (std::size_t i = 0; i < kCounters; ++i) radius[kCounters + i] = squared_radius(c2[i]);
    roots(radius);
    turn(c1, cosine, sine);
    turn(c3, cosine + kCounters, sine + kCounters);
    for (std::size_t i = 0; i < kCounters; ++i) {
      into[4 * i] = radius[i] * cosine[i];
      into[4 * i + 1] = radius[i] * sine[i];
      into[4 * i + 2] = radius[kCounters + i] * cosine[kCounters + i];
      into[4 * i + 3] = radius[kCounters + i] * sine[kCounters + i];
    }
  }

  // Cosine and sine of 2 pi word / 2^32: the nearest quarter, and polynomials (Cephes) of what is left.
  STOKER_KERNEL void turn(const std::uint32_t* words, float* cosine, float* sine) noexcept {
    for (std::size_t i = 0; i < kCounters; ++i) {
      const std::uint32_t quarter = (words[i] + 0x20000000U) >> 30;
      const float x =
          static_cast<float>(static_cast<std::int32_t>(words[i] - (quarter << 30))) * 1.4629180792671596e-9F;
      const float z = x * x;
      const float s = x + x * z * (-1.6666654611e-1F + z * (8.3321608736e-3F + z * -1.9515295891e-4F));
      const float c =
          1 - 0.5F * z + z * z * (4.166664568298827e-2F + z * (-1.388731625493765e-3F + z * 2.443315711809948e-5F));
      const std::uint32_t odd = 0U - (quarter & 1U);  // all bits, or none
      const auto s_bits = std::bit_cast<std::uint32_t>(s), c_bits = std::bit_cast<std::uint32_t>(c);
      const std::uint32_t of_cosine = (c_bits & ~odd) | (s_bits & odd), of_sine = (s_bits & ~odd) | (c_bits & odd);
      cosine[i] = std::bit_cast<float>(of_cosine ^ ((quarter + 1) >> 1 << 31));
      sine[i] = std::bit_cast<float>(of_sine ^ (quarter >> 1 << 31));
    }
  }
};

}  // namespace

NormalNumbers::NormalNumbers(std::uint64_t key) noexcept
    : key_{static_cast<std::uint32_t>(mix(key, 0)), static_cast<std::uint32_t>(mix(key, 0) >> 32)} {}

void NormalNumbers::fill() noexcept {
  run_kernel<DrawNormals>(key_[0], key_[1], counter_, numbers_.data());
  counter_ += static_cast<std::uint32_t>(kCounters);
  used_ = 0;
}

}  // namespace stoker::transform
