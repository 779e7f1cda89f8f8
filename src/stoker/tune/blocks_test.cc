#include "stoker/tune/blocks.h"

#include <gtest/gtest.h>

#include "stoker/base/json.h"

namespace stoker::tune {
namespace {

Block block(double seconds, double ready_change, std::optional<double> compute_s) {
  Block block;
  block.steps = 10, block.samples = 320, block.seconds = seconds, block.ready_change = ready_change;
  block.compute_s = compute_s;
  return block;
}

double rate_of(const Block& one) {
  Row row;
  fill_row({one}, row);
  return row.images_per_s.value();
}

TEST(SteadyRate, LeavesOutWhatLayReadyBeforeTheClockStarted) {
  EXPECT_DOUBLE_EQ(rate_of(block(1, -5, std::nullopt)), 160);
}

TEST(SteadyRate, CountsWhatPiledUpWhereTheStepIsNotKnown) {
  EXPECT_DOUBLE_EQ(rate_of(block(1, 2, std::nullopt)), 384);
}

TEST(SteadyRate, IsNeverMoreThanTheStepCanTake) {
  EXPECT_DOUBLE_EQ(rate_of(block(1, 2, 1.0)), 320) << "the step was the limit all the time";
  EXPECT_DOUBLE_EQ(rate_of(block(1, 2, 0.9)), 320 / 0.9);
  EXPECT_DOUBLE_EQ(rate_of(block(1, 2, 0.5)), 384) << "the loader could still give more";
}

TEST(ReportedBlock, IsReadWhereItIsOne) {
  const auto read = [](const char* text) { return block_of(Json::parse_or_null(text)); };
  const auto block = read(
      R"({"event": "block", "steps": 5, "samples": 160, "seconds": 0.5, "warmup": true, "data_s": 0.1, "ready_change": -2})");
  ASSERT_TRUE(block);
  EXPECT_EQ(block->samples, 160);
  EXPECT_TRUE(block->is_warmup);
  EXPECT_EQ(block->data_s, 0.1);
  EXPECT_EQ(block->ready_change, -2);
  EXPECT_EQ(block->compute_s, std::nullopt);
  const auto odd = read(R"({"event": "block", "steps": -5, "seconds": "long", "fetch_s": -1})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->steps, 0);
  EXPECT_EQ(odd->seconds, 0);
  EXPECT_EQ(odd->fetch_s, std::nullopt);
  EXPECT_FALSE(odd->is_warmup);
  for (const char* other : {"[]", "3", R"({"event": 3})", R"({"event": "memory"})", R"({"steps": 5})"})
    EXPECT_FALSE(read(other)) << other;
}

}  // namespace
}  // namespace stoker::tune
