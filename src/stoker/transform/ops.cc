#include "stoker/transform/ops.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/transform/ops_check.h"

namespace stoker::transform {
namespace {

constexpr std::array<float, 3> kImagenetMean = {0.485F, 0.456F, 0.406F};
constexpr std::array<float, 3> kImagenetStd = {0.229F, 0.224F, 0.225F};

struct Form {
  std::string_view full, text;  // as in Python; as to_text writes it
  std::array<std::string_view, 2> aliases;
  std::string_view example, meaning;
};

// In the order of Op's variant.
constexpr std::array<Form, std::variant_size_v<decltype(Op::what)>> kForms = {{
    {"RandomResizedCrop",
     "rrc",
     {"randomresizedcrop", ""},
     "rrc:224:scale=0.2..1:ratio=0.75..1.33:filter=bicubic",
     "random area and aspect, resized to 224x224 (rrc:HxW for another shape)"},
    {"Resize",
     "resize",
     {"", ""},
     "resize:256:filter=bilinear",
     "shorter side becomes 256 (resize:HxW for both); filters: bilinear, bicubic, nearest, box"},
    {"CenterCrop", "centercrop", {"ccrop", ""}, "centercrop:224", "the middle 224x224 (centercrop:HxW)"},
    {"HorizontalFlip", "flip", {"horizontalflip", "hflip"}, "flip:0.5", "mirrored with probability 0.5"},
    {"Normalize",
     "normalize",
     {"", ""},
     "normalize:imagenet",
     "(x/255 - mean) / std; own figures: normalize:0.5/0.5 or normalize:0.485+0.456+0.406/0.229+0.224+0.225"},
    {"ToFloat", "tofloat", {"", ""}, "tofloat", "float32 in [0, 1]"},
    {"Window",
     "window",
     {"", ""},
     "window:level=-700..100:width=300..2000:offset=32768",
     "16-bit slices: a random or fixed (level=40) window becomes [0, 1]"},
    {"PadOrTrim", "pad", {"padortrim", ""}, "pad:8000", "sound: exactly 8000 frames, from the start"},
    {"Resample", "resample", {"", ""}, "resample:16000", "sound: to 16000 Hz"},
    {"Mono", "mono", {"", ""}, "mono", "sound: mean of the channels"},
    {"Views",
     "views",
     {"", ""},
     "views(big=2[rrc:224,flip],small=8[rrc:96,flip])",
     "one decode, many views: name=count[operations]"},
}};

constexpr std::array<std::string_view, 4> kFilters = {"bilinear", "bicubic", "nearest", "box"};

template <typename T>
constexpr std::size_t index_of() {
  const auto find = []<typename... Ts>(const std::variant<Ts...>*) {
    std::size_t at = 0;
    (void)((std::is_same_v<T, Ts> || (++at, false)) || ...);
    return at;
  };
  return find(static_cast<const decltype(Op::what)*>(nullptr));
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return result;
}

[[noreturn]] void refuse(std::string message, std::string hint = {}) {
  throw Error(ErrorKind::usage, std::move(message), std::move(hint));
}

[[noreturn]] void refuse_argument(const Form& form, std::string_view cause) {
  refuse(fmt::format("cannot use transform `{}`: {}", form.full, cause), fmt::format("for example `{}`", form.example));
}

std::size_t find_form(std::string_view name) {
  const std::string word = lower(name);
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < kForms.size(); ++i) {
    const Form& form = kForms[i];
    if (word == form.text || word == form.aliases[0] || word == form.aliases[1] || name == form.full) {
      if (!word.empty()) return i;
    }
    known.push_back(form.text);
    for (const std::string_view alias : form.aliases) {
      if (!alias.empty()) known.push_back(alias);
    }
  }
  if (word.empty()) {
    refuse("cannot read the transform: an operation between commas is empty",
           "for example `rrc:224,flip,normalize:imagenet`");
  }
  const std::string near = nearest(word, known.data(), known.size());
  if (near.empty()) {
    std::string names;
    for (const Form& form : kForms) names += fmt::format("{}{}", names.empty() ? "" : ", ", form.text);
    refuse(fmt::format("unknown transform `{}`", name), fmt::format("known are {}", names));
  }
  refuse(fmt::format("unknown transform `{}`: did you mean `{}`?", name, near),
         fmt::format("for example `{}`", kForms[find_form(near)].example));
}

template <typename Number>
bool read_number(std::string_view text, Number& value) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return false;
  if constexpr (std::is_floating_point_v<Number>) return std::isfinite(value);
  return true;
}

