#include "stoker/report/from_measure.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/shell.h"
#include "stoker/report/settings.h"
#include "stoker/report/words.h"

namespace stoker::report {
namespace {

constexpr std::size_t kMostPoints = 240, kMostEpochs = 7;

SplitBar bar_of(const StageTimes& times, std::string label) {
  SplitBar bar{std::move(label),
               {{Stage::compute, times.compute_ms},
                {Stage::h2d, times.h2d_ms},
                {Stage::fetch, times.fetch_ms},
                {Stage::prep, times.prep_ms},
                {Stage::handoff, times.handoff_ms}}};
  std::erase_if(bar.parts, [](const auto& part) { return part.second <= 0; });
  return bar;
}

std::string share_text(const Figure& share) {
  return share.low && share.high ? fmt::format("95 %: {} to {}", percent(*share.low), percent(*share.high))
                                 : "interval not known";
}

void add_tiles(const MeasuredJob& job, Report& report) {
  if (job.verdict) {
    const MeasuredVerdict& verdict = *job.verdict;
    report.tiles.push_back({verdict.bound, percent(verdict.share.value), share_text(verdict.share)});
    if (verdict.gain && *verdict.gain > 1.01 && verdict.bound != "compute_bound") {
      report.tiles.push_back(
          {"if that stage were free", *verdict.gain >= 20 ? "more than 20x" : ratio(*verdict.gain), "faster at most"});
    }
  }
  if (job.loader && job.loader->samples_per_s.value_or(0) > 0)
    report.tiles.push_back(
        {"rate", per_second(*job.loader->samples_per_s) + "/s", "samples per second of the main loader"});
  report.tiles.push_back({"step", milliseconds(job.step_ms), fmt::format("mean of {}", plural(job.steps, "step"))});
}

void add_host(const MeasuredHost& host, Report& report) {
  const auto add = [&](std::string name, std::string text) {
    if (!text.empty()) report.environment.push_back({std::move(name), std::move(text)});
  };
  const auto bytes = [&](const std::optional<double>& value) { return value ? byte_text(*value) : "unknown"; };
  if (host.cores) add("cores", fmt::format("{:.3g}, of which {:.2g} used", *host.cores, host.cores_used.value_or(0)));
  add("memory", fmt::format("{}, job at most {}", bytes(host.memory_limit_bytes), bytes(host.memory_peak_bytes)));
  if (host.disk_bytes_per_s) add("disk reads", fmt::format("{} MB/s", per_second(*host.disk_bytes_per_s / 1e6)));
  if (host.page_cache_share) add("read from the page cache", percent(*host.page_cache_share));
  if (host.network_bytes_per_s) add("network in", fmt::format("{} MB/s", per_second(*host.network_bytes_per_s / 1e6)));
  for (const auto& [what, share] : {std::pair("cpu", host.cpu_pressure), std::pair("io", host.io_pressure),
                                    std::pair("memory", host.memory_pressure)}) {
    if (share) add(fmt::format("{} pressure", what), percent(*share));
  }
  add("data on", host.data_file_system);
  if (!host.accelerators) add("accelerator", "unknown");
  for (const MeasuredAccelerator& one : host.accelerators.value_or(std::vector<MeasuredAccelerator>())) {
    add("accelerator", fmt::format("{}: {} busy{}", one.name, one.busy ? percent(*one.busy) : "unknown",
                                   one.memory_used_bytes && one.memory_total_bytes
                                       ? fmt::format(", {} of {}", byte_text(*one.memory_used_bytes),
                                                     byte_text(*one.memory_total_bytes))
                                       : ""));
  }
  if (host.memory_peak_bytes && host.memory_limit_bytes.value_or(0) > 0) {
    report.memory_note =
        fmt::format("The job's processes held {} at their peak, {} of the {} that the machine allows.",
                    byte_text(*host.memory_peak_bytes), percent(*host.memory_peak_bytes / *host.memory_limit_bytes),
                    byte_text(*host.memory_limit_bytes));
  }
}

void add_loader(const MeasuredLoader& loader, Report& report) {
  std::string where = loader.name;
  if (!loader.file.empty()) where += fmt::format("{}{}:{}", where.empty() ? "" : " at ", loader.file, loader.line);
  if (!where.empty()) report.configuration.push_back({"loader", where});
  report.configuration.insert(report.configuration.end(), loader.settings.begin(), loader.settings.end());
  if (loader.batch_bytes) report.configuration.push_back({"bytes per batch", byte_text(*loader.batch_bytes)});
  if (!loader.torch.empty()) report.environment.push_back({"torch", loader.torch});
  if (!loader.device.empty()) report.environment.push_back({"device", loader.device});
}

void add_timeline(const MeasuredJob& job, Report& report) {
  const std::vector<MeasuredStep>& steps = job.training;
  if (steps.size() < 4) return;
  Timeline line{.label = "The training loop"};
  const double first = steps.front().asked_s, last = steps.back().asked_s + steps.back().step_s;
  const auto count = std::min<std::size_t>(kMostPoints, std::max<std::size_t>(4, steps.size() / 2));
  const double each = std::max(1e-9, (last - first) / static_cast<double>(count));
  struct Sum {
    double ready = 0, steps = 0, compute = 0;
  };
  std::vector<Sum> sums(count);
  for (const MeasuredStep& step : steps) {
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
  Report report;
  report.title = fmt::format("Measuring {}", job.command.empty() ? job.place : command_line(job.command));
  report.headline = sentence(job.headline);
  report.context.emplace_back(
      "The job ran as it is; its loader was timed from outside. Waiting is split by what the batch that was waited for "
      "was doing.");
  if (job.seconds > 0) {
    report.context.push_back(
        fmt::format("It ran for {} and ended with exit code {}.", milliseconds(job.seconds * 1e3), job.exit_code));
  }
  add_tiles(job, report);
  if (job.loader) add_loader(*job.loader, report);
  if (job.host) add_host(*job.host, report);
  for (const auto* sentences : {&job.why, &job.notes}) {
    for (const std::string& text : *sentences) report.findings.push_back(sentence(text));
  }
  SplitBar all = bar_of(job.times, "all steps");
  if (!all.parts.empty()) report.split.push_back(std::move(all));
  if (job.loader && job.loader->epochs.size() > 1) {
    const std::vector<MeasuredEpoch>& epochs = job.loader->epochs;
    for (std::size_t i = 0; i < std::min(epochs.size(), kMostEpochs); ++i) {
      SplitBar bar = bar_of(epochs[i].times, fmt::format("epoch {}", epochs[i].epoch));
      if (!bar.parts.empty()) report.split.push_back(std::move(bar));
    }
  }
  report.split_note =
      "Compute is from a batch until the loop asks for the next one; all else is waiting, by what the awaited batch "
      "was doing.";
  add_timeline(job, report);
  std::size_t number = 0;
  for (const std::string& text : job.advice) {
    report.options.push_back(
        {.title = fmt::format("Option {}", static_cast<char>('A' + std::min<std::size_t>(number++, 25))),
         .gain = "",
         .text = sentence(text)});
  }
  if (!job.command.empty()) {
    std::vector<std::string> words = {"stoker", "measure", "--out", job.place + "-again", "--"};
    words.insert(words.end(), job.command.begin(), job.command.end());
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

namespace {

constexpr std::size_t kMostRankBars = 8;
constexpr double kFine = 0.05;  // of the time in wait: nothing to be named

std::string node_of(const MeasuredJob& job) {
  return job.place.substr(job.place.rfind('/') + 1);
}

struct RankOfNode {
  const MeasuredJob* node = nullptr;
  const MeasuredRank* rank = nullptr;
};

// Every rank of the job, by number.
std::vector<RankOfNode> ranks_on(const std::vector<MeasuredJob>& nodes, const std::string& place) {
  std::vector<RankOfNode> all;
  for (const MeasuredJob& node : nodes) {
    for (const MeasuredRank& rank : node.ranks) all.push_back({&node, &rank});
  }
  if (all.empty()) {
    throw Error(ErrorKind::usage, fmt::format("no node below `{}` has seen a rank with a loader", place),
                "`stoker report` of the folder of one node says what it saw");
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.rank->rank < b.rank->rank; });
  for (std::size_t i = 1; i < all.size(); ++i) {
    const RankOfNode &one = all[i - 1], &other = all[i];
    if (one.rank->world_size != other.rank->world_size) {
      throw Error(ErrorKind::usage,
                  fmt::format("the parts below `{}` are not of one job: `{}` is of {}, `{}` of {}", place,
                              node_of(*one.node), plural(one.rank->world_size, "rank"), node_of(*other.node),
                              plural(other.rank->world_size, "rank")),
                  "remove what another run has left there");
    }
    if (one.rank->rank == other.rank->rank) {
      throw Error(ErrorKind::usage,
                  fmt::format("the parts below `{}` are not of one job: rank {} is in `{}` and in `{}`", place,
                              one.rank->rank, node_of(*one.node), node_of(*other.node)),
                  "remove what another run has left there");
    }
  }
  return all;
}

std::string missing_text(const std::vector<RankOfNode>& ranks) {
  const std::size_t world_size = ranks.front().rank->world_size;
  if (ranks.size() >= world_size) return "";
  std::size_t first = 0;
  for (const RankOfNode& one : ranks) first += one.rank->rank == first;
  return fmt::format("{} of {} are here, and rank {} is not: its node has written nothing into this folder",
                     ranks.size(), plural(world_size, "rank"), first);
}

Table table_of(const std::vector<RankOfNode>& ranks) {
  Table table{.title = "", .header = {"node", "rank", "steps", "samples/s", "step", "compute", "wait", "bound"}};
  for (const auto& [node, rank] : ranks) {
    table.rows.push_back({node_of(*node), std::to_string(rank->rank), std::to_string(rank->steps),
                          rank->samples_per_s ? per_second(*rank->samples_per_s) : "", milliseconds(rank->step_ms),
                          milliseconds(rank->times.compute_ms), percent(rank->wait_share), rank->bound});
  }
  table.note =
      "Ranks that train together take equal steps. The one that waits most for its own loader holds the others up: "
      "they "
      "wait for it inside their compute.";
  return table;
}

}  // namespace

Report from_nodes(const std::vector<MeasuredJob>& nodes, const std::string& place) {
  const std::vector<RankOfNode> ranks = ranks_on(nodes, place);
  const RankOfNode slowest = *std::max_element(
      ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.rank->wait_share < b.rank->wait_share; });
  Report report = from_measure(*slowest.node);
  const MeasuredRank& rank = *slowest.rank;
  report.title = fmt::format("{} on {}", report.title, plural(nodes.size(), "node"));
  const std::string where = fmt::format("rank {} on node {}", rank.rank, node_of(*slowest.node));
  std::string what =
      rank.wait_share < kFine
          ? fmt::format("no rank waits for its loader; most of all {}, {} of its time", where, percent(rank.wait_share))
          : fmt::format("{} is the slowest of {}: it waits {} of its time for its loader", where, ranks.size(),
                        percent(rank.wait_share));
  if (!rank.bound.empty()) what += fmt::format(" ({})", rank.bound);
  report.findings.insert(report.findings.begin(),
                         fmt::format("Of node {}: {}", node_of(*slowest.node), report.headline));
  report.headline = sentence(what);
  if (const std::string missing = missing_text(ranks); !missing.empty())
    report.findings.insert(report.findings.begin(), sentence(missing));
  report.ranks = table_of(ranks);
  report.split.clear();
  for (const auto& [node, one] : ranks) {
    if (report.split.size() == kMostRankBars && one != &rank) continue;
    SplitBar bar = bar_of(one->times, fmt::format("rank {}, {}", one->rank, node_of(*node)));
    if (!bar.parts.empty()) report.split.push_back(std::move(bar));
  }
  std::erase_if(report.commands, [](const Command& command) { return command.does != "Measure again"; });
  for (Command& command : report.commands) {
    std::vector<std::string> words = {"stoker", "measure", "--shared", place + "-again", "--"};
    words.insert(words.end(), slowest.node->command.begin(), slowest.node->command.end());
    command = {"Measure again, on each node", command_line(words)};
  }
  report.commands.push_back({"Write this report again", fmt::format("stoker report {}", shell_word(place))});
  report.links.clear();
  for (const MeasuredJob& node : nodes)
    report.links.push_back({node_of(node) + "/measure.json", fmt::format("what node {} measured", node_of(node))});
  return report;
}

Side side_of(const MeasuredJob& job) {
  Side side{.label = job.place};
  side.bar = bar_of(job.times, job.place);
  if (job.verdict) {
    side.verdict = fmt::format("{} {}", job.verdict->bound, percent(job.verdict->share.value));
    if (const Figure& share = job.verdict->share; share.low && share.high)
      side.verdict += fmt::format(" ({})", share_text(share));
  }
  if (job.loader) {
    side.rate.value = std::max(0.0, job.loader->samples_per_s.value_or(0));
    for (const std::string_view key : {"num_workers", "batch_size", "prefetch_factor"}) {
      for (const Fact& fact : job.loader->settings) {
        if (fact.name == key)
          side.settings += fmt::format("{}{}={}", side.settings.empty() ? "" : ", ", key, fact.value);
      }
    }
  }
  if (job.host) side.host_bytes = job.host->memory_peak_bytes;
  return side;
}

}  // namespace stoker::report
