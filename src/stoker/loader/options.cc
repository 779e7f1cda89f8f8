#include "stoker/loader/options.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/error.h"

namespace stoker::loader {
namespace {

template <typename Value, std::size_t N>
Value parse(std::string_view text, std::string_view what,
            const std::array<std::pair<std::string_view, Value>, N>& words) {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) {
    if (words[i].first == text) return words[i].second;
    names[i] = words[i].first;
  }
  const std::string near = nearest(text, names.data(), N);
  throw Error(ErrorKind::usage, fmt::format("{} is one of {}, not `{}`", what, fmt::join(names, ", "), text),
              near.empty() ? "" : fmt::format("did you mean `{}`?", near));
}

constexpr std::array<std::pair<std::string_view, OnError>, 4> kOnError = {
    {{"raise", OnError::raise}, {"skip", OnError::skip}, {"replace", OnError::replace}, {"zero", OnError::zero}}};
constexpr std::array<std::pair<std::string_view, Decode>, 3> kDecode = {
    {{"exact", Decode::exact}, {"fast", Decode::fast}, {"none", Decode::none}}};

constexpr std::array<std::pair<std::string_view, UseSeekIndex>, 3> kSeekIndex = {
    {{"auto", UseSeekIndex::automatic}, {"memory", UseSeekIndex::memory}, {"off", UseSeekIndex::off}}};

template <typename Value, std::size_t N>
std::string_view name_in(const std::array<std::pair<std::string_view, Value>, N>& words, Value value) noexcept {
  for (const auto& [word, known] : words) {
    if (known == value) return word;
  }
  return "";
}

}  // namespace

OnError parse_on_error(std::string_view text) {
  return parse(text, "on_error", kOnError);
}
Decode parse_decode(std::string_view text) {
  return parse(text, "decode", kDecode);
}
UseSeekIndex parse_seek_index(std::string_view text) {
  return parse(text, "seek_index", kSeekIndex);
}
codec::Color parse_color(std::string_view text) {
  return parse<codec::Color, 3>(
      text, "color", {{{"rgb", codec::Color::rgb}, {"gray", codec::Color::gray}, {"keep", codec::Color::keep}}});
}
transform::Layout parse_layout(std::string_view text) {
  using transform::Layout;
  return parse<Layout, 3>(text, "layout",
                          {{{"NCHW", Layout::nchw}, {"NHWC", Layout::nhwc}, {"channels_last", Layout::channels_last}}});
}
dataset::LastBatch parse_last_batch(std::string_view text) {
  using dataset::LastBatch;
  return parse<LastBatch, 3>(text, "last_batch",
                             {{{"keep", LastBatch::keep}, {"drop", LastBatch::drop}, {"pad", LastBatch::pad}}});
}

std::string_view name(OnError on_error) noexcept {
  return name_in(kOnError, on_error);
}
std::string_view name(UseSeekIndex use) noexcept {
  return name_in(kSeekIndex, use);
}
std::string_view name(Decode decode) noexcept {
  return name_in(kDecode, decode);
}

}  // namespace stoker::loader