// One operation's arguments: "224:scale=0.2..1" read in order, each once.
class Arguments {
 public:
  Arguments(const Form& form, std::string_view text) : form_(form) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(':'), text.size());
      const std::string_view part = text.substr(0, end);
      const std::size_t equal = part.find('=');
      if (equal == std::string_view::npos) {
        parts_.push_back({"", part});
      } else {
        parts_.push_back({part.substr(0, equal), part.substr(equal + 1)});
      }
      if (end == text.size()) break;
      text.remove_prefix(end + 1);
      if (text.empty()) refuse_argument(form_, "an argument after `:` is empty");
    }
  }

  // The argument of that name or, given bare, the next bare one.
  std::optional<std::string_view> take(std::string_view name) {
    names_.push_back(name);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].first == name || (parts_[i].first.empty() && i == 0)) {
        const std::string_view value = parts_[i].second;
        parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(i));
        if (value.empty()) refuse_argument(form_, fmt::format("`{}` is empty", name));
        return value;
      }
    }
    return std::nullopt;
  }

  template <typename Number>
  void number(std::string_view name, Number& value) {
    const auto text = take(name);
    if (text && !read_number(*text, value)) {
      refuse_argument(form_, fmt::format("`{}` is not a {} for {}", *text,
                                         std::is_integral_v<Number> ? "whole number" : "number", name));
    }
  }

  void range(std::string_view name, double& low, double& high) {
    const auto text = take(name);
    if (!text) return;
    const std::size_t dots = text->find("..");
    const bool ok = dots == std::string_view::npos
                        ? read_number(*text, low) && (high = low, true)
                        : read_number(text->substr(0, dots), low) && read_number(text->substr(dots + 2), high);
    if (!ok) refuse_argument(form_, fmt::format("`{}` is not a range for {} (low..high, or one number)", *text, name));
  }

  // "224" or "224x160"; `square`: one number means both.
  void size(std::uint32_t& height, std::uint32_t& width, bool square) {
    const auto text = take("size");
    if (!text) return;
    const std::size_t cross = text->find('x');
    const bool ok = cross == std::string_view::npos ? read_number(*text, height) && (width = square ? height : 0, true)
                                                    : read_number(text->substr(0, cross), height) &&
                                                          read_number(text->substr(cross + 1), width) && width > 0;
    if (!ok) refuse_argument(form_, fmt::format("`{}` is not a size (pixels, or HEIGHTxWIDTH)", *text));
  }

  void filter(Filter& filter) {
    const auto text = take("filter");
    if (!text) return;
    const auto at = std::find(kFilters.begin(), kFilters.end(), *text);
    if (at == kFilters.end()) {
      refuse_argument(form_, fmt::format("filter `{}` is none of {}", *text, fmt::join(kFilters, ", ")));
    }
    filter = static_cast<Filter>(at - kFilters.begin());
  }

  const Form& form() const { return form_; }

  void finish() const {
    if (parts_.empty()) return;
    const auto& [name, value] = parts_.front();
    if (names_.empty())
      refuse_argument(form_, fmt::format("`{}` is too much, it takes no argument", name.empty() ? value : name));
    if (name.empty()) refuse_argument(form_, fmt::format("`{}` is an argument too many", value));
    refuse_argument(
        form_, fmt::format("`{}` is not one of its arguments ({}), or is given twice", name, fmt::join(names_, ", ")));
  }

 private:
  const Form& form_;
  std::vector<std::pair<std::string_view, std::string_view>> parts_;
  std::vector<std::string_view> names_;
};

Normalize imagenet() {
  return {{kImagenetMean.begin(), kImagenetMean.end()}, {kImagenetStd.begin(), kImagenetStd.end()}};
}

// "0.485+0.456+0.406"; the plus of an exponent ("1e+2") does not separate.
std::vector<float> read_figures(const Form& form, std::string_view text) {
  std::vector<float> figures;
  std::size_t from = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const bool separates = i == text.size() || (text[i] == '+' && i > from && text[i - 1] != 'e' && text[i - 1] != 'E');
    if (!separates) continue;
    float value = 0;
    if (!read_number(text.substr(from, i - from), value)) {
      refuse_argument(form, fmt::format("`{}` is not a list of numbers joined by +", text));
    }
    figures.push_back(value);
    from = i + 1;
  }
  return figures;
}

