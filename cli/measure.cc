// stoker measure: runs a training job unchanged and says why it is slow.
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/shell.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/measure/answer.h"
#include "stoker/measure/host.h"
#include "stoker/measure/launch.h"
#include "stoker/measure/live.h"
#include "stoker/measure/metrics.h"
#include "stoker/measure/outside.h"
#include "stoker/measure/thread_sampler.h"
#include "stoker/meter/counters.h"
#include "stoker/os/file.h"
#include "stoker/os/process.h"

#include "files.h"
#include "interrupt.h"
#include "load_options.h"
#include "measure_deep.h"
#include "measure_log.h"
#include "panel.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

using measure::Answer;

struct Finding {
  Answer answer;
  measure::HostFacts host;
  measure::Launched launched;
  std::vector<std::string> command;
  std::vector<measure::ThreadFacts> threads;  // of a job without a loader
};

std::string to_text(const Finding& finding, const Terminal& terminal) {
  const Answer& answer = finding.answer;
  std::string out =
      fmt::format("{} {}\n", terminal.paint(Paint::bold, "stoker:"), printable(measure::headline(answer)));
  const auto row = [&](std::string_view label, std::string_view text) {
    out += labelled(terminal, label, 9, printable(text));
  };
  if (answer.main) {
    const measure::LoaderAnswer& main = answer.loaders[*answer.main];
    if (answer.steps.steps > 0)
      row("step", fmt::format("{}; {} samples/s{} over {} steps", measure::step_line(answer.steps),
                              format_rate(main.samples_per_s),
                              answer.ranks > 1 ? fmt::format(" on rank {}", answer.slowest_rank) : "",
                              format_count(answer.steps.steps)));
    for (const measure::LoaderAnswer& loader : answer.loaders) {
      if (loader.pid != main.pid) continue;
      std::string text = measure::settings_line(loader);
      if (&loader != &main && loader.verdict)
        text += fmt::format(" ({}, {} {:.0f} %)", loader.evaluation ? "val" : "train",
                            meter::name(loader.verdict->bound), 100 * loader.verdict->share);
      row("loader", text);
    }
    for (const std::string& line : measure::store_lines(main)) row("store", line);
    out += table(measure::epoch_table(main), "  ");
  }
  if (answer.stages) out += printable_lines(table(measure::stage_table(*answer.stages), "  "));
  if (const std::string threads = measure::threads_line(finding.threads); !threads.empty()) row("threads", threads);
  const std::string device = answer.main ? measure::arithmetic_line(answer.loaders[*answer.main]) : "";
  row("host", measure::host_line(finding.host, !device.empty()));
  if (!device.empty()) row("device", device);
  for (const std::string& why : answer.why) row("why", why);
  for (const std::string& advice : answer.advice) row("try", advice);
  for (const std::string& note : answer.notes) row("note", note);
  return out;
}

// A job that failed says so first: what was measured, or not, may follow from it.
void note_failure(Answer& answer, const measure::Launched& launched) {
  if (launched.signal == 0 && launched.code == 0) return;
  answer.failure = launched.signal != 0 ? fmt::format("the job was ended by signal {}", launched.signal)
                                        : fmt::format("the job ended with exit code {}", launched.code);
  if (!answer.loaders.empty() || answer.stages) {
    answer.why.insert(answer.why.begin(), answer.failure + "; this is what was measured until then");
    return;
  }
  answer.why = {"what the job itself wrote above says why"};
  answer.advice = {"let the job run without `stoker measure` first; then measure it"};
}

Json to_json(const Finding& finding) {
  const measure::Launched& launched = finding.launched;
  Json json = {{"schema", "stoker.measure/1"}, {"stoker_version", kVersion}, {"command", finding.command}};
  json["exit_code"] = launched.code;
  json["signal"] = launched.signal == 0 ? Json(nullptr) : Json(launched.signal);
  json["interrupted"] = launched.interrupted;
  json["stopped"] = launched.stopped;
  json["seconds"] = launched.seconds;
  json.update(measure::to_json(finding.answer));
  json["host"] = measure::to_json(finding.host);
  json["threads"] = measure::to_json(finding.threads);
  return json;
}

// One line while the job runs.
std::string so_far(const Answer& answer) {
  if (!answer.main && answer.stages) return fmt::format("stoker: {}\n", printable(measure::headline(answer)));
  if (!answer.main || answer.steps.steps == 0) return "stoker: no step so far\n";
  const measure::LoaderAnswer& main = answer.loaders[*answer.main];
  return fmt::format("stoker: step {}: {}; {}; ready {:.1f}\n", format_count(main.all_steps), measure::headline(answer),
                     measure::step_line(answer.steps), main.ready_mean);
}

