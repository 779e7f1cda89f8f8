// Makes the programs of all views of an image, and says in one line what they do.
#include "stoker/transform/image_program.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/transform/ops_check.h"
#include "stoker/transform/ops_forms.h"

namespace stoker::transform {

static_assert(std::is_trivially_copyable_v<Draw>);

std::string height_by_width(std::uint32_t height, std::uint32_t width) {
  return fmt::format("{}x{}", height, width);
}

namespace {

// Of a Window without an offset.
IndexColumn offset_column() {
  return {.name = "hu_offset",
          .when_missing =
              "Window assumes an offset of 0: it was given none, and the data set has no column hu_offset; "
              "where stored values are shifted, give it, such as Window(offset=32768)"};
}

// The word for how images lie in memory.
std::string_view layout_word(Layout layout) noexcept {
  switch (layout) {
    case Layout::nchw:
      return " NCHW";
    case Layout::nhwc:
      return " NHWC";
    case Layout::channels_last:
      return " NCHW in channels_last order";
  }
  return "";
}

// One list per view: FiveCrop and TenCrop become that many.
std::vector<Ops> lists_of_views(const Ops& ops) {
  const auto crops = std::find_if(ops.begin(), ops.end(), [](const Op& op) {
    return std::holds_alternative<FiveCrop>(op.what) || std::holds_alternative<TenCrop>(op.what);
  });
  if (crops == ops.end()) return {ops};
  check_op(*crops);
  const auto* const ten = std::get_if<TenCrop>(&crops->what);
  std::vector<Ops> lists;
  for (const bool is_flipped : {false, true}) {
    if (is_flipped && ten == nullptr) break;
    for (std::uint8_t corner = 0; corner < 5; ++corner) {
      Ops& list = lists.emplace_back(ops.begin(), crops);
      if (is_flipped) list.push_back(ten->vertical_flip ? Op{VerticalFlip{{1.0}}} : Op{HorizontalFlip{1.0}});
      list.push_back(
          {FiveCrop{ten != nullptr ? ten->size : std::get<FiveCrop>(crops->what).size, static_cast<Corner>(corner)}});
      list.insert(list.end(), crops + 1, ops.end());
    }
  }
  return lists;
}

}  // namespace

std::string describe_image(const ImageProgram& plan) {
  std::vector<std::string> words;
  const auto add_flip = [&](std::size_t at) {
    if (plan.has_flip && plan.flip_at == at) words.push_back(fmt::format("flip p={}", plan.flip_p));
  };
  const auto add_window = [&] {
    const Window& w = plan.window;
    const auto range = [](double low, double high) {
      return low == high ? fmt::format("{}", low) : fmt::format("{}..{}", low, high);
    };
    words.push_back(
        fmt::format("window level {} width {}", range(w.level_min, w.level_max), range(w.width_min, w.width_max)));
  };
  if (plan.has_window && !plan.window_last) add_window();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    add_flip(i);
    const Step& step = plan.steps[i];
    switch (step.what) {
      case Step::What::random_crop:
        words.push_back(
            fmt::format("RandomResizedCrop {} {}", height_by_width(step.height, step.width), name(step.filter)));
        break;
      case Step::What::shorter_side:
        words.push_back(fmt::format("Resize shorter side {} {}", step.height, name(step.filter)));
        break;
      case Step::What::exact_size:
        words.push_back(fmt::format("Resize {} {}", height_by_width(step.height, step.width), name(step.filter)));
        break;
      case Step::What::center_crop:
        words.push_back("CenterCrop " + height_by_width(step.height, step.width));
        break;
      case Step::What::corner:
        words.push_back("FiveCrop " + height_by_width(step.height, step.width));
        break;
      case Step::What::random_window:
        words.push_back("RandomCrop " + height_by_width(step.height, step.width));
        break;
    }
  }
  add_flip(plan.steps.size());
  if (plan.has_window && plan.window_last) add_window();
  for (const Augment& augment : plan.augments) words.push_back(to_text({augment.op}));
  if (plan.next != nullptr) words.push_back(describe_image(*plan.next));
  if (!plan.mean.empty()) {
    words.push_back("normalize");
  } else if (plan.deep ? plan.divides : plan.values == Values::unit) {
    words.push_back("to [0, 1]");
  }
  for (const Augment& augment : plan.erasings) words.push_back(to_text({augment.op}));
  return fmt::format("{}", fmt::join(words, " -> "));
}

namespace {

std::string_view name_of(const Step& step) {
  switch (step.what) {
    case Step::What::random_crop:
      return "RandomResizedCrop";
    case Step::What::shorter_side:
    case Step::What::exact_size:
      return "Resize";
    case Step::What::center_crop:
      return "CenterCrop";
    case Step::What::corner:
      return "FiveCrop";
    case Step::What::random_window:
      return "RandomCrop";
  }
  return "";
}

}  // namespace