Op read_op(std::size_t which, Arguments args) {
  switch (which) {
    case index_of<RandomResizedCrop>(): {
      RandomResizedCrop op;
      args.size(op.height, op.width, true);
      args.range("scale", op.scale_min, op.scale_max);
      args.range("ratio", op.ratio_min, op.ratio_max);
      args.filter(op.filter);
      args.finish();
      return {op};
    }
    case index_of<Resize>(): {
      Resize op;
      args.size(op.height, op.width, false);
      args.filter(op.filter);
      args.finish();
      return {op};
    }
    case index_of<CenterCrop>(): {
      CenterCrop op;
      args.size(op.height, op.width, true);
      args.finish();
      return {op};
    }
    case index_of<HorizontalFlip>(): {
      HorizontalFlip op;
      args.number("p", op.p);
      args.finish();
      return {op};
    }
    case index_of<Normalize>(): {
      const auto text = args.take("mean/std");
      args.finish();
      if (!text) refuse_argument(args.form(), "mean and std are missing");
      if (lower(*text) == "imagenet") return {imagenet()};
      const std::size_t slash = text->find('/');
      if (slash == std::string_view::npos) {
        refuse_argument(args.form(), fmt::format("`{}` is neither `imagenet` nor MEAN/STD", *text));
      }
      return {Normalize{read_figures(args.form(), text->substr(0, slash)),
                        read_figures(args.form(), text->substr(slash + 1))}};
    }
    case index_of<ToFloat>():
      args.finish();
      return {ToFloat{}};
    case index_of<Window>(): {
      Window op;
      args.range("level", op.level_min, op.level_max);
      args.range("width", op.width_min, op.width_max);
      double offset = std::numeric_limits<double>::infinity();
      args.number("offset", offset);
      if (std::isfinite(offset)) op.offset = offset;
      args.finish();
      return {op};
    }
    case index_of<PadOrTrim>(): {
      PadOrTrim op;
      args.number("frames", op.frames);
      args.finish();
      return {op};
    }
    case index_of<Resample>(): {
      Resample op;
      args.number("hz", op.hz);
      args.finish();
      return {op};
    }
    case index_of<Mono>():
      args.finish();
      return {Mono{}};
    default:
      break;
  }
  refuse_argument(kForms[index_of<Views>()], "the groups are missing");
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Parts between commas that lie outside all brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  std::string open;
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') open.push_back(c == '(' ? ')' : ']');
    if (c == ')' || c == ']') {
      if (open.empty() || open.back() != c)
        refuse(fmt::format("cannot read transform `{}`: `{}` closes nothing", text, c));
      open.pop_back();
    }
    if (c == ',' && open.empty()) parts.push_back(trimmed(text.substr(from, i - from))), from = i + 1;
  }
  if (!open.empty()) refuse(fmt::format("cannot read transform `{}`: `{}` is missing", text, open.back()));
  parts.push_back(trimmed(text.substr(from)));
  return parts;
}

Ops parse_list(std::string_view text, bool inside_views);

Op read_views(std::string_view inside) {
  const Form& form = kForms[index_of<Views>()];
  Views views;
  for (const std::string_view part : split(inside)) {
    const std::size_t equal = part.find('='), bracket = part.find('[');
    std::uint32_t count = 0;
    if (equal == std::string_view::npos || bracket == std::string_view::npos || bracket < equal || part.back() != ']' ||
        !read_number(trimmed(part.substr(equal + 1, bracket - equal - 1)), count)) {
      refuse_argument(form, fmt::format("`{}` is not name=count[operations]", part));
    }
    views.groups.push_back({std::string(trimmed(part.substr(0, equal))), count,
                            parse_list(part.substr(bracket + 1, part.size() - bracket - 2), true)});
  }
  return {views};
}

Ops parse_list(std::string_view text, bool inside_views) {
  Ops ops;
  if (trimmed(text).empty()) return ops;
  for (const std::string_view part : split(text)) {
    const std::size_t end = std::min(part.find_first_of(":("), part.size());
    const std::size_t which = find_form(trimmed(part.substr(0, end)));
    if (which == index_of<Views>()) {
      if (inside_views) refuse_argument(kForms[which], "it cannot stand inside another Views");
      if (end == part.size() || part[end] != '(' || part.back() != ')')
        refuse_argument(kForms[which], "the groups are missing");
      ops.push_back(read_views(part.substr(end + 1, part.size() - end - 2)));
    } else {
      if (end < part.size() && part[end] == '(') refuse_argument(kForms[which], "arguments follow `:`, not `(`");
      ops.push_back(read_op(which, Arguments(kForms[which], end < part.size() ? part.substr(end + 1) : "")));
      if (end + 1 == part.size()) refuse_argument(kForms[which], "an argument after `:` is empty");
    }
    check_op(ops.back());
  }
  return ops;
}

