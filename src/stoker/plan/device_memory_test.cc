#include "stoker/plan/device_memory.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::plan {
namespace {

const Vit kLarge = parse_vit("vit:dim=1024,depth=24,heads=16,patch=14,img=224");
const Vit kGiant = parse_vit("vit:dim=1536,depth=40,heads=24,patch=14,img=224");

TEST(Vit, HasTheParametersAndFlopsOfItsDescription) {
  EXPECT_NEAR(kLarge.parameters(), 303.2e6, 0.1e6);
  EXPECT_NEAR(kGiant.parameters(), 1134.6e6, 0.2e6);  // not 1.5 billion
  EXPECT_NEAR(kLarge.forward_flops(), 162.0e9, 0.2e9);
  EXPECT_NEAR(kGiant.forward_flops() / kLarge.forward_flops(), 3.70, 0.01);
  EXPECT_EQ(kLarge.tokens(), 257);
}

TEST(Vit, GoesByItsNameToo) {
  EXPECT_EQ(parse_vit("vit:large").parameters(), kLarge.parameters());
  EXPECT_EQ(parse_vit("vit:giant,img=224").parameters(), kGiant.parameters());
  EXPECT_NEAR(parse_vit("vit:base").parameters(), 85.8e6, 0.1e6);
  EXPECT_GT(parse_vit("vit:large,img=518").forward_flops(), 5 * kLarge.forward_flops());
  EXPECT_THROW(parse_vit("vit:larger"), Error);
}

TEST(Vit, RefusesWhatItCannotBe) {
  for (const char* text :
       {"resnet50", "vit:", "vit:dim=1024", "vit:dim=x,depth=1,heads=1,patch=1", "vit:dim=8,depth=1,heads=1,patch=0",
        "vit:dim=8,dim=8,depth=1,heads=1,patch=1", "vit:dim=8,depth=1,heads=1,patch=14,img=7",
        "vit:dim=8,depth=1,heads=1,patch=14,size=7", "vit:dim=-8,depth=1,heads=1,patch=14"}) {
    EXPECT_THROW(parse_vit(text), Error) << text;
  }
}

TEST(MemoryLine, OfViTLargeIsWithin5PercentAtFiveBatches) {
  const MemoryLine line = memory_line(kLarge, {.half = true, .checkpointing = true});
  for (const auto& [batch, seen] : {std::pair(48, 6.3e9), std::pair(64, 6.8e9), std::pair(96, 7.8e9),
                                    std::pair(128, 8.9e9), std::pair(160, 10.1e9)}) {
    EXPECT_NEAR(line.at(batch) / seen, 1, 0.05) << batch;
  }
}

TEST(MemoryLine, FittedToTwoBatchesPredictsTheOthers) {
  const MemoryPoint points[] = {{48, 6.3e9}, {64, 6.8e9}};
  const std::optional<MemoryLine> line = fit_line(points);
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->at(160) / 10.1e9, 1, 0.05);
  EXPECT_EQ(line->basis, "fitted to 2 batches");
}

TEST(MemoryLine, IsNotFittedToOneBatchNorToOnesThatDoNotGrow) {
  const MemoryPoint once[] = {{48, 6.3e9}, {48, 6.4e9}};
  const MemoryPoint flat[] = {{48, 6.3e9}, {64, 6.3e9}};
  const MemoryPoint failed[] = {{48, 6.3e9}, {64, std::nullopt, true}};
  EXPECT_FALSE(fit_line(once));
  EXPECT_FALSE(fit_line(flat));
  EXPECT_FALSE(fit_line(failed));
}

TEST(MemoryLine, TakesLessWithCheckpointingAndMoreInFloat32) {
  const double plain = memory_line(kLarge, {}).bytes_per_image;
  EXPECT_LT(memory_line(kLarge, {.checkpointing = true}).bytes_per_image, plain / 4);
  EXPECT_GT(memory_line(kLarge, {.half = false}).bytes_per_image, 1.9 * plain);
  EXPECT_GT(memory_line(kLarge, {.flash = false}).bytes_per_image, plain);
  EXPECT_GT(memory_line(kLarge, {.teacher = true}).fixed_bytes, memory_line(kLarge, {}).fixed_bytes);
}

