// Operations as JSON, from Python.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/transform/ops_check.h"
#include "stoker/transform/ops_forms.h"

namespace stoker::transform {
namespace {

// One JSON object, whose fields are taken by name; what is left over is refused.
class Fields {
 public:
  // `depth`: how many operations hold this one.
  Fields(const Form& form, const Json& object, std::size_t depth) : form_(form), object_(object), depth_(depth) {
    known_.push_back("op");
  }
  std::size_t depth() const { return depth_; }

  const Json* find(std::string_view name) {
    known_.push_back(name);
    const auto at = object_.find(name);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }

  template <typename Number>
  void number(std::string_view name, Number& value) {
    const Json* const field = find(name);
    if (field == nullptr) return;
    if constexpr (std::is_integral_v<Number>) {
      if (const std::optional<Number> whole = field->as<Number>())
        return void(value = *whole);  // Python writes 224.0 too
      refuse_argument(form_, fmt::format("{} = {} is not a whole number in range", name, field->dump()));
    } else {
      if (!field->is_number()) refuse_argument(form_, fmt::format("{} = {} is not a number", name, field->dump()));
      value = static_cast<Number>(field->get<double>());
    }
  }

  void filter(Filter& filter) {
    const Json* const field = find("filter");
    if (field == nullptr) return;
    const auto at =
        field->is_string() ? std::find(kFilters.begin(), kFilters.end(), field->get<std::string>()) : kFilters.end();
    if (at == kFilters.end()) {
      refuse_argument(form_, fmt::format("filter {} is none of {}", field->dump(), fmt::join(kFilters, ", ")));
    }
    filter = static_cast<Filter>(at - kFilters.begin());
  }

  std::vector<float> figures(std::string_view name) {
    const Json* const field = find(name);
    if (field == nullptr) refuse_argument(form_, fmt::format("{} is missing", name));
    std::vector<float> values;
    for (const Json& item : field->is_array() ? *field : Json::array({*field})) {
      if (!item.is_number())
        refuse_argument(form_, fmt::format("{} = {} is not a list of numbers", name, field->dump()));
      values.push_back(static_cast<float>(item.get<double>()));
    }
    return values;
  }

  // One field of an augmentation.
  void read(std::string_view name, double& value, const Limits&) { number(name, value); }
  void read(std::string_view name, std::uint32_t& value, const Limits&) { number(name, value); }
  void read(std::string_view name, bool& value, const Limits&) {
    const Json* const field = find(name);
    if (field == nullptr) return;
    if (!field->is_boolean()) refuse_argument(form_, fmt::format("{} = {} is not true or false", name, field->dump()));
    value = field->get<bool>();
  }
  void read(std::string_view name, Span& value, const Limits& limits) {
    const Json* const field = find(name);
    if (field == nullptr) return;
    const bool is_pair = field->is_array() && field->size() == 2 && (*field)[0].is_number() && (*field)[1].is_number();
    if (!is_pair && !field->is_number()) {
      refuse_argument(form_, fmt::format("{} = {} is not a number or [low, high]", name, field->dump()));
    }
    value = is_pair ? Span{(*field)[0].get<double>(), (*field)[1].get<double>()}
                    : spread(form_, name, field->get<double>(), limits);
  }
  void read(std::string_view name, Numbers& value, const Limits&) {
    const Json* const field = find(name);
    if (field == nullptr) return;
    value.clear();
    for (const Json& item : field->is_array() ? *field : Json::array({*field})) {
      if (!item.is_number())
        refuse_argument(form_, fmt::format("{} = {} is not a list of numbers", name, field->dump()));
      value.push_back(item.get<double>());
    }
  }
  template <typename Word>
  requires std::is_enum_v<Word>
  void read(std::string_view name, Word& value, const Limits&) {
    const Json* const field = find(name);
    if (field == nullptr) return;
    const auto words = words_of_field<Word>();
    const auto at = field->is_string() ? std::find(words.begin(), words.end(), field->get<std::string>()) : words.end();
    if (at == words.end()) {
      refuse_argument(form_, fmt::format("{} {} is none of {}", name, field->dump(), fmt::join(words, ", ")));
    }
    value = static_cast<Word>(at - words.begin());
  }
  void read(std::string_view name, TimmConfig& value, const Limits&) {
    const Json* const field = find(name);
    if (field == nullptr) return;
    if (!field->is_string()) refuse_argument(form_, fmt::format("{} = {} is not a text", name, field->dump()));
    value = read_timm_config(form_, field->get<std::string>());
  }
  void read(std::string_view name, Ops& value, const Limits&);

  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      const std::string near = nearest(key, known_.data(), known_.size());
      refuse_argument(form_, near.empty() ? fmt::format("it has no argument `{}`", key)
                                          : fmt::format("it has no argument `{}`: did you mean `{}`?", key, near));
    }
  }

