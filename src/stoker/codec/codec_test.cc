#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

TEST(Sniff, GoesByContentNotByName) {
  EXPECT_EQ(sniff(File().bytes({0xFF, 0xD8, 0xFF, 0xE0})), Media::jpeg);
  EXPECT_EQ(sniff(File().text("\x89PNG\r\n\x1A\n")), Media::png);
  EXPECT_EQ(sniff(File().text("RIFF....WAVE")), Media::wav);
  EXPECT_EQ(sniff(File().text("RF64....WAVE")), Media::wav);
  EXPECT_EQ(sniff(File().text("\x93NUMPY")), Media::npy);
  EXPECT_EQ(sniff(File().text("PK\x03\x04")), Media::npz);
  EXPECT_EQ(sniff(File().text("PK\x05\x06")), Media::npz);
}

TEST(Sniff, SaysWhenItDoesNotKnow) {
  EXPECT_EQ(sniff({}), Media::unknown);
  EXPECT_EQ(sniff(File().text("RIFF....AVI ")), Media::unknown);
  EXPECT_EQ(sniff(File().text("RIFF")), Media::unknown);
  EXPECT_EQ(sniff(File().text("GIF89a")), Media::unknown);
}

TEST(MediaOfName, GoesByTheExtensionInAnyCase) {
  EXPECT_EQ(media_of_name("a/b/n01.JPEG"), Media::jpeg);
  EXPECT_EQ(media_of_name("x.jpg"), Media::jpeg);
  EXPECT_EQ(media_of_name("x.tar.Png"), Media::png);
  EXPECT_EQ(media_of_name("x.wav"), Media::wav);
  EXPECT_EQ(media_of_name("x.npy"), Media::npy);
  EXPECT_EQ(media_of_name("x.npz"), Media::npz);
  EXPECT_EQ(media_of_name("x.txt"), Media::unknown);
  EXPECT_EQ(media_of_name("png"), Media::unknown);
  EXPECT_EQ(media_of_name("apng"), Media::unknown);
  EXPECT_EQ(media_of_name(""), Media::unknown);
}

TEST(Decode, RefusesMediaOfAnotherKind) {
  ImageInfo info;
  Scratch scratch;
  EXPECT_EQ(probe_image(Media::wav, {}, info).code, Code::unsupported);
  EXPECT_EQ(decode_image(Media::npy, {}, {}, {}, {}, scratch).code, Code::unsupported);
  EXPECT_EQ(decode_array(Media::png, {}, {}, nullptr, scratch).code, Code::unsupported);
}

TEST(OutputChannels, FollowTheColourAskedFor) {
  const ImageInfo info{8, 8, 4, 8};
  EXPECT_EQ(output_channels(info, {.color = Color::rgb}), 3);
  EXPECT_EQ(output_channels(info, {.color = Color::gray}), 1);
  EXPECT_EQ(output_channels(info, {.color = Color::keep}), 4);
}

TEST(DecodedRegion, GrowsOutwardsWhenScaled) {
  const ImageOptions half{.fast = true, .scale = 2};
  EXPECT_EQ(decoded_region(Media::jpeg, half, {1, 2, 3, 3}), (Rect{0, 1, 2, 2}));
  EXPECT_EQ(decoded_region(Media::png, half, {1, 2, 3, 3}), (Rect{1, 2, 3, 3}));
  EXPECT_EQ(decoded_region(Media::jpeg, {.scale = 2}, {1, 2, 3, 3}), (Rect{1, 2, 3, 3}));
}

}  // namespace
}  // namespace stoker::codec
