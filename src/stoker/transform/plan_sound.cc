#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/transform/compiled.h"
#include "stoker/transform/ops_check.h"
#include "stoker/transform/take.h"

namespace stoker::transform {

SoundPlan compile_sound(const Ops& ops, const Input& input, const OutputOptions& options) {
  SoundPlan plan;
  bool to_float = false;
  for (const Op& op : ops) {
    check_op(op);
    if (std::holds_alternative<Mono>(op.what)) {
      if (plan.mono) refuse(op, "it is given twice");
      plan.mono = true;
    } else if (const auto* const to = std::get_if<Resample>(&op.what)) {
      if (plan.hz != 0) refuse(op, "it is given twice");
      if (plan.frames != 0) {
        refuse(op, "it cannot come after PadOrTrim, which counts frames at the rate that leaves",
               "put Resample before PadOrTrim");
      }
      plan.hz = to->hz;
    } else if (const auto* const pad = std::get_if<PadOrTrim>(&op.what)) {
      if (plan.frames != 0) refuse(op, "it is given twice");
      plan.frames = pad->frames;
    } else if (std::holds_alternative<ToFloat>(op.what)) {
      if (to_float) refuse(op, "it is given twice");
      to_float = true;  // decoded sound is float already; rows of an int16 pack are not, and take the same list
    } else {
      refuse(op, "it is for pictures, and these are sounds", "sounds take Mono, Resample and PadOrTrim");
    }
  }
  plan.dtype = options.dtype.value_or(DType::f32);
  if (!is_float(plan.dtype) && plan.dtype != DType::i16) {
    throw Error(ErrorKind::usage, fmt::format("cannot give sound as {}", name(plan.dtype)),
                "choose dtype float32, float16, bfloat16 or int16");
  }
  if (to_float && plan.dtype == DType::i16) {
    throw Error(ErrorKind::usage, "cannot give sound as int16: ToFloat makes it float",
                "leave ToFloat out, or choose dtype float32, float16 or bfloat16");
  }
  plan.channels = plan.mono ? 1 : input.audio_channels;
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

std::string describe_sound(const SoundPlan& plan) {
  std::vector<std::string> words;
  if (plan.mono) words.emplace_back("mono");
  if (plan.hz != 0) words.push_back(fmt::format("resample to {} Hz", plan.hz));
  if (plan.frames != 0) words.push_back(fmt::format("pad or trim to {} frames", plan.frames));
  return fmt::format("{}", fmt::join(words, " -> "));
}

std::uint64_t Plan::output_frames(std::uint64_t frames, std::uint32_t rate_hz) const noexcept {
  const SoundPlan& plan = compiled_->sound;
  if (plan.frames != 0) return plan.frames;
  return plan.hz == 0 ? frames : resampled_frames(frames, rate_hz, plan.hz);
}

Result Plan::check_audio(std::uint32_t channels, std::uint32_t rate_hz) const noexcept {
  const SoundPlan& plan = compiled_->sound;
  if (channels == 0 || rate_hz == 0) return failed(Code::corrupt, "sound has no channels or no rate");
  if (!plan.mono && channels != input_.audio_channels) {
    return failed(Code::mismatch, "sound has another channel count than the first one: add Mono()");
  }
  if (plan.hz == 0 && rate_hz != input_.rate_hz) {
    return failed(Code::mismatch, "sound has another sample rate than the first one: add Resample(hz)");
  }
  if (plan.hz != 0 && rate_hz != plan.hz && !sinc_size(rate_hz, plan.hz).usable) {
    return failed(Code::unsupported, "sample rate has too little in common with that of Resample");
  }
  return {};
}

Result Plan::apply_audio(const float* source, std::size_t channel_stride, std::uint64_t frames, std::uint32_t rate_hz,
                         std::byte* slot, std::uint64_t slot_frames, std::uint64_t& written, Scratch& scratch,
                         std::uint32_t channels) const noexcept {
  const SoundPlan& plan = compiled_->sound;
  const bool changes_rate = plan.hz != 0 && plan.hz != rate_hz;
  std::uint64_t count = changes_rate ? resampled_frames(frames, rate_hz, plan.hz) : frames;
  if (plan.frames != 0) count = std::min(count, plan.frames);
  written = 0;
  if (count > slot_frames) return failed(Code::too_large, "sound is longer than its slot");

  SincTable table = plan.table;
  std::uint64_t used = std::min(frames, count);  // source frames that matter
  if (changes_rate) {
    if (rate_hz != input_.rate_hz) {
      const SincSize size = sinc_size(rate_hz, plan.hz);
      if (!size.usable) return failed(Code::unsupported, "sample rate has too little in common with that of Resample");
      auto* const first = take<std::int32_t>(scratch, size.to);
      auto* const weights = take<float>(scratch, std::size_t{size.to} * size.taps);
      if (first == nullptr || weights == nullptr) return kNoRoom;
      table = make_sinc(size, first, weights);
    }
    used = std::min(frames, (count / table.to + 1) * table.from + table.taps);
  }

  const std::uint32_t source_channels = channels == 0 ? input_.audio_channels : channels;
  if (!plan.mono && source_channels != plan.channels) {
    return failed(Code::mismatch, "sound has another channel count than the first one: add Mono()");
  }
  const float* mixed = nullptr;
  if (plan.mono && source_channels > 1) {
    auto* const sum = take<float>(scratch, used);
    if (sum == nullptr) return kNoRoom;
    std::copy_n(source, used, sum);
    for (std::uint32_t c = 1; c < source_channels; ++c) {
      const float* const channel = source + c * channel_stride;
      for (std::uint64_t i = 0; i < used; ++i) sum[i] += channel[i];
    }
    const auto divisor = static_cast<float>(source_channels);
    for (std::uint64_t i = 0; i < used; ++i) sum[i] /= divisor;
    mixed = sum;
  }
  float* resampled = nullptr;
  if (changes_rate && plan.dtype != DType::f32) {
    resampled = take<float>(scratch, count);
    if (resampled == nullptr) return kNoRoom;
  }

  const std::size_t element = size_of(plan.dtype);
  for (std::uint32_t c = 0; c < plan.channels; ++c) {
    std::byte* const row = slot + c * slot_frames * element;
    const float* channel = mixed != nullptr ? mixed : source + c * channel_stride;
    if (changes_rate) {
      float* const into = resampled != nullptr ? resampled : reinterpret_cast<float*>(row);
      resample(table, channel, used, into, count);
      channel = into;
    }
    if (channel != reinterpret_cast<const float*>(row)) convert(channel, count, plan.dtype, row);
    std::memset(row + count * element, 0, (slot_frames - count) * element);
  }
  written = count;
  return {};
}

}  // namespace stoker::transform
