// Files that other programs wrote, and what other programs read in them: Pillow's pixels and soundfile's samples, as
// hashes. tests/formats/make.py made the files and printed the tables.
#include <gtest/gtest.h>

#include "stoker/base/hash.h"
#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

struct GoldenImage {
  const char* name;
  std::uint32_t width, height;
  std::uint8_t channels;
  std::uint64_t rgb, gray, keep;
};

constexpr GoldenImage kImages[] = {
    {"yuv420.jpg", 35, 21, 3, 0x9FE3F57ED0A75DB3, 0x4EC482FDE585C0CA, 0x9FE3F57ED0A75DB3},
    {"yuv422.jpg", 35, 21, 3, 0x1F8CD5946BBA8BA8, 0x4EC482FDE585C0CA, 0x1F8CD5946BBA8BA8},
    {"yuv444-restart.jpg", 35, 21, 3, 0x4D22BFCEA33A956A, 0x4EC482FDE585C0CA, 0x4D22BFCEA33A956A},
    {"progressive.jpg", 35, 21, 3, 0x9FE3F57ED0A75DB3, 0x4EC482FDE585C0CA, 0x9FE3F57ED0A75DB3},
    {"rgb.jpg", 35, 21, 3, 0x68903D3BA87265A3, 0x5671FF4A66B3B92E, 0x68903D3BA87265A3},
    {"gray.jpg", 35, 21, 1, 0x5664EE2BBC57BC4B, 0x5A8A3104CAF5B1E8, 0x5A8A3104CAF5B1E8},
    {"cmyk.jpg", 35, 21, 4, 0x8C312CB4FAE21024, 0xFDE96408220DD97A, 0xE6F1AB596118B0F2},
    {"rgb.png", 35, 21, 3, 0x5328F4B056CF27D3, 0x7140E66050C27600, 0x5328F4B056CF27D3},
    {"rgba.png", 35, 21, 4, 0xFE470C4134EC3A67, 0x90EB6880C4072741, 0xD9636881F686E711},
    {"gray-alpha.png", 35, 21, 2, 0x84266002F0A36020, 0x90EB6880C4072741, 0xD56ABA769742FCC7},
    {"bilevel.png", 35, 21, 1, 0x93DF71F55108C39C, 0x11AFADDA819DA1AF, 0x11AFADDA819DA1AF},
    {"palette.png", 35, 21, 3, 0x1331473270F76B7C, 0xF042E08037BA717A, 0x1331473270F76B7C},
    {"palette-alpha.png", 35, 21, 4, 0x1331473270F76B7C, 0xF042E08037BA717A, 0xA06488FAAAA6B749},
    {"gray16.png", 11, 9, 1, 0x52B85773DB2B7393, 0xB2FC54BCC7C3942C, 0xB2FC54BCC7C3942C},
#if defined(STOKER_WEBP)
    {"lossy.webp", 35, 21, 3, 0x30C411F0AEFF6DC9, 0x792BBE97CC86F08D, 0x30C411F0AEFF6DC9},
    {"lossless-alpha.webp", 35, 21, 4, 0xFE470C4134EC3A67, 0x90EB6880C4072741, 0xD9636881F686E711},
#endif
};

struct GoldenAudio {
  const char* name;
  std::uint32_t channels;
  std::uint64_t frames, samples;
};

constexpr GoldenAudio kAudio[] = {
    {"pcm-u8.wav", 2, 50, 0x858D3E8376B029E7},       {"pcm-s16.wav", 2, 50, 0x671353B46E913269},
    {"pcm-s24.wav", 2, 50, 0xAA085A50CF5C7625},      {"pcm-s32.wav", 2, 50, 0xCA3F31937E0D886F},
    {"float32.wav", 2, 50, 0x5657EEAB8D1BF70A},      {"float64.wav", 2, 50, 0x5657EEAB8D1BF70A},
    {"s16-stereo.flac", 2, 700, 0x9A7810991689BB7F}, {"s24-blocks.flac", 1, 250, 0x57A95E160EF0444D},
    {"s8-fixed.flac", 2, 400, 0xCD8409874537FE9A},
};

