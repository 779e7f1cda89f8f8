// stoker run: a PyTorch job as it is, with settings of its DataLoaders or their whole input path put in from outside.
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/measure/run_job.h"

#include "files.h"
#include "json_head.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

// The settings.json of a run of `stoker tune`, or that file itself. Throws Error.
std::string read_settings(const std::string& place) {
  const std::string inside = place + "/settings.json", file = exists(inside) ? inside : place;
  if (!exists(file) || (file == place && exists(place + "/config.json"))) {
    throw Error(ErrorKind::not_found, fmt::format("`--settings {}` has no settings.json", place),
                "give the folder of a `stoker tune -- COMMAND` that chose settings of a DataLoader");
  }
  const Json json = Json::parse_or_null(read_text(file));
  const auto loaders = json.is_object() ? json.find("loaders") : json.end();
  if (!json.is_object() || loaders == json.end() || !loaders->is_array())
    throw Error(ErrorKind::corrupt, fmt::format("`{}` is not a settings.json of `stoker tune`", file));
  return json.dump();
}

int run_job(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  measure::RunJobOptions options;
  options.command = arguments.operands();
  if (options.command.empty()) arguments.operand();  // throws
  options.supply = arguments.is_on("--supply").value_or(false);
  options.quiet = face.json || arguments.has("--quiet");
  if (arguments.has("--settings")) options.settings = read_settings(arguments.text("--settings"));
  if (!options.supply && options.settings.empty()) {
    throw Error(ErrorKind::usage, "`stoker run` has nothing to put into the job",
                "`--supply` lets Stoker feed its DataLoaders, `--settings DIR` applies what `stoker tune` chose");
  }
  const measure::RanJob ran = measure::run_job(options);
  if (face.json) {
    Json json = json_head("run");
    json["exit_code"] = ran.code;
    json["loaders"] = Json::array();
    for (const measure::SuppliedLoader& loader : ran.loaders) json["loaders"].push_back(measure::to_json(loader));
    answer(json.dump(2) + "\n");
    return ran.code;
  }
  if (options.quiet || !options.supply) return ran.code;
  for (const measure::SuppliedLoader& loader : ran.loaders) {
    if (loader.rank.value_or(0) == 0 && loader.replaced)
      say(printable(fmt::format("stoker: {}", loader.text())) + "\n");
  }
  if (ran.loaders.empty() && ran.code == 0)
    say("stoker: nothing was replaced: the job iterated over no torch DataLoader\n");
  return ran.code;
}

std::string more_run_help() {
  return "The job runs as it is: same output, same exit code, signals are passed on. What is put in\n"
         "comes through PYTHONPATH. With --supply, a DataLoader over torchvision's ImageFolder,\n"
         "DatasetFolder or ImageNet (also Subset and ConcatDataset of them) with transforms that\n"
         "Stoker knows gets its batches from Stoker: same order, types, shapes and labels; the same\n"
         "pixels where nothing is random. Any other DataLoader stays as it is, and a line on stderr\n"
         "says why. The package stoker must be installed in the job's Python.\n";
}

}  // namespace

const Verb& run_verb() {
  static const Verb verb = {
      "run",
      "run a PyTorch job unchanged, with its DataLoaders fed by Stoker or set as tuned",
      "-- COMMAND...",
      "the training job as it is started otherwise",
      {{"stoker run --supply -- python train.py", "run a job with its images read and decoded by Stoker"},
       {"stoker run --settings runs/tune/20261118_090000 -- python train.py",
        "run a job with the settings that `stoker tune` chose"},
       {"stoker run --supply --json -- python train.py",
        "print what became of each DataLoader as JSON, after the job's output"}},
      {{"what to put in",
        {{"--supply", "", "", "feed the DataLoaders that Stoker understands, in the job's own order", true},
         {"--settings", "DIR", "", "apply the settings that a `stoker tune -- COMMAND` wrote to DIR", true}}},
       common_flags()},
      more_run_help,
      run_job,
      true};
  return verb;
}

}  // namespace stoker::cli
