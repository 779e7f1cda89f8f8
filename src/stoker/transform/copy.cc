#include "stoker/transform/copy.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker::transform {
namespace {

#if defined(__x86_64__)

constexpr std::size_t kChunk = 128;

// `to` is aligned to 32 bytes. Returns the bytes copied: whole chunks only.
[[gnu::target("avx")]] std::size_t stream_avx(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  std::size_t at = 0;
  for (; at + kChunk <= bytes; at += kChunk) {
    const auto* const source = reinterpret_cast<const __m256i*>(from + at);
    auto* const target = reinterpret_cast<__m256i*>(to + at);
    const __m256i a = _mm256_loadu_si256(source), b = _mm256_loadu_si256(source + 1);
    const __m256i c = _mm256_loadu_si256(source + 2), d = _mm256_loadu_si256(source + 3);
    _mm256_stream_si256(target, a);
    _mm256_stream_si256(target + 1, b);
    _mm256_stream_si256(target + 2, c);
    _mm256_stream_si256(target + 3, d);
  }
  _mm_sfence();  // these stores are not ordered with the one that says the row is there
  return at;
}

#endif

}  // namespace

void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  static const bool has_avx = __builtin_cpu_supports("avx") != 0;
  if (has_avx && bytes >= 2 * kChunk) {
    const std::size_t head = (kChunk - reinterpret_cast<std::uintptr_t>(to) % kChunk) % kChunk;
    std::memcpy(to, from, head);
    const std::size_t copied = head + stream_avx(to + head, from + head, bytes - head);
    to += copied, from += copied, bytes -= copied;
  }
#endif
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace stoker::transform