std::string verdict_so_far(const measure::Steps& steps) {
  if (steps.steps < 3) return "too few steps for a verdict";
  measure::Answer answer;
  answer.loaders.emplace_back();
  answer.verdict = meter::judge(steps.work_ns(), steps.wait.split());
  return measure::headline(answer);
}

// What is shown while the job runs: a panel on a terminal, lines elsewhere, figures on a port.
class Show {
 public:
  Show(const Arguments& arguments, const Face& face) : panel_(face), began_ns_(meter::now_ns()) {
    if (arguments.has("--metrics-port")) {
      const std::uint64_t port = arguments.count("--metrics-port");
      if (port > 65535)
        throw Error(ErrorKind::usage, fmt::format("`--metrics-port` is 0 up to 65535, not {}", port),
                    "0 takes any port that is free, and says which");
      server_.emplace(static_cast<std::uint16_t>(port));
      say(fmt::format("stoker: figures at http://127.0.0.1:{}/metrics\n", server_->port()));
    }
    if (arguments.has("--every")) {
      every_ns_ = std::max<std::int64_t>(kSecond, arguments.duration("--every").count());
    } else if (face.bars) {
      has_panel_ = true;
    } else if (!face.json && !arguments.has("--quiet")) {
      every_ns_ = 5 * 60 * kSecond;
    }
    next_line_ns_ = began_ns_ + every_ns_;
  }

  // About ten times a second.
  void update(const measure::Job& job, const measure::HostSampler& host) {
    const std::int64_t now = meter::now_ns();
    if (every_ns_ > 0 && now >= next_line_ns_) {
      next_line_ns_ = now + every_ns_;
      say(so_far(measure::answer(job, measure::offer_of(host.facts()))));
    }
    if ((!has_panel_ && !server_) || now - updated_ns_ < kSecond / 2) return;
    updated_ns_ = now;
    live_.update(job, now);
    const measure::HostFacts facts = host.facts();
    if (server_)
      server_->publish(metrics_text(live_, facts, measure::MetricsFormat::openmetrics),
                       metrics_text(live_, facts, measure::MetricsFormat::text));
    if (!has_panel_) return;
    panel_.draw({.seconds = static_cast<double>(now - began_ns_) * 1e-9,
                 .steps = live_.training().steps,
                 .recent = live_.recent(),
                 .ready = live_.ready(),
                 .queue = live_.queue(),
                 .workers = facts.workers,
                 .worker_bytes = facts.worker_uss_bytes,
                 .job_bytes = facts.pss_bytes,
                 .verdict = verdict_so_far(live_.training())});
  }

  void clear() { panel_.close(); }  // something else is to be printed
  void answered() {                 // the job goes on, and so do lines and figures
    panel_.close();
    has_panel_ = false;
  }

 private:
  static constexpr std::int64_t kSecond = 1'000'000'000;
  Panel panel_;
  measure::Live live_;
  std::optional<measure::MetricsServer> server_;
  bool has_panel_ = false;
  std::int64_t began_ns_, every_ns_ = 0, next_line_ns_ = 0, updated_ns_ = 0;
};

class Output {
 public:
  Output(const Arguments& arguments, const Face& face)
      : face_(face), folder_(arguments.text("--out")), trace_(arguments.text("--trace")) {
    const bool force = arguments.is_on("--force").value_or(false);
    if (arguments.has("--shared")) folder_ = folder_of_node(arguments);
    if (!trace_.empty()) require_free(trace_, force, "--trace");
    if (folder_.empty()) return;
    for (const char* name : kFiles) require_free(folder_ + "/" + name, force, "--out");
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) throw system_error(error.value(), "make the folder", folder_);
  }

  // The part of this node. Nodes write at different times and need not hear of each other.
  static std::string folder_of_node(const Arguments& arguments) {
    if (arguments.has("--out"))
      throw Error(ErrorKind::usage, "`--out` and `--shared` exclude each other",
                  "`--shared` has a folder for each node");
    std::string name = arguments.text("--node");
    if (const char* const slurm = std::getenv("SLURMD_NODENAME"); name.empty() && slurm != nullptr) name = slurm;
    if (name.empty()) name = os::host_name();
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
      throw Error(ErrorKind::usage, fmt::format("`{}` cannot name the folder of a node", name), "give --node a name");
    return arguments.text("--shared") + "/" + name;
  }

  void give(const Finding& finding, const measure::Job& job) const {
    const std::string json = to_json(finding).dump(2) + "\n";
    if (!folder_.empty()) {
      os::write_file(folder_ + "/measure.json", json);
      os::write_file(folder_ + "/steps.csv", measure::steps_csv(job));
    }
    if (!trace_.empty()) {
      const std::string trace = measure::trace_json(job);
      os::write_file(trace_, trace_.ends_with(".gz") ? measure::gzipped(trace) : trace);
    }
    if (face_.json) {
      cli::answer(json);
      return;
    }
    say(to_text(finding, face_.err));
    if (!trace_.empty()) say(labelled(face_.err, "written", 9, trace_));
    if (!folder_.empty())
      say(labelled(face_.err, "written", 9, fmt::format("{0}/measure.json, {0}/steps.csv", folder_)));
  }

 private:
  static constexpr const char* kFiles[] = {"measure.json", "steps.csv"};
  const Face& face_;
  std::string folder_, trace_;
};

