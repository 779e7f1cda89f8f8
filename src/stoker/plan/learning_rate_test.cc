#include "stoker/plan/learning_rate.h"

#include <gtest/gtest.h>

namespace stoker::plan {
namespace {

TEST(LearningRate, OfCaseEsLargerBatchIsWhatTheTeamWrote) {
  const ScaledRates rates = scaled_rates(0.5, 384.0 / 256);
  EXPECT_NEAR(rates.linear, 0.75, 1e-12);
  EXPECT_NEAR(rates.square_root, 0.612, 1e-3);
  EXPECT_EQ(rate_text(0.5, 1.5),
            "learning rate 0.75 (linear) or 0.612 (square root) instead of 0.5, by rules of thumb");
  EXPECT_EQ(rate_text(std::nullopt, 2), "learning rate times 2 (linear) or 1.41 (square root), by rules of thumb");
}

}  // namespace
}  // namespace stoker::plan
