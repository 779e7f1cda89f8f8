#include "stoker/transform/resize_fast.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/transform/golden_test.h"
#include "stoker/transform/without_wide_kernels_test.h"

namespace stoker::transform {
namespace {

using Values = std::vector<std::uint8_t>;

struct FastCase {
  Values image;
  std::uint32_t channels;
  Resizing resizing;
};

double below(Random& random, double limit) {
  return random.uniform(0, limit);
}

FastCase draw_fast(std::uint32_t number, bool boxed) {
  Random random(78, 0, number);
  FastCase c;
  c.channels = random.below(2) == 0 ? 1 : 3;
  Resizing& r = c.resizing;
  r.in_width = 1 + random.below(150), r.in_height = 1 + random.below(100);
  r.out_width = r.in_width / 3 + 1 + random.below(120), r.out_height = r.in_height / 3 + 1 + random.below(120);
  r.keep.width = 1 + random.below(r.out_width), r.keep.height = 1 + random.below(r.out_height);
  r.keep.x = random.below(r.out_width - r.keep.width + 1), r.keep.y = random.below(r.out_height - r.keep.height + 1);
  if (boxed) {
    r.box.x = below(random, 0.99), r.box.y = below(random, 0.99);
    r.box.width = r.in_width - r.box.x - below(random, std::min(0.99, (r.in_width - r.box.x) / 2));
    r.box.height = r.in_height - r.box.y - below(random, std::min(0.99, (r.in_height - r.box.y) / 2));
  }
  c.image = make_bytes(number, std::size_t{r.in_width} * r.in_height * c.channels);
  return c;
}

// Hands over exactly the pixels that are needed, in a buffer without a byte to spare.
template <typename SomeResizer>
Values run(const FastCase& c) {
  const Resizing& r = c.resizing;
  const Rect need = needed(r);
  const std::size_t row = std::size_t{need.width} * c.channels;
  Values held;
  for (std::uint32_t y = 0; y < need.height; ++y) {
    const auto from =
        c.image.begin() + static_cast<std::ptrdiff_t>((std::size_t{need.y + y} * r.in_width + need.x) * c.channels);
    held.insert(held.end(), from, from + static_cast<std::ptrdiff_t>(row));
  }
  held.shrink_to_fit();
  Scratch scratch;
  SomeResizer resizer;
  EXPECT_TRUE(
      resizer.prepare({held.data(), row, need.x, need.y, need.width, need.height, c.channels}, r, scratch).ok());
  Values out;
  for (std::uint32_t y = 0; y < r.keep.height; ++y) {
    const std::uint8_t* const line = resizer.row(y);
    out.insert(out.end(), line, line + std::size_t{r.keep.width} * c.channels);
  }
  return out;
}

// The mean of the four nearest pixels by distance, in double precision.
double expected_at(const FastCase& c, std::uint32_t x, std::uint32_t y, std::uint32_t channel) {
  const Resizing& r = c.resizing;
  const auto place = [](const Extent& in, std::uint32_t out, std::uint32_t at) {
    return std::clamp(in.begin + (at + 0.5) * in.length / out - 0.5, 0.0, in.size - 1.0);
  };
  const double px = place(r.across(), r.out_width, r.keep.x + x), py = place(r.down(), r.out_height, r.keep.y + y);
  const auto pixel = [&](std::size_t i, std::size_t j) {
    i = std::min<std::size_t>(i, r.in_width - 1), j = std::min<std::size_t>(j, r.in_height - 1);
    return double{static_cast<double>(c.image[(j * r.in_width + i) * c.channels + channel])};
  };
  const auto i = static_cast<std::size_t>(px), j = static_cast<std::size_t>(py);
  const double fx = px - static_cast<double>(i), fy = py - static_cast<double>(j);
  return (1 - fy) * ((1 - fx) * pixel(i, j) + fx * pixel(i + 1, j)) +
         fy * ((1 - fx) * pixel(i, j + 1) + fx * pixel(i + 1, j + 1));
}

TEST(FastResize, BlendsTheFourNearestPixels) {
  for (std::uint32_t i = 0; i < 200; ++i) {
    const FastCase c = draw_fast(i, i % 2 == 0);
    const Values out = run<FastResizer>(c);
    const Rect& keep = c.resizing.keep;
    for (std::uint32_t y = 0; y < keep.height; ++y) {
      for (std::uint32_t x = 0; x < keep.width; ++x) {
        for (std::uint32_t channel = 0; channel < c.channels; ++channel) {
          // Rounded once for each axis.
          ASSERT_NEAR(out[(std::size_t{y} * keep.width + x) * c.channels + channel], expected_at(c, x, y, channel),
                      1.05)
              << "case " << i << " at " << x << "," << y;
        }
      }
    }
  }
}

TEST(FastResize, IsTheSameWithWideAndPortableLoops) {
  for (std::uint32_t i = 0; i < 400; ++i) {
    const FastCase c = draw_fast(1000 + i, i % 2 == 0);
    const Values wide = run<FastResizer>(c);
    const WithoutWideKernels portable;
    ASSERT_EQ(run<FastResizer>(c), wide) << "case " << i;
  }
}

TEST(FastResize, CopiesWhatKeepsItsSize) {
  FastCase c = draw_fast(1, false);
  Resizing& r = c.resizing;
  r.out_width = r.in_width, r.out_height = r.in_height;
  r.keep = {0, 0, r.in_width, r.in_height};
  EXPECT_EQ(run<FastResizer>(c), c.image);
  r.keep = {r.in_width - 1, r.in_height - 1, 1, 1};
  EXPECT_EQ(run<FastResizer>(c), Values(c.image.end() - c.channels, c.image.end()));
}

TEST(FastResize, EqualsPillowsWhereItEnlargesButForRounding) {
  for (std::uint32_t i = 0; i < 100; ++i) {
    FastCase c = draw_fast(2000 + i, false);
    Resizing& r = c.resizing;
    r.out_width = r.in_width + r.out_width, r.out_height = r.in_height + r.out_height;
    const Values fast = run<FastResizer>(c), exact = run<Resizer<std::uint8_t>>(c);
    for (std::size_t at = 0; at < fast.size(); ++at) ASSERT_NEAR(fast[at], exact[at], 1) << "case " << i;
  }
}

TEST(FastResize, SuitsBilinearOfOneOrThreeChannelsThatShrinksLessThanThreefold) {
  const Resizing r{299, 200, 100, 100, Filter::bilinear, false, {0, 0, 100, 100}};
  EXPECT_TRUE(suits_fast_resize(r, 3));
  EXPECT_TRUE(suits_fast_resize(r, 1));
  EXPECT_FALSE(suits_fast_resize(r, 4)) << "colour is weighted by alpha";
  Resizing other = r;
  other.filter = Filter::bicubic;
  EXPECT_FALSE(suits_fast_resize(other, 3));
  other = r, other.in_width = 300;
  EXPECT_FALSE(suits_fast_resize(other, 3));
  other.box = {0.5, 0, 299, 200};
  EXPECT_TRUE(suits_fast_resize(other, 3));
}

TEST(FastResize, SaysSoWhenMemoryIsRefused) {
  Budget budget(1);
  Scratch scratch(&budget);
  const Values image = make_bytes(1, 300);
  FastResizer resizer;
  const Result result = resizer.prepare({image.data(), 30, 0, 0, 10, 10, 3},
                                        {10, 10, 5, 5, Filter::bilinear, false, {0, 0, 5, 5}}, scratch);
  EXPECT_EQ(result.code, Code::no_memory);
}

// ---- a box, with Pillow's filters

TEST(Resize, OfABoxThatIsTheImageEqualsThatOfTheImage) {
  for (std::uint32_t i = 0; i < 50; ++i) {
    FastCase c = draw_fast(3000 + i, false);
    const Values whole = run<Resizer<std::uint8_t>>(c);
    Resizing& r = c.resizing;
    r.box = {0, 0, static_cast<double>(r.in_width), static_cast<double>(r.in_height)};
    ASSERT_EQ(run<Resizer<std::uint8_t>>(c), whole) << "case " << i;
  }
}

// On a slope, a pixel's value says where it came from.
TEST(Resize, OfABoxTakesPixelsFromWhereTheyLie) {
  FastCase c{.image = {}, .channels = 3, .resizing = {64, 48, 20, 16, Filter::bilinear, false, {3, 2, 14, 12}}};
  for (std::uint32_t y = 0; y < 48; ++y) {
    for (std::uint32_t x = 0; x < 64; ++x) {
      c.image.insert(c.image.end(), {static_cast<std::uint8_t>(3 * x), static_cast<std::uint8_t>(4 * y), 7});
    }
  }
  Resizing& r = c.resizing;
  r.box = {2.3, 1.6, 57.25, 43.5};
  for (const Filter filter : {Filter::bilinear, Filter::bicubic, Filter::box}) {
    r.filter = filter;
    const Values out = run<Resizer<std::uint8_t>>(c);
    for (std::uint32_t y = 0; y < r.keep.height; ++y) {
      for (std::uint32_t x = 0; x < r.keep.width; ++x) {
        const std::uint8_t* const pixel = &out[(std::size_t{y} * r.keep.width + x) * 3];
        // The box filter takes whole pixels: it may be off by half of one.
        const double allowed = filter == Filter::box ? 3.0 : 1.1;
        ASSERT_NEAR(pixel[0], 3 * (r.box.x + (r.keep.x + x + 0.5) * r.box.width / 20 - 0.5), allowed);
        ASSERT_NEAR(pixel[1], 4 * (r.box.y + (r.keep.y + y + 0.5) * r.box.height / 16 - 0.5), allowed);
        ASSERT_EQ(pixel[2], 7);
      }
    }
  }
}

}  // namespace
}  // namespace stoker::transform
