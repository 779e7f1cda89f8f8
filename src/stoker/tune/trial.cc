#include "stoker/tune/trial.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/measure/answer.h"
#include "stoker/measure/hook.h"
#include "stoker/measure/record_file.h"
#include "stoker/meter/counters.h"
#include "stoker/os/cgroup.h"
#include "stoker/os/file.h"
#include "stoker/os/isolated.h"
#include "stoker/os/process.h"
#include "stoker/os/read_file.h"
#include "stoker/tune/blocks.h"

namespace stoker::tune {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kTail = 64 << 10, kHead = 1 << 20;
constexpr double kAlike = 1.05;     // resident memory of two workers of one kind
constexpr double kOutputRates = 8;  // rates that must have been printed after the warm-up

// The first and the last of a stream, for the trial's folder and for the classification.
class Kept {
 public:
  void add(std::string_view text) {
    bytes_ += text.size();
    const std::size_t room = kHead - head_.size();
    head_ += text.substr(0, room);
    if (text.size() > room) tail_ += text.substr(room);
    if (tail_.size() > 4 * kTail) tail_.erase(0, tail_.size() - kTail);
  }
  std::string last() const {
    const std::string all = tail_.size() >= kTail ? tail_ : head_ + tail_;
    return all.size() > kTail ? all.substr(all.size() - kTail) : all;
  }
  std::string text() const {
    const std::uint64_t missing = bytes_ - head_.size() - tail_.size();
    return missing == 0 ? head_ + tail_
                        : fmt::format("{}\n[stoker: {} left out]\n{}", head_, format_bytes(missing), tail_);
  }

 private:
  std::string head_, tail_;
  std::uint64_t bytes_ = 0;
};

std::uint64_t oom_kills() {
  for (const os::Cgroup& group : os::cgroups("/", "memory")) {
    for (const std::string& folder : group.folders) {
      const auto events = os::read_small_file(folder + (group.v2 ? "/memory.events" : "/memory.oom_control"));
      if (!events) continue;
      const std::size_t at = events->find("oom_kill ");
      if (at != std::string::npos) return std::strtoull(events->c_str() + at + 9, nullptr, 10);
    }
  }
  return 0;
}

class Watch {
 public:
  Watch(const TrialOptions& options, const std::function<bool()>& interrupted)
      : options_(options),
        interrupted_(interrupted),
        printed_(options.rate_regex, options.batch_size, options.log_pattern),
        oom_kills_(oom_kills()),
        records_(options.folder + "/records", true) {
    environment_ = options.environment;
    if (!options_.source_keys.empty()) {
      environment_["STOKER_SOURCE_DIR"] = options_.folder + "/source";
      os::make_folders(options_.folder + "/source");
    }
    const bool puts_in = environment_.contains("STOKER_SETTINGS") || environment_.contains("STOKER_SOURCE");
    if (uses_hook() || puts_in) environment_ = measure::install_hook(options_.folder, environment_);
    if (!uses_hook()) environment_.erase("STOKER_MEASURE_DIR");
  }

  TrialResult run() {
    const Clock::time_point started = started_ = Clock::now();
    TrialResult result;
    os::Isolated child(options_.command, environment_);
    write("process", child.mark());
    last_sign_ = started;
    bool stopping = false;
    Clock::time_point stopped_at;
    for (bool over = false; !over;) {
      over = child.ended().has_value();
      child.listen(100ms, [this](os::Stream stream, std::string_view text) { hear(stream, text); });
      if (over) break;
      look(child.pid());
      const Clock::time_point now = Clock::now();
      if (stopping) {
        if (now - stopped_at > 10s) child.send(SIGKILL);
        continue;
      }
      const OurKill why = must_end(now - started, now - last_sign_);
      if (interrupted_ && interrupted_()) result.interrupted = true;
      if (has_enough(now) || why != OurKill::none || result.interrupted) {
        evidence_.our_kill = why;
        enough_ = why == OurKill::none && !result.interrupted;
        stopping = true;
        stopped_at = now;
        child.send(why == OurKill::heartbeat ? SIGUSR1 : SIGTERM);  // SIGUSR1: faulthandler, where the job has it
        if (why == OurKill::heartbeat) child.listen(500ms, [this](os::Stream s, std::string_view t) { hear(s, t); });
        if (why != OurKill::none) child.send(SIGKILL);
      }
    }
    settle(true);
    evidence_.ended = child.ended().value_or(os::Ended());
    result.left_behind = child.end();
    std::error_code ignored;
    if (!options_.folder.empty()) std::filesystem::remove(options_.folder + "/process", ignored);
    result.seconds = std::chrono::duration<double>(Clock::now() - started).count();
    finish(result);
    return result;
  }

