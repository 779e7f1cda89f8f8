#include "plan_trials.h"

#include <fmt/format.h>

#include "stoker/os/file.h"
#include "stoker/tune/trial.h"

#include "files.h"
#include "own_verb.h"

namespace stoker::cli {

plan::Tried PlanTrials::run(const std::vector<std::string>& words) {
  tune::TrialOptions trial;
  trial.command = {own_program()};
  trial.command.insert(trial.command.end(), words.begin(), words.end());
  trial.folder = fmt::format("{}/{}", scratch_.path(), next_++);
  trial.bench_steps = bench_steps_;
  os::make_folders(trial.folder);
  plan::Tried tried{.row = tune::run_trial(trial, interrupted_).row};
  if (const std::string file = trial.folder + "/stdout"; exists(file)) tried.output = read_text(file);
  return tried;
}

plan::TriedPack PlanTrials::pack(const std::string& address, plan::Change change) {
  const std::string path = fmt::format("{}/{}.pack", scratch_.path(), next_);
  const std::string kind = change == plan::Change::pack_raw ? "raw" : "encoded";
  const plan::Tried made = run({"pack", address, path, "--kind", kind, "--quiet"});
  return exists(path + "/pack.json") ? plan::TriedPack{.address = path} : plan::TriedPack{.error = made.row.error};
}

}  // namespace stoker::cli
