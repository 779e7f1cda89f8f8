#include "stoker/transform/power_of_ten.h"

#include <cmath>
#include <initializer_list>

// The method and the constants are those of powf in Sleef (Boost Software License), in its variant with fused
// multiplication and addition, which torch uses: exp(x * log(10)), with the product in a pair of floats.
namespace stoker::transform {
namespace {

struct FloatPair {  // their sum
  float high, low;
};

constexpr FloatPair kLog10{2.3025851F, -3.1974253e-08F};  // what Sleef's own logarithm gives for 10
constexpr float kPerLog2 = 1.442695040888963407F, kLog2High = 0.693145751953125F, kLog2Low = 1.428606765330187045e-06F;

FloatPair add(FloatPair x, float y) noexcept {
  const float sum = x.high + y, part = sum - x.high;
  return {sum, ((x.high - (sum - part)) + (y - part)) + x.low};
}

FloatPair times(FloatPair x, float y) noexcept {
  const float product = x.high * y;
  return {product, std::fma(x.low, y, std::fma(x.high, y, -product))};
}

FloatPair square(FloatPair x) noexcept {
  const float product = x.high * x.high;
  return {product, std::fma(x.high + x.high, x.low, std::fma(x.high, x.high, -product))};
}

}  // namespace

float power_of_ten(float x) noexcept {
  const FloatPair exponent = times(kLog10, x);
  const float twos = std::rint((exponent.high + exponent.low) * kPerLog2);
  const FloatPair rest = add(add(exponent, twos * -kLog2High), twos * -kLog2Low);
  const float high = rest.high + rest.low;
  const FloatPair s{high, (rest.high - high) + rest.low};
  float u = 0.00136324646882712841033936F;
  for (const float next : {0.00836596917361021041870117F, 0.0416710823774337768554688F, 0.166665524244308471679688F,
                           0.499999850988388061523438F}) {
    u = std::fma(u, s.high, next);
  }
  const FloatPair tail = times(square(s), u);
  const float sum = s.high + tail.high;
  const FloatPair more{sum, (((s.high - sum) + tail.high) + s.low) + tail.low};
  const float whole = 1.0F + more.high;
  const float low = ((1.0F - whole) + more.high) + more.low;
  return std::ldexp(whole + low, static_cast<int>(twos));
}

}  // namespace stoker::transform
