#include "stoker/tune/race.h"

#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace stoker::tune {
namespace {

// Points that differ in a knob `k` that nobody knows, with given true rates; run until the race is over.
class Track {
 public:
  Track(std::vector<double> truth, double noise, std::uint64_t seed) : truth_(std::move(truth)), noise_(noise) {
    generator_.seed(seed);
    for (std::size_t i = 0; i < truth_.size(); ++i) {
      points_.push_back({{"k", std::to_string(i)}});
      rows_.emplace_back();
    }
    for (std::size_t i = 0; i < truth_.size(); ++i) run(i);
  }

  void run(std::size_t i) {
    Row row;
    row.knobs = points_[i];
    row.images_per_s = truth_[i] * std::exp(std::normal_distribution<double>(0, noise_)(generator_));
    rows_[i].push_back(row);
  }
  std::vector<Racer> field() const {
    std::vector<Racer> field;
    for (std::size_t i = 0; i < points_.size(); ++i) field.push_back({.point = &points_[i], .rows = rows_[i]});
    return field;
  }
  void set_first_run(std::size_t i, double rate) { rows_[i][0].images_per_s = rate; }

  // The winner; each run that the race asks for is run.
  std::size_t race(int& runs) {
    runs = 0;
    while (const auto ask = next_of_race(field(), 0.02)) {
      EXPECT_TRUE(ask->repeat);
      run(number(ask->point));
      if (++runs > 1000) break;
    }
    return number(*leader_of(field())->point);
  }
  static std::size_t number(const Point& point) { return std::stoul(point.at("k")); }

 private:
  std::vector<double> truth_;
  double noise_;
  std::mt19937_64 generator_;
  std::vector<Point> points_;
  std::vector<std::vector<Row>> rows_;
};

TEST(Race, FindsTheFastestAmongNeighboursInNoise) {
  int found = 0, all_runs = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    int runs = 0;
    found += Track({100, 97, 104, 96}, 0.02, seed).race(runs) == 2;
    all_runs += runs;
  }
  EXPECT_GT(found, 180);
  EXPECT_LT(all_runs / 200, 15) << "of 4 x 8 that were possible";
}

TEST(Race, TheFastestIsAlwaysRunAgain) {
  Track track({100, 50}, 0, 1);
  const auto ask = next_of_race(track.field(), 0.02);
  ASSERT_TRUE(ask);
  EXPECT_EQ(Track::number(ask->point), 0u);
  track.run(0);
  EXPECT_FALSE(next_of_race(track.field(), 0.02)) << "nobody is near";
}

TEST(Race, ALuckyFirstRunDoesNotWin) {
  Track track({100, 120, 90}, 0.001, 1);
  track.set_first_run(2, 200);
  int runs = 0;
  EXPECT_EQ(track.race(runs), 1u);
}

TEST(Race, EndsWhereNobodyCanBeToldApart) {
  int runs = 0;
  Track({100, 100, 100}, 0.05, 3).race(runs);
  EXPECT_LE(runs, 3 * 8);
}

TEST(Race, AsksForTheSameRunAsLongAsItIsNotKnown) {
  const Track track({100, 101, 99}, 0.02, 5);
  EXPECT_EQ(next_of_race(track.field(), 0.02)->point, next_of_race(track.field(), 0.02)->point);
}

TEST(Race, NothingWinsByASingleRun) {
  Track track({100, 50}, 0, 1);
  ASSERT_TRUE(unproven(track.field()));
  EXPECT_EQ(Track::number(unproven(track.field())->point), 0u);
  track.run(0);
  EXPECT_FALSE(unproven(track.field()));
  EXPECT_FALSE(unproven({}));
  EXPECT_FALSE(next_of_race({}, 0.02));
}

}  // namespace
}  // namespace stoker::tune
