#include "stoker/transform/mel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "stoker/transform/power_of_ten.h"
#include "stoker/transform/take.h"
#include "stoker/transform/wide.h"

namespace stoker::transform {
namespace {

// Float32 in torchaudio's order of operations, so that the bands are its bands.
float to_mel(double hz, MelScale scale) noexcept {
  if (scale == MelScale::htk) return static_cast<float>(2595.0 * std::log10(1.0 + hz / 700.0));
  const double step = std::log(6.4) / 27.0;
  return static_cast<float>(hz < 1000 ? hz * 3 / 200 : 15 + std::log(hz / 1000.0) / step);
}

float to_hz(float mel, MelScale scale) noexcept {
  if (scale == MelScale::htk) return 700.0F * (power_of_ten(mel / 2595.0F) - 1.0F);
  if (mel < 15.0F) return 200.0F / 3 * mel;
  return 1000.0F * std::exp(static_cast<float>(std::log(6.4) / 27.0) * (mel - 15.0F));
}

// torch.linspace: one rounding for each value. Narrow bands are a few units in the last place wide, so that a second
// one changes their weights.
std::vector<float> evenly(float from, float to, std::uint32_t count) {
  std::vector<float> values(count);
  const float step = (to - from) / static_cast<float>(count - 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    values[i] = i < count / 2 ? std::fma(step, static_cast<float>(i), from)
                              : std::fma(-step, static_cast<float>(count - 1 - i), to);
  }
  return values;
}

using MelLanes = float __attribute__((vector_size(32), may_alias));
using MelWords = std::int32_t __attribute__((vector_size(32)));

// Eight frames, hop apart, times the window, to lanes.
struct WindowKernel {
  // Rows to columns, of a square of eight by eight.
  STOKER_KERNEL void transpose(MelLanes (&r)[8]) {
    MelLanes t[8];
#define STOKER_PAIR(i)                                                      \
  t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13); \
  t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15)
    STOKER_PAIR(0);
    STOKER_PAIR(2);
    STOKER_PAIR(4);
    STOKER_PAIR(6);
#undef STOKER_PAIR
#define STOKER_FOUR(i, k)                                                                   \
  r[i + 2 * k] = __builtin_shufflevector(t[i + k], t[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13); \
  r[i + 2 * k + 1] = __builtin_shufflevector(t[i + k], t[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15)
    STOKER_FOUR(0, 0);
    STOKER_FOUR(0, 1);
    STOKER_FOUR(4, 0);
    STOKER_FOUR(4, 1);
#undef STOKER_FOUR
#define STOKER_HALVES(i)                                                    \
  t[i] = __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11); \
  t[i + 4] = __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15)
    STOKER_HALVES(0);
    STOKER_HALVES(1);
    STOKER_HALVES(2);
    STOKER_HALVES(3);
#undef STOKER_HALVES
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) r[i] = t[i];
  }

  STOKER_KERNEL void run(const float* const* frames, const float* window, std::uint32_t count, float* into,
                         std::size_t sample_floats) {
    std::uint32_t n = 0;
    for (; n + 8 <= count; n += 8) {
      MelLanes r[8], w;
      std::memcpy(&w, window + n, sizeof w);
#pragma GCC unroll 8
      for (int l = 0; l < 8; ++l) {
        std::memcpy(&r[l], frames[l] + n, sizeof r[l]);
        r[l] *= w;
      }
      transpose(r);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        std::memcpy(into + (n + static_cast<std::uint32_t>(i)) * sample_floats, &r[i], sizeof r[i]);
      }
    }
    for (; n < count; ++n) {
      for (int l = 0; l < 8; ++l) into[n * sample_floats + static_cast<std::size_t>(l)] = frames[l][n] * window[n];
    }
  }
};

