// Where things lie in a slab. A pure function; safe from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stoker/loader/recipe.h"

namespace stoker::loader {

// Offsets from the start of the slab, in bytes.
struct SlabLayout {
  std::array<std::size_t, kMaxOutputs> outputs{};
  std::array<std::size_t, kMaxOutputs> row_bytes{};
  std::size_t labels = 0, real_labels = 0, ids = 0, indices = 0, lengths = 0, places = 0, valid = 0;
  std::size_t soft_labels = 0;  // float32 [rows, Recipe::soft_classes]
  std::size_t total = 0;
};

// For `rows` rows of `length`. Where the recipe packs rows, `length` is that of all of them together: see packed_bytes.
SlabLayout lay_out(const Recipe& recipe, std::uint64_t rows, std::uint64_t length) noexcept;

// What a packed row of `length` bytes takes: rows begin at cache lines.
std::uint64_t packed_bytes(std::uint64_t length) noexcept;

}  // namespace stoker::loader
