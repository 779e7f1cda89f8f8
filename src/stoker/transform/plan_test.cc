#include "stoker/transform/plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/transform/golden_test.h"
#include "stoker/transform/half.h"
#include "stoker/transform/resize.h"
#include "stoker/transform/store.h"

namespace stoker::transform {
namespace {

Input pictures(std::uint32_t width, std::uint32_t height, std::uint8_t channels = 3, std::uint8_t bits = 8) {
  Input input;
  input.width = width, input.height = height, input.channels = channels, input.bits = bits;
  return input;
}
Input sounds(std::uint32_t channels, std::uint32_t rate_hz) {
  Input input;
  input.kind = SampleKind::audio;
  input.audio_channels = channels, input.rate_hz = rate_hz;
  return input;
}
Input arrays(DType dtype, std::vector<std::uint64_t> shape) {
  Input input;
  input.kind = SampleKind::array;
  input.dtype = dtype;
  input.shape = std::move(shape);
  return input;
}

Plan compile(std::string_view text, const Input& input, std::optional<DType> dtype = {}, Layout layout = Layout::nchw) {
  return Plan::compile(parse_ops(text), input, {dtype, layout});
}

std::string refusal(std::string_view text, const Input& input, std::optional<DType> dtype = {}) {
  try {
    (void)compile(text, input, dtype);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.message().find('\n'), std::string::npos);
    return error.message();
  }
  ADD_FAILURE() << text << " was not refused";
  return {};
}

Draw draw(const Plan& plan, std::uint32_t width, std::uint32_t height, std::uint64_t id = 0, std::uint32_t view = 0,
          std::uint64_t seed = 42, std::uint64_t epoch = 0) {
  Random random(seed, epoch, id, view);
  Draw result;
  const Result ok = plan.draw(view, width, height, random, result);
  EXPECT_TRUE(ok.ok()) << ok.cause;
  return result;
}

// The view as the slot holds it. Only the pixels that the draw asks for are handed over.
template <typename T>
std::vector<std::byte> make_view(const Plan& plan, const std::vector<T>& picture, std::uint32_t width,
                                 std::uint32_t height, std::uint32_t channels, const Draw& drawn, double offset = 0,
                                 std::uint32_t view = 0) {
  EXPECT_LE(drawn.crop.x + drawn.crop.width, width);
  EXPECT_LE(drawn.crop.y + drawn.crop.height, height);
  const Rect& region = drawn.crop;
  const std::size_t row = std::size_t{region.width} * channels;
  std::vector<T> held(row * region.height);
  for (std::uint32_t y = 0; y < region.height; ++y) {
    std::memcpy(&held[y * row], &picture[(std::size_t{region.y + y} * width + region.x) * channels], row * sizeof(T));
  }
  const Pixels pixels{reinterpret_cast<std::byte*>(held.data()),
                      row * sizeof(T),
                      region.width,
                      region.height,
                      static_cast<std::uint8_t>(channels),
                      sizeof(T) == 1 ? DType::u8 : DType::u16};
  std::vector<std::byte> slot(plan.outputs()[0].view_bytes);
  for (const Output& output : plan.outputs()) {
    if (view >= output.first_view) slot.resize(output.view_bytes);
  }
  Scratch scratch;
  const Result result = plan.apply(view, drawn, pixels, region, offset, slot.data(), scratch);
  EXPECT_TRUE(result.ok()) << result.cause;
  return slot;
}

template <typename T>
std::vector<T> as(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

bool same(const Draw& a, const Draw& b) {
  return a.crop == b.crop && std::equal(std::begin(a.steps), std::end(a.steps), std::begin(b.steps)) &&
         std::memcmp(a.sizes, b.sizes, sizeof a.sizes) == 0 && a.flip == b.flip && a.window_low == b.window_low &&
         a.window_scale == b.window_scale;
}

// ---- pictures

TEST(Plan, GivesThePixelsOfPillowAndTorchvision) {
  for (const GoldenPlan& g : kPlans) {
    const Plan plan = compile(g.text, pictures(g.width, g.height, static_cast<std::uint8_t>(g.channels)), g.dtype);
    const auto picture = make_bytes(g.seed, std::size_t{g.width} * g.height * g.channels);
    const auto view = make_view(plan, picture, g.width, g.height, g.channels, draw(plan, g.width, g.height));
    EXPECT_EQ(crc32(view), g.crc) << g.text << " as " << name(g.dtype);
  }
}

TEST(Plan, WindowsSixteenBitsWhereTheListSays) {
  for (const GoldenDeep& g : kDeepPlans) {
    const Plan plan = compile(g.text, pictures(50, 44, 1, 16));
    EXPECT_TRUE(plan.deep());
    const auto view = as<float>(make_view(plan, make_words(11, 50 * 44), 50, 44, 1, draw(plan, 50, 44)));
    // Pillow's sums are double, ours float32.
    for (const auto& [place, value] : g.values) EXPECT_NEAR(view[place], value, 1e-6) << g.text << " at " << place;
  }
}

TEST(Plan, TakesTheWindowsOffsetFromTheSampleUnlessItHasItsOwn) {
  const auto picture = make_words(3, 16 * 16);
  const auto values = [&](const char* text, double offset) {
    const Plan plan = compile(text, pictures(16, 16, 1, 16));
    return as<float>(make_view(plan, picture, 16, 16, 1, draw(plan, 16, 16), offset));
  };
  const auto own = values("window:level=0:width=4000:offset=30000", 7);
  EXPECT_EQ(own, values("window:level=0:width=4000", 30000));
  EXPECT_NE(own, values("window:level=0:width=4000", 0));
  EXPECT_EQ(*std::min_element(own.begin(), own.end()), 0.0F);
  EXPECT_EQ(*std::max_element(own.begin(), own.end()), 1.0F);
}

TEST(Plan, SixteenBitViewsAreTheSameWithWideAndPortableLoops) {
  const std::string window = "window:level=-700..100:width=300..2000:offset=32768";
  for (const std::string& text :
       {window + ",rrc:24", window + ",flip:1,resize:20x30", window + ",resize:70x40:filter=box",
        "resize:31x20:filter=bicubic," + window, "rrc:40,centercrop:16,resize:12x30," + window + ",flip:1",
        window + ",centercrop:30,normalize:0.4/0.3", std::string("resize:40x30,tofloat,normalize:0.4/0.3"),
        window + ",resize:33:filter=nearest,centercrop:33"}) {
    for (const std::uint8_t channels : {1, 3}) {
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
          const Plan plan = compile(text, pictures(61, 50, channels, 16), dtype, layout);
          const auto picture = make_words(8, std::size_t{61} * 50 * channels);
          const Draw drawn = draw(plan, 61, 50);
          const auto wide = make_view(plan, picture, 61, 50, channels, drawn);
          const bool before = use_wide_kernels(false);
          EXPECT_EQ(make_view(plan, picture, 61, 50, channels, drawn), wide) << text << " as " << name(dtype);
          use_wide_kernels(before);
        }
      }
    }
  }
}