 private:
  struct Resident {
    std::uint64_t bytes = 0;
    int pid = 0;
  };

  bool uses_hook() const { return options_.steps_from == StepsFrom::hook || options_.with_hook; }

  void hear(os::Stream stream, std::string_view text) {
    if (stream == os::Stream::report) return read_reports(text);
    (stream == os::Stream::out ? out_ : err_).add(text);
    if (options_.steps_from != StepsFrom::output) return;
    const std::size_t before = printed_.rates().size();
    printed_.add(text);
    if (printed_.rates().size() != before) last_sign_ = Clock::now();
  }

  void read_reports(std::string_view text) {
    for (const char c : text) {
      if (c != '\n') {
        if (line_.size() < kHead) line_ += c;
        continue;
      }
      const auto json = Json::parse_or_null(line_);
      if (json.is_object()) report(json);
      steps_text_ += line_ + '\n';
      line_.clear();
    }
  }

  void report(const Json& json) {
    last_sign_ = Clock::now();
    const auto text = [&](const char* key) {
      const auto found = json.find(key);
      return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    const std::string event = text("event");
    const auto number = [&](const char* key) -> std::optional<double> {
      const auto found = json.find(key);
      return found != json.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
    };
    const auto bytes = [&](const char* key) -> std::optional<std::uint64_t> {
      const auto value = number(key);
      return value && *value >= 0 ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
    };
    if (const std::optional<Block> block = block_of(json)) {
      if (block->steps > 0 && block->seconds > 0)
        slowest_step_s_ = std::max(slowest_step_s_, block->seconds / block->steps);
      block->is_warmup ? void(warmup_steps_ += static_cast<std::uint64_t>(block->steps)) : blocks_.push_back(*block);
    } else if (event == "memory") {
      row_.device_allocated_bytes = bytes("device_allocated_bytes");
      row_.device_reserved_bytes = bytes("device_reserved_bytes");
      evidence_.device_free_bytes = bytes("device_free_bytes");
    } else if (event == "error") {
      evidence_.exception_type = text("type");
      evidence_.exception_text = text("text");
      evidence_.exception_option = text("option");
      evidence_.at_import = text("stage") == "import";
      if (!text("file").empty()) {
        evidence_.exception_place = fmt::format("{}, line {:g}", text("file"), number("line").value_or(0));
      }
    } else if (event == "settings") {
      if (const auto values = json.find("values"); values != json.end() && values->is_object()) settings_ = *values;
    } else if (event == "done") {
      evidence_.reported_done = true;
    }
  }

  // Memory and CPU of all its processes, and what the hook wrote.
  void look(int pid) {
    const Clock::time_point now = Clock::now();
    // Short trials want a look while they last, a limit that is near wants many; else now and then will do.
    const bool is_near = options_.memory_limit != 0 && resident_ > options_.memory_limit / 2;
    const Clock::duration pause = is_near ? 250ms : now - started_ < 2s ? 500ms : 1000ms;
    if (now - looked_ < pause) return;
    looked_ = now;
    resident_ = 0;
    std::vector<Resident> processes;
    for (const int process : os::process_tree(pid)) {
      if (const auto counters = os::process_counters(process)) cpu_[process] = counters->cpu;
      processes.push_back({os::process_resident_bytes(process).value_or(0), process});
      resident_ += processes.back().bytes;
    }
    // The kernel walks every page to tell what is shared: seldom, not while it only starts, unless the limit may be
    // near.
    const bool has_started = has_a_sign() || now - started_ > 3s;
    const bool may_be_beyond = options_.memory_limit != 0 && resident_ > options_.memory_limit;
    if ((has_started && now >= weigh_at_) || may_be_beyond) weigh(std::move(processes), may_be_beyond);
    settle(false);
  }

  // Workers are much alike: of those with about the same resident memory one is weighed, unless `each` has to be.
  void weigh(std::vector<Resident> processes, bool each) {
    const Clock::time_point began = Clock::now();
    std::sort(processes.begin(), processes.end(),
              [](const Resident& a, const Resident& b) { return a.bytes < b.bytes; });
    pss_ = 0;
    Resident weighed;
    std::uint64_t of_weighed = 0;
    for (const Resident& process : processes) {
      if (each || weighed.pid == 0 ||
          static_cast<double>(process.bytes) > kAlike * static_cast<double>(weighed.bytes)) {
        const auto shares = os::process_shares(process.pid);
        if (!shares) continue;
        weighed = process;
        of_weighed = shares->pss_bytes;
      }
      pss_ += of_weighed;
    }
    if (pss_ > row_.host_peak_bytes.value_or(0)) row_.host_peak_bytes = pss_;
    const Clock::time_point ended = Clock::now();
    weigh_at_ = ended + std::clamp<Clock::duration>(200 * (ended - began), 500ms, 5s);
  }

  void settle(bool all) {
    if (!uses_hook()) return;
    const std::uint64_t before = job_.steps();
    records_.poll([this](int pid, std::string_view line) { job_.add(pid, line); });
    job_.settle(all);
    if (job_.steps() != before) last_sign_ = Clock::now();
  }

  bool has_enough(Clock::time_point now) {
    if (!is_measuring_ && (job_.steps() > options_.warmup_steps || printed_.rates().size() > options_.warmup_steps)) {
      is_measuring_ = true;
      measuring_since_ = now;
    }
    return has_steps() && now - measuring_since_ >= options_.bench_time;
  }

  bool has_steps() const {
    switch (options_.steps_from) {
      case StepsFrom::reports:
        return false;  // it knows when to end
      case StepsFrom::hook:
        return job_.steps() > options_.warmup_steps + options_.bench_steps;
      case StepsFrom::output:
        return static_cast<double>(printed_.rates().size()) >=
               static_cast<double>(options_.warmup_steps) + kOutputRates;
    }
    return false;
  }

  bool has_a_sign() const {
    return !blocks_.empty() || warmup_steps_ > 0 || job_.steps() > 0 || !printed_.rates().empty();
  }

  OurKill must_end(Clock::duration running, Clock::duration silent) const {
    if (options_.memory_limit != 0 && pss_ > options_.memory_limit) return OurKill::memory;
    if (options_.deadline.count() > 0 && running > options_.deadline) return OurKill::deadline;
    const auto patience = std::max<Clock::duration>(
        options_.heartbeat,
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(10 * slowest_step_s_)));
    if (options_.heartbeat.count() > 0 && has_a_sign() && silent > patience) return OurKill::heartbeat;
    return OurKill::none;
  }