// The logarithm of eight positive normal numbers, to about one unit in the last place: the exponent, and a polynomial
// (Cephes logf).
STOKER_KERNEL void take_log(MelLanes& x) {
  const auto bits = reinterpret_cast<MelWords>(x);
  MelWords exponent = (bits >> 23) - 126;
  auto m = reinterpret_cast<MelLanes>((bits & 0x007FFFFF) | 0x3F000000);  // in [0.5, 1)
  const MelWords is_small = m < 0.707106781186547524F;                    // -1 where it is
  exponent += is_small;
  m = m + reinterpret_cast<MelLanes>(reinterpret_cast<MelWords>(m) & is_small) - 1.0F;
  const MelLanes e = __builtin_convertvector(exponent, MelLanes), z = m * m;
  MelLanes y = m * 7.0376836292e-2F - 1.1514610310e-1F;
  y = y * m + 1.1676998740e-1F;
  y = y * m - 1.2420140846e-1F;
  y = y * m + 1.4249322787e-1F;
  y = y * m - 1.6668057665e-1F;
  y = y * m + 2.0000714765e-1F;
  y = y * m - 2.4999993993e-1F;
  y = y * m + 3.3333331174e-1F;
  y = y * m * z;
  y += e * -2.12194440e-4F;
  y -= z * 0.5F;
  x = m + y + e * 0.693359375F;
}

// Does `act` to eight values after another; behind the end there are ones.
template <typename Act>
STOKER_KERNEL void over_lanes(float* row, std::uint64_t count, const Act& act) {
  for (std::uint64_t i = 0; i < count; i += kLanes) {
    const std::size_t bytes = std::min<std::uint64_t>(kLanes, count - i) * sizeof(float);
    MelLanes x = MelLanes{} + 1.0F;
    if (bytes == sizeof x) {
      std::memcpy(&x, row + i, sizeof x);
      act(x);
      std::memcpy(row + i, &x, sizeof x);
    } else {
      std::memcpy(&x, row + i, bytes);
      act(x);
      std::memcpy(row + i, &x, bytes);
    }
  }
}

struct ToDecibel {
  float factor;
  __attribute__((always_inline)) void operator()(MelLanes& x) const {
    const MelLanes least = MelLanes{} + 1e-10F;
    x = x > least ? x : least;
    take_log(x);
    x *= factor;
  }
};
struct ToLog {
  float offset;
  __attribute__((always_inline)) void operator()(MelLanes& x) const {
    x += offset;
    take_log(x);
  }
};
struct RaiseTo {
  float value;
  __attribute__((always_inline)) void operator()(MelLanes& x) const {
    const MelLanes least = MelLanes{} + value;
    x = x > least ? x : least;
  }
};

template <typename Act>
struct RowKernel {
  STOKER_KERNEL void run(float* row, std::uint64_t count, Act act) { over_lanes(row, count, act); }
};

struct LargestKernel {
  STOKER_KERNEL void run(const float* row, std::uint64_t count, float* largest) {
    MelLanes most = MelLanes{} + *largest;
    std::uint64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      MelLanes x;
      std::memcpy(&x, row + i, sizeof x);
      most = x > most ? x : most;
    }
    for (; i < count; ++i) *largest = std::max(*largest, row[i]);
    for (std::size_t l = 0; l < kLanes; ++l) *largest = std::max(*largest, most[l]);
  }
};

struct CosinesKernel {
  STOKER_KERNEL void run(const float* weights, std::uint32_t bands, const float* from, std::size_t stride,
                         std::uint64_t steps, float* into) {
    std::fill_n(into, steps, 0.0F);
    for (std::uint32_t b = 0; b < bands; ++b) {
      const float weight = weights[b];
      const float* const row = from + b * stride;
      for (std::uint64_t i = 0; i < steps; ++i) into[i] += weight * row[i];
    }
  }
};

}  // namespace

// The bands of eight steps in time.
struct BandsKernel {
  STOKER_KERNEL void run(const Mel* mel, const float* power, float* into, std::size_t stride, std::size_t count) {
    const auto* const bins = reinterpret_cast<const MelLanes*>(power);
    for (const Mel::Band& band : mel->bands_) {
      MelLanes sum{};
      const float* const weights = mel->weights_.data() + band.weights;
      for (std::uint32_t k = 0; k < band.count; ++k) sum += bins[band.first + k] * weights[k];
      if (count == kLanes) {
        std::memcpy(into, &sum, sizeof sum);
      } else {
        std::memcpy(into, &sum, count * sizeof(float));
      }
      into += stride;
    }
  }
};

