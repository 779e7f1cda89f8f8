// Our PNG decoder against libpng, on files that libpng writes here: every colour type and depth, every filter,
// interlaced or not, in sizes that leave parts of vectors and empty passes over.
#include <cstring>

#include <gtest/gtest.h>
#include <png.h>

#include "stoker/base/random.h"
#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

struct PngCoding {
  std::uint32_t width, height;
  int color, depth;
  bool interlaced;
  int filters;  // as png_set_filter takes them
  bool transparent;
};

void write_to_file(png_structp png, png_bytep data, png_size_t size) {
  static_cast<File*>(png_get_io_ptr(png))->bytes(Bytes(reinterpret_cast<const std::byte*>(data), size));
}

// Random content, with runs so that every filter is of use.
File encode(const PngCoding& coding) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  File file;
  png_set_write_fn(png, &file, write_to_file, nullptr);
  png_set_IHDR(png, info, coding.width, coding.height, coding.depth, coding.color,
               coding.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  Random random(coding.width, coding.height, static_cast<std::uint64_t>(coding.color * 100 + coding.depth));
  if (coding.color == PNG_COLOR_TYPE_PALETTE) {
    std::vector<png_color> palette(std::size_t{1} << coding.depth);
    std::vector<png_byte> alpha(palette.size() / 2 + 1);
    for (png_color& c : palette) {
      c = {static_cast<png_byte>(random.below(256)), static_cast<png_byte>(random.below(256)),
           static_cast<png_byte>(random.below(256))};
    }
    for (png_byte& a : alpha) a = static_cast<png_byte>(random.below(256));
    png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
    if (coding.transparent) png_set_tRNS(png, info, alpha.data(), static_cast<int>(alpha.size()), nullptr);
  }
  png_set_filter(png, PNG_FILTER_TYPE_BASE, coding.filters);
  png_write_info(png, info);
  const std::size_t row_bytes = png_get_rowbytes(png, info);
  std::vector<std::vector<png_byte>> rows(coding.height, std::vector<png_byte>(row_bytes));
  std::vector<png_bytep> pointers;
  for (auto& row : rows) {
    png_byte value = 0;
    for (png_byte& byte : row) {
      if (random.below(3) != 0) value = static_cast<png_byte>(random.below(256));
      byte = value;
    }
    pointers.push_back(row.data());
  }
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

struct Unread {
  Bytes rest;
};

void read_from_file(png_structp png, png_bytep into, png_size_t size) {
  auto* const unread = static_cast<Unread*>(png_get_io_ptr(png));
  if (size > unread->rest.size()) png_error(png, "at the end");
  std::memcpy(into, unread->rest.data(), size);
  unread->rest = unread->rest.subspan(size);
}

// Small depths spread to 8 bits, palettes looked up; samples of 16 bits in the machine's order.
std::vector<png_byte> libpngs(const File& file) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  Unread unread{file};
  png_set_read_fn(png, &unread, read_from_file);
  png_read_info(png, info);
  if (png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE) {
    png_set_palette_to_rgb(png);
    if (png_get_valid(png, info, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(png);
  } else if (png_get_bit_depth(png, info) < 8) {
    png_set_expand_gray_1_2_4_to_8(png);
  }
  if (png_get_bit_depth(png, info) == 16) png_set_swap(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const std::size_t row_bytes = png_get_rowbytes(png, info), height = png_get_image_height(png, info);
  std::vector<png_byte> pixels(row_bytes * height);
  std::vector<png_bytep> pointers;
  for (std::size_t y = 0; y < height; ++y) pointers.push_back(pixels.data() + y * row_bytes);
  png_read_image(png, pointers.data());
  png_destroy_read_struct(&png, &info, nullptr);
  return pixels;
}

std::vector<png_byte> ours(const File& file, bool deep) {
  const Image image = decode(file, {.color = Color::keep, .deep = deep});
  EXPECT_TRUE(image.result.ok()) << image.result.cause;
  if (!deep) return image.bytes;
  std::vector<png_byte> bytes(image.words.size() * 2);
  if (!bytes.empty()) std::memcpy(bytes.data(), image.words.data(), bytes.size());
  return bytes;
}

class PngReference : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(PngReference, EveryFilterSizeAndInterlaceGivesLibpngsPixels) {
  const auto [color, depth] = GetParam();
  constexpr std::uint32_t kSizes[][2] = {{1, 1}, {3, 5}, {4, 1}, {1, 9}, {17, 9}, {33, 31}, {100, 7}, {131, 40}};
  constexpr int kFilters[] = {PNG_FILTER_NONE, PNG_FILTER_SUB,   PNG_FILTER_UP,
                              PNG_FILTER_AVG,  PNG_FILTER_PAETH, PNG_ALL_FILTERS};
  for (const auto& [width, height] : kSizes) {
    for (const int filters : kFilters) {
      for (const bool interlaced : {false, true}) {
        for (const bool transparent : {false, true}) {
          if (transparent && color != PNG_COLOR_TYPE_PALETTE) continue;
          const File file = encode({width, height, color, depth, interlaced, filters, transparent});
          ASSERT_EQ(ours(file, depth == 16), libpngs(file))
              << width << " x " << height << ", filters " << filters << (interlaced ? ", interlaced" : "");
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryKind, PngReference,
                         testing::Values(std::pair(PNG_COLOR_TYPE_GRAY, 1), std::pair(PNG_COLOR_TYPE_GRAY, 2),
                                         std::pair(PNG_COLOR_TYPE_GRAY, 4), std::pair(PNG_COLOR_TYPE_GRAY, 8),
                                         std::pair(PNG_COLOR_TYPE_GRAY, 16), std::pair(PNG_COLOR_TYPE_RGB, 8),
                                         std::pair(PNG_COLOR_TYPE_RGB, 16), std::pair(PNG_COLOR_TYPE_PALETTE, 1),
                                         std::pair(PNG_COLOR_TYPE_PALETTE, 2), std::pair(PNG_COLOR_TYPE_PALETTE, 4),
                                         std::pair(PNG_COLOR_TYPE_PALETTE, 8), std::pair(PNG_COLOR_TYPE_GRAY_ALPHA, 8),
                                         std::pair(PNG_COLOR_TYPE_GRAY_ALPHA, 16),
                                         std::pair(PNG_COLOR_TYPE_RGB_ALPHA, 8),
                                         std::pair(PNG_COLOR_TYPE_RGB_ALPHA, 16)));

}  // namespace
}  // namespace stoker::codec
