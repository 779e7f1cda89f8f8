// What a sample is, whichever format its file has. Codecs say it of their files, transforms of what they take.
#pragma once

#include <cstdint>
#include <string_view>

namespace stoker {

enum class SampleKind : std::uint8_t { image, audio, array };

constexpr std::string_view name(SampleKind kind) noexcept {
  switch (kind) {
    case SampleKind::image:
      return "image";
    case SampleKind::audio:
      return "audio";
    case SampleKind::array:
      return "array";
  }
  return "";
}

}  // namespace stoker
