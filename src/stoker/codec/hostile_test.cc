// Every format of tests/formats, cut at every byte and with every bit flipped: a status that names what is wrong, or
// values that do not depend on what was in memory before. Nothing is written beside the slot.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

using Values = std::vector<std::uint8_t>;

constexpr const char* kImageFiles[] = {
    "bilevel.png", "gray-alpha.png",     "gray16.png", "palette-alpha.png",  "palette.png",
    "rgb.png",     "rgba.png",           "cmyk.jpg",   "gray.jpg",           "progressive.jpg",
    "rgb.jpg",     "yuv420.jpg",         "yuv422.jpg", "yuv444-restart.jpg",
#if defined(STOKER_WEBP)
    "lossy.webp",  "lossless-alpha.webp"
#endif
};
constexpr const char* kAudioFiles[] = {"float32.wav", "float64.wav", "pcm-s16.wav",
                                       "pcm-s24.wav", "pcm-s32.wav", "pcm-u8.wav"};
constexpr const char* kFlac8 = "s8-fixed.flac";
constexpr const char* kFlac24 = "s24-blocks.flac";

// A scratch whose memory is full of `filler`.
class Dirty {
 public:
  explicit Dirty(std::uint8_t filler) : filler_(filler) {}

  Scratch& scratch() {
    scratch_.reset();
    const std::span<std::byte> memory = scratch_.take(192 << 10);
    std::fill(memory.begin(), memory.end(), std::byte{filler_});
    scratch_.reset();
    return scratch_;
  }
  std::uint8_t filler() const { return filler_; }

 private:
  Budget budget_{32 << 20};
  Scratch scratch_{&budget_};
  std::uint8_t filler_;
};

struct Outcome {
  Result result;
  Values values;

  bool operator==(const Outcome& other) const {
    return result.code == other.result.code && (!result.ok() || values == other.values);
  }
};

void expect_a_reason(const Result& result, std::size_t size) {
  if (result.ok()) return;
  ASSERT_NE(result.cause, nullptr);
  ASSERT_NE(std::string(result.cause), "");
  if (result.offset != kNoOffset) {
    ASSERT_LE(result.offset, size) << result.cause;
  }
}

Outcome image_of(Bytes file, const ImageOptions& options, Dirty& dirty) {
  Outcome outcome;
  ImageInfo info;
  const Media media = sniff(file);
  outcome.result = probe_image(media, file, info);
  if (!outcome.result.ok()) return outcome;
  EXPECT_TRUE(info.width > 0 && info.height > 0 && info.channels >= 1 && info.channels <= 4);
  const Rect all{0, 0, info.width, info.height}, decoded = decoded_region(media, options, all);
  Pixels into{
      nullptr, 0, decoded.width, decoded.height, output_channels(info, options), options.deep ? DType::u16 : DType::u8};
  if (std::uint64_t{into.width} * into.height > (1 << 18)) {  // a flipped size: only that it is refused or decoded
    Values row(into.row_bytes());
    into.height = 1;
    const std::uint32_t rows = options.fast && media == media_named("jpeg") ? std::min(options.scale, info.height) : 1;
    into.data = reinterpret_cast<std::byte*>(row.data());
    outcome.result = decode_image(media, file, options, {0, 0, info.width, rows}, into, dirty.scratch());
    return outcome;
  }
  into.stride_bytes = into.row_bytes() + 3;
  outcome.values.assign(into.stride_bytes * into.height, dirty.filler());
  into.data = reinterpret_cast<std::byte*>(outcome.values.data());
  outcome.result = decode_image(media, file, options, all, into, dirty.scratch());
  for (std::uint32_t y = 0; y < into.height; ++y) {
    auto* const gap = &outcome.values[y * into.stride_bytes + into.row_bytes()];
    EXPECT_TRUE(gap[0] == dirty.filler() && gap[1] == dirty.filler() && gap[2] == dirty.filler());
    std::fill_n(gap, 3, std::uint8_t{0});
  }
  return outcome;
}

