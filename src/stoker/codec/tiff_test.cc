#include "stoker/codec/tiff.h"

#include <map>

#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

// A page of 5 x 4 values of 8 bits in strips of 2 rows. Tags may be changed before it is written.
class MadeTiff {
 public:
  std::map<std::uint16_t, std::uint32_t> tags = {{256, 5}, {257, 4}, {258, 8}, {259, 1}, {277, 1}, {278, 2}};
  std::vector<std::uint32_t> offsets = {8, 18}, bytes = {10, 10};

  File file() const {
    File file;
    file.text("II").little(std::uint16_t{42}).little(std::uint32_t{28});
    for (int i = 0; i < 20; ++i) file.bytes({i * 11});
    file.little(static_cast<std::uint16_t>(tags.size() + 2));
    const auto lists = static_cast<std::uint32_t>(28 + 2 + (tags.size() + 2) * 12 + 4);
    for (const auto& [tag, value] : tags) put(file, tag, 1, value);
    put(file, 273, static_cast<std::uint32_t>(offsets.size()), lists);
    put(file, 279, static_cast<std::uint32_t>(bytes.size()), lists + static_cast<std::uint32_t>(offsets.size()) * 4);
    file.little(std::uint32_t{0});
    for (const std::uint32_t value : offsets) file.little(value);
    for (const std::uint32_t value : bytes) file.little(value);
    return file;
  }

 private:
  static void put(File& file, std::uint16_t tag, std::uint32_t count, std::uint32_t value) {
    file.little(tag).little(std::uint16_t{4}).little(count).little(value);
  }
};

struct Read {
  Result result;
  TiffForm form;
  std::vector<std::byte> page;
};

Read read_page(Bytes file) {
  Read read;
  Budget budget(1 << 20);
  Scratch scratch(&budget);
  TiffBytes input(file);
  TiffHeader header;
  TiffPage page;
  read.result = read_tiff_header(input, header);
  if (read.result.ok()) read.result = read_tiff_page(input, header, header.first, page, scratch);
  if (!read.result.ok()) return read;
  read.form = page.form;
  if (page.form.page_bytes() > 1 << 16) return read;
  read.page.resize(page.form.page_bytes());
  scratch.reset();
  read.result = decode_page(page.form, file, read.page.data(), scratch);
  return read;
}

Code code_with(const std::function<void(MadeTiff&)>& change) {
  MadeTiff tiff;
  change(tiff);
  return read_page(tiff.file()).result.code;
}

TEST(Tiff, ReadsStrips) {
  const Read read = read_page(MadeTiff().file());
  ASSERT_TRUE(read.result.ok()) << read.result.cause;
  EXPECT_EQ(read.form.segments(), 2u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(static_cast<int>(read.page[static_cast<std::size_t>(i)]), i * 11 % 256);
}

TEST(Tiff, ALastStripMayBeShort) {
  MadeTiff tiff;
  tiff.tags[278] = 3;
  tiff.bytes = {15, 5};
  tiff.offsets = {8, 23};
  const Read read = read_page(tiff.file());
  ASSERT_TRUE(read.result.ok()) << read.result.cause;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(static_cast<int>(read.page[static_cast<std::size_t>(i)]), i * 11 % 256);
}

TEST(Tiff, AStripWithoutBytesIsZeros) {
  MadeTiff tiff;
  tiff.bytes = {10, 0};
  tiff.offsets = {8, 0};
  const Read read = read_page(tiff.file());
  ASSERT_TRUE(read.result.ok()) << read.result.cause;
  EXPECT_EQ(read.page[9], std::byte{99});
  EXPECT_EQ(read.page[10], std::byte{0});
}

TEST(Tiff, RefusesWhatItDoesNotReadByName) {
  EXPECT_EQ(code_with([](MadeTiff& t) { t.tags[258] = 12; }), Code::unsupported);
  EXPECT_EQ(code_with([](MadeTiff& t) { t.tags[259] = 7; }), Code::unsupported);
  EXPECT_EQ(code_with([](MadeTiff& t) { t.tags[266] = 2; }), Code::unsupported);
  EXPECT_EQ(code_with([](MadeTiff& t) { t.tags[277] = 3, t.tags[284] = 2; }), Code::unsupported);
  EXPECT_EQ(code_with([](MadeTiff& t) { t.tags[259] = 5, t.tags[317] = 3; }), Code::unsupported);
  EXPECT_EQ(code_with([](MadeTiff& t) { t.tags[339] = 6; }), Code::unsupported);
}

TEST(Tiff, SizesThatLieAllocateNothing) {
  EXPECT_NE(code_with([](MadeTiff& t) { t.tags[256] = 0; }), Code::ok);
  EXPECT_NE(code_with([](MadeTiff& t) { t.tags[256] = t.tags[257] = 0xFFFFFFFF; }), Code::ok);
  EXPECT_NE(code_with([](MadeTiff& t) { t.tags[257] = 0x7FFFFFFF; }), Code::ok);
  EXPECT_NE(code_with([](MadeTiff& t) { t.tags[278] = 0; }), Code::ok);
  EXPECT_NE(code_with([](MadeTiff& t) { t.offsets[1] = 0xFFFFFF00; }), Code::ok);
  EXPECT_NE(code_with([](MadeTiff& t) { t.bytes[1] = 0xFFFFFF00; }), Code::ok);
  EXPECT_NE(code_with([](MadeTiff& t) { t.bytes[1] = 9; }), Code::ok);
  EXPECT_NE(code_with([](MadeTiff& t) { t.offsets.pop_back(); }), Code::ok);
  EXPECT_NE(code_with([](MadeTiff& t) { t.tags[277] = 60000; }), Code::ok);
}

TEST(Tiff, EveryTruncationAndEveryFlippedBitHasAVerdict) {
  const File file = MadeTiff().file();
  at_every_truncation(file, [](Bytes part) { EXPECT_FALSE(read_page(part).result.ok()) << part.size(); });
  at_every_flipped_bit(file, [](Bytes bytes) { (void)read_page(bytes); });
}

TEST(Tiff, APageOfAnotherSizeDoesNotFit) {
  const File file = MadeTiff().file();
  TiffForm form = read_page(file).form;
  ++form.width;
  std::vector<std::byte> into(form.page_bytes());
  Scratch scratch;
  EXPECT_EQ(decode_page(form, file, into.data(), scratch).code, Code::mismatch);
}

}  // namespace
}  // namespace stoker::codec
