#include "stoker/codec/wav_samples.h"

#include <cstdint>
#include <cstring>

#include "stoker/codec/byte_order.h"

namespace stoker::codec {
namespace {

// One source for every instruction set: the compiler vectorises each clone for its own (see `widen`).
template <SampleFormat kFormat>
[[gnu::always_inline]] inline float sample_at(const std::byte* at) noexcept {
  if constexpr (kFormat == SampleFormat::u8) {
    return static_cast<float>(static_cast<int>(load<std::uint8_t>(at)) - 128) * (1.0f / 128);
  } else if constexpr (kFormat == SampleFormat::s16) {
    return static_cast<float>(load<std::int16_t>(at)) * (1.0f / 32768);
  } else if constexpr (kFormat == SampleFormat::s24) {
    const std::uint32_t low = load<std::uint16_t>(at);
    return static_cast<float>(static_cast<std::int32_t>(load<std::uint8_t>(at + 2) << 24 | low << 8)) * 0x1p-31f;
  } else if constexpr (kFormat == SampleFormat::s32) {
    return static_cast<float>(load<std::int32_t>(at)) * 0x1p-31f;
  } else if constexpr (kFormat == SampleFormat::f32) {
    return load<float>(at);
  } else {
    return static_cast<float>(load<double>(at));
  }
}

// `step` is the distance in bytes between two samples of one channel.
template <SampleFormat kFormat, std::size_t kStep>
[[gnu::always_inline]] inline void widen_by(const std::byte* from, std::size_t count, std::size_t step,
                                            float* __restrict into) noexcept {
  if constexpr (kStep != 0) step = kStep;
  for (std::size_t i = 0; i < count; ++i) into[i] = sample_at<kFormat>(from + i * step);
}

// Four packed 24-bit samples to the upper bytes of four words at a time, a shuffle where the machine has one.
[[gnu::always_inline]] inline void widen_packed24(const std::byte* from, std::size_t count,
                                                  float* __restrict into) noexcept {
  typedef std::uint8_t Raw __attribute__((vector_size(16)));
  typedef std::int32_t Words __attribute__((vector_size(16)));
  typedef float Floats __attribute__((vector_size(16)));
  std::size_t i = 0;
  for (; i + 6 <= count; i += 4) {  // reads 16 bytes, that is 5 samples and a bit
    const Raw raw = load<Raw>(from + 3 * i);
    const Words words = reinterpret_cast<Words>(
        __builtin_shufflevector(raw, Raw{}, 16, 0, 1, 2, 16, 3, 4, 5, 16, 6, 7, 8, 16, 9, 10, 11));
    const Floats floats = __builtin_convertvector(words, Floats) * 0x1p-31f;
    std::memcpy(into + i, &floats, sizeof floats);
  }
  widen_by<SampleFormat::s24, 3>(from + 3 * i, count - i, 3, into + i);
}

template <SampleFormat kFormat>
[[gnu::always_inline]] inline void widen_all(const std::byte* from, std::size_t count, std::size_t step,
                                             float* __restrict into) noexcept {
  constexpr std::size_t kBytes = bytes_of(kFormat);
  if (step == kBytes) {
    if constexpr (kFormat == SampleFormat::f32) {
      std::memcpy(into, from, count * kBytes);
    } else if constexpr (kFormat == SampleFormat::s24) {
      widen_packed24(from, count, into);
    } else {
      widen_by<kFormat, kBytes>(from, count, step, into);
    }
  } else if (step == 2 * kBytes) {
    widen_by<kFormat, 2 * kBytes>(from, count, step, into);
  } else {
    widen_by<kFormat, 0>(from, count, step, into);
  }
}

[[gnu::always_inline]] inline void widen_any(SampleFormat format, const std::byte* from, std::size_t count,
                                             std::size_t step, float* __restrict into) noexcept {
  switch (format) {
    case SampleFormat::u8:
      return widen_all<SampleFormat::u8>(from, count, step, into);
    case SampleFormat::s16:
      return widen_all<SampleFormat::s16>(from, count, step, into);
    case SampleFormat::s24:
      return widen_all<SampleFormat::s24>(from, count, step, into);
    case SampleFormat::s32:
      return widen_all<SampleFormat::s32>(from, count, step, into);
    case SampleFormat::f32:
      return widen_all<SampleFormat::f32>(from, count, step, into);
    case SampleFormat::f64:
      return widen_all<SampleFormat::f64>(from, count, step, into);
  }
}

#if defined(__x86_64__)
// Not target_clones: its resolvers run before the sanitizers are ready. Wider than AVX2 gains nothing: 16-bit mono
// already writes as fast as memcpy does.
[[gnu::target("avx2")]] void widen_avx2(SampleFormat format, const std::byte* from, std::size_t count, std::size_t step,
                                        float* into) noexcept {
  widen_any(format, from, count, step, into);
}

bool has_avx2() noexcept {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

}  // namespace

void widen_portable(SampleFormat format, const std::byte* from, std::size_t count, std::size_t step,
                    float* into) noexcept {
  widen_any(format, from, count, step, into);
}

void widen(SampleFormat format, const std::byte* from, std::size_t count, std::size_t step, float* into) noexcept {
#if defined(__x86_64__)
  if (has_avx2()) return widen_avx2(format, from, count, step, into);
#endif
  widen_portable(format, from, count, step, into);
}

}  // namespace stoker::codec
