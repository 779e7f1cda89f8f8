// Rounding of sizes and places to whole pages, blocks and lanes.
#pragma once

#include <cstdint>

namespace stoker {

// The least multiple of `unit` that is at least `value`; it must fit 64 bits.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

}  // namespace stoker
