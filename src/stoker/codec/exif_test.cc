#include "stoker/codec/exif.h"

#include <string>

#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

struct Exif {
  bool big = false;
  int type = 3, count = 1, value = 6;
  int tag = 0x0112;
  int directory = 8;
  int entries = 1;
};

void number(File& file, bool big, int bytes, int value) {
  for (int i = 0; i < bytes; ++i) file.bytes({value >> 8 * (big ? bytes - 1 - i : i) & 255});
}

File tiff(const Exif& exif) {
  File file;
  file.text(exif.big ? "MM" : "II");
  number(file, exif.big, 2, 42);
  number(file, exif.big, 4, exif.directory);
  number(file, exif.big, 2, exif.entries);
  for (int i = 0; i < exif.entries; ++i) {
    number(file, exif.big, 2, i + 1 == exif.entries ? exif.tag : 0x0100 + i);
    number(file, exif.big, 2, exif.type);
    number(file, exif.big, 4, exif.count);
    const int size = exif.type == 1 ? 1 : exif.type == 3 || exif.type == 8 ? 2 : 4;
    number(file, exif.big, size, exif.value);
    file.zeros(static_cast<std::size_t>(4 - size));
  }
  number(file, exif.big, 4, 0);
  return file;
}

File segment(int marker, const File& content) {
  const int size = static_cast<int>(content.size()) + 2;
  return File().bytes({0xFF, marker, size >> 8, size & 255}).bytes(content);
}

File with_prefix(std::string_view prefix, const File& content) {
  return File().text(prefix).bytes(content);
}

constexpr std::string_view kExif{"Exif\0\0", 6}, kXmp{"http://ns.adobe.com/xap/1.0/\0", 29};

File jpeg_of(std::initializer_list<File> segments) {
  File file;
  file.bytes({0xFF, 0xD8}).bytes(segment(0xE0, File().text({"JFIF\0\1\1\0\0\1\0\1\0\0", 14})));
  for (const File& each : segments) file.bytes(each);
  return file.bytes({0xFF, 0xDA, 0, 2, 1, 2, 3, 0xFF, 0xD9});
}

File jpeg_with(const Exif& exif) {
  return jpeg_of({segment(0xE1, with_prefix(kExif, tiff(exif)))});
}

int found(const File& jpeg) {
  return static_cast<int>(exif_orientation(media_named("jpeg"), jpeg));
}

TEST(ExifOrientation, IsReadInBothByteOrders) {
  for (int value = 1; value <= 8; ++value) {
    for (const bool big : {false, true}) {
      EXPECT_EQ(found(jpeg_with({.big = big, .value = value})), value);
      EXPECT_EQ(found(jpeg_with({.big = big, .value = value, .entries = 9})), value);
    }
  }
}

TEST(ExifOrientation, MayBeAnyWholeNumberButNoBytesAsInPillow) {
  for (const int type : {3, 4, 8, 9}) {
    EXPECT_EQ(found(jpeg_with({.type = type})), 6) << type;
    EXPECT_EQ(found(jpeg_with({.big = true, .type = type})), 6) << type;
  }
  EXPECT_EQ(found(jpeg_with({.type = 6})), 6);
  const File xmp = segment(0xE1, with_prefix(kXmp, File().text("tiff:Orientation=\"6\"")));
  for (const int type : {1, 2, 7}) {
    const File exif = segment(0xE1, with_prefix(kExif, tiff({.type = type})));
    EXPECT_EQ(found(jpeg_of({exif, xmp})), 1) << type;
  }
}

