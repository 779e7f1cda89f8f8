#include "stoker/codec/nifti.h"

#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

// A header of version 1, little endian: 7 x 6 x 5 elements of int16.
File header_1() {
  File file;
  file.zeros(352);
  const auto put = [&](std::size_t at, auto value) { std::memcpy(&file[at], &value, sizeof value); };
  put(0, std::int32_t{348});
  const std::int16_t dim[] = {3, 7, 6, 5, 1, 1, 1, 1};
  std::memcpy(&file[40], dim, sizeof dim);
  put(70, std::int16_t{4});
  put(80, 0.5f), put(84, 0.75f), put(88, 3.0f);
  put(108, 352.0f);
  std::memcpy(&file[344], "n+1", 4);
  return file;
}

template <typename T>
File with(File file, std::size_t at, T value) {
  std::memcpy(&file[at], &value, sizeof value);
  return file;
}

Result verdict(Bytes head) {
  NiftiInfo info;
  return probe_nifti(head, info);
}

TEST(Nifti, ReadsAHeader) {
  NiftiInfo info;
  ASSERT_TRUE(probe_nifti(header_1(), info).ok());
  EXPECT_EQ(info.dtype, DType::i16);
  EXPECT_EQ(info.extents, (std::array<std::uint64_t, 3>{5, 6, 7}));
  EXPECT_EQ(info.spacing, (std::array<double, 3>{3, 0.75, 0.5}));
  EXPECT_EQ(info.data_offset, 352u);
  EXPECT_EQ(info.data_bytes, 420u);
  EXPECT_EQ(info.slope, 1);
}

TEST(Nifti, UnitsBecomeMillimetres) {
  NiftiInfo info;
  ASSERT_TRUE(probe_nifti(with(header_1(), 123, std::uint8_t{3}), info).ok());
  EXPECT_DOUBLE_EQ(info.spacing[0], 0.003);
  ASSERT_TRUE(probe_nifti(with(header_1(), 123, std::uint8_t{1}), info).ok());
  EXPECT_DOUBLE_EQ(info.spacing[0], 3000);
}

TEST(Nifti, ASlopeOfZeroIsNone) {
  NiftiInfo info;
  ASSERT_TRUE(probe_nifti(with(header_1(), 116, 5.0f), info).ok());
  EXPECT_EQ(info.intercept, 0);
  ASSERT_TRUE(probe_nifti(with(with(header_1(), 116, 5.0f), 112, 2.0f), info).ok());
  EXPECT_EQ(info.slope, 2);
  EXPECT_EQ(info.intercept, 5);
}

TEST(Nifti, ColoursAreChannels) {
  NiftiInfo info;
  ASSERT_TRUE(probe_nifti(with(header_1(), 70, std::int16_t{128}), info).ok());
  EXPECT_EQ(info.channels, 3u);
  EXPECT_EQ(info.data_bytes, 630u);
}

TEST(Nifti, RefusesWhatItDoesNotReadByName) {
  const std::pair<Result, std::string_view> refused[] = {
      {verdict(with(header_1(), 70, std::int16_t{1})), "elements of one bit"},
      {verdict(with(header_1(), 70, std::int16_t{32})), "complex elements"},
      {verdict(with(with(header_1(), 40, std::int16_t{4}), 48, std::int16_t{2})),
       "a series over time: split it into one file per volume"},
      {verdict(with(with(header_1(), 40, std::int16_t{5}), 50, std::int16_t{3})),
       "an axis beyond x, y, z: split it into one file per volume"},
      {verdict(with(header_1(), 344, std::array<char, 4>{'n', 'i', '1', 0})),
       "a header whose elements are in an .img file: convert it to one .nii"},
      {verdict(with(header_1(), 344, std::uint32_t{0})),
       "an Analyze header without the NIfTI mark: convert it to .nii"}};
  for (const auto& [result, cause] : refused) {
    EXPECT_EQ(result.code, Code::unsupported);
    EXPECT_EQ(result.cause, cause);
  }
}

TEST(Nifti, SizesThatMakeNoSenseAreDamage) {
  EXPECT_EQ(verdict(with(header_1(), 40, std::int16_t{0})).code, Code::corrupt);
  EXPECT_EQ(verdict(with(header_1(), 40, std::int16_t{8})).code, Code::corrupt);
  EXPECT_EQ(verdict(with(header_1(), 42, std::int16_t{-7})).code, Code::corrupt);
  EXPECT_EQ(verdict(with(header_1(), 108, 100.0f)).code, Code::corrupt);
  EXPECT_EQ(verdict(with(header_1(), 108, -1e30f)).code, Code::corrupt);
  EXPECT_EQ(verdict(with(header_1(), 108, std::uint32_t{0x7FC00000})).code, Code::corrupt);
  EXPECT_EQ(verdict(with(header_1(), 70, std::int16_t{99})).code, Code::corrupt);
}

TEST(Nifti, EveryTruncationAndEveryFlippedBitHasAVerdict) {
  const File file = header_1();
  at_every_truncation(Bytes(file).first(348), [](Bytes head) { EXPECT_FALSE(verdict(head).ok()); });
  at_every_flipped_bit(file, [](Bytes head) {
    NiftiInfo info;
    if (probe_nifti(head, info).ok()) {
      EXPECT_GT(info.data_bytes, 0u);
    }
  });
}

}  // namespace
}  // namespace stoker::codec
