#include "stoker/transform/image_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/transform/golden_test.h"
#include "stoker/transform/half.h"
#include "stoker/transform/plans_test.h"
#include "stoker/transform/resize.h"
#include "stoker/transform/store.h"

namespace stoker::transform {
namespace {

Draw draw(const ImagePlan& plan, std::uint32_t width, std::uint32_t height, std::uint64_t id = 0,
          std::uint32_t view = 0, std::uint64_t seed = 42, std::uint64_t epoch = 0) {
  Random random(seed, epoch, id, view);
  Draw result;
  const Result ok = plan.draw(view, width, height, random, result);
  EXPECT_TRUE(ok.ok()) << ok.cause;
  return result;
}

// The view as the slot holds it. Only the pixels that the draw asks for are handed over.
template <typename T>
std::vector<std::byte> make_view(const ImagePlan& plan, const std::vector<T>& image, std::uint32_t width,
                                 std::uint32_t height, std::uint32_t channels, const Draw& drawn, double offset = 0,
                                 std::uint32_t view = 0) {
  EXPECT_LE(drawn.crop.x + drawn.crop.width, width);
  EXPECT_LE(drawn.crop.y + drawn.crop.height, height);
  const Rect& region = drawn.crop;
  const std::size_t row = std::size_t{region.width} * channels;
  std::vector<T> held(row * region.height);
  for (std::uint32_t y = 0; y < region.height; ++y) {
    std::memcpy(&held[y * row], &image[(std::size_t{region.y + y} * width + region.x) * channels], row * sizeof(T));
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
  const Result result = plan.apply(view, drawn, pixels, region, {&offset, plan.columns().size()}, slot.data(), scratch);
  EXPECT_TRUE(result.ok()) << result.cause;
  return slot;
}

bool same(const Draw& a, const Draw& b) {
  return a.crop == b.crop && std::equal(std::begin(a.steps), std::end(a.steps), std::begin(b.steps)) &&
         std::memcmp(a.sizes, b.sizes, sizeof a.sizes) == 0 && a.flip == b.flip && a.window_low == b.window_low &&
         a.window_scale == b.window_scale;
}

// ---- images

TEST(ImagePlan, GivesThePixelsOfPillowAndTorchvision) {
  for (const GoldenPlan& g : kPlans) {
    const ImagePlan plan = compile(g.text, images(g.width, g.height, static_cast<std::uint8_t>(g.channels)), g.dtype);
    const auto image = make_bytes(g.seed, std::size_t{g.width} * g.height * g.channels);
    const auto view = make_view(plan, image, g.width, g.height, g.channels, draw(plan, g.width, g.height));
    EXPECT_EQ(crc32(view), g.crc) << g.text << " as " << name(g.dtype);
  }
}

TEST(ImagePlan, WindowsSixteenBitsWhereTheListSays) {
  for (const GoldenDeep& g : kDeepPlans) {
    const ImagePlan plan = compile(g.text, images(50, 44, 1, 16));
    EXPECT_TRUE(plan.deep());
    const auto view = as<float>(make_view(plan, make_words(11, 50 * 44), 50, 44, 1, draw(plan, 50, 44)));
    // Pillow's sums are double, ours float32.
    for (const auto& [place, value] : g.values) EXPECT_NEAR(view[place], value, 1e-6) << g.text << " at " << place;
  }
}

TEST(ImagePlan, TakesTheWindowsOffsetFromTheSampleUnlessItHasItsOwn) {
  const auto image = make_words(3, 16 * 16);
  const auto values = [&](const char* text, double offset) {
    const ImagePlan plan = compile(text, images(16, 16, 1, 16));
    return as<float>(make_view(plan, image, 16, 16, 1, draw(plan, 16, 16), offset));
  };
  const auto own = values("window:level=0:width=4000:offset=30000", 7);
  EXPECT_EQ(own, values("window:level=0:width=4000", 30000));
  EXPECT_NE(own, values("window:level=0:width=4000", 0));
  EXPECT_EQ(*std::min_element(own.begin(), own.end()), 0.0F);
  EXPECT_EQ(*std::max_element(own.begin(), own.end()), 1.0F);
}

TEST(ImagePlan, SixteenBitViewsAreTheSameWithWideAndPortableLoops) {
  const std::string window = "window:level=-700..100:width=300..2000:offset=32768";
  for (const std::string& text :
       {window + ",rrc:24", window + ",flip:1,resize:20x30", window + ",resize:70x40:filter=box",
        "resize:31x20:filter=bicubic," + window, "rrc:40,centercrop:16,resize:12x30," + window + ",flip:1",
        window + ",centercrop:30,normalize:0.4/0.3", std::string("resize:40x30,tofloat,normalize:0.4/0.3"),
        window + ",resize:33:filter=nearest,centercrop:33"}) {
    for (const std::uint8_t channels : {1, 3}) {
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
          const ImagePlan plan = compile(text, images(61, 50, channels, 16), dtype, layout);
          const auto image = make_words(8, std::size_t{61} * 50 * channels);
          const Draw drawn = draw(plan, 61, 50);
          const auto wide = make_view(plan, image, 61, 50, channels, drawn);
          const bool before = use_wide_kernels(false);
          EXPECT_EQ(make_view(plan, image, 61, 50, channels, drawn), wide) << text << " as " << name(dtype);
          use_wide_kernels(before);
        }
      }
    }
  }
}

TEST(ImagePlan, MirrorsSixteenBitRowsOfEveryElementType) {
  const auto image = make_words(4, 21 * 5);
  const auto rows = [&](const char* text, DType dtype) {
    const ImagePlan plan = compile(text, images(21, 5, 1, 16), dtype);
    return make_view(plan, image, 21, 5, 1, draw(plan, 21, 5));
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
    ASSERT_EQ(halves[i], to_float16(static_cast<float>(image[i]) / 65535.0F));
  }
}

TEST(ImagePlan, KeepsSixteenBits) {
  for (const std::uint8_t channels : {1, 3}) {
    const auto image = make_words(6, std::size_t{21} * 10 * channels);
    ImageInput input = images(21, 10, channels, 16);
    EXPECT_EQ(compile("", input).outputs()[0].dtype, DType::u8) << "unless they are asked for";
    EXPECT_EQ(compile("", input, DType::u16).outputs()[0].dtype, DType::u16);
    input.keeps_bits = true;
    EXPECT_EQ(compile("", input, DType::u8).deep(), false);
    const ImagePlan plan = compile("", input, {}, Layout::nhwc);
    EXPECT_TRUE(plan.deep());
    EXPECT_EQ(plan.outputs()[0].dtype, DType::u16);
    EXPECT_EQ(as<std::uint16_t>(make_view(plan, image, 21, 10, channels, draw(plan, 21, 10))), image);
    const ImagePlan floats = compile("", input, DType::f32, Layout::nhwc);
    const auto values = as<float>(make_view(floats, image, 21, 10, channels, draw(floats, 21, 10)));
    for (std::size_t i = 0; i < image.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(image[i]));
    const ImagePlan unit = compile("normalize:0/1", input, {}, Layout::nhwc);
    const auto shares = as<float>(make_view(unit, image, 21, 10, channels, draw(unit, 21, 10)));
    for (std::size_t i = 0; i < image.size(); ++i) ASSERT_EQ(shares[i], static_cast<float>(image[i]) / 65535.0F);
  }
  ImageInput input = images(21, 10, 1, 16);
  input.keeps_bits = true;
  EXPECT_EQ(refusal("", input, DType::f16), "cannot give 16-bit images as float16: values above 65504 do not fit");
  EXPECT_EQ(refusal("tofloat", input, DType::u16), "cannot give images as uint16: ToFloat makes them float");
  EXPECT_EQ(refusal("", images(9, 9), DType::u16), "cannot give images as uint16: they have 8 bits per channel");
}

TEST(ImagePlan, RoundsAndClampsResizedSixteenBitImages) {
  ImageInput input = images(2, 1, 1, 16);
  input.keeps_bits = true;
  const ImagePlan plan = compile("resize:1x40:filter=bicubic", input);
  const auto row = as<std::uint16_t>(make_view(plan, std::vector<std::uint16_t>{0, 65535}, 2, 1, 1, draw(plan, 2, 1)));
  EXPECT_EQ(row.front(), 0) << "bicubic goes below";
  EXPECT_EQ(row.back(), 65535) << "and above";
  EXPECT_TRUE(std::is_sorted(row.begin() + 10, row.end() - 10));
}

TEST(ImagePlan, LaysOutImagesAsAsked) {
  const auto image = make_bytes(5, 9 * 7 * 3);
  const ImagePlan planar = compile("flip:1", images(9, 7)), packed = compile("flip:1", images(9, 7), {}, Layout::nhwc),
                  last = compile("flip:1", images(9, 7), {}, Layout::channels_last);
  EXPECT_EQ(planar.outputs()[0].shape, (std::vector<std::uint64_t>{3, 7, 9}));
  EXPECT_EQ(packed.outputs()[0].shape, (std::vector<std::uint64_t>{7, 9, 3}));
  EXPECT_EQ(last.outputs()[0].shape, (std::vector<std::uint64_t>{3, 7, 9}));
  const auto a = as<std::uint8_t>(make_view(planar, image, 9, 7, 3, draw(planar, 9, 7)));
  const auto b = as<std::uint8_t>(make_view(packed, image, 9, 7, 3, draw(packed, 9, 7)));
  EXPECT_EQ(b, as<std::uint8_t>(make_view(last, image, 9, 7, 3, draw(last, 9, 7))));
  for (std::size_t y = 0; y < 7; ++y) {
    for (std::size_t x = 0; x < 9; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::uint8_t pixel = image[(y * 9 + (8 - x)) * 3 + c];
        ASSERT_EQ(a[(c * 7 + y) * 9 + x], pixel);
        ASSERT_EQ(b[(y * 9 + x) * 3 + c], pixel);
      }
    }
  }
}