TEST(Plan, MirrorsSixteenBitRowsOfEveryElementType) {
  const auto picture = make_words(4, 21 * 5);
  const auto rows = [&](const char* text, DType dtype) {
    const Plan plan = compile(text, pictures(21, 5, 1, 16), dtype);
    return make_view(plan, picture, 21, 5, 1, draw(plan, 21, 5));
  };
  const auto expect_mirrored = [&]<typename T>(T, DType dtype) {
    const auto straight = as<T>(rows("tofloat,flip:0", dtype)), mirrored = as<T>(rows("tofloat,flip:1", dtype));
    for (std::size_t i = 0; i < straight.size(); ++i) {
      ASSERT_EQ(mirrored[i / 21 * 21 + 20 - i % 21], straight[i]) << name(dtype) << " at " << i;
    }
  };
  expect_mirrored(float{}, DType::f32);
  expect_mirrored(std::uint16_t{}, DType::f16);
  expect_mirrored(std::uint16_t{}, DType::bf16);
  const auto halves = as<std::uint16_t>(rows("tofloat", DType::f16));
  for (std::size_t i = 0; i < halves.size(); ++i) {
    ASSERT_EQ(halves[i], to_float16(static_cast<float>(picture[i]) / 65535.0F));
  }
}

TEST(Plan, KeepsSixteenBits) {
  for (const std::uint8_t channels : {1, 3}) {
    const auto picture = make_words(6, std::size_t{21} * 10 * channels);
    Input input = pictures(21, 10, channels, 16);
    EXPECT_EQ(compile("", input).outputs()[0].dtype, DType::u8) << "unless they are asked for";
    EXPECT_EQ(compile("", input, DType::u16).outputs()[0].dtype, DType::u16);
    input.keeps_bits = true;
    EXPECT_EQ(compile("", input, DType::u8).deep(), false);
    const Plan plan = compile("", input, {}, Layout::nhwc);
    EXPECT_TRUE(plan.deep());
    EXPECT_EQ(plan.outputs()[0].dtype, DType::u16);
    EXPECT_EQ(as<std::uint16_t>(make_view(plan, picture, 21, 10, channels, draw(plan, 21, 10))), picture);
    const Plan floats = compile("", input, DType::f32, Layout::nhwc);
    const auto values = as<float>(make_view(floats, picture, 21, 10, channels, draw(floats, 21, 10)));
    for (std::size_t i = 0; i < picture.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(picture[i]));
    const Plan unit = compile("normalize:0/1", input, {}, Layout::nhwc);
    const auto shares = as<float>(make_view(unit, picture, 21, 10, channels, draw(unit, 21, 10)));
    for (std::size_t i = 0; i < picture.size(); ++i) ASSERT_EQ(shares[i], static_cast<float>(picture[i]) / 65535.0F);
  }
  Input input = pictures(21, 10, 1, 16);
  input.keeps_bits = true;
  EXPECT_EQ(refusal("", input, DType::f16), "cannot give 16-bit pictures as float16: values above 65504 do not fit");
  EXPECT_EQ(refusal("tofloat", input, DType::u16), "cannot give pictures as uint16: ToFloat makes them float");
  EXPECT_EQ(refusal("", pictures(9, 9), DType::u16), "cannot give pictures as uint16: they have 8 bits per channel");
}

TEST(Plan, RoundsAndClampsResizedSixteenBitPictures) {
  Input input = pictures(2, 1, 1, 16);
  input.keeps_bits = true;
  const Plan plan = compile("resize:1x40:filter=bicubic", input);
  const auto row = as<std::uint16_t>(make_view(plan, std::vector<std::uint16_t>{0, 65535}, 2, 1, 1, draw(plan, 2, 1)));
  EXPECT_EQ(row.front(), 0) << "bicubic goes below";
  EXPECT_EQ(row.back(), 65535) << "and above";
  EXPECT_TRUE(std::is_sorted(row.begin() + 10, row.end() - 10));
}