Mel::Mel(const MelSpectrogram& op) : op_(op), fft_(op.n_fft) {
  if (op_.win_length == 0) op_.win_length = op_.n_fft;
  if (op_.hop_length == 0) op_.hop_length = std::max(1u, op_.win_length / 2);
  window_.assign(op_.n_fft, 0.0F);
  const std::uint32_t left = (op_.n_fft - op_.win_length) / 2;
  double energy = 0;
  for (std::uint32_t n = 0; n < op_.win_length; ++n) {
    const double value = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * n / op_.win_length);
    window_[left + n] = static_cast<float>(value);
    energy += value * value;
  }
  if (op_.normalized) {
    for (float& value : window_) value = static_cast<float>(value / std::sqrt(energy));
  }
  make_bands();
}

void Mel::make_bands() {
  const double f_max = op_.f_max > 0 ? op_.f_max : op_.sample_rate / 2;
  const std::vector<float> bins = evenly(0, static_cast<float>(op_.sample_rate / 2), fft_.bins());
  std::vector<float> points = evenly(to_mel(op_.f_min, op_.mel_scale), to_mel(f_max, op_.mel_scale), op_.n_mels + 2);
  for (float& point : points) point = to_hz(point, op_.mel_scale);
  for (std::uint32_t b = 0; b < op_.n_mels; ++b) {
    const float low = points[b], middle = points[b + 1], high = points[b + 2];
    const float scale = op_.norm == MelNorm::slaney ? 2.0F / (high - low) : 1.0F;
    Band band{0, 0, weights_.size()};
    for (std::uint32_t k = 0; k < fft_.bins(); ++k) {
      const float up = (bins[k] - low) / (middle - low), down = (high - bins[k]) / (high - middle);
      const float weight = std::max(0.0F, std::min(up, down));
      if (weight <= 0 && band.count == 0) continue;
      if (weight <= 0) break;
      if (band.count++ == 0) band.first = k;
      weights_.push_back(weight * scale);
    }
    bands_.push_back(band);
  }
}

std::uint64_t Mel::padded(std::uint64_t frames) const noexcept {
  return frames + 2 * op_.pad + 2 * margin();
}

std::uint64_t Mel::least_frames() const noexcept {
  const std::uint64_t pads = 2 * std::uint64_t{op_.pad};
  const std::uint64_t least = op_.center ? (op_.pad_mode == Edge::reflect ? margin() + 1 : 1) : op_.n_fft;
  return least > pads ? least - pads : 1;
}

std::uint64_t Mel::steps(std::uint64_t frames) const noexcept {
  const std::uint64_t all = padded(frames);
  return frames < least_frames() || all < op_.n_fft ? 0 : 1 + (all - op_.n_fft) / op_.hop_length;
}

std::uint64_t Mel::steps_until(std::uint64_t frames) const noexcept {
  const std::uint64_t all = padded(frames);
  return frames == 0 || all < op_.n_fft ? 0 : 1 + (all - op_.n_fft) / op_.hop_length;
}

std::uint64_t Mel::working_bytes(std::uint64_t frames) const noexcept {
  return Scratch::rounded(padded(frames) * sizeof(float)) + 2 * Scratch::rounded(fft_.buffer_floats() * sizeof(float)) +
         Scratch::rounded(fft_.bins() * kLanes * sizeof(float));
}

const float* Mel::pad(const float* wave, std::uint64_t frames, Scratch& scratch) const noexcept {
  if (margin() + op_.pad == 0) return wave;
  float* const all = take<float>(scratch, padded(frames));
  if (all == nullptr) return nullptr;
  const std::uint64_t edge = margin(), length = frames + 2 * op_.pad;
  float* const middle = all + edge;
  std::fill_n(middle, op_.pad, 0.0F);
  std::copy_n(wave, frames, middle + op_.pad);
  std::fill_n(middle + op_.pad + frames, op_.pad, 0.0F);
  for (std::uint64_t i = 1; i <= edge; ++i) {
    const std::uint64_t mirrored = op_.pad_mode == Edge::reflect ? i : 0;
    const bool is_zero = op_.pad_mode == Edge::constant;
    middle[-static_cast<std::ptrdiff_t>(i)] = is_zero ? 0.0F : middle[mirrored];
    middle[length - 1 + i] = is_zero ? 0.0F : middle[length - 1 - mirrored];
  }
  return all;
}