// A job that runs already: looked at for a while, and left alone.
int watch(const Arguments& arguments, const Face& face) {
  const int pid = static_cast<int>(std::min<std::uint64_t>(arguments.count("--pid", 1), INT32_MAX));
  if (!arguments.operands().empty())
    throw Error(ErrorKind::usage, "`--pid` and a command exclude each other",
                "either a job that runs already, or one to start");
  if (!os::process_counters(pid)) {
    throw Error(ErrorKind::not_found, fmt::format("there is no process {} that can be seen", pid),
                "`pgrep -f train.py` lists the processes of a job; it may belong to another user or container");
  }
  std::optional<measure::LogFacts> log;
  const std::string log_file = arguments.text("--log");
  const std::optional<measure::LogPattern> pattern = log_pattern(arguments);
  const auto read_log = [&] { return measure::read_log(log_file, pattern ? &*pattern : nullptr); };
  if (arguments.all("--log").size() > 1)
    throw Error(ErrorKind::usage, "`--log` is given more than once, and `--pid` watches one job",
                "leave `--pid` out to compare logs");
  if (!log_file.empty()) log = read_log();
  measure::HostSampler host(true);
  measure::ThreadSampler threads;
  host.loading_began();
  const std::int64_t started = meter::now_ns(), wanted = arguments.duration("--time").count();
  Bar bar(face, "watching", static_cast<std::uint64_t>(wanted / 1'000'000'000));
  while (!interrupted() && os::process_counters(pid) && meter::now_ns() - started < wanted) {
    host.sample(pid, {}, meter::now_ns());
    threads.sample(pid, meter::now_ns());
    bar.update(static_cast<std::uint64_t>((meter::now_ns() - started) / 1'000'000'000), "s");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  bar.clear();
  host.sample_memory(meter::now_ns());
  measure::HostFacts facts = host.facts();
  measure::mark_workers(facts, pid);
  if (!log_file.empty()) log = read_log();  // what it says by now
  const measure::OutsideAnswer found = measure::outside_answer(facts, log);
  if (face.json) {
    Json json = {{"schema", "stoker.measure-pid/1"}, {"stoker_version", kVersion}, {"pid", pid}};
    json["headline"] = found.headline;
    json["workers"] = {{"count", found.workers},
                       {"cpu_share", found.worker_cpu},
                       {"delay_share", found.worker_delay},
                       {"disk_wait_share", found.worker_disk_wait}};
    json["log"] = nullptr;
    if (log) json["log"] = cli::to_json(*log);
    json["why"] = found.why;
    json["advice"] = found.advice;
    json["notes"] = found.notes;
    json["host"] = measure::to_json(facts);
    json["threads"] = measure::to_json(threads.facts());
    answer(json.dump(2) + "\n");
    return 0;
  }
  std::string out = fmt::format("{} {}\n", face.out.paint(Paint::bold, "stoker:"), printable(found.headline));
  const auto row = [&](std::string_view label, std::string_view text) {
    out += labelled(face.out, label, 9, printable(text));
  };
  row("host", measure::host_line(facts));
  if (const std::string line = measure::threads_line(threads.facts()); !line.empty()) row("threads", line);
  for (const std::string& why : found.why) row("why", why);
  if (log) {
    for (const measure::LogFigure& figure : log->figures) row("log", log_line(figure));
  }
  for (const std::string& advice : found.advice) row("try", advice);
  for (const std::string& note : found.notes) row("note", note);
  answer(out);
  return 0;
}

int run_measure(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  if (arguments.has("--deep")) {
    if (arguments.has("--pid"))
      throw Error(ErrorKind::usage, "`--deep` and `--pid` exclude each other",
                  "a job that runs already cannot be taken apart");
    return measure_deep(arguments, face);
  }
  if (arguments.has("--pid")) return watch(arguments, face);
  if (arguments.has("--log")) return measure_logs(arguments, face);
  if (arguments.has("--log-pattern"))
    throw Error(ErrorKind::usage, "`--log-pattern` says how to read a log, and there is none",
                "name it: --log train.log");
  measure::LaunchOptions options;
  options.command = arguments.operands();
  if (options.command.empty()) arguments.operand();
  if (arguments.has("--steps")) options.steps = arguments.count("--steps", 1);
  options.stop = arguments.is_on("--stop").value_or(false);
  if (options.stop && options.steps == 0)
    throw Error(ErrorKind::usage, "`--stop` needs `--steps N`: after which step?", "for example --steps 200 --stop");
  options.patience = std::chrono::duration_cast<std::chrono::milliseconds>(arguments.duration("--patience"));
  const Output output(arguments, face);

  measure::Job job;
  measure::HostSampler host;
  measure::ThreadSampler threads;
  const auto offer_supply = [&](Finding& finding) {
    const Answer& answer = finding.answer;
    if (!answer.main || !answer.verdict || answer.verdict->bound == meter::Bound::compute) return;
    if (!answer.loaders[*answer.main].facts.replaceable) return;
    std::string words;
    for (const std::string& word : options.command) words += " " + shell_word(word);
    finding.answer.advice.push_back(
        fmt::format("stoker run --supply --{}: Stoker reads and decodes the images of this DataLoader", words));
  };
  const auto find = [&](const measure::Launched& launched) {
    Finding finding{{}, host.facts(), launched, options.command, {}};
    if (job.loaders().empty()) finding.threads = threads.facts();
    finding.answer = measure::answer(job, measure::offer_of(finding.host));
    measure::note_host(finding.answer, finding.host);
    if (job.loaders().empty() && !finding.answer.stages) {
      const std::string verdict =
          measure::threads_verdict(finding.threads, finding.host.cores, finding.answer.saw_torch);
      if (!verdict.empty()) finding.answer.why.insert(finding.answer.why.begin(), verdict);
    }
    offer_supply(finding);
    return finding;
  };
  bool said = false;
  Show show(arguments, face);
  options.tick = [&](int child) {
    if (!job.loaders().empty()) host.loading_began();
    host.sample(child, job.workers(), meter::now_ns());
    if (job.loaders().empty()) threads.sample(child, meter::now_ns());
    show.update(job, host);
  };
  const std::int64_t began = meter::now_ns();
  options.after_steps = [&] {
    said = true;
    show.answered();
    host.sample_memory(meter::now_ns());
    measure::Launched so_far;
    so_far.stopped = options.stop;
    so_far.seconds = static_cast<double>(meter::now_ns() - began) * 1e-9;
    output.give(find(so_far), job);
  };
  options.no_loader = [&] {
    show.clear();
    say(fmt::format("note: no loader was seen in {}; {}\n", format_duration(options.patience),
                    find({}).answer.why.front()));
  };
  const measure::Launched launched = measure::launch(options, job);
  show.clear();
  if (said) return launched.code;
  Finding finding = find(launched);
  std::vector<std::string>& notes = finding.answer.notes;
  note_failure(finding.answer, launched);
  if (launched.lost_segments > 0) {
    notes.push_back(
        fmt::format("{} files of records were lost: the job wrote faster than they were read", launched.lost_segments));
  }
  output.give(finding, job);
  return launched.code;
}

// For --deep: as in `stoker load`, and out of the short help.
std::vector<Section> with_loader_flags(std::vector<Section> sections) {
  Section trouble{"our loader with --deep: trouble", trouble_flags()};
  for (Section section : {batch_flags(), sample_flags(), resource_flags(), trouble}) {
    if (!section.title.starts_with("our loader")) section.title = "our loader with --deep: " + section.title;
    for (Flag& flag : section.flags) flag.brief = false;
    sections.push_back(std::move(section));
  }
  sections.push_back(common_flags());
  return sections;
}

std::string more_measure_help() {
  return "The job runs as it is: same output, same exit code, signals are passed on. Timing is\n"
         "put in through PYTHONPATH and covers every torch.utils.data.DataLoader. The answer\n"
         "goes to stderr, since stdout is the job's; --json goes to stdout after it.\n"
         "Waiting for a batch is split by what its worker was doing: fetch (its samples waited\n"
         "for bytes), prep (they computed, or had no core), hand-off (collating, pickling,\n"
         "sending, pinning, starting workers). docs/background/measuring.md has the rest.\n\n" +
         loader_help();
}

}  // namespace

const Verb& measure_verb() {
  static const Verb verb = {
      "measure",
      "run a PyTorch job unchanged and say what starves it",
      "-- COMMAND...",
      "the training job as it is started otherwise",
      {{"stoker measure -- python train.py", "say why a job waits, when it has ended"},
       {"stoker measure --steps 200 --stop -- python train.py", "end the job after 200 steps"},
       {"stoker measure --out runs/monday -- torchrun --nproc-per-node 8 train.py",
        "measure every rank, and name the slowest"},
       {"stoker measure --shared /shared/monday -- torchrun --nnodes 4 train.py",
        "measure on each node; `stoker report /shared/monday` joins what they wrote"},
       {"stoker measure --json -- python train.py --epochs 1", "print one JSON object after the job's own output"},
       {"stoker measure --pid 4711 --log train.log", "look at a job that runs already, and at its log"},
       {"stoker measure --log results_8_2048.log --log results_16_1024.log", "compare what two runs printed"},
       {"stoker measure --deep data/train --batch-size 64 --transform rrc:224 --step-ms 20",
        "measure Stoker's loader and an emulated step, alone and together"},
       {"stoker measure --deep train:make --with num_workers=4", "the same for `def make(knobs)` in train.py"}},
      with_loader_flags(
          {{"how long",
            {{"--steps", "N", "", "answer after N steps; the job goes on", true},
             {"--stop", "", "", "with --steps: end the job then", true},
             {"--every", "TIME", "5m, on a terminal a panel instead",
              "say where the time went so far, a line on stderr every TIME; --quiet says nothing"},
             {"--patience", "TIME", "60s", "say so when no loader was seen for so long"}}},
           {"a job that runs already",
            {{"--pid", "PID", "", "look at it from outside, without stopping it: no command then", true},
             {"--time", "TIME", "30s", "for how long; Ctrl-C ends it earlier"},
             {"--log", "FILE", "",
              "its log: time per step, rates, lines about memory that ran out; without --pid, logs are read alone, and "
              "several (--log again) are compared"},
             {"--log-pattern", "REGEX", "",
              "how your log says it, with named groups: 'Train step (?<step>[0-9]+).* (?<step_s>[0-9.]+)s'; step_ms, "
              "steps_per_s and epoch are known too, any other name is a figure of its own"}}},
           {"for monitoring",
            {{"--metrics-port", "PORT", "",
              "while the job runs, serve its figures to Prometheus at http://127.0.0.1:PORT/metrics; 0: any free port",
              true}}},
           {"results",
            {{"--out", "DIR", "", "write measure.json and steps.csv there", true},
             {"--shared", "DIR", "",
              "of a job on several nodes: each writes its part into a folder of its own in DIR, which all share; "
              "`stoker report DIR` joins them"},
             {"--node", "NAME", "", "with --shared: the name of this node; without: its host name"},
             {"--trace", "FILE", "",
              "write the steps and what the workers did as a trace for Perfetto; x.json, or x.json.gz"},
             {"--force", "", "", "let --out and --trace overwrite"}}},
           {"in parts, to check the ledger",
            {{"--deep", "WHAT", "",
              "run the step alone, the loader alone (warm, cold) and both: of our loader on an ADDRESS, or of a Python "
              "module:function that takes a dict of knobs and returns (loader, step)",
              true},
             {"--with", "NAME=VALUE", "", "of module:function: a value of the dict that it gets; again for each"},
             {"--data", "PATH", "",
              "of module:function: files or folders to drop from the page cache for the cold run"},
             {"--python", "PROGRAM", "python3", "of module:function: the Python that runs it"},
             {"--step-ms", "MS", "0", "of an ADDRESS: emulated step of the accelerator"},
             {"--workload", "NAME", "",
              "of an ADDRESS: emulated accelerator, such as resnet50-h100; the list is below"}}}}),
      more_measure_help,
      run_measure,
      true};
  return verb;
}

}  // namespace stoker::cli
