#include "stoker/transform/resize.h"

#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/transform/golden_test.h"
#include "stoker/transform/without_wide_kernels_test.h"

namespace stoker::transform {
namespace {

// Hands over exactly the pixels that are needed, in a buffer without a byte to spare.
template <typename T>
std::vector<T> resize(const std::vector<T>& image, std::uint32_t width, std::uint32_t channels, const Rect& crop,
                      const Resizing& resizing) {
  const Rect need = needed(resizing);
  const std::size_t row = std::size_t{need.width} * channels;
  std::vector<T> held(row * need.height);
  for (std::uint32_t y = 0; y < need.height; ++y) {
    const std::size_t from = (std::size_t{crop.y + need.y + y} * width + crop.x + need.x) * channels;
    std::copy_n(image.begin() + static_cast<std::ptrdiff_t>(from), row,
                held.begin() + static_cast<std::ptrdiff_t>(y * row));
  }
  Scratch scratch;
  Resizer<T> resizer;
  const Part<T> part{held.data(), row, need.x, need.y, need.width, need.height, channels};
  EXPECT_TRUE(resizer.prepare(part, resizing, scratch).ok());
  std::vector<T> out;
  for (std::uint32_t y = 0; y < resizing.keep.height; ++y) {
    const T* const line = resizer.row(y);
    out.insert(out.end(), line, line + std::size_t{resizing.keep.width} * channels);
  }
  return out;
}

Resizing whole(const GoldenResize& g) {
  return {g.crop.width, g.crop.height, g.to_width, g.to_height, g.filter, false, {0, 0, g.to_width, g.to_height}};
}

void expect_pillow(const GoldenResize& g) {
  const std::size_t count = std::size_t{g.width} * g.height * g.channels;
  const auto crc_of = [&](const auto& image) {
    const auto out = resize(image, g.width, g.channels, g.crop, whole(g));
    return crc32(std::as_bytes(std::span(out)));
  };
  const std::uint32_t crc = g.is_float ? crc_of(make_floats(g.seed, count)) : crc_of(make_bytes(g.seed, count));
  EXPECT_EQ(crc, g.crc) << "seed " << g.seed << ": " << g.channels << " channels, " << g.crop.width << "x"
                        << g.crop.height << " to " << g.to_width << "x" << g.to_height << ", filter "
                        << static_cast<int>(g.filter);
}

struct ResizeCase {
  std::vector<std::uint8_t> image;
  std::uint32_t width, height, channels;
  Resizing resizing;
};

ResizeCase draw_resize(std::uint32_t number) {
  Random random(77, 0, number);
  ResizeCase c;
  c.width = 1 + random.below(200), c.height = 1 + random.below(150), c.channels = 1 + random.below(4);
  c.image = make_bytes(number, std::size_t{c.width} * c.height * c.channels);
  Resizing& r = c.resizing;
  r = {c.width,
       c.height,
       1 + random.below(120),
       1 + random.below(120),
       static_cast<Filter>(random.below(5)),
       random.below(2) == 1,
       {}};
  r.keep.width = 1 + random.below(r.out_width), r.keep.height = 1 + random.below(r.out_height);
  r.keep.x = random.below(r.out_width - r.keep.width + 1), r.keep.y = random.below(r.out_height - r.keep.height + 1);
  return c;
}

std::vector<std::uint8_t> run(const ResizeCase& c, const Resizing& resizing) {
  return resize(c.image, c.width, c.channels, {0, 0, c.width, c.height}, resizing);
}

TEST(Resize, GivesThePixelsOfPillow) {
  for (const GoldenResize& g : kResizes) expect_pillow(g);
}

TEST(Resize, GivesThePixelsOfPillowWithPortableLoopsToo) {
  const WithoutWideKernels portable;
  for (const GoldenResize& g : kResizes) expect_pillow(g);
}

TEST(Resize, IsTheSameWithWideAndPortableLoops) {
  for (std::uint32_t i = 0; i < 300; ++i) {
    const ResizeCase c = draw_resize(i);
    const std::vector<std::uint8_t> wide = run(c, c.resizing);
    const WithoutWideKernels portable;
    ASSERT_EQ(run(c, c.resizing), wide) << "case " << i;
  }
}

TEST(Resize, OfAPartEqualsThatPartOfTheWhole) {
  for (std::uint32_t i = 0; i < 200; ++i) {
    const ResizeCase c = draw_resize(1000 + i);
    const Rect keep = c.resizing.keep;
    Resizing all = c.resizing;
    all.keep = {0, 0, all.out_width, all.out_height};
    const std::vector<std::uint8_t> image = run(c, all), part = run(c, c.resizing);
    for (std::uint32_t y = 0; y < keep.height; ++y) {
      const std::size_t row = std::size_t{keep.width} * c.channels;
      const auto from =
          image.begin() + static_cast<std::ptrdiff_t>((std::size_t{keep.y + y} * all.out_width + keep.x) * c.channels);
      const auto to = part.begin() + static_cast<std::ptrdiff_t>(y * row);
      ASSERT_TRUE(std::equal(to, to + static_cast<std::ptrdiff_t>(row), from)) << "case " << i << ", row " << y;
    }
  }
}

TEST(Resize, NeedsNoMoreOfTheImageThanItsFiltersReach) {
  const Resizing r{1000, 1000, 100, 100, Filter::bilinear, false, {50, 0, 10, 10}};
  const Rect need = needed(r);
  EXPECT_EQ(need.x, 495u);
  EXPECT_EQ(need.width, 110u);
  EXPECT_EQ(need.y, 0u);
  EXPECT_EQ(need.height, 105u);
}

TEST(Resize, SaysSoWhenMemoryIsRefused) {
  Budget budget(1);
  Scratch scratch(&budget);
  const std::vector<std::uint8_t> image = make_bytes(1, 300);
  Resizer<std::uint8_t> resizer;
  const Result result = resizer.prepare({image.data(), 30, 0, 0, 10, 10, 3},
                                        {10, 10, 5, 5, Filter::bilinear, false, {0, 0, 5, 5}}, scratch);
  EXPECT_EQ(result.code, Code::no_memory);
}

}  // namespace
}  // namespace stoker::transform
