#include "stoker/tune/race.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/meter/confidence.h"
#include "stoker/tune/measured.h"

namespace stoker::tune {
namespace {

constexpr double kWorthIt = 0.25;     // of the tolerance: a challenger that may be ahead by more is raced
constexpr std::size_t kMostRuns = 9;  // of one point

// The field as it was when only some of its runs were known: so the race is run again from its start each time, and
// needs no memory but the rows.
class Replayed {
 public:
  Replayed(std::span<const Racer> field, std::size_t most) : field_(field) {
    for (const Racer& racer : field) {
      sampled_.push_back({.point = racer.point});
      for (std::size_t i = 0; i < std::min(most, racer.rows.size()); ++i) add(sampled_.size() - 1);
    }
  }

  std::size_t runs(std::size_t racer) const { return sampled_[racer].runs.size(); }
  bool has_more(std::size_t racer) const { return runs(racer) < field_[racer].rows.size(); }
  void add(std::size_t racer) { sampled_[racer].runs.push_back(&field_[racer].rows[runs(racer)]); }

  void expect() {
    spread_ = spread_of(sampled_);
    expected_ = expected(sampled_, spread_.of_runs);
  }
  std::size_t first() const {
    const auto by_rate = [](const Expected& a, const Expected& b) { return a.log_rate < b.log_rate; };
    return static_cast<std::size_t>(std::max_element(expected_.begin(), expected_.end(), by_rate) - expected_.begin());
  }
  double log_rate(std::size_t racer) const { return expected_[racer].log_rate; }
  const RunSpread& spread() const { return spread_; }

  // The challenger that may be furthest ahead of the leader by chance; empty: none can be, by more than this.
  std::optional<std::size_t> rival(std::size_t first, double worth) const {
    std::optional<std::size_t> rival;
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      if (i == first) continue;
      const double error = meter::t95(spread_.degrees) * std::hypot(expected_[first].error, expected_[i].error);
      const double ahead = expected_[i].log_rate - expected_[first].log_rate + error;
      if (ahead > worth) worth = ahead, rival = i;
    }
    return rival;
  }

 private:
  std::span<const Racer> field_;
  std::vector<Sampled> sampled_;
  std::vector<Expected> expected_;
  RunSpread spread_;
};

}  // namespace

bool contradict(std::span<const Row> rows) {
  return rows.size() > 1 && rows[0].ok() && rows[1].ok() &&
         std::abs(std::log(*rows[0].images_per_s / *rows[1].images_per_s)) > kFarOff;
}

std::optional<Ask> next_of_race(std::span<const Racer> field, double tolerance) {
  if (field.empty()) return std::nullopt;
  Replayed race(field, 1);
  const auto ask = [&](std::size_t racer, std::string why) {
    return Ask{.point = *field[racer].point, .why = std::move(why), .repeat = true};
  };
  for (;;) {
    race.expect();
    const std::size_t first = race.first();
    if (race.runs(first) >= (contradict(field[first].rows) ? 3 : 2)) break;
    if (!race.has_more(first)) return ask(first, "the fastest again");
    race.add(first);
  }
  for (;;) {
    const std::size_t first = race.first();
    const std::optional<std::size_t> rival = race.rival(first, tolerance * kWorthIt);
    if (!rival) return std::nullopt;
    const std::size_t next = race.runs(first) < race.runs(*rival) ? first : *rival;
    if (race.runs(next) >= kMostRuns) return std::nullopt;
    if (!race.has_more(next)) return ask(next, fmt::format("race, run {}", race.runs(next) + 1));
    race.add(next);
    race.expect();
  }
}

std::optional<Ask> unproven(std::span<const Racer> field) {
  const std::optional<Leader> leader = leader_of(field);
  if (!leader) return std::nullopt;
  for (const Racer& racer : field) {
    if (racer.point == leader->point && racer.rows.size() == 1)
      return Ask{.point = *racer.point, .why = "the fastest again", .repeat = true};
  }
  return std::nullopt;
}

std::optional<Leader> leader_of(std::span<const Racer> field) {
  if (field.empty()) return std::nullopt;
  Replayed race(field, kMostRuns);
  race.expect();
  return Leader{field[race.first()].point, race.log_rate(race.first())};
}

RunSpread spread_of(std::span<const Racer> field) {
  Replayed race(field, kMostRuns);
  race.expect();
  return race.spread();
}

}  // namespace stoker::tune
