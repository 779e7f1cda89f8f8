// What a sample is, whichever format its file has. Codecs say it of their files, transforms of what they take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stoker {

enum class SampleKind : std::uint8_t { image, audio, array, volume };
inline constexpr std::size_t kSampleKinds = 3;  // that files have; a volume is known by its data set

constexpr std::string_view name(SampleKind kind) noexcept {
  switch (kind) {
    case SampleKind::image:
      return "image";
    case SampleKind::audio:
      return "audio";
    case SampleKind::array:
      return "array";
    case SampleKind::volume:
      return "volume";
  }
  return "";
}

}  // namespace stoker