TEST(Plan, LaysOutPicturesAsAsked) {
  const auto picture = make_bytes(5, 9 * 7 * 3);
  const Plan planar = compile("flip:1", pictures(9, 7)), packed = compile("flip:1", pictures(9, 7), {}, Layout::nhwc),
             last = compile("flip:1", pictures(9, 7), {}, Layout::channels_last);
  EXPECT_EQ(planar.outputs()[0].shape, (std::vector<std::uint64_t>{3, 7, 9}));
  EXPECT_EQ(packed.outputs()[0].shape, (std::vector<std::uint64_t>{7, 9, 3}));
  EXPECT_EQ(last.outputs()[0].shape, (std::vector<std::uint64_t>{3, 7, 9}));
  const auto a = as<std::uint8_t>(make_view(planar, picture, 9, 7, 3, draw(planar, 9, 7)));
  const auto b = as<std::uint8_t>(make_view(packed, picture, 9, 7, 3, draw(packed, 9, 7)));
  EXPECT_EQ(b, as<std::uint8_t>(make_view(last, picture, 9, 7, 3, draw(last, 9, 7))));
  for (std::size_t y = 0; y < 7; ++y) {
    for (std::size_t x = 0; x < 9; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::uint8_t pixel = picture[(y * 9 + (8 - x)) * 3 + c];
        ASSERT_EQ(a[(c * 7 + y) * 9 + x], pixel);
        ASSERT_EQ(b[(y * 9 + x) * 3 + c], pixel);
      }
    }
  }
}

TEST(Plan, NormalizesEveryByteAsTorchvisionDoes) {
  std::vector<std::uint8_t> ramp(256);
  for (std::size_t i = 0; i < 256; ++i) ramp[i] = static_cast<std::uint8_t>(i);
  const Plan plan = compile("normalize:0.485/0.229", pictures(256, 1, 1));
  const auto view = as<float>(make_view(plan, ramp, 256, 1, 1, draw(plan, 256, 1)));
  for (std::size_t i = 0; i < 256; ++i) {
    const float unit = static_cast<float>(i) / 255.0F;
    const float centred = unit - 0.485F;
    EXPECT_EQ(view[i], centred / 0.229F) << i;
  }
}

TEST(Plan, TheRandomCropIsInsideAndKeepsItsAreaAndAspect) {
  const Plan plan = compile("rrc:32:scale=0.25..0.5:ratio=0.5..2", pictures(100, 80));
  for (std::uint64_t id = 0; id < 2000; ++id) {
    const Rect crop = draw(plan, 400, 300, id).steps[0];
    ASSERT_LE(crop.x + crop.width, 400u);
    ASSERT_LE(crop.y + crop.height, 300u);
    const double area = static_cast<double>(crop.width) * crop.height / (400.0 * 300.0);
    ASSERT_GT(area, 0.24);
    ASSERT_LT(area, 0.51);
    const double ratio = static_cast<double>(crop.width) / crop.height;
    ASSERT_GT(ratio, 0.49);
    ASSERT_LT(ratio, 2.03);
  }
}

TEST(Plan, TheRandomCropReachesAllCornersAndBothAspects) {
  const Plan plan = compile("rrc:8:scale=0.1..0.3", pictures(100, 100));
  std::set<std::pair<bool, bool>> corners;
  double log_ratio = 0;
  for (std::uint64_t id = 0; id < 4000; ++id) {
    const Rect crop = draw(plan, 100, 100, id).steps[0];
    corners.insert({crop.x + crop.width / 2 < 50, crop.y + crop.height / 2 < 50});
    log_ratio += std::log(static_cast<double>(crop.width) / crop.height) / 4000;
  }
  EXPECT_EQ(corners.size(), 4u);
  EXPECT_NEAR(log_ratio, 0, 0.02);  // uniform in the logarithm: as often wide as tall
}

TEST(Plan, AnImpossibleRandomCropFallsBackToTheMiddleOfTheNearestAspect) {
  const Plan plan = compile("rrc:8:scale=1", pictures(100, 100));
  EXPECT_EQ(draw(plan, 1000, 10).steps[0], (Rect{493, 0, 13, 10}));
  EXPECT_EQ(draw(plan, 10, 1000).steps[0], (Rect{0, 493, 10, 13}));
}

TEST(Plan, CenterCropRoundsHalvesToEven) {
  const Plan plan = compile("centercrop:4", pictures(10, 10));
  EXPECT_EQ(draw(plan, 9, 11).steps[0], (Rect{2, 4, 4, 4}));  // 2.5 -> 2, 3.5 -> 4
}

TEST(Plan, AsksOnlyForThePixelsThatTheCropKeeps) {
  const Plan plan = compile("resize:100,centercrop:50", pictures(400, 200));
  const Draw drawn = draw(plan, 400, 200);
  EXPECT_EQ(drawn.crop, (Rect{149, 49, 102, 102}));
}

TEST(Plan, DrawsDependOnSeedEpochSampleAndViewAlone) {
  const Plan plan = compile("views(a=2[rrc:16,flip],b=2[rrc:8,flip])", pictures(64, 64));
  const Draw base = draw(plan, 300, 200, 7, 1, 42, 3);
  EXPECT_TRUE(same(base, draw(plan, 300, 200, 7, 1, 42, 3)));
  EXPECT_FALSE(base.steps[0] == draw(plan, 300, 200, 7, 1, 43, 3).steps[0]);
  EXPECT_FALSE(base.steps[0] == draw(plan, 300, 200, 7, 1, 42, 4).steps[0]);
  EXPECT_FALSE(base.steps[0] == draw(plan, 300, 200, 8, 1, 42, 3).steps[0]);
  EXPECT_FALSE(base.steps[0] == draw(plan, 300, 200, 7, 0, 42, 3).steps[0]);
}

