// The search is written down as a plan that reads results as if all were known. Where one is missing the plan ends and
// asks for it; told the result, it is followed from the start again. So there is no state but the results, a resumed
// run goes on where it was, and the plan reads in its order:
//   1. start with the smallest batch and about as many workers as cores
//   2. workers: while the step waits for data, add as many as should suffice; else leave them
//   3. batch: two sizes give a line for the time of a step, and it the sizes worth trying; not while data is the limit,
//      unless what limits it is paid per batch (hand-off, or no step to speak of): then along the sizes while that
//      helps
//   4. other knobs, along their values while that helps; then again from 2 until nothing changes
//   5. re-run the leader until it stays leader
//   6. race: re-run the leader and each plausible challenger in turn, until none can win by more than the tolerance
//   7. halve the workers while the rate stays within the tolerance
//   8. re-run the fastest point if it ran only once
#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stoker/tune/left_out.h"
#include "stoker/tune/measured.h"
#include "stoker/tune/race.h"
#include "stoker/tune/search.h"
#include "stoker/tune/search_space.h"
#include "stoker/tune/verdict.h"

namespace stoker::tune {
namespace {

constexpr double kWaits = kFed;        // share of the step spent waiting from which on data is the limit
constexpr double kWaitsMuch = 0.15;    // from which on neither batch nor pinning can matter
constexpr double kNoStep = 0.9;        // from which on there is no step to speak of
constexpr double kSpare = 1.15;        // workers asked for, over those that would just do
constexpr double kLineNoise = 0.02;    // of a step's time, around a line
constexpr double kLeastTrials = 12;    // a race is never cut before
constexpr double kWide = 0.25;         // half an interval that tells nothing; then look again,
constexpr std::size_t kMostLooks = 2;  // so often in all

// A search stops racing after this number of trials, or of second and further runs, per point of the grid.
// Where runs of one point differ much, more of them would not tell either.
struct Share {
  double trials, repeats;
};
constexpr Share kShareOfCalm{.trials = 0.28, .repeats = 0.18}, kShare{.trials = 0.2, .repeats = 0.12};
constexpr double kCalm = 0.025;  // one standard deviation

struct Wanted {  // what the plan ends with; does not leave this file
  Ask ask;
};

bool is_fault(Status status) {
  return status == Status::runtime_fault || status == Status::worker_died || status == Status::hang ||
         status == Status::killed_unknown || status == Status::oom_suspect;
}

class AutoSearch final : public Search {
 public:
  explicit AutoSearch(const SearchOptions& options) : options_(options), space_(options) {
    batch_ = space_.axis("batch_size");
    workers_ = space_.axis("num_workers");
  }

  std::optional<Ask> next() override {
    is_done_ = false;
    if (!space_.has_user_error()) {
      try {
        follow_plan();
      } catch (const Wanted& wanted) {
        return wanted.ask;
      }
    }
    is_done_ = true;
    return std::nullopt;
  }

  void tell(const Row& row) override { space_.add(row); }

  std::vector<Row> left_out() const override {
    std::vector<Row> rows;
    for (const Point& point : space_.points()) {
      if (std::optional<Row> row = space_.excluded(point)) {
        rows.push_back(std::move(*row));
      } else if (is_done_ && space_.rows_of(point).empty()) {
        rows.push_back({.status = Status::pruned, .knobs = point, .error = why_left_out(space_, point)});
      }
    }
    return rows;
  }

  std::uint64_t at_most() const override {
    if (is_done_) return 0;
    std::uint64_t untried = 0;
    for (const Point& point : space_.points()) untried += space_.rows_of(point).empty() && !space_.excluded(point);
    return untried + static_cast<std::uint64_t>(
                         std::max(kLeastTrials, kShareOfCalm.repeats * static_cast<double>(space_.points().size())));
  }

 private:
  struct Known {
    bool is_ok = false;
    double rate = 0;                     // of its first run, or of as many as it takes
    std::optional<double> waits = {};    // share of the step spent waiting for data; of all runs
    std::optional<double> seconds = {};  // of compute and copy, per step; of all runs
    bool pays_per_batch = false;         // limited by hand-off, or drained without a step
  };

  // How many runs of a point count on the way to the race: one, or more where its own interval is too wide to tell.
  static std::size_t looks(const std::vector<Row>& rows) {
    double squares = 0;
    for (std::size_t i = 0; i < rows.size() && i + 1 < kMostLooks; ++i) {
      const Row& row = rows[i];
      if (!row.ok() || !row.ci_low || !row.ci_high) return i + 1;
      squares += std::pow((*row.ci_high - *row.ci_low) / 2 / *row.images_per_s, 2);
      if (std::sqrt(squares) / static_cast<double>(i + 1) <= kWide) return i + 1;
    }
    return std::min(rows.size() + 1, kMostLooks);
  }

