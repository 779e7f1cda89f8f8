#include "stoker/dicom/values.h"

#include <gtest/gtest.h>

namespace stoker::dicom {
namespace {

using Values = std::vector<std::uint16_t>;

struct Rescaled {
  std::string error;
  std::vector<int> hu;
};

Rescaled rescaled(const Values& stored, const StoredAs& as, double slope, double intercept) {
  Values out(stored.size());
  Rescaled result;
  result.error = rescale(std::as_bytes(std::span(stored)), as, slope, intercept, out.data(), out.size());
  for (const std::uint16_t value : out) result.hu.push_back(value - kHuOffset);
  return result;
}

TEST(DicomValues, AddsTheIntercept) {
  EXPECT_EQ(rescaled({0, 1024, 4095}, {.bits_stored = 12}, 1, -1024).hu, (std::vector<int>{-1024, 0, 3071}));
}

TEST(DicomValues, ExtendsTheSignFromTheHighestStoredBit) {
  const Values stored = {0x0FFF, 0x0800, 0x07FF};
  EXPECT_EQ(rescaled(stored, {.bits_stored = 12, .is_signed = true}, 1, 0).hu, (std::vector<int>{-1, -2048, 2047}));
  EXPECT_EQ(rescaled(stored, {.bits_stored = 12}, 1, 0).hu, (std::vector<int>{4095, 2048, 2047}));
}

TEST(DicomValues, DropsBitsAboveTheStoredOnes) {
  EXPECT_EQ(rescaled({0xF001}, {.bits_stored = 12}, 1, 0).hu, (std::vector<int>{1}));  // overlays lived there once
}

TEST(DicomValues, RoundsHalvesToTheEvenNumber) {
  EXPECT_EQ(rescaled({1, 3, 5}, {}, 0.5, 0).hu, (std::vector<int>{0, 2, 2}));
}

TEST(DicomValues, SwapsBigEndianWords) {
  EXPECT_EQ(rescaled({0x0100}, {.is_big_endian = true}, 1, 0).hu, (std::vector<int>{1}));
}

TEST(DicomValues, ReadsBytesAndPairsOfBytes) {
  const std::array<std::byte, 4> stored = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{255}};
  Values out(4);
  ASSERT_EQ(rescale(stored, {.bits_allocated = 8, .bits_stored = 8}, 1, 0, out.data(), 4), "");
  EXPECT_EQ(out, (Values{32769, 32770, 32771, 33023}));
  ASSERT_EQ(rescale(stored, {.bits_allocated = 8, .bits_stored = 8, .are_pairs_swapped = true}, 1, 0, out.data(), 4),
            "");
  EXPECT_EQ(out, (Values{32770, 32769, 33023, 32771}));
}

TEST(DicomValues, NamesAValueThatDoesNotFit) {
  EXPECT_EQ(rescaled({5, 40000}, {}, 1, 0).error, "the value 40000 of pixel 1 is outside -32768 to 32767");
  EXPECT_NE(rescaled({5}, {}, -20000, 0).error, "");
  EXPECT_EQ(rescaled({32767}, {}, 1, 0).error, "");
}

TEST(DicomValues, RefusesTooFewBytes) {
  Values out(4);
  EXPECT_NE(rescale({}, {}, 1, 0, out.data(), 4), "");
}

}  // namespace
}  // namespace stoker::dicom
