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
  EXPECT_LE(foreground.memory_bytes(), 14u << 20);
  EXPECT_EQ(foreground.elements(), 64u * 64 * 4096);
}

TEST(Foreground, FindsEveryLabelledElementOnce) {
  constexpr Extents kExtents = {19, 23, 37};
  std::vector<std::uint8_t> mask(19 * 23 * 37, 0);
  std::size_t labelled = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    mask[i] = (i / 5) % 3 == 0 ? 1 : 0;
    labelled += mask[i];
  }
  Foreground foreground(kExtents);
  foreground.add(reinterpret_cast<const std::byte*>(mask.data()), {0, 0, 0}, kExtents, 1, 37, 23 * 37);
  foreground.finish();
  ASSERT_EQ(foreground.elements(), labelled);
  for (std::uint64_t i = 0; i < labelled; ++i) {
    const Extents at = foreground.find(i);
    std::uint8_t& element = mask[(at[0] * 23 + at[1]) * 37 + at[2]];
    ASSERT_EQ(element, 1) << "element " << i << " has no label, or was found before";
    element = 2;
  }
}

TEST(Foreground, TakesNoNegativeZeroForLabel) {
  std::vector<float> mask(64, -0.0F);
  mask[9] = -1;
  Foreground foreground({1, 1, 64});
  foreground.add(reinterpret_cast<const std::byte*>(mask.data()), {0, 0, 0}, {1, 1, 64}, 4, 256, 256, {4, 3});
  foreground.finish();
  ASSERT_EQ(foreground.elements(), 1u);
  EXPECT_EQ(foreground.find(0), (Extents{0, 0, 9}));
}

TEST(Foreground, KeepsARandomPartOfTooManyRuns) {
  constexpr Extents kExtents = {40, 40, 40};
  std::vector<std::uint8_t> mask(40 * 40 * 40, 0);
  for (std::size_t i = 0; i < mask.size(); i += 2) mask[i] = 1;
  Foreground foreground(kExtents, 1000);
  foreground.add(reinterpret_cast<const std::byte*>(mask.data()), {0, 0, 0}, kExtents, 1, 40, 40 * 40);
  foreground.finish();
  EXPECT_TRUE(foreground.is_thinned());
  EXPECT_LE(foreground.elements(), 1000u);
  ASSERT_GE(foreground.elements(), 250u);
  std::uint64_t low = 0;
  for (std::uint64_t i = 0; i < foreground.elements(); ++i) {
    const Extents at = foreground.find(i);
    EXPECT_EQ(mask[(at[0] * 40 + at[1]) * 40 + at[2]], 1);
    low += at[0] < 20 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(low) / static_cast<double>(foreground.elements()), 0.5, 0.15);
}

}  // namespace
}  // namespace stoker::dataset
