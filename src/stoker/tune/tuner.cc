#include "stoker/tune/tuner.h"

#include <map>
#include <utility>
#include <vector>

namespace stoker::tune {

Tuned run_search(Search& search, RunFolder& folder, const TunerOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point started = Clock::now();
  // Of a resumed run: the search asks for the same points in the same order, since it is told the same.
  std::map<Point, std::vector<Row>> before;
  for (const Row& row : folder.rows()) {
    if (row.status == Status::pruned || row.status == Status::skipped_memory) continue;
    if (row.status == Status::user_error || row.is_unseen()) continue;  // it may have been mended since
    before[row.knobs].push_back(row);
  }
  UserErrors errors;
  std::map<Point, std::size_t> used;
  const auto is_over = [&] { return options.time_limit.count() > 0 && Clock::now() - started >= options.time_limit; };
  const auto is_interrupted = [&] { return options.interrupted && options.interrupted(); };
  Tuned tuned;
  while (const auto ask = search.next()) {
    if (const auto known = before.find(ask->point); known != before.end()) {
      std::size_t& next = used[ask->point];
      if (next < known->second.size()) {
        const Row& row = known->second[next++];
        search.tell(row);
        errors.add(row);
        if (options.ended) options.ended(*ask, row, true);
        continue;
      }
    }
    if (is_interrupted()) {
      tuned.finish = Finish::interrupted;
      break;
    }
    if (is_over()) {
      tuned.finish = Finish::out_of_time;
      break;
    }
    const std::uint64_t number = folder.next_trial();
    const std::string place = folder.trial_folder(number, ask->point);
    if (options.begun) options.begun(*ask, number);
    TrialOptions trial = options.trial(ask->point, place);
    trial.folder = place;
    TrialResult result = run_trial(trial, [&] { return is_interrupted() || is_over(); });
    if (result.interrupted) {
      tuned.finish = is_interrupted() ? Finish::interrupted : Finish::out_of_time;
      break;
    }
    result.row.trial = number;
    result.row.knobs = ask->point;
    folder.add(result.row);
    folder.note_settings(result.settings);
    search.tell(result.row);
    errors.add(result.row);
    if (options.ended) options.ended(*ask, result.row, false);
    if (result.failure && errors.end_the_search()) {
      tuned.finish = Finish::user_error;
      tuned.failure = result.failure;
      tuned.failed_trial = place;
      break;
    }
  }
  if (tuned.finish == Finish::done) {
    std::map<Point, bool> there;
    for (const Row& row : folder.rows()) there[row.knobs] = true;
    for (Row row : search.left_out()) {
      if (!there.emplace(row.knobs, true).second) continue;
      row.trial = folder.next_trial();
      folder.add(row);
    }
  }
  tuned.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  return tuned;
}

}  // namespace stoker::tune