void expect_nothing_of_before(Bytes file, const ImageOptions& options) {
  static Dirty ones(0xFF), others(0x5A);
  const Outcome a = image_of(file, options, ones), b = image_of(file, options, others);
  expect_a_reason(a.result, file.size());
  ASSERT_TRUE(a == b) << "depends on what was in memory: " << a.result.cause;
}

// How an image may be asked for; a damaged file is asked for in one of these ways, in turn.
ImageOptions options_of(std::size_t turn) {
  ImageOptions options;
  options.color = static_cast<Color>(turn % 3);
  options.deep = turn / 3 % 4 == 1;
  options.fast = turn / 3 % 4 >= 2;
  options.scale = options.fast ? 1u << turn / 12 % 4 : 1;
  return options;
}

TEST(Hostile, ImagesCutAnywhereAreRefusedUntilOnlyTheirEndIsMissing) {
  for (const char* name : kImageFiles) {
    const File file = golden(name);
    const std::size_t end = sniff(file) == media_named("jpeg") ? 2 : 12;  // the end marker, the IEND chunk
    std::size_t turn = 0;
    at_every_truncation(file, [&](Bytes part) {
      SCOPED_TRACE(std::string(name) + " cut to " + std::to_string(part.size()));
      const ImageOptions options = options_of(turn++);
      expect_nothing_of_before(part, options);
      if (part.size() < file.size() - end) {
        EXPECT_FALSE(decode(part, options).result.ok());
      }
    });
  }
}

TEST(Hostile, ImagesWithAnyBitFlippedGiveNothingOfWhatWasInMemory) {
  for (const char* name : kImageFiles) {
    std::size_t turn = 0;
    at_every_flipped_bit(golden(name), [&](Bytes damaged) {
      SCOPED_TRACE(std::string(name) + " bit " + std::to_string(turn));
      expect_nothing_of_before(damaged, options_of(turn++));
    });
  }
}

// ---- sizes that cannot be

// A file of 20 bytes: the beginning of a JPEG file that claims 60,000 x 60,000 pixels.
TEST(Hostile, TwentyBytesThatClaimManyPixelsAreRefusedBeforeMemoryIsTouched) {
  const File claim = File().bytes({0xFF, 0xD8, 0xFF, 0xC0, 0, 11, 8, 0xEA, 0x60, 0xEA, 0x60, 1, 1, 0x11, 0});
  File short_one = claim, whole_header = claim;
  short_one.bytes({0xFF, 0xDB, 0, 67, 0});
  ASSERT_EQ(short_one.size(), 20u);
  whole_header.bytes({0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0});
  std::byte pixel{};
  for (const ImageOptions& options : {ImageOptions{}, ImageOptions{.fast = true, .scale = 8}}) {
    Budget budget(0);
    Scratch scratch(&budget);
    ImageInfo info;
    const Pixels into{&pixel, 3, 1, 1, 3, DType::u8};
    const Rect part{0, 0, options.scale, options.scale};
    EXPECT_EQ(probe_image(media_named("jpeg"), short_one, info).code, Code::truncated);
    EXPECT_EQ(decode_image(media_named("jpeg"), short_one, options, part, into, scratch).code, Code::truncated);
    EXPECT_EQ(probe_image(media_named("jpeg"), whole_header, info).code, Code::too_large);
    EXPECT_EQ(decode_image(media_named("jpeg"), whole_header, options, part, into, scratch).code, Code::too_large);
    EXPECT_EQ(scratch.capacity_bytes(), 0u);
  }
  File png;
  png.text("\x89PNG\r\n\x1A\n").big32(13).text("IHDR").big32(60000).big32(60000).bytes({8, 2, 0, 0, 0});
  png.big32(crc32(Bytes(png).subspan(12)));
  Scratch scratch;
  ImageInfo info;
  EXPECT_EQ(probe_image(media_named("png"), png, info).code, Code::too_large);
  EXPECT_EQ(decode_image(media_named("png"), png, {}, {0, 0, 1, 1}, {&pixel, 3, 1, 1, 3, DType::u8}, scratch).code,
            Code::too_large);
  EXPECT_EQ(scratch.capacity_bytes(), 0u);
}

// ---- audio