TEST(Plan, DrawsAreTheSameFromManyThreadsInAnyOrder) {
  const Plan plan = compile("rrc:16,flip", pictures(64, 64));
  std::vector<Draw> alone(400), together(400);
  for (std::size_t id = 0; id < alone.size(); ++id) alone[id] = draw(plan, 300, 200, id);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t id = alone.size(); id-- > 0;) {
        if (id % 4 == t) together[id] = draw(plan, 300, 200, id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t id = 0; id < alone.size(); ++id) ASSERT_TRUE(same(alone[id], together[id])) << id;
}

TEST(Plan, AnOperationsNumbersDoNotDependOnOtherOperations) {
  const Plan crop = compile("rrc:16", pictures(64, 64)), both = compile("rrc:16,flip", pictures(64, 64)),
             flip = compile("flip", pictures(64, 64)), tries = compile("rrc:16:scale=0.9..1,flip", pictures(64, 64));
  for (std::uint64_t id = 0; id < 200; ++id) {
    ASSERT_EQ(draw(crop, 64, 64, id).steps[0], draw(both, 64, 64, id).steps[0]);
    ASSERT_EQ(draw(flip, 64, 64, id).flip, draw(both, 64, 64, id).flip);
    ASSERT_EQ(draw(flip, 64, 64, id).flip, draw(tries, 64, 64, id).flip);
  }
}

TEST(Plan, FlipsAsOftenAsItsProbability) {
  const Plan plan = compile("flip:0.2", pictures(8, 8));
  int flips = 0;
  for (std::uint64_t id = 0; id < 10000; ++id) flips += draw(plan, 8, 8, id).flip ? 1 : 0;
  EXPECT_NEAR(flips, 2000, 160);  // four standard deviations
}

TEST(Plan, DrawsTheWindowWithinItsRange) {
  const Plan plan = compile("window:level=-700..100:width=300..2000", pictures(8, 8, 1, 16));
  float least = 1e9F, most = -1e9F;
  for (std::uint64_t id = 0; id < 1000; ++id) {
    const Draw drawn = draw(plan, 8, 8, id);
    const float width = 1 / drawn.window_scale, level = drawn.window_low + width / 2;
    ASSERT_GE(width, 299.9F);
    ASSERT_LE(width, 2000.1F);
    least = std::min(least, level), most = std::max(most, level);
  }
  EXPECT_GE(least, -700.1F);
  EXPECT_LE(most, 100.1F);
  EXPECT_LT(least, -690);
  EXPECT_GT(most, 90);
}

TEST(Plan, GivesOneTensorPerGroupOfViews) {
  const Plan plan = compile("views(big=2[rrc:16,flip,normalize:imagenet],small=3[rrc:8])", pictures(40, 30));
  ASSERT_EQ(plan.outputs().size(), 2u);
  EXPECT_EQ(plan.view_count(), 5u);
  EXPECT_EQ(plan.outputs()[0].name, "big");
  EXPECT_EQ(plan.outputs()[0].views, 2u);
  EXPECT_EQ(plan.outputs()[0].view_bytes, 3u * 16 * 16 * 4);
  EXPECT_EQ(plan.outputs()[1].first_view, 2u);
  EXPECT_EQ(plan.outputs()[1].view_bytes, 3u * 8 * 8);
  const auto picture = make_bytes(1, 40 * 30 * 3);
  const auto view = make_view(plan, picture, 40, 30, 3, draw(plan, 40, 30, 0, 4), 0, 4);
  EXPECT_EQ(view.size(), 192u);
}

TEST(Plan, TakesTheFirstPicturesSizeWhereNothingFixesIt) {
  const Plan plan = compile("flip", pictures(40, 30));
  EXPECT_EQ(plan.outputs()[0].shape, (std::vector<std::uint64_t>{3, 30, 40}));
  Random random(1, 0, 0);
  Draw drawn;
  const Result result = plan.draw(0, 41, 30, random, drawn);
  EXPECT_EQ(result.code, Code::mismatch);
  EXPECT_NE(std::string(result.cause).find("add Resize"), std::string::npos);
}

TEST(Plan, AnImageThatCannotBeCroppedIsOneBadSample) {
  Random random(1, 0, 0);
  Draw drawn;
  EXPECT_EQ(compile("centercrop:32", pictures(40, 40)).draw(0, 0, 40, random, drawn).code, Code::corrupt);
  const Plan resized = compile("centercrop:32,resize:8x8", pictures(40, 40));
  EXPECT_EQ(resized.draw(0, 32, 32, random, drawn).code, Code::ok);
  EXPECT_EQ(resized.draw(0, 31, 40, random, drawn).code, Code::mismatch);
  const Plan normalized = compile("normalize:imagenet,centercrop:32", pictures(40, 40));
  EXPECT_EQ(normalized.draw(0, 32, 32, random, drawn).code, Code::ok);
  EXPECT_EQ(normalized.draw(0, 31, 40, random, drawn).code, Code::mismatch);
}

