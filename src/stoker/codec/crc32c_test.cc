#include "stoker/codec/crc32c.h"

#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

TEST(Crc32c, HasTheValuesOfTheStandard) {  // RFC 3720, appendix B.4
  EXPECT_EQ(crc32c(File().zeros(32)), 0x8A9136AAu);
  EXPECT_EQ(crc32c(File().text(std::string(32, '\xFF'))), 0x62A8AB43u);
  EXPECT_EQ(crc32c(File().text("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, TheTableGivesWhatTheInstructionGives) {
  File file;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(crc32c(file), crc32c_by_table(file)) << i;
    file.bytes({i * 37 % 251});
  }
}

}  // namespace
}  // namespace stoker::codec
