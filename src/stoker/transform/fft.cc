// Stockham's algorithm, decimation in frequency: each stage reads one buffer in order and writes the other in order, so
// nothing is reversed at the end. Two complex points share an even real length.
#include "stoker/transform/fft.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "stoker/transform/wide.h"

namespace stoker::transform {
namespace {

// Eight floats. A function never takes or gives one by value: without AVX that would change how it is called.
using Lanes = float __attribute__((vector_size(32), may_alias));

struct Complex {
  Lanes re, im;
};

void push_root(std::vector<float>& into, double turn) {
  const double angle = -2 * std::numbers::pi * turn;
  into.push_back(static_cast<float>(std::cos(angle)));
  into.push_back(static_cast<float>(std::sin(angle)));
}

STOKER_KERNEL void multiply(Complex& a, const float* root) {
  const float c = root[0], s = root[1];
  const Lanes re = a.re * c - a.im * s;
  a.im = a.re * s + a.im * c;
  a.re = re;
}

}  // namespace

// One stage for all `step` interleaved transforms of length radix * rest: x -> y.
struct FftKernel {
  using Stage = RealFft::Stage;

  STOKER_KERNEL void radix2(const Complex* x, Complex* y, std::uint32_t rest, std::uint32_t step,
                            const float* twiddle) {
    for (std::uint32_t k = 0; k < rest; ++k, twiddle += 2) {
      for (std::uint32_t q = 0; q < step; ++q) {
        const Complex &a = x[q + step * k], &b = x[q + step * (k + rest)];
        Complex sum{a.re + b.re, a.im + b.im}, difference{a.re - b.re, a.im - b.im};
        multiply(difference, twiddle);
        y[q + step * 2 * k] = sum;
        y[q + step * (2 * k + 1)] = difference;
      }
    }
  }

  STOKER_KERNEL void radix3(const Complex* x, Complex* y, std::uint32_t rest, std::uint32_t step,
                            const float* twiddle) {
    const float sine = 0.866025403784438647F;
    for (std::uint32_t k = 0; k < rest; ++k, twiddle += 4) {
      for (std::uint32_t q = 0; q < step; ++q) {
        const Complex &a = x[q + step * k], &b = x[q + step * (k + rest)], &c = x[q + step * (k + 2 * rest)];
        const Complex sum{b.re + c.re, b.im + c.im}, difference{(b.re - c.re) * sine, (b.im - c.im) * sine};
        const Complex middle{a.re - sum.re * 0.5F, a.im - sum.im * 0.5F};
        Complex first{middle.re + difference.im, middle.im - difference.re};
        Complex second{middle.re - difference.im, middle.im + difference.re};
        multiply(first, twiddle);
        multiply(second, twiddle + 2);
        Complex* const into = y + q + step * 3 * k;
        into[0] = {a.re + sum.re, a.im + sum.im};
        into[step] = first;
        into[2 * step] = second;
      }
    }
  }

  STOKER_KERNEL void radix4(const Complex* x, Complex* y, std::uint32_t rest, std::uint32_t step,
                            const float* twiddle) {
    for (std::uint32_t k = 0; k < rest; ++k, twiddle += 6) {
      for (std::uint32_t q = 0; q < step; ++q) {
        const Complex &a = x[q + step * k], &b = x[q + step * (k + rest)], &c = x[q + step * (k + 2 * rest)],
                      &d = x[q + step * (k + 3 * rest)];
        const Complex ac{a.re + c.re, a.im + c.im}, a_c{a.re - c.re, a.im - c.im};
        const Complex bd{b.re + d.re, b.im + d.im}, b_d{b.re - d.re, b.im - d.im};
        Complex first{a_c.re + b_d.im, a_c.im - b_d.re};
        Complex second{ac.re - bd.re, ac.im - bd.im};
        Complex third{a_c.re - b_d.im, a_c.im + b_d.re};
        multiply(first, twiddle);
        multiply(second, twiddle + 2);
        multiply(third, twiddle + 4);
        Complex* const into = y + q + step * 4 * k;
        into[0] = {ac.re + bd.re, ac.im + bd.im};
        into[step] = first;
        into[2 * step] = second;
        into[3 * step] = third;
      }
    }
  }

  STOKER_KERNEL void radix5(const Complex* x, Complex* y, std::uint32_t rest, std::uint32_t step,
                            const float* twiddle) {
    const float c1 = 0.309016994374947424F, c2 = -0.809016994374947424F;
    const float s1 = 0.951056516295153572F, s2 = 0.587785252292473129F;
    for (std::uint32_t k = 0; k < rest; ++k, twiddle += 8) {
      for (std::uint32_t q = 0; q < step; ++q) {
        const Complex &a = x[q + step * k], &b = x[q + step * (k + rest)], &c = x[q + step * (k + 2 * rest)],
                      &d = x[q + step * (k + 3 * rest)], &e = x[q + step * (k + 4 * rest)];
        const Complex be{b.re + e.re, b.im + e.im}, b_e{b.re - e.re, b.im - e.im};
        const Complex cd{c.re + d.re, c.im + d.im}, c_d{c.re - d.re, c.im - d.im};
        const Complex near{a.re + be.re * c1 + cd.re * c2, a.im + be.im * c1 + cd.im * c2};
        const Complex far{a.re + be.re * c2 + cd.re * c1, a.im + be.im * c2 + cd.im * c1};
        const Complex near_turn{b_e.re * s1 + c_d.re * s2, b_e.im * s1 + c_d.im * s2};
        const Complex far_turn{b_e.re * s2 - c_d.re * s1, b_e.im * s2 - c_d.im * s1};
        Complex first{near.re + near_turn.im, near.im - near_turn.re};
        Complex second{far.re + far_turn.im, far.im - far_turn.re};
        Complex third{far.re - far_turn.im, far.im + far_turn.re};
        Complex fourth{near.re - near_turn.im, near.im + near_turn.re};
        multiply(first, twiddle);
        multiply(second, twiddle + 2);
        multiply(third, twiddle + 4);
        multiply(fourth, twiddle + 6);
        Complex* const into = y + q + step * 5 * k;
        into[0] = {a.re + be.re + cd.re, a.im + be.im + cd.im};
        into[step] = first;
        into[2 * step] = second;
        into[3 * step] = third;
        into[4 * step] = fourth;
      }
    }
  }