std::string range_text(double low, double high) {
  return low == high ? fmt::format("{}", low) : fmt::format("{}..{}", low, high);
}

std::string size_text(std::uint32_t height, std::uint32_t width) {
  return height == width ? fmt::format("{}", height) : fmt::format("{}x{}", height, width);
}

std::string filter_text(Filter filter) {
  return filter == Filter::bilinear ? "" : fmt::format(":filter={}", name(filter));
}

struct ToText {
  std::string operator()(const RandomResizedCrop& op) const {
    const RandomResizedCrop usual;
    std::string text = "rrc:" + size_text(op.height, op.width);
    if (op.scale_min != usual.scale_min || op.scale_max != usual.scale_max) {
      text += ":scale=" + range_text(op.scale_min, op.scale_max);
    }
    if (op.ratio_min != usual.ratio_min || op.ratio_max != usual.ratio_max) {
      text += ":ratio=" + range_text(op.ratio_min, op.ratio_max);
    }
    return text + filter_text(op.filter);
  }
  std::string operator()(const Resize& op) const {
    return (op.width == 0 ? fmt::format("resize:{}", op.height) : fmt::format("resize:{}x{}", op.height, op.width)) +
           filter_text(op.filter);
  }
  std::string operator()(const CenterCrop& op) const { return "centercrop:" + size_text(op.height, op.width); }
  std::string operator()(const HorizontalFlip& op) const {
    return op.p == HorizontalFlip{}.p ? "flip" : fmt::format("flip:{}", op.p);
  }
  std::string operator()(const Normalize& op) const {
    const Normalize usual = imagenet();
    if (op.mean == usual.mean && op.std == usual.std) return "normalize:imagenet";
    return fmt::format("normalize:{}/{}", fmt::join(op.mean, "+"), fmt::join(op.std, "+"));
  }
  std::string operator()(const ToFloat&) const { return "tofloat"; }
  std::string operator()(const Window& op) const {
    std::string text = fmt::format("window:level={}:width={}", range_text(op.level_min, op.level_max),
                                   range_text(op.width_min, op.width_max));
    return op.offset ? text + fmt::format(":offset={}", *op.offset) : text;
  }
  std::string operator()(const PadOrTrim& op) const { return fmt::format("pad:{}", op.frames); }
  std::string operator()(const Resample& op) const { return fmt::format("resample:{}", op.hz); }
  std::string operator()(const Mono&) const { return "mono"; }
  std::string operator()(const Views& op) const {
    std::string groups;
    for (const Views::Group& group : op.groups) {
      groups += fmt::format("{}{}={}[{}]", groups.empty() ? "" : ",", group.name, group.count, to_text(group.ops));
    }
    return fmt::format("views({})", groups);
  }
};

// One JSON object, whose fields are taken by name; what is left over is refused.
class Fields {
 public:
  Fields(const Form& form, const nlohmann::json& object) : form_(form), object_(object) { known_.push_back("op"); }

  const nlohmann::json* find(std::string_view name) {
    known_.push_back(name);
    const auto at = object_.find(name);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }

  template <typename Number>
  void number(std::string_view name, Number& value) {
    const nlohmann::json* const field = find(name);
    if (field == nullptr) return;
    if constexpr (std::is_integral_v<Number>) {
      // Python writes 224.0 for a float that is whole.
      const bool whole = field->is_number_unsigned() ||
                         (field->is_number_float() && std::floor(field->get<double>()) == field->get<double>() &&
                          field->get<double>() >= 0 && field->get<double>() < 0x1p53);
      if (whole) {
        const std::uint64_t wide = field->is_number_unsigned() ? field->get<std::uint64_t>()
                                                               : static_cast<std::uint64_t>(field->get<double>());
        if (wide <= std::numeric_limits<Number>::max()) return void(value = static_cast<Number>(wide));
      }
      refuse_argument(form_, fmt::format("{} = {} is not a whole number in range", name, field->dump()));
    } else {
      if (!field->is_number()) refuse_argument(form_, fmt::format("{} = {} is not a number", name, field->dump()));
      value = static_cast<Number>(field->get<double>());
    }
  }

