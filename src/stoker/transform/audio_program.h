// The operations on audio, compiled. Private to audio_*.cc. Immutable; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/dtype.h"
#include "stoker/base/random.h"
#include "stoker/transform/audio_plan.h"
#include "stoker/transform/mel.h"
#include "stoker/transform/sinc.h"

namespace stoker::transform {

// One operation that may draw, with the number of its random stream.
struct AudioStep {
  Op op;
  std::uint32_t stream = 0;

  Random random(const AudioChance& chance) const noexcept { return {chance.seed, chance.epoch, chance.id, stream}; }
};

// PadOrTrim or RandomTrim.
struct Trim {
  std::uint64_t frames = 0;  // 0: there is none
  bool is_random = false;
  AudioStep step;
  std::size_t after = 0;  // waveform operations that come before it; 0 where the order does not matter

  std::uint64_t first_of(std::uint64_t available, const AudioChance& chance) const noexcept;
};

// Rows of floats, one per channel.
struct Waveform {
  float* data = nullptr;
  std::uint32_t channels = 0;
  std::uint64_t frames = 0;
  std::size_t stride = 0;

  float* row(std::uint32_t c) const noexcept { return data + c * stride; }
};

struct AudioProgram {
  bool mono = false;
  std::uint32_t hz = 0;  // 0: as it is
  Trim trim;
  std::vector<AudioStep> waves;  // in order
  std::optional<Mel> mel;
  std::optional<Cosines> cosines;  // with MFCC
  bool log_mels = false;
  std::uint32_t bands = 1;         // rows per channel that leave
  std::vector<AudioStep> spectra;  // in order
  std::uint32_t channels = 1;      // that leave
  DType dtype = DType::f32;
  // For the first sample's rate; others are made when they come.
  std::vector<std::int32_t> first;
  std::vector<float> weights;
  SincTable table;

  static AudioProgram compile(const Ops& ops, const AudioInput& input, const OutputOptions& options);
  std::string describe() const;

  bool is_plain() const noexcept { return waves.empty() && !mel; }
  // Of the waveform, when it has gone through all operations.
  std::uint64_t length_of(std::uint64_t frames) const noexcept { return trim.frames != 0 ? trim.frames : frames; }
};

// Does one operation on the waveform, in place.
void apply_wave(const AudioStep& step, const Waveform& wave, const AudioChance& chance) noexcept;
// Does one operation on `channels` spectrograms of `bands` rows each, which follow one another.
void apply_spectrum(const AudioStep& step, const Spectrogram& all, std::uint32_t channels, std::uint32_t bands,
                    const AudioChance& chance) noexcept;

}  // namespace stoker::transform
