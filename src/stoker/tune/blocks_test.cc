#include "stoker/tune/blocks.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stoker::tune
