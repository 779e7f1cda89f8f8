// The short text of operations, read and written.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/utf8.h"
#include "stoker/transform/ops_check.h"
#include "stoker/transform/ops_forms.h"

namespace stoker::transform {
namespace {

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

  // False: it is not given.
  template <typename Number>
  bool number(std::string_view name, Number& value) {
    const auto text = take(name);
    if (!text) return false;
    if (read_number(*text, value)) return true;
    if constexpr (std::is_integral_v<Number>) {
      if (double number = 0; read_number(*text, number) && number == std::floor(number))
        refuse_argument(form_, fmt::format("{} = {} is {}", name, *text, number < 0 ? "below 0" : "too large"));
    }
    refuse_argument(form_, fmt::format("`{}` is not a {} for {}", *text,
                                       std::is_integral_v<Number> ? "whole number" : "number", name));
  }

  template <typename Number>
  void number_within(std::string_view name, Number& value, const Limits& limits) {
    if (!number(name, value) || !limits.zero_is_unset || value != 0) return;
    refuse_argument(form_, std::is_integral_v<Number> ? fmt::format("{} = 0 is not between 1 and {}", name, limits.most)
                                                      : fmt::format("{} = 0 is not above 0", name));
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

  // One field of an augmentation.
  void read(std::string_view name, double& value, const Limits& limits) { number_within(name, value, limits); }
  void read(std::string_view name, std::uint32_t& value, const Limits& limits) { number_within(name, value, limits); }
  void read(std::string_view name, bool& value, const Limits&) {
    const auto text = take(name);
    if (!text) return;
    if (*text != "true" && *text != "false")
      refuse_argument(form_, fmt::format("`{}` is not true or false for {}", *text, name));
    value = *text == "true";
  }
  void read(std::string_view name, Span& value, const Limits& limits) {
    double low = std::numeric_limits<double>::quiet_NaN(), high = low;
    range(name, low, high);
    if (std::isnan(low)) return;
    value = low == high ? spread(form_, name, low, limits) : Span{low, high};
  }
  void read(std::string_view name, Numbers& value, const Limits&) {
    const auto text = take(name);
    if (!text) return;
    value.clear();
    std::size_t from = 0;
    for (std::size_t i = 0; i <= text->size(); ++i) {
      if (i != text->size() && ((*text)[i] != '+' || i == from)) continue;
      double number = 0;
      if (!read_number(text->substr(from, i - from), number))
        refuse_argument(form_, fmt::format("`{}` is not a list of numbers joined by + for {}", *text, name));
      value.push_back(number);
      from = i + 1;
    }
  }
  template <typename Word>
  requires std::is_enum_v<Word>
  void read(std::string_view name, Word& value, const Limits&) {
    const auto text = take(name);
    if (!text) return;
    const auto words = words_of_field<Word>();
    const auto at = std::find(words.begin(), words.end(), *text);
    if (at == words.end())
      refuse_argument(form_, fmt::format("{} `{}` is none of {}", name, *text, fmt::join(words, ", ")));
    value = static_cast<Word>(at - words.begin());
  }
  void read(std::string_view name, TimmConfig& value, const Limits&) {
    if (const auto text = take(name)) value = read_timm_config(form_, *text);
  }
  void read(std::string_view, Ops&, const Limits&) {}  // they stand in brackets: parse_list

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
  Op augmentation;
  const bool is_augmentation = with_augmentation(which, [&](auto op) {
    decltype(op)::fields(
        op, [&](std::string_view name, auto& value, const Limits& limits) { args.read(name, value, limits); });
    args.finish();
    augmentation.what = std::move(op);
  });
  if (is_augmentation) return augmentation;
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
      if (to_lower(*text) == "imagenet") return {imagenet()};
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

// As much of it as a message repeats.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 200;
  return as_utf8(text, kMost);
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
        refuse(fmt::format("cannot read transform `{}`: `{}` closes nothing", shown(text), c));
      open.pop_back();
    }
    if (c == ',' && open.empty()) parts.push_back(trimmed(text.substr(from, i - from))), from = i + 1;
  }
  if (!open.empty()) refuse(fmt::format("cannot read transform `{}`: `{}` is missing", shown(text), open.back()));
  parts.push_back(trimmed(text.substr(from)));
  return parts;
}

