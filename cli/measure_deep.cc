#include "measure_deep.h"

#include <optional>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/feed/deep.h"
#include "stoker/measure/answer.h"
#include "stoker/measure/deep.h"
#include "stoker/os/child.h"
#include "stoker/os/temporary_folder.h"
#include "stoker/tune/wishes.h"

#include "files.h"
#include "interrupt.h"
#include "load_options.h"
#include "scan.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

using measure::DeepRuns;

struct Interrupted {};

DeepRuns run_our_loader(const Arguments& arguments, const Face& face) {
  const EmulatedStep emulated = emulated_step(arguments);
  const loader::Request request = loader_request(arguments, emulated.workload);
  const dataset::DatasetPtr data = scan(face, arguments.text("--deep"), request.opening);
  std::optional<Bar> bar;
  feed::DeepOptions options;
  options.step = std::chrono::nanoseconds(static_cast<std::int64_t>(emulated.step_ms * 1e6));
  if (arguments.has("--steps")) options.steps = arguments.count("--steps", 1);
  options.interrupted = interrupted;
  options.begun = [&](const std::string& what, std::uint64_t total) { bar.emplace(face, what, total); };
  options.progress = [&](std::uint64_t done, const char* unit, double rate) { bar->update(done, unit, rate); };
  return feed::deep_runs(data, request.loader, options);
}

// "NAME=VALUE": the value as JSON, else as text.
Json knobs_of(const Arguments& arguments) {
  Json knobs = Json::object();
  for (const std::string& word : arguments.all("--with")) {
    const std::size_t at = word.find('=');
    if (at == std::string::npos || at == 0)
      throw Error(ErrorKind::usage, fmt::format("`--with` takes NAME=VALUE, not `{}`", word),
                  "such as --with num_workers=4");
    const std::string value = word.substr(at + 1);
    knobs[word.substr(0, at)] = Json::try_parse(value).value_or(value);
  }
  return knobs;
}

DeepRuns run_entry_point(const Arguments& arguments, const std::string& entry) {
  const os::TemporaryFolder folder("stoker-deep-");
  const std::string out = folder.path() + "/runs.json", python = arguments.text("--python");
  std::vector<std::string> command = {python,  "-m", "stoker.deep", entry, "--knobs", knobs_of(arguments).dump(),
                                      "--out", out};
  if (arguments.has("--steps"))
    command.insert(command.end(), {"--steps", std::to_string(arguments.count("--steps", 3))});
  for (const std::string& path : arguments.all("--data")) command.insert(command.end(), {"--data", path});
  os::SignalGate gate;
  os::Child child(command, {});
  std::optional<os::Ended> ended;
  bool stopped = false;
  while (!(ended = child.ended())) {
    const auto caught = gate.wait(std::chrono::milliseconds(200));
    if (!caught || caught->signal == SIGCHLD) continue;
    stopped = true;
    if (!caught->reached_group) child.send(caught->signal);
  }
  if (stopped) throw Interrupted{};
  if (ended->code != 0 || !exists(out)) {
    throw Error(
        ErrorKind::usage,
        fmt::format("the difference runs of `{}` ended with exit code {} before they had an answer", entry,
                    ended->code),
        fmt::format("what `{}` said stands above; it needs the package `stoker`: --python names another one", python));
  }
  return measure::parse_deep(read_text(out), entry);
}

std::string to_text(const DeepRuns& runs, const measure::DeepAnswer& answer, const Terminal& terminal) {
  const auto ms = [](double seconds) { return fmt::format("{:.2f} ms", 1e3 * seconds); };
  measure::Answer judged;
  judged.loaders.emplace_back();
  judged.verdict = answer.verdict;
  std::string out = fmt::format("{} {}\n", terminal.paint(Paint::bold, "stoker:"), measure::headline(judged));
  const auto row = [&](std::string_view label, const std::string& text) {
    out += labelled(terminal, label, 14, printable(text));
  };
  row("compute only", fmt::format("{} a step: one batch over and over ({} again at the end)", ms(runs.compute_s),
                                  ms(runs.compute_again_s)));
  row("loader only", !runs.store.empty() ? fmt::format("{} a batch from {}", ms(runs.warm_s), runs.store)
                                         : fmt::format("{} a batch warm, {}", ms(runs.warm_s),
                                                       runs.cold_s ? fmt::format("{} cold=data", ms(*runs.cold_s))
                                                                   : std::string("cold was not run")));
  row("real",
      fmt::format("{} a step = compute {} + wait {} (fetch {:.2f}, prep {:.2f}, hand-off {:.2f}); {} steps each",
                  ms(runs.real_s), ms(runs.ledger_compute_s), ms(runs.ledger_wait_s()), 1e3 * runs.ledger_fetch_s,
                  1e3 * runs.ledger_prep_s, 1e3 * runs.ledger_handoff_s, format_count(runs.steps)));
  row("difference", fmt::format("real less compute only: wait {}, the ledger says {}: {:.1f} % of the step apart",
                                ms(answer.wait_s), ms(runs.ledger_wait_s()), 100 * answer.apart));
  if (answer.doubtful == measure::Doubtful::neither) {
    row("check", "both agree within 10 %");
  } else {
    row("check",
        fmt::format("they do not agree; doubtful is the {}: {}", measure::name(answer.doubtful), answer.why_doubtful));
  }
  if (runs.cold_s && *runs.cold_s > 1.05 * runs.warm_s)
    row("cold", fmt::format("{} a batch more than warm: what an epoch pays that does not find its files in memory",
                            ms(*runs.cold_s - runs.warm_s)));
  for (const std::string& note : in_flags(answer.notes, measure_verb())) row("note", note);
  return out;
}

}  // namespace

int measure_deep(const Arguments& arguments, const Face& face) {
  if (!arguments.operands().empty())
    throw Error(ErrorKind::usage, "`--deep` and a command exclude each other",
                "`stoker measure --deep ADDRESS` or `--deep module:function` runs the parts itself");
  for (const char* flag : {"--out", "--trace", "--metrics-port", "--every", "--stop"}) {
    if (arguments.has(flag))
      throw Error(ErrorKind::usage, fmt::format("`{}` has no meaning with `--deep`", flag), "--json has every figure");
  }
  const std::string what = arguments.text("--deep");
  const bool is_python = tune::names_function(what);
  for (const char* flag : {"--with", "--data"}) {
    if (!is_python && arguments.has(flag))
      throw Error(ErrorKind::usage, fmt::format("`{}` is for a Python entry point, and `{}` is none", flag, what),
                  "an entry point is module:function, such as train:make");
  }
  DeepRuns runs;
  try {
    runs = is_python ? run_entry_point(arguments, what) : run_our_loader(arguments, face);
  } catch (const Interrupted&) {
    return interruption_code();
  } catch (const Error&) {
    if (interrupted()) return interruption_code();
    throw;
  }
  const measure::DeepAnswer found = measure::compare(runs);
  if (face.json) {
    Json json = {{"schema", "stoker.measure-deep/1"}, {"stoker_version", kVersion}, {"target", what}};
    json.update(measure::to_json(runs, found, [&](const Text& text) { return in_flags(text, arguments.verb()); }));
    answer(json.dump(2) + "\n");
  } else {
    answer(to_text(runs, found, face.out));
  }
  return 0;
}

}  // namespace stoker::cli
