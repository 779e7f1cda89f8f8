#include "stoker/transform/deep.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/transform/golden_test.h"
#include "stoker/transform/without_wide_kernels_test.h"

namespace stoker::transform {
namespace {

using What = Levels::What;

struct Case {
  std::uint32_t width, height, channels;
  std::vector<std::uint16_t> words;
  Resizing resizing;
  Levels levels;
};

Case draw_case(std::uint32_t number) {
  Random random(31, 0, number);
  Case c;
  c.width = 1 + random.below(150), c.height = 1 + random.below(150), c.channels = 1 + random.below(4);
  c.words = make_words(number, std::size_t{c.width} * c.height * c.channels);
  Resizing& r = c.resizing;
  r.in_width = c.width, r.in_height = c.height;
  r.out_width = random.below(8) == 0 ? c.width : 1 + random.below(120);
  r.out_height = random.below(8) == 0 ? c.height : 1 + random.below(120);
  r.filter = static_cast<Filter>(random.below(4));
  r.mirrored = random.below(2) == 1;
  r.keep.width = 1 + random.below(r.out_width), r.keep.height = 1 + random.below(r.out_height);
  r.keep.x = random.below(r.out_width - r.keep.width + 1), r.keep.y = random.below(r.out_height - r.keep.height + 1);
  c.levels = {static_cast<What>(random.below(3)), static_cast<float>(random.uniform(0, 40000)), 1.0F / 20000};
  return c;
}

// The value of one word, as the header words it.
float level(std::uint16_t word, const Levels& levels) {
  switch (levels.what) {
    case What::as_stored:
      return word;
    case What::share:
      return static_cast<float>(word) / 65535.0F;
    case What::window:
      return std::clamp((static_cast<float>(word) - levels.shift) * levels.scale, 0.0F, 1.0F);
  }
  return 0;
}

template <typename R>
std::vector<float> rows_of(R& resizer, const Case& c) {
  std::vector<float> out;
  for (std::uint32_t y = 0; y < c.resizing.keep.height; ++y) {
    const float* const row = resizer.row(y);
    out.insert(out.end(), row, row + std::size_t{c.resizing.keep.width} * c.channels);
  }
  return out;
}

// The measure, which other tests hold against Pillow: all of the image as float32, then Resizer<float>.
std::vector<float> resized_floats(const Case& c) {
  std::vector<float> floats(c.words.size());
  std::transform(c.words.begin(), c.words.end(), floats.begin(), [&](auto word) { return level(word, c.levels); });
  Scratch scratch;
  Resizer<float> resizer;
  const Part<float> part{floats.data(), std::size_t{c.width} * c.channels, 0, 0, c.width, c.height, c.channels};
  EXPECT_TRUE(resizer.prepare(part, c.resizing, scratch).ok());
  return rows_of(resizer, c);
}

// Hands over exactly the pixels that are needed, `place` bytes behind an aligned address and without a byte to spare.
std::vector<float> resized(const Case& c, std::size_t place = 1) {
  const Rect need = needed(c.resizing);
  const std::size_t row = std::size_t{need.width} * c.channels * 2;
  std::vector<std::byte> held(place + row * need.height);
  for (std::uint32_t y = 0; y < need.height; ++y) {
    std::memcpy(held.data() + place + y * row, &c.words[(std::size_t{need.y + y} * c.width + need.x) * c.channels],
                row);
  }
  Scratch scratch;
  DeepResizer resizer;
  EXPECT_TRUE(
      resizer.prepare({held.data() + place, row, need.x, need.y, c.channels}, c.levels, c.resizing, scratch).ok());
  return rows_of(resizer, c);
}

// The largest difference, as a share of the largest value that the levels allow.
double difference(const std::vector<float>& a, const std::vector<float>& b, const Levels& levels) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::fabs(static_cast<double>(a[i]) - b[i]));
  }
  return levels.what == What::as_stored ? most / 65535 : most;
}
constexpr double kClose = 1e-6;  // some ulp of float32: sums of up to a hundred taps in two passes

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// `run` fills a row that begins `gap` floats into its room, with wide and with portable loops.
template <typename Run>
void expect_row(const Run& run, std::size_t gap, const std::vector<float>& expected) {
  const std::size_t count = expected.size();
  const auto row = [&] {
    std::vector<float> room(gap + count + 1, -9.0F);
    run(room.data() + gap);
    EXPECT_EQ(room.back(), -9.0F) << "wrote behind the row";
    EXPECT_TRUE(gap == 0 || room[gap - 1] == -9.0F) << "wrote before the row";
    return std::vector<float>(room.begin() + static_cast<std::ptrdiff_t>(gap), room.end() - 1);
  };
  EXPECT_TRUE(same_bits(row(), expected)) << count << " elements, gap " << gap;
  const WithoutWideKernels portable;
  EXPECT_TRUE(same_bits(row(), expected)) << count << " elements, gap " << gap << ", portable";
}

