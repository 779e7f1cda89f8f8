#include "stoker/codec/jpeg/kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/codec/jpeg/target.h"

namespace stoker::codec::jpeg {
namespace {

using Values = std::vector<std::uint8_t>;

class JpegKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (!runs_fast_code()) GTEST_SKIP() << "this CPU has no AVX2";
  }
  Values noise(std::size_t size) {
    Values values(size);
    for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random_.below(256));
    return values;
  }
  std::int16_t between(int low, int high) {
    return static_cast<std::int16_t>(low + static_cast<int>(random_.below(static_cast<std::uint32_t>(high - low + 1))));
  }
  // Coefficients up to zigzag index `last`, about half of them zero.
  Block block(unsigned last, int low, int high) {
    Block block{};
    for (unsigned k = 0; k <= last; ++k) {
      if (random_.below(2) == 0) block.coefficient[kNaturalOrder[k]] = between(low, high);
    }
    return block;
  }

  Random random_{11, 12, 13};
};

// To blocks of 8, 4 and 2 samples each way, one after the other.
Values transformed(const Kernels& kernels, const Block& a, const Block& b, const std::int16_t* quant, unsigned last) {
  constexpr std::size_t kStride = 40;
  Values samples(kStride * 14, 0xEE);
  std::uint8_t* into = samples.data() + 3;
  kernels.transform(a, b, quant, last, into, into + 18, kStride);
  kernels.transform_to_4(a, b, quant, last, into + 8 * kStride, into + 8 * kStride + 18, kStride);
  kernels.transform_to_2(a, b, quant, last, into + 12 * kStride, into + 12 * kStride + 18, kStride);
  return samples;
}

TEST_F(JpegKernels, TransformAnyBlocksAlike) {
  struct Range {
    int low, high, quant;
  };
  const Range ranges[] = {{-30, 30, 16},        {-1023, 1023, 1},    {-1023, 1023, 255}, {-2047, 2047, 3},
                          {-32768, 32767, 255}, {-32768, -32768, 1}, {32767, 32767, 1},  {8190, 8193, 1},
                          {-8193, -8190, 1},    {-16400, -16370, 2}};
  for (const Range& range : ranges) {
    for (unsigned last = 0; last < 64; ++last) {
      for (int i = 0; i < 40; ++i) {
        alignas(32) std::int16_t quant[64];
        for (std::int16_t& value : quant) value = range.quant == 1 ? 1 : between(1, range.quant);
        const Block a = block(last, range.low, range.high);
        const Block b = block(i % 2 == 0 ? last : 0, range.low, range.high);
        ASSERT_EQ(transformed(kPlainKernels, a, b, quant, last), transformed(kAvx2Kernels, a, b, quant, last))
            << "last " << last << " in " << range.low << ".." << range.high;
      }
    }
  }
}

// Only the first row, where libjpeg-turbo's shortcut overflows instead of being limited.
TEST_F(JpegKernels, TransformBlocksOfOneRowAlike) {
  const std::vector<std::int16_t> quant(64, 1);
  for (int value = -32768; value <= 32767; value += 7) {
    Block row{}, column{};
    row.coefficient[0] = static_cast<std::int16_t>(value);
    row.coefficient[5] = static_cast<std::int16_t>(value / 2);
    column = row;
    column.coefficient[24] = 1;
    ASSERT_EQ(transformed(kPlainKernels, row, column, quant.data(), 63),
              transformed(kAvx2Kernels, row, column, quant.data(), 63))
        << value;
  }
}

TEST_F(JpegKernels, WriteNothingBesideTheirBlocks) {
  const std::vector<std::int16_t> quant(64, 1);
  for (const unsigned last : {0u, 9u, 63u}) {
    const Values samples =
        transformed(kAvx2Kernels, block(last, -100, 100), block(last, -100, 100), quant.data(), last);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::size_t x = i % 40, y = i / 40, side = y < 8 ? 8 : y < 12 ? 4 : 2;
      if (x < 3 || (x >= 3 + side && x < 21) || x >= 21 + side) {
        ASSERT_EQ(samples[i], 0xEE) << i;
      }
    }
  }
}

