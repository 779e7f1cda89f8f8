// Files are written here frame by frame, so that each can say what no encoder writes. golden_test.cc and
// python/tests/test_codecs_reference.py read what encoders write.
#include "stoker/codec/flac.h"

#include <cmath>

#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"
#include "stoker/codec/flac/stream.h"
#include "stoker/codec/md5.h"
#include "stoker/codec/whole.h"

namespace stoker::codec {
namespace {

class Bits {
 public:
  Bits& put(std::uint64_t value, int count) {
    for (int bit = count - 1; bit >= 0; --bit) {
      if (used_ % 8 == 0) file_.bytes({0});
      if ((value >> bit & 1) != 0) file_[used_ / 8] |= static_cast<std::byte>(0x80 >> used_ % 8);
      ++used_;
    }
    return *this;
  }
  Bits& align() {
    while (used_ % 8 != 0) put(0, 1);
    return *this;
  }
  const File& file() const { return file_; }

 private:
  File file_;
  std::size_t used_ = 0;
};

struct Coded {
  std::uint32_t rate_hz = 16000;
  int channels = 1, bits = 16;
  std::uint32_t block = 32;
  std::uint64_t samples = 0;  // 0: those that there are
  bool counts = true;         // STREAMINFO says how many there are
  bool numbers_samples = false;
  bool has_md5 = true;
  std::size_t changes_rate_in = 1'000'000;  // frame from which on headers say 8000 Hz
};

std::uint64_t masked(std::int32_t value, int bits) {
  return static_cast<std::uint32_t>(value) & ((std::uint64_t{1} << bits) - 1);
}

// UTF-8 as FLAC extends it, in as many bytes as it takes.
void put_number(Bits& bits, std::uint64_t number) {
  if (number < 0x80) return void(bits.put(number, 8));
  int more = 1;
  while (number >> (6 * more) >= (std::uint64_t{1} << (6 - more))) ++more;
  bits.put(((2u << more) - 1) << 1, more + 2).put(number >> (6 * more), 6 - more);
  for (int i = more - 1; i >= 0; --i) bits.put(2, 2).put(number >> (6 * i) & 63, 6);
}

// Samples of all channels, interleaved. Each subframe stores them as they are, or once where they are all the same.
File flac_file(const std::vector<std::int32_t>& samples, const Coded& coded) {
  const auto channels = static_cast<std::size_t>(coded.channels);
  const std::size_t frames = samples.size() / channels;
  Md5 sum;
  for (const std::int32_t sample : samples) {
    sum.add(std::as_bytes(std::span(&sample, 1)).first(static_cast<std::size_t>(coded.bits + 7) / 8));
  }
  File file;
  file.text("fLaC").bytes({0x80, 0, 0, 34});
  Bits info;
  info.put(coded.block, 16).put(coded.block, 16).put(0, 24).put(0, 24).put(coded.rate_hz, 20);
  info.put(channels - 1, 3).put(static_cast<std::uint64_t>(coded.bits - 1), 5);
  info.put(coded.samples != 0 ? coded.samples : coded.counts ? frames : 0, 36);
  file.bytes(info.file());
  if (coded.has_md5) {
    file.bytes(sum.finish());
  } else {
    file.zeros(16);
  }
  std::size_t number = 0;
  for (std::size_t at = 0; at < frames; at += coded.block, ++number) {
    const std::size_t count = std::min<std::size_t>(coded.block, frames - at);
    Bits frame;
    frame.put(0x3FFE, 14).put(0, 1).put(coded.numbers_samples ? 1 : 0, 1);
    frame.put(7, 4).put(number >= coded.changes_rate_in ? 4 : 0, 4).put(channels - 1, 4).put(0, 4);
    put_number(frame, coded.numbers_samples ? at : number);
    frame.put(count - 1, 16);
    frame.put(flac::crc8(frame.file()), 8);
    for (std::size_t c = 0; c < channels; ++c) {
      const auto value = [&](std::size_t i) { return masked(samples[(at + i) * channels + c], coded.bits); };
      bool is_constant = true;
      for (std::size_t i = 1; i < count; ++i) is_constant = is_constant && value(i) == value(0);
      frame.put(is_constant ? 0 : 2, 8);
      for (std::size_t i = 0; i < (is_constant ? 1 : count); ++i) frame.put(value(i), coded.bits);
    }
    frame.align();
    const std::uint16_t crc = flac::crc16(frame.file());
    file.bytes(frame.file()).bytes({crc >> 8, crc & 0xFF});
  }
  return file;
}

std::vector<std::int32_t> tones(std::size_t count, int bits = 16) {
  std::vector<std::int32_t> samples;
  const std::int32_t most = (1 << (bits - 1)) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    samples.push_back(
        static_cast<std::int32_t>(static_cast<double>(most) * std::sin(static_cast<double>(i * i) / 999)));
  }
  return samples;
}

struct Decoded {
  Result result;
  AudioInfo info;
  std::vector<float> samples;  // channel after channel
};

Decoded decode_part(Bytes file, std::uint64_t first, std::uint64_t count) {
  Decoded decoded;
  decoded.result = probe_flac(file, decoded.info);
  if (!decoded.result.ok()) return decoded;
  count = std::min(count, decoded.info.frames - std::min(first, decoded.info.frames));
  decoded.samples.assign(decoded.info.channels * count, -9.0F);
  Scratch scratch;
  decoded.result = decode_flac(file, decoded.info, first, count, decoded.samples.data(), count, scratch);
  return decoded;
}

Decoded decode_all(Bytes file) {
  return decode_part(file, 0, 1'000'000);
}

std::string cause_of(Bytes file) {
  return decode_all(file).result.cause;
}

TEST(Flac, ScalesEveryDepthAsSoundfile) {
  for (const int bits : {4, 8, 12, 16, 20, 24}) {
    const std::vector<std::int32_t> samples = tones(70, bits);
    const Decoded decoded = decode_all(flac_file(samples, {.bits = bits}));
    ASSERT_TRUE(decoded.result.ok()) << bits << ": " << decoded.result.cause;
    ASSERT_EQ(decoded.samples.size(), 70u);
    for (std::size_t i = 0; i < 70; ++i) {
      ASSERT_EQ(decoded.samples[i], static_cast<float>(samples[i]) / static_cast<float>(1 << (bits - 1)));
    }
  }
}

TEST(Flac, PutsEachChannelInARowOfItsOwn) {
  for (const int channels : {2, 3, 8}) {
    const auto count = static_cast<std::size_t>(channels);
    const std::vector<std::int32_t> samples = tones(75 * count);
    const Decoded decoded = decode_all(flac_file(samples, {.channels = channels}));
    ASSERT_TRUE(decoded.result.ok()) << decoded.result.cause;
    for (std::size_t c = 0; c < count; ++c) {
      for (std::size_t i = 0; i < 75; ++i) {
        ASSERT_EQ(decoded.samples[c * 75 + i], static_cast<float>(samples[i * count + c]) / 32768);
      }
    }
  }
}

TEST(Flac, ReadsAnyRangeOfALongFile) {
  const std::vector<std::int32_t> samples = tones(300'001);
  for (const bool numbers_samples : {false, true}) {
    for (const std::uint32_t block : {16u, 97u, 4096u}) {
      const File file = flac_file(samples, {.block = block, .numbers_samples = numbers_samples});
      for (const std::uint64_t first : {0, 1, 15, 16, 4095, 150'000, 262'147, 299'990, 300'000, 300'001}) {
        const Decoded part = decode_part(file, first, 5000);
        ASSERT_TRUE(part.result.ok()) << block << " " << first << ": " << part.result.cause;
        ASSERT_EQ(part.samples.size(), std::min<std::uint64_t>(5000, 300'001 - first));
        for (std::size_t i = 0; i < part.samples.size(); ++i) {
          ASSERT_EQ(part.samples[i], static_cast<float>(samples[first + i]) / 32768) << block << " " << first;
        }
      }
    }
  }
}

// An ID3v2 tag whose size is told as four parts of seven bits.
File id3_tag(std::size_t size, int flags = 0) {
  const auto part = [&](int shift) { return static_cast<int>(size >> shift & 0x7F); };
  return File().text("ID3").bytes({4, 0, flags, part(21), part(14), part(7), part(0)});
}

TEST(Flac, PassesOverTagsBeforeTheStream) {
  const std::vector<std::int32_t> samples = tones(5000);
  const File plain = flac_file(samples, {.block = 128});
  File file = id3_tag(300).zeros(300);
  file.bytes(id3_tag(0)).bytes(id3_tag(5, 0x10)).zeros(15).bytes(plain);
  ASSERT_EQ(name(sniff(file)), "flac");
  for (const std::uint64_t first : {0, 127, 3000}) {
    const Decoded tagged = decode_part(file, first, 1000), expected = decode_part(plain, first, 1000);
    ASSERT_TRUE(tagged.result.ok()) << tagged.result.cause;
    EXPECT_EQ(tagged.samples, expected.samples);
    EXPECT_EQ(tagged.info.frames, 5000u);
  }
  Scratch scratch;
  AudioInfo info;
  ASSERT_TRUE(probe_flac(file, info).ok());
  EXPECT_TRUE(verify_flac(file, info, scratch).ok());
}

TEST(Flac, NamesThePlaceOfDamageBehindATagInTheWholeFile) {
  File file = id3_tag(100).zeros(100).bytes(flac_file(tones(50), {}));
  file[110 + 4] = std::byte{0x7F};
  const Result result = decode_all(file).result;
  EXPECT_STREQ(result.cause, "the first block is not STREAMINFO");
  EXPECT_EQ(result.offset, 114u);
}

TEST(Flac, RefusesTagsThatClaimMoreThanThereIs) {
  const File plain = flac_file(tones(50), {});
  for (const std::size_t size : {plain.size() + 1, std::size_t{0x0FFFFFFF}}) {
    EXPECT_EQ(cause_of(id3_tag(size).bytes(plain)), "an ID3 tag goes beyond the end");
  }
  EXPECT_EQ(cause_of(id3_tag(plain.size() - 9, 0x10).bytes(plain)), "an ID3 tag goes beyond the end");
  for (const std::size_t part : {6u, 7u, 8u, 9u}) {
    File file = id3_tag(0).bytes(plain);
    file[part] = std::byte{0x80};
    EXPECT_EQ(cause_of(file), "an ID3 tag with an impossible size");
  }
  EXPECT_EQ(cause_of(id3_tag(0).cut(9)), "ends inside an ID3 tag");
  const std::string no_stream = "an ID3 tag, and no FLAC stream behind it: MP3 files are not read";
  EXPECT_EQ(cause_of(id3_tag(20).zeros(20)), no_stream);
  EXPECT_EQ(cause_of(id3_tag(plain.size()).bytes(plain)), no_stream);
  EXPECT_EQ(cause_of(id3_tag(4).zeros(4).bytes({0xFF, 0xFB, 0x90, 0x64})), no_stream);
}

TEST(Flac, NoCutOfATaggedFileIsTakenForTheWhole) {
  const File file = id3_tag(30).zeros(30).bytes(flac_file(tones(70), {}));
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(decode_all(Bytes(file).first(size)).result.ok()) << size;
  }
}

TEST(Flac, SamplesThatLookLikeFramesDoNotMisleadTheSearch) {
  // The samples hold a whole valid header of frame 40, again and again.
  const File sound = flac_file(tones(64 * 50), {.block = 64});
  AudioInfo info;
  ASSERT_TRUE(probe_flac(sound, info).ok());
  const Bytes frame = Bytes(sound).subspan(42 + 40 * (64 * 2 + 11));
  ASSERT_EQ(frame[0], std::byte{0xFF});
  std::vector<std::int32_t> samples;
  for (std::size_t i = 0; i < 64 * 50; ++i) {
    samples.push_back(
        static_cast<std::int16_t>(static_cast<int>(frame[i * 2 % 8]) << 8 | static_cast<int>(frame[i * 2 % 8 + 1])));
  }
  const File file = flac_file(samples, {.block = 64});
  for (const std::uint64_t first : {64u, 640u, 2560u, 2600u, 3100u}) {
    const Decoded part = decode_part(file, first, 100);
    ASSERT_TRUE(part.result.ok()) << first << ": " << part.result.cause;
    for (std::size_t i = 0; i < part.samples.size(); ++i) {
      ASSERT_EQ(part.samples[i], static_cast<float>(samples[first + i]) / 32768) << first;
    }
  }
}

TEST(Flac, CountsTheSamplesOfAFileThatWasStreamed) {
  for (const bool numbers_samples : {false, true}) {
    const File file = flac_file(tones(777), {.counts = false, .numbers_samples = numbers_samples});
    const Decoded decoded = decode_all(file);
    ASSERT_TRUE(decoded.result.ok()) << decoded.result.cause;
    EXPECT_EQ(decoded.info.frames, 777u);
  }
  File cut = flac_file(tones(777), {.counts = false});
  cut.cut(cut.size() - 3);
  EXPECT_EQ(cause_of(cut), "the header has no sample count and no last frame was found: encode it again");
}

TEST(Flac, AFileWithoutSamplesIsEmpty) {
  const Decoded decoded = decode_all(flac_file({}, {}));
  EXPECT_TRUE(decoded.result.ok()) << decoded.result.cause;
  EXPECT_EQ(decoded.info.frames, 0u);
}

TEST(Flac, RefusesWhatItsHeaderContradicts) {
  EXPECT_EQ(cause_of(flac_file(tones(100), {.changes_rate_in = 2})), "the sample rate changes within the file");
  EXPECT_EQ(cause_of(flac_file(tones(100), {.samples = 120})), "the samples end early");
  EXPECT_EQ(cause_of(flac_file(tones(100), {.samples = std::uint64_t{1} << 35})),
            "the file is too short for the samples that its header claims");
  EXPECT_EQ(cause_of(flac_file(tones(100), {.rate_hz = 0})), "a sample rate of 0 Hz");
  EXPECT_EQ(cause_of(flac_file(tones(100), {.bits = 28})), "more than 24 bits per sample");
  EXPECT_EQ(cause_of(flac_file(tones(100), {.block = 15})), "STREAMINFO has impossible block sizes");
  File longer = flac_file(tones(100), {});
  longer[9] = longer[11] = std::byte{31};
  EXPECT_EQ(cause_of(longer), "a frame is longer than STREAMINFO says");
}

TEST(Flac, RefusesAFrameWhoseSumDiffers) {
  File file = flac_file(tones(100), {});
  file[42 + 30] ^= std::byte{1};
  const Result result = decode_all(file).result;
  EXPECT_EQ(result.code, Code::corrupt);
  EXPECT_STREQ(result.cause, "the CRC of a frame differs");
  EXPECT_EQ(result.offset, 42u);
}

TEST(Flac, AWrongMd5IsFoundByAStrictCheckOnly) {
  File file = flac_file(tones(1000, 24), {.bits = 24});
  Scratch scratch;
  Head head;
  std::vector<std::byte> into(4000);
  ASSERT_TRUE(probe(file, head, scratch).ok());
  EXPECT_TRUE(decode(file, head, true, into.data(), scratch).ok());
  file[30] ^= std::byte{1};
  EXPECT_TRUE(decode(file, head, false, into.data(), scratch).ok());
  EXPECT_STREQ(decode(file, head, true, into.data(), scratch).cause,
               "the MD5 of the samples differs from that in the header");
  const File without = flac_file(tones(1000, 24), {.bits = 24, .has_md5 = false});
  EXPECT_TRUE(decode(without, head, true, into.data(), scratch).ok());
}

TEST(Flac, SaysHowMuchMemoryAFrameTakes) {
  const File file = flac_file(tones(9000), {.block = 4096});
  AudioInfo info;
  ASSERT_TRUE(probe_flac(file, info).ok());
  std::vector<std::byte> memory(info.working_bytes + 128);
  std::vector<float> samples(9000);
  Scratch scratch;
  scratch.work_in(std::span(memory).first(1024));
  EXPECT_EQ(decode_flac(file, info, 0, 9000, samples.data(), 9000, scratch).code, Code::no_memory);
  scratch.work_in(memory);
  EXPECT_TRUE(decode_flac(file, info, 0, 9000, samples.data(), 9000, scratch).ok());
}

TEST(Md5, HasTheSumsOfItsStandard) {
  const auto sum = [](std::string_view text) {
    Md5 md5;
    md5.add(std::as_bytes(std::span(text)));
    std::string hex;
    for (const std::byte b : md5.finish()) {
      hex += "0123456789abcdef"[static_cast<int>(b) >> 4];
      hex += "0123456789abcdef"[static_cast<int>(b) & 15];
    }
    return hex;
  };
  EXPECT_EQ(sum(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(sum("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(sum("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

}  // namespace
}  // namespace stoker::codec
