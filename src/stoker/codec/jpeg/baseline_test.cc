// Our decoder against libjpeg-turbo, on files that libjpeg-turbo encodes here.
#include "stoker/codec/jpeg/baseline.h"

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/codec/damage_test.h"
#include "stoker/codec/image.h"
#include "stoker/codec/jpeg/headers.h"
#include "stoker/codec/jpeg/target.h"
#include "stoker/codec/made_jpeg_test.h"

namespace stoker::codec::jpeg {
namespace {

using Values = std::vector<std::uint8_t>;
using made::Coding, made::encode, made::Scene;

// Where the content of the first segment with this marker begins.
std::size_t find_segment(File& file, int marker) {
  for (std::size_t i = 0; i + 1 < file.size(); ++i) {
    if (file[i] == std::byte{0xFF} && file[i + 1] == static_cast<std::byte>(marker)) return i + 4;
  }
  ADD_FAILURE() << "no such segment";
  return 0;
}

class OwnJpeg : public testing::Test {
 protected:
  void SetUp() override {
    if (!runs_fast_code()) GTEST_SKIP() << "this CPU has no AVX2: libjpeg-turbo decodes everything";
  }
};

// The pixels, or nothing. In memory of exactly the size needed, so that ASan sees every step beyond.
template <typename Decode>
std::optional<Values> pixels_of(const ImageInfo& info, const ImageOptions& options, const Rect& region,
                                const Decode& decode_into) {
  Scratch scratch;
  Pixels into{
      nullptr, 0, region.width, region.height, output_channels(info, options), options.deep ? DType::u16 : DType::u8};
  into.stride_bytes = into.row_bytes();
  Values values(into.stride_bytes * region.height, 0xAB);
  into.data = reinterpret_cast<std::byte*>(values.data());
  if (!decode_into(into, scratch)) return std::nullopt;
  return values;
}

std::optional<Values> ours(Bytes file, const ImageInfo& info, const ImageOptions& options, const Rect& region,
                           SeekIndex* index = nullptr, const Kernels& kernels = kAvx2Kernels) {
  return pixels_of(info, options, region, [&](const Pixels& into, Scratch& scratch) {
    return decode_baseline(file, options, region, into, scratch, index, kernels);
  });
}

std::optional<Values> libjpegs(Bytes file, const ImageInfo& info, const ImageOptions& options, const Rect& region) {
  return pixels_of(info, options, region, [&](const Pixels& into, Scratch& scratch) {
    return decode_by_libjpeg(file, options, region, into, scratch).ok();
  });
}

Rect any_region(Random& random, const ImageInfo& info) {
  const std::uint32_t x = random.below(info.width), y = random.below(info.height);
  const std::uint32_t limit = random.below(2) == 0 ? 20 : 1000;
  return {x, y, 1 + random.below(std::min(limit, info.width - x)), 1 + random.below(std::min(limit, info.height - y))};
}

// Whole in every colour and depth, and `regions` parts of it.
void expect_libjpegs_pixels(Bytes file, int regions) {
  ImageInfo info;
  ASSERT_TRUE(probe_jpeg(file, info).ok());
  const Rect all{0, 0, info.width, info.height};
  for (const Color color : {Color::rgb, Color::gray, Color::keep}) {
    for (const bool deep : {false, true}) {
      const ImageOptions options{.color = color, .deep = deep, .strict = true};
      const std::optional<Values> expected = libjpegs(file, info, options, all);
      ASSERT_TRUE(expected.has_value());
      const std::optional<Values> got = ours(file, info, options, all);
      ASSERT_TRUE(got.has_value()) << "declined";
      ASSERT_TRUE(*got == *expected) << "color " << static_cast<int>(color) << " deep " << deep;
    }
  }
  ASSERT_TRUE(ours(file, info, {}, all, nullptr, kPlainKernels) == libjpegs(file, info, {}, all)) << "plain kernels";
  Random random(7, 8, info.width * 1000 + info.height);
  for (int i = 0; i < regions; ++i) {
    const Rect region = any_region(random, info);
    const std::optional<Values> got = ours(file, info, {}, region);
    ASSERT_TRUE(got.has_value()) << "declined";
    ASSERT_TRUE(got == libjpegs(file, info, {}, region))
        << region.x << "," << region.y << " " << region.width << "x" << region.height;
  }
}

const Coding kSamplings[] = {{},
                             {.h_sampling = 2},
                             {.v_sampling = 2},
                             {.h_sampling = 2, .v_sampling = 2},
                             {.stored = JCS_GRAYSCALE},
                             {.stored = JCS_GRAYSCALE, .h_sampling = 2, .v_sampling = 2},
                             {.stored = JCS_GRAYSCALE, .h_sampling = 2}};

std::string describe(const Coding& coding, std::uint32_t width, std::uint32_t height) {
  return std::to_string(coding.h_sampling) + "x" + std::to_string(coding.v_sampling) +
         (coding.stored == JCS_GRAYSCALE ? " gray" : "") + " quality " + std::to_string(coding.quality) + " restart " +
         std::to_string(coding.restart_interval) + " size " + std::to_string(width) + "x" + std::to_string(height);
}

TEST_F(OwnJpeg, GivesLibjpegsPixelsForEveryQualityAndSampling) {
  for (Coding coding : kSamplings) {
    for (const int quality : {1, 10, 35, 60, 75, 85, 92, 97, 100}) {
      for (const Scene scene : {Scene::noise, Scene::smooth, Scene::extreme}) {
        coding.quality = quality;
        coding.optimized = quality % 2 == 0;
        SCOPED_TRACE(describe(coding, 75, 53));
        expect_libjpegs_pixels(encode(75, 53, scene, coding), 12);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(OwnJpeg, GivesLibjpegsPixelsForEverySmallSize) {
  for (const Coding& coding : kSamplings) {
    const std::uint32_t least_width = coding.h_sampling == 2 ? 5 : 1;
    for (std::uint32_t width = least_width; width <= 36; width += width < 20 ? 1 : 5) {
      for (std::uint32_t height = 1 + width % kEvery; height <= 36; height += height < 20 ? kEvery : 5) {
        SCOPED_TRACE(describe(coding, width, height));
        expect_libjpegs_pixels(encode(width, height, Scene::noise, coding), 3);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(OwnJpeg, GivesLibjpegsPixelsWithRestarts) {
  for (Coding coding : kSamplings) {
    for (const unsigned interval : {1u, 2u, 3u, 7u, 9u, 64u, 65535u}) {
      coding.restart_interval = interval;
      SCOPED_TRACE(describe(coding, 141, 67));
      expect_libjpegs_pixels(encode(141, 67, Scene::smooth, coding), 25);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(OwnJpeg, GivesLibjpegsPixelsForDataLongerThanItsWindow) {
  for (Coding coding : kSamplings) {
    coding.quality = 100;
    SCOPED_TRACE(describe(coding, 517, 389));
    const File file = encode(517, 389, Scene::noise, coding);
    ASSERT_GT(file.size(), 4 * EntropyDecoder::kWindowBytes);
    expect_libjpegs_pixels(file, 25);
    if (HasFatalFailure()) return;
  }
}

TEST_F(OwnJpeg, OverflowsAsLibjpegDoesWithAbsurdTables) {
  Random random(5, 5, 5);
  for (Coding coding : kSamplings) {
    coding.quality = 100;
    for (int i = 0; i < 60; ++i) {
      File file = encode(57, 41, i % 3 == 0 ? Scene::extreme : i % 3 == 1 ? Scene::noise : Scene::smooth, coding);
      const std::size_t table = find_segment(file, 0xDB) + 1;
      for (std::size_t k = 0; k < 64; ++k) {
        file[table + k] = static_cast<std::byte>(i % 2 == 0 ? 255 : random.below(256));
      }
      SCOPED_TRACE(describe(coding, 57, 41));
      expect_libjpegs_pixels(file, 2);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(OwnJpeg, KnowsWhichMarkersMayStandInTheData) {
  const auto ends = [](std::initializer_list<int> bytes, bool has_restarts = false) {
    File file;
    file.bytes(bytes);
    return ends_properly(file, has_restarts);
  };
  EXPECT_TRUE(ends({0x12, 0xFF, 0x00, 0x34, 0xFF, 0xD9, 0xFF, 0x01}));
  EXPECT_TRUE(ends({0xFF, 0xFF, 0xD9}));
  EXPECT_TRUE(ends({0x12, 0xFF, 0xFF, 0x00, 0x34, 0xFF, 0xD9}));
  EXPECT_TRUE(ends({0xFF, 0xD0, 0x12, 0xFF, 0xD7, 0xFF, 0xD9}, true));
  EXPECT_FALSE(ends({0xFF, 0xD0, 0x12, 0xFF, 0xD9}));
  for (const std::initializer_list<int> bad : {std::initializer_list<int>{},
                                               {0x12},
                                               {0xFF},
                                               {0xFF, 0xFF},
                                               {0xFF, 0x00},
                                               {0xFF, 0x01, 0xFF, 0xD9},
                                               {0xFF, 0xDA, 0xFF, 0xD9},
                                               {0xFF, 0xE1, 0x00, 0x02, 0xFF, 0xD9}}) {
    EXPECT_FALSE(ends(bad, true));
  }
}

TEST_F(OwnJpeg, DeclinesOtherKinds) {
  const auto is_declined = [](Bytes file) {
    ImageInfo info;
    EXPECT_TRUE(probe_jpeg(file, info).ok());
    return !ours(file, info, {}, {0, 0, info.width, info.height}).has_value() && decode(file).result.ok();
  };
  EXPECT_TRUE(is_declined(encode(40, 40, Scene::noise, {.progressive = true})));
  EXPECT_TRUE(is_declined(encode(40, 40, Scene::noise, {.arithmetic = true})));
  EXPECT_TRUE(is_declined(encode(40, 40, Scene::noise, {.stored = JCS_RGB})));
  EXPECT_TRUE(is_declined(encode(40, 40, Scene::noise, {.h_sampling = 4})));
  EXPECT_TRUE(is_declined(encode(4, 40, Scene::noise, {.h_sampling = 2, .v_sampling = 2})));
  EXPECT_FALSE(is_declined(encode(40, 40, Scene::noise, {})));
}

TEST_F(OwnJpeg, DeclinesAFileWithoutAMarkerBehindItsScanWhateverTheRegion) {
  const File file = encode(40, 40, Scene::noise, {});
  const Rect all{0, 0, 40, 40}, upper{0, 0, 40, 20};
  for (const std::initializer_list<int> end : {std::initializer_list<int>{}, {0xFF}, {0xFF, 0xFF}, {0xFF, 0x00}}) {
    File changed = file;
    changed.cut(file.size() - 2).bytes(end);
    EXPECT_FALSE(ours(changed, {40, 40, 3, 8}, {}, all).has_value());
    EXPECT_FALSE(ours(changed, {40, 40, 3, 8}, {}, upper).has_value()) << "which ends before";
  }
  File longer = file;
  longer.cut(file.size() - 2).bytes({0x55, 0xFF, 0xD9});
  EXPECT_FALSE(ours(longer, {40, 40, 3, 8}, {}, all).has_value()) << "a byte too many";
}

TEST_F(OwnJpeg, DeclinesRestartMarkersOutOfOrder) {
  File file = encode(80, 40, Scene::noise, {.restart_interval = 5});
  std::size_t marker = 0;
  for (std::size_t i = 0; i + 1 < file.size(); ++i) {
    if (file[i] == std::byte{0xFF} && file[i + 1] == std::byte{0xD1}) marker = i;
  }
  ASSERT_NE(marker, 0u);
  const Rect all{0, 0, 80, 40};
  EXPECT_TRUE(ours(file, {80, 40, 3, 8}, {}, all).has_value());
  file[marker + 1] = std::byte{0xD2};
  EXPECT_FALSE(ours(file, {80, 40, 3, 8}, {}, all).has_value());
}

// What libjpeg only warns of makes it fail when strict: a certain decoder never sees the difference.
TEST_F(OwnJpeg, DeclinesWhatLibjpegWarnsOf) {
  const File file = encode(40, 40, Scene::noise, {});
  const Rect all{0, 0, 40, 40};
  const auto declines_with = [&](int marker, std::size_t at, int value) {
    File changed = file;
    changed[find_segment(changed, marker) + at] = static_cast<std::byte>(value);
    return !ours(changed, {40, 40, 3, 8}, {}, all).has_value();
  };
  EXPECT_FALSE(declines_with(0xE0, 5, 1)) << "the version that it has";
  EXPECT_TRUE(declines_with(0xE0, 5, 2)) << "another version of JFIF";
  EXPECT_TRUE(declines_with(0xDA, 8, 62)) << "an end of the spectrum";
  EXPECT_TRUE(declines_with(0xC0, 0, 12)) << "bits per sample";
}

// A gray row of `blocks` blocks, each brighter than the one before by 2047: the code 0 and eleven ones, then the end of
// the block, the code 0. `codes` is how many codes of one bit the tables have.
File make_brighter(int blocks, int codes) {
  File file;
  file.bytes({0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0});
  for (int i = 0; i < 64; ++i) file.bytes({1});
  file.bytes({0xFF, 0xC0, 0, 11, 8, 0, 8, blocks * 8 >> 8, blocks * 8 & 255, 1, 1, 0x11, 0});
  for (const int slot : {0x00, 0x10}) {
    file.bytes({0xFF, 0xC4, 0, 19 + codes, slot, codes}).zeros(15).bytes({slot == 0 ? 11 : 0});
    if (codes == 2) file.bytes({1});
  }
  file.bytes({0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0});
  std::string bits;
  for (int i = 0; i < blocks; ++i) bits += "0111111111110";
  bits.append((8 - bits.size() % 8) % 8, '1');
  for (std::size_t i = 0; i < bits.size(); i += 8) {
    const int byte = std::stoi(bits.substr(i, 8), nullptr, 2);
    file.bytes({byte});
    if (byte == 0xFF) file.bytes({0});
  }
  return file.bytes({0xFF, 0xD9});
}

TEST_F(OwnJpeg, DeclinesBrightnessThatOverflows) {
  expect_libjpegs_pixels(make_brighter(16, 1), 3);
  EXPECT_FALSE(ours(make_brighter(17, 1), {17 * 8, 8, 1, 8}, {}, {0, 0, 17 * 8, 8}).has_value());
}

TEST_F(OwnJpeg, DeclinesCodesOfOnesAloneAsLibjpegDoes) {
  const ImageInfo info{16, 8, 1, 8};
  const Rect all{0, 0, 16, 8};
  EXPECT_TRUE(ours(make_brighter(2, 1), info, {}, all).has_value());
  EXPECT_FALSE(ours(make_brighter(2, 2), info, {}, all).has_value());
  EXPECT_FALSE(libjpegs(make_brighter(2, 2), info, {}, all).has_value());
}

TEST_F(OwnJpeg, DeclinesRequestsThatDoNotFit) {
  const File file = encode(40, 30, Scene::noise, {});
  Values into(40 * 30 * 3);
  Scratch scratch;
  const auto decodes = [&](const Rect& region, const Pixels& shape, const ImageOptions& options = {}) {
    Pixels pixels = shape;
    pixels.data = reinterpret_cast<std::byte*>(into.data());
    return decode_baseline(file, options, region, pixels, scratch);
  };
  EXPECT_TRUE(decodes({0, 0, 40, 30}, {nullptr, 120, 40, 30, 3, DType::u8}));
  EXPECT_FALSE(decodes({1, 0, 40, 30}, {nullptr, 120, 40, 30, 3, DType::u8}));
  EXPECT_FALSE(decodes({0, 0, 40, 30}, {nullptr, 119, 40, 30, 3, DType::u8}));
  EXPECT_FALSE(decodes({0, 0, 40, 30}, {nullptr, 120, 40, 30, 1, DType::u8}));
  EXPECT_FALSE(decodes({0, 0, 40, 30}, {nullptr, 120, 40, 30, 3, DType::u8}, {.fast = true, .scale = 3}));
}

TEST_F(OwnJpeg, DeclinesWithoutMemory) {
  const File file = encode(400, 30, Scene::noise, {});
  Values into(400 * 30 * 3);
  const Pixels pixels{reinterpret_cast<std::byte*>(into.data()), 1200, 400, 30, 3, DType::u8};
  for (const std::size_t size : {std::size_t{0}, std::size_t{20} << 10, std::size_t{90} << 10}) {
    Budget budget(size);
    Scratch scratch(&budget);
    EXPECT_FALSE(decode_baseline(file, {}, {0, 0, 400, 30}, pixels, scratch));
  }
}

// Whatever happens to a file: if we decode all of it, then libjpeg does too, without a warning and to the same pixels.
// Of a part we may know more, because libjpeg reads on behind it.
int count_accepted(Bytes file, Random& random) {
  ImageInfo info;
  if (!probe_jpeg(file, info).ok() || info.width > 200 || info.height > 200) return 0;
  const Rect all{0, 0, info.width, info.height};
  const ImageOptions strict{.strict = true};
  const std::optional<Values> whole = ours(file, info, strict, all);
  if (whole.has_value()) {
    EXPECT_TRUE(libjpegs(file, info, strict, all) == whole) << "whole";
  }
  const Rect region = any_region(random, info);
  const std::optional<Values> part = ours(file, info, {}, region);
  if (part.has_value()) {
    const std::optional<Values> expected = libjpegs(file, info, {}, region);
    EXPECT_TRUE(!expected.has_value() || *expected == *part)
        << region.x << "," << region.y << " " << region.width << "x" << region.height;
  }
  return whole.has_value() ? 1 : 0;
}

TEST_F(OwnJpeg, NeverDiffersWhereverAFileIsCut) {
  for (Coding coding : kSamplings) {
    for (const unsigned interval : {0u, 2u}) {
      coding.restart_interval = interval;
      Random random(1, 2, 3);
      const File file = encode(43, 37, Scene::smooth, coding);
      int accepted = 0;
      at_every_truncation(file, [&](Bytes part) { accepted += count_accepted(part, random); });
      EXPECT_LE(accepted, 1) << "the end marker's second byte is all that may be missing";
    }
  }
}

TEST_F(OwnJpeg, NeverDiffersWhicheverBitIsFlipped) {
  for (Coding coding : kSamplings) {
    coding.restart_interval = coding.h_sampling == 2 ? 2 : 0;
    coding.optimized = true;
    Random random(1, 2, 3);
    const File file = encode(23, 21, Scene::smooth, coding);
    int accepted = 0;
    at_every_flipped_bit(file, [&](Bytes damaged) { accepted += count_accepted(damaged, random); });
    EXPECT_GT(accepted, static_cast<int>(100 / kEvery))
        << "of flips in tables and values, many leave a file that is fine";
  }
}

TEST_F(OwnJpeg, NeverDiffersOnFilesWithRandomDamage) {
  Random random(9, 9, 9);
  for (int i = 0; i < 3000; ++i) {
    Coding coding = kSamplings[random.below(std::size(kSamplings))];
    coding.quality = 1 + static_cast<int>(random.below(100));
    coding.restart_interval = random.below(2) * random.below(9);
    File file = encode(1 + random.below(60), 1 + random.below(60), static_cast<Scene>(random.below(3)), coding);
    for (std::uint32_t n = 1 + random.below(4); n > 0; --n) {
      file[random.below(static_cast<std::uint32_t>(file.size()))] = static_cast<std::byte>(random.below(256));
    }
    if (random.below(3) == 0) file.cut(1 + random.below(static_cast<std::uint32_t>(file.size())));
    count_accepted(file, random);
    if (HasFailure()) return;
  }
}

TEST_F(OwnJpeg, GivesLibjpegsPixelsThroughAnIndexThatRegionsExtend) {
  for (Coding coding : kSamplings) {
    for (const unsigned interval : {0u, 3u, 8u}) {
      for (const std::uint32_t step : {1u, 5u, 8u, 18u}) {
        coding.restart_interval = interval;
        coding.quality = 100;
        SCOPED_TRACE(describe(coding, 141, 157) + " step " + std::to_string(step));
        const File file = encode(141, 157, Scene::noise, coding);
        ASSERT_GT(file.size(), EntropyDecoder::kWindowBytes);
        const ImageInfo info{141, 157, static_cast<std::uint8_t>(coding.stored == JCS_GRAYSCALE ? 1 : 3), 8};
        std::vector<Checkpoint> places(1000);
        SeekIndex index{step, places, 0};
        Random random(3, 2, 1);
        for (int i = 0; i < 40; ++i) {
          const Rect region = any_region(random, info);
          const std::uint32_t known = index.known;
          const std::optional<Values> got = ours(file, info, {}, region, &index);
          ASSERT_TRUE(got.has_value()) << "declined";
          ASSERT_TRUE(got == libjpegs(file, info, {}, region));
          ASSERT_GE(index.known, known);
        }
        const Rect all{0, 0, 141, 157};
        ASSERT_TRUE(ours(file, info, {}, all, &index) == libjpegs(file, info, {}, all));
        const std::uint32_t mcus = (141 + 8 * coding.h_sampling - 1) / (8 * coding.h_sampling) *
                                   ((157 + 8 * coding.v_sampling - 1) / (8 * coding.v_sampling));
        if (info.channels == 3) {
          EXPECT_EQ(index.known, (mcus - 1) / step);
        }
      }
    }
  }
}

TEST_F(OwnJpeg, ReadsNothingBeforeAKnownPlace) {
  File file = encode(160, 160, Scene::noise, {});
  const ImageInfo info{160, 160, 3, 8};
  std::vector<Checkpoint> places(100);
  SeekIndex index{8, places, 0};
  const Rect lower{40, 130, 50, 20};
  const std::optional<Values> before = ours(file, info, {}, lower, &index);
  ASSERT_TRUE(before.has_value());
  const std::size_t scan = find_segment(file, 0xDA) + 10;
  for (std::size_t i = 0; i < file.size() / 2; ++i) file[scan + i] = std::byte{0xFF};
  EXPECT_TRUE(ours(file, info, {}, lower, &index) == before);
  EXPECT_FALSE(ours(file, info, {}, lower).has_value());
}

TEST_F(OwnJpeg, SurvivesAnIndexOfNonsense) {
  Random random(6, 6, 6);
  for (const Coding& coding : kSamplings) {
    const File file = encode(75, 61, Scene::noise, coding);
    const ImageInfo info{75, 61, static_cast<std::uint8_t>(coding.stored == JCS_GRAYSCALE ? 1 : 3), 8};
    for (int i = 0; i < 500; ++i) {
      std::vector<Checkpoint> places(40);
      for (Checkpoint& place : places) {
        const auto size = static_cast<std::uint32_t>(file.size());
        place.byte = random.below(20) == 0 ? random.below(0xFFFFFFFF) : random.below(size);
        place.bit = static_cast<std::uint8_t>(random.below(9));
        for (std::int16_t& value : place.predictor) value = static_cast<std::int16_t>(random.below(65536));
      }
      SeekIndex index{1 + random.below(9), places, random.below(42)};
      (void)ours(file, info, {}, any_region(random, info), &index);
    }
  }
}

}  // namespace
}  // namespace stoker::codec::jpeg
