#include "measure_deep.h"

#include <algorithm>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/measure/answer.h"
#include "stoker/measure/deep.h"
#include "stoker/meter/counters.h"
#include "stoker/os/child.h"
#include "stoker/os/temporary_folder.h"

#include "entry_point.h"
#include "feed.h"
#include "files.h"
#include "interrupt.h"
#include "load_options.h"
#include "scan.h"

namespace stoker::cli {
namespace {

using measure::DeepRuns;

// Of one run, where --steps does not say: so long, but for slow steps so many.
constexpr std::chrono::seconds kRun{3};
constexpr std::uint64_t kLeastSteps = 20;

struct Interrupted {};

// Seconds of one emulated step without a loader: the mean of up to `steps` of them, or of a second's worth.
double step_alone(std::chrono::nanoseconds step, std::uint64_t steps) {
  if (step.count() == 0) return 0;
  const std::int64_t began = meter::now_ns();
  std::uint64_t done = 0;
  do {
    if (interrupted()) throw Interrupted{};
    std::this_thread::sleep_for(step);
    ++done;
  } while (done < steps && meter::now_ns() - began < 1'000'000'000);
  return static_cast<double>(meter::now_ns() - began) * 1e-9 / static_cast<double>(done);
}

class OurLoader {
 public:
  OurLoader(const Arguments& arguments, const Face& face) : face_(face) {
    const EmulatedStep emulated = emulated_step(arguments);
    step_ = std::chrono::nanoseconds(static_cast<std::int64_t>(emulated.step_ms * 1e6));
    const loader::Request request = loader_request(arguments, emulated.workload);
    options_ = request.loader;
    data_ = scan(face, arguments.text("--deep"), request.opening);
    if (arguments.has("--steps")) steps_ = arguments.count("--steps", 1);
  }

  // Each run sees the same samples in the same order: the first steps of epoch 0.
  DeepRuns run() {
    DeepRuns runs;
    const Fed first =
        feed_once("reading once", {}, true);  // fills the page cache and what the loader remembers of files
    const bool is_chosen = steps_ > 0;
    steps_ = first.steps;
    if (!is_chosen && step_.count() > 0)
      steps_ =
          std::min(steps_, std::max(kLeastSteps, static_cast<std::uint64_t>(std::chrono::nanoseconds(kRun) / step_)));
    if (steps_ < 3)
      throw Error(ErrorKind::usage, fmt::format("{} steps are too few to compare runs of", steps_),
                  "a smaller --batch-size, or --inflate");
    runs.steps = steps_;
    runs.compute_s = step_alone(step_, steps_);
    runs.warm_s = per_step(feed_once("loader only, warm", {}));
    {
      Bar bar(face_, "dropping from the page cache", data_->size());
      drop_from_page_cache(*data_, [&](std::uint64_t done) {
        bar.update(done, "files");
        return !interrupted();
      });
    }
    const double left = cached_share(*data_);
    if (left >= 0) {
      runs.cold_left = left;
    } else {
      runs.notes.emplace_back("whether the files left the page cache cannot be seen: they belong to somebody else");
    }
    runs.cold_s = per_step(feed_once("loader only, cold", {}));
    const Fed real = feed_once("real", step_);
    runs.real_s = per_step(real);
    const double n = static_cast<double>(real.total.steps);
    runs.ledger_fetch_s = static_cast<double>(real.total.wait.fetch_ns) * 1e-9 / n;
    runs.ledger_prep_s = static_cast<double>(real.total.wait.prep_ns) * 1e-9 / n;
    runs.ledger_handoff_s = static_cast<double>(real.total.wait.handoff_ns) * 1e-9 / n;
    runs.ledger_compute_s = runs.real_s - runs.ledger_wait_s();
    runs.compute_again_s = step_alone(step_, steps_);
    if (step_.count() == 0)
      runs.notes.emplace_back("the step takes no time: --step-ms or --workload would emulate an accelerator");
    return runs;
  }

 private:
  static double per_step(const Fed& fed) {
    return fed.total.running_s / static_cast<double>(std::max<std::uint64_t>(1, fed.total.steps));
  }

  Fed feed_once(const std::string& what, std::chrono::nanoseconds step, bool measures_length = false) {
    loader::Loader loader(data_, options_);
    loader.start_epoch(0);
    FeedOptions feeding;
    feeding.step = step;
    feeding.steps = steps_;
    if (measures_length && steps_ == 0) feeding.time = kRun;
    Bar bar(face_, what, steps_ * options_.batch_size);
    feeding.progress = [&](const Fed& so_far, double rate) { bar.update(so_far.samples, "samples", rate); };
    Fed fed;
    feed(loader, feeding, fed);
    if (fed.interrupted) throw Interrupted{};
    return fed;
  }

  const Face& face_;
  std::chrono::nanoseconds step_{0};
  loader::LoaderOptions options_;
  dataset::DatasetPtr data_;
  std::uint64_t steps_ = 0;
};

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
    if (!caught->from_terminal) child.send(caught->signal);
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
  row("loader only",
      fmt::format("{} a batch warm, {}", ms(runs.warm_s),
                  runs.cold_s ? fmt::format("{} cold=data", ms(*runs.cold_s)) : std::string("cold was not run")));
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
  for (const std::string& note : answer.notes) row("note", note);
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
  const bool is_python = names_function(what);
  for (const char* flag : {"--with", "--data"}) {
    if (!is_python && arguments.has(flag))
      throw Error(ErrorKind::usage, fmt::format("`{}` is for a Python entry point, and `{}` is none", flag, what),
                  "an entry point is module:function, such as train:make");
  }
  DeepRuns runs;
  try {
    runs = is_python ? run_entry_point(arguments, what) : OurLoader(arguments, face).run();
  } catch (const Interrupted&) {
    return 130;
  } catch (const Error&) {
    if (interrupted()) return 130;
    throw;
  }
  const measure::DeepAnswer found = measure::compare(runs);
  if (face.json) {
    Json json = {{"schema", "stoker.measure-deep/1"}, {"stoker_version", kVersion}, {"target", what}};
    json.update(measure::to_json(runs, found));
    answer(json.dump(2) + "\n");
  } else {
    answer(to_text(runs, found, face.out));
  }
  return 0;
}

}  // namespace stoker::cli