TEST(ExifOrientation, IsUprightWhereTheFileSaysNothingThatMakesSense) {
  EXPECT_EQ(found(jpeg_of({})), 1);
  for (const int value : {0, 9, 255, 65535}) EXPECT_EQ(found(jpeg_with({.value = value})), 1);
  EXPECT_EQ(found(jpeg_with({.tag = 0x0113})), 1);
  EXPECT_EQ(found(jpeg_with({.count = 0})), 1);
  EXPECT_EQ(found(jpeg_with({.count = 100})), 1) << "values elsewhere";
  EXPECT_EQ(found(jpeg_with({.type = 7})), 1);
  EXPECT_EQ(found(jpeg_with({.directory = 1000})), 1);
  EXPECT_EQ(found(jpeg_with({.directory = -1})), 1) << "beyond 2^31";
  EXPECT_EQ(found(jpeg_of({segment(0xE1, with_prefix(kExif, File().text("XX*")))})), 1);
  EXPECT_EQ(found(jpeg_of({segment(0xE1, with_prefix(kExif, {}))})), 1);
  EXPECT_EQ(exif_orientation(media_named("wav"), jpeg_with({})), Orientation::upright);
}

TEST(ExifOrientation, IsTheFirstBlocksAndStandsBeforeTheScan) {
  const auto block = [](int value) { return segment(0xE1, with_prefix(kExif, tiff({.value = value}))); };
  EXPECT_EQ(found(jpeg_of({block(3), block(8)})), 3);
  File late = jpeg_of({});
  EXPECT_EQ(found(late.bytes(block(3))), 1);
  File filled;
  filled.bytes({0xFF, 0xD8, 0xFF, 0xFF, 0xFF}).bytes(block(5)).bytes({0xFF, 0xDA, 0, 2});
  EXPECT_EQ(found(filled), 5) << "fill bytes before a marker";
  EXPECT_EQ(found(jpeg_of({segment(0xE1, with_prefix(kExif, with_prefix(kExif, tiff({.value = 4}))))})), 4);
}

TEST(ExifOrientation, ComesFromXmpWhereExifHasNone) {
  const auto xmp = [](std::string_view text) { return segment(0xE1, with_prefix(kXmp, File().text(text))); };
  EXPECT_EQ(found(jpeg_of({xmp("<x tiff:Orientation=\"6\"/>")})), 6);
  EXPECT_EQ(found(jpeg_of({xmp("<tiff:Orientation>8</tiff:Orientation>")})), 8);
  EXPECT_EQ(found(jpeg_of({xmp("tiff:Orientation tiff:Orientation=\"x\" tiff:Orientation=\"3\"")})), 3);
  EXPECT_EQ(found(jpeg_of({xmp("tiff:Orientation=\"")})), 1);
  EXPECT_EQ(found(jpeg_of({xmp("tiff:Orientation=\"9\"")})), 1);
  const File exif = segment(0xE1, with_prefix(kExif, tiff({.value = 2})));
  EXPECT_EQ(found(jpeg_of({xmp("tiff:Orientation=\"6\""), exif})), 2);
  const File other = segment(0xE1, with_prefix(kExif, tiff({.tag = 0x0113})));
  EXPECT_EQ(found(jpeg_of({other, xmp("tiff:Orientation=\"6\"")})), 6);
}

TEST(ExifOrientation, OfAPngIsThatOfItsExifChunk) {
  File file = golden("rgb.png");
  EXPECT_EQ(exif_orientation(media_named("png"), file), Orientation::upright);
  const File exif = tiff({.big = true, .value = 7});
  File turned;
  turned.bytes(Bytes(file).first(33)).big32(static_cast<std::uint32_t>(exif.size())).text("eXIf").bytes(exif);
  turned.big32(0).bytes(Bytes(file).subspan(33));
  EXPECT_EQ(exif_orientation(media_named("png"), turned), Orientation::transversed);
}

TEST(ExifOrientation, SurvivesEveryCutAndEveryFlippedBit) {
  const File file = jpeg_of({segment(0xE1, with_prefix(kExif, tiff({.entries = 3}))),
                             segment(0xE1, with_prefix(kXmp, File().text("tiff:Orientation=\"6\"")))});
  const auto is_one = [](Media media, Bytes bytes) {
    const int value = static_cast<int>(exif_orientation(media, bytes));
    EXPECT_TRUE(value >= 1 && value <= 8) << value;
  };
  at_every_truncation(file, [&](Bytes part) { is_one(media_named("jpeg"), part); });
  at_every_flipped_bit(file, [&](Bytes damaged) { is_one(media_named("jpeg"), damaged); });
  File png;
  png.text("\x89PNG\r\n\x1A\n").big32(30).text("eXIf").bytes(tiff({})).big32(0).big32(0).text("IEND").big32(0);
  at_every_truncation(png, [&](Bytes part) { is_one(media_named("png"), part); });
  at_every_flipped_bit(png, [&](Bytes damaged) { is_one(media_named("png"), damaged); });
}