  const Form& form() const { return form_; }

 private:
  const Form& form_;
  const Json& object_;
  std::size_t depth_;
  std::vector<std::string_view> known_;
};

Ops read_json_list(const Json& list, std::size_t depth);

void Fields::read(std::string_view name, Ops& value, const Limits&) {
  if (const Json* const field = find(name)) value = read_json_list(*field, depth_ + 1);
}

Op read_json_op(std::size_t which, Fields fields) {
  Op augmentation;
  const bool is_augmentation = with_augmentation(which, [&](auto op) {
    decltype(op)::fields(
        op, [&](std::string_view name, auto& value, const Limits& limits) { fields.read(name, value, limits); });
    fields.finish();
    augmentation.what = std::move(op);
  });
  if (is_augmentation) return augmentation;
  switch (which) {
    case index_of<RandomResizedCrop>(): {
      RandomResizedCrop op;
      fields.number("height", op.height);
      fields.number("width", op.width);
      fields.number("scale_min", op.scale_min);
      fields.number("scale_max", op.scale_max);
      fields.number("ratio_min", op.ratio_min);
      fields.number("ratio_max", op.ratio_max);
      fields.filter(op.filter);
      fields.finish();
      return {op};
    }
    case index_of<Resize>(): {
      Resize op;
      fields.number("height", op.height);
      fields.number("width", op.width);
      fields.filter(op.filter);
      fields.finish();
      return {op};
    }
    case index_of<CenterCrop>(): {
      CenterCrop op;
      fields.number("height", op.height);
      fields.number("width", op.width);
      fields.finish();
      return {op};
    }
    case index_of<HorizontalFlip>(): {
      HorizontalFlip op;
      fields.number("p", op.p);
      fields.finish();
      return {op};
    }
    case index_of<Normalize>(): {
      if (const Json* const preset = fields.find("preset")) {
        fields.finish();
        if (*preset != "imagenet")
          refuse_argument(fields.form(), fmt::format("preset {} is not `imagenet`", preset->dump()));
        return {imagenet()};
      }
      Normalize op;
      op.mean = fields.figures("mean");
      op.std = fields.figures("std");
      fields.finish();
      return {op};
    }
    case index_of<ToFloat>():
      fields.finish();
      return {ToFloat{}};
    case index_of<Window>(): {
      Window op;
      fields.number("level_min", op.level_min);
      fields.number("level_max", op.level_max);
      fields.number("width_min", op.width_min);
      fields.number("width_max", op.width_max);
      if (fields.find("offset") != nullptr) fields.number("offset", op.offset.emplace());
      fields.finish();
      return {op};
    }
    case index_of<PadOrTrim>(): {
      PadOrTrim op;
      fields.number("frames", op.frames);
      fields.finish();
      return {op};
    }
    case index_of<Resample>(): {
      Resample op;
      fields.number("hz", op.hz);
      fields.finish();
      return {op};
    }
    case index_of<Mono>():
      fields.finish();
      return {Mono{}};
    default:
      break;
  }
  if (fields.depth() > 0) refuse_argument(fields.form(), "it cannot stand inside another Views");
  const Json* const groups = fields.find("groups");
  fields.finish();
  if (groups == nullptr || !groups->is_array()) refuse_argument(fields.form(), "the groups are missing");
  Views views;
  for (const Json& item : *groups) {
    if (!item.is_object()) refuse_argument(fields.form(), "a group is not an object {name, count, ops}");
    Fields of_group(fields.form(), item, 0);
    Views::Group group;
    const Json* const name = of_group.find("name");
    if (name == nullptr || !name->is_string()) refuse_argument(fields.form(), "a group has no name");
    group.name = name->get<std::string>();
    of_group.number("count", group.count);
    if (const Json* const ops = of_group.find("ops")) group.ops = read_json_list(*ops, 1);
    of_group.finish();
    views.groups.push_back(std::move(group));
  }
  return {views};
}

Ops read_json_list(const Json& list, std::size_t depth) {
  check_depth(depth);
  if (!list.is_array()) refuse("cannot read the transform: it is not a list of operations");
  Ops ops;
  for (const Json& item : list) {
    const auto name = item.is_object() ? item.find("op") : item.end();
    if (!item.is_object() || name == item.end() || !name->is_string()) {
      refuse(fmt::format("cannot read the transform: {} is not an object with \"op\"", item.dump()));
    }
    const std::size_t which = find_form(name->get<std::string>());
    ops.push_back(read_json_op(which, Fields(kForms[which], item, depth)));
    check_op(ops.back());
  }
  return ops;
}

}  // namespace

Ops ops_from_json(std::string_view json) {
  const std::optional<Json> list = Json::try_parse(json);
  if (!list) refuse("cannot read the transform: it is not valid JSON");
  return read_json_list(*list, 0);
}

}  // namespace stoker::transform
