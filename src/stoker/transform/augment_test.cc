// Augmentations inside a plan. python/tests/test_augment.py compares their pixels with torchvision's.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/transform/apply_actions.h"
#include "stoker/transform/plans_test.h"
#include "stoker/transform/without_wide_kernels_test.h"

namespace stoker::transform {
namespace {

// One of every kind, as the short text has them, for images of 60 x 45.
constexpr const char* kEvery[] = {
    "color_jitter:0.4:0.4:0.2:0.1",
    "grayscale",
    "grayscale:3",
    "vertical_flip",
    "invert",
    "autocontrast:1",
    "equalize:1",
    "random_grayscale:0.5",
    "posterize:3",
    "solarize:99.5",
    "sharpness:1.7:1",
    "gaussian_blur:9+5:0.1..3",
    "random_apply:0.8[color_jitter:0.4,vertical_flip]",
    "random_choice:1+3[invert:1,flip:1]",
    "random_order[equalize:1,invert:1,posterize:2:1]",
    "randaug:2:9",
    "randaug:3:30:interpolation=bilinear:fill=1+2+3",
    "trivialaug",
    "autoaug:svhn",
    "augmix",
    "augmix:10:5:4:0.3:false:bicubic:1+2+3",
    "random_apply:0.5[augmix:3:1],gaussian_blur:5",
    "timm_randaug:rand-m9-n3-mstd0.5-inc1",
    "timm_randaug:rand-m9-n4-p1-mstd101:interpolation=nearest:fill=1+2+3",
    "timm_randaug:rand-m9-n3-p1-mstd0.5-t3a",
    "timm_randaug:rand-m9-n9-p1-t3aw",
    "random_erasing:1:value=3",
    "tofloat,shift_intensity:0.5:1,scale_intensity:0.2:1,adjust_contrast:1,gaussian_noise:1",
    "padding:1+2+3+4:9:reflect",
    "random_crop:40:4",
    "random_crop:20+30",
    "random_rotation:20:bilinear:fill=7",
    "random_rotation:90:expand=true,resize:33x44",
    "random_affine:10:translate=0.1+0.2:scale=0.5..2:shear=-5+5",
    "random_perspective:0.5:1:bicubic",
    "zoom_out:9:1..2:1,resize:40x50",
    "five_crop:20+30,invert",
    "ten_crop:20",
    "invert:1,rrc:24,flip,posterize:4:1,centercrop:20,normalize:imagenet,random_erasing:1:random=true",
};

std::vector<std::byte> noise(std::size_t bytes) {
  std::vector<std::byte> all(bytes);
  Random random(4, 5, 6);
  for (std::byte& each : all) each = static_cast<std::byte>(random.next());
  return all;
}

struct Made {
  std::vector<std::byte> view;
  std::vector<Act> acts;
};

class Acts final : public ActionSink {
 public:
  void act(const Action& action) noexcept override { all.push_back(action.what); }
  std::vector<Act> all;
};

Made make(const ImagePlan& plan, std::uint64_t id) {
  const ImageInput& input = plan.input();
  std::vector<std::byte> bytes = noise(std::size_t{input.width} * input.height * input.channels);
  const Pixels pixels{
      bytes.data(), std::size_t{input.width} * input.channels, input.width, input.height, input.channels, DType::u8};
  Random random(1, 2, id, 0);
  Draw draw;
  EXPECT_TRUE(plan.draw(0, input.width, input.height, random, draw).ok());
  Scratch scratch;
  Made made;
  made.view.resize(plan.outputs()[0].view_bytes);
  const Result result = plan.apply(0, draw, pixels, {0, 0, input.width, input.height}, {}, made.view.data(), scratch);
  EXPECT_TRUE(result.ok()) << result.cause;
  Acts acts;
  EXPECT_TRUE(plan.list_actions(0, draw, acts).ok());
  made.acts = std::move(acts.all);
  return made;
}

TEST(Augment, IsTheSameWithAndWithoutWideKernels) {
  for (const char* const text : kEvery) {
    const ImagePlan plan = compile(text, images(60, 45));
    for (std::uint64_t id = 0; id < 20; ++id) {
      const Made wide = make(plan, id);
      const WithoutWideKernels without;
      const Made narrow = make(plan, id);
      EXPECT_EQ(wide.view, narrow.view) << text << " of sample " << id;
      EXPECT_EQ(wide.acts, narrow.acts) << text;
    }
  }
}

TEST(Augment, DrawsFromStreamsOfItsOwn) {
  const auto colours = [](const Made& made) {
    std::vector<Act> kept;
    for (const Act act : made.acts) {
      if (act == Act::brightness || act == Act::hue || act == Act::contrast || act == Act::saturation)
        kept.push_back(act);
    }
    return kept;
  };
  const ImagePlan alone = compile("color_jitter:0.4:0.4:0.2:0.1", images(60, 45));
  const ImagePlan among = compile("rrc:40,flip,invert,gaussian_blur:3,color_jitter:0.4:0.4:0.2:0.1", images(60, 45));
  for (std::uint64_t id = 0; id < 20; ++id) EXPECT_EQ(colours(make(alone, id)), colours(make(among, id)));
}

TEST(Augment, LeavesOperationsThatWereThereAsTheyWere) {
  const ImagePlan before = compile("rrc:32,flip", images(60, 45)),
                  with = compile("rrc:32,flip,invert:0", images(60, 45));
  for (std::uint64_t id = 0; id < 20; ++id) EXPECT_EQ(make(before, id).view, make(with, id).view);
}

TEST(Augment, MirrorsTheSameSamplesBeforeAndAfterOthers) {
  for (const std::uint32_t width : {1u, 7u, 16u, 45u}) {
    const ImagePlan before = compile("flip,invert:1", images(width, 9)),
                    after = compile("invert:1,flip", images(width, 9));
    for (std::uint64_t id = 0; id < 10; ++id) EXPECT_EQ(make(before, id).view, make(after, id).view) << width;
  }
}

TEST(Augment, GivesTheTwoJittersOfAListNumbersOfTheirOwn) {
  const ImagePlan plan = compile("invert,invert", images(8, 8));
  std::map<std::size_t, int> counts;
  for (std::uint64_t id = 0; id < 200; ++id) ++counts[make(plan, id).acts.size()];
  EXPECT_GT(counts[1], 60);  // they do not happen together
}

TEST(Augment, TakesNoMoreMemoryThanThePlanSays) {
  for (const char* const text : kEvery) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      const ImagePlan plan = compile(text, images(60, 45), {}, layout);
      for (std::uint64_t id = 0; id < 20; ++id) {
        std::vector<std::byte> bytes = noise(60 * 45 * 3), slot(plan.outputs()[0].view_bytes);
        Random random(1, 2, id, 0);
        Draw draw;
        ASSERT_TRUE(plan.draw(0, 60, 45, random, draw).ok());
        std::vector<std::byte> memory(plan.working_bytes(0, draw) + 128);
        const std::size_t skip = (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
        Scratch scratch;
        scratch.work_in(std::span(memory).subspan(skip, memory.size() - 64));
        const Result result =
            plan.apply(0, draw, {bytes.data(), 180, 60, 45, 3, DType::u8}, {0, 0, 60, 45}, {}, slot.data(), scratch);
        EXPECT_TRUE(result.ok()) << text << " of sample " << id << ": " << result.cause;
      }
    }
  }
}

TEST(Augment, TextIsReadAsItIsWritten) {
  for (const char* const text : kEvery) {
    const std::string written = to_text(parse_ops(text));
    EXPECT_EQ(to_text(parse_ops(written)), written) << text;
  }
  EXPECT_EQ(to_text(parse_ops("ColorJitter:0.5:hue=0.1")), "color_jitter:0.5..1.5:hue=-0.1..0.1");
  EXPECT_EQ(to_text(parse_ops("randaug:2:9")), "randaug");
  EXPECT_EQ(to_text(parse_ops("random_apply:p=0.25[blur:9,flip:0.1]")), "random_apply:0.25[gaussian_blur:9,flip:0.1]");
}

TEST(Augment, RefusesArgumentsWithTheirRange) {
  EXPECT_EQ(refusal("invert:2", images(8, 8)), "cannot use transform `RandomInvert`: p = 2 is not between 0 and 1");
  EXPECT_EQ(refusal("color_jitter:hue=0.6", images(8, 8)),
            "cannot use transform `ColorJitter`: hue = -0.6 is not between -0.5 and 0.5");
  EXPECT_EQ(refusal("gaussian_blur:4", images(8, 8)),
            "cannot use transform `GaussianBlur`: kernel_size 4 is not one or two odd whole numbers");
  EXPECT_EQ(refusal("random_apply:0.5", images(8, 8)),
            "cannot use transform `RandomApply`: the operations in [brackets] are missing");
  EXPECT_EQ(refusal("color_jitter:0.4", images(8, 8, 4)),
            "cannot use transform `ColorJitter`: it takes gray and RGB images, and these have 4 channels");
}

TEST(Augment, OfAnImageThatIsTooSmallIsABadSample) {
  const ImagePlan plan = compile("gaussian_blur:9,resize:8x8", images(60, 45));
  std::vector<std::byte> bytes = noise(3 * 3 * 3), slot(plan.outputs()[0].view_bytes);
  Random random(1, 2, 3, 0);
  Draw draw;
  ASSERT_TRUE(plan.draw(0, 3, 3, random, draw).ok());
  Scratch scratch;
  const Result result =
      plan.apply(0, draw, {bytes.data(), 9, 3, 3, 3, DType::u8}, {0, 0, 3, 3}, {}, slot.data(), scratch);
  EXPECT_EQ(result.code, Code::mismatch);
}

// An image of one row, whose action is done in place.
std::vector<std::uint8_t> after(std::vector<Action> actions, std::vector<std::uint8_t> row) {
  Scratch scratch;
  Canvas canvas;
  EXPECT_TRUE(canvas.take_from(scratch, row.size()));
  canvas.shape(static_cast<std::uint32_t>(row.size()), 1, 1);
  std::copy(row.begin(), row.end(), canvas.image().data);
  ActionRunner runner(canvas, scratch);
  for (const Action& action : actions) runner.act(action);
  EXPECT_TRUE(runner.finish().ok());
  return {canvas.image().data, canvas.image().data + row.size()};
}

TEST(Actions, OnSingleBytesAreDoneInTheirOrder) {
  Action solarize, invert;
  solarize.what = Act::solarize, solarize.figures[0] = 128;
  invert.what = Act::invert;
  EXPECT_EQ(after({solarize, invert}, {0, 100, 128, 255}), (std::vector<std::uint8_t>{255, 155, 128, 255}));
  EXPECT_EQ(after({invert, solarize}, {0, 100, 128, 255}), (std::vector<std::uint8_t>{0, 100, 127, 0}));
}

TEST(Actions, ContrastMixesWithTheMeanOfWhatCameBefore) {
  Action invert, contrast;
  invert.what = Act::invert;
  contrast.what = Act::contrast;  // factor 0: the mean alone
  EXPECT_EQ(after({invert, contrast}, {255, 255, 255, 55}), (std::vector<std::uint8_t>{50, 50, 50, 50}));
}

}  // namespace
}  // namespace stoker::transform
