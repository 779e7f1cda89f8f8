// The search is written down as a plan that reads results as if all were known. Where one is missing the plan ends and
// asks for it; told the result, it is followed from the start again. So there is no state but the results, a resumed
// run goes on where it was, and the plan reads in its order:
//   1. start with the smallest batch and about as many workers as cores
//   2. workers: while the step waits for data, so many more that they should suffice; else leave them
//   3. batch: two sizes give a line for the time of a step, and it the sizes worth trying; not while data is the limit,
//      unless what limits it is paid per batch (hand-off, or no step to speak of): then along the sizes while that
//      helps
//   4. other knobs, along their values while that helps; then again from 2 until nothing changes
//   5. the fastest once more, and whatever is the fastest then, until one has held its place
//   6. race: the first against whoever may still be ahead of it, in turn, until nobody may be by more than is worth it
//   7. half as many workers, and again, while that is within the tolerance
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stoker/tune/measured.h"
#include "stoker/tune/search.h"
#include "stoker/tune/search_space.h"

namespace stoker::tune {
namespace {

constexpr double kWaits = 0.02;        // share of the step spent waiting from which on data is the limit
constexpr double kWaitsMuch = 0.15;    // from which on neither batch nor pinning can matter
constexpr double kNoStep = 0.9;        // from which on there is no step to speak of
constexpr double kSpare = 1.15;        // workers asked for, over those that would just do
constexpr double kWorthIt = 0.25;      // of the tolerance: whoever may be ahead by more is raced
constexpr double kMostTrials = 0.22;   // of the points of the grid: a search that had so many races no further,
constexpr double kMostRepeats = 0.14;  // nor one that had so many second and further runs;
constexpr double kLeastTrials = 12;    // but for grids so small that this is nothing
constexpr std::size_t kMostRuns = 9;   // of one point
constexpr double kWide = 0.25;         // half an interval that tells nothing; then look again,
constexpr std::size_t kMostLooks = 2;  // so often in all
constexpr double kPriorNoise = 0.02;   // of a trial's rate, until repeats tell; counts like
constexpr double kPriorDegrees = 3;    // so many repeats
constexpr double kDeviations = 2.8;    // in half an interval of 95 % from the few blocks of a trial

struct Wanted {  // what the plan ends with; does not leave this file
  Ask ask;
};

bool is_fault(Status status) {
  return status == Status::runtime_fault || status == Status::worker_died || status == Status::hang ||
         status == Status::killed_unknown || status == Status::oom_suspect;
}

// 95 % of Student's t lies below.
double t95(double degrees) {
  constexpr std::array<double, 10> kT = {6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812};
  const auto at = static_cast<std::size_t>(std::max(1.0, degrees));
  return at <= kT.size() ? kT[at - 1] : 1.645 + 1.7 / static_cast<double>(at);
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
        rows.push_back({.status = Status::pruned, .knobs = point, .error = "no gain was to be expected"});
      }
    }
    return rows;
  }

  std::uint64_t at_most() const override {
    if (is_done_) return 0;
    std::uint64_t untried = 0;
    for (const Point& point : space_.points()) untried += space_.rows_of(point).empty() && !space_.excluded(point);
    return untried + static_cast<std::uint64_t>(
                         std::max(kLeastTrials, kMostRepeats * static_cast<double>(space_.points().size())));
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

  // Two runs so far apart that one was chance: a third tells which, then all count, and the plan may take another
  // course.
  static bool contradict(const std::vector<Row>& rows) {
    return rows.size() > 1 && rows[0].ok() && rows[1].ok() &&
           std::abs(std::log(*rows[0].images_per_s / *rows[1].images_per_s)) > kFarOff;
  }

  // Of the first `runs`, all of which are ok.
  static double rate_of(const std::vector<Row>& rows, std::size_t runs) {
    std::vector<double> rates;
    for (std::size_t i = 0; i < runs; ++i) rates.push_back(*rows[i].images_per_s);
    return typical_rate(rates);
  }

  static Known known(const std::vector<Row>& rows) {
    Known known;
    const std::size_t most = contradict(rows) && rows.size() > 2 ? rows.size() : std::min(looks(rows), rows.size());
    double waits = 0, seconds = 0, with_waits = 0, with_seconds = 0;
    for (const Row& row : rows) {
      if (!row.ok()) return {};  // also one that ran at another time: unstable
      if (row.data_ms && row.step_ms && *row.step_ms > 0) waits += *row.data_ms / *row.step_ms, ++with_waits;
      if (row.compute_ms) seconds += (*row.compute_ms + row.h2d_ms.value_or(0)) / 1000, ++with_seconds;
      if (known.is_ok) continue;
      known.is_ok = true;
      known.pays_per_batch = row.verdict == "handoff_bound" || (waits >= kNoStep && !row.verdict.empty());
    }
    if (known.is_ok) known.rate = rate_of(rows, most);
    if (with_waits > 0) known.waits = waits / with_waits;
    if (with_seconds > 0) known.seconds = seconds / with_seconds;
    return known;
  }

  // A fault is repeated once, unless `repeats` is false: then it counts as it stands until somebody asks again.
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

  // From a place where the step waits: so many workers that it should not, and their neighbours.
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
    // Data is the limit whatever the number: the best one lies near, not always upwards.
    place = moved(place, axis, at_[axis]);
    for (const bool up : {true, false}) {
      int misses = 0;
      for (std::size_t index = place[axis]; up ? index + 1 < count(axis) : index > 0;) {
        index = up ? index + 1 : index - 1;
        if (loads_in_the_step(index) && here.waits.value_or(0) < kNoStep) break;  // where there is none, that may do
        const double before = best_.rate;
        const Known there = visit(moved(place, axis, index), up ? "workers up" : "workers down");
        misses = best_.rate < before * (1 + options_.tolerance / 4) ? misses + 1 : 0;
        if (!there.is_ok || misses > (here.waits.value_or(0) >= kNoStep && is_first_pass_ ? 1 : 0)) break;
      }
    }
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
    return Line{x / n, y / n, (n * xy - x * y) / determinant, kPriorNoise * std::sqrt(n / determinant)};
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
    for (std::size_t w = at_[*workers_] + 1; w < count(*workers_); ++w) {
      const Place faulty = moved(at_, *workers_, w);
      const std::size_t size = at_[*batch_] + 1 < count(*batch_) ? at_[*batch_] + 1 : at_[*batch_] - 1;
      if (!seen_.contains(faulty) || known(space_.rows_of(space_.point(faulty))).is_ok ||
          is_tried(moved(faulty, *batch_, size)))
        continue;
      const Place next = moved(faulty, *batch_, size);
      if (visit(next, "another batch around a fault").is_ok) search_workers(next);
      return;
    }
  }

  // A single size that faulted but would be clearly faster may run with another number of workers.
  void look_around_faults(const std::optional<Line>& line) {
    if (!workers_ || !line) return;
    const double enough =
        std::min(best_.rate, line->rate(number(*batch_, at_[*batch_]), 0)) * (1 + 2 * options_.tolerance);
    for (std::size_t b = count(*batch_); b-- > 0;) {
      if (line->rate(number(*batch_, b), 0) < enough || !is_faulty_size(b) || is_unstable_size(b)) continue;
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
  }

  struct Racer {
    Point point;
    double log_rate = 0;
    double runs = 0;
  };
  static void sort(std::vector<Racer>& field) {
    std::stable_sort(field.begin(), field.end(),
                     [](const Racer& a, const Racer& b) { return a.log_rate > b.log_rate; });
  }

  // All that ran, by the first `most` runs of each; the fastest first.
  std::vector<Racer> racers(std::size_t most) const {
    std::vector<Racer> all;
    for (const Point& point : space_.points()) {
      const std::vector<Row>& rows = space_.rows_of(point);
      if (!seen_.contains(place_of(point)) || !known(rows).is_ok) continue;
      Racer racer{.point = point};
      racer.runs = static_cast<double>(std::min(most, rows.size()));
      racer.log_rate = std::log(rate_of(rows, static_cast<std::size_t>(racer.runs)));
      all.push_back(std::move(racer));
    }
    sort(all);
    return all;
  }

  // One more of its runs that are known.
  void add_run(Racer& racer) const {
    racer.runs += 1;
    racer.log_rate = std::log(rate_of(space_.rows_of(racer.point), static_cast<std::size_t>(racer.runs)));
  }

  // By how much runs of one point differ: by repeats, pooled over all points, but not less than what the trials say of
  // themselves.
  double spread_of(const std::vector<Racer>& field, double& degrees) const {
    double squares = kPriorNoise * kPriorNoise * kPriorDegrees, own_squares = 0, own_count = 0;
    degrees = kPriorDegrees;
    for (const Racer& racer : field) {
      const std::vector<Row>& rows = space_.rows_of(racer.point);
      for (std::size_t i = 0; i < static_cast<std::size_t>(racer.runs); ++i) {
        const double off = std::log(*rows[i].images_per_s) - racer.log_rate;
        if (std::abs(off) <= kFarOff || racer.runs < 3) squares += off * off;
        if (!rows[i].ci_low || !rows[i].ci_high) continue;
        own_squares += std::pow((*rows[i].ci_high - *rows[i].ci_low) / 2 / kDeviations / *rows[i].images_per_s, 2);
        ++own_count;
      }
      degrees += racer.runs - 1;
    }
    return std::sqrt(std::max(squares / degrees, own_count > 0 ? own_squares / own_count : 0));
  }

  // A rate that was seen once may be chance: the fastest is measured again, and so is what is the fastest then.
  std::vector<Racer> confirmed() const {
    std::vector<Racer> field = racers(1);
    while (!field.empty()) {
      Racer& first = field.front();
      const std::vector<Row>& rows = space_.rows_of(first.point);
      const double wanted = contradict(rows) ? 3 : 2;
      if (first.runs >= wanted) break;
      if (static_cast<double>(rows.size()) <= first.runs) {
        if (has_had_enough()) break;
        throw Wanted{{.point = first.point, .why = "the fastest again", .repeat = true}};
      }
      add_run(first);
      sort(field);
    }
    return field;
  }

  // Whether the race has had its share.
  bool has_had_enough() const {
    double trials = 0, repeats = 0;
    for (const Place& place : seen_) {
      const std::vector<Row>& rows = space_.rows_of(space_.point(place));
      trials += static_cast<double>(rows.size());
      if (known(rows).is_ok) repeats += static_cast<double>(rows.size() - 1);
    }
    const auto points = static_cast<double>(space_.points().size());
    if (trials < std::min(kLeastTrials, 3 * points)) return false;
    return trials >= kMostTrials * points || repeats >= kMostRepeats * points;
  }

  // Run by run: whoever may be furthest ahead of the first, or the first itself where it has fewer runs.
  void race() const {
    std::vector<Racer> field = confirmed();
    while (field.size() > 1) {
      sort(field);
      double degrees = 0;
      const double spread = spread_of(field, degrees);
      Racer& first = field.front();
      Racer* rival = nullptr;
      double most = options_.tolerance * kWorthIt;
      for (Racer& one : field) {
        if (&one == &first) continue;
        const double error = t95(degrees) * spread * std::sqrt(1 / first.runs + 1 / one.runs);
        const double ahead = one.log_rate - first.log_rate + error;
        if (ahead > most) most = ahead, rival = &one;
      }
      if (rival == nullptr) return;
      Racer& next = first.runs < rival->runs ? first : *rival;
      if (next.runs >= static_cast<double>(kMostRuns)) return;
      if (static_cast<double>(space_.rows_of(next.point).size()) <= next.runs) {
        if (has_had_enough()) return;
        throw Wanted{{.point = next.point, .why = fmt::format("race, run {:g}", next.runs + 1), .repeat = true}};
      }
      add_run(next);
    }
  }

  void economise() {
    if (!workers_) return;
    const std::vector<Racer> all = racers(kMostRuns);
    if (all.empty()) return;
    Place place = place_of(all.front().point);
    const double enough = all.front().log_rate + std::log(1 - options_.tolerance);
    const Known best = known(space_.rows_of(all.front().point));
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
      is_sure = std::log(there.rate) > all.front().log_rate + std::log(1 - options_.tolerance / 2);
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
