// Mel spectrograms as torchaudio.transforms.MelSpectrogram computes them: a windowed Fourier transform every hop, its
// power, and triangular bands on the mel scale. Immutable; safe from any thread; each thread brings its own Scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stoker/base/result.h"
#include "stoker/base/scratch.h"
#include "stoker/transform/audio_ops.h"
#include "stoker/transform/fft.h"

namespace stoker::transform {

class Mel {
 public:
  explicit Mel(const MelSpectrogram& op);  // one that check_op took; allocates its tables

  std::uint32_t bands() const noexcept { return op_.n_mels; }
  // Steps in time that `frames` frames give: 0 where they are too few for one.
  std::uint64_t steps(std::uint64_t frames) const noexcept;
  // The fewest frames of which a spectrogram can be made.
  std::uint64_t least_frames() const noexcept;
  // Steps that frames [0, frames) take part in, of audio that was padded to more.
  std::uint64_t steps_until(std::uint64_t frames) const noexcept;

  // Writes steps(frames) values to each of bands() rows, which lie `stride` floats apart.
  Result apply(const float* wave, std::uint64_t frames, float* into, std::size_t stride,
               Scratch& scratch) const noexcept;
  std::uint64_t working_bytes(std::uint64_t frames) const noexcept;  // at most what apply takes from the scratch

 private:
  struct Band {
    std::uint32_t first, count;  // bins
    std::size_t weights;         // place in weights_
  };

  std::uint64_t padded(std::uint64_t frames) const noexcept;
  std::uint64_t margin() const noexcept { return op_.center ? op_.n_fft / 2 : 0; }
  const float* pad(const float* wave, std::uint64_t frames, Scratch& scratch) const noexcept;
  void make_bands();

  friend struct BandsKernel;
  MelSpectrogram op_;
  RealFft fft_;
  std::vector<float> window_;  // n_fft values
  std::vector<Band> bands_;
  std::vector<float> weights_;
};

// ---- of spectrograms: `rows` rows of `steps` values, `stride` floats apart.
struct Spectrogram {
  float* data = nullptr;
  std::uint64_t rows = 0, steps = 0;
  std::size_t stride = 0;

  float* row(std::uint64_t r) const noexcept { return data + r * stride; }
};

// multiplier * log10(max(x, 1e-10)); values more than `top_db` below the largest are raised to that. Below 0: none.
void to_decibel(const Spectrogram& of, float multiplier, double top_db) noexcept;
void to_log(const Spectrogram& of, float offset) noexcept;  // log(x + offset)

// The discrete cosine transform of type 2, along the rows of a spectrogram.
class Cosines {
 public:
  Cosines(std::uint32_t count, std::uint32_t bands, DctNorm norm);
  // `count` rows from `bands` rows; they may not overlap.
  void apply(const Spectrogram& from, const Spectrogram& into) const noexcept;

 private:
  std::uint32_t count_, bands_;
  std::vector<float> weights_;  // [count][bands]
};

}  // namespace stoker::transform
