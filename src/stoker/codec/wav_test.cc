#include "stoker/codec/wav.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

File format_chunk(int format, int channels, int bits) {
  const int frame_bytes = channels * bits / 8;
  File chunk;
  chunk.little(static_cast<std::uint16_t>(format))
      .little(static_cast<std::uint16_t>(channels))
      .little(std::uint32_t{8000});
  chunk.little(static_cast<std::uint32_t>(8000 * frame_bytes)).little(static_cast<std::uint16_t>(frame_bytes));
  return chunk.little(static_cast<std::uint16_t>(bits));
}

File extensible_chunk(int format, int channels, int bits) {
  File chunk = format_chunk(0xFFFE, channels, bits);
  chunk.little(std::uint16_t{22}).little(static_cast<std::uint16_t>(bits)).little(std::uint32_t{0});
  chunk.little(static_cast<std::uint16_t>(format));
  return chunk.bytes({0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71});
}

struct Lengths {
  std::uint32_t riff = 36, data = 0;
};

File wave(const File& format, const File& samples, const File& before = {}) {
  File file;
  file.text("RIFF")
      .little(static_cast<std::uint32_t>(20 + format.size() + samples.size() + before.size()))
      .text("WAVE");
  file.bytes(before).text("fmt ").little(static_cast<std::uint32_t>(format.size())).bytes(format);
  return file.text("data").little(static_cast<std::uint32_t>(samples.size())).bytes(samples);
}

File with_lengths(File file, Lengths lengths) {
  std::memcpy(&file[4], &lengths.riff, 4);
  std::memcpy(&file[40], &lengths.data, 4);
  return file;
}

// Channel after channel.
std::vector<float> samples_of(Bytes file) {
  AudioInfo info;
  const Result probed = probe_wav(file, info);
  EXPECT_TRUE(probed.ok()) << probed.cause;
  if (!probed.ok()) return {};
  std::vector<float> samples(info.channels * info.frames, -9.0f);
  Scratch scratch;
  const Result decoded = decode_wav(file, info, 0, info.frames, samples.data(), info.frames, scratch);
  EXPECT_TRUE(decoded.ok()) << decoded.cause;
  return samples;
}

Result wav_verdict_on(Bytes file) {
  AudioInfo info;
  Result result = probe_wav(file, info);
  if (!result.ok() || info.frames * info.channels > 1'000'000) return result;
  std::vector<float> samples(info.channels * info.frames);
  Scratch scratch;
  return decode_wav(file, info, 0, info.frames, samples.data(), info.frames, scratch);
}

using Floats = std::vector<float>;

TEST(Wav, ScalesEightBitsAroundTheMiddle) {
  EXPECT_EQ(samples_of(wave(format_chunk(1, 1, 8), File().bytes({0, 1, 127, 128, 255}))),
            (Floats{-1.0f, -127.0f / 128, -1.0f / 128, 0.0f, 127.0f / 128}));
}

TEST(Wav, ScalesSixteenBits) {
  const File samples = File().little<std::int16_t>(-32768).little<std::int16_t>(32767).little<std::int16_t>(1);
  EXPECT_EQ(samples_of(wave(format_chunk(1, 1, 16), samples)), (Floats{-1.0f, 32767.0f / 32768, 1.0f / 32768}));
}

TEST(Wav, ScalesTwentyFourBits) {
  const File samples = File().bytes({0, 0, 0x80, 0xFF, 0xFF, 0x7F, 1, 0, 0, 0xFF, 0xFF, 0xFF});
  EXPECT_EQ(samples_of(wave(format_chunk(1, 1, 24), samples)),
            (Floats{-1.0f, 8388607.0f / 8388608, 1.0f / 8388608, -1.0f / 8388608}));
}

TEST(Wav, RoundsThirtyTwoBitsToTheNearestFloat) {
  const File samples = File()
                           .little<std::int32_t>(std::numeric_limits<std::int32_t>::min())
                           .little<std::int32_t>(std::numeric_limits<std::int32_t>::max())
                           .little<std::int32_t>(16777217);
  EXPECT_EQ(samples_of(wave(format_chunk(1, 1, 32), samples)), (Floats{-1.0f, 1.0f, 16777216.0f / 2147483648.0f}));
}

TEST(Wav, KeepsFloatsAsTheyAre) {
  const File samples = File().little(2.5f).little(-0.0f).little(std::numeric_limits<float>::quiet_NaN()).little(1e-42f);
  const Floats read = samples_of(wave(format_chunk(3, 1, 32), samples));
  EXPECT_EQ(read[0], 2.5f);
  EXPECT_TRUE(std::signbit(read[1]));
  EXPECT_TRUE(std::isnan(read[2]));
  EXPECT_EQ(read[3], 1e-42f);
}

TEST(Wav, NarrowsDoubles) {
  EXPECT_EQ(samples_of(wave(format_chunk(3, 1, 64), File().little(1.0 / 3).little(1e-50))), (Floats{1.0f / 3, 0.0f}));
}

TEST(Wav, ReadsTheExtensibleHeader) {
  EXPECT_EQ(samples_of(wave(extensible_chunk(1, 1, 16), File().little<std::int16_t>(16384))), (Floats{0.5f}));
  EXPECT_EQ(samples_of(wave(extensible_chunk(3, 1, 32), File().little(0.25f))), (Floats{0.25f}));
}

