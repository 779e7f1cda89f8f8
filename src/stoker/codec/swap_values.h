// Turns values round that were written on a machine of the other byte order. Pure; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker::codec {

// `bytes` is a multiple of `value_bytes`, which is 1, 2, 4 or 8. In place, or from `from` to `into`.
void swap_values(std::byte* values, std::uint64_t bytes, std::size_t value_bytes) noexcept;
void swap_values(const std::byte* from, std::byte* into, std::uint64_t bytes, std::size_t value_bytes) noexcept;

}  // namespace stoker::codec
