#include "stoker/transform/audio_program.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/transform/ops_check.h"

namespace stoker::transform {
namespace {

constexpr const char* kTakes =
    "audio takes Mono, Resample, PadOrTrim, RandomTrim, Vol, Gain, PolarityInversion, Shift, MelSpectrogram, MFCC, "
    "AmplitudeToDB, FrequencyMasking and TimeMasking";

// Reads the list in its order: rate and channels, the waveform, one spectrogram, operations on that.
class AudioCompiler {
 public:
  AudioCompiler(AudioProgram& plan, const AudioInput& input) : plan_(plan), input_(input) {}

  void add(const Op& op) {
    check_op(op);
    std::visit([&](const auto& what) { take(op, what); }, op.what);
  }

  bool is_float() const { return is_float_; }

 private:
  void take(const Op& op, const Mono&) {
    if (std::exchange(plan_.mono, true)) refuse(op, "it is given twice");
    needs_untouched(op);
  }
  void take(const Op& op, const Resample& what) {
    if (plan_.hz != 0) refuse(op, "it is given twice");
    if (plan_.trim.frames != 0) {
      const std::string_view trim = name(plan_.trim.step.op);
      refuse(op, fmt::format("it cannot come after {}, which counts frames at the rate that leaves", trim),
             fmt::format("put Resample before {}", trim));
    }
    needs_untouched(op);
    plan_.hz = what.hz;
  }
  void take(const Op& op, const PadOrTrim& what) { add_trim(op, what.frames, false); }
  void take(const Op& op, const RandomTrim& what) { add_trim(op, what.frames, true); }
  void take(const Op& op, const ToFloat&) {
    if (is_float_) refuse(op, "it is given twice");
    is_float_ = true;  // decoded audio is float already; rows of an int16 pack are not, and take the same list
  }
  void take(const Op& op, const Vol&) { add_wave(op); }
  void take(const Op& op, const Gain&) { add_wave(op); }
  void take(const Op& op, const PolarityInversion&) { add_wave(op); }
  void take(const Op& op, const Shift&) {
    add_wave(op);
    if (plan_.trim.frames == 0) shifts_first_ = true;
  }
  void take(const Op& op, const MelSpectrogram& what) { add_mel(op, what); }
  void take(const Op& op, const MFCC& what) {
    add_mel(op, what.mel);
    plan_.cosines.emplace(what.n_mfcc, what.mel.n_mels, what.norm);
    plan_.bands = what.n_mfcc;
    plan_.log_mels = what.log_mels;
  }
  void take(const Op& op, const AmplitudeToDB&) {
    if (plan_.cosines) refuse(op, "MFCC takes decibels already", "leave it out, or use MelSpectrogram");
    add_spectrum(op);
  }
  void take(const Op& op, const FrequencyMasking&) { add_spectrum(op); }
  void take(const Op& op, const TimeMasking&) { add_spectrum(op); }
  template <VolumeOperation T>
  void take(const Op& op, const T&) {
    refuse(op, "it is for patches of volumes, and these are audio", kTakes);
  }
  void take(const Op& op, const auto&) { refuse(op, "it is for images, and these are audio", kTakes); }

  void add_trim(const Op& op, std::uint64_t frames, bool is_random) {
    if (plan_.trim.frames != 0) {
      refuse(op, plan_.trim.step.op.what.index() == op.what.index()
                     ? std::string("it is given twice")
                     : fmt::format("{} says the length already", name(plan_.trim.step.op)));
    }
    needs_waveform(op);
    plan_.trim = {frames, is_random, numbered(op), shifts_first_ ? plan_.waves.size() : 0};
  }

  void add_wave(const Op& op) {
    needs_waveform(op);
    plan_.waves.push_back(numbered(op));
  }

  void add_spectrum(const Op& op) {
    if (!plan_.mel) refuse(op, "it takes a spectrogram", "put MelSpectrogram or MFCC before it");
    plan_.spectra.push_back(numbered(op));
  }