  // Any other prime, by the definition of the transform.
  STOKER_KERNEL void any_radix(const Complex* x, Complex* y, const Stage& stage, std::uint32_t step,
                               const float* twiddle, const float* roots) {
    const std::uint32_t radix = stage.radix, rest = stage.rest;
    for (std::uint32_t k = 0; k < rest; ++k, twiddle += 2 * (radix - 1)) {
      for (std::uint32_t q = 0; q < step; ++q) {
        for (std::uint32_t j = 0; j < radix; ++j) {
          Complex sum = x[q + step * k];
          for (std::uint32_t i = 1, turn = j; i < radix; ++i, turn = turn + j < radix ? turn + j : turn + j - radix) {
            Complex term = x[q + step * (k + rest * i)];
            multiply(term, roots + 2 * turn);
            sum.re += term.re, sum.im += term.im;
          }
          if (j != 0) multiply(sum, twiddle + 2 * (j - 1));
          y[q + step * (radix * k + j)] = sum;
        }
      }
    }
  }

  STOKER_KERNEL void run(const RealFft* fft, float* input, float* work, float* power) {
    auto* x = reinterpret_cast<Complex*>(input);
    auto* y = reinterpret_cast<Complex*>(work);
    std::uint32_t step = 1;
    for (const Stage& stage : fft->stages_) {
      const float* const twiddle = fft->twiddles_.data() + stage.twiddles;
      switch (stage.radix) {
        case 2:
          radix2(x, y, stage.rest, step, twiddle);
          break;
        case 3:
          radix3(x, y, stage.rest, step, twiddle);
          break;
        case 4:
          radix4(x, y, stage.rest, step, twiddle);
          break;
        case 5:
          radix5(x, y, stage.rest, step, twiddle);
          break;
        default:
          any_radix(x, y, stage, step, twiddle, fft->twiddles_.data() + stage.roots);
      }
      step *= stage.radix;
      std::swap(x, y);
    }
    auto* const out = reinterpret_cast<Lanes*>(power);
    const std::uint32_t points = fft->points_, bins = fft->bins();
    if (fft->size_ % 2 != 0) {
      for (std::uint32_t k = 0; k < bins; ++k) out[k] = x[k].re * x[k].re + x[k].im * x[k].im;
      return;
    }
    const float* turn = fft->turns_.data();
    for (std::uint32_t k = 0; k < bins; ++k, turn += 2) {
      const Complex &a = x[k == points ? 0 : k], &b = x[k == 0 ? 0 : points - k];
      const Lanes even_re = (a.re + b.re) * 0.5F, even_im = (a.im - b.im) * 0.5F;
      Complex odd{(a.im + b.im) * 0.5F, (b.re - a.re) * 0.5F};
      multiply(odd, turn);
      const Lanes re = even_re + odd.re, im = even_im + odd.im;
      out[k] = re * re + im * im;
    }
  }
};

RealFft::RealFft(std::uint32_t size) : size_(size), points_(size % 2 == 0 ? size / 2 : size) {
  std::uint32_t length = points_;
  const auto add = [&](std::uint32_t radix) {
    const std::uint32_t rest = length / radix;
    Stage stage{radix, rest, twiddles_.size(), 0};
    for (std::uint32_t k = 0; k < rest; ++k) {
      for (std::uint32_t j = 1; j < radix; ++j) {
        push_root(twiddles_, static_cast<double>(std::uint64_t{j} * k % length) / length);
      }
    }
    if (radix > 5) {
      stage.roots = twiddles_.size();
      for (std::uint32_t j = 0; j < radix; ++j) push_root(twiddles_, static_cast<double>(j) / radix);
    }
    stages_.push_back(stage);
    length = rest;
  };
  for (const std::uint32_t radix : {4u, 2u, 3u, 5u}) {
    while (length % radix == 0) add(radix);
  }
  std::uint32_t radix = 7;
  while (length > 1) {
    if (length % radix == 0) {
      add(radix);
    } else {
      radix += 2;
    }
  }
  for (std::uint32_t k = 0; k <= points_; ++k) push_root(turns_, static_cast<double>(k) / size_);
}

void RealFft::power(float* input, float* work, float* power) const noexcept {
  run_kernel<FftKernel>(this, input, work, power);
}

}  // namespace stoker::transform