TEST(MemoryLine, OfADinoRunHasBothNetworksAndAllViews) {
  const Vit dino = parse_vit("dino:large"), alone = parse_vit("dino:large,large_views=2,small_views=0");
  EXPECT_EQ(dino.large_views, 2);
  EXPECT_EQ(dino.small_views, 8);
  EXPECT_NEAR(dino.parameters() - kLarge.parameters(), 23.6e6, 0.1e6) << "the projection";
  const MemoryLine line = memory_line(dino, {}), plain = memory_line(kLarge, {});
  EXPECT_NEAR(line.fixed_bytes, 20 * dino.parameters(), 1) << "a teacher beside weights, gradients and moments";
  EXPECT_NEAR(memory_line(alone, {}).bytes_per_image, 2 * plain.bytes_per_image + 4.0 * 65536 * (2 + 2 + 4), 1);
  const double small = dino.tokens_of(96) / dino.tokens();
  EXPECT_NEAR(line.bytes_per_image / plain.bytes_per_image, 2 + 8 * small, 0.1);
  double sum = 0;
  for (const MemoryPart& part : memory_parts(dino, {})) sum += part.bytes_per_image;
  EXPECT_NEAR(sum, line.bytes_per_image, 1);
  EXPECT_NEAR(dino.forward_flops() / kLarge.forward_flops(), 2 + 2.0 / 3 + 8 * small, 0.05);
  EXPECT_THROW(parse_vit("dino:large,small=7"), Error);
  EXPECT_THROW(parse_vit("vit:large,small_views=2"), Error);
}

TEST(LargestBatch, LeavesTheMarginFree) {
  const MemoryLine line{10e9, 1e9};
  EXPECT_EQ(largest_batch(line, 100e9, 0.1), 80u);
  EXPECT_EQ(largest_batch(line, 11e9, 0.1), 0u);
}

TEST(Compare, CallsTheOutOfMemoryOfGiantUnexplained) {
  const MemoryLine line = memory_line(kGiant, {});
  const MemoryPoint points[] = {{6, std::nullopt, true}, {8, std::nullopt, true}};
  const auto compared = compare(line, points, 96e9);
  ASSERT_EQ(compared.size(), 2u);
  for (const Compared& one : compared) {
    EXPECT_TRUE(one.unexplained) << one.point.batch;
    EXPECT_LT(one.predicted_bytes, 33e9);
    EXPECT_GT(*one.ratio, 2.9);
  }
}

TEST(Compare, FindsAnExpectedOutOfMemoryExplained) {
  const MemoryPoint points[] = {{100, std::nullopt, true}, {50, 55e9}, {50, 120e9}};
  const std::vector<Compared> all = compare({10e9, 1e9}, points, 96e9);
  EXPECT_FALSE(all[0].unexplained);
  EXPECT_FALSE(all[1].unexplained);
  EXPECT_TRUE(all[2].unexplained);
}

TEST(DeviceMemory, OfATracedModelIsALineWithAFloorAndItsParts) {
  const Json json = {{"parameter_count", 25e6},
                     {"forward_flops", 8.2e9},
                     {"img_size", 224},
                     {"fixed_bytes", 250e6},
                     {"bytes_per_image", 44.5e6},
                     {"parameters_bytes", 100e6},
                     {"buffers_bytes", 1e6},
                     {"gradients_bytes", 100e6},
                     {"optimizer_bytes", 100e6},
                     {"activation_bytes_per_image", 43e6},
                     {"input_bytes_per_image", 0.6e6}};
  const TracedModel model = traced_of(json);
  EXPECT_NEAR(model.line.at(256), 250e6 + 256 * 44.5e6, 1);
  EXPECT_NEAR(model.line.at(1), 301e6, 1) << "the optimizer's step, whatever the batch";
  ASSERT_EQ(model.parts.size(), 6u);
  EXPECT_EQ(model.parts[3].name, "activations");
  EXPECT_NEAR(model.parts[3].at(256), 49e6 + 256 * 43e6, 1);
  EXPECT_THROW(traced_of(Json::object()), Error);
}

TEST(DeviceMemory, OfAVisionTransformerHasPartsThatComeToItsLine) {
  const Vit vit = parse_vit("vit:large");
  for (const Training& training : {Training{}, Training{.checkpointing = true, .sgd = true, .teacher = true}}) {
    double sum = 0;
    for (const MemoryPart& part : memory_parts(vit, training)) sum += part.at(64);
    EXPECT_NEAR(sum, memory_line(vit, training).at(64), 1);
  }
}

}  // namespace
}  // namespace stoker::plan