TEST(Wav, PutsEachChannelInARowOfItsOwn) {
  for (const int channels : {2, 3, 17}) {
    for (const int frames : {1, 15, 16, 33, 3000}) {
      File samples;
      for (int f = 0; f < frames; ++f) {
        for (int c = 0; c < channels; ++c) samples.little(static_cast<std::int16_t>(f * 10 + c));
      }
      const Floats read = samples_of(wave(format_chunk(1, channels, 16), samples));
      for (int c = 0; c < channels; ++c) {
        for (int f = 0; f < frames; ++f) {
          ASSERT_EQ(read[static_cast<std::size_t>(c * frames + f)], static_cast<float>(f * 10 + c) / 32768);
        }
      }
    }
  }
}

TEST(Wav, ReadsFromTheMiddleAndWritesNothingElse) {
  File samples;
  for (int i = 0; i < 100; ++i) samples.little(static_cast<std::int16_t>(i));
  const File file = wave(format_chunk(1, 1, 16), samples);
  AudioInfo info;
  ASSERT_TRUE(probe_wav(file, info).ok());
  Floats into(32, -9.0f);
  Scratch scratch;
  ASSERT_TRUE(decode_wav(file, info, 41, 30, into.data() + 1, 30, scratch).ok());
  EXPECT_EQ(into.front(), -9.0f);
  EXPECT_EQ(into.back(), -9.0f);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(into[static_cast<std::size_t>(1 + i)], static_cast<float>(41 + i) / 32768);
  EXPECT_EQ(decode_wav(file, info, 71, 30, into.data(), 30, scratch).code, Code::mismatch);
}

TEST(Wav, SkipsUnknownChunksAndTheirPadding) {
  const File odd = File().text("junk").little(std::uint32_t{3}).bytes({1, 2, 3, 0});
  EXPECT_EQ(samples_of(wave(format_chunk(1, 1, 16), File().little<std::int16_t>(8192), odd)), (Floats{0.25f}));
}

TEST(Wav, TakesWhatIsThereWhenTheLengthIsOpenOrTooLong) {
  const File file = wave(format_chunk(1, 1, 16), File().little<std::int16_t>(8192).little<std::int16_t>(-8192));
  const Floats both{0.25f, -0.25f};
  EXPECT_EQ(samples_of(with_lengths(file, {36, 0xFFFFFFFF})), both);
  EXPECT_EQ(samples_of(with_lengths(file, {36, 5000})), both);
  EXPECT_EQ(samples_of(with_lengths(file, {8, 0})), both);
  EXPECT_EQ(samples_of(with_lengths(file, {0, 0})), both);
  EXPECT_EQ(samples_of(with_lengths(file, {36, 0})), Floats{}) << "an empty file is empty";
  EXPECT_EQ(samples_of(with_lengths(file, {36, 3})), Floats{0.25f}) << "half a frame is dropped";
}

TEST(Wav, ReadsTheLongLengthOfRf64) {
  File sizes;
  sizes.text("ds64").little(std::uint32_t{28}).little(std::uint64_t{0}).little(std::uint64_t{2});
  sizes.little(std::uint64_t{1}).little(std::uint32_t{0});
  File file;
  file.text("RF64").little(0xFFFFFFFFu).text("WAVE").bytes(sizes).text("fmt ").little(std::uint32_t{16});
  file.bytes(format_chunk(1, 1, 16)).text("data").little(0xFFFFFFFFu);
  file.little<std::int16_t>(8192).text("LIST").little(std::uint32_t{0});
  EXPECT_EQ(samples_of(file), (Floats{0.25f})) << "not the LIST chunk behind it";
}

TEST(Wav, NamesWhatItDoesNotRead) {
  EXPECT_EQ(wav_verdict_on(wave(format_chunk(7, 1, 8), File().bytes({1}))).code, Code::unsupported);
  EXPECT_EQ(wav_verdict_on(wave(format_chunk(0x55, 1, 16), File().bytes({1}))).code, Code::unsupported);
  EXPECT_EQ(wav_verdict_on(wave(format_chunk(1, 1, 64), File().bytes({1}))).code, Code::unsupported);
  EXPECT_EQ(wav_verdict_on(wave(format_chunk(1, 0, 16), File().bytes({1}))).code, Code::corrupt);
  EXPECT_EQ(wav_verdict_on(File().text("RIFX").little(0u).text("WAVE")).code, Code::unsupported);
  EXPECT_EQ(wav_verdict_on(File().text("not a wave at all")).code, Code::corrupt);
  EXPECT_EQ(wav_verdict_on(File().text("RIFF").little(0u).text("WAVEdata").little(0u)).code, Code::corrupt);
}

TEST(Wav, RefusesMoreChannelsThanLibsndfileByName) {
  const auto verdict = [](int channels) {
    return wav_verdict_on(wave(format_chunk(1, channels, 16), File().text(std::string(4096, 'x'))));
  };
  EXPECT_TRUE(verdict(1024).ok());
  for (const int channels : {1025, 65535}) {
    EXPECT_EQ(verdict(channels).code, Code::unsupported);
    EXPECT_STREQ(verdict(channels).cause, "more than 1024 channels");
    EXPECT_EQ(verdict(channels).offset, 22u);
  }
}

TEST(Wav, SurvivesEveryTruncationAndFlippedBit) {
  const File file = wave(extensible_chunk(1, 3, 24), File().bytes(Bytes(format_chunk(1, 2, 3))).text("01"),
                         File().text("LIST").little(std::uint32_t{5}).text("odd..").text("-"));
  ASSERT_TRUE(wav_verdict_on(file).ok());
  std::size_t refused = 0;
  at_every_truncation(file, [&](Bytes part) { refused += wav_verdict_on(part).ok() ? 0 : 1; });
  EXPECT_EQ(refused, file.size() - 18) << "only the samples themselves may be missing";
  at_every_flipped_bit(file, [](Bytes damaged) { (void)wav_verdict_on(damaged); });
}

}  // namespace
}  // namespace stoker::codec