TEST(Plan, ACenterCropPadsAnImageThatIsSmaller) {
  const Plan plan = compile("centercrop:5x8", pictures(40, 40));
  const Draw drawn = draw(plan, 3, 10);
  EXPECT_TRUE(drawn.is_padded);
  EXPECT_EQ(drawn.crop, (Rect{0, 2, 3, 5}));    // 2.5 -> 2
  EXPECT_EQ(drawn.inside, (Rect{2, 0, 3, 5}));  // two columns before it, three behind it
  const Draw mirrored = draw(compile("flip:1,centercrop:5x8", pictures(40, 40)), 3, 10);
  EXPECT_EQ(mirrored.inside, (Rect{3, 0, 3, 5}));  // before the flip that comes last
  const Draw blank = draw(compile("centercrop:100,centercrop:1", pictures(40, 40)), 1, 1);
  EXPECT_EQ(blank.inside.height, 0u);  // the padding is not even: the crop misses the one pixel
}

TEST(Plan, PaddingIsZeroWhereCenterCropStands) {
  const Input slices = pictures(40, 40, 1, 16);
  const auto corner = [&](const char* ops) {
    const Plan plan = compile(ops, slices);
    const Draw drawn = draw(plan, 2, 2);
    std::vector<std::uint16_t> words(4, 1000);
    std::vector<float> slot(plan.outputs()[0].view_bytes / sizeof(float), -1);
    Scratch scratch;
    const Pixels source{reinterpret_cast<std::byte*>(words.data()), 4, 2, 2, 1, DType::u16};
    EXPECT_TRUE(plan.apply(0, drawn, source, drawn.crop, 0, reinterpret_cast<std::byte*>(slot.data()), scratch).ok());
    return slot.front();
  };
  // The window is 0 at -500 and 1 at 1500, so a stored 0 becomes a quarter.
  EXPECT_EQ(corner("window:500:2000:offset=0,centercrop:6"), 0);
  EXPECT_EQ(corner("centercrop:6,window:500:2000:offset=0"), 0.25F);
  EXPECT_EQ(corner("resize:2x2,window:500:2000:offset=0,centercrop:6"), 0);
  EXPECT_EQ(corner("resize:2x2,centercrop:6,window:500:2000:offset=0"), 0.25F);
}

TEST(Plan, APictureOfAnotherKindIsOneBadSample) {
  const Plan plan = compile("", pictures(4, 4));
  const Draw drawn = draw(plan, 4, 4);
  std::vector<std::byte> bytes(128), slot(48);
  Scratch scratch;
  const Rect all{0, 0, 4, 4};
  EXPECT_EQ(plan.apply(0, drawn, {bytes.data(), 16, 4, 4, 4, DType::u8}, all, 0, slot.data(), scratch).code,
            Code::mismatch);
  EXPECT_EQ(plan.apply(0, drawn, {bytes.data(), 24, 4, 4, 3, DType::u16}, all, 0, slot.data(), scratch).code,
            Code::mismatch);
}

TEST(Plan, AllocatesNothingOnceItsScratchHasGrown) {
  const Plan plan = compile("rrc:32,flip,normalize:imagenet", pictures(200, 150));
  auto picture = make_bytes(1, 200 * 150 * 3);
  const Pixels pixels{reinterpret_cast<std::byte*>(picture.data()), 600, 200, 150, 3, DType::u8};
  std::vector<std::byte> slot(plan.outputs()[0].view_bytes);
  Scratch scratch;
  std::size_t capacity = 0;
  for (std::uint64_t id = 0; id < 200; ++id) {
    const Draw drawn = draw(plan, 200, 150, id % 100);
    ASSERT_TRUE(plan.apply(0, drawn, pixels, {0, 0, 200, 150}, 0, slot.data(), scratch).ok());
    scratch.reset();
    if (id == 100) capacity = scratch.capacity_bytes();
  }
  EXPECT_EQ(scratch.capacity_bytes(), capacity);
}

TEST(Plan, RefusesImpossiblePictureListsInOneSentence) {
  const Input rgb = pictures(64, 64), gray = pictures(64, 64, 1), slices = pictures(64, 64, 1, 16);
  EXPECT_EQ(refusal("pad:8000", rgb), "cannot use transform `PadOrTrim`: it is for sound, and these are pictures");
  EXPECT_EQ(refusal("mono", rgb), "cannot use transform `Mono`: it is for sound, and these are pictures");
  EXPECT_EQ(refusal("normalize:imagenet", gray),
            "cannot use transform `Normalize`: it has 3 means, but the pictures have 1 channel");
  EXPECT_EQ(refusal("window", rgb), "cannot use transform `Window`: it needs 16-bit pictures, and these have 8 bits");
  EXPECT_EQ(refusal("resize:32x32,centercrop:33,resize:8", rgb),
            "cannot use transform `Resize`: it cannot resize what CenterCrop has padded");
  EXPECT_EQ(refusal("resize:32x32,normalize:imagenet,centercrop:33", rgb),
            "cannot use transform `CenterCrop`: it pads the images with 0, and Normalize has changed what 0 means");
  EXPECT_EQ(refusal("normalize:imagenet,normalize:imagenet", rgb),
            "cannot use transform `Normalize`: it is given twice");
  EXPECT_EQ(refusal("normalize:imagenet,rrc:32", rgb),
            "cannot use transform `RandomResizedCrop`: it cannot come after Normalize");
  EXPECT_EQ(refusal("tofloat,resize:32", rgb), "cannot use transform `Resize`: it cannot come after ToFloat");
  EXPECT_EQ(refusal("normalize:0.5/0.5,window", slices),
            "cannot use transform `Window`: it cannot come after Normalize");
  EXPECT_EQ(refusal("normalize:0.5/0.5,tofloat", rgb),
            "cannot use transform `ToFloat`: Normalize before it has made floats already");
  EXPECT_EQ(refusal("flip,flip", rgb), "cannot use transform `HorizontalFlip`: it is given twice");
  EXPECT_EQ(refusal("flip,views(a=1[rrc:8])", rgb), "cannot use transform `Views`: it stands alone");
  EXPECT_EQ(refusal("resize:9,resize:8,resize:7,resize:6", rgb),
            "cannot use transform `Resize`: pictures are resized more than 3 times");
  EXPECT_EQ(refusal("normalize:imagenet", rgb, DType::u8), "cannot give pictures as uint8: Normalize makes them float");
  EXPECT_EQ(refusal("tofloat", rgb, DType::u8), "cannot give pictures as uint8: ToFloat makes them float");
  EXPECT_EQ(refusal("rrc:8", rgb, DType::i32), "cannot give pictures as int32");
  EXPECT_EQ(refusal("views(a=1[window],b=1[flip])", slices),
            "cannot use transform `Views`: group `b` takes 8 bits while another takes 16");
  EXPECT_EQ(refusal("flip", pictures(0, 0)), "cannot compile the transform: the size of the pictures is not known");
}