  // Of the first `runs`, all of which are ok.
  static double rate_of(const std::vector<Row>& rows, std::size_t runs) {
    std::vector<double> rates;
    for (std::size_t i = 0; i < runs; ++i) rates.push_back(*rows[i].images_per_s);
    return typical_rate(rates);
  }

  static Known known(const std::vector<Row>& rows) {
    Known known;
    // After two that contradict each other all count, and the plan may take another course.
    const std::size_t most = contradict(rows) && rows.size() > 2 ? rows.size() : std::min(looks(rows), rows.size());
    double waits = 0, seconds = 0, with_waits = 0, with_seconds = 0;
    for (const Row& row : rows) {
      if (!row.ok()) return {};  // also one that ran at another time: unstable
      if (row.data_ms && row.step_ms && *row.step_ms > 0) waits += *row.data_ms / *row.step_ms, ++with_waits;
      if (row.compute_ms) seconds += (*row.compute_ms + row.h2d_ms.value_or(0)) / 1000, ++with_seconds;
      if (known.is_ok) continue;
      known.is_ok = true;
      known.pays_per_batch =
          parse_bound(row.verdict) == meter::Bound::handoff || (waits >= kNoStep && !row.verdict.empty());
    }
    if (known.is_ok) known.rate = rate_of(rows, most);
    if (with_waits > 0) known.waits = waits / with_waits;
    if (with_seconds > 0) known.seconds = seconds / with_seconds;
    return known;
  }

  // A fault is repeated once, unless `repeats` is false: then the first result counts until the point is asked for
  // again.
  Known measure(const Place& place, std::string_view why, bool repeats = true) {
    const Point point = space_.point(place);
    const std::vector<Row>& rows = space_.rows_of(point);
    if (rows.empty()) {
      if (space_.excluded(point)) return {};
      throw Wanted{{.point = point, .why = std::string(why)}};
    }
    if (repeats && rows.size() == 1 && is_fault(rows[0].status)) {
      throw Wanted{{.point = point, .why = "again after a fault", .repeat = true}};
    }
    if (rows.size() < looks(rows)) {
      throw Wanted{{.point = point, .why = "again: its interval is wide", .repeat = true}};
    }
    seen_.insert(place);
    return known(rows);
  }

  // Measures, and goes there if it is faster.
  Known visit(const Place& place, std::string_view why, bool repeats = true) {
    const Known here = measure(place, why, repeats);
    if (here.is_ok && (!is_found_ || here.rate > best_.rate)) {
      is_found_ = true;
      best_ = here;
      at_ = place;
    }
    return here;
  }

  double number(std::size_t axis, std::size_t index) const {
    return space_.axes()[axis].numbers[index].value_or(static_cast<double>(index));
  }
  std::size_t count(std::size_t axis) const { return space_.axes()[axis].settings.size(); }
  static Place moved(Place place, std::size_t axis, std::size_t index) {
    place[axis] = index;
    return place;
  }

  // The least index on the axis with at least this number, else the last.
  std::size_t index_of(std::size_t axis, double wanted) const {
    std::size_t index = 0;
    while (index + 1 < count(axis) && number(axis, index) < wanted) ++index;
    return index;
  }

  bool loads_in_the_step(std::size_t index) const { return workers_ && number(*workers_, index) == 0; }

  Place start() const {
    Place place(space_.axes().size(), 0);
    for (std::size_t axis = 0; axis < place.size(); ++axis) {
      const std::string_view name = role_of(space_.axes()[axis].name);
      if (workers_ == axis) {
        const double wanted = options_.limits.cores > 0 ? options_.limits.cores : number(axis, count(axis) / 2);
        while (place[axis] + 1 < count(axis) && number(axis, place[axis] + 1) <= wanted) ++place[axis];
        if (loads_in_the_step(place[axis]) && count(axis) > 1) place[axis] = 1;
      } else if (name == "pin_memory" || name == "persistent_workers") {
        place[axis] = count(axis) - 1;  // true
      } else if (name == "prefetch_factor") {
        place[axis] = index_of(axis, 2);
      }
    }
    return place;
  }

