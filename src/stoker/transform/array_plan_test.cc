#include "stoker/transform/array_plan.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/transform/golden_test.h"
#include "stoker/transform/half.h"
#include "stoker/transform/plans_test.h"

namespace stoker::transform {
namespace {

template <typename T>
std::vector<std::byte> make_array(const ArrayPlan& plan, const std::vector<T>& values) {
  std::vector<std::byte> slot(plan.output().view_bytes);
  EXPECT_TRUE(plan.apply(reinterpret_cast<const std::byte*>(values.data()), slot.data()).ok());
  return slot;
}

TEST(ArrayPlan, CopiesArraysAsTheyAre) {
  const ArrayPlan plan = compile("", arrays(DType::i32, {2, 2}));
  EXPECT_TRUE(plan.is_copy());
  const std::vector<std::int32_t> values = {1, -2, 3, 1 << 30};
  EXPECT_EQ(as<std::int32_t>(make_array(plan, values)), values);
}

TEST(ArrayPlan, ConvertsArraysToFloat) {
  EXPECT_EQ(as<float>(make_array(compile("tofloat", arrays(DType::u8, {3})), std::vector<std::uint8_t>{0, 51, 255})),
            (std::vector<float>{0, 51.0F / 255.0F, 1}));
  EXPECT_EQ(as<float>(make_array(compile("tofloat", arrays(DType::u16, {2})), std::vector<std::uint16_t>{0, 65535})),
            (std::vector<float>{0, 1}));
  EXPECT_EQ(as<float>(make_array(compile("", arrays(DType::i16, {2}), DType::f32), std::vector<std::int16_t>{-7, 300})),
            (std::vector<float>{-7, 300}));
  const std::vector<float> many = make_floats(1, 5000);
  const auto halves = as<std::uint16_t>(make_array(compile("", arrays(DType::f32, {5000}), DType::f16), many));
  for (std::size_t i = 0; i < many.size(); ++i) ASSERT_EQ(halves[i], to_float16(many[i]));
  const auto back = as<float>(make_array(compile("", arrays(DType::f16, {5000}), DType::f32), halves));
  for (std::size_t i = 0; i < many.size(); ++i) ASSERT_NEAR(back[i], many[i], 0x1p-11);
}

TEST(ArrayPlan, RefusesImageOperationsOnArrays) {
  EXPECT_EQ(refusal("rrc:8", arrays(DType::f32, {64, 64})),
            "cannot use transform `RandomResizedCrop`: these samples are float32 arrays [64, 64], which take ToFloat "
            "or dtype alone");
  EXPECT_EQ(refusal("tofloat", arrays(DType::i32, {4})),
            "cannot use transform `ToFloat`: it takes uint8, uint16, int16 and float arrays, and these are int32");
  EXPECT_EQ(refusal("", arrays(DType::f32, {4}), DType::u8), "cannot give float32 arrays as uint8");
  EXPECT_EQ(refusal("tofloat", arrays(DType::u8, {4}), DType::u8),
            "cannot give arrays as uint8: ToFloat makes them float");
}

TEST(ArrayPlan, Int16ArraysBecomeFloatsAsAudioDoes) {
  const ArrayPlan plan = compile("tofloat", arrays(DType::i16, {3}));
  const std::int16_t from[] = {-32768, 0, 16384};
  float slot[3];
  ASSERT_TRUE(plan.apply(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(slot)).ok());
  EXPECT_EQ(slot[0], -1.0F);
  EXPECT_EQ(slot[1], 0.0F);
  EXPECT_EQ(slot[2], 0.5F);
}

TEST(ArrayPlan, DescribesItselfInOneLine) {
  EXPECT_EQ(compile("", arrays(DType::i16, {3, 4})).describe(), "int16 [3, 4]");
  EXPECT_EQ(compile("tofloat", arrays(DType::u8, {4})).describe(), "to [0, 1] -> float32 [4]");
}

}  // namespace
}  // namespace stoker::transform