TEST(Plan, AcceptsWhatOnlyLooksOdd) {
  EXPECT_NO_THROW(compile("normalize:0.5/0.5", pictures(9, 9)));  // one figure for three channels
  EXPECT_NO_THROW(compile("normalize:imagenet,flip,centercrop:8", pictures(9, 9)));
  EXPECT_NO_THROW(compile("window,tofloat,normalize:0.5/0.5", pictures(9, 9, 1, 16)));
  EXPECT_NO_THROW(compile("resize:32,centercrop:24x40", pictures(60, 40)));  // fits wide pictures
  EXPECT_NO_THROW(compile("rrc:8", pictures(0, 0)));
  EXPECT_FALSE(compile("rrc:8", pictures(9, 9, 3, 16)).deep());
  EXPECT_TRUE(compile("rrc:8,tofloat", pictures(9, 9, 3, 16)).deep());
}

TEST(Plan, DescribesItselfInOneLine) {
  EXPECT_EQ(compile("rrc:224,flip,normalize:imagenet", pictures(9, 9)).describe(),
            "RandomResizedCrop 224x224 bilinear -> flip p=0.5 -> normalize -> float32 NCHW [3, 224, 224]");
  EXPECT_EQ(compile("resize:32,centercrop:24", pictures(9, 9), {}, Layout::nhwc).describe(),
            "Resize shorter side 32 bilinear -> CenterCrop 24x24 -> uint8 NHWC [24, 24, 3]");
  EXPECT_EQ(compile("views(a=2[rrc:8],b=1[rrc:4])", pictures(9, 9)).describe(),
            "a: 2 x (RandomResizedCrop 8x8 bilinear -> uint8 NCHW [3, 8, 8]); b: 1 x (RandomResizedCrop 4x4 bilinear "
            "-> uint8 NCHW [3, 4, 4])");
  EXPECT_EQ(compile("mono,resample:8000", sounds(2, 16000)).describe(),
            "mono -> resample to 8000 Hz -> float32 [frames]");
  EXPECT_EQ(compile("pad:80", sounds(2, 16000), DType::f16).describe(), "pad or trim to 80 frames -> float16 [2, 80]");
  EXPECT_EQ(compile("", arrays(DType::i16, {3, 4})).describe(), "int16 [3, 4]");
}

// ---- sound

std::vector<float> make_audio(const Plan& plan, const std::vector<float>& planar, std::uint32_t channels,
                              std::uint32_t rate_hz, std::uint64_t slot_frames, std::uint64_t& written) {
  const std::uint64_t frames = planar.size() / channels;
  std::vector<float> slot(slot_frames * plan.output_channels(), -9);
  Scratch scratch;
  const Result result =
      plan.apply_audio(planar.data(), frames, frames, rate_hz, reinterpret_cast<std::byte*>(slot.data()), slot_frames,
                       written, scratch, channels);
  EXPECT_TRUE(result.ok()) << result.cause;
  return slot;
}

TEST(Plan, ResamplesAsTorchaudioDoes) {
  for (const GoldenSound& g : kSounds) {
    const Plan plan = compile("resample:" + std::to_string(g.to_hz), sounds(1, g.from_hz));
    ASSERT_EQ(plan.output_frames(g.frames, g.from_hz), g.frames_out);
    std::uint64_t written = 0;
    const auto out = make_audio(plan, make_sound(g.seed, g.frames), 1, g.from_hz, g.frames_out, written);
    EXPECT_EQ(written, g.frames_out);
    for (const auto& [place, value] : g.values) EXPECT_NEAR(out[place], value, 1e-6) << g.from_hz << " at " << place;
    // A rate that is not the first sample's gives the same numbers.
    const Plan other = compile("resample:" + std::to_string(g.to_hz), sounds(1, 12345));
    EXPECT_EQ(make_audio(other, make_sound(g.seed, g.frames), 1, g.from_hz, g.frames_out, written), out);
  }
}