  // The start, or what lies nearest to it and runs.
  void find_one_that_runs() {
    const Place first = start();
    visit(first, "start");
    if (is_found_) return;
    std::vector<std::pair<std::size_t, Place>> others;
    Place place(first.size(), 0);
    for (bool more = true; more;) {
      std::size_t distance = 0;
      for (std::size_t i = 0; i < place.size(); ++i) {
        distance += place[i] > first[i] ? place[i] - first[i] : first[i] - place[i];
        if (workers_ == i && loads_in_the_step(place[i])) distance += 100;
      }
      others.emplace_back(distance, place);
      more = false;
      for (std::size_t i = place.size(); i-- > 0 && !more;) {
        more = ++place[i] < count(i);
        if (!more) place[i] = 0;
      }
    }
    std::sort(others.begin(), others.end());
    for (const auto& [distance, other] : others) {
      if (is_found_) return;
      visit(other, "looking for one that runs");
    }
  }

  // From a point where the step waits: the number of workers that should end the wait, and its neighbours.
  void search_workers(Place place) {
    if (!workers_) return;
    const std::size_t axis = *workers_;
    Known here = measure(place, "workers");
    for (int tries = 0; tries < 4 && here.is_ok && here.waits.value_or(1) >= kWaits; ++tries) {
      const std::size_t now = place[axis];
      if (now + 1 >= count(axis)) break;
      double wanted = number(axis, now) * kSpare / (1 - std::min(here.waits.value_or(0.5), 0.95));
      if (options_.limits.cores > 0) wanted = std::min(wanted, std::max(options_.limits.cores, number(axis, now) + 1));
      const std::size_t to = std::max(now + 1, index_of(axis, wanted));
      Place next = moved(place, axis, to);
      Known there = visit(next, "more workers");
      if (!there.is_ok && to + 1 < count(axis)) {
        next = moved(place, axis, to + 1);
        there = visit(next, "beyond a fault");
      }
      if (!there.is_ok || there.rate < here.rate * (1 + options_.tolerance / 2)) break;
      place = next;
      here = there;
    }
    if (!here.is_ok || here.waits.value_or(1) < kWaits) return;
    // Data is the limit at every number of workers: the best one lies near, not always upwards.
    place = moved(place, axis, at_[axis]);
    for (const bool up : {true, false}) {
      int misses = 0;
      for (std::size_t index = place[axis]; up ? index + 1 < count(axis) : index > 0;) {
        index = up ? index + 1 : index - 1;
        if (loads_in_the_step(index) && here.waits.value_or(0) < kNoStep) break;
        const double before = best_.rate;
        const Known there = visit(moved(place, axis, index), up ? "workers up" : "workers down");
        misses = best_.rate < before * (1 + options_.tolerance / 4) ? misses + 1 : 0;
        if (!there.is_ok || misses > (here.waits.value_or(0) >= kNoStep && is_first_pass_ ? 1 : 0)) break;
      }
    }
    // Without workers the step does it all, which may do where there is none, or where handing over is the limit: that
    // is another way to load, of which the other numbers say nothing.
    if (loads_in_the_step(0) && here.pays_per_batch) visit(moved(place, axis, 0), "no workers");
  }

  // Seconds of a step over the batch size, by all that ran with these settings and any number of workers.
  struct Line {
    double center = 0, at_center = 0, slope = 0, error = 0;  // of the slope
    double rate(double size, double errors) const {
      // A step costs something of itself: it never gets slower per image with its size.
      const double steepest = at_center / center;
      return size / (at_center + (std::min(slope, steepest) - errors * error) * (size - center));
    }
  };
  std::optional<Line> line_of_steps(const Place& place) const {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (std::size_t b = 0; b < count(*batch_); ++b) {
      for (std::size_t w = 0; w < (workers_ ? count(*workers_) : 1); ++w) {
        Place other = moved(place, *batch_, b);
        if (workers_) other[*workers_] = w;
        if (!seen_.contains(other)) continue;
        const Known one = known(space_.rows_of(space_.point(other)));
        if (!one.is_ok || !one.seconds) continue;
        // Relative errors are alike: weigh by 1 / seconds squared.
        const double size = number(*batch_, b), weight = 1 / (*one.seconds * *one.seconds);
        n += weight, x += weight * size, y += weight * *one.seconds, xx += weight * size * size,
            xy += weight * size * *one.seconds;
      }
    }
    const double determinant = n * xx - x * x;
    if (!(determinant > 1e-9 * n * xx)) return std::nullopt;
    return Line{x / n, y / n, (n * xy - x * y) / determinant, kLineNoise * std::sqrt(n / determinant)};
  }

