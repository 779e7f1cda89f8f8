#include "stoker/transform/deep.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/transform/golden.h"

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

// The measure, which other tests hold against Pillow: all of the picture as float32, then Resizer<float>.
std::vector<float> resized_floats(const Case& c) {
  std::vector<float> floats(c.words.size());
  std::transform(c.words.begin(), c.words.end(), floats.begin(), [&](auto word) { return level(word, c.levels); });
  Scratch scratch;
  Resizer<float> resizer;
  const Part<float> part{floats.data(), std::size_t{c.width} * c.channels, 0, 0, c.width, c.height, c.channels};
  EXPECT_TRUE(resizer.prepare(part, c.resizing, scratch).ok());
  return rows_of(resizer, c);
}

// Hands over exactly the pixels that are needed, at an odd address and without a byte to spare.
std::vector<float> resized(const Case& c) {
  const Rect need = needed(c.resizing);
  const std::size_t row = std::size_t{need.width} * c.channels * 2;
  std::vector<std::byte> held(1 + row * need.height);
  for (std::uint32_t y = 0; y < need.height; ++y) {
    std::memcpy(held.data() + 1 + y * row, &c.words[(std::size_t{need.y + y} * c.width + need.x) * c.channels], row);
  }
  Scratch scratch;
  DeepResizer resizer;
  EXPECT_TRUE(resizer.prepare({held.data() + 1, row, need.x, need.y, c.channels}, c.levels, c.resizing, scratch).ok());
  return rows_of(resizer, c);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class WithoutWideKernels {
 public:
  WithoutWideKernels() : before_(use_wide_kernels(false)) {}
  ~WithoutWideKernels() { use_wide_kernels(before_); }

 private:
  bool before_;
};

TEST(Deep, EqualsTheResizeOfTheFloatPictureBitForBit) {
  for (std::uint32_t number = 0; number < 600; ++number) {
    const Case c = draw_case(number);
    const Resizing& r = c.resizing;
    const std::vector<float> expected = resized_floats(c);
    const auto label = [&] {
      return testing::Message() << "case " << number << ": " << c.channels << " channels, " << r.in_width << "x"
                                << r.in_height << " to " << r.out_width << "x" << r.out_height << ", filter "
                                << static_cast<int>(r.filter) << ", levels " << static_cast<int>(c.levels.what);
    };
    ASSERT_TRUE(same_bits(resized(c), expected)) << label();
    const WithoutWideKernels portable;
    ASSERT_TRUE(same_bits(resized(c), expected)) << label() << ", portable";
  }
}

TEST(Deep, EqualsItWhereManyPixelsBecomeOneAndWhereOneBecomesMany) {
  for (const auto& [in, out] : {std::pair{512u, 224u}, {512u, 16u}, {400u, 7u}, {9u, 300u}, {1u, 20u}, {300u, 1u}}) {
    for (const Filter filter : {Filter::bilinear, Filter::bicubic, Filter::box}) {
      for (const auto& [in_height, out_height] : {std::pair{40u, 30u}, {200u, 5u}, {30u, 30u}, {5u, 60u}}) {
        Case c;
        c.width = in, c.height = in_height, c.channels = 1;
        c.words = make_words(in + out, std::size_t{in} * in_height);
        c.resizing = {in, in_height, out, out_height, filter, false, {0, 0, out, out_height}};
        c.levels = {What::window, 20000, 1.0F / 30000};
        ASSERT_TRUE(same_bits(resized(c), resized_floats(c)))
            << in << "x" << in_height << " to " << out << "x" << out_height << ", filter " << static_cast<int>(filter);
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

TEST(Deep, KeepsOnlyTheRowsThatTheNextOneNeeds) {
  if (!wide_kernels()) GTEST_SKIP() << "this machine has no AVX2";
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
    EXPECT_LT(scratch.capacity_bytes(), std::size_t{1} << 20) << "columns first: " << columns_first(c.resizing);
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