  void finish(TrialResult& result) {
    for (const auto& [pid, cpu] : cpu_) cpu_s_ += std::chrono::duration<double>(cpu).count();
    if (cpu_s_ > 0) row_.cpu_seconds = cpu_s_;
    row_.warmup_steps = options_.warmup_steps;
    if (uses_hook()) take_hook();
    if (options_.steps_from == StepsFrom::output) take_rates();
    if (!blocks_.empty()) fill_row(blocks_, row_);
    if (options_.with_hook) split_data();
    if (hook_rate_ > 0) {  // the window was shorter than the queue that had been filled before it
      row_.images_per_s = hook_rate_;
      row_.ci_low.reset();
      row_.ci_high.reset();
    }

    evidence_.stderr_tail = err_.last();
    const std::uint64_t kills = oom_kills();
    evidence_.cgroup_oom_kills = kills > oom_kills_ ? kills - oom_kills_ : 0;
    const bool ended_well = evidence_.ended.is_success();
    enough_ |= ended_well && has_steps();  // a job that came to its end before we looked
    const bool has_too_few = ended_well && options_.steps_from != StepsFrom::reports;
    if (!enough_ && !result.interrupted) {
      result.failure = has_too_few ? without_steps(ended_well) : classify(evidence_);
    }
    if (result.failure && evidence_.our_kill == OurKill::deadline && is_blind()) {
      const Failure missing = without_steps(false);
      result.failure->cause = "stopped at its deadline, and until then " + missing.cause;
      row_.steps = 0;
      result.failure->remedy =
          format_text("a longer {} if it starts slowly; else {}", option("deadline"), missing.remedy);
    } else if (result.failure && evidence_.our_kill == OurKill::deadline && has_a_sign()) {
      result.failure->cause = "stopped at its deadline, while it was still being measured";
      result.failure->remedy = format_text("give a longer {}, or fewer {}", option("deadline"), option("bench_steps"));
    }
    if (!result.failure && !row_.images_per_s && !result.interrupted) {
      result.failure = without_steps(ended_well);
    }
    if (std::string missing = missing_key(); !missing.empty() && !result.interrupted) {
      result.failure =
          Failure{Status::user_error, "", std::move(missing),
                  "the literal of an assignment, of a dataclass field, of a default or of a keyword argument "
                  "can be tried; the file must be one that the job runs or imports"};
    }
    if (result.failure) {
      row_.status = result.failure->status;
      row_.error = result.failure->cause;
    }
    row_.trial_seconds = result.seconds;
    result.row = row_;
    result.settings = settings_;
    result.loaders = std::move(loaders_);
    write("stdout", out_.text());
    write("stderr", err_.text());
    if (options_.steps_from != StepsFrom::reports) write_blocks();
    write("steps.jsonl", steps_text_);
  }