  void search_batch() {
    if (!batch_ || count(*batch_) < 2) return;
    const std::size_t axis = *batch_;
    if (!best_.seconds || best_.pays_per_batch) return climb(axis);
    for (std::size_t tries = 0; tries < count(axis); ++tries) {
      if (best_.waits.value_or(0) >= kWaitsMuch) return feed_another_size();
      const auto line = line_of_steps(at_);
      std::optional<std::size_t> to;
      if (!line) {  // a second size
        to = index_of(axis, 4 * number(axis, at_[axis]));
        if (*to == at_[axis]) to = 0;
        for (std::size_t i = 0; i < count(axis) && is_tried(moved(at_, axis, *to)); ++i) to = (*to + 1) % count(axis);
      } else {
        // Worth it: what may be faster than the best is by the same line.
        double most = std::min(best_.rate, line->rate(number(axis, at_[axis]), 0)) * (1 + options_.tolerance / 2);
        for (std::size_t b = 0; b < count(axis); ++b) {
          const double predicted = line->rate(number(axis, b), 1);
          if (predicted < most || is_tried(moved(at_, axis, b)) || is_unstable_size(b)) continue;
          most = predicted;
          to = b;
        }
      }
      if (!to) return look_around_faults(line);
      if (is_tried(moved(at_, axis, *to))) return;
      const Place next = moved(at_, axis, *to);
      const Known there = visit(next, line ? "batch by the line" : "a second batch size", false);
      // It could be faster, were it fed.
      if (there.is_ok && there.waits.value_or(0) >= kWaits && there.seconds &&
          number(axis, *to) / *there.seconds > best_.rate * (1 + options_.tolerance)) {
        search_workers(next);
      }
    }
  }

  // Data is the limit, but at this size a number of workers faulted: at the next one it may run.
  void feed_another_size() {
    if (!workers_) return;
    const std::size_t here = at_[*workers_];
    const std::size_t size = at_[*batch_] + 1 < count(*batch_) ? at_[*batch_] + 1 : at_[*batch_] - 1;
    for (std::size_t w = here > 0 ? here - 1 : 0; w < count(*workers_); ++w) {
      const Place faulty = moved(at_, *workers_, w), next = moved(faulty, *batch_, size);
      if (!seen_.contains(faulty) || known(space_.rows_of(space_.point(faulty))).is_ok || is_tried(next)) continue;
      if (visit(next, "another batch around a fault").is_ok && w > here) search_workers(next);
      return;
    }
  }

  // A size that faulted but would be clearly faster may run with another number of workers.
  void look_around_faults(const std::optional<Line>& line) {
    if (!workers_ || !line) return;
    const double enough =
        std::min(best_.rate, line->rate(number(*batch_, at_[*batch_]), 0)) * (1 + 2 * options_.tolerance);
    for (std::size_t b = count(*batch_); b-- > 0;) {
      if (line->rate(number(*batch_, b), 0) < enough || !is_faulty_size(b)) continue;
      if (is_unstable_size(b) && (b == 0 || !has_run(b - 1))) continue;  // but for the edge of the region
      if (seen_.contains(moved(at_, *batch_, b))) visit(moved(at_, *batch_, b), "again");
      for (const std::size_t w : {at_[*workers_] - 1, at_[*workers_] + 1}) {  // below 0 is beyond the last
        if (w >= count(*workers_) || loads_in_the_step(w) || !is_faulty_size(b)) continue;
        Place place = moved(at_, *batch_, b);
        place[*workers_] = w;
        if (!is_tried(place)) visit(place, "around a fault", false);
      }
    }
  }

  bool is_tried(const Place& place) const { return seen_.contains(place) || space_.excluded(space_.point(place)); }

  bool has_run(std::size_t size) const {
    return std::any_of(seen_.begin(), seen_.end(), [&](const Place& place) {
      return place[*batch_] == size && known(space_.rows_of(space_.point(place))).is_ok;
    });
  }

  // Somewhere this size faulted, twice, and nowhere did it run.
  bool is_faulty_size(std::size_t index) const {
    bool has_faulted = false;
    for (const Place& place : seen_) {
      if (place[*batch_] != index) continue;
      const std::vector<Row>& rows = space_.rows_of(space_.point(place));
      if (known(rows).is_ok) return false;
      has_faulted |= !rows.empty() && is_fault(rows.back().status);
    }
    return has_faulted;
  }

  // Two sizes in a row that fault are a region: what worked around one of them would not do there.
  bool is_unstable_size(std::size_t index) const {
    if (!is_faulty_size(index)) return false;
    return (index > 0 && is_faulty_size(index - 1)) || (index + 1 < count(*batch_) && is_faulty_size(index + 1));
  }

