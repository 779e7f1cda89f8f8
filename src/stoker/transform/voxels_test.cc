#include "stoker/transform/voxels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/transform/without_wide_kernels_test.h"

namespace stoker::transform {
namespace {

template <typename T>
std::vector<T> random_values(std::size_t count) {
  Random random(7, 0, sizeof(T));
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(static_cast<std::int64_t>(random.uniform(-40000, 70000)));
  return values;
}

template <typename T>
VoxelPlane plane_of(const std::vector<T>& values, DType dtype, std::uint32_t height, std::uint32_t width,
                    std::uint64_t row, std::uint32_t channels = 1) {
  VoxelPlane plane;
  plane.first = reinterpret_cast<const std::byte*>(values.data());
  plane.row_bytes = row * sizeof(T);
  plane.height = height;
  plane.width = width;
  plane.channels = channels;
  plane.dtype = dtype;
  return plane;
}

template <typename T>
void expect_all(DType dtype) {
  constexpr std::uint32_t kHeight = 13, kWidth = 45, kRow = 61;
  const std::vector<T> values = random_values<T>(kHeight * kRow);
  const VoxelPlane plane = plane_of(values, dtype, kHeight, kWidth, kRow);
  double sum = 0, squares = 0;
  for (std::uint32_t y = 0; y < kHeight; ++y)
    for (std::uint32_t x = 0; x < kWidth; ++x) sum += static_cast<double>(values[y * kRow + x]);
  const double mean = sum / (kHeight * kWidth);
  for (std::uint32_t y = 0; y < kHeight; ++y)
    for (std::uint32_t x = 0; x < kWidth; ++x) {
      const double difference = static_cast<double>(values[y * kRow + x]) - mean;
      squares += difference * difference;
    }
  const double deviation = std::sqrt(squares / (kHeight * kWidth));

  Moments moments, plain;
  add_plane(plane, moments);
  std::vector<float> wide(kHeight * kWidth), portable(kHeight * kWidth);
  Normalization n{3.5F, 0.25F, 1, -100, 4000};
  write_plane(plane, n, {}, kHeight, kWidth, wide.data(), nullptr, true);
  {
    const WithoutWideKernels without;
    add_plane(plane, plain);
    write_plane(plane, n, {}, kHeight, kWidth, portable.data(), nullptr, false);
  }
  EXPECT_EQ(wide, portable) << "the vectors round as the plain loop";
  for (const Moments& found : {moments, plain}) {
    EXPECT_EQ(found.count, kHeight * kWidth);
    EXPECT_NEAR(found.mean(), mean, 1e-9 * std::abs(mean) + 1e-12);
    EXPECT_NEAR(found.deviation(), deviation, 1e-9 * deviation);
  }
  for (std::uint32_t y = 0; y < kHeight; ++y)
    for (std::uint32_t x = 0; x < kWidth; ++x) {
      const double exact = (static_cast<double>(values[y * kRow + x]) - 3.5) * 0.25 + 1;
      ASSERT_NEAR(wide[y * kWidth + x], std::clamp(exact, -100.0, 4000.0), 1e-2);
    }
}

TEST(Voxels, MomentsAndValuesOfEveryType) {
  expect_all<std::uint8_t>(DType::u8);
  expect_all<std::int8_t>(DType::i8);
  expect_all<std::uint16_t>(DType::u16);
  expect_all<std::int16_t>(DType::i16);
  expect_all<std::uint32_t>(DType::u32);
  expect_all<std::int32_t>(DType::i32);
  expect_all<std::int64_t>(DType::i64);
  expect_all<float>(DType::f32);
  expect_all<double>(DType::f64);
}

TEST(Voxels, SumsOfLongRowsOfExtremesDoNotOverflow) {
  constexpr std::uint32_t kWidth = 1 << 20;
  Moments bytes, words, negative;
  add_plane(plane_of(std::vector<std::uint8_t>(kWidth, 255), DType::u8, 1, kWidth, kWidth), bytes);
  add_plane(plane_of(std::vector<std::uint16_t>(kWidth, 65535), DType::u16, 1, kWidth, kWidth), words);
  add_plane(plane_of(std::vector<std::int16_t>(kWidth, -32768), DType::i16, 1, kWidth, kWidth), negative);
  EXPECT_EQ(bytes.squares, 255.0 * 255 * kWidth);
  EXPECT_EQ(words.squares, 65535.0 * 65535 * kWidth);
  EXPECT_EQ(negative.sum, -32768.0 * kWidth);
  EXPECT_EQ(negative.squares, 32768.0 * 32768 * kWidth);
  EXPECT_EQ(words.deviation(), 0);
}

TEST(Voxels, RealsFarFromZeroKeepTheirVariance) {
  std::vector<float> values(4096);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1e6F + static_cast<float>(i % 2);
  Moments moments;
  add_plane(plane_of(values, DType::f32, 64, 64, 64), moments);
  EXPECT_NEAR(moments.deviation(), 0.5, 1e-9);
}

TEST(Voxels, NanStaysNan) {
  std::vector<float> values(16, 1);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> out(16);
  write_plane(plane_of(values, DType::f32, 1, 16, 16), {0, 1, 0, 0, 1}, {}, 1, 16, out.data(), nullptr, false);
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_EQ(out[4], 1);
}

TEST(Voxels, OtherByteOrderAndInterleavedChannelsAreRead) {
  const std::vector<std::uint16_t> values = {0x0100, 9, 0x0200, 9, 0x0300, 9, 0x0400, 9};
  VoxelPlane plane = plane_of(values, DType::u16, 2, 2, 4, 2);
  plane.swap_bytes = true;
  std::vector<float> out(4);
  write_plane(plane, {}, {}, 2, 2, out.data(), nullptr, false);
  EXPECT_EQ(out, (std::vector<float>{1, 2, 3, 4}));
  std::vector<std::uint16_t> copied(4);
  copy_plane(plane, {}, 2, 2, reinterpret_cast<std::byte*>(copied.data()), nullptr);
  EXPECT_EQ(copied, (std::vector<std::uint16_t>{1, 2, 3, 4}));
}

// numpy.rot90(flipped, turns), written out.
std::vector<float> turned(std::vector<float> plane, std::uint32_t edge, bool rows, bool columns, std::uint32_t turns) {
  const auto map = [&](const auto& place) {
    std::vector<float> out(plane.size());
    for (std::uint32_t i = 0; i < edge; ++i)
      for (std::uint32_t j = 0; j < edge; ++j) out[i * edge + j] = place(i, j);
    plane = out;
  };
  if (rows) map([&](std::uint32_t i, std::uint32_t j) { return plane[(edge - 1 - i) * edge + j]; });
  if (columns) map([&](std::uint32_t i, std::uint32_t j) { return plane[i * edge + edge - 1 - j]; });
  for (std::uint32_t t = 0; t < turns; ++t)
    map([&](std::uint32_t i, std::uint32_t j) { return plane[j * edge + edge - 1 - i]; });
  return plane;
}

TEST(Voxels, MirrorsAndTurnsAsNumpyDoes) {
  constexpr std::uint32_t kEdge = 21;  // more than a tile
  std::vector<std::uint8_t> values(17 * 19);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 7);
  const VoxelPlane plane = plane_of(values, DType::u8, 17, 19, 19);
  std::vector<float> whole(kEdge * kEdge, 0);
  for (std::uint32_t y = 0; y < 17; ++y)
    for (std::uint32_t x = 0; x < 19; ++x) whole[y * kEdge + x] = values[y * 19 + x];
  std::vector<float> line(kEdge * kEdge), out(kEdge * kEdge);
  std::vector<std::byte> bytes(kEdge * kEdge), byte_line(kEdge * kEdge);
  for (const bool rows : {false, true}) {
    for (const bool columns : {false, true}) {
      for (std::uint32_t turns = 0; turns < 4; ++turns) {
        const PlaneTurn turn = plane_turn(rows, columns, turns);
        const std::vector<float> expected = turned(whole, kEdge, rows, columns, turns);
        write_plane(plane, {}, turn, kEdge, kEdge, out.data(), line.data(), true);
        EXPECT_EQ(out, expected) << rows << columns << turns;
        copy_plane(plane, turn, kEdge, kEdge, bytes.data(), byte_line.data());
        for (std::size_t i = 0; i < bytes.size(); ++i)
          ASSERT_EQ(static_cast<float>(bytes[i]), expected[i]) << rows << columns << turns;
      }
    }
  }
}

}  // namespace
}  // namespace stoker::transform
