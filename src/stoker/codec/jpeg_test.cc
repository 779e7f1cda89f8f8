#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

#include "stoker/base/random.h"
#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

using Values = std::vector<std::uint8_t>;

struct JpegCoding {
  J_COLOR_SPACE stored = JCS_YCbCr;
  int h_sampling = 1, v_sampling = 1;  // of the first component; the others have 1
  bool progressive = false;
  unsigned restart_interval = 0;
};

// `pixels` are width * height * channels interleaved values of the space `given`.
File encode(std::uint32_t width, std::uint32_t height, J_COLOR_SPACE given, Values pixels, const JpegCoding& coding) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_width = width;
  jpeg.image_height = height;
  jpeg.input_components = static_cast<int>(pixels.size() / width / height);
  jpeg.in_color_space = given;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, coding.stored);
  jpeg_set_quality(&jpeg, 100, TRUE);
  jpeg.comp_info[0].h_samp_factor = coding.h_sampling;
  jpeg.comp_info[0].v_samp_factor = coding.v_sampling;
  jpeg.restart_interval = coding.restart_interval;
  if (coding.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  const std::size_t row_bytes = pixels.size() / height;
  while (jpeg.next_scanline < height) {
    JSAMPROW row = pixels.data() + jpeg.next_scanline * row_bytes;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  File file;
  file.bytes(Bytes(reinterpret_cast<const std::byte*>(out), size));
  jpeg_destroy_compress(&jpeg);
  std::free(out);
  return file;
}

// An image of one colour, so that its pixels are known: only the DC coefficient is there.
File flat(std::uint32_t width, std::uint32_t height, J_COLOR_SPACE space, const Values& color,
          bool progressive = false) {
  Values pixels;
  for (std::uint64_t i = 0; i < std::uint64_t{width} * height; ++i) {
    pixels.insert(pixels.end(), color.begin(), color.end());
  }
  return encode(width, height, space, pixels, {.stored = space, .progressive = progressive});
}

File noise(std::uint32_t width, std::uint32_t height, const JpegCoding& coding) {
  Random random(1, 2, 3);
  Values pixels(std::size_t{width} * height * 3);
  for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(random.below(256));
  return encode(width, height, JCS_RGB, pixels, coding);
}

TEST(Jpeg, GivesGrayAndColourAsAsked) {
  const File gray = flat(1, 1, JCS_GRAYSCALE, {77});
  EXPECT_EQ(decode(gray).bytes, (Values{77, 77, 77}));
  EXPECT_EQ(decode(gray, {.color = Color::gray}).bytes, (Values{77}));
  EXPECT_EQ(decode(gray, {.color = Color::keep}).bytes, (Values{77}));
  const File rgb = flat(1, 1, JCS_RGB, {200, 100, 50});
  EXPECT_EQ(decode(rgb).bytes, (Values{200, 100, 50}));
  EXPECT_EQ(decode(rgb, {.color = Color::gray}).bytes, (Values{124}));
  EXPECT_EQ(decode(rgb, {.color = Color::keep, .deep = true}).words, (std::vector<std::uint16_t>{200, 100, 50}));
}

TEST(Jpeg, ConvertsInksAsPillowDoes) {
  // Stored inverted: inks of 55, 155, 205 and 0, then 55 and black of 100.
  EXPECT_EQ(decode(flat(1, 1, JCS_CMYK, {200, 100, 50, 255}), {.color = Color::keep}).bytes, (Values{55, 155, 205, 0}));
  EXPECT_EQ(decode(flat(1, 1, JCS_CMYK, {200, 100, 50, 255})).bytes, (Values{200, 100, 50}));
  // nk = 155; 155 - round(55 * 155 / 255) = 155 - 33
  EXPECT_EQ(decode(flat(1, 1, JCS_CMYK, {200, 200, 200, 155})).bytes, (Values{122, 122, 122}));
}

TEST(Jpeg, WritesOnlyItsRowsAndRespectsTheStride) {
  const File file = flat(5, 4, JCS_RGB, {9, 8, 7});
  Values into(20 * 4, 0xEE);
  Scratch scratch;
  const Pixels pixels{reinterpret_cast<std::byte*>(into.data()), 20, 5, 4, 3, DType::u8};
  ASSERT_TRUE(decode_image(media_named("jpeg"), file, {}, {0, 0, 5, 4}, pixels, scratch).ok());
  for (std::size_t i = 0; i < into.size(); ++i) {
    EXPECT_EQ(into[i], i % 20 < 15 ? 9 - i % 20 % 3 : 0xEE) << i;
  }
}

TEST(Jpeg, GivesTheSamePixelsInARegionAsInTheWhole) {
  const JpegCoding codings[] = {{},
                                {.h_sampling = 2},
                                {.v_sampling = 2},
                                {.h_sampling = 2, .v_sampling = 2},
                                {.h_sampling = 4},
                                {.h_sampling = 2, .v_sampling = 2, .progressive = true},
                                {.h_sampling = 2, .v_sampling = 2, .restart_interval = 3}};
  constexpr std::uint32_t kWidth = 141, kHeight = 117;
  for (const JpegCoding& coding : codings) {
    const File file = noise(kWidth, kHeight, coding);
    const Image whole = decode(file);
    ASSERT_TRUE(whole.result.ok()) << whole.result.cause;
    Random random(4, 5, 6);
    for (int i = 0; i < 150; ++i) {
      const std::uint32_t x = random.below(kWidth), y = random.below(kHeight);
      const std::uint32_t limit = i % 2 == 0 ? 20 : 1000;  // small ones, whose edges matter most, and any
      const Rect region{x, y, 1 + random.below(std::min(limit, kWidth - x)),
                        1 + random.below(std::min(limit, kHeight - y))};
      const Image part = decode(file, {}, region);
      ASSERT_TRUE(part.result.ok()) << part.result.cause;
      for (std::uint32_t row = 0; row < region.height; ++row) {
        ASSERT_EQ(0,
                  std::memcmp(&part.bytes[std::size_t{3} * row * region.width],
                              &whole.bytes[std::size_t{3} * ((y + row) * kWidth + x)], std::size_t{3} * region.width))
            << coding.h_sampling << "x" << coding.v_sampling << " at " << x << "," << y << " row " << row;
      }
    }
  }
}

TEST(Jpeg, DecodesFasterAtAFractionOfTheSize) {
  const File file = flat(33, 17, JCS_RGB, {40, 50, 60});
  for (const std::uint32_t scale : {1u, 2u, 4u, 8u}) {
    const Image whole = decode(file, {.fast = true, .scale = scale});
    ASSERT_TRUE(whole.result.ok()) << whole.result.cause;
    EXPECT_EQ(whole.bytes.size(), 3 * ((33 + scale - 1) / scale) * ((17 + scale - 1) / scale));
    const Rect region{9, 3, 17, 14};
    const Rect decoded = decoded_region(media_named("jpeg"), {.fast = true, .scale = scale}, region);
    const Image part = decode(file, {.fast = true, .scale = scale}, region);
    ASSERT_TRUE(part.result.ok()) << part.result.cause;
    EXPECT_EQ(part.bytes.size(), std::size_t{3} * decoded.width * decoded.height);
    for (std::size_t i = 0; i < part.bytes.size(); ++i) ASSERT_EQ(part.bytes[i], 40 + 10 * (i % 3));
  }
  EXPECT_EQ(decode(file, {.fast = true, .scale = 3}).result.code, Code::unsupported);
}

TEST(Jpeg, RefusesSlotsAndRegionsThatDoNotFit) {
  const File file = flat(8, 8, JCS_RGB, {1, 2, 3});
  Values into(8 * 8 * 3);
  Scratch scratch;
  const auto verdict = [&](const Rect& region, const Pixels& shape) {
    Pixels pixels = shape;
    pixels.data = reinterpret_cast<std::byte*>(into.data());
    return decode_image(media_named("jpeg"), file, {}, region, pixels, scratch).code;
  };
  EXPECT_EQ(verdict({0, 0, 8, 8}, {nullptr, 24, 8, 8, 3, DType::u8}), Code::ok);
  EXPECT_EQ(verdict({1, 0, 8, 8}, {nullptr, 24, 8, 8, 3, DType::u8}), Code::mismatch);
  EXPECT_EQ(verdict({0xFFFFFFFF, 0, 2, 8}, {nullptr, 24, 2, 8, 3, DType::u8}), Code::mismatch);
  EXPECT_EQ(verdict({0, 0, 0, 8}, {nullptr, 24, 0, 8, 3, DType::u8}), Code::mismatch);
  EXPECT_EQ(verdict({0, 0, 8, 8}, {nullptr, 24, 8, 7, 3, DType::u8}), Code::mismatch);
  EXPECT_EQ(verdict({0, 0, 8, 8}, {nullptr, 24, 8, 8, 1, DType::u8}), Code::mismatch);
  EXPECT_EQ(verdict({0, 0, 8, 8}, {nullptr, 24, 8, 8, 3, DType::u16}), Code::mismatch);
  EXPECT_EQ(verdict({0, 0, 8, 8}, {nullptr, 23, 8, 8, 3, DType::u8}), Code::mismatch);
}

TEST(Jpeg, NeverFillsUpATruncatedFile) {
  for (const char* name : {"yuv420.jpg", "progressive.jpg", "gray.jpg", "yuv444-restart.jpg"}) {
    const File file = golden(name);
    at_every_truncation(file, [&](Bytes part) {
      if (part.size() + 2 >= file.size()) return;  // without its end marker it may be whole
      const Result result = decode(part).result;
      EXPECT_FALSE(result.ok()) << name << " cut to " << part.size();
      if (sniff(part) == media_named("jpeg")) {
        EXPECT_EQ(result.code, Code::truncated) << name << " " << result.cause;
      }
    });
  }
}

TEST(Jpeg, SaysWhereTheDataEnds) {
  File file = golden("yuv420.jpg");
  file.cut(700);
  const Result result = decode(file).result;
  EXPECT_EQ(result.code, Code::truncated);
  EXPECT_EQ(result.offset, 700u);
}

TEST(Jpeg, ToleratesWhatPillowToleratesUnlessStrict) {
  File file = golden("yuv420.jpg");
  const Values whole = decode(file).bytes;
  file.bytes({1, 2, 3});
  EXPECT_EQ(decode(file).bytes, whole) << "bytes behind the end";
  File cut = golden("yuv420.jpg");
  cut.cut(700).bytes({0xFF, 0xD9});
  EXPECT_TRUE(decode(cut).result.ok()) << "an end marker too early";
  const Result strict = decode(cut, {.strict = true}).result;
  EXPECT_EQ(strict.code, Code::corrupt);
  EXPECT_NEAR(static_cast<double>(strict.offset), 700, 32) << "libjpeg tells where its block began";
}

TEST(Jpeg, IsSilent) {
  File file = golden("yuv420.jpg");
  file.cut(700).bytes({0xFF, 0xD9});
  testing::internal::CaptureStderr();
  (void)decode(file);
  (void)decode(file, {.strict = true});
  (void)decode(File().text("\xFF\xD8\xFF\xFF\xFF"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Jpeg, RefusesBombsBySize) {
  File file = flat(16, 16, JCS_GRAYSCALE, {1});
  std::size_t frame = 0;
  for (std::size_t i = 0; i + 1 < file.size(); ++i) {
    if (file[i] == std::byte{0xFF} && file[i + 1] == std::byte{0xC0}) frame = i;
  }
  ASSERT_NE(frame, 0u);
  const auto resized = [&](int height, int width) {
    File changed = file;
    changed[frame + 5] = static_cast<std::byte>(height >> 8);
    changed[frame + 6] = static_cast<std::byte>(height & 255);
    changed[frame + 7] = static_cast<std::byte>(width >> 8);
    changed[frame + 8] = static_cast<std::byte>(width & 255);
    return changed;
  };
  EXPECT_EQ(decode(resized(65000, 65000)).result.code, Code::too_large);
  EXPECT_EQ(decode(resized(65535, 16)).result.code, Code::too_large);
  const Image image = decode(resized(2000, 2000));
  EXPECT_EQ(image.result.code, Code::truncated);
  EXPECT_STREQ(image.result.cause, "less data than the image's size needs");
}

TEST(Jpeg, AsksTheBudgetForTheCoefficientsOfProgressiveFiles) {
  const File file = flat(1000, 1000, JCS_GRAYSCALE, {1}, true);
  Values into(1000);
  const Pixels pixels{reinterpret_cast<std::byte*>(into.data()), 1000, 1000, 1, 1, DType::u8};
  const Rect row{0, 0, 1000, 1};
  Budget small(1 << 20), enough(4 << 20);
  Scratch refused(&small), granted(&enough);
  EXPECT_EQ(decode_image(media_named("jpeg"), file, {.color = Color::gray}, row, pixels, refused).code,
            Code::no_memory);
  EXPECT_EQ(decode_image(media_named("jpeg"), file, {.color = Color::gray}, row, pixels, granted).code, Code::ok);
}

TEST(Jpeg, SurvivesEveryFlippedBit) {
  for (const char* name : {"yuv420.jpg", "progressive.jpg"}) {
    const File file = golden(name);
    at_every_flipped_bit(file, [](Bytes damaged) { (void)decode(damaged); });
    at_every_flipped_bit(file, [](Bytes damaged) { (void)decode(damaged, {.strict = true}); });
  }
}

}  // namespace
}  // namespace stoker::codec
