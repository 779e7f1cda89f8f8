#include "stoker/transform/audio_plan.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/transform/ops_check.h"
#include "stoker/transform/sinc.h"
#include "stoker/transform/store.h"
#include "stoker/transform/take.h"

namespace stoker::transform {

struct AudioPlan::Program {
  bool mono = false;
  std::uint32_t hz = 0;        // 0: as it is
  std::uint64_t frames = 0;    // 0: as many as there are
  std::uint32_t channels = 1;  // that leave
  DType dtype = DType::f32;
  // For the first sample's rate; others are made when they come.
  std::vector<std::int32_t> first;
  std::vector<float> weights;
  SincTable table;

  static Program compile(const Ops& ops, const AudioInput& input, const OutputOptions& options);
  std::string describe() const;
};

AudioPlan::Program AudioPlan::Program::compile(const Ops& ops, const AudioInput& input, const OutputOptions& options) {
  Program plan;
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
      to_float = true;  // decoded audio is float already; rows of an int16 pack are not, and take the same list
    } else {
      refuse(op, "it is for images, and these are audio", "audio takes Mono, Resample and PadOrTrim");
    }
  }
  plan.dtype = options.dtype.value_or(DType::f32);
  if (!is_float(plan.dtype) && plan.dtype != DType::i16) {
    throw Error(ErrorKind::usage, fmt::format("cannot give audio as {}", name(plan.dtype)),
                "choose dtype float32, float16, bfloat16 or int16");
  }
  if (to_float && plan.dtype == DType::i16) {
    throw Error(ErrorKind::usage, "cannot give audio as int16: ToFloat makes it float",
                "leave ToFloat out, or choose dtype float32, float16 or bfloat16");
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

std::string AudioPlan::Program::describe() const {
  std::vector<std::string> words;
  if (mono) words.emplace_back("mono");
  if (hz != 0) words.push_back(fmt::format("resample to {} Hz", hz));
  if (frames != 0) words.push_back(fmt::format("pad or trim to {} frames", frames));
  return fmt::format("{}", fmt::join(words, " -> "));
}

AudioPlan AudioPlan::compile(const Ops& ops, const AudioInput& input, const OutputOptions& options) {
  auto program = std::make_shared<Program>(Program::compile(ops, input, options));
  AudioPlan plan;
  plan.input_ = input;
  const bool keeps_frames = !program->mono && program->hz == 0;
  plan.is_direct_ = keeps_frames && program->dtype == DType::f32;
  plan.is_int16_ = keeps_frames && program->dtype == DType::i16;
  Output& output = plan.output_;
  output.name = "data";
  output.dtype = program->dtype;
  if (program->channels != 1) output.shape.push_back(program->channels);
  output.shape.push_back(program->frames);
  output.varies = program->frames == 0;
  output.view_bytes = static_cast<std::size_t>(program->frames) * program->channels * size_of(program->dtype);
  plan.program_ = std::move(program);
  return plan;
}

std::string AudioPlan::describe() const {
  return transform::describe(program_->describe(), output_);
}

std::uint32_t AudioPlan::output_channels() const noexcept {
  return program_->channels;
}

std::uint32_t AudioPlan::output_rate_hz() const noexcept {
  return program_->hz != 0 ? program_->hz : input_.rate_hz;
}

std::uint64_t AudioPlan::output_frames(std::uint64_t frames, std::uint32_t rate_hz) const noexcept {
  const Program& plan = *program_;
  if (plan.frames != 0) return plan.frames;
  return plan.hz == 0 ? frames : resampled_frames(frames, rate_hz, plan.hz);
}

Result AudioPlan::check(std::uint32_t channels, std::uint32_t rate_hz) const noexcept {
  const Program& plan = *program_;
  if (channels == 0 || rate_hz == 0) return failed(Code::corrupt, "audio has no channels or no rate");
  if (!plan.mono && channels != input_.channels) {
    return failed(Code::mismatch, "audio has another channel count than the first one: add Mono()");
  }
  if (plan.hz == 0 && rate_hz != input_.rate_hz) {
    return failed(Code::mismatch, "audio has another sample rate than the first one: add Resample(hz)");
  }
  if (plan.hz != 0 && rate_hz != plan.hz && !sinc_size(rate_hz, plan.hz).usable) {
    return failed(Code::unsupported, "sample rate has too little in common with that of Resample");
  }
  return {};
}

Result AudioPlan::apply(const float* source, std::size_t channel_stride, std::uint64_t frames, std::uint32_t rate_hz,
                        std::byte* slot, std::uint64_t slot_frames, std::uint64_t& written, Scratch& scratch,
                        std::uint32_t channels) const noexcept {
  const Program& plan = *program_;
  const bool changes_rate = plan.hz != 0 && plan.hz != rate_hz;
  std::uint64_t count = changes_rate ? resampled_frames(frames, rate_hz, plan.hz) : frames;
  if (plan.frames != 0) count = std::min(count, plan.frames);
  written = 0;
  if (count > slot_frames) return failed(Code::too_large, "audio is longer than its slot");

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

  const std::uint32_t source_channels = channels == 0 ? input_.channels : channels;
  if (!plan.mono && source_channels != plan.channels) {
    return failed(Code::mismatch, "audio has another channel count than the first one: add Mono()");
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

// memory_test.cc compares it with what apply takes.
std::uint64_t AudioPlan::working_bytes(std::uint64_t frames, std::uint32_t rate_hz,
                                       std::uint32_t channels) const noexcept {
  const Program& plan = *program_;
  constexpr std::uint64_t kRounding = 16 * 64;  // of all pieces
  std::uint64_t bytes = kRounding;
  if (plan.mono && channels > 1) bytes += frames * sizeof(float);
  if (plan.hz == 0 || plan.hz == rate_hz) return bytes;
  if (rate_hz != input_.rate_hz) {
    const SincSize size = sinc_size(rate_hz, plan.hz);
    if (size.usable) bytes += std::uint64_t{size.to} * (sizeof(std::int32_t) + sizeof(float) * size.taps);
  }
  std::uint64_t count = resampled_frames(frames, rate_hz, plan.hz);
  if (plan.frames != 0) count = std::min(count, plan.frames);
  if (plan.dtype != DType::f32) bytes += count * sizeof(float);
  return bytes;
}

}  // namespace stoker::transform
