// Samples of a WAVE file widened to float32. Pure; safe from any thread. Private to this folder.
#pragma once

#include <cstddef>

#include "stoker/codec/codec.h"

namespace stoker::codec {

constexpr std::size_t bytes_of(SampleFormat format) noexcept {
  switch (format) {
    case SampleFormat::u8:
      return 1;
    case SampleFormat::s16:
      return 2;
    case SampleFormat::s24:
      return 3;
    case SampleFormat::s32:
    case SampleFormat::f32:
      return 4;
    case SampleFormat::f64:
      return 8;
  }
  return 0;
}

// `count` samples that lie `step` bytes apart, at any alignment, to consecutive floats.
void widen(SampleFormat format, const std::byte* from, std::size_t count, std::size_t step, float* into) noexcept;

// `widen` as the compiler makes it for every machine of the kind, for those without AVX2 and as the measure of the
// rest.
void widen_portable(SampleFormat format, const std::byte* from, std::size_t count, std::size_t step,
                    float* into) noexcept;

}  // namespace stoker::codec