TEST(Deep, IsTheResizeOfTheFloatImageToSomeUlpAndTheSameBitsWithAndWithoutVectors) {
  for (std::uint32_t number = 0; number < 600; ++number) {
    const Case c = draw_case(number);
    const Resizing& r = c.resizing;
    const std::vector<float> expected = resized_floats(c);
    const auto label = [&] {
      return testing::Message() << "case " << number << ": " << c.channels << " channels, " << r.in_width << "x"
                                << r.in_height << " to " << r.out_width << "x" << r.out_height << ", filter "
                                << static_cast<int>(r.filter) << ", levels " << static_cast<int>(c.levels.what);
    };
    const std::vector<float> wide = resized(c);
    ASSERT_LT(difference(wide, expected, c.levels), kClose) << label();
    if (r.filter == Filter::nearest) {
      ASSERT_TRUE(same_bits(wide, expected)) << label();
    }
    const WithoutWideKernels portable;
    ASSERT_TRUE(same_bits(resized(c), wide)) << label();
  }
}

TEST(Deep, IsSoWhereManyPixelsBecomeOneAndWhereOneBecomesMany) {
  for (const auto& [in, out] : {std::pair{512u, 224u}, {512u, 16u}, {400u, 7u}, {9u, 300u}, {1u, 20u}, {300u, 1u}}) {
    for (const Filter filter : {Filter::bilinear, Filter::bicubic, Filter::box}) {
      for (const auto& [in_height, out_height] : {std::pair{40u, 30u}, {200u, 5u}, {30u, 30u}, {5u, 60u}}) {
        Case c;
        c.width = in, c.height = in_height, c.channels = 1;
        c.words = make_words(in + out, std::size_t{in} * in_height);
        c.resizing = {in, in_height, out, out_height, filter, false, {0, 0, out, out_height}};
        c.levels = {What::window, 20000, 1.0F / 30000};
        const std::vector<float> wide = resized(c);
        ASSERT_LT(difference(wide, resized_floats(c), c.levels), kClose)
            << in << "x" << in_height << " to " << out << "x" << out_height << ", filter " << static_cast<int>(filter);
        const auto [least, most] = std::minmax_element(wide.begin(), wide.end());
        if (filter != Filter::bicubic) {
          ASSERT_TRUE(*least >= 0 && *most <= 1) << *least << " to " << *most;
        }
        const WithoutWideKernels portable;
        ASSERT_TRUE(same_bits(resized(c), wide));
      }
    }
  }
}

TEST(Deep, LevelsEveryWordAlikeWithWideAndPortableLoops) {
  std::vector<std::uint16_t> words(65536);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Levels& levels :
       {Levels{What::as_stored}, Levels{What::share}, Levels{What::window, 31068.5F, 1.0F / 777},
        Levels{What::window, -3, 1e-3F}, Levels{What::window, infinity, 1}, Levels{What::window, -infinity, 1}}) {
    std::vector<float> expected(words.size()), wide(words.size()), portable(words.size());
    std::transform(words.begin(), words.end(), expected.begin(), [&](auto word) { return level(word, levels); });
    level_row(reinterpret_cast<const std::byte*>(words.data()), words.size(), levels, wide.data());
    EXPECT_TRUE(same_bits(wide, expected));
    const WithoutWideKernels without;
    level_row(reinterpret_cast<const std::byte*>(words.data()), words.size(), levels, portable.data());
    EXPECT_TRUE(same_bits(portable, expected));
  }
}

TEST(Deep, RowsOfEveryLengthAndAlignmentAreLevelledAlike) {
  for (std::size_t count = 0; count <= 70; ++count) {
    const auto words = make_words(static_cast<std::uint32_t>(count), count);
    for (const What what : {What::as_stored, What::share, What::window}) {
      const Levels levels{what, 31068.5F, 1.0F / 777};
      std::vector<float> expected(count);
      std::transform(words.begin(), words.end(), expected.begin(), [&](auto word) { return level(word, levels); });
      for (std::size_t place = 0; place < 32; ++place) {
        // Without a byte to spare, so that ASan sees every step beyond.
        std::vector<std::byte> held(place + 2 * count);
        if (count != 0) std::memcpy(held.data() + place, words.data(), 2 * count);
        const auto run = [&](float* into) { level_row(held.data() + place, count, levels, into); };
        expect_row(run, place % 8, expected);
      }
    }
  }
}

