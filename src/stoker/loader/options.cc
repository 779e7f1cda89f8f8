#include "stoker/loader/options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/os/memory.h"

namespace stoker::loader {
namespace {

template <typename Value, std::size_t N>
Value parse(std::string_view text, std::string_view what, const std::array<std::string_view, N>& words) {
  for (std::size_t i = 0; i < N; ++i) {
    if (words[i] == text) return static_cast<Value>(i);
  }
  const std::string near = nearest(text, words.data(), N);
  throw Error(ErrorKind::usage,
              format_text("{} is one of {}, not `{}`", option(what), fmt::format("{}", fmt::join(words, ", ")), text),
              near.empty() ? "" : fmt::format("did you mean `{}`?", near))
      .about(what);
}

template <typename Value, std::size_t N>
std::string_view name_in(const std::array<std::string_view, N>& words, Value value) noexcept {
  return words[static_cast<std::size_t>(value)];
}

}  // namespace

OnError parse_on_error(std::string_view text) {
  return parse<OnError>(text, "on_error", kOnErrorWords);
}
Decode parse_decode(std::string_view text) {
  return parse<Decode>(text, "decode", kDecodeWords);
}
Shapes parse_shapes(std::string_view text) {
  return parse<Shapes>(text, "shapes", kShapesWords);
}
codec::Color parse_color(std::string_view text) {
  return parse<codec::Color>(text, "color", kColorWords);
}
UseSeekIndex parse_seek_index(std::string_view text) {
  return parse<UseSeekIndex>(text, "seek_index", kSeekIndexWords);
}
transform::Layout parse_layout(std::string_view text) {
  return parse<transform::Layout>(text, "layout", kLayoutWords);
}
dataset::LastBatch parse_last_batch(std::string_view text) {
  return parse<dataset::LastBatch>(text, "last_batch", kLastBatchWords);
}

std::uint64_t default_memory_limit(int processes) {
  return std::min<std::uint64_t>(os::memory_limit().bytes / 4 / static_cast<std::uint64_t>(std::max(1, processes)),
                                 8'000'000'000);
}

std::string_view name(OnError on_error) noexcept {
  return name_in(kOnErrorWords, on_error);
}
std::string_view name(Decode decode) noexcept {
  return name_in(kDecodeWords, decode);
}
std::string_view name(Shapes shapes) noexcept {
  return name_in(kShapesWords, shapes);
}
std::string_view name(codec::Color color) noexcept {
  return name_in(kColorWords, color);
}
std::string_view name(UseSeekIndex use) noexcept {
  return name_in(kSeekIndexWords, use);
}
std::string_view name(transform::Layout layout) noexcept {
  return name_in(kLayoutWords, layout);
}
std::string_view name(dataset::LastBatch last_batch) noexcept {
  return name_in(kLastBatchWords, last_batch);
}

}  // namespace stoker::loader