  // Along the values of a knob while that helps; the first time also over one that fails or does not help to the next.
  void climb(std::size_t axis) {
    for (const bool up : {true, false}) {
      int misses = 0;
      for (std::size_t index = at_[axis]; up ? index + 1 < count(axis) : index > 0;) {
        index = up ? index + 1 : index - 1;
        if (workers_ == axis && loads_in_the_step(index)) break;
        const double before = best_.rate;
        visit(moved(at_, axis, index), fmt::format("{} {}", space_.axes()[axis].name, up ? "up" : "down"));
        misses = best_.rate >= before * (1 + options_.tolerance / 2) ? 0 : misses + 1;
        if (misses == (is_first_pass_ ? 2 : 1)) break;
      }
    }
  }

  void follow_plan() {
    is_found_ = false;
    best_ = {};
    seen_.clear();
    find_one_that_runs();
    if (!is_found_) return;
    for (int pass = 0; pass < 4; ++pass) {
      const Place before = at_;
      is_first_pass_ = pass == 0;
      search_workers(at_);
      search_batch();
      for (std::size_t axis = 0; axis < space_.axes().size(); ++axis) {
        if (batch_ == axis || workers_ == axis) continue;
        if (role_of(space_.axes()[axis].name) == "pin_memory" && best_.waits.value_or(0) >= kWaitsMuch) continue;
        climb(axis);
      }
      if (at_ == before) break;
    }
    race();
    economise();
    if (std::optional<Ask> ask = unproven(racers())) throw Wanted{std::move(*ask)};  // whatever the share
  }

  // All that ran and never failed.
  std::vector<Racer> racers() const {
    std::vector<Racer> all;
    for (const Point& point : space_.points()) {
      const std::vector<Row>& rows = space_.rows_of(point);
      if (seen_.contains(place_of(point)) && known(rows).is_ok) all.push_back({.point = &point, .rows = rows});
    }
    return all;
  }

  void race() const {
    const std::vector<Racer> field = racers();
    std::optional<Ask> ask = next_of_race(field, options_.tolerance);
    if (ask && !has_had_enough(field)) throw Wanted{std::move(*ask)};
  }

  // Whether the race has had its share.
  bool has_had_enough(std::span<const Racer> field) const {
    double trials = 0, repeats = 0;
    for (const Place& place : seen_) trials += static_cast<double>(space_.rows_of(space_.point(place)).size());
    for (const Racer& racer : field) repeats += static_cast<double>(racer.rows.size() - 1);
    const auto points = static_cast<double>(space_.points().size());
    if (trials < std::min(kLeastTrials, 3 * points)) return false;
    const Share& share = spread_of(field).of_runs < kCalm ? kShareOfCalm : kShare;
    return trials >= share.trials * points || repeats >= share.repeats * points;
  }

  void economise() {
    if (!workers_) return;
    const std::optional<Leader> leader = leader_of(racers());
    if (!leader) return;
    Place place = place_of(*leader->point);
    const double enough = leader->log_rate + std::log(1 - options_.tolerance);
    const Known best = known(space_.rows_of(*leader->point));
    if (best.waits.value_or(0) >= kWaits) return;
    std::optional<Point> fewest;
    bool is_sure = false;  // well within: one run will do
    while (place[*workers_] > 0) {
      const double half = number(*workers_, place[*workers_]) / 2;
      std::size_t index = place[*workers_] - 1;
      while (index > 0 && number(*workers_, index) > half) --index;
      if (loads_in_the_step(index) && best.waits) break;  // the step would do it all; where nothing is known, ask
      place[*workers_] = index;
      const Known there = measure(place, "fewer workers");
      if (!there.is_ok || std::log(there.rate) < enough) break;
      fewest = space_.point(place);
      is_sure = std::log(there.rate) > leader->log_rate + std::log(1 - options_.tolerance / 2);
    }
    if (fewest && !is_sure && space_.rows_of(*fewest).size() < 2) {
      throw Wanted{{.point = *fewest, .why = "fewer workers, again", .repeat = true}};
    }
  }

  Place place_of(const Point& point) const {
    Place place(space_.axes().size(), 0);
    for (std::size_t axis = 0; axis < place.size(); ++axis) {
      const Axis& one = space_.axes()[axis];
      while (one.settings[place[axis]].at(one.name) != point.at(one.name)) ++place[axis];
    }
    return place;
  }

  SearchOptions options_;
  SearchSpace space_;
  std::optional<std::size_t> batch_, workers_;  // axes
  bool is_done_ = false;

  // While the plan is followed:
  bool is_found_ = false, is_first_pass_ = true;
  Place at_;
  Known best_;
  std::set<Place> seen_;  // only what this plan came by: a result that it has not asked for must not change its course
};

}  // namespace

std::unique_ptr<Search> auto_search(SearchOptions options) {
  return std::make_unique<AutoSearch>(options);
}

}  // namespace stoker::tune