  void filter(Filter& filter) {
    const nlohmann::json* const field = find("filter");
    if (field == nullptr) return;
    const auto at =
        field->is_string() ? std::find(kFilters.begin(), kFilters.end(), field->get<std::string>()) : kFilters.end();
    if (at == kFilters.end()) {
      refuse_argument(form_, fmt::format("filter {} is none of {}", field->dump(), fmt::join(kFilters, ", ")));
    }
    filter = static_cast<Filter>(at - kFilters.begin());
  }

  std::vector<float> figures(std::string_view name) {
    const nlohmann::json* const field = find(name);
    if (field == nullptr) refuse_argument(form_, fmt::format("{} is missing", name));
    std::vector<float> values;
    for (const nlohmann::json& item : field->is_array() ? *field : nlohmann::json::array({*field})) {
      if (!item.is_number())
        refuse_argument(form_, fmt::format("{} = {} is not a list of numbers", name, field->dump()));
      values.push_back(static_cast<float>(item.get<double>()));
    }
    return values;
  }

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
  const nlohmann::json& object_;
  std::vector<std::string_view> known_;
};

Ops read_json_list(const nlohmann::json& list, bool inside_views);

Op read_json_op(std::size_t which, Fields fields, bool inside_views) {
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
      if (const nlohmann::json* const preset = fields.find("preset")) {
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
  if (inside_views) refuse_argument(fields.form(), "it cannot stand inside another Views");
  const nlohmann::json* const groups = fields.find("groups");
  fields.finish();
  if (groups == nullptr || !groups->is_array()) refuse_argument(fields.form(), "the groups are missing");
  Views views;
  for (const nlohmann::json& item : *groups) {
    if (!item.is_object()) refuse_argument(fields.form(), "a group is not an object {name, count, ops}");
    Fields of_group(fields.form(), item);
    Views::Group group;
    const nlohmann::json* const name = of_group.find("name");
    if (name == nullptr || !name->is_string()) refuse_argument(fields.form(), "a group has no name");
    group.name = name->get<std::string>();
    of_group.number("count", group.count);
    if (const nlohmann::json* const ops = of_group.find("ops")) group.ops = read_json_list(*ops, true);
    of_group.finish();
    views.groups.push_back(std::move(group));
  }
  return {views};
}

Ops read_json_list(const nlohmann::json& list, bool inside_views) {
  if (!list.is_array()) refuse("cannot read the transform: it is not a list of operations");
  Ops ops;
  for (const nlohmann::json& item : list) {
    const auto name = item.is_object() ? item.find("op") : item.end();
    if (!item.is_object() || name == item.end() || !name->is_string()) {
      refuse(fmt::format("cannot read the transform: {} is not an object with \"op\"", item.dump()));
    }
    const std::size_t which = find_form(name->get<std::string>());
    ops.push_back(read_json_op(which, Fields(kForms[which], item), inside_views));
    check_op(ops.back());
  }
  return ops;
}

struct Check {
  static constexpr std::uint32_t kLargestSide = 65535;

  template <typename T>
  static void side(std::uint32_t value, std::string_view what) {
    if (value == 0 || value > kLargestSide) {
      refuse_argument(kForms[index_of<T>()], fmt::format("{} = {} is not between 1 and {}", what, value, kLargestSide));
    }
  }
  template <typename T>
  static void range(double low, double high, std::string_view what) {
    if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high)) {
      refuse_argument(kForms[index_of<T>()], fmt::format("{} {}..{} does not go from low to high", what, low, high));
    }
  }

  void operator()(const RandomResizedCrop& op) const {
    side<RandomResizedCrop>(op.height, "height");
    side<RandomResizedCrop>(op.width, "width");
    range<RandomResizedCrop>(op.scale_min, op.scale_max, "scale");
    range<RandomResizedCrop>(op.ratio_min, op.ratio_max, "ratio");
    if (op.scale_min <= 0 || op.scale_max > 1) {
      refuse_argument(
          kForms[index_of<RandomResizedCrop>()],
          fmt::format("scale {}..{} is not a share of the area (above 0, at most 1)", op.scale_min, op.scale_max));
    }
    if (op.ratio_min <= 0) refuse_argument(kForms[index_of<RandomResizedCrop>()], "ratio must be above 0");
  }
  void operator()(const Resize& op) const {
    side<Resize>(op.height, "height");
    if (op.width != 0) side<Resize>(op.width, "width");
  }
  void operator()(const CenterCrop& op) const {
    side<CenterCrop>(op.height, "height");
    side<CenterCrop>(op.width, "width");
  }
  void operator()(const HorizontalFlip& op) const {
    if (!(op.p >= 0 && op.p <= 1)) {
      refuse_argument(kForms[index_of<HorizontalFlip>()], fmt::format("p = {} is not between 0 and 1", op.p));
    }
  }
  void operator()(const Normalize& op) const {
    const Form& form = kForms[index_of<Normalize>()];
    if (op.mean.empty() || op.mean.size() > 4 || op.mean.size() != op.std.size()) {
      refuse_argument(
          form, fmt::format("{} means and {} stds are not one of each per channel", op.mean.size(), op.std.size()));
    }
    for (std::size_t i = 0; i < op.mean.size(); ++i) {
      if (!std::isfinite(op.mean[i])) refuse_argument(form, fmt::format("mean {} is not a number", op.mean[i]));
      if (!(op.std[i] > 0) || !std::isfinite(op.std[i]))
        refuse_argument(form, fmt::format("std {} is not above 0", op.std[i]));
    }
  }
  void operator()(const ToFloat&) const {}
  void operator()(const Window& op) const {
    range<Window>(op.level_min, op.level_max, "level");
    range<Window>(op.width_min, op.width_max, "width");
    if (op.width_min <= 0)
      refuse_argument(kForms[index_of<Window>()], fmt::format("width {} is not above 0", op.width_min));
    if (op.offset && !std::isfinite(*op.offset)) refuse_argument(kForms[index_of<Window>()], "offset is not a number");
  }
  void operator()(const PadOrTrim& op) const {
    if (op.frames == 0 || op.frames > (std::uint64_t{1} << 40)) {
      refuse_argument(kForms[index_of<PadOrTrim>()], fmt::format("frames = {} is not between 1 and 2^40", op.frames));
    }
  }
  void operator()(const Resample& op) const {
    if (op.hz == 0 || op.hz > 10'000'000) {
      refuse_argument(kForms[index_of<Resample>()], fmt::format("hz = {} is not between 1 and 10000000", op.hz));
    }
  }
  void operator()(const Mono&) const {}
  void operator()(const Views& op) const {
    const Form& form = kForms[index_of<Views>()];
    if (op.groups.empty()) refuse_argument(form, "the groups are missing");
    for (const Views::Group& group : op.groups) {
      const bool plain = !group.name.empty() && std::all_of(group.name.begin(), group.name.end(), [](unsigned char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      });
      if (!plain)
        refuse_argument(form, fmt::format("group name `{}` is not made of letters, digits and _", group.name));
      if (group.count == 0 || group.count > 1024) {
        refuse_argument(form, fmt::format("group `{}` has {} views, not 1 to 1024", group.name, group.count));
      }
      const auto same = [&](const Views::Group& other) { return other.name == group.name; };
      if (std::count_if(op.groups.begin(), op.groups.end(), same) > 1) {
        refuse_argument(form, fmt::format("group `{}` is given twice", group.name));
      }
      for (const Op& inner : group.ops) {
        if (std::holds_alternative<Views>(inner.what)) refuse_argument(form, "it cannot stand inside another Views");
        check_op(inner);
      }
    }
  }
};

}  // namespace

std::string_view name(Filter filter) noexcept {
  return kFilters[static_cast<std::size_t>(filter)];
}

std::string_view name(const Op& op) noexcept {
  return kForms[op.what.index()].full;
}

void check_op(const Op& op) {
  std::visit(Check{}, op.what);
}

Ops parse_ops(std::string_view text) {
  return parse_list(text, false);
}

Ops ops_from_json(std::string_view json) {
  const nlohmann::json list = nlohmann::json::parse(json, nullptr, false);
  if (list.is_discarded()) refuse("cannot read the transform: it is not valid JSON");
  return read_json_list(list, false);
}

std::string to_text(const Ops& ops) {
  std::string text;
  for (const Op& op : ops) text += (text.empty() ? "" : ",") + std::visit(ToText{}, op.what);
  return text;
}

std::string ops_help() {
  std::string text;
  for (const Form& form : kForms) {
    text += fmt::format("  {}\n      {}: {}\n", form.example, form.full, form.meaning);
  }
  return text;
}

}  // namespace stoker::transform
