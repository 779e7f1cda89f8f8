// Inputs of plans, and plans from the short text, for tests.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/transform/array_plan.h"
#include "stoker/transform/audio_plan.h"
#include "stoker/transform/image_plan.h"

namespace stoker::transform {

inline ImageInput images(std::uint32_t width, std::uint32_t height, std::uint8_t channels = 3, std::uint8_t bits = 8) {
  return {.width = width, .height = height, .channels = channels, .bits = bits};
}
inline AudioInput audio(std::uint32_t channels, std::uint32_t rate_hz) {
  return {channels, rate_hz};
}
inline ArrayInput arrays(DType dtype, std::vector<std::uint64_t> shape) {
  return {dtype, std::move(shape)};
}

inline ImagePlan compile(std::string_view text, const ImageInput& input, std::optional<DType> dtype = {},
                         Layout layout = Layout::nchw) {
  return ImagePlan::compile(parse_ops(text), input, {dtype, layout});
}
inline AudioPlan compile(std::string_view text, const AudioInput& input, std::optional<DType> dtype = {}) {
  return AudioPlan::compile(parse_ops(text), input, {dtype});
}
inline ArrayPlan compile(std::string_view text, const ArrayInput& input, std::optional<DType> dtype = {}) {
  return ArrayPlan::compile(parse_ops(text), input, {dtype});
}

// The one sentence with which a list is refused.
template <typename Input>
std::string refusal(std::string_view text, const Input& input, std::optional<DType> dtype = {}) {
  try {
    (void)compile(text, input, dtype);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
    return error.message();
  }
  ADD_FAILURE() << text << " was not refused";
  return {};
}

template <typename T>
std::vector<T> as(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace stoker::transform