TEST_F(JpegKernels, UpsampleRowsOfAnyLengthAlike) {
  for (std::size_t count = 1; count < 100; ++count) {
    for (std::size_t offset = 1; offset < 4; ++offset) {
      Values near = noise(offset + count + kRowSlack), far = noise(offset + count + kRowSlack);
      if (count % 3 == 0) std::fill(near.begin(), near.end(), std::uint8_t{255});
      const auto same = [&](const auto& upsample, std::size_t size) {
        Values plain(size + kRowSlack), fast(size + kRowSlack);
        upsample(kPlainKernels, plain.data());
        upsample(kAvx2Kernels, fast.data());
        plain.resize(size);
        fast.resize(size);
        return plain == fast;
      };
      const std::uint8_t *of_near = near.data() + offset, *of_far = far.data() + offset;
      ASSERT_TRUE(
          same([&](const Kernels& use, std::uint8_t* into) { use.double_row(of_near, count, into); }, 2 * count));
      ASSERT_TRUE(
          same([&](const Kernels& use, std::uint8_t* into) { use.double_between(of_near, of_far, count, into); },
               2 * count));
      for (const unsigned rounding : {1u, 2u}) {
        ASSERT_TRUE(same(
            [&](const Kernels& use, std::uint8_t* into) { use.blend(of_near, of_far, count, rounding, into); }, count));
      }
    }
  }
}

TEST_F(JpegKernels, ConvertEveryColourAlike) {
  Values y(256 + kRowSlack), cb(256 + kRowSlack), cr(256 + kRowSlack);
  for (std::size_t i = 0; i < 256; ++i) y[i] = static_cast<std::uint8_t>(i);
  Values plain(3 * 256), fast(3 * 256);
  for (int blue = 0; blue < 256; ++blue) {
    for (int red = 0; red < 256; ++red) {
      std::memset(cb.data(), blue, 256);
      std::memset(cr.data(), red, 256);
      kPlainKernels.to_rgb(y.data(), cb.data(), cr.data(), 256, plain.data());
      kAvx2Kernels.to_rgb(y.data(), cb.data(), cr.data(), 256, fast.data());
      ASSERT_EQ(plain, fast) << blue << " " << red;
    }
  }
}

TEST_F(JpegKernels, ConvertColoursThatAreRepeatedAlikeAndWriteNothingBehind) {
  const Values y = noise(100 + kRowSlack), cb = noise(51 + kRowSlack), cr = noise(51 + kRowSlack);
  for (std::size_t count = 0; count <= 100; ++count) {
    for (const std::size_t odd : {0u, 1u}) {
      Values plain(303, 0xEE), fast(303, 0xEE);
      kPlainKernels.to_rgb_repeated(y.data(), cb.data(), cr.data(), odd, count, plain.data());
      kAvx2Kernels.to_rgb_repeated(y.data(), cb.data(), cr.data(), odd, count, fast.data());
      ASSERT_EQ(plain, fast) << count;
      ASSERT_EQ(fast[3 * count], 0xEE);
    }
  }
}

TEST_F(JpegKernels, ConvertRowsOfAnyLengthAndWriteNothingBehind) {
  const Values y = noise(100 + kRowSlack), cb = noise(100 + kRowSlack), cr = noise(100 + kRowSlack);
  for (std::size_t count = 0; count <= 100; ++count) {
    Values plain(303, 0xEE), fast(303, 0xEE);
    kPlainKernels.to_rgb(y.data(), cb.data(), cr.data(), count, plain.data());
    kAvx2Kernels.to_rgb(y.data(), cb.data(), cr.data(), count, fast.data());
    ASSERT_EQ(plain, fast) << count;
    ASSERT_EQ(fast[3 * count], 0xEE);
  }
}

}  // namespace
}  // namespace stoker::codec::jpeg
