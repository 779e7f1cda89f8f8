#include "stoker/base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stoker {

#if defined(__x86_64__)
std::uint64_t hash_bytes_avx2(const void* bytes, std::size_t count, std::uint64_t seed) noexcept;  // hash_avx2.cc

namespace {

constexpr std::size_t kWide = 1024;  // bytes; below, both take the same time

bool has_avx2() noexcept {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

}  // namespace
#endif

std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
#if defined(__x86_64__)
  if (bytes.size() >= kWide && has_avx2()) return hash_bytes_avx2(bytes.data(), bytes.size(), seed);
#endif
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t hash_text(std::string_view text, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

}  // namespace stoker
