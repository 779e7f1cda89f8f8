#include "stoker/codec/swap_values.h"

#include <cstring>

#include "stoker/codec/byte_order.h"

namespace stoker::codec {
namespace {

template <typename T>
T turned(T value) noexcept {
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}

template <typename T>
void turn_all(const std::byte* from, std::byte* into, std::uint64_t bytes) noexcept {
  for (std::uint64_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
    const T value = turned(load<T>(from + at));
    std::memcpy(into + at, &value, sizeof(T));
  }
}

}  // namespace

void swap_values(const std::byte* from, std::byte* into, std::uint64_t bytes, std::size_t value_bytes) noexcept {
  switch (value_bytes) {
    case 2:
      return turn_all<std::uint16_t>(from, into, bytes);
    case 4:
      return turn_all<std::uint32_t>(from, into, bytes);
    case 8:
      return turn_all<std::uint64_t>(from, into, bytes);
    default:
      if (from != into && bytes != 0) std::memcpy(into, from, bytes);
  }
}

void swap_values(std::byte* values, std::uint64_t bytes, std::size_t value_bytes) noexcept {
  swap_values(values, values, bytes, value_bytes);
}

}  // namespace stoker::codec
