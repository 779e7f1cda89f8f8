#include "stoker/base/units.h"

#include <gtest/gtest.h>

#include "stoker/base/dtype.h"
#include "stoker/base/error.h"

namespace stoker {
namespace {
using namespace std::chrono_literals;

TEST(Units, ParsesSizesAsPeopleWriteThem) {
  EXPECT_EQ(parse_bytes("65536"), 65536u);
  EXPECT_EQ(parse_bytes("4GB"), 4'000'000'000u);
  EXPECT_EQ(parse_bytes("1.5 GiB"), 3 * kGiB / 2);
  EXPECT_EQ(parse_bytes("64mb"), 64'000'000u);
  for (const char* bad : {"", "-1", "GB", "4XB", "nan", "1e30"}) EXPECT_THROW(parse_bytes(bad), Error) << bad;
}

TEST(Units, ParsesDurations) {
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("1.5"), 1500ms);
  EXPECT_EQ(parse_duration("15d"), 24h * 15);
  EXPECT_THROW(parse_duration("soon"), Error);
}

TEST(Units, FormatsForReading) {
  EXPECT_EQ(format_bytes(7270), "7.1 KiB");
  EXPECT_EQ(format_bytes(12), "12 B");
  EXPECT_EQ(format_bytes(kMiB - 1), "1.0 MiB");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(123), "123");
  EXPECT_EQ(format_rate(121400.4), "121,400");
  EXPECT_EQ(format_rate(3.519), "3.52");
  EXPECT_EQ(format_duration(840us), "840 us");
  EXPECT_EQ(format_duration(1240ms), "1.24 s");
  EXPECT_EQ(format_duration(200s), "3 min 20 s");
  EXPECT_EQ(format_duration(125min), "2 h 5 min");
}

TEST(Units, DTypeNamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name(type)), type);
  }
  EXPECT_EQ(parse_dtype("float8"), std::nullopt);
}

}  // namespace
}  // namespace stoker