Outcome sound_of(Bytes file, std::uint8_t filler) {
  Outcome outcome;
  AudioInfo info;
  const Media media = sniff(file);
  outcome.result = probe_audio(media, file, info);
  if (!outcome.result.ok()) return outcome;
  EXPECT_LE(info.data_offset, file.size());
  const std::uint64_t samples = info.frames * info.channels;
  EXPECT_TRUE(media != media_named("wav") || samples <= file.size()) << "more samples than the file has bytes";
  if (samples > 20'000) {  // a flipped count that the file may still hold: only that it is refused or decoded
    std::vector<float> some(info.channels * 100);
    Scratch scratch;
    outcome.result = decode_audio(media, file, info, info.frames / 2, 100, some.data(), 100, scratch);
    return outcome;
  }
  outcome.values.assign(samples * sizeof(float), filler);
  Dirty dirty(filler);
  outcome.result = decode_audio(media, file, info, 0, info.frames, reinterpret_cast<float*>(outcome.values.data()),
                                info.frames, dirty.scratch());
  if (!outcome.result.ok()) outcome.values.clear();
  return outcome;
}

TEST(Hostile, SoundsCutOrFlippedGiveNoMoreThanThereIsAndNothingOfWhatWasInMemory) {
  std::vector<const char*> names(std::begin(kAudioFiles), std::end(kAudioFiles));
  names.insert(names.end(), {kFlac8, kFlac24});
  for (const char* name : names) {
    const auto check = [&](Bytes damaged) {
      const Outcome a = sound_of(damaged, 0xFF), b = sound_of(damaged, 0x5A);
      expect_a_reason(a.result, damaged.size());
      ASSERT_TRUE(a == b) << name << " depends on what was in memory";
    };
    at_every_truncation(golden(name), check);
    at_every_flipped_bit(golden(name), check);
  }
}

TEST(Hostile, SoundsThatLieAboutTheirLengthEndWhereTheFileEnds) {
  for (const char* name : kAudioFiles) {
    File file = golden(name);
    const Outcome honest = sound_of(file, 0);
    ASSERT_TRUE(honest.result.ok());
    std::size_t data = 12;
    while (std::memcmp(&file[data], "data", 4) != 0) ++data;
    for (const std::uint32_t claimed : {0xFFFFFFFFu, 0xFFFFFFFEu, 0x7FFFFFFFu, 1'000'000u}) {
      std::memcpy(&file[data + 4], &claimed, 4);
      EXPECT_TRUE(sound_of(file, 0) == honest) << name << " claims " << claimed;
    }
  }
}

// ---- arrays

Outcome array_of(Bytes file, Dirty& dirty) {
  Outcome outcome;
  ArrayInfo info;
  const Media media = sniff(file);
  if (media != media_named("npy") && media != media_named("npz")) {
    outcome.result = failed(Code::unsupported, "neither");
    return outcome;
  }
  Scratch& scratch = dirty.scratch();
  outcome.result =
      media == media_named("npy") ? probe_npy(file, file.size(), info) : probe_npz(file, "", info, scratch);
  if (!outcome.result.ok() || info.data_bytes > (4 << 20)) return outcome;
  outcome.values.assign(info.data_bytes, dirty.filler());
  auto* const into = reinterpret_cast<std::byte*>(outcome.values.data());
  outcome.result = decode_array(media, file, info, into, scratch);
  return outcome;
}

File numbers() {
  File file;
  const std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (5, 3), }\n";
  file.text({"\x93NUMPY\1\0", 8}).little(static_cast<std::uint16_t>(header.size())).text(header);
  return file.text("abcdefghijklmnopqrstuvwxyz0123");
}

TEST(Hostile, ArraysCutOrFlippedGiveNothingOfWhatWasInMemory) {
  const auto check = [](Bytes damaged) {
    static Dirty ones(0xFF), others(0x5A);
    const Outcome a = array_of(damaged, ones), b = array_of(damaged, others);
    expect_a_reason(a.result, damaged.size());
    ASSERT_TRUE(a == b) << "depends on what was in memory";
  };
  at_every_truncation(numbers(), check);
  at_every_flipped_bit(numbers(), check);
}

}  // namespace
}  // namespace stoker::codec
