#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

using Values = std::vector<std::uint8_t>;
using Words = std::vector<std::uint16_t>;

File chunk(std::string_view name, Bytes data) {
  File named;
  named.text(name).bytes(data);
  return File().big32(static_cast<std::uint32_t>(data.size())).bytes(named).big32(crc32(named));
}

struct Kind {
  std::uint32_t width, height;
  int depth, color;
  bool interlaced = false;
};

// `rows` is what the zlib stream holds: each row after its filter byte. `parts` is the number of IDAT chunks.
File png(const Kind& kind, const File& rows, const File& before = {}, std::size_t parts = 1) {
  File header;
  header.big32(kind.width).big32(kind.height).bytes({kind.depth, kind.color, 0, 0, kind.interlaced ? 1 : 0});
  File file;
  file.text("\x89PNG\r\n\x1A\n")
      .bytes(chunk("IHDR", header))
      .bytes(chunk("tEXt", File().text("of no matter")))
      .bytes(before);
  const File stream = deflate_stored(rows, true);
  const Bytes all = stream;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t from = all.size() * i / parts, to = all.size() * (i + 1) / parts;
    file.bytes(chunk("IDAT", all.subspan(from, to - from)));
  }
  return file.bytes(chunk("IEND", {}));
}

Values values(const File& file, Color color = Color::keep) {
  const Image image = decode(file, {.color = color});
  EXPECT_TRUE(image.result.ok()) << image.result.cause;
  return image.bytes;
}

Words words(const File& file, Color color = Color::keep) {
  const Image image = decode(file, {.color = color, .deep = true});
  EXPECT_TRUE(image.result.ok()) << image.result.cause;
  return image.words;
}

constexpr int kGray = 0, kRgb = 2, kPalette = 3, kGrayAlpha = 4, kRgba = 6;

TEST(Png, UndoesEveryFilter) {
  const File rows = File()
                        .bytes({0, 10, 20, 30, 40})  //
                        .bytes({1, 1, 2, 3, 4})      // left: 1 3 6 10
                        .bytes({2, 5, 5, 5, 255})    // above: 6 8 11 9
                        .bytes({3, 10, 10, 10, 10})  // average: 13 20 25 27
                        .bytes({4, 1, 1, 1, 1})      // Paeth: 14 21 26 28
                        .bytes({4, 0, 250, 0, 0});
  // The last row by hand: a=14 first (above); then Paeth(14, 21, 14) = 21 + 250 = 15; Paeth(15, 26, 21) = 21 ->
  // distance |26-21|=5, |15-21|=6, |41-42|=1 -> the corner 21; Paeth(21, 28, 26): 2, 5, 3 -> 21.
  EXPECT_EQ(values(png({4, 6, 8, kGray}, rows)),
            (Values{10, 20, 30, 40, 1, 3, 6, 10, 6, 8, 11, 9, 13, 20, 25, 27, 14, 21, 26, 28, 14, 15, 21, 21}));
}

TEST(Png, TakesTheRowAboveTheFirstAsZero) {
  for (const int filter : {1, 2, 3, 4}) {
    const Values expected = filter == 1 || filter == 4 ? Values{8, 16} : filter == 2 ? Values{8, 8} : Values{8, 12};
    EXPECT_EQ(values(png({2, 1, 8, kGray}, File().bytes({filter, 8, 8}))), expected) << filter;
  }
}

TEST(Png, SpreadsSmallDepthsOverTheWholeRange) {
  EXPECT_EQ(values(png({9, 1, 1, kGray}, File().bytes({0, 0b10110001, 0x80}))),
            (Values{255, 0, 255, 255, 0, 0, 0, 255, 255}));
  EXPECT_EQ(values(png({4, 1, 2, kGray}, File().bytes({0, 0b00011011}))), (Values{0, 85, 170, 255}));
  EXPECT_EQ(values(png({2, 1, 4, kGray}, File().bytes({0, 0x5A}))), (Values{85, 170}));
}

TEST(Png, ConvertsColoursAsPillowDoes) {
  const File rgb = png({2, 1, 8, kRgb}, File().bytes({0, 255, 0, 0, 5, 6, 7}));
  EXPECT_EQ(values(rgb, Color::rgb), (Values{255, 0, 0, 5, 6, 7}));
  EXPECT_EQ(values(rgb, Color::gray), (Values{76, 6}));
  const File rgba = png({1, 1, 8, kRgba}, File().bytes({0, 200, 100, 50, 0}));
  EXPECT_EQ(values(rgba, Color::rgb), (Values{200, 100, 50}));
  EXPECT_EQ(values(rgba, Color::gray), (Values{124}));
  EXPECT_EQ(values(rgba, Color::keep), (Values{200, 100, 50, 0}));
  const File gray_alpha = png({1, 1, 8, kGrayAlpha}, File().bytes({0, 10, 3}));
  EXPECT_EQ(values(gray_alpha, Color::rgb), (Values{10, 10, 10}));
  EXPECT_EQ(values(gray_alpha, Color::gray), (Values{10}));
  EXPECT_EQ(values(gray_alpha, Color::keep), (Values{10, 3}));
}

