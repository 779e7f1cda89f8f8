// Element types of arrays, named as numpy names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stoker {

enum class DType : std::uint8_t { u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64, boolean };

constexpr std::size_t size_of(DType type) noexcept {
  switch (type) {
    case DType::u8:
    case DType::i8:
    case DType::boolean:
      return 1;
    case DType::u16:
    case DType::i16:
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::u32:
    case DType::i32:
    case DType::f32:
      return 4;
    case DType::u64:
    case DType::i64:
    case DType::f64:
      return 8;
  }
  return 0;
}

std::string_view name(DType type) noexcept;                        // "uint8", "bfloat16", ...
std::optional<DType> parse_dtype(std::string_view text) noexcept;  // the same words

}  // namespace stoker