Result Mel::apply(const float* wave, std::uint64_t frames, float* into, std::size_t stride,
                  Scratch& scratch) const noexcept {
  const std::uint64_t count = steps(frames);
  if (count == 0) return failed(Code::mismatch, "audio is shorter than its spectrogram needs: add PadOrTrim(frames)");
  const Scratch::Mark mark = scratch.mark();
  const float* const all = pad(wave, frames, scratch);
  float* const input = take<float>(scratch, fft_.buffer_floats());
  float* const work = take<float>(scratch, fft_.buffer_floats());
  float* const power = take<float>(scratch, fft_.bins() * kLanes);
  if (all == nullptr || input == nullptr || work == nullptr || power == nullptr) return kNoRoom;
  const std::size_t sample_floats = fft_.place(1);
  for (std::uint64_t step = 0; step < count; step += kLanes) {
    const float* rows[kLanes];
    for (std::size_t l = 0; l < kLanes; ++l) rows[l] = all + std::min(step + l, count - 1) * op_.hop_length;
    if (op_.n_fft % 2 != 0) std::fill_n(input, fft_.buffer_floats(), 0.0F);
    run_kernel<WindowKernel>(static_cast<const float* const*>(rows), window_.data(), op_.n_fft, input, sample_floats);
    fft_.power(input, work, power);
    if (op_.power != 2) {
      for (std::size_t i = 0; i < fft_.bins() * kLanes; ++i) {
        power[i] = op_.power == 1 ? std::sqrt(power[i]) : std::pow(power[i], static_cast<float>(op_.power / 2));
      }
    }
    run_kernel<BandsKernel>(this, static_cast<const float*>(power), into + step, stride,
                            static_cast<std::size_t>(std::min<std::uint64_t>(kLanes, count - step)));
  }
  scratch.rewind(mark);
  return {};
}

void to_decibel(const Spectrogram& of, float multiplier, double top_db) noexcept {
  const ToDecibel act{multiplier * 0.43429448190325182765F};
  for (std::uint64_t r = 0; r < of.rows; ++r) run_kernel<RowKernel<ToDecibel>>(of.row(r), of.steps, act);
  if (top_db < 0) return;
  float largest = -1e30F;
  for (std::uint64_t r = 0; r < of.rows; ++r) {
    run_kernel<LargestKernel>(static_cast<const float*>(of.row(r)), of.steps, &largest);
  }
  const RaiseTo raise{largest - static_cast<float>(top_db)};
  for (std::uint64_t r = 0; r < of.rows; ++r) run_kernel<RowKernel<RaiseTo>>(of.row(r), of.steps, raise);
}

void to_log(const Spectrogram& of, float offset) noexcept {
  for (std::uint64_t r = 0; r < of.rows; ++r) run_kernel<RowKernel<ToLog>>(of.row(r), of.steps, ToLog{offset});
}

Cosines::Cosines(std::uint32_t count, std::uint32_t bands, DctNorm norm) : count_(count), bands_(bands) {
  for (std::uint32_t k = 0; k < count; ++k) {
    const double scale = norm == DctNorm::none ? 2 : std::sqrt((k == 0 ? 1.0 : 2.0) / bands);
    for (std::uint32_t n = 0; n < bands; ++n) {
      weights_.push_back(static_cast<float>(scale * std::cos(std::numbers::pi / bands * (n + 0.5) * k)));
    }
  }
}

void Cosines::apply(const Spectrogram& from, const Spectrogram& into) const noexcept {
  for (std::uint32_t k = 0; k < count_; ++k) {
    run_kernel<CosinesKernel>(weights_.data() + std::size_t{k} * bands_, bands_, static_cast<const float*>(from.data),
                              from.stride, from.steps, into.row(k));
  }
}

}  // namespace stoker::transform
