#include "stoker/report/from_measure.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/csv_text.h"
#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/shell.h"
#include "stoker/base/units.h"
#include "stoker/report/settings.h"
#include "stoker/report/words.h"

namespace stoker::report {
namespace {

constexpr std::size_t kMostPoints = 240, kMostEpochs = 7;

std::string file_of(const MeasuredJob& job) {
  return job.place + "/measure.json";
}

[[noreturn]] void refuse(const MeasuredJob& job, const std::string& why) {
  throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: {}", file_of(job), why),
              "give the folder that `stoker measure --out` wrote");
}

std::string text_of(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object.at(key).is_string() ? object.at(key).get<std::string>()
                                                                                  : "";
}

std::vector<std::string> list_of(const Json& object, const char* key) {
  std::vector<std::string> list;
  if (!object.is_object() || !object.contains(key) || !object.at(key).is_array()) return list;
  for (const Json& one : object.at(key)) {
    if (one.is_string()) list.push_back(one.get<std::string>());
  }
  return list;
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  text[0] = static_cast<char>(text[0] >= 'a' && text[0] <= 'z' && text.find('_') > text.find(' ') ? text[0] - 'a' + 'A'
                                                                                                  : text[0]);
  if (!text.ends_with('.')) text += '.';
  return text;
}

// Figures that no job has are refused, not drawn.
double ms_at(const MeasuredJob& job, const Json& steps, std::initializer_list<const char*> path) {
  const double ms = number_at(steps, path).value_or(0);
  if (!std::isfinite(ms) || ms < 0 || ms > 1e12) {
    refuse(job, fmt::format("{} ms per step for `{}` cannot be", ms, fmt::join(path, ".")));
  }
  return ms;
}

SplitBar bar_of(const MeasuredJob& job, const Json& steps, std::string label) {
  SplitBar bar{std::move(label),
               {{Stage::compute, ms_at(job, steps, {"compute", "ms_per_step"})},
                {Stage::h2d, ms_at(job, steps, {"h2d", "ms_per_step"})},
                {Stage::fetch, ms_at(job, steps, {"wait", "fetch", "ms_per_step"})},
                {Stage::prep, ms_at(job, steps, {"wait", "prep", "ms_per_step"})},
                {Stage::handoff, ms_at(job, steps, {"wait", "handoff", "ms_per_step"})}}};
  std::erase_if(bar.parts, [](const auto& part) { return part.second <= 0; });
  return bar;
}

const Json* main_loader(const Json& answer) {
  if (!answer.contains("loaders") || !answer.at("loaders").is_array()) return nullptr;
  const auto number = number_at(answer, {"main_loader"});
  const std::size_t at = number && *number >= 0 ? static_cast<std::size_t>(*number) : 0;
  return at < answer.at("loaders").size() ? &answer.at("loaders").at(at) : nullptr;
}

void check(const MeasuredJob& job) {
  if (!job.answer.is_object()) refuse(job, "it is no JSON object");
  if (!text_of(job.answer, "schema").starts_with("stoker.measure/")) refuse(job, "its schema is not stoker.measure");
  if (!job.answer.contains("total") || !job.answer.at("total").is_object()) refuse(job, "it has no `total`");
}

Figure share_of(const Json& verdict) {
  return {.value = number_at(verdict, {"share"}).value_or(0),
          .low = number_at(verdict, {"ci_low"}),
          .high = number_at(verdict, {"ci_high"})};
}

std::string share_text(const Figure& share) {
  return share.low && share.high ? fmt::format("95 %: {} to {}", percent(*share.low), percent(*share.high))
                                 : "interval not known";
}

void add_tiles(const Json& answer, Report& report) {
  const Json& total = answer.at("total");
  if (answer.contains("verdict") && answer.at("verdict").is_object()) {
    const Json& verdict = answer.at("verdict");
    report.tiles.push_back(
        {text_of(verdict, "bound"), percent(share_of(verdict).value), share_text(share_of(verdict))});
    if (const auto gain = number_at(verdict, {"gain"});
        gain && *gain > 1.01 && text_of(verdict, "bound") != "compute_bound") {
      report.tiles.push_back(
          {"if that stage were free", *gain >= 20 ? "more than 20x" : ratio(*gain), "faster at most"});
    }
  }
  if (const Json* loader = main_loader(answer)) {
    if (const auto rate = number_at(*loader, {"corrected_samples_per_s"}); rate && *rate > 0)
      report.tiles.push_back({"rate", per_second(*rate) + "/s", "samples per second of the main loader"});
  }
  const double steps = number_at(total, {"steps"}).value_or(0);
  report.tiles.push_back({"step", milliseconds(number_at(total, {"step_ms"}).value_or(0)),
                          fmt::format("mean of {}", plural(static_cast<std::size_t>(std::max(0.0, steps)), "step"))});
}

void add_host(const Json& host, Report& report) {
  const auto add = [&](const char* name, std::string text) {
    if (!text.empty()) report.environment.push_back({name, std::move(text)});
  };
  const auto bytes = [&](std::initializer_list<const char*> path) -> std::string {
    const auto value = number_at(host, path);
    return value ? byte_text(*value) : "unknown";
  };
  if (const auto cores = number_at(host, {"cores", "available"})) {
    add("cores", fmt::format("{:.3g}, of which {:.2g} used", *cores, number_at(host, {"cores", "used"}).value_or(0)));
  }
  add("memory",
      fmt::format("{}, job at most {}", bytes({"memory", "limit_bytes"}), bytes({"memory", "pss_peak_bytes"})));
  if (const auto read = number_at(host, {"disk", "read_bytes_per_s"}))
    add("disk reads", fmt::format("{} MB/s", per_second(*read / 1e6)));
  if (const auto share = number_at(host, {"disk", "page_cache_share"}))
    add("read from the page cache", percent(*share));
  if (const auto received = number_at(host, {"network", "received_bytes_per_s"}))
    add("network in", fmt::format("{} MB/s", per_second(*received / 1e6)));
  for (const char* what : {"cpu", "io", "memory"}) {
    if (const auto share = number_at(host, {"pressure", what}))
      add(fmt::format("{} pressure", what).c_str(), percent(*share));
  }
  if (host.contains("data_file_systems") && host.at("data_file_systems").is_array() &&
      !host.at("data_file_systems").empty())
    add("data on", text_of(host.at("data_file_systems").at(0), "name"));
  if (!host.contains("accelerators") || !host.at("accelerators").is_array()) {
    add("accelerator", "unknown");
    return;
  }
  for (const Json& one : host.at("accelerators")) {
    const auto busy = number_at(one, {"busy"}), used = number_at(one, {"memory_used_bytes"}),
               total = number_at(one, {"memory_total_bytes"});
    add("accelerator",
        fmt::format("{}: {} busy{}", text_of(one, "name"), busy ? percent(*busy) : "unknown",
                    used && total ? fmt::format(", {} of {}", byte_text(*used), byte_text(*total)) : ""));
  }
}

void add_memory(const Json& host, Report& report) {
  const auto peak = number_at(host, {"memory", "pss_peak_bytes"}), limit = number_at(host, {"memory", "limit_bytes"});
  if (peak && limit && *limit > 0) {
    report.memory_note = fmt::format("The job's processes held {} at their peak, {} of the {} that the machine allows.",
                                     byte_text(*peak), percent(*peak / *limit), byte_text(*limit));
  }
}

struct StepTimes {
  double asked_s, step_s, compute_s, ready;
};

// The training steps of the first rank and loader named in the file.
std::vector<StepTimes> read_steps(const MeasuredJob& job) {
  std::vector<StepTimes> steps;
  std::vector<CsvField> fields;
  std::vector<std::string> header;
  std::string rank, loader;
  std::size_t line = 0;
  for (std::size_t at = 0; at < job.steps_csv.size();) {
    const CsvRow row = read_row(job.steps_csv, at, fields);
    at = row.end;
    ++line;
    if (row.is_blank) continue;
    if (header.empty()) {
      for (const CsvField& field : fields) header.push_back(field.text());
      continue;
    }
    const auto cell = [&](std::string_view name) -> std::string {
      const auto found = std::find(header.begin(), header.end(), name);
      const auto i = static_cast<std::size_t>(found - header.begin());
      return found == header.end() || i >= fields.size() ? "" : fields[i].text();
    };
    const auto number = [&](std::string_view name) {
      const std::string text = cell(name);
      const auto value = tune::number_of(text);
      if (!value || *value < 0) {
        throw Error(ErrorKind::corrupt,
                    fmt::format("cannot read `{}/steps.csv`, line {}: {} is `{}`, not a number that it can be",
                                job.place, line, name, text));
      }
      return *value;
    };
    if (cell("role") != "train") continue;
    if (steps.empty()) rank = cell("rank"), loader = cell("loader");
    if (cell("rank") != rank || cell("loader") != loader) continue;
    steps.push_back({number("asked_s"), number("step_ms") / 1e3, number("compute_ms") / 1e3, number("ready")});
  }
  return steps;
}

void add_timeline(const MeasuredJob& job, Report& report) {
  const std::vector<StepTimes> steps = read_steps(job);
  if (steps.size() < 4) return;
  Timeline line{.label = "The training loop"};
  const double first = steps.front().asked_s, last = steps.back().asked_s + steps.back().step_s;
  const auto count = std::min<std::size_t>(kMostPoints, std::max<std::size_t>(4, steps.size() / 2));
  const double each = std::max(1e-9, (last - first) / static_cast<double>(count));
  struct Sum {
    double ready = 0, steps = 0, compute = 0;
  };
  std::vector<Sum> sums(count);
  for (const StepTimes& step : steps) {
    const double begin = step.asked_s - first + (step.step_s - step.compute_s),
                 end = step.asked_s - first + step.step_s;
    Sum& own = sums[std::min(count - 1, static_cast<std::size_t>((step.asked_s - first) / each))];
    own.ready += step.ready;
    own.steps += 1;
    // Compute is spread over the stretches that it covers.
    for (auto i = static_cast<std::size_t>(begin / each); i < count && static_cast<double>(i) * each < end; ++i) {
      const double from = std::max(begin, static_cast<double>(i) * each),
                   to = std::min(end, static_cast<double>(i + 1) * each);
      if (to > from) sums[i].compute += to - from;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    line.points.push_back({.from_s = static_cast<double>(i) * each,
                           .to_s = static_cast<double>(i + 1) * each,
                           .ready = sums[i].steps > 0 ? std::optional(sums[i].ready / sums[i].steps)
                                                      : (i > 0 ? line.points.back().ready : std::nullopt),
                           .compute = std::min(1.0, sums[i].compute / each)});
  }
  line.note = "Activity is the time between a batch and the next request for one, by the clock of the training loop.";
  report.timelines.push_back(std::move(line));
}

}  // namespace

Report from_measure(const MeasuredJob& job) {
  check(job);
  const Json& answer = job.answer;
  Report report;
  const std::vector<std::string> command = list_of(answer, "command");
  report.title =
      command.empty() ? fmt::format("Measuring {}", job.place) : fmt::format("Measuring {}", command_line(command));
  report.headline = sentence(text_of(answer, "headline"));
  report.context.emplace_back(
      "The job ran as it is; its loader was timed from outside. Waiting is split by what the batch that was waited for "
      "was doing.");
  if (const auto seconds = number_at(answer, {"seconds"}); seconds && *seconds > 0) {
    report.context.push_back(fmt::format("It ran for {} and ended with exit code {:.0f}.", milliseconds(*seconds * 1e3),
                                         number_at(answer, {"exit_code"}).value_or(0)));
  }
  add_tiles(answer, report);
  if (const Json* loader = main_loader(answer)) {
    std::string where = text_of(*loader, "name");
    if (!text_of(*loader, "file").empty())
      where += fmt::format("{}{}:{:.0f}", where.empty() ? "" : " at ", text_of(*loader, "file"),
                           number_at(*loader, {"line"}).value_or(0));
    if (!where.empty()) report.configuration.push_back({"loader", where});
    if (loader->contains("settings")) {
      for (Fact& fact : facts_of(loader->at("settings"))) report.configuration.push_back(std::move(fact));
    }
    if (loader->contains("batch") && loader->at("batch").is_object()) {
      if (const auto bytes = number_at(*loader, {"batch", "bytes"}))
        report.configuration.push_back({"bytes per batch", byte_text(*bytes)});
      for (const char* key : {"torch", "device"}) {
        if (const std::string text = text_of(loader->at("batch"), key); !text.empty())
          report.environment.push_back({key, text});
      }
    }
  }
  if (answer.contains("host") && answer.at("host").is_object()) {
    add_host(answer.at("host"), report);
    add_memory(answer.at("host"), report);
  }
  for (const char* key : {"why", "notes"}) {
    for (const std::string& text : list_of(answer, key)) report.findings.push_back(sentence(text));
  }
  SplitBar all = bar_of(job, answer.at("total"), "all steps");
  if (!all.parts.empty()) report.split.push_back(std::move(all));
  if (const Json* loader = main_loader(answer);
      loader != nullptr && loader->contains("epochs") && loader->at("epochs").is_array()) {
    const Json& epochs = loader->at("epochs");
    for (std::size_t i = 0; epochs.size() > 1 && i < std::min(epochs.size(), kMostEpochs); ++i) {
      SplitBar bar =
          bar_of(job, epochs.at(i), fmt::format("epoch {:.0f}", number_at(epochs.at(i), {"epoch"}).value_or(0)));
      if (!bar.parts.empty()) report.split.push_back(std::move(bar));
    }
  }
  report.split_note =
      "Compute is from a batch until the loop asks for the next one; all else is waiting, by what the awaited batch "
      "was doing.";
  add_timeline(job, report);
  std::size_t number = 0;
  for (const std::string& text : list_of(answer, "advice")) {
    report.options.push_back(
        {.title = fmt::format("Option {}", static_cast<char>('A' + std::min<std::size_t>(number++, 25))),
         .gain = "",
         .text = sentence(text)});
  }
  if (!command.empty()) {
    std::vector<std::string> words = {"stoker", "measure", "--out", job.place + "-again", "--"};
    words.insert(words.end(), command.begin(), command.end());
    report.commands.push_back({"Measure again", command_line(words)});
    report.commands.push_back(
        {"Compare the two", fmt::format("stoker report --before {0} --after {0}-again", shell_word(job.place))});
  }
  report.commands.push_back({"Write this report again", fmt::format("stoker report {}", shell_word(job.place))});
  for (const std::string& file : job.files) {
    report.links.push_back({file, file == "measure.json" ? "the answer, with the host and every loader"
                                  : file == "steps.csv"  ? "one row per step"
                                                         : ""});
  }
  return report;
}

Side side_of(const MeasuredJob& job) {
  check(job);
  Side side{.label = job.place};
  const Json* loader = main_loader(job.answer);
  const double rate = loader == nullptr ? 0 : number_at(*loader, {"corrected_samples_per_s"}).value_or(0);
  side.rate.value = std::max(0.0, rate);
  side.bar = bar_of(job, job.answer.at("total"), job.place);
  if (job.answer.contains("verdict") && job.answer.at("verdict").is_object()) {
    const Json& verdict = job.answer.at("verdict");
    side.verdict = fmt::format("{} {}", text_of(verdict, "bound"), percent(share_of(verdict).value));
    if (const Figure share = share_of(verdict); share.low && share.high)
      side.verdict += fmt::format(" ({})", share_text(share));
  }
  if (loader != nullptr && loader->contains("settings")) {
    for (const char* key : {"num_workers", "batch_size", "prefetch_factor"}) {
      if (const auto value = number_at(loader->at("settings"), {key}))
        side.settings += fmt::format("{}{}={:g}", side.settings.empty() ? "" : ", ", key, *value);
    }
  }
  if (job.answer.contains("host")) side.host_bytes = number_at(job.answer.at("host"), {"memory", "pss_peak_bytes"});
  return side;
}

}  // namespace stoker::report
