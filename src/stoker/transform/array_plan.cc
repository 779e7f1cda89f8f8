#include "stoker/transform/array_plan.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/transform/half.h"
#include "stoker/transform/ops_check.h"
#include "stoker/transform/store.h"

namespace stoker::transform {
namespace {

template <typename T>
void read_elements(const std::byte* from, std::size_t count, float* into) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    into[i] = static_cast<float>(value);
  }
}

void read_floats(DType type, const std::byte* from, std::size_t count, float* into) noexcept {
  switch (type) {
    case DType::u8:
    case DType::boolean:
      return read_elements<std::uint8_t>(from, count, into);
    case DType::i8:
      return read_elements<std::int8_t>(from, count, into);
    case DType::u16:
      return read_elements<std::uint16_t>(from, count, into);
    case DType::i16:
      return read_elements<std::int16_t>(from, count, into);
    case DType::u32:
      return read_elements<std::uint32_t>(from, count, into);
    case DType::i32:
      return read_elements<std::int32_t>(from, count, into);
    case DType::u64:
      return read_elements<std::uint64_t>(from, count, into);
    case DType::i64:
      return read_elements<std::int64_t>(from, count, into);
    case DType::f32:
      return read_elements<float>(from, count, into);
    case DType::f64:
      return read_elements<double>(from, count, into);
    case DType::f16:
    case DType::bf16:
      for (std::size_t i = 0; i < count; ++i) {
        std::uint16_t half = 0;
        std::memcpy(&half, from + i * 2, 2);
        into[i] = type == DType::f16 ? from_float16(half) : from_bfloat16(half);
      }
  }
}

// Rows of a pack of audio are as PadOrTrim and Mono left them: the list that made them serves both.
bool changes_nothing(const Op& op, const ArrayInput& input) {
  if (std::holds_alternative<Mono>(op.what)) return input.shape.size() == 1;
  const auto* const pad = std::get_if<PadOrTrim>(&op.what);
  return pad != nullptr && !input.shape.empty() && input.shape.size() <= 2 && input.shape.back() == pad->frames;
}

}  // namespace

ArrayPlan ArrayPlan::compile(const Ops& ops, const ArrayInput& input, const OutputOptions& options) {
  ArrayPlan plan;
  plan.input_ = input;
  plan.from_ = input.dtype;
  for (const std::uint64_t extent : input.shape) plan.count_ *= extent;
  bool to_float = false;
  for (const Op& op : ops) {
    check_op(op);
    if (changes_nothing(op, input)) continue;
    if (!std::holds_alternative<ToFloat>(op.what)) {
      refuse(op,
             format_text("these samples are {} arrays [{}], which take ToFloat or {} alone", name(input.dtype),
                         fmt::format("{}", fmt::join(input.shape, ", ")), option("dtype")),
             "arrays count as images when a sample is uint8 [H, W], [H, W, 1] or [H, W, 3], or uint16 [H, W]");
    }
    if (to_float) refuse(op, "it is given twice");
    to_float = true;
    const bool known = input.dtype == DType::u8 || input.dtype == DType::u16 || input.dtype == DType::i16 ||
                       is_float(input.dtype) || input.dtype == DType::f64;
    if (!known) {
      refuse(op, fmt::format("it takes uint8, uint16, int16 and float arrays, and these are {}", name(input.dtype)),
             format_text("choose {}, which converts without scaling", option("dtype", "float32")));
    }
    plan.divisor_ = input.dtype == DType::u8    ? 255.0F
                    : input.dtype == DType::u16 ? 65535.0F
                    : input.dtype == DType::i16 ? 32768.0F
                                                : 1.0F;
  }
  plan.to_ = options.dtype.value_or(to_float ? DType::f32 : input.dtype);
  if (plan.to_ != plan.from_ && !is_float(plan.to_)) {
    throw Error(ErrorKind::usage, fmt::format("cannot give {} arrays as {}", name(plan.from_), name(plan.to_)),
                fmt::format("choose dtype float32, float16 or bfloat16, or leave it {}", name(plan.from_)));
  }
  if (to_float && !is_float(plan.to_)) {
    throw Error(ErrorKind::usage, fmt::format("cannot give arrays as {}: ToFloat makes them float", name(plan.to_)),
                "leave ToFloat out, or choose dtype float32, float16 or bfloat16");
  }
  plan.is_copy_ = plan.from_ == plan.to_ && plan.divisor_ == 1.0F;
  plan.output_ = {.name = "data", .dtype = plan.to_, .shape = input.shape};
  plan.output_.view_bytes = static_cast<std::size_t>(plan.count_) * size_of(plan.to_);
  return plan;
}

std::string ArrayPlan::describe() const {
  return transform::describe(divisor_ != 1.0F ? "to [0, 1]" : "", output_);
}

Result ArrayPlan::apply(const std::byte* source, std::byte* slot) const noexcept {
  if (is_copy_) {
    std::memcpy(slot, source, count_ * size_of(to_));
    return {};
  }
  std::array<float, 1024> chunk;
  for (std::uint64_t at = 0; at < count_; at += chunk.size()) {
    const std::size_t count = std::min<std::uint64_t>(chunk.size(), count_ - at);
    read_floats(from_, source + at * size_of(from_), count, chunk.data());
    if (divisor_ != 1.0F) {
      for (std::size_t i = 0; i < count; ++i) chunk[i] /= divisor_;
    }
    convert(chunk.data(), count, to_, slot + at * size_of(to_));
  }
  return {};
}

}  // namespace stoker::transform