TEST(ImagePlan, NormalizesEveryByteAsTorchvisionDoes) {
  std::vector<std::uint8_t> ramp(256);
  for (std::size_t i = 0; i < 256; ++i) ramp[i] = static_cast<std::uint8_t>(i);
  const ImagePlan plan = compile("normalize:0.485/0.229", images(256, 1, 1));
  const auto view = as<float>(make_view(plan, ramp, 256, 1, 1, draw(plan, 256, 1)));
  for (std::size_t i = 0; i < 256; ++i) {
    const float unit = static_cast<float>(i) / 255.0F;
    const float centred = unit - 0.485F;
    EXPECT_EQ(view[i], centred / 0.229F) << i;
  }
}

TEST(ImagePlan, TheRandomCropIsInsideAndKeepsItsAreaAndAspect) {
  const ImagePlan plan = compile("rrc:32:scale=0.25..0.5:ratio=0.5..2", images(100, 80));
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

TEST(ImagePlan, TheRandomCropReachesAllCornersAndBothAspects) {
  const ImagePlan plan = compile("rrc:8:scale=0.1..0.3", images(100, 100));
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

TEST(ImagePlan, AnImpossibleRandomCropFallsBackToTheMiddleOfTheNearestAspect) {
  const ImagePlan plan = compile("rrc:8:scale=1", images(100, 100));
  EXPECT_EQ(draw(plan, 1000, 10).steps[0], (Rect{493, 0, 13, 10}));
  EXPECT_EQ(draw(plan, 10, 1000).steps[0], (Rect{0, 493, 10, 13}));
}

TEST(ImagePlan, CenterCropRoundsHalvesToEven) {
  const ImagePlan plan = compile("centercrop:4", images(10, 10));
  EXPECT_EQ(draw(plan, 9, 11).steps[0], (Rect{2, 4, 4, 4}));  // 2.5 -> 2, 3.5 -> 4
}

TEST(ImagePlan, AsksOnlyForThePixelsThatTheCropKeeps) {
  const ImagePlan plan = compile("resize:100,centercrop:50", images(400, 200));
  const Draw drawn = draw(plan, 400, 200);
  EXPECT_EQ(drawn.crop, (Rect{149, 49, 102, 102}));
}

TEST(ImagePlan, DrawsDependOnSeedEpochSampleAndViewAlone) {
  const ImagePlan plan = compile("views(a=2[rrc:16,flip],b=2[rrc:8,flip])", images(64, 64));
  const Draw base = draw(plan, 300, 200, 7, 1, 42, 3);
  EXPECT_TRUE(same(base, draw(plan, 300, 200, 7, 1, 42, 3)));
  EXPECT_FALSE(base.steps[0] == draw(plan, 300, 200, 7, 1, 43, 3).steps[0]);
  EXPECT_FALSE(base.steps[0] == draw(plan, 300, 200, 7, 1, 42, 4).steps[0]);
  EXPECT_FALSE(base.steps[0] == draw(plan, 300, 200, 8, 1, 42, 3).steps[0]);
  EXPECT_FALSE(base.steps[0] == draw(plan, 300, 200, 7, 0, 42, 3).steps[0]);
}

TEST(ImagePlan, DrawsAreTheSameFromManyThreadsInAnyOrder) {
  const ImagePlan plan = compile("rrc:16,flip", images(64, 64));
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

TEST(ImagePlan, AnOperationsNumbersDoNotDependOnOtherOperations) {
  const ImagePlan crop = compile("rrc:16", images(64, 64)), both = compile("rrc:16,flip", images(64, 64)),
                  flip = compile("flip", images(64, 64)), tries = compile("rrc:16:scale=0.9..1,flip", images(64, 64));
  for (std::uint64_t id = 0; id < 200; ++id) {
    ASSERT_EQ(draw(crop, 64, 64, id).steps[0], draw(both, 64, 64, id).steps[0]);
    ASSERT_EQ(draw(flip, 64, 64, id).flip, draw(both, 64, 64, id).flip);
    ASSERT_EQ(draw(flip, 64, 64, id).flip, draw(tries, 64, 64, id).flip);
  }
}

TEST(ImagePlan, FlipsAsOftenAsItsProbability) {
  const ImagePlan plan = compile("flip:0.2", images(8, 8));
  int flips = 0;
  for (std::uint64_t id = 0; id < 10000; ++id) flips += draw(plan, 8, 8, id).flip ? 1 : 0;
  EXPECT_NEAR(flips, 2000, 160);  // four standard deviations
}

TEST(ImagePlan, DrawsTheWindowWithinItsRange) {
  const ImagePlan plan = compile("window:level=-700..100:width=300..2000", images(8, 8, 1, 16));
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

TEST(ImagePlan, GivesOneTensorPerGroupOfViews) {
  const ImagePlan plan = compile("views(big=2[rrc:16,flip,normalize:imagenet],small=3[rrc:8])", images(40, 30));
  ASSERT_EQ(plan.outputs().size(), 2u);
  EXPECT_EQ(plan.view_count(), 5u);
  EXPECT_EQ(plan.outputs()[0].name, "big");
  EXPECT_EQ(plan.outputs()[0].views, 2u);
  EXPECT_EQ(plan.outputs()[0].view_bytes, 3u * 16 * 16 * 4);
  EXPECT_EQ(plan.outputs()[1].first_view, 2u);
  EXPECT_EQ(plan.outputs()[1].view_bytes, 3u * 8 * 8);
  const auto image = make_bytes(1, 40 * 30 * 3);
  const auto view = make_view(plan, image, 40, 30, 3, draw(plan, 40, 30, 0, 4), 0, 4);
  EXPECT_EQ(view.size(), 192u);
}

TEST(ImagePlan, TakesTheFirstImagesSizeWhereNothingFixesIt) {
  const ImagePlan plan = compile("flip", images(40, 30));
  EXPECT_EQ(plan.outputs()[0].shape, (std::vector<std::uint64_t>{3, 30, 40}));
  Random random(1, 0, 0);
  Draw drawn;
  const Result result = plan.draw(0, 41, 30, random, drawn);
  EXPECT_EQ(result.code, Code::mismatch);
  EXPECT_NE(std::string(result.cause).find("add Resize"), std::string::npos);
}

TEST(ImagePlan, AnImageThatCannotBeCroppedIsOneBadSample) {
  Random random(1, 0, 0);
  Draw drawn;
  EXPECT_EQ(compile("centercrop:32", images(40, 40)).draw(0, 0, 40, random, drawn).code, Code::corrupt);
  const ImagePlan resized = compile("centercrop:32,resize:8x8", images(40, 40));
  EXPECT_EQ(resized.draw(0, 32, 32, random, drawn).code, Code::ok);
  EXPECT_EQ(resized.draw(0, 31, 40, random, drawn).code, Code::mismatch);
  const ImagePlan normalized = compile("normalize:imagenet,centercrop:32", images(40, 40));
  EXPECT_EQ(normalized.draw(0, 32, 32, random, drawn).code, Code::ok);
  EXPECT_EQ(normalized.draw(0, 31, 40, random, drawn).code, Code::mismatch);
}

TEST(ImagePlan, ACenterCropPadsAnImageThatIsSmaller) {
  const ImagePlan plan = compile("centercrop:5x8", images(40, 40));
  const Draw drawn = draw(plan, 3, 10);
  EXPECT_TRUE(drawn.is_padded);
  EXPECT_EQ(drawn.crop, (Rect{0, 2, 3, 5}));    // 2.5 -> 2
  EXPECT_EQ(drawn.inside, (Rect{2, 0, 3, 5}));  // two columns before it, three behind it
  const Draw mirrored = draw(compile("flip:1,centercrop:5x8", images(40, 40)), 3, 10);
  EXPECT_EQ(mirrored.inside, (Rect{3, 0, 3, 5}));  // before the flip that comes last
  const Draw blank = draw(compile("centercrop:100,centercrop:1", images(40, 40)), 1, 1);
  EXPECT_EQ(blank.inside.height, 0u);  // the padding is not even: the crop misses the one pixel
}

TEST(ImagePlan, PaddingIsZeroWhereCenterCropStands) {
  const ImageInput slices = images(40, 40, 1, 16);
  const auto corner = [&](const char* ops) {
    const ImagePlan plan = compile(ops, slices);
    const Draw drawn = draw(plan, 2, 2);
    std::vector<std::uint16_t> words(4, 1000);
    std::vector<float> slot(plan.outputs()[0].view_bytes / sizeof(float), -1);
    Scratch scratch;
    const Pixels source{reinterpret_cast<std::byte*>(words.data()), 4, 2, 2, 1, DType::u16};
    EXPECT_TRUE(plan.apply(0, drawn, source, drawn.crop, {}, reinterpret_cast<std::byte*>(slot.data()), scratch).ok());
    return slot.front();
  };
  // The window is 0 at -500 and 1 at 1500, so a stored 0 becomes a quarter.
  EXPECT_EQ(corner("window:500:2000:offset=0,centercrop:6"), 0);
  EXPECT_EQ(corner("centercrop:6,window:500:2000:offset=0"), 0.25F);
  EXPECT_EQ(corner("resize:2x2,window:500:2000:offset=0,centercrop:6"), 0);
  EXPECT_EQ(corner("resize:2x2,centercrop:6,window:500:2000:offset=0"), 0.25F);
}

TEST(ImagePlan, AnImageOfAnotherKindIsOneBadSample) {
  const ImagePlan plan = compile("", images(4, 4));
  const Draw drawn = draw(plan, 4, 4);
  std::vector<std::byte> bytes(128), slot(48);
  Scratch scratch;
  const Rect all{0, 0, 4, 4};
  EXPECT_EQ(plan.apply(0, drawn, {bytes.data(), 16, 4, 4, 4, DType::u8}, all, {}, slot.data(), scratch).code,
            Code::mismatch);
  EXPECT_EQ(plan.apply(0, drawn, {bytes.data(), 24, 4, 4, 3, DType::u16}, all, {}, slot.data(), scratch).code,
            Code::mismatch);
}

TEST(ImagePlan, AllocatesNothingOnceItsScratchHasGrown) {
  const ImagePlan plan = compile("rrc:32,flip,normalize:imagenet", images(200, 150));
  auto image = make_bytes(1, 200 * 150 * 3);
  const Pixels pixels{reinterpret_cast<std::byte*>(image.data()), 600, 200, 150, 3, DType::u8};
  std::vector<std::byte> slot(plan.outputs()[0].view_bytes);
  Scratch scratch;
  std::size_t capacity = 0;
  for (std::uint64_t id = 0; id < 200; ++id) {
    const Draw drawn = draw(plan, 200, 150, id % 100);
    ASSERT_TRUE(plan.apply(0, drawn, pixels, {0, 0, 200, 150}, {}, slot.data(), scratch).ok());
    scratch.reset();
    if (id == 100) capacity = scratch.capacity_bytes();
  }
  EXPECT_EQ(scratch.capacity_bytes(), capacity);
}

TEST(ImagePlan, RefusesImpossibleImageListsInOneSentence) {
  const ImageInput rgb = images(64, 64), gray = images(64, 64, 1), slices = images(64, 64, 1, 16);
  EXPECT_EQ(refusal("pad:8000", rgb), "cannot use transform `PadOrTrim`: it is for audio, and these are images");
  EXPECT_EQ(refusal("mono", rgb), "cannot use transform `Mono`: it is for audio, and these are images");
  EXPECT_EQ(refusal("normalize:imagenet", gray),
            "cannot use transform `Normalize`: it has 3 means, but the images have 1 channel");
  EXPECT_EQ(refusal("window", rgb), "cannot use transform `Window`: it needs 16-bit images, and these have 8 bits");
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
  EXPECT_EQ(refusal("flip,views(a=1[rrc:8])", rgb), "cannot use transform `Views`: it stands alone");
  EXPECT_EQ(refusal("resize:9,resize:8,resize:7,resize:6", rgb),
            "cannot use transform `Resize`: images are resized more than 3 times");
  EXPECT_EQ(refusal("normalize:imagenet", rgb, DType::u8), "cannot give images as uint8: Normalize makes them float");
  EXPECT_EQ(refusal("tofloat", rgb, DType::u8), "cannot give images as uint8: ToFloat makes them float");
  EXPECT_EQ(refusal("rrc:8", rgb, DType::i32), "cannot give images as int32");
  EXPECT_EQ(refusal("views(a=1[window],b=1[flip])", slices),
            "cannot use transform `Views`: group `b` takes 8 bits while another takes 16");
  EXPECT_EQ(refusal("flip", images(0, 0)), "cannot compile the transform: the size of the images is not known");
}

TEST(ImagePlan, AcceptsWhatOnlyLooksOdd) {
  EXPECT_NO_THROW(compile("normalize:0.5/0.5", images(9, 9)));  // one figure for three channels
  EXPECT_NO_THROW(compile("normalize:imagenet,flip,centercrop:8", images(9, 9)));
  EXPECT_NO_THROW(compile("window,tofloat,normalize:0.5/0.5", images(9, 9, 1, 16)));
  EXPECT_NO_THROW(compile("resize:32,centercrop:24x40", images(60, 40)));  // fits wide images
  EXPECT_NO_THROW(compile("rrc:8", images(0, 0)));
  EXPECT_FALSE(compile("rrc:8", images(9, 9, 3, 16)).deep());
  EXPECT_TRUE(compile("rrc:8,tofloat", images(9, 9, 3, 16)).deep());
}

TEST(ImagePlan, DescribesItselfInOneLine) {
  EXPECT_EQ(compile("rrc:224,flip,normalize:imagenet", images(9, 9)).describe(),
            "RandomResizedCrop 224x224 bilinear -> flip p=0.5 -> normalize -> float32 NCHW [3, 224, 224]");
  EXPECT_EQ(compile("resize:32,centercrop:24", images(9, 9), {}, Layout::nhwc).describe(),
            "Resize shorter side 32 bilinear -> CenterCrop 24x24 -> uint8 NHWC [24, 24, 3]");
  EXPECT_EQ(compile("views(a=2[rrc:8],b=1[rrc:4])", images(9, 9)).describe(),
            "a: 2 x (RandomResizedCrop 8x8 bilinear -> uint8 NCHW [3, 8, 8]); b: 1 x (RandomResizedCrop 4x4 bilinear "
            "-> uint8 NCHW [3, 4, 4])");
}

}  // namespace
}  // namespace stoker::transform