TEST(Png, ExpandsPalettesAndTheirTransparency) {
  const File palette = chunk("PLTE", File().bytes({10, 20, 30, 40, 50, 60}));
  const File alpha = chunk("tRNS", File().bytes({7}));
  const File rows = File().bytes({0, 0b00011000});  // colours 0, 1, 2, 0: the palette has no colour 2
  EXPECT_EQ(values(png({4, 1, 2, kPalette}, rows, palette)), (Values{10, 20, 30, 40, 50, 60, 0, 0, 0, 10, 20, 30}));
  EXPECT_EQ(values(png({4, 1, 2, kPalette}, rows, palette), Color::gray), (Values{18, 48, 0, 18}));
  EXPECT_EQ(values(png({2, 1, 2, kPalette}, rows, File(palette).bytes(alpha))),
            (Values{10, 20, 30, 7, 40, 50, 60, 255}));
  EXPECT_EQ(values(png({2, 1, 2, kPalette}, rows, File(palette).bytes(alpha)), Color::rgb),
            (Values{10, 20, 30, 40, 50, 60}));
}

TEST(Png, OverlooksTheColourKey) {
  const File key = chunk("tRNS", File().bytes({0, 5, 0, 6, 0, 7}));
  EXPECT_EQ(values(png({1, 1, 8, kRgb}, File().bytes({0, 5, 6, 7}), key)), (Values{5, 6, 7}));
}

TEST(Png, GivesSixteenBitsAsStoredWhenAskedForDepth) {
  const File gray = png({3, 1, 16, kGray}, File().bytes({0, 0, 200, 0x12, 0x34, 0xFF, 0xFF}));
  EXPECT_EQ(words(gray), (Words{200, 0x1234, 0xFFFF}));
  EXPECT_EQ(words(gray, Color::gray), (Words{200, 0x1234, 0xFFFF}));
  EXPECT_EQ(words(gray, Color::rgb), (Words{200, 200, 200, 0x1234, 0x1234, 0x1234, 0xFFFF, 0xFFFF, 0xFFFF}));
  const File rgb = png({1, 1, 16, kRgb}, File().bytes({0, 0x01, 0x02, 0x03, 0x04, 0xFF, 0xFF}));
  EXPECT_EQ(words(rgb, Color::rgb), (Words{0x0102, 0x0304, 0xFFFF}));
  EXPECT_EQ(words(rgb, Color::gray), (Words{(258 * 19595u + 772 * 38470u + 65535 * 7471u + 0x8000u) >> 16}));
  EXPECT_EQ(words(png({1, 1, 16, kRgb}, File().bytes({0, 255, 255, 255, 255, 255, 255})), Color::gray), (Words{65535}));
}

TEST(Png, NarrowsSixteenBitsAsPillowDoes) {
  EXPECT_EQ(values(png({3, 1, 16, kGray}, File().bytes({0, 0, 200, 0x12, 0x34, 0xFF, 0xFF})), Color::gray),
            (Values{200, 255, 255}))
      << "gray is clipped";
  EXPECT_EQ(values(png({1, 1, 16, kRgb}, File().bytes({0, 0x01, 0xFF, 0x03, 0x04, 0xFF, 0xFF})), Color::rgb),
            (Values{1, 3, 255}))
      << "colours keep the high byte";
  EXPECT_EQ(values(png({1, 1, 16, kGrayAlpha}, File().bytes({0, 0x01, 0xFF, 0x03, 0x04})), Color::gray), (Values{1}));
}

TEST(Png, ReadsAdam7) {
  // Pixel (x, y) of a 5 x 3 image is 10 * y + x, pass by pass.
  const File rows = File()
                        .bytes({0, 0})           // pass 1: (0, 0)
                        .bytes({0, 4})           // pass 2: (4, 0)
                        .bytes({0, 2})           // pass 4: (2, 0); pass 3 begins at row 4
                        .bytes({0, 20, 22, 24})  // pass 5: row 2, every second
                        .bytes({0, 1, 3})
                        .bytes({0, 21, 23})               // pass 6: odd columns of even rows
                        .bytes({0, 10, 11, 12, 13, 14});  // pass 7: row 1
  const File file = png({5, 3, 8, kGray, true}, rows);
  EXPECT_EQ(values(file), (Values{0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24}));
  EXPECT_EQ(decode(file, {.color = Color::keep}, {1, 1, 3, 2}).bytes, (Values{11, 12, 13, 21, 22, 23}));
}

