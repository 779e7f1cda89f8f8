#include "stoker/transform/plan.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/transform/compiled.h"
#include "stoker/transform/ops_check.h"

namespace stoker::transform {

static_assert(std::is_trivially_copyable_v<Draw>);

namespace {

std::string describe_output(const Output& output, SampleKind kind) {
  std::string shape;
  for (std::size_t i = 0; i < output.shape.size(); ++i) {
    const bool open = output.varies && i + 1 == output.shape.size();
    shape += (i == 0 ? "" : ", ") + (open ? std::string("frames") : fmt::format("{}", output.shape[i]));
  }
  std::string_view layout;
  if (kind == SampleKind::image) {
    layout = output.layout == Layout::nchw   ? " NCHW"
             : output.layout == Layout::nhwc ? " NHWC"
                                             : " NCHW in channels_last order";
  }
  return fmt::format("{}{} [{}]", name(output.dtype), layout, shape);
}

}  // namespace

void refuse(const Op& op, std::string_view cause, std::string hint) {
  throw Error(ErrorKind::usage, fmt::format("cannot use transform `{}`: {}", name(op), cause), std::move(hint));
}

bool is_float(DType type) noexcept {
  return type == DType::f16 || type == DType::bf16 || type == DType::f32;
}

Plan Plan::compile(const Ops& ops, const Input& input, const OutputOptions& options) {
  Plan plan;
  auto compiled = std::make_shared<Compiled>();
  plan.input_ = input;

  if (input.kind == SampleKind::image) {
    if (input.channels < 1 || input.channels > 4 || (input.bits != 8 && input.bits != 16)) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot transform pictures of {} channels of {} bits", input.channels, input.bits),
                  "1 to 4 channels of 8 or 16 bits are possible");
    }
    const auto add = [&](std::string_view name, std::uint32_t views, const Ops& list) {
      ImagePlan image = compile_image(list, input, options);
      const StoreShape& s = image.store;
      Output output;
      output.name = name;
      output.dtype = s.dtype;
      output.layout = options.layout;
      output.views = views;
      output.first_view = static_cast<std::uint32_t>(compiled->image_of_view.size());
      if (options.layout == Layout::nhwc) {
        output.shape = {s.height, s.width, s.channels};
      } else {
        output.shape = {s.channels, s.height, s.width};
      }
      output.view_bytes = std::size_t{s.width} * s.height * s.channels * size_of(s.dtype);
      const std::string words = describe_image(image);
      const std::string end = describe_output(output, input.kind);
      const std::string line = words.empty() ? end : words + " -> " + end;
      compiled->words += name == "data"
                             ? line
                             : fmt::format("{}{}: {} x ({})", compiled->words.empty() ? "" : "; ", name, views, line);
      compiled->image_of_view.insert(compiled->image_of_view.end(), views,
                                     static_cast<std::uint32_t>(compiled->images.size()));
      compiled->images.push_back(std::move(image));
      plan.outputs_.push_back(std::move(output));
    };
    const auto views =
        std::find_if(ops.begin(), ops.end(), [](const Op& op) { return std::holds_alternative<Views>(op.what); });
    if (views == ops.end()) {
      add("data", 1, ops);
    } else {
      check_op(*views);
      if (ops.size() != 1) refuse(*views, "it stands alone", "put the other operations into the lists of its groups");
      for (const Views::Group& group : std::get<Views>(views->what).groups) add(group.name, group.count, group.ops);
    }
    for (const ImagePlan& image : compiled->images) plan.deep_ = plan.deep_ || image.deep;
    for (std::size_t i = 0; i < compiled->images.size(); ++i) {
      if (compiled->images[i].deep != plan.deep_) {
        throw Error(ErrorKind::usage,
                    fmt::format("cannot use transform `Views`: group `{}` takes 8 bits while another takes 16",
                                plan.outputs_[i].name),
                    "give every group Window or ToFloat, or none");
      }
    }
    plan.view_count_ = static_cast<std::uint32_t>(compiled->image_of_view.size());
  } else {
    Output output;
    output.name = "data";
    std::string words;
    if (input.kind == SampleKind::audio) {
      compiled->sound = compile_sound(ops, input, options);
      const SoundPlan& sound = compiled->sound;
      plan.output_channels_ = sound.channels;
      plan.audio_is_direct_ = !sound.mono && sound.hz == 0 && sound.dtype == DType::f32;
      plan.audio_is_int16_ = !sound.mono && sound.hz == 0 && sound.dtype == DType::i16;
      output.dtype = sound.dtype;
      if (sound.channels != 1) output.shape.push_back(sound.channels);
      output.shape.push_back(sound.frames);
      output.varies = sound.frames == 0;
      output.view_bytes = static_cast<std::size_t>(sound.frames) * sound.channels * size_of(sound.dtype);
      words = describe_sound(sound);
    } else {
      compiled->array = compile_array(ops, input, options);
      const ArrayPlan& array = compiled->array;
      plan.array_is_copy_ = array.from == array.to && array.divisor == 1.0F;
      output.dtype = array.to;
      output.shape = input.shape;
      output.view_bytes = static_cast<std::size_t>(array.count) * size_of(array.to);
      if (array.divisor != 1.0F) words = "to [0, 1]";
    }
    const std::string end = describe_output(output, input.kind);
    compiled->words = words.empty() ? end : words + " -> " + end;
    plan.outputs_.push_back(std::move(output));
  }
  plan.compiled_ = std::move(compiled);
  return plan;
}

std::string Plan::describe() const {
  return compiled_->words;
}

}  // namespace stoker::transform
