#include "stoker/base/dtype.h"

#include <array>
#include <utility>

namespace stoker {
namespace {
constexpr std::array<std::pair<DType, std::string_view>, 13> kNames = {{{DType::u8, "uint8"},
                                                                        {DType::i8, "int8"},
                                                                        {DType::u16, "uint16"},
                                                                        {DType::i16, "int16"},
                                                                        {DType::u32, "uint32"},
                                                                        {DType::i32, "int32"},
                                                                        {DType::u64, "uint64"},
                                                                        {DType::i64, "int64"},
                                                                        {DType::f16, "float16"},
                                                                        {DType::bf16, "bfloat16"},
                                                                        {DType::f32, "float32"},
                                                                        {DType::f64, "float64"},
                                                                        {DType::boolean, "bool"}}};
}  // namespace

std::string_view name(DType type) noexcept {
  for (const auto& [known, word] : kNames) {
    if (known == type) return word;
  }
  return "unknown";
}

std::optional<DType> parse_dtype(std::string_view text) noexcept {
  for (const auto& [known, word] : kNames) {
    if (word == text) return known;
  }
  return std::nullopt;
}

}  // namespace stoker
