// timm's text for its RandAugment, such as "rand-m9-mstd0.5-inc1".
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "stoker/base/utf8.h"
#include "stoker/transform/ops_forms.h"

namespace stoker::transform {
namespace {

constexpr std::array<std::string_view, 4> kTimmSets = {"", "tweights", "t3a", "t3aw"};
constexpr std::array<std::string_view, 6> kTimmWords = {"m", "n", "p", "mstd", "mmax", "inc"};

std::uint32_t timm_whole(const Form& form, std::string_view part, double value, double most) {
  if (value == std::floor(value) && value <= most) return static_cast<std::uint32_t>(value);
  refuse_argument(form, fmt::format("the number of `{}` is not a whole one from 0 to {}", part, most));
}

// Without an exponent, whose dash would end the part.
std::string plain_digits(double value) {
  std::array<char, 512> digits{};
  return {digits.data(),
          std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed).ptr};
}

}  // namespace

TimmConfig read_timm_config(const Form& form, std::string_view text) {
  const std::string shown = as_utf8(text, 200);
  if (text != "rand" && !text.starts_with("rand-")) {
    refuse_argument(form, fmt::format("`{}` is not a text of timm that starts with rand-", shown));
  }
  TimmConfig config;
  std::array<bool, kTimmWords.size()> given{};
  std::string_view rest = text.substr(4);
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the dash
    const std::string_view part = rest.substr(0, rest.find('-'));
    rest.remove_prefix(part.size());
    const std::string written = as_utf8(part, 200);
    if (part.starts_with('t')) {
      const auto set = std::find(kTimmSets.begin(), kTimmSets.end(), part);
      if (set == kTimmSets.end()) {
        refuse_argument(form, fmt::format("`{}` of `{}` is none of the sets {}", written, shown,
                                          fmt::join(std::span(kTimmSets).subspan(1), ", ")));
      }
      if (config.set != TimmSet::usual) refuse_argument(form, fmt::format("`{}` has two sets of operations", shown));
      config.set = static_cast<TimmSet>(set - kTimmSets.begin());
      continue;
    }
    const std::size_t digit = std::min(part.find_first_of("0123456789"), part.size());
    double value = 0;
    const char* const end = part.data() + part.size();
    const auto [stop, error] = std::from_chars(part.data() + digit, end, value, std::chars_format::fixed);
    if (error != std::errc() || stop != end)
      refuse_argument(form, fmt::format("`{}` of `{}` is not a word and a number, such as m9", written, shown));
    const auto word = std::find(kTimmWords.begin(), kTimmWords.end(), part.substr(0, digit));
    if (word == kTimmWords.end()) {
      refuse_argument(form, fmt::format("`{}` of `{}` is none of {}", written, shown, fmt::join(kTimmWords, ", ")));
    }
    bool& is_given = given[static_cast<std::size_t>(word - kTimmWords.begin())];
    if (is_given) refuse_argument(form, fmt::format("`{}` is given twice in `{}`", *word, shown));
    is_given = true;
    constexpr double kMostMagnitude = 1000, kMostOps = 64;
    if (*word == "m") config.magnitude = timm_whole(form, written, value, kMostMagnitude);
    if (*word == "n") config.num_ops = timm_whole(form, written, value, kMostOps);
    if (*word == "mmax") config.most = timm_whole(form, written, value, kMostMagnitude);
    if (*word == "inc") config.is_increasing = timm_whole(form, written, value, kMostMagnitude) != 0;
    if (*word == "mstd") config.magnitude_std = std::min(value, kTimmUniform);
    if (*word == "p" && value > 1) refuse_argument(form, fmt::format("p = {} is not between 0 and 1", value));
    if (*word == "p") config.p = value;
  }
  const std::uint32_t most_picks = config.set == TimmSet::weights ? 15 : 14;
  if ((config.set == TimmSet::weights || config.set == TimmSet::three_weighted) && config.num_ops > most_picks) {
    refuse_argument(form, fmt::format("n{} is more than the {} operations of {}, each of which is picked once at most",
                                      config.num_ops, most_picks, kTimmSets[static_cast<std::size_t>(config.set)]));
  }
  if (config.most == 0) config.most = TimmConfig{}.most;  // as timm reads mmax0
  return config;
}

std::string timm_text(const TimmConfig& config) {
  const TimmConfig usual;
  std::string text = fmt::format("rand-m{}", config.magnitude);
  if (config.num_ops != usual.num_ops) text += fmt::format("-n{}", config.num_ops);
  if (config.p != usual.p) text += "-p" + plain_digits(config.p);
  if (config.magnitude_std != usual.magnitude_std) text += "-mstd" + plain_digits(config.magnitude_std);
  if (config.most != usual.most) text += fmt::format("-mmax{}", config.most);
  if (config.is_increasing) text += "-inc1";
  if (config.set != usual.set) text += fmt::format("-{}", kTimmSets[static_cast<std::size_t>(config.set)]);
  return text;
}

}  // namespace stoker::transform
