#include "stoker/transform/store.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/transform/half.h"
#include "stoker/transform/resize.h"
#include "stoker/transform/without_wide_kernels_test.h"

namespace stoker::transform {
namespace {

std::vector<std::uint8_t> stored(const StoreShape& shape, const std::uint8_t* row, std::uint32_t y, bool flip) {
  std::vector<std::uint8_t> slot(std::size_t{3} * shape.width * shape.height, 0xAB);
  store_row(shape, row, y, flip, nullptr, reinterpret_cast<std::byte*>(slot.data()));
  return slot;
}

TEST(StoreRow, PlanesAreTheSameWithAndWithoutWideKernelsForAllWidthsAndAlignments) {
  Random random(1, 2, 3);
  for (std::uint32_t width = 1; width <= 100; ++width) {
    for (std::size_t shift = 0; shift < 3; ++shift) {
      // Of exactly the size needed, so that ASan sees every step beyond.
      std::vector<std::uint8_t> bytes(shift + std::size_t{3} * width);
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.below(256));
      const std::uint8_t* const row = bytes.data() + shift;
      const StoreShape shape{.width = width, .height = 3, .channels = 3, .planar = true, .dtype = DType::u8};
      const std::uint32_t y = width % 3;
      for (const bool flip : {false, true}) {
        std::vector<std::uint8_t> expected(std::size_t{9} * width, 0xAB);
        for (std::size_t x = 0; x < width; ++x) {
          for (std::size_t c = 0; c < 3; ++c) {
            expected[(c * 3 + y) * width + (flip ? width - 1 - x : x)] = row[x * 3 + c];
          }
        }
        EXPECT_EQ(stored(shape, row, y, flip), expected) << width << " wide, flip " << flip;
        const WithoutWideKernels plain;
        EXPECT_EQ(stored(shape, row, y, flip), expected) << width << " wide, flip " << flip << ", plain";
      }
    }
  }
}

TEST(Convert, RowsOfEveryLengthAndAlignmentBecomeTheSameHalves) {
  Random random(4, 5, 6);
  for (std::size_t count = 0; count <= 70; ++count) {
    for (std::size_t place = 0; place < 8; ++place) {
      // Of exactly the size needed, so that ASan sees every step beyond.
      std::vector<float> values(place + count);
      for (float& value : values) value = static_cast<float>(random.uniform(-70000, 70000));
      for (const DType dtype : {DType::f16, DType::bf16}) {
        std::vector<std::uint16_t> expected(place + count + 1, 0xABAB);
        for (std::size_t i = place; i < place + count; ++i) {
          expected[i] = dtype == DType::f16 ? to_float16(values[i]) : to_bfloat16(values[i]);
        }
        const auto halves = [&] {
          std::vector<std::uint16_t> into(place + count + 1, 0xABAB);
          convert(values.data() + place, count, dtype, reinterpret_cast<std::byte*>(into.data() + place));
          return into;
        };
        ASSERT_EQ(halves(), expected) << count << " floats at place " << place;
        const WithoutWideKernels plain;
        ASSERT_EQ(halves(), expected) << count << " floats at place " << place << ", plain";
      }
    }
  }
}

// As a plan makes it.
std::vector<float> table_of(bool unit, const std::vector<float>& mean, const std::vector<float>& std) {
  std::vector<float> table;
  for (std::size_t c = 0; c < 3; ++c) {
    for (int v = 0; v < 256; ++v) {
      float value = static_cast<float>(v);
      if (unit) value = value / 255.0F;
      if (!mean.empty()) value = (value - mean[c]) / std[c];
      table.push_back(value);
    }
  }
  return table;
}

TEST(StoreRow, FloatsAreThoseOfTheTableForAllWidthsWhetherComputedOrLookedUp) {
  const std::vector<float> mean = {0.485F, 0.456F, 0.406F}, std = {0.229F, 0.224F, 0.225F};
  const std::vector<float> table = table_of(true, mean, std);
  StoreShape shape{.channels = 3, .planar = true, .dtype = DType::f32};
  shape.height = 2;
  shape.scaling = find_scaling(table.data(), true, mean, std);
#if defined(__x86_64__)
  EXPECT_EQ(shape.scaling.exact, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
#endif
  Random random(1, 2, 3);
  for (std::uint32_t width = 1; width <= 1100; width = width < 70 ? width + 1 : width * 5 / 4) {
    shape.width = width;
    std::vector<std::uint8_t> row(std::size_t{3} * width);
    for (auto& byte : row) byte = static_cast<std::uint8_t>(random.below(256));
    for (const bool flip : {false, true}) {
      std::vector<float> expected(std::size_t{6} * width, -7);
      for (std::size_t x = 0; x < width; ++x) {
        for (std::size_t c = 0; c < 3; ++c) {
          expected[(c * 2 + 1) * width + (flip ? width - 1 - x : x)] = table[c * 256 + row[x * 3 + c]];
        }
      }
      const auto stored = [&] {
        std::vector<float> slot(expected.size(), -7);
        store_row(shape, row.data(), 1, flip, table.data(), reinterpret_cast<std::byte*>(slot.data()));
        return slot;
      };
      EXPECT_EQ(stored(), expected) << width << " wide, flip " << flip;
      const WithoutWideKernels plain;
      EXPECT_EQ(stored(), expected) << width << " wide, flip " << flip << ", plain";
    }
  }
}

TEST(StoreRow, ScalingIsExactOrNotUsed) {
  Random random(5, 6, 7);
  int exact = 0;
  for (int i = 0; i < 300; ++i) {
    const bool unit = i % 2 == 0;
    std::vector<float> mean, std;
    if (i % 3 != 0) {
      for (int c = 0; c < 3; ++c) {
        mean.push_back(static_cast<float>(random.below(1'000'000)) / (unit ? 1e6F : 4e3F));
        std.push_back(static_cast<float>(1 + random.below(1'000'000)) / (unit ? 1e6F : 1e3F));
      }
    }
    const std::vector<float> table = table_of(unit, mean, std);
    const Scaling scaling = find_scaling(table.data(), unit, mean, std);
    exact += scaling.exact;
    std::vector<float> wrong = table;
    wrong[static_cast<std::size_t>(random.below(768))] += 1;
    EXPECT_FALSE(find_scaling(wrong.data(), unit, mean, std).exact);
  }
  EXPECT_TRUE(exact == 0 || exact > 250) << exact;  // 0 on a CPU without the instructions
}

}  // namespace
}  // namespace stoker::transform
