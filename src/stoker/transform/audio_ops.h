// The operations on audio that a user may declare beyond Mono, Resample and PadOrTrim. Those that torchaudio has, have
// its names, arguments and defaults; Gain, PolarityInversion and Shift have those of torch-audiomentations. Each lists
// its fields once, as the augmentations of augment_ops.h do. Plain values.
#pragma once

#include <cstdint>

#include "stoker/transform/augment_ops.h"

namespace stoker::transform {

// ---- of the waveform
struct RandomTrim {  // exactly `frames`: from a random place of longer audio; shorter audio gets zeros at its end
  using OfAudio = void;
  std::uint32_t frames = 16000;
  static void fields(auto& self, auto&& field) { field("frames", self.frames, Limits{1, 4e9}); }
};
enum class GainType : std::uint8_t { amplitude, power, db };
struct Vol {  // times a fixed gain, clipped to [-1, 1]
  using OfAudio = void;
  double gain = 1;
  GainType type = GainType::amplitude;
  static void fields(auto& self, auto&& field) {
    field("gain", self.gain, Limits{-1e3, 1e6});
    field("gain_type", self.type, Limits{});
  }
};
struct Gain {  // times a random gain, not clipped
  using OfAudio = void;
  double least_db = -18, most_db = 6, p = 0.5;
  static void fields(auto& self, auto&& field) {
    field("min_gain_in_db", self.least_db, Limits{-200, 200});
    field("max_gain_in_db", self.most_db, Limits{-200, 200});
    field("p", self.p, kChance);
  }
};
struct PolarityInversion {
  using OfAudio = void;
  double p = 0.5;
  static void fields(auto& self, auto&& field) { field("p", self.p, kChance); }
};
struct Shift {  // by a random share of the length: to later times where it is above 0
  using OfAudio = void;
  double least = -0.5, most = 0.5;
  bool rollover = true;  // what leaves at one end comes back at the other; else it becomes zeros
  double p = 0.5;
  static void fields(auto& self, auto&& field) {
    field("min_shift", self.least, Limits{-1, 1});
    field("max_shift", self.most, Limits{-1, 1});
    field("rollover", self.rollover, Limits{});
    field("p", self.p, kChance);
  }
};

// ---- from the waveform to a spectrogram
enum class Edge : std::uint8_t { reflect, constant, replicate };
enum class MelScale : std::uint8_t { htk, slaney };
enum class MelNorm : std::uint8_t { none, slaney };
enum class DctNorm : std::uint8_t { ortho, none };
struct MelSpectrogram {
  using OfAudio = void;
  std::uint32_t sample_rate = 16000, n_fft = 400;
  std::uint32_t win_length = 0;  // 0: n_fft
  std::uint32_t hop_length = 0;  // 0: half the window
  double f_min = 0, f_max = 0;   // f_max 0: half the sample rate
  std::uint32_t pad = 0, n_mels = 128;
  double power = 2;
  bool normalized = false, center = true;
  Edge pad_mode = Edge::reflect;
  MelNorm norm = MelNorm::none;
  MelScale mel_scale = MelScale::htk;

  static void transform_fields(auto& self, auto&& field) {
    field("n_fft", self.n_fft, Limits{2, 65536});
    field("win_length", self.win_length, Limits{.least = 0, .most = 65536, .zero_is_unset = true});
    field("hop_length", self.hop_length, Limits{.least = 0, .most = 1 << 20, .zero_is_unset = true});
    field("f_min", self.f_min, Limits{0, 1e7});
    field("f_max", self.f_max, Limits{.least = 0, .most = 1e7, .zero_is_unset = true});
    field("pad", self.pad, Limits{0, 1 << 20});
    field("n_mels", self.n_mels, Limits{1, 4096});
    field("power", self.power, Limits{1e-3, 16});
    field("normalized", self.normalized, Limits{});
    field("center", self.center, Limits{});
    field("pad_mode", self.pad_mode, Limits{});
  }
  static void fields(auto& self, auto&& field) {
    field("sample_rate", self.sample_rate, Limits{1, 1e7});
    transform_fields(self, field);
    field("norm", self.norm, Limits{});
    field("mel_scale", self.mel_scale, Limits{});
  }
};
struct MFCC {
  using OfAudio = void;
  std::uint32_t n_mfcc = 40;
  DctNorm norm = DctNorm::ortho;
  bool log_mels = false;
  MelSpectrogram mel;  // torchaudio's melkwargs
  static void fields(auto& self, auto&& field) {
    field("sample_rate", self.mel.sample_rate, Limits{1, 1e7});
    field("n_mfcc", self.n_mfcc, Limits{1, 4096});
    field("norm", self.norm, Limits{});
    field("log_mels", self.log_mels, Limits{});
    MelSpectrogram::transform_fields(self.mel, field);
    field("mel_norm", self.mel.norm, Limits{});
    field("mel_scale", self.mel.mel_scale, Limits{});
  }
};

// ---- of a spectrogram
enum class AmplitudeKind : std::uint8_t { power, magnitude };
struct AmplitudeToDB {
  using OfAudio = void;
  AmplitudeKind stype = AmplitudeKind::power;
  double top_db = -1;  // below 0: no floor
  static void fields(auto& self, auto&& field) {
    field("stype", self.stype, Limits{});
    field("top_db", self.top_db, Limits{-1, 1e6});
  }
};
struct FrequencyMasking {
  using OfAudio = void;
  std::uint32_t freq_mask_param = 27;
  bool iid_masks = false;  // each channel draws its own
  static void fields(auto& self, auto&& field) {
    field("freq_mask_param", self.freq_mask_param, Limits{0, 1 << 20});
    field("iid_masks", self.iid_masks, Limits{});
  }
};
struct TimeMasking {
  using OfAudio = void;
  std::uint32_t time_mask_param = 100;
  bool iid_masks = false;
  double p = 1;  // the most of all time steps that a mask may cover
  static void fields(auto& self, auto&& field) {
    field("time_mask_param", self.time_mask_param, Limits{0, 1 << 20});
    field("iid_masks", self.iid_masks, Limits{});
    field("p", self.p, kShare);
  }
};

template <typename T>
concept AudioOperation = requires {
  typename T::OfAudio;
};

}  // namespace stoker::transform
