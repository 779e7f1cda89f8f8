// Views made with approximations, from images that a decoder has made smaller.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/transform/image_plan.h"

namespace stoker::transform {
namespace {

using Values = std::vector<std::uint8_t>;

// Waves that are long compared with anything a test does to them: what comes out says where it came from.
double wave(double x, std::uint32_t channel, double length) {
  return 60 * std::sin(x / length + channel);
}

struct Image {
  std::uint32_t width, height, channels;
};

// The scene in pixels of scale x scale each, seen from `placement`. The last of two or four channels is alpha.
Values paint(const Image& image, const Placement& placement, std::uint32_t width, std::uint32_t height) {
  const bool alpha = image.channels % 2 == 0;
  const double half = placement.scale / 2.0 - 0.5;
  const auto waves = [&](std::int64_t first, std::uint32_t count, std::uint32_t channel, double length) {
    std::vector<double> values(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      values[i] = wave(static_cast<double>(first + i * placement.scale) + half, channel, length);
    }
    return values;
  };
  Values values(std::size_t{width} * height * image.channels, 200);
  for (std::uint32_t c = 0; c < image.channels - (alpha ? 1 : 0); ++c) {
    const std::vector<double> across = waves(placement.x, width, c, 47), down = waves(placement.y, height, c, 39);
    for (std::size_t i = 0; i < std::size_t{width} * height; ++i) {
      values[i * image.channels + c] =
          static_cast<std::uint8_t>(std::lround(128 + across[i % width] + down[i / width]));
    }
  }
  return values;
}

Pixels view_of(Values& values, std::uint32_t width, std::uint32_t height, std::uint32_t channels) {
  return {reinterpret_cast<std::byte*>(values.data()),
          std::size_t{width} * channels,
          width,
          height,
          static_cast<std::uint8_t>(channels),
          DType::u8};
}

ImagePlan compile(std::string_view text, const Image& image) {
  ImageInput input;
  input.width = image.width, input.height = image.height;
  input.channels = static_cast<std::uint8_t>(image.channels);
  return ImagePlan::compile(parse_ops(text), input, {{}, Layout::nhwc});
}

Draw draw(const ImagePlan& plan, const Image& image, std::uint64_t id, std::uint32_t view = 0) {
  Random random(42, 0, id, view);
  Draw draw;
  EXPECT_TRUE(plan.draw(view, image.width, image.height, random, draw).ok());
  return draw;
}

Values exact(const ImagePlan& plan, const Image& image, const Draw& draw) {
  Values source = paint(image, {draw.crop.x, draw.crop.y, 1}, draw.crop.width, draw.crop.height);
  Values out(plan.outputs()[0].view_bytes);
  Scratch scratch;
  EXPECT_TRUE(plan.apply(0, draw, view_of(source, draw.crop.width, draw.crop.height, image.channels), draw.crop, {},
                         reinterpret_cast<std::byte*>(out.data()), scratch)
                  .ok());
  return out;
}

// What the view needs at 1/scale and not a pixel more. `shift`: where the smaller image's pixels begin.
Values fast(const ImagePlan& plan, const Image& image, const Draw& draw, std::uint32_t scale, std::uint32_t shift = 0) {
  const Rect crop = plan.crop_at(0, draw, scale);
  const auto floor_to = [&](std::int64_t value) {
    return (value - shift >= 0 ? (value - shift) / scale : -((shift - value + scale - 1) / std::int64_t{scale})) *
               scale +
           shift;
  };
  const Placement placement{floor_to(crop.x), floor_to(crop.y), scale};
  const auto pixels = [&](std::int64_t from, std::int64_t to) {
    return static_cast<std::uint32_t>((to - from + scale - 1) / scale);
  };
  const std::uint32_t width = pixels(placement.x, std::int64_t{crop.x} + crop.width);
  const std::uint32_t height = pixels(placement.y, std::int64_t{crop.y} + crop.height);
  Values source = paint(image, placement, width, height);
  Values out(plan.outputs()[0].view_bytes);
  Scratch scratch;
  const Result result = plan.apply_fast(0, draw, view_of(source, width, height, image.channels), placement,
                                        reinterpret_cast<std::byte*>(out.data()), scratch);
  EXPECT_TRUE(result.ok()) << result.cause;
  return out;
}

int farthest(const Values& a, const Values& b) {
  int most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

TEST(FastViews, MayBeMadeFromAImageAtMostAsSmallAsTheViewShrinksIt) {
  const auto most = [](std::string_view text, std::uint32_t width, std::uint32_t height) {
    const Image image{width, height, 3};
    const ImagePlan plan = compile(text, image);
    return plan.most_scale(0, draw(plan, image, 1));
  };
  EXPECT_EQ(most("resize:100x100", 800, 800), 8u);
  EXPECT_EQ(most("resize:100x100", 8000, 8000), 8u);
  EXPECT_EQ(most("resize:100x100", 799, 800), 4u);
  EXPECT_EQ(most("resize:100x100", 4000, 400), 4u);
  EXPECT_EQ(most("resize:100x100", 200, 399), 2u);
  EXPECT_EQ(most("resize:100x100", 199, 4000), 1u);
  EXPECT_EQ(most("resize:100x100", 10, 10), 1u);
  EXPECT_EQ(most("resize:100x100:filter=nearest", 800, 800), 1u);
  EXPECT_EQ(most("centercrop:100", 800, 800), 1u) << "nothing shrinks";
  EXPECT_EQ(most("resize:200,centercrop:100", 800, 1200), 4u);
}

TEST(FastViews, LieWhereTheExactOnesLie) {
  const Image image{903, 701, 3};
  for (const char* text : {"rrc:40", "rrc:40:filter=bicubic", "resize:80,centercrop:60", "resize:33x90",
                           "rrc:48,flip:1", "resize:200,rrc:50", "resize:100,centercrop:90,flip:1,resize:50x40"}) {
    const ImagePlan plan = compile(text, image);
    for (std::uint64_t id = 0; id < 12; ++id) {
      const Draw what = draw(plan, image, id);
      const Values expected = exact(plan, image, what);
      for (std::uint32_t scale = plan.most_scale(0, what); scale != 0; scale /= 2) {
        // At 1/8 half a pixel is worth more than ten levels on the steepest slopes.
        ASSERT_LE(farthest(fast(plan, image, what, scale), expected), 6) << text << " " << id << " at 1/" << scale;
        // Turned images have pixels that begin anywhere.
        const std::uint32_t shift = scale - 1 - static_cast<std::uint32_t>(id) % scale;
        ASSERT_LE(farthest(fast(plan, image, what, scale, shift), expected), 6) << text << " at 1/" << scale;
      }
    }
  }
}

TEST(FastViews, OfOneAndFourChannelsAreMadeToo) {
  for (const std::uint32_t channels : {1u, 2u, 4u}) {
    const Image image{403, 301, channels};
    const ImagePlan plan = compile("rrc:40", image);
    for (std::uint64_t id = 0; id < 6; ++id) {
      const Draw what = draw(plan, image, id);
      const std::uint32_t scale = plan.most_scale(0, what);
      ASSERT_LE(farthest(fast(plan, image, what, scale), exact(plan, image, what)), 4) << channels << " " << id;
    }
  }
}

TEST(FastViews, ThatResizeNothingAreTheExactOnes) {
  const Image image{90, 70, 3};
  for (const char* text : {"centercrop:40", "flip:1", "resize:35x45:filter=nearest"}) {
    const ImagePlan plan = compile(text, image);
    const Draw what = draw(plan, image, 3);
    EXPECT_EQ(fast(plan, image, what, 1), exact(plan, image, what)) << text;
  }
}

TEST(FastViews, RefuseAImageOfOtherChannels) {
  const Image image{90, 70, 3};
  const ImagePlan plan = compile("resize:20x20", image);
  Values gray(90 * 70), out(plan.outputs()[0].view_bytes);
  Scratch scratch;
  const Result result = plan.apply_fast(0, draw(plan, image, 1), view_of(gray, 90, 70, 1), {},
                                        reinterpret_cast<std::byte*>(out.data()), scratch);
  EXPECT_EQ(result.code, Code::mismatch);
}

}  // namespace
}  // namespace stoker::transform