template <typename T>
std::uint64_t hash_of(const std::vector<T>& values) {
  return hash_bytes(std::as_bytes(std::span(values)));
}

TEST(Golden, ImagesHaveThePixelsOfPillow) {
  for (const GoldenImage& expected : kImages) {
    const File file = golden(expected.name);
    const Image rgb = decode(file);
    ASSERT_TRUE(rgb.result.ok()) << expected.name << ": " << rgb.result.cause;
    EXPECT_EQ(rgb.info.width, expected.width) << expected.name;
    EXPECT_EQ(rgb.info.height, expected.height) << expected.name;
    EXPECT_EQ(rgb.info.channels, expected.channels) << expected.name;
    EXPECT_EQ(hash_of(rgb.bytes), expected.rgb) << expected.name;
    EXPECT_EQ(hash_of(decode(file, {.color = Color::gray}).bytes), expected.gray) << expected.name;
    EXPECT_EQ(hash_of(decode(file, {.color = Color::keep}).bytes), expected.keep) << expected.name;
  }
}

TEST(Golden, EightBitImagesAreWidenedWithoutScaling) {
  for (const GoldenImage& expected : kImages) {
    const File file = golden(expected.name);
    for (const Color color : {Color::rgb, Color::gray, Color::keep}) {
      const Image narrow = decode(file, {.color = color}), wide = decode(file, {.color = color, .deep = true});
      ASSERT_TRUE(wide.result.ok()) << expected.name;
      if (narrow.info.bits == 16) continue;
      EXPECT_TRUE(std::ranges::equal(narrow.bytes, wide.words)) << expected.name;
    }
  }
}

TEST(Golden, EveryRegionIsACutOutOfTheWhole) {
  for (const GoldenImage& expected : kImages) {
    const File file = golden(expected.name);
    for (const Color color : {Color::rgb, Color::gray, Color::keep}) {
      const Image whole = decode(file, {.color = color});
      const std::size_t pixel = whole.bytes.size() / expected.width / expected.height;
      for (std::uint32_t y = 0; y < expected.height; y += 3) {
        for (std::uint32_t x = 0; x < expected.width; x += 5) {
          const Rect region{x, y, (x * 7 + y) % (expected.width - x) + 1, (y * 5 + x) % (expected.height - y) + 1};
          const Image part = decode(file, {.color = color}, region);
          ASSERT_TRUE(part.result.ok()) << expected.name << ": " << part.result.cause;
          for (std::uint32_t row = 0; row < region.height; ++row) {
            const std::size_t from = (std::size_t{y + row} * expected.width + x) * pixel;
            ASSERT_EQ(0, std::memcmp(&part.bytes[row * region.width * pixel], &whole.bytes[from], region.width * pixel))
                << expected.name << " at " << x << "," << y << " row " << row;
          }
        }
      }
    }
  }
}

TEST(Golden, AudioHasTheSamplesOfSoundfile) {
  for (const GoldenAudio& expected : kAudio) {
    const File file = golden(expected.name);
    AudioInfo info;
    const Media media = sniff(file);
    ASSERT_TRUE(probe_audio(media, file, info).ok()) << expected.name;
    EXPECT_EQ(info.channels, expected.channels) << expected.name;
    EXPECT_EQ(info.rate_hz, 16000u) << expected.name;
    ASSERT_EQ(info.frames, expected.frames) << expected.name;
    std::vector<float> samples(info.channels * info.frames);
    Scratch scratch;
    ASSERT_TRUE(decode_audio(media, file, info, 0, info.frames, samples.data(), info.frames, scratch).ok())
        << expected.name;
    EXPECT_EQ(hash_of(samples), expected.samples) << expected.name;
  }
}

}  // namespace
}  // namespace stoker::codec