void add_passes(const ImageProgram& plan, const std::string& output, std::vector<Pass>& passes) {
  Pass first{.output = output, .operations = {}};
  const auto add = [](Pass& pass, std::string_view operation) { pass.operations.emplace_back(operation); };
  if (plan.has_window && !plan.window_last) add(first, "Window");
  for (std::size_t i = 0; i <= plan.steps.size(); ++i) {
    if (plan.has_flip && plan.flip_at == i) add(first, "HorizontalFlip");
    if (i < plan.steps.size()) add(first, name_of(plan.steps[i]));
  }
  if (plan.has_window && plan.window_last) add(first, "Window");
  Pass last{.output = output, .operations = {}};
  if (!plan.mean.empty()) add(last, "Normalize");
  if (plan.mean.empty() && (plan.deep ? plan.divides : plan.values == Values::unit)) add(last, "ToFloat");
  add(last, "store");
  if (!plan.is_chain()) {
    first.operations.insert(first.operations.end(), last.operations.begin(), last.operations.end());
    passes.push_back(std::move(first));
  } else {
    if (first.operations.empty()) add(first, "copy");
    passes.push_back(std::move(first));
    for (const Augment& augment : plan.augments)
      passes.push_back({.output = output, .operations = {std::string(name(augment.op))}, .is_whole = true});
    if (plan.next != nullptr) return add_passes(*plan.next, output, passes);
    passes.push_back(std::move(last));
  }
  if (plan.erasings.empty()) return;
  Pass erasing{.output = output, .operations = {}};
  for (const Augment& augment : plan.erasings) add(erasing, name(augment.op));
  passes.push_back(std::move(erasing));
}

std::size_t ImagePlan::pass_count() const noexcept {
  return compiled_->passes.size();
}

std::vector<Pass> ImagePlan::passes() const {
  std::vector<Pass> passes = compiled_->passes;
  constexpr std::uint64_t kTried = 16;  // draws of each view, of which the one counts that takes most
  for (const Output& output : outputs_) {
    std::uint64_t& most = passes[program_of(output.first_view).first_pass].scratch_bytes;
    for (std::uint32_t view = output.first_view; view < output.first_view + output.views; ++view) {
      for (std::uint64_t id = 0; id < kTried; ++id) {
        Random random(0, 0, id, view);
        Draw drawn;
        if (draw(view, input_.width, input_.height, random, drawn).ok())
          most = std::max(most, working_bytes(view, drawn));
      }
    }
  }
  return passes;
}

ImagePlan ImagePlan::compile(const Ops& ops, const ImageInput& input, const OutputOptions& options) {
  if (input.channels < 1 || input.channels > 4 || (input.bits != 8 && input.bits != 16)) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot transform images of {} channels of {} bits", input.channels, input.bits),
                "1 to 4 channels of 8 or 16 bits are possible");
  }
  ImagePlan plan;
  auto compiled = std::make_shared<Compiled>();
  plan.input_ = input;
  const auto add = [&](std::string_view name, std::uint32_t views, const Ops& ops_of_group) {
    const std::vector<Ops> lists = lists_of_views(ops_of_group);
    if (views > 1 && lists.size() > 1) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot use FiveCrop or TenCrop in group `{}`: it has {} views", name, views),
                  "give its group a count of 1");
    }
    Output output;
    output.first_view = static_cast<std::uint32_t>(compiled->program_of_view.size());
    const auto first_pass = static_cast<std::uint32_t>(compiled->passes.size());
    output.views = std::max(views, static_cast<std::uint32_t>(lists.size()));
    for (const Ops& list : lists) {
      ImageProgram program = compile_image(list, input, options);
      const StoreShape& s = program.last().store;
      const bool is_first = output.name.empty();
      output.name = name;
      output.dtype = s.dtype;
      output.layout = options.layout;
      if (options.layout == Layout::nhwc) {
        output.shape = {s.height, s.width, s.channels};
      } else {
        output.shape = {s.channels, s.height, s.width};
      }
      output.view_bytes = std::size_t{s.width} * s.height * s.channels * size_of(s.dtype);
      if (is_first) {
        const std::string line = transform::describe(describe_image(program), output, layout_word(options.layout));
        const bool is_only = name == "data" && output.views == 1;
        compiled->words +=
            is_only ? line
                    : fmt::format("{}{}: {} x ({})", compiled->words.empty() ? "" : "; ", name, output.views, line);
      }
      compiled->program_of_view.insert(compiled->program_of_view.end(), lists.size() == 1 ? views : 1,
                                       static_cast<std::uint32_t>(compiled->programs.size()));
      if (const Window* const window = program.window_of_chain(); window != nullptr && !window->offset)
        program.offset_value = plan.value_of(offset_column());
      std::vector<Pass> passes;
      add_passes(program, std::string(name), passes);
      if (is_first) compiled->passes.insert(compiled->passes.end(), passes.begin(), passes.end());
      // Of FiveCrop and TenCrop: views that are turned upside down have a pass more, and are not timed.
      if (first_pass + passes.size() == compiled->passes.size()) program.first_pass = first_pass;
      compiled->programs.push_back(std::move(program));
    }
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
  for (const ImageProgram& program : compiled->programs) plan.deep_ = plan.deep_ || program.deep;
  for (std::size_t i = 0; i < compiled->programs.size(); ++i) {
    if (compiled->programs[i].deep != plan.deep_) {
      const auto of = std::find_if(plan.outputs_.rbegin(), plan.outputs_.rend(), [&](const Output& output) {
        return compiled->program_of_view[output.first_view] <= i;
      });
      throw Error(ErrorKind::usage,
                  fmt::format("cannot use transform `Views`: group `{}` takes 8 bits while another takes 16", of->name),
                  "give every group Window or ToFloat, or none");
    }
  }
  plan.view_count_ = static_cast<std::uint32_t>(compiled->program_of_view.size());
  plan.compiled_ = std::move(compiled);
  return plan;
}

std::uint32_t ImagePlan::value_of(const IndexColumn& column) {
  const auto found = std::find_if(columns_.begin(), columns_.end(),
                                  [&](const IndexColumn& known) { return known.name == column.name; });
  const auto number = static_cast<std::uint32_t>(found - columns_.begin());
  if (number == columns_.size()) columns_.push_back(column);
  return number;
}

std::string ImagePlan::describe() const {
  return compiled_->words;
}

}  // namespace stoker::transform