  // Says which knob of the source the hook never met; empty: it met all.
  std::string missing_key() const {
    std::string told;
    std::error_code ignored;
    if (!options_.source_keys.empty()) {
      for (const auto& entry : std::filesystem::directory_iterator(options_.folder + "/source", ignored))
        told += os::read_text(entry.path().string());
    }
    for (const std::string& key : options_.source_keys) {
      const std::size_t colon = key.rfind(':');
      const std::string file = std::filesystem::path(key.substr(0, colon)).filename().string();
      if (told.find(fmt::format("/{}\", \"{}\"]", file, key.substr(colon + 1))) == std::string::npos)
        return fmt::format("`{}` has no literal named `{}`, or the job never loads it", key.substr(0, colon),
                           key.substr(colon + 1));
    }
    return "";
  }

  // Nothing was seen of what the trial is measured by.
  bool is_blind() const {
    return (options_.steps_from == StepsFrom::output && printed_.rates().empty()) ||
           (options_.steps_from == StepsFrom::hook && job_.loaders().empty());
  }

  Failure without_steps(bool ended_well) const {
    const auto wrong = [](std::string cause, Text remedy) {
      return Failure{Status::user_error, "", std::move(cause), std::move(remedy)};
    };
    if (options_.steps_from == StepsFrom::hook && job_.loaders().empty()) {
      return wrong("it used no torch DataLoader that could be measured",
                   format_text("give {} if it prints it/s or s/step, or {} for what else it prints",
                               option("steps_from", "output"), option("rate_regex")));
    }
    if (options_.steps_from == StepsFrom::hook) {
      return wrong(
          fmt::format("it made {} step{}, and {} are needed: the first, {} to warm up, then {} to measure",
                      job_.steps(), job_.steps() == 1 ? "" : "s", options_.warmup_steps + options_.bench_steps + 1,
                      options_.warmup_steps, options_.bench_steps),
          format_text("let it run longer (more epochs, or more data), or lower {}", option("bench_steps")));
    }
    if (options_.steps_from == StepsFrom::output && !printed_.rates().empty()) {
      return wrong(fmt::format("it printed {} {}, and {:g} are needed", printed_.rates().size(),
                               printed_.rates().size() == 1 ? "rate" : "rates",
                               static_cast<double>(options_.warmup_steps) + kOutputRates),
                   "let it run longer, or print more often");
    }
    if (options_.steps_from == StepsFrom::output && options_.rate_regex.empty() && options_.log_pattern.empty()) {
      return wrong("it printed no rate such as `12.3it/s`, `0.08s/it` or `0.08 s/step`",
                   format_text("say with {} how it prints samples per second", option("rate_regex")));
    }
    if (options_.steps_from == StepsFrom::output) {
      if (!options_.log_pattern.empty())
        return wrong(fmt::format("no line that it printed has a rate by the pattern `{}`", options_.log_pattern),
                     "try the pattern on what it printed: stoker measure --log FILE --log-pattern ...");
      return wrong(fmt::format("nothing that it printed matches the regex `{}`", options_.rate_regex),
                   "try the expression on its stdout and stderr: the first group is samples per second");
    }
    return wrong(ended_well ? "it ended without any measured step" : "no step was measured",
                 format_text("let it run for more steps than {} and {} together", option("warmup_steps"),
                             option("bench_steps")));
  }

  // What was seen from outside, in the words of a program that reports.
  void write_blocks() {
    for (const Block& block : blocks_) {
      Json line = {{"event", "block"},
                   {"steps", block.steps},
                   {"samples", block.samples},
                   {"seconds", block.seconds},
                   {"warmup", false}};
      const auto add = [&](const char* name, const std::optional<double>& value) {
        if (value) line[name] = *value;
      };
      add("compute_s", block.compute_s);
      add("fetch_s", block.fetch_s);
      add("prep_s", block.prep_s);
      add("handoff_s", block.handoff_s);
      add("queue_depth", block.queue_depth);
      steps_text_ += line.dump() + "\n";
    }
  }

  void take_hook() {
    const measure::Answer answer = measure::answer(job_, {});
    loaders_ = answer.loaders;
    if (!answer.main) return;
    const measure::LoaderAnswer& loader = answer.loaders[*answer.main];
    wait_ = loader.steady ? loader.steady->wait : loader.steps.wait.split();
    if (options_.steps_from == StepsFrom::hook) {
      for (const auto& [key, run] : job_.loaders()) {
        if (key.first == loader.pid && key.second == loader.number) add_blocks(run);
      }
      row_.queue_depth = loader.ready_mean;
    }
    if (loader.steady) {  // the queue was filled before the clock started
      hook_rate_ = loader.steady->step_ns > 0 && loader.steps.steps > 0
                       ? static_cast<double>(loader.steps.samples) / static_cast<double>(loader.steps.steps) * 1e9 /
                             loader.steady->step_ns
                       : 0;
    }
  }

