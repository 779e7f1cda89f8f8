// Integers in bytes that may lie anywhere. The caller has checked that they are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stoker::codec {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the decoders are written for little-endian machines");

template <typename T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

inline std::uint16_t little16(const std::byte* at) noexcept {
  return load<std::uint16_t>(at);
}
inline std::uint32_t little32(const std::byte* at) noexcept {
  return load<std::uint32_t>(at);
}
inline std::uint64_t little64(const std::byte* at) noexcept {
  return load<std::uint64_t>(at);
}
inline std::uint16_t big16(const std::byte* at) noexcept {
  return __builtin_bswap16(load<std::uint16_t>(at));
}
inline std::uint32_t big32(const std::byte* at) noexcept {
  return __builtin_bswap32(load<std::uint32_t>(at));
}

// A four-letter chunk name as it lies in the file.
constexpr std::uint32_t tag(const char (&text)[5]) noexcept {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(text[i]);
  return value;
}

}  // namespace stoker::codec
