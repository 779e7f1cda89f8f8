#include "stoker/tune/choose.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "stoker/tune/measured.h"
#include "stoker/tune/results_csv.h"

namespace stoker::tune {
namespace {

Row ran(Point knobs, double rate) {
  return {.knobs = std::move(knobs), .images_per_s = rate};
}

Row at(int batch, int workers, double rate) {
  return ran({{"batch_size", std::to_string(batch)}, {"num_workers", std::to_string(workers)}}, rate);
}

Row failed(Row row, Status status) {
  row.images_per_s.reset();
  row.status = status;
  return row;
}

std::vector<Row> case_a() {
  std::ifstream file(STOKER_TEST_DATA "/case_a.csv");
  std::stringstream text;
  text << file.rdbuf();
  return read_results(text.str(), "case_a.csv").rows;
}

using Doubles = std::vector<double>;

TEST(Knee, StandsWhereMoreWorkersStopHelping) {
  EXPECT_EQ(knee(Doubles{0, 4, 8, 16, 24, 32}, Doubles{78, 337, 495, 482, 503, 485}), 2u);
  EXPECT_EQ(knee(Doubles{1, 2, 3, 4, 5, 6, 7, 8}, Doubles{1, 2, 3, 4, 4, 4, 4, 4}), 3u);
}

// The example of the paper: y = -1 / (x + 0.1) + 5 at ten points from 0 to 1; its knee is at 0.22.
TEST(Knee, AgreesWithThePapersExample) {
  Doubles x, y;
  for (int i = 0; i < 10; ++i) {
    x.push_back(i / 9.0);
    y.push_back(-1 / (x.back() + 0.1) + 5);
  }
  const auto at = knee(x, y);
  ASSERT_TRUE(at.has_value());
  EXPECT_NEAR(x[*at], 0.22, 0.005);
}

TEST(Knee, IsNotInALineNorInNothing) {
  EXPECT_EQ(knee(Doubles{}, Doubles{}), std::nullopt);
  EXPECT_EQ(knee(Doubles{1, 2}, Doubles{1, 9}), std::nullopt);
  EXPECT_EQ(knee(Doubles{1, 2, 3, 4}, Doubles{5, 5, 5, 5}), std::nullopt);
  EXPECT_EQ(knee(Doubles{1, 2, 3, 4}, Doubles{1, 2, 3, 4}), std::nullopt);
  EXPECT_EQ(knee(Doubles{2, 2, 2}, Doubles{1, 2, 3}), std::nullopt);
}

TEST(Choose, ReplaysCaseA) {
  const std::vector<Row> rows = case_a();
  ASSERT_EQ(rows.size(), 72u);
  const Choice choice = choose(rows);
  EXPECT_EQ(choice.points, 72u);
  EXPECT_EQ(choice.ok, 50u);
  EXPECT_EQ(choice.failures, (std::map<Status, std::size_t>{{Status::runtime_fault, 22}}));
  ASSERT_TRUE(choice.best && choice.chosen && choice.knee);
  EXPECT_EQ(text(rows[*choice.best].knobs), "batch_size=32 num_workers=24 pin_memory=True");
  EXPECT_EQ(rows[*choice.best].images_per_s, 502.84);
  EXPECT_EQ(text(rows[*choice.chosen].knobs), "batch_size=32 num_workers=8 pin_memory=True");
  EXPECT_EQ(*choice.knee, 8);
  EXPECT_EQ(choice.reason,
            "the cheapest within 2 % of the fastest: 495 against 503 samples/s, a difference that these runs cannot "
            "tell from none");
}

TEST(Choose, TakesTheFastestWhereNothingCheaperComesNear) {
  const std::vector<Row> rows = {at(32, 1, 100), at(32, 2, 200), at(32, 4, 400)};
  const Choice choice = choose(rows);
  EXPECT_EQ(choice.best, 2u);
  EXPECT_EQ(choice.chosen, 2u);
  EXPECT_EQ(choice.reason, "the fastest that ran, 400 samples/s, and nothing cheaper that always ran comes within 2 %");
}

TEST(Choose, SaysThatANoisyMachineCannotTellAChoiceWithinTwoPercent) {
  const std::vector<Row> rows = {at(32, 1, 100), at(32, 4, 400), at(32, 4, 190), at(32, 4, 380)};
  EXPECT_EQ(choose(rows).reason,
            "the fastest that ran, 390 samples/s; but runs of one point differ by up to 111 %, so which points lie "
            "within 2 % of each other cannot be told");
  EXPECT_NEAR(choose(rows).noise, 1.105, 0.001);
}

TEST(Choose, LeavesOutPointsWithoutARate) {
  const std::vector<Row> idle = {at(32, 1, 0)}, both = {at(32, 1, 0), at(64, 1, 10)};
  const Choice none = choose(idle);
  EXPECT_EQ(none.ok, 0u);
  EXPECT_FALSE(none.chosen.has_value());
  const Choice one = choose(both);
  EXPECT_EQ(one.ok, 1u);
  EXPECT_EQ(one.chosen, 1u);
}

TEST(Choose, PrefersFewerWorkersThenASmallerBatchThenLessPrefetch) {
  std::vector<Row> rows = {at(64, 8, 100), at(32, 8, 99), at(32, 16, 100.5)};
  EXPECT_EQ(choose(rows).chosen, 1u);
  rows.push_back(at(128, 4, 99));
  EXPECT_EQ(choose(rows).chosen, 3u);
  rows = {ran({{"prefetch_factor", "4"}}, 100), ran({{"prefetch_factor", "2"}}, 99),
          ran({{"prefetch_factor", "8"}}, 99)};
  EXPECT_EQ(choose(rows).chosen, 1u);
  rows = {ran({{"pin_memory", "false"}}, 99), ran({{"pin_memory", "true"}}, 100)};
  EXPECT_EQ(choose(rows).chosen, 1u);  // equal cost: the faster
}

TEST(Choose, PrefersLessHostMemoryWhereAllKnowIt) {
  std::vector<Row> rows = {at(32, 4, 99), at(32, 8, 100)};
  rows[0].host_peak_bytes = 4'000'000'000;
  EXPECT_EQ(choose(rows).chosen, 0u);
  rows[1].host_peak_bytes = 2'000'000'000;
  EXPECT_EQ(choose(rows).chosen, 1u);
  rows[1].host_peak_bytes = 3'000'000'000;  // about as much: the workers decide
  EXPECT_EQ(choose(rows).chosen, 0u);
  rows[0].host_peak_bytes = 80'000'000;  // far more, but of nothing
  rows[1].host_peak_bytes = 8'000'000;
  EXPECT_EQ(choose(rows).chosen, 0u);
}

TEST(Choose, CountsRepeatedPointsOnceAndByWhatIsTypical) {
  // 16 workers were lucky once, which counts for nothing; the others say that they are no better than 8.
  const std::vector<Row> rows = {at(32, 8, 100), at(32, 16, 142), at(32, 16, 96), at(32, 8, 102), at(32, 16, 98)};
  const Choice choice = choose(rows);
  EXPECT_EQ(choice.points, 2u);
  EXPECT_EQ(choice.ok, 2u);
  EXPECT_EQ(rows[*choice.best].knobs.at("num_workers"), "8");
  EXPECT_EQ(rows[*choice.chosen].knobs.at("num_workers"), "8");
}

TEST(Measured, LeavesOutWhatIsFarFromTheMedian) {
  const auto typical = [](std::vector<double> rates) { return typical_rate(rates); };
  EXPECT_DOUBLE_EQ(typical({100}), 100);
  EXPECT_DOUBLE_EQ(typical({100, 110}), 105);
  EXPECT_DOUBLE_EQ(typical({100, 102, 180}), 101) << "lucky once";
  EXPECT_DOUBLE_EQ(typical({100, 102, 30}), 101) << "unlucky once";
  EXPECT_DOUBLE_EQ(typical({100, 200}), 150) << "of two nobody knows which was chance";
}

TEST(Measured, SaysByHowMuchRunsOfOnePointDiffer) {
  const std::vector<Row> quiet = {at(32, 8, 100), at(32, 8, 104), at(64, 8, 300)};
  EXPECT_EQ(noise_of(measured(quiet)), 0);
  const std::vector<Row> noisy = {at(32, 8, 100), at(64, 8, 300), at(32, 8, 120)};
  EXPECT_NEAR(noise_of(measured(noisy)), 0.2, 1e-9);
}

TEST(Choose, AvoidsAPointThatAlsoFailed) {
  std::vector<Row> rows = {at(32, 8, 90), at(64, 8, 120), failed(at(64, 8, 0), Status::runtime_fault)};
  EXPECT_EQ(choose(rows).chosen, 0u);
  EXPECT_EQ(choose(rows).best, 0u);
  rows.erase(rows.begin());
  EXPECT_EQ(choose(rows).chosen, 0u);  // nothing else ran
}

TEST(Choose, SaysThatNothingRan) {
  const std::vector<Row> rows = {failed(at(32, 8, 0), Status::oom_device), failed(at(64, 8, 0), Status::pruned)};
  const Choice choice = choose(rows);
  EXPECT_FALSE(choice.best || choice.chosen || choice.knee);
  EXPECT_EQ(choice.reason, "none of 2 points ran");
  EXPECT_EQ(choice.failures, (std::map<Status, std::size_t>{{Status::oom_device, 1}, {Status::pruned, 1}}));
  EXPECT_EQ(choose({}).reason, "nothing was tried");
}

TEST(Choose, SaysWhetherTheDifferenceIsSure) {
  std::vector<Row> rows = {at(32, 8, 985), at(32, 16, 1000)};
  for (Row& row : rows) {
    row.ci_low = *row.images_per_s - 2;
    row.ci_high = *row.images_per_s + 2;
  }
  EXPECT_NE(choose(rows).reason.find("a small but sure difference"), std::string::npos);
}

}  // namespace
}  // namespace stoker::tune