TEST(Deep, RowsOfEveryLengthAndAlignmentAreWindowedAndNormalizedAlike) {
  const float shift = 0.25F, scale = 3.7F;
  for (std::size_t count = 0; count <= 70; ++count) {
    for (std::size_t place = 0; place < 8; ++place) {
      const auto seed = static_cast<std::uint32_t>(100 * count + place);
      const auto mean = make_floats(seed + 1, place + count), std = make_floats(seed + 2, place + count);
      auto values = make_floats(seed, count);
      if (count != 0) values[count / 2] = std::numeric_limits<float>::quiet_NaN();
      std::vector<float> windowed(count), normalized(count);
      for (std::size_t i = 0; i < count; ++i) {
        windowed[i] = std::clamp((values[i] - shift) * scale, 0.0F, 1.0F);
        normalized[i] = (values[i] - mean[place + i]) / std[place + i];
      }
      // In place, as the header allows.
      const auto fill = [&](float* into) { std::copy(values.begin(), values.end(), into); };
      const auto window = [&](float* into) { fill(into), window_row(into, count, shift, scale, into); };
      const auto normalize = [&](float* into) {
        fill(into), normalize_row(into, count, mean.data() + place, std.data() + place, into);
      };
      expect_row(window, place, windowed);
      expect_row(normalize, place, normalized);
    }
  }
}

TEST(Deep, ImagesOfEveryWidthAtEveryAlignmentAreResizedAlike) {
  for (std::uint32_t width = 1; width <= 48; ++width) {
    for (std::size_t place = 0; place < 16; ++place) {
      Case c;
      c.width = width, c.height = 7, c.channels = 1 + static_cast<std::uint32_t>(place) % 3;
      c.words = make_words(width, std::size_t{width} * c.height * c.channels);
      // Both passes, shrinking or growing, and rows alone.
      const std::uint32_t out_width = width + 1 + static_cast<std::uint32_t>(place);
      for (const auto& [wide, high] : {std::pair{(width + 1) / 2 + width % 2, 5u}, {out_width, 3u}, {out_width, 7u}}) {
        c.resizing = {width, c.height, wide, high, Filter::bilinear, place % 2 == 1, {0, 0, wide, high}};
        c.levels = {static_cast<What>(place % 3), 20000, 1.0F / 30000};
        const std::vector<float> wide_rows = resized(c, place);
        ASSERT_LT(difference(wide_rows, resized_floats(c), c.levels), kClose) << width << " wide at place " << place;
        const WithoutWideKernels portable;
        ASSERT_TRUE(same_bits(resized(c, place), wide_rows)) << width << " wide at place " << place;
      }
    }
  }
}

TEST(Deep, KeepsOnlyTheRowsThatTheNextOneNeeds) {
  Case c;
  c.width = 512, c.height = 4096, c.channels = 1;
  c.words = make_words(1, std::size_t{c.width} * c.height);
  c.resizing = {512, 4096, 224, 2048, Filter::bilinear, false, {0, 0, 224, 2048}};
  for (const std::uint32_t out_height : {2048u, 4000u}) {
    c.resizing.out_height = c.resizing.keep.height = out_height;
    Scratch scratch;
    DeepResizer resizer;
    const auto* const data = reinterpret_cast<const std::byte*>(c.words.data());
    ASSERT_TRUE(resizer.prepare({data, 1024, 0, 0, 1}, c.levels, c.resizing, scratch).ok());
    EXPECT_LT(scratch.capacity_bytes(), std::size_t{1} << 20) << out_height;
  }
}

TEST(Deep, SaysSoWhenMemoryIsRefused) {
  Budget budget(10 << 10);
  Scratch scratch(&budget);
  const Case c = draw_case(1);
  DeepResizer resizer;
  const Resizing large{5000, 5000, 3000, 3000, Filter::bilinear, false, {0, 0, 3000, 3000}};
  const DeepPart part{reinterpret_cast<const std::byte*>(c.words.data()), 10000, 0, 0, 1};
  EXPECT_EQ(resizer.prepare(part, c.levels, large, scratch).code, Code::no_memory);
  const WithoutWideKernels portable;
  EXPECT_EQ(resizer.prepare(part, c.levels, large, scratch).code, Code::no_memory);
}

}  // namespace
}  // namespace stoker::transform
