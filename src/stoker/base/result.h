// The verdict on one sample, as a value: codecs and transforms return it and never throw. Trivially copyable.
#pragma once

#include <cstdint>
#include <string_view>

namespace stoker {

enum class Code : std::uint8_t {
  ok,
  truncated,    // the bytes end too early
  corrupt,      // the bytes contradict themselves
  unsupported,  // valid, but a kind we do not read
  too_large,    // bigger than a sane limit or than the slot
  no_memory,    // the memory budget refused
  mismatch,     // valid, but not of the shape, rate or channel count the batch has
  io,           // the bytes could not be had at all
};

std::string_view name(Code code) noexcept;

// What the user may change so that the sample can be loaded. The loader words it, since each face spells options its
// own way.
enum class Remedy : std::uint8_t {
  none,
  more_memory,  // raise memory_limit
  one_color,    // choose color="rgb" or "gray", so that all images have the same channels
};

inline constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};

struct [[nodiscard]] Result {
  Code code = Code::ok;
  const char* cause = "";            // static text, lower case, no full stop: "huffman table is missing"
  std::uint64_t offset = kNoOffset;  // byte in the encoded sample, where known
  Remedy remedy = Remedy::none;

  constexpr bool ok() const noexcept { return code == Code::ok; }
};

constexpr Result failed(Code code, const char* cause, std::uint64_t offset = kNoOffset) noexcept {
  return {code, cause, offset, code == Code::no_memory ? Remedy::more_memory : Remedy::none};
}

constexpr Result failed(Code code, const char* cause, Remedy remedy) noexcept {
  return {code, cause, kNoOffset, remedy};
}

}  // namespace stoker