  // The wait of the reported blocks, divided as the hook saw it.
  void split_data() {
    const double total = static_cast<double>(wait_.total_ns());
    if (!row_.data_ms || !row_.compute_ms || !row_.verdict.empty() || total <= 0) return;
    const auto part = [&](std::int64_t ns) {
      return static_cast<std::int64_t>(*row_.data_ms * 1e6 * static_cast<double>(ns) / total);
    };
    const meter::Verdict verdict =
        meter::judge(static_cast<std::int64_t>((*row_.compute_ms + row_.h2d_ms.value_or(0)) * 1e6),
                     {part(wait_.fetch_ns), part(wait_.prep_ns), part(wait_.handoff_ns)});
    row_.verdict = meter::name(verdict.bound);
    row_.bound = meter::general_name(verdict.bound);
  }

  void add_blocks(const measure::LoaderRun& run) {
    const auto& steps = run.steps;
    const std::size_t first = std::min<std::size_t>(options_.warmup_steps, steps.size());
    if (steps.size() < first + 2) return;
    const std::size_t count = std::max<std::size_t>(1, std::min<std::size_t>(10, (steps.size() - first) / 4));
    for (std::size_t b = 0; b < count; ++b) {
      const std::size_t from = first + (steps.size() - first) * b / count,
                        to = first + (steps.size() - first) * (b + 1) / count;
      Block block{.compute_s = 0, .fetch_s = 0, .prep_s = 0, .handoff_s = 0, .queue_depth = 0};
      for (std::size_t i = from; i < to; ++i) {
        const meter::WaitSplit wait = steps[i].wait.split();
        block.steps += 1;
        block.samples += static_cast<double>(steps[i].samples);
        block.seconds += static_cast<double>(steps[i].compute_ns + steps[i].wait.total_ns()) * 1e-9;
        *block.compute_s += static_cast<double>(steps[i].compute_ns) * 1e-9;
        *block.fetch_s += static_cast<double>(wait.fetch_ns) * 1e-9;
        *block.prep_s += static_cast<double>(wait.prep_ns) * 1e-9;
        *block.handoff_s += static_cast<double>(wait.handoff_ns) * 1e-9;
        *block.queue_depth += static_cast<double>(steps[i].ready) / static_cast<double>(to - from);
      }
      if (to > from + 1) {
        block.ready_change = static_cast<double>(steps[to - 1].ready) - static_cast<double>(steps[from].ready);
      }
      blocks_.push_back(block);
    }
  }

  void take_rates() {
    const std::vector<double>& rates = printed_.rates();
    const std::size_t first = std::min<std::size_t>(options_.warmup_steps, rates.size() / 2);
    for (std::size_t i = first; i < rates.size(); ++i) {
      blocks_.push_back({.steps = 1, .samples = rates[i], .seconds = 1});
    }
    if (options_.batch_size <= 0) return;
    for (Block& block : blocks_) block.steps = block.samples / options_.batch_size;
  }

  void write(const std::string& name, const std::string& text) const {
    if (!options_.folder.empty()) os::write_file(options_.folder + "/" + name, text);
  }

  const TrialOptions& options_;
  const std::function<bool()>& interrupted_;
  std::map<std::string, std::string> environment_;
  RateReader printed_;
  Kept out_, err_;
  std::string line_, steps_text_;
  std::vector<Block> blocks_;
  std::uint64_t warmup_steps_ = 0, resident_ = 0, pss_ = 0, oom_kills_ = 0;
  double slowest_step_s_ = 0, cpu_s_ = 0, hook_rate_ = 0;
  meter::WaitSplit wait_;
  std::map<int, std::chrono::nanoseconds> cpu_;
  measure::Job job_;
  measure::RecordFolder records_;
  Row row_;
  Json settings_ = nullptr;
  std::vector<measure::LoaderAnswer> loaders_;
  Evidence evidence_;
  bool enough_ = false, is_measuring_ = false;
  Clock::time_point started_, last_sign_, looked_, weigh_at_, measuring_since_;
};

}  // namespace

TrialResult run_trial(const TrialOptions& options, const std::function<bool()>& interrupted) {
  return Watch(options, interrupted).run();
}

}  // namespace stoker::tune
