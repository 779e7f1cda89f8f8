#include "stoker/transform/pass_times.h"

#include <gtest/gtest.h>

#include "stoker/transform/image_plan.h"

namespace stoker::transform {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (const Pass& pass : ImagePlan::compile(parse_ops(text), {64, 48, 3}).passes()) {
    std::string word = pass.output + ":";
    for (const std::string& operation : pass.operations) word += " " + operation;
    words.push_back(word);
  }
  return words;
}

TEST(PassTimes, PassesNameWhatRunsTogether) {
  EXPECT_EQ(words_of("rrc:24,flip,normalize:imagenet"),
            (std::vector<std::string>{"data: RandomResizedCrop HorizontalFlip Normalize store"}));
  EXPECT_EQ(words_of("rrc:24,flip,color_jitter:0.4,gaussian_blur:5,normalize:imagenet,random_erasing:1"),
            (std::vector<std::string>{"data: RandomResizedCrop HorizontalFlip", "data: ColorJitter",
                                      "data: GaussianBlur", "data: Normalize store", "data: RandomErasing"}));
  EXPECT_EQ(words_of("invert:1,resize:20x20,posterize:2:1"),
            (std::vector<std::string>{"data: copy", "data: RandomInvert", "data: Resize", "data: RandomPosterize",
                                      "data: store"}));
  EXPECT_EQ(
      words_of("views(a=1[rrc:24],b=2[rrc:12,invert])"),
      (std::vector<std::string>{"a: RandomResizedCrop store", "b: RandomResizedCrop", "b: RandomInvert", "b: store"}));
}

TEST(PassTimes, EachPassOfAnImageIsTimedOnce) {
  for (const char* text : {"rrc:24,flip,color_jitter:0.4,gaussian_blur:5,normalize:imagenet,random_erasing:1",
                           "invert:1,resize:20x20,posterize:2:1", "rrc:24,normalize:imagenet,random_erasing:1"}) {
    const ImagePlan plan = ImagePlan::compile(parse_ops(text), {64, 48, 3});
    std::vector<std::byte> pixels(std::size_t{64} * 48 * 3), view(plan.outputs()[0].view_bytes);
    const Pixels source{pixels.data(), std::size_t{64} * 3, 64, 48, 3, DType::u8};
    std::vector<Pass> passes = plan.passes();
    PassTimes times(passes.size());
    for (int round = 0; round < 2; ++round) {
      const PassTimes::Here here(round == 0 ? nullptr : &times);
      Random random(1, 2, 3, 0);
      Draw draw;
      Scratch scratch;
      ASSERT_TRUE(plan.draw(0, 64, 48, random, draw).ok());
      ASSERT_TRUE(plan.apply(0, draw, source, {0, 0, 64, 48}, {}, view.data(), scratch).ok());
    }
    times.tell(passes);
    for (const Pass& pass : passes) EXPECT_EQ(pass.images, 1u) << text << ": " << pass.operations.front();
  }
}

TEST(PassTimes, PassesTellWhatNeedsTheWholeImageAndHowMuchMemory) {
  const std::vector<Pass> passes =
      ImagePlan::compile(parse_ops("rrc:24,flip,gaussian_blur:5,normalize:imagenet"), {64, 48, 3}).passes();
  ASSERT_EQ(passes.size(), 3u);
  EXPECT_FALSE(passes[0].is_whole);
  EXPECT_TRUE(passes[1].is_whole);
  EXPECT_FALSE(passes[2].is_whole);
  EXPECT_GT(passes[0].scratch_bytes, std::uint64_t{2} * 24 * 24 * 3);  // two images of the augmentations
  EXPECT_EQ(passes[1].scratch_bytes, 0u);
}

}  // namespace
}  // namespace stoker::transform