// `depth`: how many operations hold the list.
Ops parse_list(std::string_view text, std::size_t depth);

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
                            parse_list(part.substr(bracket + 1, part.size() - bracket - 2), 1)});
  }
  return {views};
}

// "random_apply:0.8[color_jitter:0.4,blur:9]", whose name ends at `end`.
Op read_holder(std::size_t which, std::string_view part, std::size_t end, std::size_t depth) {
  const std::size_t bracket = part.find('[');
  if (bracket == std::string_view::npos || part.back() != ']') {
    refuse_argument(kForms[which], "the operations in [brackets] are missing");
  }
  Op op = read_op(which, Arguments(kForms[which], end < bracket ? part.substr(end + 1, bracket - end - 1) : ""));
  Ops inner = parse_list(part.substr(bracket + 1, part.size() - bracket - 2), depth + 1);
  std::visit(
      [&](auto& what) {
        if constexpr (requires { what.ops; }) what.ops = std::move(inner);
      },
      op.what);
  return op;
}

Ops parse_list(std::string_view text, std::size_t depth) {
  check_depth(depth);
  Ops ops;
  if (trimmed(text).empty()) return ops;
  for (const std::string_view part : split(text)) {
    const std::size_t end = std::min(part.find_first_of(":(["), part.size());
    const std::size_t which = find_form(trimmed(part.substr(0, end)));
    if (which == index_of<Views>()) {
      if (depth > 0) refuse_argument(kForms[which], "it cannot stand inside another Views");
      if (end == part.size() || part[end] != '(' || part.back() != ')')
        refuse_argument(kForms[which], "the groups are missing");
      ops.push_back(read_views(part.substr(end + 1, part.size() - end - 2)));
    } else if (holds_ops(which)) {
      ops.push_back(read_holder(which, part, end, depth));
    } else {
      if (end < part.size() && part[end] != ':')
        refuse_argument(kForms[which], fmt::format("arguments follow `:`, not `{}`", part[end]));
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

std::string side_text(std::uint32_t height, std::uint32_t width) {
  return height == width ? fmt::format("{}", height) : fmt::format("{}x{}", height, width);
}

std::string filter_text(Filter filter) {
  return filter == Filter::bilinear ? "" : fmt::format(":filter={}", name(filter));
}

std::string value_text(double value) {
  return fmt::format("{}", value);
}
std::string value_text(std::uint32_t value) {
  return fmt::format("{}", value);
}
std::string value_text(bool value) {
  return value ? "true" : "false";
}
std::string value_text(const Span& value) {
  return fmt::format("{}..{}", value.low, value.high);
}
std::string value_text(const Numbers& value) {
  return fmt::format("{}", fmt::join(value, "+"));
}
std::string value_text(const TimmConfig& value) {
  return timm_text(value);
}
template <typename Word>
requires std::is_enum_v<Word> std::string value_text(Word value) {
  return std::string(words_of<Word>()[static_cast<std::size_t>(value)]);
}

struct ToText {
  // The fields that differ from their defaults: bare as long as none before them is left out, then by name.
  template <Augmentation T>
  std::string operator()(const T& op) const {
    std::vector<std::string> usual;
    const T defaults{};
    T::fields(defaults, [&](std::string_view, const auto& value, const Limits&) {
      if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, Ops>) usual.push_back(value_text(value));
    });
    std::string text(kForms[index_of<T>()].text), inner;
    std::size_t at = 0;
    bool is_bare = true;
    T::fields(op, [&](std::string_view name, const auto& value, const Limits&) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Ops>) {
        inner = fmt::format("[{}]", to_text(value));
      } else {
        const std::string written = value_text(value);
        if (written == usual[at++]) {
          is_bare = false;
        } else {
          text += is_bare ? fmt::format(":{}", written) : fmt::format(":{}={}", name, written);
        }
      }
    });
    return text + inner;
  }
  std::string operator()(const RandomResizedCrop& op) const {
    const RandomResizedCrop usual;
    std::string text = "rrc:" + side_text(op.height, op.width);
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
  std::string operator()(const CenterCrop& op) const { return "centercrop:" + side_text(op.height, op.width); }
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

}  // namespace

Ops parse_ops(std::string_view text) {
  return parse_list(text, 0);
}

std::string to_text(const Ops& ops) {
  std::string text;
  for (const Op& op : ops) text += (text.empty() ? "" : ",") + std::visit(ToText{}, op.what);
  return text;
}

}  // namespace stoker::transform
