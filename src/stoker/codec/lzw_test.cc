#include "stoker/codec/lzw.h"

#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

// Writes codes of the widths that a reader expects, highest bit first.
class CodeWriter {
 public:
  CodeWriter& code(std::uint32_t value, unsigned width = 9) {
    bits_ = bits_ << width | value;
    count_ += width;
    while (count_ >= 8) {
      count_ -= 8;
      file_.bytes({static_cast<int>(bits_ >> count_ & 0xFF)});
    }
    return *this;
  }
  File done() {
    if (count_ > 0) code(0, 8 - count_);
    return file_;
  }

 private:
  File file_;
  std::uint64_t bits_ = 0;
  unsigned count_ = 0;
};

std::string unpacked(Bytes packed, std::size_t room, Result* verdict = nullptr) {
  std::string out(room, '?');
  std::size_t written = 0;
  const Result result = unpack_lzw(packed, std::as_writable_bytes(std::span(out)), written);
  if (verdict != nullptr) *verdict = result;
  return out.substr(0, written);
}

TEST(Lzw, ReadsTheExampleOfTheTiffStandard) {
  // 7 7 7 8 8 7 7 6 6
  const File file = CodeWriter().code(256).code(7).code(258).code(8).code(8).code(258).code(6).code(6).code(257).done();
  EXPECT_EQ(unpacked(file, 100), "\7\7\7\10\10\7\7\6\6");
}

TEST(Lzw, ACodeMayNameWhatItIsAboutToWrite) {
  const File file = CodeWriter().code(256).code('a').code(258).code(259).code(260).code(257).done();
  EXPECT_EQ(unpacked(file, 100), "aaaaaaaaaa");
}

TEST(Lzw, StopsWhereTheRoomEnds) {
  const File file = CodeWriter().code(256).code('a').code(258).code(259).code(260).code(257).done();
  EXPECT_EQ(unpacked(file, 5), "aaaaa");
}

TEST(Lzw, CodesThatAreNotThereYetAreDamage) {
  Result result;
  unpacked(CodeWriter().code(256).code('a').code(300).done(), 100, &result);
  EXPECT_EQ(result.code, Code::corrupt);
  unpacked(CodeWriter().code(256).code(258).done(), 100, &result);
  EXPECT_EQ(result.code, Code::corrupt);
  unpacked(CodeWriter().code(258).done(), 100, &result);
  EXPECT_EQ(result.code, Code::corrupt);
}

TEST(Lzw, AnyBytesEndInsideTheRoom) {
  std::uint32_t state = 1;
  for (int round = 0; round < 200; ++round) {
    File file;
    for (int i = 0; i < 300; ++i) file.bytes({static_cast<int>((state = state * 1664525 + 1013904223) >> 24)});
    EXPECT_LE(unpacked(file, 1000).size(), 1000u);
  }
}

}  // namespace
}  // namespace stoker::codec
