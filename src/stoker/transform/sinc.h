// Change of sample rate by a windowed sinc, as torchaudio.functional.resample does by default: six zero crossings on
// each side, cut-off at 0.99 of the lower Nyquist rate, Hann window, silence beyond both ends. Tables are in double
// precision, sums in float32 in a fixed order, so that every machine gives the same numbers. Pure; a table is safe from
// any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker::transform {

struct SincTable {
  std::uint32_t from = 1, to = 1;       // the two rates over their greatest common divisor; `to` phases
  std::uint32_t taps = 0;               // per phase, a multiple of 8
  const std::int32_t* first = nullptr;  // per phase: source frame of the first tap, relative to from * (frame / to)
  const float* weights = nullptr;       // [to][taps]
};

// Sizes of a table; `usable` is false when the rates share so little that it would take more than 64 MiB.
struct SincSize {
  std::uint32_t from = 1, to = 1, taps = 0;
  bool usable = false;
};
SincSize sinc_size(std::uint32_t from_hz, std::uint32_t to_hz) noexcept;

// Fills `first` (size.to) and `weights` (size.to * size.taps).
SincTable make_sinc(const SincSize& size, std::int32_t* first, float* weights) noexcept;

std::uint64_t resampled_frames(std::uint64_t frames, std::uint32_t from_hz, std::uint32_t to_hz) noexcept;

// Output frames [0, count) of audio of `frames` frames.
void resample(const SincTable& table, const float* source, std::uint64_t frames, float* into,
              std::uint64_t count) noexcept;

}  // namespace stoker::transform
