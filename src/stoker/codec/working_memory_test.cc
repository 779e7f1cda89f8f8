// How much scratch an image takes: never more than its header lets one know, and where that is refused, the decoder
// says how much would do.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"
#include "stoker/codec/made_jpeg_test.h"

namespace stoker::codec {
namespace {

using made::Coding;
using made::Scene;

struct Named {
  std::string name;
  File file;
};

std::vector<Named> images() {
  std::vector<Named> all;
  for (const char* name : {
         "yuv420.jpg", "yuv422.jpg", "yuv444-restart.jpg", "progressive.jpg", "rgb.jpg", "gray.jpg", "cmyk.jpg",
             "rgb.png", "rgba.png", "gray-alpha.png", "bilevel.png", "palette.png", "palette-alpha.png", "gray16.png",
#if defined(STOKER_WEBP)
             "lossy.webp", "lossless-alpha.webp"
#endif
       }) {
    all.push_back({name, golden(name)});
  }
  for (const int sampling : {1, 2}) {
    for (const bool progressive : {false, true}) {
      for (const J_COLOR_SPACE stored : {JCS_YCbCr, JCS_GRAYSCALE, JCS_RGB}) {
        const Coding coding{.stored = stored,
                            .h_sampling = stored == JCS_YCbCr ? sampling : 1,
                            .v_sampling = stored == JCS_YCbCr ? sampling : 1,
                            .progressive = progressive};
        const std::string name =
            "made jpeg, sampling " + std::to_string(sampling) + (progressive ? ", progressive" : "");
        all.push_back({name, made::encode(700, 530, Scene::noise, coding)});
        all.push_back({name + ", wide", made::encode(3000, 9, Scene::smooth, coding)});
        all.push_back({name + ", tall", made::encode(9, 3000, Scene::smooth, coding)});
      }
    }
  }
  return all;
}

// Decodes in `given` bytes of memory.
struct Attempt {
  Result result;
  std::size_t wanted = 0;
  std::vector<std::byte> pixels;
};

Attempt decode_in(std::size_t given, Bytes file, const ImageInfo& info, const ImageOptions& options,
                  const Rect& region) {
  const Media media = sniff(file);
  std::vector<std::byte> memory(given + 64);
  const std::size_t skip = (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  Scratch scratch;
  scratch.work_in(std::span(memory).subspan(skip, given));
  const Rect decoded = decoded_region(media, options, region);
  Pixels pixels{
      nullptr, 0, decoded.width, decoded.height, output_channels(info, options), options.deep ? DType::u16 : DType::u8};
  pixels.stride_bytes = pixels.row_bytes();
  Attempt attempt;
  attempt.pixels.resize(pixels.stride_bytes * pixels.height);
  pixels.data = attempt.pixels.data();
  attempt.result = decode_image(media, file, options, region, pixels, scratch);
  attempt.wanted = scratch.wanted_bytes();
  return attempt;
}

constexpr std::size_t kHeader = 64;  // of the scratch itself

TEST(WorkingMemory, OfAImageIsAtMostWhatItsHeaderSays) {
  for (const Named& image : images()) {
    ImageInfo info;
    ASSERT_TRUE(probe_image(sniff(image.file), image.file, info).ok()) << image.name;
    const Rect all{0, 0, info.width, info.height}, part{info.width / 3, info.height / 2, 1, (info.height + 1) / 2};
    for (const Rect& region : {all, part}) {
      for (const ImageOptions& options :
           {ImageOptions{}, ImageOptions{.color = Color::gray}, ImageOptions{.color = Color::keep, .deep = true},
            ImageOptions{.fast = true}, ImageOptions{.fast = true, .scale = 4}}) {
        const Attempt attempt = decode_in(info.working_bytes + kHeader, image.file, info, options, region);
        EXPECT_TRUE(attempt.result.ok()) << image.name << ": " << attempt.result.cause;
        EXPECT_EQ(attempt.wanted, 0u) << image.name;
      }
    }
  }
}

TEST(WorkingMemory, ThatWasRefusedIsNamedAndThenEnough) {
  for (const Named& image : images()) {
    ImageInfo info;
    ASSERT_TRUE(probe_image(sniff(image.file), image.file, info).ok()) << image.name;
    const Rect all{0, 0, info.width, info.height};
    const Attempt expected = decode_in(info.working_bytes + kHeader, image.file, info, {}, all);
    std::size_t given = 0;
    Attempt attempt = decode_in(given, image.file, info, {}, all);
    while (!attempt.result.ok()) {
      ASSERT_EQ(attempt.result.code, Code::no_memory) << image.name << ": " << attempt.result.cause;
      ASSERT_GT(attempt.wanted, given) << image.name;
      given = attempt.wanted;
      attempt = decode_in(given, image.file, info, {}, all);
    }
    EXPECT_LE(given, info.working_bytes + kHeader) << image.name;
    EXPECT_EQ(attempt.pixels, expected.pixels) << image.name;
  }
}

}  // namespace
}  // namespace stoker::codec
