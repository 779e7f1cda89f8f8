// Our own JPEG decoder with `fast`, at every scale: libjpeg-turbo's reduced transforms and repeated chroma, to the bit.
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "stoker/codec/image.h"
#include "stoker/codec/jpeg/baseline.h"
#include "stoker/codec/jpeg/target.h"
#include "stoker/codec/made_jpeg_test.h"

namespace stoker::codec::jpeg {
namespace {

using made::Coding;
using made::encode;
using made::Scene;
using Values = std::vector<std::uint8_t>;

class FastJpeg : public testing::Test {
 protected:
  void SetUp() override {
    if (!runs_fast_code()) GTEST_SKIP() << "this CPU has no AVX2: libjpeg-turbo decodes everything";
  }
};

ImageOptions fast(std::uint32_t scale, Color color = Color::rgb, bool strict = false) {
  return {.color = color, .fast = true, .scale = scale, .strict = strict};
}

// The pixels, or nothing. In memory of exactly the size needed, so that ASan sees every step beyond.
template <typename Decode>
std::optional<Values> pixels_of(const ImageInfo& info, const ImageOptions& options, const Rect& region,
                                const Decode& decode_into) {
  Scratch scratch;
  const Rect decoded = decoded_region(media_named("jpeg"), options, region);
  Pixels into{nullptr, 0, decoded.width, decoded.height, output_channels(info, options), DType::u8};
  into.stride_bytes = into.row_bytes();
  Values values(into.stride_bytes * into.height, 0xAB);
  into.data = reinterpret_cast<std::byte*>(values.data());
  if (!decode_into(into, scratch)) return std::nullopt;
  return values;
}

std::optional<Values> ours(Bytes file, const ImageInfo& info, const ImageOptions& options, const Rect& region,
                           const Kernels& kernels = kAvx2Kernels) {
  return pixels_of(info, options, region, [&](const Pixels& into, Scratch& scratch) {
    return decode_baseline(file, options, region, into, scratch, nullptr, kernels);
  });
}

std::optional<Values> libjpegs(Bytes file, const ImageInfo& info, const ImageOptions& options, const Rect& region) {
  return pixels_of(info, options, region, [&](const Pixels& into, Scratch& scratch) {
    return decode_by_libjpeg(file, options, region, into, scratch).ok();
  });
}

// The part of the whole image that decoding `region` should give.
Values part_of(const Values& whole, const ImageInfo& info, const ImageOptions& options, const Rect& region) {
  const Rect all = decoded_region(media_named("jpeg"), options, {0, 0, info.width, info.height});
  const Rect part = decoded_region(media_named("jpeg"), options, region);
  const std::size_t channels = output_channels(info, options);
  Values values;
  for (std::uint32_t y = 0; y < part.height; ++y) {
    const auto from =
        whole.begin() + static_cast<std::ptrdiff_t>((std::size_t{part.y + y} * all.width + part.x) * channels);
    values.insert(values.end(), from, from + static_cast<std::ptrdiff_t>(part.width * channels));
  }
  return values;
}

Rect any_region(Random& random, const ImageInfo& info) {
  const std::uint32_t x = random.below(info.width), y = random.below(info.height);
  const std::uint32_t limit = random.below(2) == 0 ? 20 : 1000;
  return {x, y, 1 + random.below(std::min(limit, info.width - x)), 1 + random.below(std::min(limit, info.height - y))};
}

void expect_libjpegs_pixels(Bytes file, int regions, std::initializer_list<Color> colors) {
  ImageInfo info;
  ASSERT_TRUE(probe_jpeg(file, info).ok());
  const Rect all{0, 0, info.width, info.height};
  Random random(7, 8, info.width * 1000 + info.height);
  for (const std::uint32_t scale : {1u, 2u, 4u, 8u}) {
    for (const Color color : colors) {
      const ImageOptions options = fast(scale, color, true);
      const std::optional<Values> expected = libjpegs(file, info, options, all);
      ASSERT_TRUE(expected.has_value());
      const std::optional<Values> got = ours(file, info, options, all);
      ASSERT_TRUE(got.has_value()) << "declined at 1/" << scale;
      ASSERT_TRUE(*got == *expected) << "at 1/" << scale << " color " << static_cast<int>(color);
      ASSERT_TRUE(ours(file, info, options, all, kPlainKernels) == expected) << "plain kernels at 1/" << scale;
      for (int i = 0; i < regions; ++i) {
        const Rect region = any_region(random, info);
        const Values part = part_of(*expected, info, options, region);
        ASSERT_TRUE(ours(file, info, options, region) == part)
            << "at 1/" << scale << ": " << region.x << "," << region.y << " " << region.width << "x" << region.height;
        ASSERT_TRUE(libjpegs(file, info, fast(scale, color), region) == part) << "libjpeg-turbo at 1/" << scale;
      }
    }
  }
}

const Coding kSamplings[] = {{},
                             {.h_sampling = 2},
                             {.v_sampling = 2},
                             {.h_sampling = 2, .v_sampling = 2},
                             {.stored = JCS_GRAYSCALE},
                             {.stored = JCS_GRAYSCALE, .h_sampling = 2, .v_sampling = 2}};

std::string describe(const Coding& coding, std::uint32_t width, std::uint32_t height) {
  return std::to_string(coding.h_sampling) + "x" + std::to_string(coding.v_sampling) +
         (coding.stored == JCS_GRAYSCALE ? " gray" : "") + " quality " + std::to_string(coding.quality) + " size " +
         std::to_string(width) + "x" + std::to_string(height);
}

TEST_F(FastJpeg, GivesLibjpegsPixelsForEveryQualityAndSampling) {
  for (Coding coding : kSamplings) {
    for (const int quality : {1, 35, 75, 92, 100}) {
      for (const Scene scene : {Scene::noise, Scene::smooth, Scene::extreme}) {
        coding.quality = quality;
        SCOPED_TRACE(describe(coding, 147, 101));
        expect_libjpegs_pixels(encode(147, 101, scene, coding), 6, {Color::rgb, Color::gray, Color::keep});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(FastJpeg, GivesLibjpegsPixelsForEverySmallSize) {
  for (const Coding& coding : kSamplings) {
    for (std::uint32_t width = 1; width <= 36; width += width < 18 ? 1 : 9) {
      for (std::uint32_t height = 1 + width % kEvery; height <= 36; height += height < 18 ? kEvery : 9) {
        SCOPED_TRACE(describe(coding, width, height));
        expect_libjpegs_pixels(encode(width, height, Scene::noise, coding), 1, {Color::rgb});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(FastJpeg, GivesLibjpegsPixelsWithRestarts) {
  for (Coding coding : kSamplings) {
    for (const unsigned interval : {1u, 3u, 64u}) {
      coding.restart_interval = interval;
      SCOPED_TRACE(describe(coding, 100, 60));
      expect_libjpegs_pixels(encode(100, 60, Scene::smooth, coding), 4, {Color::rgb});
      if (HasFatalFailure()) return;
    }
  }
}

// What goes to libjpeg-turbo is narrowed to the region there, too.
TEST_F(FastJpeg, GivesTheSamePixelsInARegionAsInTheWholeWhoeverDecodes) {
  const Coding codings[] = {{.h_sampling = 4},
                            {.h_sampling = 2, .v_sampling = 2, .progressive = true},
                            {.h_sampling = 2, .progressive = true},
                            {.progressive = true},
                            {.stored = JCS_RGB},
                            {.h_sampling = 2, .v_sampling = 2, .arithmetic = true}};
  Random random(4, 5, 6);
  for (const Coding& coding : codings) {
    const File file = encode(141, 117, Scene::noise, coding);
    const ImageInfo info{141, 117, 3, 8};
    for (const std::uint32_t scale : {1u, 2u, 4u, 8u}) {
      SCOPED_TRACE(describe(coding, 141, 117) + " at 1/" + std::to_string(scale));
      ASSERT_FALSE(ours(file, info, fast(scale), {0, 0, 141, 117}).has_value());
      const Values whole = decode(file, fast(scale)).bytes;
      for (int i = 0; i < 40; ++i) {
        const Rect region = any_region(random, info);
        ASSERT_EQ(decode(file, fast(scale), region).bytes, part_of(whole, info, fast(scale), region))
            << region.x << "," << region.y << " " << region.width << "x" << region.height;
      }
    }
  }
}

// The mean over the pixels that one stands for.
TEST_F(FastJpeg, IsTheImageMadeSmaller) {
  const File file = encode(96, 64, Scene::smooth, {.h_sampling = 2, .v_sampling = 2, .quality = 95});
  const Values exact = decode(file).bytes;
  for (const std::uint32_t scale : {2u, 4u, 8u}) {
    const Values small = decode(file, fast(scale)).bytes;
    ASSERT_EQ(small.size(), exact.size() / scale / scale);
    double sum = 0;
    for (std::size_t i = 0; i < small.size(); ++i) {
      const std::size_t c = i % 3, x = i / 3 % (96 / scale), y = i / 3 / (96 / scale);
      double mean = 0;
      for (std::size_t dy = 0; dy < scale; ++dy) {
        for (std::size_t dx = 0; dx < scale; ++dx) {
          mean += exact[((y * scale + dy) * 96 + x * scale + dx) * 3 + c] / double(scale * scale);
        }
      }
      sum += std::abs(mean - small[i]);
    }
    EXPECT_LT(sum / static_cast<double>(small.size()), 2.5) << "at 1/" << scale;
  }
}

// Damage may be declined; libjpeg-turbo then has the last word. What is taken must be what libjpeg-turbo gives.
void expect_declined_or_equal(Bytes damaged, std::uint32_t scale) {
  ImageInfo info;
  if (!probe_jpeg(damaged, info).ok() || std::uint64_t{info.width} * info.height > (1 << 16)) return;
  const Rect all{0, 0, info.width, info.height};
  const ImageOptions options = fast(scale, Color::rgb, true);
  const std::optional<Values> got = ours(damaged, info, options, all);
  if (got) {
    ASSERT_TRUE(got == libjpegs(damaged, info, options, all)) << "at 1/" << scale;
  }
}

TEST_F(FastJpeg, DeclinesEveryCutOrGivesLibjpegsPixels) {
  for (const char* name : {"yuv420.jpg", "yuv422.jpg", "yuv444-restart.jpg", "gray.jpg"}) {
    const File file = golden(name);
    at_every_truncation(file, [&](Bytes part) {
      for (const std::uint32_t scale : {1u, 2u, 4u, 8u}) {
        expect_declined_or_equal(part, scale);
        if (part.size() + 2 < file.size()) {
          EXPECT_FALSE(decode(part, fast(scale)).result.ok()) << name << " cut to " << part.size();
        }
      }
    });
  }
}

TEST_F(FastJpeg, SurvivesEveryFlippedBit) {
  for (const char* name : {"yuv420.jpg", "yuv422.jpg"}) {
    std::uint32_t turn = 0;
    at_every_flipped_bit(golden(name), [&](Bytes damaged) { expect_declined_or_equal(damaged, 1u << turn++ % 4); });
  }
}

}  // namespace
}  // namespace stoker::codec::jpeg
