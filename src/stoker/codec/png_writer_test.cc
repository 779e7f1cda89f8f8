// What the writer makes, read by our decoder and by libpng. tests/cli/test_prepare_dicom.py reads it with Pillow.
#include "stoker/codec/png_writer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <gtest/gtest.h>
#include <png.h>

#include "stoker/base/random.h"
#include "stoker/codec/damage_test.h"
#include "stoker/codec/png_filter.h"

namespace stoker::codec {
namespace {

using Slice = std::vector<std::uint16_t>;

// Noise of `spread` values around a ramp; a spread of 65536 is noise alone.
Slice draw_slice(std::uint32_t width, std::uint32_t height, std::uint32_t spread) {
  Random random(width, height, spread);
  Slice slice(std::size_t{width} * height);
  for (std::size_t i = 0; i < slice.size(); ++i) {
    slice[i] = static_cast<std::uint16_t>(32768 + 3 * (i % width) + i / width + random.below(spread));
  }
  return slice;
}

File written(PngWriter& writer, const Slice& slice, std::uint32_t width, std::uint32_t height) {
  Bytes file;
  const Result result = writer.encode_gray16(slice.data(), width, height, file);
  EXPECT_TRUE(result.ok()) << result.cause;
  return File().bytes(file);
}

struct ToRead {
  Bytes rest;
};

void read_rest(png_structp png, png_bytep into, png_size_t size) {
  auto* const file = static_cast<ToRead*>(png_get_io_ptr(png));
  if (size > file->rest.size()) png_error(png, "at the end");
  std::memcpy(into, file->rest.data(), size);
  file->rest = file->rest.subspan(size);
}

// libpng checks every sum of the file, and ends the program where one is wrong.
Slice read_by_libpng(const File& file) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  ToRead reading{file};
  png_set_read_fn(png, &reading, read_rest);
  png_read_info(png, info);
  EXPECT_EQ(png_get_color_type(png, info), PNG_COLOR_TYPE_GRAY);
  EXPECT_EQ(png_get_bit_depth(png, info), 16);
  png_set_swap(png);
  const std::size_t width = png_get_image_width(png, info), height = png_get_image_height(png, info);
  Slice slice(width * height);
  for (std::size_t y = 0; y < height; ++y) png_read_row(png, reinterpret_cast<png_bytep>(&slice[y * width]), nullptr);
  png_read_end(png, nullptr);
  png_destroy_read_struct(&png, &info, nullptr);
  return slice;
}

TEST(PngWriter, OurReaderAndLibpngReadWhatItWroteInEverySize) {
  PngWriter writer;
  for (const std::uint32_t width : {1u, 2u, 3u, 17u, 64u, 301u}) {
    for (const std::uint32_t height : {1u, 2u, 5u, 33u}) {
      for (const std::uint32_t spread : {1u, 40u, 65536u}) {
        const Slice slice = draw_slice(width, height, spread);
        const File file = written(writer, slice, width, height);
        const Image image = decode(file, {.color = Color::keep, .deep = true});
        ASSERT_TRUE(image.result.ok()) << image.result.cause;
        ASSERT_EQ(image.info.bits, 16);
        ASSERT_EQ(image.words, slice) << width << " x " << height << ", spread " << spread;
        ASSERT_EQ(read_by_libpng(file), slice) << width << " x " << height << ", spread " << spread;
      }
    }
  }
}

TEST(PngWriter, EveryLevelHoldsTheSameValues) {
  const Slice slice = draw_slice(128, 64, 50);
  for (const int level : {1, 2, 4, 6, 9, 12}) {
    PngWriter writer(level);
    EXPECT_EQ(decode(written(writer, slice, 128, 64), {.color = Color::keep, .deep = true}).words, slice) << level;
  }
}

TEST(PngWriter, AFlatSliceIsSmall) {
  PngWriter writer;
  EXPECT_LT(written(writer, Slice(512 * 512, 31744), 512, 512).size(), 2000u);
}

TEST(PngWriter, RefusesImagesThatHaveNoPixelsOrTooMany) {
  PngWriter writer;
  Bytes file;
  const Slice one(1);
  EXPECT_EQ(writer.encode_gray16(one.data(), 0, 1, file).code, Code::corrupt);
  EXPECT_EQ(writer.encode_gray16(one.data(), 1u << 20, 1u << 20, file).code, Code::too_large);
}

TEST(PngFilter, UndoingAFilterGivesTheRowBack) {
  for (std::size_t pixels = 1; pixels < 70; ++pixels) {
    Random random(12, 0, pixels);
    const std::size_t step = std::array{1, 2, 3, 4, 6, 8}[random.below(6)], count = pixels * step;
    std::vector<std::uint8_t> row(count), above(count), out(count);
    for (std::uint8_t& byte : row) byte = static_cast<std::uint8_t>(random.below(256));
    for (std::uint8_t& byte : above) byte = static_cast<std::uint8_t>(random.below(256));
    for (std::uint8_t filter = 0; filter < 5; ++filter) {
      const std::uint64_t cost = filter_row(filter, row.data(), above.data(), count, step, out.data());
      std::uint64_t sum = 0;
      for (const std::uint8_t byte : out) sum += std::min<unsigned>(byte, 256u - byte);
      EXPECT_EQ(cost, sum);
      ASSERT_TRUE(unfilter_portable(filter, out.data(), above.data(), count, step));
      ASSERT_EQ(out, row) << "filter " << int{filter} << ", step " << step << ", " << pixels << " pixels";
    }
  }
}

}  // namespace
}  // namespace stoker::codec
