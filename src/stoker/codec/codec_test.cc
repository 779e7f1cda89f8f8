#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

TEST(Sniff, GoesByContentNotByName) {
  EXPECT_EQ(sniff(File().bytes({0xFF, 0xD8, 0xFF, 0xE0})), media_named("jpeg"));
  EXPECT_EQ(sniff(File().text("\x89PNG\r\n\x1A\n")), media_named("png"));
  EXPECT_EQ(sniff(File().text("RIFF....WAVE")), media_named("wav"));
  EXPECT_EQ(sniff(File().text("RF64....WAVE")), media_named("wav"));
  EXPECT_EQ(sniff(File().text("fLaC")), media_named("flac"));
  EXPECT_EQ(sniff(File().text("\x93NUMPY")), media_named("npy"));
  EXPECT_EQ(sniff(File().text("PK\x03\x04")), media_named("npz"));
  EXPECT_EQ(sniff(File().text("PK\x05\x06")), media_named("npz"));
}

TEST(Sniff, SaysWhenItDoesNotKnow) {
  EXPECT_EQ(sniff({}), Media{});
  EXPECT_EQ(sniff(File().text("RIFF....AVI ")), Media{});
  EXPECT_EQ(sniff(File().text("RIFF")), Media{});
  EXPECT_EQ(sniff(File().text("GIF89a")), Media{});
}

TEST(MediaOfName, GoesByTheExtensionInAnyCase) {
  EXPECT_EQ(media_of_name("a/b/n01.JPEG"), media_named("jpeg"));
  EXPECT_EQ(media_of_name("x.jpg"), media_named("jpeg"));
  EXPECT_EQ(media_of_name("x.tar.Png"), media_named("png"));
  EXPECT_EQ(media_of_name("x.wav"), media_named("wav"));
  EXPECT_EQ(media_of_name("x.FLAC"), media_named("flac"));
  EXPECT_EQ(media_of_name("x.npy"), media_named("npy"));
  EXPECT_EQ(media_of_name("x.npz"), media_named("npz"));
  EXPECT_EQ(media_of_name("x.txt"), Media{});
  EXPECT_EQ(media_of_name("png"), Media{});
  EXPECT_EQ(media_of_name("apng"), Media{});
  EXPECT_EQ(media_of_name(""), Media{});
}

TEST(Decode, RefusesMediaOfAnotherKind) {
  ImageInfo info;
  Scratch scratch;
  EXPECT_EQ(probe_image(media_named("wav"), {}, info).code, Code::unsupported);
  EXPECT_EQ(decode_image(media_named("npy"), {}, {}, {}, {}, scratch).code, Code::unsupported);
  EXPECT_EQ(decode_array(media_named("png"), {}, {}, nullptr, scratch).code, Code::unsupported);
}

TEST(OutputChannels, FollowTheColourAskedFor) {
  const ImageInfo info{8, 8, 4, 8};
  EXPECT_EQ(output_channels(info, {.color = Color::rgb}), 3);
  EXPECT_EQ(output_channels(info, {.color = Color::gray}), 1);
  EXPECT_EQ(output_channels(info, {.color = Color::keep}), 4);
}

TEST(DecodedRegion, GrowsOutwardsWhenScaled) {
  const ImageOptions half{.fast = true, .scale = 2};
  EXPECT_EQ(decoded_region(media_named("jpeg"), half, {1, 2, 3, 3}), (Rect{0, 1, 2, 2}));
  EXPECT_EQ(decoded_region(media_named("png"), half, {1, 2, 3, 3}), (Rect{1, 2, 3, 3}));
  EXPECT_EQ(decoded_region(media_named("jpeg"), {.scale = 2}, {1, 2, 3, 3}), (Rect{1, 2, 3, 3}));
}

}  // namespace
}  // namespace stoker::codec