TEST(Plan, MixesPadsAndTrims) {
  const Plan plan = compile("mono,pad:5", sounds(2, 8000));
  EXPECT_EQ(plan.output_channels(), 1u);
  EXPECT_EQ(plan.outputs()[0].shape, (std::vector<std::uint64_t>{5}));
  std::uint64_t written = 0;
  EXPECT_EQ(make_audio(plan, {1, 2, 3, 3, 4, 5}, 2, 8000, 5, written), (std::vector<float>{2, 3, 4, 0, 0}));
  EXPECT_EQ(written, 3u);
  EXPECT_EQ(make_audio(plan, {1, 2, 3, 4, 5, 6, 7}, 1, 8000, 5, written), (std::vector<float>{1, 2, 3, 4, 5}));
  EXPECT_EQ(written, 5u);
  EXPECT_EQ(make_audio(plan, {3, 0, 6, 9, 0, 0}, 3, 8000, 5, written), (std::vector<float>{3, 3, 0, 0, 0}));
}

TEST(Plan, TrimmingComputesTheSameStartAsTheWholeSound) {
  const Plan whole = compile("resample:8000", sounds(1, 44100)),
             trimmed = compile("resample:8000,pad:100", sounds(1, 44100));
  const auto sound = make_sound(4, 5000);
  std::uint64_t written = 0;
  auto all = make_audio(whole, sound, 1, 44100, whole.output_frames(5000, 44100), written);
  EXPECT_EQ(written, 908u);
  all.resize(100);
  EXPECT_EQ(make_audio(trimmed, sound, 1, 44100, 100, written), all);
  EXPECT_EQ(written, 100u);
}

TEST(Plan, KeepsChannelsInRowsOfTheSlotAndConverts) {
  const Plan plan = compile("", sounds(2, 8000), DType::bf16);
  EXPECT_FALSE(plan.audio_is_direct());
  EXPECT_TRUE(plan.outputs()[0].varies);
  const std::vector<float> planar = {1, 2, -3, 0.5F};
  std::vector<std::uint16_t> slot(6, 0xFFFF);
  Scratch scratch;
  std::uint64_t written = 0;
  ASSERT_TRUE(
      plan.apply_audio(planar.data(), 2, 2, 8000, reinterpret_cast<std::byte*>(slot.data()), 3, written, scratch).ok());
  EXPECT_EQ(slot, (std::vector<std::uint16_t>{0x3F80, 0x4000, 0, 0xC040, 0x3F00, 0}));
  EXPECT_EQ(
      plan.apply_audio(planar.data(), 2, 2, 8000, reinterpret_cast<std::byte*>(slot.data()), 1, written, scratch).code,
      Code::too_large);
}

TEST(Plan, NamesTheRemedyForMixedSounds) {
  const Plan plain = compile("pad:5", sounds(1, 8000));
  EXPECT_TRUE(plain.check_audio(1, 8000).ok());
  EXPECT_NE(std::string(plain.check_audio(2, 8000).cause).find("add Mono()"), std::string::npos);
  EXPECT_NE(std::string(plain.check_audio(1, 16000).cause).find("add Resample(hz)"), std::string::npos);
  EXPECT_EQ(plain.check_audio(1, 16000).code, Code::mismatch);
  EXPECT_EQ(plain.check_audio(0, 8000).code, Code::corrupt);
  const Plan both = compile("mono,resample:8000", sounds(1, 8000));
  EXPECT_TRUE(both.check_audio(6, 48000).ok());
  EXPECT_EQ(both.check_audio(1, 4294967291u).code, Code::unsupported);
}

TEST(Plan, SoundIsDirectWhenOnlyPaddedOrTrimmed) {
  EXPECT_TRUE(compile("", sounds(1, 8000)).audio_is_direct());
  EXPECT_TRUE(compile("pad:100", sounds(2, 8000)).audio_is_direct());
  EXPECT_FALSE(compile("mono", sounds(1, 8000)).audio_is_direct());
  EXPECT_FALSE(compile("resample:8000", sounds(1, 8000)).audio_is_direct());
  EXPECT_FALSE(compile("pad:100", sounds(1, 8000), DType::f16).audio_is_direct());
}

TEST(Plan, SoundAsInt16IsWhatTheFileHadAndClipped) {
  const Plan plan = compile("pad:11", sounds(1, 8000), DType::i16);
  EXPECT_TRUE(plan.audio_is_int16());
  EXPECT_FALSE(compile("mono,pad:11", sounds(2, 8000), DType::i16).audio_is_int16());
  const std::vector<float> from = {0,    1 / 32768.0F, -1 / 32768.0F, 32767 / 32768.0F, -1, 1.0F, -1.5F,
                                   1e9F, 0.5F,         -0.25F};
  std::vector<std::int16_t> slot(11, 99);
  Scratch scratch;
  std::uint64_t written = 0;
  ASSERT_TRUE(
      plan.apply_audio(from.data(), 10, 10, 8000, reinterpret_cast<std::byte*>(slot.data()), 11, written, scratch)
          .ok());
  EXPECT_EQ(slot, (std::vector<std::int16_t>{0, 1, -1, 32767, -32768, 32767, -32768, 32767, 16384, -8192, 0}));
}

TEST(Plan, Int16ArraysBecomeFloatsAsSoundDoes) {
  const Plan plan = compile("tofloat", arrays(DType::i16, {3}));
  const std::int16_t from[] = {-32768, 0, 16384};
  float slot[3];
  ASSERT_TRUE(plan.apply_array(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(slot)).ok());
  EXPECT_EQ(slot[0], -1.0F);
  EXPECT_EQ(slot[1], 0.0F);
  EXPECT_EQ(slot[2], 0.5F);
}

