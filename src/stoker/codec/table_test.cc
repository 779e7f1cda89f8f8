#include "stoker/codec/table.h"

#include <set>

#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"
#include "stoker/codec/whole.h"

namespace stoker::codec {
namespace {

std::vector<const Codec*> all() {
  std::vector<const Codec*> codecs;
  while (const Codec* codec = codec_of(Media(static_cast<std::uint8_t>(codecs.size() + 1)))) codecs.push_back(codec);
  return codecs;
}

// A file that begins as this codec's files do, and has nothing else.
std::vector<std::byte> made_from(const Magic& magic) {
  std::vector<std::byte> file(magic.offset);
  for (const char c : magic.bytes) file.push_back(static_cast<std::byte>(c == '?' ? 'x' : c));
  return file;
}

TEST(CodecTable, FindsEveryCodecByItsNameExtensionsAndMagic) {
  ASSERT_GE(all().size(), 5u);
  for (const Codec* codec : all()) {
    const Media media = media_named(codec->name);
    EXPECT_EQ(codec_of(media), codec);
    EXPECT_EQ(name(media), codec->name);
    EXPECT_EQ(kind_of(media), codec->kind());
    EXPECT_EQ(media_of_name("x" + extension(media)), media);
    for (const std::string_view word : codec->extensions) {
      if (word.empty()) continue;
      EXPECT_EQ(media_of_name("a/b." + std::string(word)), media) << word;
    }
    for (const Magic& magic : codec->magic) {
      if (magic.bytes.empty()) continue;
      const std::vector<std::byte> file = made_from(magic);
      EXPECT_EQ(sniff(file), media) << codec->name;
      EXPECT_FALSE(sniff(Bytes(file).first(file.size() - 1)).is_known()) << codec->name;
      EXPECT_LE(file.size(), sniff_bytes());
    }
  }
}

TEST(CodecTable, HasNoNameOrExtensionTwice) {
  std::set<std::string_view> names, extensions;
  for (const Codec* codec : all()) {
    EXPECT_TRUE(names.insert(codec->name).second) << codec->name;
    for (const std::string_view word : codec->extensions) {
      if (word.empty()) continue;
      EXPECT_TRUE(extensions.insert(word).second) << word;
    }
  }
}

TEST(CodecTable, MakesTheWordsOfMessages) {
#if defined(STOKER_WEBP)
  EXPECT_EQ(names(), "jpeg, png, webp, wav, flac, npy, npz");
  EXPECT_STREQ(refusal(), "not a JPEG, PNG, WebP, WAV, FLAC, NPY or NPZ file");
  EXPECT_STREQ(refusal(SampleKind::image), "not a JPEG, PNG or WebP file");
#else
  EXPECT_EQ(names(), "jpeg, png, wav, flac, npy, npz");
  EXPECT_STREQ(refusal(), "not a JPEG, PNG, WAV, FLAC, NPY or NPZ file");
  EXPECT_STREQ(refusal(SampleKind::image), "not a JPEG or PNG file");
#endif
  EXPECT_STREQ(refusal(SampleKind::audio), "not a WAV or FLAC file");
  EXPECT_STREQ(refusal(SampleKind::array), "not an NPY or NPZ file");
  EXPECT_EQ(name(Media{}), "unknown");
  EXPECT_EQ(extension(Media{}), "");
  EXPECT_EQ(extension(media_named("jpeg")), ".jpg");
  EXPECT_EQ(kind_of(Media{}), std::nullopt);
}

TEST(Whole, LooksAtAndDecodesASampleOfAnyKind) {
  Scratch scratch;
  Head head;
  for (const char* file : {"rgb.png", "gray16.png", "yuv420.jpg", "pcm-s16.wav", "s16-stereo.flac"}) {
    const File bytes = golden(file);
    ASSERT_TRUE(probe(bytes, head, scratch).ok()) << file;
    std::vector<std::byte> into(decoded_bytes(head));
    EXPECT_GT(into.size(), 0u) << file;
    EXPECT_TRUE(decode(bytes, head, /*strict=*/true, into.data(), scratch).ok()) << file;
  }
}

TEST(Whole, SaysWhyItCannotReadASample) {
  Scratch scratch;
  Head head;
  EXPECT_STREQ(probe({}, head, scratch).cause, "the file is empty");
  EXPECT_STREQ(probe(File().text("GIF89a"), head, scratch).cause, refusal());
  EXPECT_EQ(decoded_bytes(head), 0u);
  EXPECT_EQ(decode(File().text("GIF89a"), head, false, nullptr, scratch).code, Code::unsupported);
}

}  // namespace
}  // namespace stoker::codec
