#include "stoker/dataset/foreground.h"

#include <vector>

#include <gtest/gtest.h>

namespace stoker::dataset {
namespace {

TEST(Foreground, CountsTheSameInOneBoxAndInMany) {
  constexpr std::uint64_t kEdge = 50;
  std::vector<std::uint16_t> mask(kEdge * kEdge * kEdge, 0);
  std::uint64_t labelled = 0;
  for (std::size_t i = 0; i < mask.size(); i += 1 + i % 37) {
    mask[i] = 0x100;  // its first byte is 0
    ++labelled;
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(mask.data());
  const std::uint64_t row = kEdge * 2, plane = kEdge * row;
  Foreground whole({kEdge, kEdge, kEdge}), parts({kEdge, kEdge, kEdge});
  whole.add(bytes, {0, 0, 0}, {kEdge, kEdge, kEdge}, 2, row, plane);
  for (const std::uint64_t z : {0, 21}) {
    for (const std::uint64_t x : {0, 13}) {
      const Extents extents = {z == 0 ? 21 : kEdge - 21, kEdge, x == 0 ? 13 : kEdge - 13};
      parts.add(bytes + z * plane + x * 2, {z, 0, x}, extents, 2, row, plane);
    }
  }
  whole.finish();
  parts.finish();
  EXPECT_EQ(whole.elements(), labelled);
  EXPECT_EQ(parts.elements(), labelled);
  for (std::uint64_t i = 0; i < labelled; i += 11) {
    for (const Foreground* const foreground : {&whole, &parts}) {
      const Extents at = foreground->find(i);
      EXPECT_NE(mask[(at[0] * kEdge + at[1]) * kEdge + at[2]], 0) << i;
    }
  }
}

TEST(Foreground, StaysSmallForALargeMaskFullOfLabel) {
  constexpr Extents kExtents = {4096, 4096, 4096};
  Foreground foreground(kExtents);
  const std::vector<std::byte> row(4096, std::byte{1});
  for (std::uint64_t y = 0; y < 4096; y += 64)
    for (std::uint64_t z = 0; z < 4096; z += 64) foreground.add(row.data(), {z, y, 0}, {1, 1, 4096}, 1, 0, 0);
  foreground.finish();
  EXPECT_LE(foreground.memory_bytes(), 1u << 20);
  EXPECT_EQ(foreground.elements(), 64u * 64 * 4096);
}

}  // namespace
}  // namespace stoker::dataset