TEST(Png, JoinsManyDataChunksAndNeedsNoEnd) {
  const File rows = File().bytes({0, 1, 2, 0, 3, 4});
  File file = png({2, 2, 8, kGray}, rows, {}, 7);
  EXPECT_EQ(values(file), (Values{1, 2, 3, 4}));
  file.cut(file.size() - 12);
  EXPECT_EQ(values(file), (Values{1, 2, 3, 4}));
}

TEST(Png, OverlooksAFewBytesTooManyButNotTooFew) {
  EXPECT_EQ(values(png({2, 1, 8, kGray}, File().bytes({0, 1, 2, 9, 9, 9}))), (Values{1, 2}));
  EXPECT_EQ(decode(png({2, 2, 8, kGray}, File().bytes({0, 1, 2, 0, 3}))).result.code, Code::truncated);
}

TEST(Png, NamesTheChunkThatIsDamaged) {
  File file = png({2, 1, 8, kGray}, File().bytes({0, 1, 2}));
  const std::size_t data = 8 + 25 + 24;  // signature, IHDR, tEXt
  file[data + 10] ^= std::byte{1};
  const Result result = decode(file).result;
  EXPECT_EQ(result.code, Code::corrupt);
  EXPECT_STREQ(result.cause, "a chunk's CRC differs");
  EXPECT_EQ(result.offset, data);
}

TEST(Png, RefusesImpossibleHeaders) {
  const File rows = File().bytes({0, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(decode(png({0, 1, 8, kGray}, rows)).result.code, Code::corrupt);
  EXPECT_EQ(decode(png({1, 1, 3, kGray}, rows)).result.code, Code::corrupt);
  EXPECT_EQ(decode(png({1, 1, 16, kPalette}, rows)).result.code, Code::corrupt);
  EXPECT_EQ(decode(png({1, 1, 4, kRgb}, rows)).result.code, Code::corrupt);
  EXPECT_EQ(decode(png({1, 1, 8, 5}, rows)).result.code, Code::corrupt);
  EXPECT_EQ(decode(png({1, 1, 8, kGray}, File().bytes({5, 1}))).result.code, Code::corrupt) << "an unknown filter";
  EXPECT_EQ(decode(png({1, 1, 8, kGray}, rows, chunk("CgBI", File().bytes({1})))).result.code, Code::unsupported);
}

TEST(Png, RefusesBombsBySize) {
  const File rows = File().bytes({0, 1, 2});
  EXPECT_EQ(decode(png({0x7FFFFFFF, 0x7FFFFFFF, 16, kRgba}, rows)).result.code, Code::too_large);
  const Kind large{30000, 30000, 8, kGray};
  const File file = png(large, rows);
  ImageInfo info;
  ASSERT_TRUE(probe_image(media_named("png"), file, info).ok());
  std::byte pixel;
  Scratch scratch;
  const Pixels into{&pixel, 1, 1, 1, 1, DType::u8};
  const Result result = decode_image(media_named("png"), file, {.color = Color::gray}, {0, 0, 1, 1}, into, scratch);
  EXPECT_EQ(result.code, Code::truncated);
  EXPECT_EQ(scratch.capacity_bytes(), 0u) << "refused before memory was asked for";
}

TEST(Png, RefusesWhatTheBudgetDoesNotAllow) {
  File rows;
  rows.zeros(1001 * 1000);
  const File file = png({1000, 1000, 8, kGray}, rows);
  std::vector<std::byte> into(1000 * 1000);
  Budget budget(300 << 10);
  Scratch scratch(&budget);
  const Pixels pixels{into.data(), 1000, 1000, 1000, 1, DType::u8};
  const Rect all{0, 0, 1000, 1000};
  EXPECT_EQ(decode_image(media_named("png"), file, {.color = Color::gray}, all, pixels, scratch).code, Code::no_memory);
}

TEST(Png, SurvivesEveryTruncationAndFlippedBit) {
  const File palette = File(chunk("PLTE", File().bytes({1, 2, 3, 4, 5, 6}))).bytes(chunk("tRNS", File().bytes({9})));
  const File file =
      png({5, 3, 4, kPalette, true},
          File().bytes({1, 0x10, 2, 0x10, 3, 0x10, 4, 0x11, 0x10, 1, 0x01, 2, 0x10, 4, 1, 2, 0x30}), palette, 2);
  const Image whole = decode(file, {.color = Color::keep});
  ASSERT_TRUE(whole.result.ok()) << whole.result.cause;
  const std::size_t end = file.size() - 12;
  at_every_truncation(file, [&](Bytes part) {
    EXPECT_EQ(decode(part, {.color = Color::keep}).result.ok(), part.size() >= end) << part.size();
  });
  at_every_flipped_bit(file, [&](Bytes damaged) {
    for (const Color color : {Color::rgb, Color::keep}) (void)decode(damaged, {.color = color});
  });
}

}  // namespace
}  // namespace stoker::codec