TEST(Plan, OneListServesSoundsAndRowsOfTheirPack) {
  const std::int16_t from[] = {-32768, 0, 16384, 32767};
  const char* const list = "mono,pad:4,tofloat";
  float packed[4], decoded[4];
  const Plan of_pack = compile(list, arrays(DType::i16, {4}));
  ASSERT_TRUE(of_pack.apply_array(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(packed)).ok());
  const Plan of_sound = compile(list, sounds(1, 8000));
  float source[4];
  for (int i = 0; i < 4; ++i) source[i] = static_cast<float>(from[i]) / 32768.0F;  // as the WAV decoder does
  Scratch scratch;
  std::uint64_t written = 0;
  ASSERT_TRUE(
      of_sound.apply_audio(source, 4, 4, 8000, reinterpret_cast<std::byte*>(decoded), 4, written, scratch).ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(decoded[i], packed[i]);
  EXPECT_NE(refusal("pad:5", arrays(DType::i16, {4})), "") << "another length";
  EXPECT_NE(refusal("mono", arrays(DType::i16, {2, 4})), "") << "two channels";
  EXPECT_TRUE(compile("tofloat", sounds(1, 8000)).audio_is_direct());
}

TEST(Plan, RefusesImpossibleSoundLists) {
  const Input sound = sounds(1, 8000);
  EXPECT_EQ(refusal("rrc:224", sound),
            "cannot use transform `RandomResizedCrop`: it is for pictures, and these are sounds");
  EXPECT_EQ(
      refusal("pad:5,resample:16000", sound),
      "cannot use transform `Resample`: it cannot come after PadOrTrim, which counts frames at the rate that leaves");
  EXPECT_EQ(refusal("pad:5,pad:6", sound), "cannot use transform `PadOrTrim`: it is given twice");
  EXPECT_EQ(refusal("tofloat,tofloat", sound), "cannot use transform `ToFloat`: it is given twice");
  EXPECT_EQ(refusal("tofloat", sound, DType::i16), "cannot give sound as int16: ToFloat makes it float");
  EXPECT_EQ(refusal("", sound, DType::u8), "cannot give sound as uint8");
  EXPECT_EQ(refusal("views(a=1[mono])", sound),
            "cannot use transform `Views`: it is for pictures, and these are sounds");
  EXPECT_EQ(refusal("resample:9999991", sounds(1, 9999973)),
            "cannot use transform `Resample`: 9999973 Hz and 9999991 Hz have too little in common");
}

// ---- arrays

template <typename T>
std::vector<std::byte> make_array(const Plan& plan, const std::vector<T>& values) {
  std::vector<std::byte> slot(plan.outputs()[0].view_bytes);
  EXPECT_TRUE(plan.apply_array(reinterpret_cast<const std::byte*>(values.data()), slot.data()).ok());
  return slot;
}

TEST(Plan, CopiesArraysAsTheyAre) {
  const Plan plan = compile("", arrays(DType::i32, {2, 2}));
  EXPECT_TRUE(plan.array_is_copy());
  const std::vector<std::int32_t> values = {1, -2, 3, 1 << 30};
  EXPECT_EQ(as<std::int32_t>(make_array(plan, values)), values);
}

TEST(Plan, ConvertsArraysToFloat) {
  EXPECT_EQ(as<float>(make_array(compile("tofloat", arrays(DType::u8, {3})), std::vector<std::uint8_t>{0, 51, 255})),
            (std::vector<float>{0, 51.0F / 255.0F, 1}));
  EXPECT_EQ(as<float>(make_array(compile("tofloat", arrays(DType::u16, {2})), std::vector<std::uint16_t>{0, 65535})),
            (std::vector<float>{0, 1}));
  EXPECT_EQ(as<float>(make_array(compile("", arrays(DType::i16, {2}), DType::f32), std::vector<std::int16_t>{-7, 300})),
            (std::vector<float>{-7, 300}));
  const std::vector<float> many = make_floats(1, 5000);
  const auto halves = as<std::uint16_t>(make_array(compile("", arrays(DType::f32, {5000}), DType::f16), many));
  for (std::size_t i = 0; i < many.size(); ++i) ASSERT_EQ(halves[i], to_float16(many[i]));
  const auto back = as<float>(make_array(compile("", arrays(DType::f16, {5000}), DType::f32), halves));
  for (std::size_t i = 0; i < many.size(); ++i) ASSERT_NEAR(back[i], many[i], 0x1p-11);
}

TEST(Plan, RefusesPictureOperationsOnArrays) {
  EXPECT_EQ(refusal("rrc:8", arrays(DType::f32, {64, 64})),
            "cannot use transform `RandomResizedCrop`: these samples are float32 arrays [64, 64], which take ToFloat "
            "or dtype= alone");
  EXPECT_EQ(refusal("tofloat", arrays(DType::i32, {4})),
            "cannot use transform `ToFloat`: it takes uint8, uint16, int16 and float arrays, and these are int32");
  EXPECT_EQ(refusal("", arrays(DType::f32, {4}), DType::u8), "cannot give float32 arrays as uint8");
  EXPECT_EQ(refusal("tofloat", arrays(DType::u8, {4}), DType::u8),
            "cannot give arrays as uint8: ToFloat makes them float");
}

}  // namespace
}  // namespace stoker::transform
