// 16-bit images through operations that move pixels. python/tests/test_slices.py compares their values with Pillow's.
#include "stoker/transform/image_deep.h"

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/transform/golden_test.h"
#include "stoker/transform/plans_test.h"
#include "stoker/transform/without_wide_kernels_test.h"

namespace stoker::transform {
namespace {

constexpr std::uint32_t kWidth = 60, kHeight = 45;
constexpr std::array<double, 1> kOffsetOfIndex = {100};

// One of every kind, before and after Window, and with geometry on both sides.
constexpr const char* kDeepLists[] = {
    "random_rotation:30:bilinear:fill=-1000,window:20000:40000",
    "window:20000:40000,random_rotation:30:bicubic:fill=0.25",
    "resize:40x50,random_affine:10:translate=0.1+0.2:scale=0.5..2:shear=-5+5,tofloat",
    "random_perspective:0.5:1,resize:33x44,window:20000:40000,normalize:0.5/0.25,gaussian_noise:1",
    "padding:1+2+3+4:9000:constant,window:20000:40000,centercrop:40",
    "random_crop:50:9:padding_mode=reflect,vertical_flip,flip,tofloat,random_erasing:1",
    "vertical_flip,random_rotation:90:expand=true,rrc:24,flip,window:20000:40000",
    "zoom_out:777:1..2:1,window:20000:40000,resize:40x50,random_rotation:20,centercrop:64",
    "random_apply:0.5[random_rotation:20,vertical_flip],random_choice[flip:1,random_crop:45+60:2],resize:40x50,tofloat",
};

std::vector<float> made(const ImagePlan& plan, std::uint64_t id, Scratch& scratch) {
  const ImageInput& input = plan.input();
  std::vector<std::uint16_t> words = make_words(7, std::size_t{input.width} * input.height * input.channels);
  const Pixels pixels{reinterpret_cast<std::byte*>(words.data()),
                      std::size_t{input.width} * input.channels * sizeof(std::uint16_t),
                      input.width,
                      input.height,
                      input.channels,
                      DType::u16};
  Random random(1, 2, id, 0);
  Draw draw;
  EXPECT_TRUE(plan.draw(0, input.width, input.height, random, draw).ok());
  std::vector<std::byte> view(plan.outputs()[0].view_bytes);
  const Result result =
      plan.apply(0, draw, pixels, {0, 0, input.width, input.height}, kOffsetOfIndex, view.data(), scratch);
  EXPECT_TRUE(result.ok()) << result.cause;
  return as<float>(view);
}
std::vector<float> made(std::string_view text, std::uint64_t id = 0, std::uint8_t channels = 1) {
  Scratch scratch;
  return made(compile(text, images(kWidth, kHeight, channels, 16)), id, scratch);
}

TEST(ImageDeep, IsTheSameWithAndWithoutWideKernels) {
  for (const char* const text : kDeepLists) {
    for (const std::uint8_t channels : {1, 3}) {
      for (std::uint64_t id = 0; id < 10; ++id) {
        const std::vector<float> wide = made(text, id, channels);
        const WithoutWideKernels without;
        const std::vector<float> narrow = made(text, id, channels);
        ASSERT_EQ(std::memcmp(wide.data(), narrow.data(), wide.size() * sizeof(float)), 0) << text << " of " << id;
      }
    }
  }
}

TEST(ImageDeep, TakesNoMoreMemoryThanItSaid) {
  for (const char* const text : kDeepLists) {
    for (const std::uint8_t channels : {1, 3}) {
      const ImagePlan plan = compile(text, images(kWidth, kHeight, channels, 16));
      for (std::uint64_t id = 0; id < 10; ++id) {
        Random random(1, 2, id, 0);
        Draw draw;
        ASSERT_TRUE(plan.draw(0, kWidth, kHeight, random, draw).ok());
        std::vector<std::byte> memory(plan.working_bytes(0, draw) + 128);
        const std::size_t skip = (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
        Scratch scratch;
        scratch.work_in(std::span(memory).subspan(skip, memory.size() - 64));
        made(plan, id, scratch);
      }
    }
  }
}

TEST(ImageDeep, MovesStoredValuesAndWindowsThemAfterwards) {
  const std::vector<float> plain = made("window:20000:40000:offset=0"),
                           turned = made("vertical_flip:1,padding:0,flip:1,window:20000:40000:offset=0");
  for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(turned[i], plain[plain.size() - 1 - i]);
  // What is filled in is a stored value before Window, and a share after it.
  const std::vector<float> before = made("padding:1:10000,window:20000:40000:offset=0"),
                           after = made("window:20000:40000:offset=0,padding:1:0.125");
  EXPECT_EQ(before.front(), 0.25F);
  EXPECT_EQ(after.front(), 0.125F);
  EXPECT_EQ(before[kWidth + 2 + 1], plain.front());
}

TEST(ImageDeep, ReadsTheOffsetOfAWindowThatComesLater) {
  EXPECT_EQ(made("padding:1:10100,window:20000:40000").front(), 0.25F);
}

TEST(ImageDeep, DividesOnce) {
  const std::vector<float> plain = made("tofloat"), padded = made("padding:1:65535,tofloat"),
                           cropped = made("padding:1:65535,tofloat,centercrop:45x60");
  EXPECT_EQ(padded.front(), 1.0F);
  EXPECT_EQ(padded[kWidth + 2 + 1], plain.front());
  EXPECT_EQ(cropped, plain);
}

TEST(ImageDeep, NamesItsPassesInTheirOrder) {
  const ImagePlan plan = compile("resize:40x50,window:20000:40000,random_rotation:9,rrc:32,normalize:0.5/0.5",
                                 images(kWidth, kHeight, 1, 16));
  std::vector<std::vector<std::string>> names;
  for (const Pass& pass : plan.passes()) names.push_back(pass.operations);
  const std::vector<std::vector<std::string>> expected = {
      {"Resize", "Window"}, {"RandomRotation"}, {"RandomResizedCrop", "Normalize", "store"}};
  EXPECT_EQ(names, expected);
}

TEST(ImageDeep, RefusesWhatTakesBytesInOneSentence) {
  const ImageInput slices = images(64, 64, 1, 16), gray = images(64, 64, 1);
  EXPECT_EQ(refusal("color_jitter:0.4,window", slices),
            "cannot use transform `ColorJitter`: it takes 8-bit images, and these have 16 bits");
  EXPECT_EQ(refusal("window,equalize", slices),
            "cannot use transform `RandomEqualize`: it takes 8-bit images, and Window makes floats");
  EXPECT_EQ(refusal("random_apply[random_rotation:9,invert],window", slices),
            "cannot use transform `RandomApply`: it takes 8-bit images, and these have 16 bits");
  EXPECT_EQ(refusal("window,gaussian_noise,random_rotation:9", slices),
            "cannot use transform `RandomRotation`: it cannot come after RandGaussianNoise");
  EXPECT_EQ(refusal("tofloat,random_rotation:9", slices),
            "cannot use transform `RandomRotation`: it cannot come after ToFloat");
  EXPECT_EQ(refusal("padding:4:-1000", gray),
            "cannot use transform `Pad`: fill = -1000 is not between 0 and 255, and pixels are bytes here");
  EXPECT_EQ(refusal("padding:4:300", slices),
            "cannot use transform `Pad`: fill = 300 is not between 0 and 255, and pixels are bytes here");
}

}  // namespace
}  // namespace stoker::transform
