// Judges the search of `stoker tune --search auto` on simulated jobs: bench_tune_sim --grids N --seed S. One JSON
// object to stdout.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "stoker/tune/choose.h"
#include "stoker/tune/search.h"

#include "machine.h"

namespace {

using tune_sim::End;
using tune_sim::Generator;
using tune_sim::Machine;
using tune_sim::Run;
using tune_sim::Setting;
namespace tune = stoker::tune;

constexpr int kWarmup = 5, kSteps = 20;  // as people run such grids by hand

enum class Rates { workers, consumer };  // what a trial can see

struct Judged {
  double seconds = 0, regret = 1;  // regret: how far the true rate of what was picked is below the true best
  int trials = 0;
};

struct OfGrid {
  Judged all, random, best, chosen, tried;  // the last three are of the search; tried: the truly best of what it tried
};

Setting setting_of(const tune::Point& point) {
  return {static_cast<int>(*tune::number_of(point, "batch_size")),
          static_cast<int>(*tune::number_of(point, "num_workers")), *tune::number_of(point, "pin_memory") == 1};
}

// A trial as the tuner sees it.
tune::Row row_of(const Run& run, const tune::Point& point, Rates rates) {
  tune::Row row;
  row.knobs = point;
  if (run.end != End::ran) {
    row.status = run.end == End::fault ? tune::Status::runtime_fault : tune::Status::oom_device;
    return row;
  }
  const Setting setting = setting_of(point);
  double rate = run.consumer_rate;
  // Workers that cannot keep up set the rate, and their own clocks are surer than what came out of the queue meanwhile.
  const bool are_behind = run.worker_rate * run.compute_seconds < setting.batch;
  if (rates == Rates::workers && setting.workers > 0 && are_behind) rate = run.worker_rate;
  row.images_per_s = rate;
  row.step_ms = 1000 * setting.batch / rate;
  row.compute_ms = 1000 * run.compute_seconds;
  row.data_ms = std::max(0.0, *row.step_ms - *row.compute_ms);
  return row;
}

class Bench {
 public:
  Bench(std::uint64_t seed, Rates rates) : machine_(seed), rates_(rates), generator_(seed ^ 0x9E3779B97F4A7C15u) {
    grid_.add("batch_size=32,64,128,192,256,512");
    grid_.add("num_workers=0,4,8,16,24,32");
    grid_.add("pin_memory=true,false");
    for (const tune::Point& point : grid_.points()) {
      truth_[point] = machine_.true_rate(setting_of(point));
      best_ = std::max(best_, truth_[point]);
    }
  }

  bool has_a_best() const { return best_ > 0; }

  OfGrid judge(bool is_told) {
    OfGrid result;
    result.all = exhaustive();
    search(result, is_told);
    result.random = random(result.best.seconds);
    return result;
  }

 private:
  tune::Row trial(const tune::Point& point, double& seconds) {
    const Setting setting = setting_of(point);
    // A consumer sees bursts of as many batches as there are workers: only whole rounds of them are a rate.
    const int round = std::max(setting.workers, 1), steps = (kSteps + round - 1) / round * round;
    const Run run = machine_.run(setting, kWarmup, steps, generator_);
    seconds += run.seconds;
    return row_of(run, point, rates_);
  }

  double regret(const tune::Point& point) { return 1 - truth_.at(point) / best_; }

  // The row with the highest rate, as people pick it.
  double regret_of_highest(const std::vector<tune::Row>& rows) {
    const tune::Row* highest = nullptr;
    for (const tune::Row& row : rows) {
      if (row.ok() && (highest == nullptr || *row.images_per_s > *highest->images_per_s)) highest = &row;
    }
    return highest == nullptr ? 1 : regret(highest->knobs);
  }

  Judged exhaustive() {
    Judged judged;
    std::vector<tune::Row> rows;
    for (const tune::Point& point : grid_.points()) rows.push_back(trial(point, judged.seconds));
    judged.trials = static_cast<int>(rows.size());
    judged.regret = regret_of_highest(rows);
    return judged;
  }

  Judged random(double seconds) {
    Judged judged;
    std::vector<tune::Point> points = grid_.points();
    std::shuffle(points.begin(), points.end(), generator_);
    std::vector<tune::Row> rows;
    for (const tune::Point& point : points) {
      if (judged.seconds >= seconds) break;
      rows.push_back(trial(point, judged.seconds));
    }
    judged.trials = static_cast<int>(rows.size());
    judged.regret = regret_of_highest(rows);
    return judged;
  }

