// Operations on patches. python/tests/test_volume_transforms.py compares their values with MONAI's.
#include "stoker/transform/volume_plan.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/transform/golden_test.h"
#include "stoker/transform/without_wide_kernels_test.h"

namespace stoker::transform {
namespace {

VolumeInput patches_of(const PatchEdges& patch, DType dtype = DType::f32, std::uint32_t channels = 1) {
  return {.patch = patch, .image = {channels, dtype}, .mask = {1, DType::u8}};
}

VolumePlan plan_of(std::string_view text, const VolumeInput& input) {
  return VolumePlan::compile(text.empty() ? Ops() : parse_ops(text), input);
}

std::string fault(std::string_view text, const VolumeInput& input) {
  try {
    (void)plan_of(text, input);
  } catch (const Error& error) {
    return error.message();
  }
  ADD_FAILURE() << text << " was not refused";
  return {};
}

struct Patch {
  std::vector<float> image;
  std::vector<std::uint8_t> mask;
};
Patch changed(const VolumePlan& plan, const VolumeInput& input, std::uint64_t key) {
  const std::size_t voxels = std::size_t{input.patch[0]} * input.patch[1] * input.patch[2];
  Patch patch{make_floats(3, voxels * input.image.channels), make_bytes(4, voxels)};
  std::vector<std::byte> memory(plan.working_bytes() + 256);
  const std::size_t skip = (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  Scratch scratch;
  scratch.work_in(std::span(memory).subspan(skip, memory.size() - 64));
  const Result result = plan.apply(key, reinterpret_cast<std::byte*>(patch.image.data()),
                                   reinterpret_cast<std::byte*>(patch.mask.data()), scratch);
  EXPECT_TRUE(result.ok()) << result.cause;
  return patch;
}

TEST(VolumePlan, IsTheSameWithAndWithoutWideKernels) {
  const VolumeInput input = patches_of({9, 20, 20}, DType::f32, 2);
  const VolumePlan plan = plan_of(
      "rand_flip:0.5,rand_affine:0.9:-0.3+0.3+-0.3+0.3+-0.3+0.3:-0.1+0.1:-5+5+-5+5:-0.2+0.2,rand_rotate90:0.5:3:1+2,"
      "rand_affine:0.5:translate_range=-9+9:padding_mode=zeros,gaussian_noise:0.5,adjust_contrast:0.5",
      input);
  for (std::uint64_t key = 0; key < 30; ++key) {
    const Patch wide = changed(plan, input, key);
    const WithoutWideKernels without;
    const Patch narrow = changed(plan, input, key);
    ASSERT_EQ(wide.mask, narrow.mask) << key;
    ASSERT_EQ(std::memcmp(wide.image.data(), narrow.image.data(), wide.image.size() * sizeof(float)), 0) << key;
  }
}

TEST(VolumePlan, FourQuarterTurnsAndTwoFlipsAreNone) {
  const VolumeInput input = patches_of({12, 12, 12});
  const Patch plain = changed(plan_of("", input), input, 1);
  for (const char* const axes : {"0+1", "1+0", "1+2", "0+2", "-1+-2"}) {
    const std::string once = std::string("rand_rotate90:1:1:") + axes;
    const std::string four = once + "," + once + "," + once + "," + once;
    EXPECT_EQ(changed(plan_of(four, input), input, 1).image, plain.image) << axes;
    EXPECT_NE(changed(plan_of(once, input), input, 1).image, plain.image) << axes;
  }
  EXPECT_EQ(changed(plan_of("rand_flip:1,rand_flip:1:0+1+2", input), input, 1).image, plain.image);
}

TEST(VolumePlan, AnAffineOfNothingChangesNothing) {
  const VolumeInput input = patches_of({5, 6, 7});
  const Patch plain = changed(plan_of("", input), input, 1);
  for (const char* const text : {"rand_affine:1", "rand_affine:1:mode=nearest", "rand_affine:1:padding_mode=zeros"}) {
    const Patch same = changed(plan_of(text, input), input, 1);
    EXPECT_EQ(same.image, plain.image) << text;
    EXPECT_EQ(same.mask, plain.mask) << text;
  }
}

TEST(VolumePlan, ShiftsByWholeVoxelsAndShowsWhatIsAskedForBeyond) {
  const VolumeInput input = patches_of({1, 1, 4});
  const auto shifted = [&](const char* beyond) {
    std::vector<float> row = {1, 2, 3, 4};
    Scratch scratch;
    const VolumePlan plan =
        plan_of(std::string("rand_affine:1:translate_range=0+0+0+0+2+2:padding_mode=") + beyond, input);
    EXPECT_TRUE(plan.apply(0, reinterpret_cast<std::byte*>(row.data()), nullptr, scratch).ok());
    return row;
  };
  EXPECT_EQ(shifted("reflection"), (std::vector<float>{3, 4, 4, 3}));
  EXPECT_EQ(shifted("border"), (std::vector<float>{3, 4, 4, 4}));
  EXPECT_EQ(shifted("zeros"), (std::vector<float>{3, 4, 0, 0}));
}

TEST(VolumePlan, DrawsEachOperationFromAStreamOfItsOwn) {
  const VolumeInput input = patches_of({8, 8, 8});
  const VolumePlan alone = plan_of("rand_affine:1:-1+1", input);
  const VolumePlan among = plan_of("rand_flip:0.5,rand_rotate90:0.5,rand_affine:1:-1+1", input);
  for (std::uint64_t key = 0; key < 20; ++key)
    EXPECT_EQ(alone.actions(key).back().affine.rotate, among.actions(key).back().affine.rotate);
  EXPECT_NE(VolumePlan::key_of(1, 2, 3), VolumePlan::key_of(1, 3, 3));
}

TEST(VolumePlan, RefusesImpossibleListsInOneSentence) {
  const VolumeInput words = patches_of({8, 8, 9}, DType::i16);
  VolumeInput grid = patches_of({8, 8, 8});
  grid.is_grid = true;
  EXPECT_EQ(fault("rand_affine", words),
            "cannot use transform `RandAffine`: it computes float32, and patches leave as int16");
  EXPECT_EQ(fault("gaussian_noise", words),
            "cannot use transform `RandGaussianNoise`: it computes float32, and patches leave as int16");
  EXPECT_EQ(fault("rand_rotate90:1:3:1+2", words),
            "cannot use transform `RandRotate90`: it exchanges the axes 1 and 2 of a patch of 8x8x9, which differ in "
            "length");
  EXPECT_EQ(fault("rand_flip", grid),
            "cannot use transform `RandFlip`: it moves voxels, and patches of a grid are put back where they were");
  EXPECT_EQ(fault("rrc:8", words), "cannot use transform `RandomResizedCrop`: patches of volumes do not take it");
  EXPECT_EQ(fault("rand_rotate90:1:3:1", words),
            "cannot use transform `RandRotate90`: spatial_axes 1 is not two of 0, 1 and 2");
  EXPECT_EQ(fault("rand_rotate90:1:3:2+-1", words),
            "cannot use transform `RandRotate90`: spatial_axes 2, -1 is not two of 0, 1 and 2");
  EXPECT_EQ(fault("rand_affine:1:0.1", words),
            "cannot use transform `RandAffine`: rotate_range is not a low and a high for each of up to 3 numbers");
  EXPECT_EQ(fault("rand_affine:1:scale_range=-1+1", words),
            "cannot use transform `RandAffine`: scale_range -1 makes a scale of 0 or less");
  EXPECT_EQ(fault("rand_affine:1:mode=bicubic", words),
            "cannot use transform `RandAffine`: mode is bilinear or nearest");
}

}  // namespace
}  // namespace stoker::transform
