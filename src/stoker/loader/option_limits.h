// Limits of options that the table sets and messages word differently. Private to option_table.cc and
// option_values.cc.
#pragma once

#include <cstdint>

namespace stoker::loader {

inline constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 62;  // nobody has more: no message names it
inline constexpr std::uint64_t kMostSeed = ~std::uint64_t{0};

}  // namespace stoker::loader
