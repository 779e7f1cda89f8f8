#include "stoker/transform/audio_plan.h"

#include <algorithm>
#include <cstring>

#include "stoker/transform/audio_program.h"
#include "stoker/transform/store.h"
#include "stoker/transform/take.h"

namespace stoker::transform {
namespace {

constexpr Result kUnlikeRates = failed(Code::unsupported, "sample rate has too little in common with that of Resample");

bool changes_rate(const AudioProgram& plan, std::uint32_t rate_hz) noexcept {
  return plan.hz != 0 && plan.hz != rate_hz;
}

std::uint64_t frames_at_rate(const AudioProgram& plan, std::uint64_t frames, std::uint32_t rate_hz) noexcept {
  return changes_rate(plan, rate_hz) ? resampled_frames(frames, rate_hz, plan.hz) : frames;
}

// The mean of the channels.
void mix_channels(const float* source, std::size_t channel_stride, std::uint32_t channels, std::uint64_t frames,
                  float* into) noexcept {
  std::copy_n(source, frames, into);
  for (std::uint32_t c = 1; c < channels; ++c) {
    const float* const channel = source + c * channel_stride;
    for (std::uint64_t i = 0; i < frames; ++i) into[i] += channel[i];
  }
  const auto divisor = static_cast<float>(channels);
  for (std::uint64_t i = 0; i < frames; ++i) into[i] /= divisor;
}

// Of a row that has `count` elements of `size` bytes: what is behind them.
void clear_rest(std::byte* row, std::uint64_t count, std::uint64_t room, std::size_t size) noexcept {
  std::memset(row + count * size, 0, (room - count) * size);
}

// The waveform that leaves the operations, and how much of it was there before padding.
struct Filled {
  Waveform wave;
  std::uint64_t true_frames = 0;
};

// Trims and pads in place: `wave` has room for both lengths.
void trim_in_place(const Trim& trim, Filled& filled, const AudioChance& chance) noexcept {
  Waveform& wave = filled.wave;
  const std::uint64_t first = trim.first_of(wave.frames, chance), kept = std::min(wave.frames, trim.frames);
  for (std::uint32_t c = 0; c < wave.channels; ++c) {
    float* const row = wave.row(c);
    if (first != 0) std::memmove(row, row + first, kept * sizeof(float));
    std::fill_n(row + kept, trim.frames - kept, 0.0F);
  }
  wave.frames = trim.frames;
  filled.true_frames = kept;
}

}  // namespace

AudioPlan AudioPlan::compile(const Ops& ops, const AudioInput& input, const OutputOptions& options) {
  auto program = std::make_shared<AudioProgram>(AudioProgram::compile(ops, input, options));
  AudioPlan plan;
  plan.input_ = input;
  const bool keeps_frames = !program->mono && program->hz == 0 && program->is_plain();
  plan.is_direct_ = keeps_frames && program->dtype == DType::f32;
  plan.is_int16_ = keeps_frames && program->dtype == DType::i16;
  Output& output = plan.output_;
  output.name = "data";
  output.dtype = program->dtype;
  if (program->channels != 1) output.shape.push_back(program->channels);
  if (program->mel) output.shape.push_back(program->bands);
  const std::uint64_t frames = program->trim.frames;
  const std::uint64_t length = program->mel && frames != 0 ? program->mel->steps(frames) : frames;
  output.shape.push_back(length);
  output.varies = frames == 0;
  plan.program_ = std::move(program);
  output.view_bytes = static_cast<std::size_t>(length * plan.output_rows()) * size_of(output.dtype);
  return plan;
}

std::string AudioPlan::describe() const {
  return transform::describe(program_->describe(), output_);
}

std::uint32_t AudioPlan::output_channels() const noexcept {
  return program_->channels;
}

std::uint64_t AudioPlan::output_rows() const noexcept {
  return std::uint64_t{program_->channels} * program_->bands;
}

bool AudioPlan::has_spectrogram() const noexcept {
  return program_->mel.has_value();
}

std::uint32_t AudioPlan::output_rate_hz() const noexcept {
  return program_->hz != 0 ? program_->hz : input_.rate_hz;
}

std::uint64_t AudioPlan::output_frames(std::uint64_t frames, std::uint32_t rate_hz) const noexcept {
  const AudioProgram& plan = *program_;
  const std::uint64_t length = plan.length_of(frames_at_rate(plan, frames, rate_hz));
  return plan.mel ? plan.mel->steps(length) : length;
}

Result AudioPlan::check(std::uint32_t channels, std::uint32_t rate_hz) const noexcept {
  const AudioProgram& plan = *program_;
  if (channels == 0 || rate_hz == 0) return failed(Code::corrupt, "audio has no channels or no rate");
  if (!plan.mono && channels != input_.channels) {
    return failed(Code::mismatch, "audio has another channel count than the first one: add Mono()");
  }
  if (plan.hz == 0 && rate_hz != input_.rate_hz) {
    return failed(Code::mismatch, "audio has another sample rate than the first one: add Resample(hz)");
  }
  if (changes_rate(plan, rate_hz) && !sinc_size(rate_hz, plan.hz).usable) return kUnlikeRates;
  return {};
}

AudioWindow AudioPlan::window(std::uint64_t frames, std::uint32_t rate_hz, const AudioChance& chance) const noexcept {
  const AudioProgram& plan = *program_;
  if (plan.trim.frames == 0 || plan.trim.after != 0 || changes_rate(plan, rate_hz)) return {0, frames};
  return {plan.trim.first_of(frames, chance), std::min(frames, plan.trim.frames)};
}

// The waveform goes to the slot where it may stay, else to the scratch. Then each operation works in place.
Result AudioPlan::apply(const float* source, std::size_t channel_stride, std::uint64_t frames, std::uint32_t rate_hz,
                        std::byte* slot, std::uint64_t slot_frames, std::uint64_t& written, Scratch& scratch,
                        std::uint32_t channels, const AudioChance& chance) const noexcept {
  const AudioProgram& plan = *program_;
  const bool resamples = changes_rate(plan, rate_hz);
  const std::uint64_t at_rate = frames_at_rate(plan, frames, rate_hz), length = plan.length_of(at_rate);
  written = 0;
  if (output_frames(frames, rate_hz) > slot_frames) return failed(Code::too_large, "audio is longer than its slot");
  const std::uint32_t source_channels = channels == 0 ? input_.channels : channels;
  if (!plan.mono && source_channels != plan.channels) {
    return failed(Code::mismatch, "audio has another channel count than the first one: add Mono()");
  }

  // What of it is made: the trimmed part, unless something comes before the trimming.
  const bool trims_first = plan.trim.frames != 0 && plan.trim.after == 0;
  const std::uint64_t first = trims_first ? plan.trim.first_of(at_rate, chance) : 0;
  const std::uint64_t made = trims_first ? std::min(at_rate, plan.trim.frames) : at_rate;

  SincTable table = plan.table;
  std::uint64_t used = first + made;  // source frames that matter
  if (resamples) {
    if (rate_hz != input_.rate_hz) {
      const SincSize size = sinc_size(rate_hz, plan.hz);
      if (!size.usable) return kUnlikeRates;
      auto* const phases = take<std::int32_t>(scratch, size.to);
      auto* const weights = take<float>(scratch, std::size_t{size.to} * size.taps);
      if (phases == nullptr || weights == nullptr) return kNoRoom;
      table = make_sinc(size, phases, weights);
    }
    used = std::min(frames, ((first + made) / table.to + 1) * table.from + table.taps);
  }
  const bool mixes = plan.mono && source_channels > 1;
  float* mixed = nullptr;
  if (mixes && resamples) {
    mixed = take<float>(scratch, used);
    if (mixed == nullptr) return kNoRoom;
    mix_channels(source, channel_stride, source_channels, used, mixed);
  }

  const std::size_t element = size_of(plan.dtype);
  if (plan.is_plain() && !mixes && !resamples) {
    for (std::uint32_t c = 0; c < plan.channels; ++c) {
      std::byte* const row = slot + c * slot_frames * element;
      convert(source + c * channel_stride + first, made, plan.dtype, row);
      clear_rest(row, made, slot_frames, element);
    }
    written = made;
    return {};
  }

  Filled filled;
  Waveform& wave = filled.wave;
  const bool stays = plan.dtype == DType::f32 && !plan.mel && first == 0 && (trims_first || plan.trim.frames == 0);
  const std::uint64_t room = std::max(first + made, length);
  wave = {stays ? reinterpret_cast<float*>(slot) : take<float>(scratch, room * plan.channels), plan.channels,
          trims_first ? length : at_rate, stays ? slot_frames : room};
  if (wave.data == nullptr) return kNoRoom;
  filled.true_frames = made;
  for (std::uint32_t c = 0; c < plan.channels; ++c) {
    float* const row = wave.row(c);
    const float* const channel = source + c * channel_stride;
    if (resamples) {
      resample(table, mixed != nullptr ? mixed : channel, used, row, first + made);
      if (first != 0) std::memmove(row, row + first, made * sizeof(float));
    } else if (mixes) {
      mix_channels(source + first, channel_stride, source_channels, made, row);
    } else {
      std::copy_n(channel + first, made, row);
    }
    if (wave.frames > made) std::fill_n(row + made, wave.frames - made, 0.0F);
  }
  for (std::size_t i = 0; i <= plan.waves.size(); ++i) {
    if (!trims_first && plan.trim.frames != 0 && i == plan.trim.after) trim_in_place(plan.trim, filled, chance);
    if (i == plan.waves.size()) break;
    apply_wave(plan.waves[i], wave, chance);
    if (std::holds_alternative<Shift>(plan.waves[i].op.what)) filled.true_frames = wave.frames;
  }
  if (plan.mel)
    return make_spectrogram(wave.data, wave.stride, wave.frames, filled.true_frames, slot, slot_frames, written,
                            scratch, chance);

  for (std::uint32_t c = 0; c < plan.channels; ++c) {
    std::byte* const row = slot + c * slot_frames * element;
    if (!stays) convert(wave.row(c), wave.frames, plan.dtype, row);
    clear_rest(row, wave.frames, slot_frames, element);
  }
  written = filled.true_frames;
  return {};
}

Result AudioPlan::make_spectrogram(const float* wave, std::size_t wave_stride, std::uint64_t frames,
                                   std::uint64_t true_frames, std::byte* slot, std::uint64_t slot_steps,
                                   std::uint64_t& written, Scratch& scratch, const AudioChance& chance) const noexcept {
  const AudioProgram& plan = *program_;
  const std::uint64_t steps = plan.mel->steps(frames);
  const std::uint32_t bands = plan.mel->bands();
  const bool is_float32 = plan.dtype == DType::f32;
  // The bands, and what leaves: the same rows, unless there are cosines between them.
  Spectrogram mel{reinterpret_cast<float*>(slot), std::uint64_t{bands} * plan.channels, steps, slot_steps};
  Spectrogram out{mel.data, output_rows(), steps, slot_steps};
  if (plan.cosines || !is_float32) {
    mel.data = take<float>(scratch, mel.rows * steps);
    mel.stride = steps;
    if (mel.data == nullptr) return kNoRoom;
  }
  if (!is_float32) {
    out = mel;
    if (plan.cosines) out = {take<float>(scratch, output_rows() * steps), output_rows(), steps, steps};
    if (out.data == nullptr) return kNoRoom;
  }
  for (std::uint32_t c = 0; c < plan.channels; ++c) {
    const Result result =
        plan.mel->apply(wave + c * wave_stride, frames, mel.row(std::uint64_t{c} * bands), mel.stride, scratch);
    if (!result.ok()) return result;
  }
  if (plan.cosines) {
    constexpr double kTopDb = 80;  // torchaudio's MFCC
    if (plan.log_mels) {
      to_log(mel, 1e-6F);
    } else {
      to_decibel(mel, 10.0F, kTopDb);
    }
    for (std::uint32_t c = 0; c < plan.channels; ++c) {
      const Spectrogram from{mel.row(std::uint64_t{c} * bands), bands, steps, mel.stride};
      plan.cosines->apply(from, {out.row(std::uint64_t{c} * plan.bands), plan.bands, steps, out.stride});
    }
  }
  for (const AudioStep& step : plan.spectra) apply_spectrum(step, out, plan.channels, plan.bands, chance);
  const std::size_t element = size_of(plan.dtype);
  for (std::uint64_t r = 0; r < out.rows; ++r) {
    std::byte* const row = slot + r * slot_steps * element;
    if (!is_float32) convert(out.row(r), steps, plan.dtype, row);
    clear_rest(row, steps, slot_steps, element);
  }
  written = std::min(steps, plan.mel->steps_until(true_frames));
  return {};
}

// memory_test.cc compares it with what apply takes.
std::uint64_t AudioPlan::working_bytes(std::uint64_t frames, std::uint32_t rate_hz,
                                       std::uint32_t channels) const noexcept {
  const AudioProgram& plan = *program_;
  constexpr std::uint64_t kRounding = 16 * 64;  // of all pieces
  std::uint64_t bytes = kRounding;
  const bool resamples = changes_rate(plan, rate_hz), mixes = plan.mono && channels > 1;
  if (resamples && rate_hz != input_.rate_hz) {
    const SincSize size = sinc_size(rate_hz, plan.hz);
    if (size.usable) bytes += std::uint64_t{size.to} * (sizeof(std::int32_t) + sizeof(float) * size.taps);
  }
  if (resamples && mixes) bytes += frames * sizeof(float);
  if (plan.is_plain() && !mixes && !resamples) return bytes;
  const std::uint64_t at_rate = frames_at_rate(plan, frames, rate_hz), length = plan.length_of(at_rate);
  const bool trims_first = plan.trim.frames != 0 && plan.trim.after == 0;
  const bool may_move = plan.trim.is_random || !trims_first;
  const bool stays = plan.dtype == DType::f32 && !plan.mel && !(plan.trim.frames != 0 && may_move);
  const std::uint64_t room = may_move ? std::max(at_rate, length) : length;
  if (!stays) bytes += room * plan.channels * sizeof(float);
  if (plan.mel) {
    bytes += plan.mel->working_bytes(length);
    const std::uint64_t step_bytes = plan.mel->steps(length) * plan.channels * sizeof(float);
    const bool is_float32 = plan.dtype == DType::f32;
    if (plan.cosines || !is_float32) bytes += plan.mel->bands() * step_bytes;
    if (plan.cosines && !is_float32) bytes += plan.bands * step_bytes;
  }
  return bytes;
}

}  // namespace stoker::transform