  void add_mel(const Op& op, const MelSpectrogram& what) {
    if (plan_.mel) refuse(op, "there is a spectrogram already");
    const std::uint32_t rate_hz = plan_.hz != 0 ? plan_.hz : input_.rate_hz;
    if (rate_hz != 0 && what.sample_rate != rate_hz) {
      refuse(op, fmt::format("sample_rate is {}, but the audio has {} Hz", what.sample_rate, rate_hz),
             fmt::format("give sample_rate={}, or put Resample({}) before it", rate_hz, what.sample_rate));
    }
    spectrum_name_ = name(op);
    plan_.mel.emplace(what);
    plan_.bands = what.n_mels;
    const bool changes_rate = plan_.hz != 0 && input_.rate_hz != 0;
    const std::uint64_t frames =
        changes_rate ? resampled_frames(input_.frames, input_.rate_hz, plan_.hz) : input_.frames;
    if (plan_.trim.frames != 0 && plan_.mel->steps(plan_.trim.frames) == 0) {
      refuse(op,
             fmt::format("n_fft = {} needs at least {} frames, and {} leaves {}", what.n_fft, plan_.mel->least_frames(),
                         name(plan_.trim.step.op), plan_.trim.frames),
             "choose a smaller n_fft, or more frames");
    }
    if (plan_.trim.frames == 0 && frames != 0 && plan_.mel->steps(frames) == 0) {
      refuse(op,
             fmt::format("n_fft = {} needs at least {} frames, and the first audio has {}", what.n_fft,
                         plan_.mel->least_frames(), frames),
             "choose a smaller n_fft, or put PadOrTrim(frames) before it");
    }
  }

  void needs_waveform(const Op& op) const {
    if (!plan_.mel) return;
    refuse(op, fmt::format("it takes a waveform, and {} comes before it", spectrum_name_),
           fmt::format("put {} before {}", name(op), spectrum_name_));
  }

  // Mono and Resample commute with each other and with PadOrTrim, but not with the rest.
  void needs_untouched(const Op& op) const {
    needs_waveform(op);
    if (plan_.waves.empty()) return;
    const std::string_view before = name(plan_.waves.front().op);
    refuse(op, fmt::format("it cannot come after {}", before), fmt::format("put {} before {}", name(op), before));
  }

  AudioStep numbered(const Op& op) {
    const auto seen = static_cast<std::uint32_t>(std::count(seen_.begin(), seen_.end(), op.what.index()));
    seen_.push_back(op.what.index());
    return {op, static_cast<std::uint32_t>(op.what.index()) * 256 + seen};
  }

  AudioProgram& plan_;
  const AudioInput& input_;
  std::vector<std::size_t> seen_;
  std::string_view spectrum_name_;
  bool is_float_ = false, shifts_first_ = false;
};

}  // namespace

AudioProgram AudioProgram::compile(const Ops& ops, const AudioInput& input, const OutputOptions& options) {
  AudioProgram plan;
  AudioCompiler compiler(plan, input);
  for (const Op& op : ops) compiler.add(op);
  plan.dtype = options.dtype.value_or(DType::f32);
  const bool is_int16 = plan.dtype == DType::i16;
  if (!is_float(plan.dtype) && !is_int16) {
    throw Error(ErrorKind::usage, fmt::format("cannot give audio as {}", name(plan.dtype)),
                "choose dtype float32, float16, bfloat16 or int16");
  }
  if (compiler.is_float() && is_int16) {
    throw Error(ErrorKind::usage, "cannot give audio as int16: ToFloat makes it float",
                "leave ToFloat out, or choose dtype float32, float16 or bfloat16");
  }
  if (plan.mel && is_int16) {
    throw Error(ErrorKind::usage, "cannot give spectrograms as int16", "choose dtype float32, float16 or bfloat16");
  }
  plan.channels = plan.mono ? 1 : input.channels;
  if (plan.hz != 0 && input.rate_hz != 0 && plan.hz != input.rate_hz) {
    const SincSize size = sinc_size(input.rate_hz, plan.hz);
    if (!size.usable) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot use transform `Resample`: {} Hz and {} Hz have too little in common",
                              input.rate_hz, plan.hz),
                  "choose a rate that shares a larger divisor, such as 16000");
    }
    plan.first.resize(size.to);
    plan.weights.resize(std::size_t{size.to} * size.taps);
    plan.table = make_sinc(size, plan.first.data(), plan.weights.data());
  }
  return plan;
}

std::string AudioProgram::describe() const {
  std::vector<std::string> words;
  if (mono) words.emplace_back("mono");
  if (hz != 0) words.push_back(fmt::format("resample to {} Hz", hz));
  for (std::size_t i = 0; i <= waves.size(); ++i) {
    if (trim.frames != 0 && i == trim.after) {
      words.push_back(fmt::format("{} to {} frames", trim.is_random ? "random trim" : "pad or trim", trim.frames));
    }
    if (i < waves.size()) words.emplace_back(name(waves[i].op));
  }
  if (mel) words.push_back(fmt::format("{} of {} rows", cosines ? "MFCC" : "mel spectrogram", bands));
  for (const AudioStep& step : spectra) words.emplace_back(name(step.op));
  return fmt::format("{}", fmt::join(words, " -> "));
}

}  // namespace stoker::transform