// ---- turning

// The stored pixel that shows at (x, y), as Pillow's transpose has it.
std::pair<std::uint32_t, std::uint32_t> stored_at(int orientation, std::uint32_t x, std::uint32_t y,
                                                  std::uint32_t width, std::uint32_t height) {
  switch (orientation) {
    case 2:
      return {width - 1 - x, y};
    case 3:
      return {width - 1 - x, height - 1 - y};
    case 4:
      return {x, height - 1 - y};
    case 5:
      return {y, x};
    case 6:
      return {y, height - 1 - x};
    case 7:
      return {width - 1 - y, height - 1 - x};
    case 8:
      return {width - 1 - y, x};
    default:
      return {x, y};
  }
}

TEST(TurnUpright, PutsEveryPixelOfAnyRectangleWhereItBelongs) {
  constexpr std::uint32_t kWidth = 45, kHeight = 38;
  for (int number = 1; number <= 8; ++number) {
    const auto orientation = static_cast<Orientation>(number);
    const bool exchanged = exchanges_sides(orientation);
    const std::uint32_t width = exchanged ? kHeight : kWidth, height = exchanged ? kWidth : kHeight;
    for (const Rect& upright : {Rect{0, 0, width, height}, Rect{5, 3, 20, 17}, Rect{width - 1, height - 1, 1, 1}}) {
      const Rect part = stored_rect(orientation, upright, kWidth, kHeight);
      const Corner corner =
          upright_corner(orientation, {part.x, part.y, part.x + part.width, part.y + part.height}, kWidth, kHeight);
      ASSERT_EQ(corner.x, upright.x);
      ASSERT_EQ(corner.y, upright.y);
      ASSERT_EQ(part.width, exchanged ? upright.height : upright.width);
      for (const std::uint8_t channels : {1, 2, 3, 4}) {
        for (const DType dtype : {DType::u8, DType::u16}) {
          // Each pixel says where it was.
          const std::size_t pixel = channels * size_of(dtype);
          const auto value = [&](std::uint32_t x, std::uint32_t y, std::size_t i) {
            return static_cast<std::uint8_t>(x * 31 + y * 7 + i * 101);
          };
          Pixels stored{nullptr, 0, part.width, part.height, channels, dtype};
          stored.stride_bytes = stored.row_bytes() + 5;
          std::vector<std::uint8_t> from(stored.stride_bytes * part.height);
          for (std::uint32_t y = 0; y < part.height; ++y) {
            for (std::uint32_t x = 0; x < part.width; ++x) {
              for (std::size_t i = 0; i < pixel; ++i) {
                from[y * stored.stride_bytes + x * pixel + i] = value(part.x + x, part.y + y, i);
              }
            }
          }
          Pixels into{nullptr, 0, upright.width, upright.height, channels, dtype};
          into.stride_bytes = into.row_bytes();
          std::vector<std::uint8_t> to(into.stride_bytes * into.height);
          stored.data = reinterpret_cast<std::byte*>(from.data());
          into.data = reinterpret_cast<std::byte*>(to.data());
          turn_upright(orientation, stored, into);
          for (std::uint32_t y = 0; y < upright.height; ++y) {
            for (std::uint32_t x = 0; x < upright.width; ++x) {
              const auto [a, b] = stored_at(number, upright.x + x, upright.y + y, kWidth, kHeight);
              for (std::size_t i = 0; i < pixel; ++i) {
                ASSERT_EQ(to[y * into.stride_bytes + x * pixel + i], value(a, b, i)) << number << " " << x << "," << y;
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace stoker::codec
