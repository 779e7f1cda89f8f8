// XXH3 compiled for AVX2. The value is the same. Called by hash.cc alone, on machines that have it.
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#pragma GCC target("avx2")
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stoker {

std::uint64_t hash_bytes_avx2(const void* bytes, std::size_t count, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes, count, seed);
}

}  // namespace stoker
#endif
