// The scratch that a sample's transforms take is at most what the plan says before anything is decoded, and not far
// below it.
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/transform/audio_plan.h"
#include "stoker/transform/image_plan.h"

namespace stoker::transform {
namespace {

constexpr std::size_t kHeader = 64;  // of the scratch itself
constexpr std::array<double, 1> kOffset{};

// Memory to work in, of exactly as many bytes.
class Given {
 public:
  explicit Given(std::size_t bytes) : memory_(bytes + 64) {
    const std::size_t skip = (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64;
    scratch_.work_in(std::span(memory_).subspan(skip, bytes));
  }
  Scratch& scratch() { return scratch_; }

 private:
  std::vector<std::byte> memory_;
  Scratch scratch_;
};

struct Size {
  std::uint32_t width, height;
};

TEST(PlanMemory, OfAnImageIsEnoughForApplyAndApplyFast) {
  constexpr const char* kOps[] = {"rrc:64",
                                  "resize:96,centercrop:64",
                                  "resize:40x300",
                                  "resize:300x40,flip",
                                  "rrc:64,flip,normalize:imagenet",
                                  "centercrop:80x700",
                                  "resize:40x30,flip,centercrop:96"};
  for (const char* const text : kOps) {
    for (const Size size : {Size{500, 375}, Size{2000, 130}, Size{130, 2000}, Size{60, 50}}) {
      for (const int channels : {1, 3, 4}) {
        if (channels != 3 && std::string_view(text).find("normalize") != std::string_view::npos) continue;
        for (const int bits : {8, 16}) {
          ImageInput input;
          input.width = size.width, input.height = size.height;
          input.channels = static_cast<std::uint8_t>(channels), input.bits = static_cast<std::uint8_t>(bits);
          Ops ops = parse_ops(text);
          if (bits == 16) ops = parse_ops(std::string("window:40:400,") + text);
          const ImagePlan plan = ImagePlan::compile(ops, input);
          Random random(1, 2, 3, 0);
          Draw draw;
          ASSERT_TRUE(plan.draw(0, size.width, size.height, random, draw).ok());
          std::vector<std::byte> slot(plan.outputs()[0].view_bytes);
          const auto source_of = [&](const Rect& region, std::vector<std::byte>& bytes) {
            Pixels pixels{
                nullptr, 0, region.width, region.height, input.channels, plan.deep() ? DType::u16 : DType::u8};
            pixels.stride_bytes = pixels.row_bytes();
            bytes.assign(pixels.stride_bytes * region.height, std::byte{7});
            pixels.data = bytes.data();
            return pixels;
          };
          std::vector<std::byte> bytes;
          const std::string what = std::string(text) + " of " + std::to_string(size.width) + " x " +
                                   std::to_string(size.height) + ", " + std::to_string(channels) + " channels, " +
                                   std::to_string(bits) + " bits";
          const std::uint64_t most = plan.working_bytes(0, draw);
          Given given(most + kHeader);
          const Pixels source = source_of(draw.crop, bytes);
          EXPECT_TRUE(plan.apply(0, draw, source, draw.crop, kOffset, slot.data(), given.scratch()).ok()) << what;
          const std::size_t used = given.scratch().mark().used;
          EXPECT_LE(most, 2 * used + (64 << 10)) << what << ": far more than it takes";
          if (plan.deep()) continue;
          for (std::uint32_t scale = plan.most_scale(0, draw); scale >= 1; scale /= 2) {
            const Rect crop = plan.crop_at(0, draw, scale);
            const std::uint32_t left = crop.x / scale, top = crop.y / scale;
            const Rect decoded{left, top, (crop.x + crop.width + scale - 1) / scale - left,
                               (crop.y + crop.height + scale - 1) / scale - top};
            Given fast(plan.working_bytes(0, draw, scale) + kHeader);
            const Pixels smaller = source_of(decoded, bytes);
            const Placement placement{std::int64_t{left} * scale, std::int64_t{top} * scale, scale};
            EXPECT_TRUE(plan.apply_fast(0, draw, smaller, placement, slot.data(), fast.scratch()).ok())
                << what << " at 1/" << scale;
          }
        }
      }
    }
  }
}

TEST(PlanMemory, OfAugmentationsIsEnough) {
  for (const char* const text : {"rrc:64,augmix", "rrc:96x40,augmix:10:4:3,gaussian_blur:9", "augmix,rrc:32,augmix:3:2",
                                 "rrc:64,timm_randaug:rand-m9-n4-p1", "rrc:64,random_rotation:40,gaussian_blur:23"}) {
    const ImageInput input{.width = 200, .height = 150};
    const ImagePlan plan = ImagePlan::compile(parse_ops(text), input);
    std::vector<std::byte> bytes(std::size_t{200} * 150 * 3, std::byte{7}), slot(plan.outputs()[0].view_bytes);
    const Pixels source{bytes.data(), 600, 200, 150, 3, DType::u8};
    for (std::uint64_t id = 0; id < 30; ++id) {
      Random random(1, 2, id, 0);
      Draw draw;
      ASSERT_TRUE(plan.draw(0, 200, 150, random, draw).ok());
      Given given(plan.working_bytes(0, draw) + kHeader);
      EXPECT_TRUE(plan.apply(0, draw, source, {0, 0, 200, 150}, kOffset, slot.data(), given.scratch()).ok())
          << text << ", sample " << id;
    }
  }
}

TEST(PlanMemory, OfAudioIsEnough) {
  for (const char* const text :
       {"mono", "resample:16000", "mono,resample:16000", "mono,resample:11025,pad:9000", "gain", "shift,pad:9000",
        "resample:16000,random_trim:5000,shift", "resample:16000,mel", "mono,resample:16000,random_trim:30000,mfcc",
        "resample:16000,shift,random_trim:5000,mel:16000:101,db"}) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const AudioPlan plan = AudioPlan::compile(parse_ops(text), {2, 8000}, {dtype});
      for (const std::uint32_t rate_hz : {8000u, 44100u}) {
        if (!plan.check(2, rate_hz).ok()) continue;
        constexpr std::uint64_t kFrames = 20000;
        const std::vector<float> planar(2 * kFrames, 0.5F);
        const std::uint64_t frames = plan.output_frames(kFrames, rate_hz);
        std::vector<std::byte> slot(plan.output_rows() * frames * size_of(dtype));
        Given given(plan.working_bytes(kFrames, rate_hz, 2) + kHeader);
        std::uint64_t written = 0;
        EXPECT_TRUE(
            plan.apply(planar.data(), kFrames, kFrames, rate_hz, slot.data(), frames, written, given.scratch(), 2).ok())
            << text << " from " << rate_hz;
      }
    }
  }
}

}  // namespace
}  // namespace stoker::transform