  void search(OfGrid& result, bool is_told) {
    tune::SearchOptions options;
    options.grid = grid_;
    options.limits.cores = machine_.cores();
    const auto search = tune::auto_search(options);
    std::vector<tune::Row> rows;
    double seconds = 0;
    while (const auto ask = search->next()) {
      rows.push_back(trial(ask->point, seconds));
      search->tell(rows.back());
      if (is_told) {
        const tune::Row& row = rows.back();
        std::printf("%-24s %-48s %-14s %8.1f img/s, waits %4.0f %%, true %8.1f\n", ask->why.c_str(),
                    tune::text(ask->point).c_str(), std::string(tune::name(row.status)).c_str(),
                    row.images_per_s.value_or(0), row.ok() ? 100 * *row.data_ms / *row.step_ms : 0,
                    truth_.at(ask->point));
      }
    }
    const tune::Choice choice = tune::choose(rows);
    result.best = {seconds, choice.best ? regret(rows[*choice.best].knobs) : 1, static_cast<int>(rows.size())};
    result.tried = {seconds, 1, static_cast<int>(rows.size())};
    for (const tune::Row& row : rows) result.tried.regret = std::min(result.tried.regret, regret(row.knobs));
    result.chosen = {seconds, choice.chosen ? regret(rows[*choice.chosen].knobs) : 1, static_cast<int>(rows.size())};
    if (is_told) {
      const auto top = std::max_element(truth_.begin(), truth_.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
      std::printf("best of %s; true best %s %.1f; regret %.1f %%; %.0f s of %.0f s\n\n",
                  choice.best ? tune::text(rows[*choice.best].knobs).c_str() : "none", tune::text(top->first).c_str(),
                  top->second, 100 * result.best.regret, seconds, result.all.seconds);
    }
  }

  Machine machine_;
  Rates rates_;
  Generator generator_;
  tune::Grid grid_;
  std::map<tune::Point, double> truth_;
  double best_ = 0;
};

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

void print(const char* name, const std::vector<OfGrid>& grids, Judged OfGrid::*which, bool is_last) {
  double hits = 0, trials = 0;
  std::vector<double> times, regrets;
  for (const OfGrid& grid : grids) {
    const Judged& judged = grid.*which;
    hits += judged.regret <= 0.02;
    trials += judged.trials;
    times.push_back(judged.seconds / grid.all.seconds);
    regrets.push_back(judged.regret);
  }
  const auto n = static_cast<double>(grids.size());
  std::printf(
      "   \"%s\": {\"within_2_percent\": %.4f, \"time_median\": %.4f, \"time_p95\": %.4f, \"trials_mean\": %.1f, "
      "\"regret_median\": %.5f, \"regret_p95\": %.5f}%s\n",
      name, hits / n, quantile(times, 0.5), quantile(times, 0.95), trials / n, quantile(regrets, 0.5),
      quantile(regrets, 0.95), is_last ? "" : ",");
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  int count = 1500;
  long tell = -1;  // one grid, trial by trial
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--grids") == 0) count = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--tell") == 0) tell = std::atol(argv[i + 1]);
  }
  if (count < 1) return std::fprintf(stderr, "error: --grids must be at least 1\n"), 2;
  std::vector<OfGrid> results[2];
  for (const Rates rates : {Rates::workers, Rates::consumer}) {
    std::vector<OfGrid>& all = results[static_cast<int>(rates)];
    std::vector<OfGrid> slots(static_cast<std::size_t>(count));
    std::vector<char> is_there(static_cast<std::size_t>(count), 0);
    const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> crew;
    for (unsigned t = 0; t < threads; ++t) {
      crew.emplace_back([&, t] {
        for (std::size_t i = t; i < slots.size(); i += threads) {
          if (tell >= 0 && static_cast<std::size_t>(tell) != i) continue;
          const std::uint64_t of_grid = seed * 1'000'003 + i;
          Bench bench(of_grid, rates);
          is_there[i] = bench.has_a_best();
          if (is_there[i]) slots[i] = bench.judge(tell >= 0);
        }
      });
    }
    for (std::thread& one : crew) one.join();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (is_there[i]) all.push_back(slots[i]);
    }
  }
  if (tell >= 0) return 0;
  std::printf("{\"seed\": %llu, \"grids\": %zu,\n", static_cast<unsigned long long>(seed), results[0].size());
  for (const Rates rates : {Rates::workers, Rates::consumer}) {
    const std::vector<OfGrid>& all = results[static_cast<int>(rates)];
    std::printf(" \"%s\": {\n", rates == Rates::workers ? "worker_side" : "consumer_side");
    print("exhaustive", all, &OfGrid::all, false);
    print("auto", all, &OfGrid::best, false);
    print("auto_cheapest", all, &OfGrid::chosen, false);
    print("auto_tried", all, &OfGrid::tried, false);
    print("random", all, &OfGrid::random, true);
    std::printf(" }%s\n", rates == Rates::workers ? "," : "");
  }
  std::printf("}\n");
}
