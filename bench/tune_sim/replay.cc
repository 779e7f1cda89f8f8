// Judges the search on a grid that was recorded: bench_tune_replay FILE --cores N --seeds S. Each trial that the search
// asks for is answered by a recorded one; the true rate of a point is the mean of all its recordings. One JSON object
// to stdout.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/tune/choose.h"
#include "stoker/tune/results_csv.h"
#include "stoker/tune/search.h"

namespace {

namespace tune = stoker::tune;

using Recorded = std::map<tune::Point, std::vector<tune::Row>>;

tune::Grid grid_of(const tune::Results& results) {
  tune::Grid grid;
  for (const std::string& knob : results.knobs) {
    std::vector<std::string> values;
    for (const tune::Row& row : results.rows) {
      if (std::find(values.begin(), values.end(), row.knobs.at(knob)) == values.end())
        values.push_back(row.knobs.at(knob));
    }
    std::string text = knob + "=";
    for (const std::string& value : values) text += (text.back() == '=' ? "" : ",") + value;
    grid.add(text);
  }
  return grid;
}

double truth_of(const std::vector<tune::Row>& rows) {
  double sum = 0;
  for (const tune::Row& row : rows) {
    if (!row.ok()) return 0;
    sum += *row.images_per_s / static_cast<double>(rows.size());
  }
  return sum;
}

// Answers trials from the recording, each point's in an order of its own.
class Player {
 public:
  Player(const Recorded& recorded, std::uint64_t seed) : recorded_(recorded), generator_(seed) {}
  tune::Row trial(const tune::Point& point, double& seconds) {
    std::vector<tune::Row>& rows = shuffled_[point];
    if (rows.empty()) {
      rows = recorded_.at(point);
      std::shuffle(rows.begin(), rows.end(), generator_);
    }
    const tune::Row& row = rows[asked_[point]++ % rows.size()];
    seconds += row.trial_seconds.value_or(0);
    return row;
  }

 private:
  const Recorded& recorded_;
  std::mt19937_64 generator_;
  std::map<tune::Point, std::vector<tune::Row>> shuffled_;
  std::map<tune::Point, std::size_t> asked_;
};

}  // namespace

int main(int argc, char** argv) {
  double cores = 0;
  int seeds = 50;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--cores") == 0) cores = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--seeds") == 0) seeds = std::atoi(argv[i + 1]);
  }
  if (argc < 2) return std::fprintf(stderr, "usage: tune_replay FILE [--cores N] [--seeds N]\n"), 2;
  try {
    std::ifstream in(argv[1], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const tune::Results results = tune::read_results(text, argv[1]);
    Recorded recorded;
    double seconds_of_all = 0;
    for (const tune::Row& row : results.rows) {
      recorded[row.knobs].push_back(row);
      seconds_of_all += row.trial_seconds.value_or(0);
    }
    const tune::Grid grid = grid_of(results);
    double best = 0, passes = 1e9;
    for (const auto& [point, rows] : recorded) {
      best = std::max(best, truth_of(rows));
      passes = std::min(passes, static_cast<double>(rows.size()));
    }
    const auto regret = [&](const tune::Point& point) { return 1 - truth_of(recorded.at(point)) / best; };
    const double grid_seconds =
        seconds_of_all / static_cast<double>(results.rows.size()) * static_cast<double>(grid.size());
    std::printf("{\"points\": %llu, \"passes\": %.0f, \"grid_seconds\": %.2f, \"best\": %.3f, \"runs\": [\n",
                static_cast<unsigned long long>(grid.size()), passes, grid_seconds, best);
    for (int seed = 0; seed < seeds; ++seed) {
      Player player(recorded, static_cast<std::uint64_t>(seed));
      tune::SearchOptions options;
      options.grid = grid;
      options.limits.cores = cores;
      const auto search = tune::auto_search(options);
      std::vector<tune::Row> rows;
      double seconds = 0;
      while (const auto ask = search->next()) {
        rows.push_back(player.trial(ask->point, seconds));
        search->tell(rows.back());
      }
      const tune::Choice choice = tune::choose(rows);

      const auto highest = [&](const std::vector<tune::Row>& all) {
        const tune::Row* top = nullptr;
        for (const tune::Row& row : all) {
          if (row.ok() && (top == nullptr || *row.images_per_s > *top->images_per_s)) top = &row;
        }
        return top == nullptr ? 1.0 : regret(top->knobs);
      };
      Player once(recorded, static_cast<std::uint64_t>(seed) + 1'000'000);
      std::vector<tune::Point> points = grid.points();
      std::mt19937_64 generator(static_cast<std::uint64_t>(seed));
      std::shuffle(points.begin(), points.end(), generator);
      std::vector<tune::Row> by_chance, all;
      double spent = 0;
      for (const tune::Point& point : points) {
        double one = 0;
        all.push_back(once.trial(point, one));
        if (spent < seconds) by_chance.push_back(all.back());
        spent += one;
      }
      std::printf(
          "  {\"seed\": %d, \"seconds\": %.2f, \"trials\": %zu, \"best\": %.5f, \"chosen\": %.5f, \"random\": %.5f, "
          "\"exhaustive\": %.5f}%s\n",
          seed, seconds, rows.size(), choice.best ? regret(rows[*choice.best].knobs) : 1,
          choice.chosen ? regret(rows[*choice.chosen].knobs) : 1, highest(by_chance), highest(all),
          seed + 1 == seeds ? "" : ",");
    }
    std::printf("]}\n");
  } catch (const stoker::Error& error) {
    return std::fprintf(stderr, "error: %s\n", error.what()), 2;
  }
}
