// What each operation does to a waveform or a spectrogram, with what it draws.
#include <algorithm>
#include <cmath>

#include "stoker/transform/audio_program.h"

namespace stoker::transform {
namespace {

void scale(const Waveform& wave, float factor) noexcept {
  for (std::uint32_t c = 0; c < wave.channels; ++c) {
    float* const row = wave.row(c);
    for (std::uint64_t i = 0; i < wave.frames; ++i) row[i] *= factor;
  }
}

void act(const Vol& op, const Waveform& wave, Random) noexcept {
  const double factor = op.type == GainType::amplitude ? op.gain
                        : op.type == GainType::power   ? std::sqrt(op.gain)
                                                       : std::pow(10.0, op.gain / 20);
  scale(wave, static_cast<float>(factor));
  for (std::uint32_t c = 0; c < wave.channels; ++c) {
    float* const row = wave.row(c);
    for (std::uint64_t i = 0; i < wave.frames; ++i) row[i] = std::clamp(row[i], -1.0F, 1.0F);
  }
}

void act(const Gain& op, const Waveform& wave, Random random) noexcept {
  if (random.uniform() >= op.p) return;
  scale(wave, static_cast<float>(std::pow(10.0, random.uniform(op.least_db, op.most_db) / 20)));
}

void act(const PolarityInversion& op, const Waveform& wave, Random random) noexcept {
  if (random.uniform() < op.p) scale(wave, -1.0F);
}

void act(const Shift& op, const Waveform& wave, Random random) noexcept {
  if (random.uniform() >= op.p || wave.frames == 0) return;
  const double share = random.uniform(op.least, op.most);
  const auto by = static_cast<std::int64_t>(std::nearbyint(share * static_cast<double>(wave.frames)));
  const auto length = static_cast<std::int64_t>(wave.frames);
  const std::int64_t turned = ((by % length) + length) % length;  // of a roll to later times
  for (std::uint32_t c = 0; c < wave.channels; ++c) {
    float* const row = wave.row(c);
    std::rotate(row, row + (length - turned), row + length);
    if (op.rollover) continue;
    if (by > 0) std::fill_n(row, std::min(by, length), 0.0F);
    if (by < 0) std::fill_n(row + length - std::min(-by, length), std::min(-by, length), 0.0F);
  }
}

void act(const auto&, const Waveform&, Random) noexcept {}  // not of waveforms: the compiler has refused it

// torchaudio's mask_along_axis: from `first` on, `count` of `size`.
struct Mask {
  std::int64_t first, end;

  Mask(Random& random, double most, std::uint64_t size) noexcept {
    const double value = random.uniform() * most;
    first = static_cast<std::int64_t>(random.uniform() * (static_cast<double>(size) - value));
    end = std::min(first + static_cast<std::int64_t>(value), static_cast<std::int64_t>(size));
    first = std::max<std::int64_t>(first, 0);
  }
};

struct Spectra {
  const Spectrogram& all;
  std::uint32_t channels, bands;

  // Zeroes rows and steps of each channel.
  void mask(bool is_time, double most, bool is_iid, Random random) const noexcept {
    if (most < 1) return;
    const std::uint64_t size = is_time ? all.steps : bands;
    Mask mask(random, most, size);
    for (std::uint32_t c = 0; c < channels; ++c) {
      if (is_iid && c > 0) mask = Mask(random, most, size);
      if (mask.end <= mask.first) continue;
      for (std::uint32_t b = 0; b < bands; ++b) {
        float* const row = all.row(std::uint64_t{c} * bands + b);
        if (is_time) {
          std::fill(row + mask.first, row + mask.end, 0.0F);
        } else if (b >= mask.first && b < mask.end) {
          std::fill_n(row, all.steps, 0.0F);
        }
      }
    }
  }

  void act(const AmplitudeToDB& op, Random) const noexcept {
    to_decibel(all, op.stype == AmplitudeKind::power ? 10.0F : 20.0F, op.top_db);
  }
  void act(const FrequencyMasking& op, Random random) const noexcept {
    mask(false, op.freq_mask_param, op.iid_masks, random);
  }
  void act(const TimeMasking& op, Random random) const noexcept {
    const double share = op.p == 1 ? op.time_mask_param : std::floor(static_cast<double>(all.steps) * op.p);
    mask(true, std::min<double>(op.time_mask_param, share), op.iid_masks, random);
  }
  void act(const auto&, Random) const noexcept {}  // not of spectrograms: the compiler has refused it
};

}  // namespace

std::uint64_t Trim::first_of(std::uint64_t available, const AudioChance& chance) const noexcept {
  if (!is_random || available <= frames) return 0;
  const auto places = static_cast<double>(available - frames + 1);
  return std::min(static_cast<std::uint64_t>(step.random(chance).uniform() * places), available - frames);
}

void apply_wave(const AudioStep& step, const Waveform& wave, const AudioChance& chance) noexcept {
  std::visit([&](const auto& op) { act(op, wave, step.random(chance)); }, step.op.what);
}

void apply_spectrum(const AudioStep& step, const Spectrogram& all, std::uint32_t channels, std::uint32_t bands,
                    const AudioChance& chance) noexcept {
  const Spectra spectra{all, channels, bands};
  std::visit([&](const auto& op) { spectra.act(op, step.random(chance)); }, step.op.what);
}

}  // namespace stoker::transform
