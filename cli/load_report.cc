#include "load_report.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/transform/ops.h"

#include "json_head.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

constexpr double kOtherShown = 0.005;  // of the running time

std::string seconds(double s) {
  return format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(s * 1e9)));
}
std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}
std::string megabytes(double bytes_per_s) {
  return format_rate(bytes_per_s / 1e6);
}

std::string cache_of(const LoadReport& report, std::uint64_t epoch) {
  if (report.cache == "cold=data" && epoch > report.first_epoch && report.options.storage != storage::Storage::direct) {
    return "warm";
  }
  return report.cache;
}

// A row that is not broken: it holds colour, or its length is known.
void row(std::string& out, const Terminal& terminal, std::string_view label, std::string_view text) {
  out += fmt::format("  {}{}\n", terminal.paint(Paint::bold, fmt::format("{:<13}", label)), text);
}

void long_row(std::string& out, const Terminal& terminal, std::string_view label, std::string_view text) {
  out += labelled(terminal, label, 13, text);
}

std::string per_step(const feed::Span& span) {
  const double n = static_cast<double>(std::max<std::uint64_t>(1, span.steps));
  const auto ms = [n](std::int64_t ns) { return static_cast<double>(ns) * 1e-6 / n; };
  const std::string other =
      span.other_share() >= kOtherShown ? fmt::format(" + {:.2f} ms other", span.other_s() * 1e3 / n) : "";
  return fmt::format("{:.2f} ms compute + {:.2f} ms wait (fetch {:.2f}, prep {:.2f}, hand-off {:.2f}){}",
                     span.compute_s * 1e3 / n, ms(span.wait.total_ns()), ms(span.wait.fetch_ns), ms(span.wait.prep_ns),
                     ms(span.wait.handoff_ns), other);
}

Json to_json(const feed::Span& span) {
  const double n = static_cast<double>(std::max<std::uint64_t>(1, span.steps));
  const auto stage = [&](std::int64_t ns) {
    return Json{{"share", span.share(ns)}, {"ms_per_step", static_cast<double>(ns) * 1e-6 / n}};
  };
  return {{"steps", span.steps},
          {"samples", span.samples},
          {"encoded_bytes", span.encoded_bytes},
          {"decoded_bytes", span.decoded_bytes},
          {"running_s", span.running_s},
          {"compute_s", span.compute_s},
          {"samples_per_s", span.samples_per_s()},
          {"encoded_mb_per_s", span.encoded_bytes_per_s() / 1e6},
          {"decoded_mb_per_s", span.decoded_bytes_per_s() / 1e6},
          {"other", {{"share", span.other_share()}, {"ms_per_step", span.other_s() * 1e3 / n}}},
          {"wait",
           {{"share", span.share(span.wait.total_ns())},
            {"ms_per_step", static_cast<double>(span.wait.total_ns()) * 1e-6 / n},
            {"fetch", stage(span.wait.fetch_ns)},
            {"prep", stage(span.wait.prep_ns)},
            {"handoff", stage(span.wait.handoff_ns)}}},
          {"store",
           {{"requests", span.store.requests},
            {"retries", span.store.retries},
            {"doubled", span.store.doubled},
            {"store_bytes", span.store.store_bytes},
            {"cache_hits", span.store.cache_hits},
            {"cache_misses", span.store.cache_misses},
            {"cache_bytes", span.store.cache_bytes}}}};
}

// The share of reads that the disk cache answered; "-" where there is no cache.
std::string hit_rate(const storage::StoreFigures& store) {
  const std::uint64_t reads = store.cache_hits + store.cache_misses;
  return reads == 0 ? "-" : percent(static_cast<double>(store.cache_hits) / static_cast<double>(reads));
}

std::string store_line(const storage::StoreFigures& store) {
  std::string line = fmt::format("{} requests, {} received, {} retries", format_count(store.requests),
                                 format_bytes(store.store_bytes), format_count(store.retries));
  if (store.doubled > 0) line += fmt::format(", {} doubled (slow, sent twice)", format_count(store.doubled));
  if (store.cache_hits + store.cache_misses > 0) {
    line += fmt::format("; the cache answered {} of the reads, {}", hit_rate(store), format_bytes(store.cache_bytes));
  }
  return line;
}

std::map<std::string, std::uint64_t> by_stage(const std::vector<loader::SampleError>& errors) {
  std::map<std::string, std::uint64_t> counts;
  for (const loader::SampleError& error : errors) ++counts[error.stage];
  return counts;
}

std::string epoch_table(const LoadReport& report) {
  const bool emulated = report.step_ms > 0;
  std::vector<std::vector<std::string>> rows = {{"epoch", "steps", "samples/s", "read MB/s"}};
  if (emulated) rows[0].emplace_back("AU");
  const bool has_store = report.fed.total.store.is_any();
  for (const char* title : {"fetch", "prep", "hand-off"}) rows[0].emplace_back(title);
  // Of a store, what it was asked for; of files, whether the page cache had them.
  if (has_store) {
    for (const char* title : {"cache hits", "requests", "received", "retries", "doubled"}) rows[0].emplace_back(title);
  } else {
    rows[0].emplace_back("cache");
  }
  for (const feed::Span& span : report.fed.epochs) {
    std::vector<std::string> cells = {std::to_string(span.epoch), format_count(span.steps),
                                      format_rate(span.samples_per_s()), megabytes(span.encoded_bytes_per_s())};
    if (emulated) cells.push_back(percent(span.au()));
    for (const std::int64_t ns : {span.wait.fetch_ns, span.wait.prep_ns, span.wait.handoff_ns}) {
      cells.push_back(percent(span.share(ns)));
    }
    if (has_store) {
      cells.push_back(hit_rate(span.store));
      cells.push_back(format_count(span.store.requests));
      cells.push_back(format_bytes(span.store.store_bytes));
      cells.push_back(format_count(span.store.retries));
      cells.push_back(format_count(span.store.doubled));
    } else {
      cells.push_back(cache_of(report, span.epoch));
    }
    rows.push_back(std::move(cells));
  }
  return table(rows, "  ");
}

}  // namespace

std::vector<Part> time_parts(const feed::Span& span) {
  std::vector<Part> parts = {{"compute", span.au(), Paint::green, "█", '#'},
                             {"fetch", span.share(span.wait.fetch_ns), Paint::yellow, "░", '.'},
                             {"prep", span.share(span.wait.prep_ns), Paint::red, "▒", '='},
                             {"hand-off", span.share(span.wait.handoff_ns), Paint::magenta, "▓", '-'}};
  if (span.other_share() >= kOtherShown) parts.push_back({"other", span.other_share(), Paint::dim, "·", ' '});
  return parts;
}

feed::FedRun fed_run(const LoadReport& report) {
  return {.fed = report.fed,
          .options = report.options,
          .cores = report.cores,
          .total_bytes = report.total_bytes,
          .is_warm = report.cache == "warm",
          .decodes_jpeg = report.decodes_jpeg,
          .file_per_sample = report.file_per_sample};
}

namespace {

double seconds_of(const std::vector<transform::Pass>& passes) {
  double sum = 0;
  for (const transform::Pass& one : passes) sum += static_cast<double>(one.ns) * 1e-9;
  return sum;
}

std::string passes_table(const std::vector<transform::Pass>& passes) {
  const double sum = seconds_of(passes);
  const bool has_groups = std::any_of(passes.begin(), passes.end(), [](const transform::Pass& one) {
    return !one.output.empty() && one.output != "data";
  });
  std::vector<std::vector<std::string>> rows = {{"pass", "works on", "scratch", "us per image", "share"}};
  for (const transform::Pass& one : passes) {
    std::string words;
    for (const std::string& operation : one.operations) words += (words.empty() ? "" : " + ") + operation;
    if (has_groups && !one.output.empty()) words = one.output + ": " + words;
    const double us = static_cast<double>(one.ns) * 1e-3;
    rows.push_back({words, one.is_whole ? "image" : "rows",
                    one.scratch_bytes > 0 ? format_bytes(one.scratch_bytes) : "",
                    one.images > 0 ? fmt::format("{:.1f}", us / static_cast<double>(one.images)) : "",
                    sum > 0 ? percent(us * 1e-6 / sum) : ""});
  }
  return table(rows, "  ");
}

Json passes_json(const std::vector<transform::Pass>& passes) {
  const double sum = seconds_of(passes);
  Json all = Json::array();
  for (const transform::Pass& one : passes) {
    const double s = static_cast<double>(one.ns) * 1e-9;
    all.push_back({{"output", one.output.empty() ? Json(nullptr) : Json(one.output)},
                   {"operations", one.operations},
                   {"fused", one.operations.size() > 1},
                   {"whole_image", one.is_whole},
                   {"scratch_bytes", one.scratch_bytes > 0 ? Json(one.scratch_bytes) : Json(nullptr)},
                   {"images", one.images},
                   {"us", one.images > 0 ? Json(s * 1e6 / static_cast<double>(one.images)) : Json(nullptr)},
                   {"share", sum > 0 ? Json(s / sum) : Json(nullptr)}});
  }
  return all;
}

}  // namespace

std::string to_text(const LoadReport& report, const Terminal& terminal) {
  const feed::Span& total = report.fed.total;
  const loader::Stats& stats = report.fed.stats;
  std::string out = fmt::format("{}: {} samples{}, {} ({})\n", printable(report.address), format_count(report.size),
                                report.classes ? fmt::format(" in {} classes", format_count(report.classes)) : "",
                                format_bytes(report.total_bytes), report.kind);
  out += fmt::format("batch {}, {} worker{}, {}, page cache {}\n", report.output, stats.num_workers,
                     stats.num_workers == 1 ? "" : "s", storage::name(report.options.storage), report.cache);
  if (report.workload) {
    out += fmt::format("emulated accelerator {}: a step of {:.2f} ms\n", report.workload->name, report.step_ms);
  } else if (report.step_ms > 0) {
    out += fmt::format("emulated accelerator: a step of {:.2f} ms\n", report.step_ms);
  }
  out += "\n";
  if (report.nothing_left) {
    if (report.state_file.empty()) {
      row(out, terminal, "batches", "an epoch has none: nothing to do");  // a note says why
    } else {
      row(out, terminal, "state",
          fmt::format("`{}` says that every epoch was handed out: nothing to do", printable(report.state_file)));
    }
    return out;
  }
  if (report.fed.interrupted) row(out, terminal, "interrupted", "this is what was measured until then");
  if (total.steps == 0) {
    row(out, terminal, "steps", "none was finished");
  } else {
    if (report.fed.epochs.size() > 1) out += epoch_table(report) + "\n";
    row(out, terminal, "speed",
        fmt::format("{} samples/s   {} MB/s read   {} MB/s decoded", format_rate(total.samples_per_s()),
                    megabytes(total.encoded_bytes_per_s()), megabytes(total.decoded_bytes_per_s())));
    row(out, terminal, "steps",
        fmt::format("{} in {}{}", format_count(report.fed.steps), seconds(report.fed.wall_s),
                    report.fed.first_step_excluded ? " (figures leave out the first step)" : ""));
    if (report.step_ms > 0) {
      std::string au = percent(total.au());
      if (report.workload) {
        const bool met = total.au() >= report.workload->au_min;
        au += fmt::format(" of {:.0f} % that MLPerf Storage asks: {}", 100 * report.workload->au_min,
                          met ? terminal.paint(Paint::green, "met") : terminal.paint(Paint::red, "not met"));
      }
      row(out, terminal, "AU", au);
    }
    const std::vector<Part> parts = time_parts(total);
    row(out, terminal, "time", stacked_bar(terminal, parts, std::clamp(terminal.width - 17, 20, 60)));
    out += fmt::format("  {}\n", legend(terminal, parts));
    long_row(out, terminal, "per step", per_step(total));
    long_row(out, terminal, "verdict", verdict_line(total));
    row(out, terminal, "ready queue",
        fmt::format("mean {:.2f} batches, least {}, empty {} of the time", stats.ready.mean, stats.ready.least,
                    percent(stats.ready.empty_share)));
  }
  if (stats.store.is_any()) long_row(out, terminal, "store", store_line(stats.store));
  row(out, terminal, "cpu",
      fmt::format("{} of CPU time, {:.2f} of {:.3g} cores", seconds(report.fed.cpu_s),
                  report.fed.wall_s > 0 ? report.fed.cpu_s / report.fed.wall_s : 0, report.cores));
  row(out, terminal, "memory",
      fmt::format("peak {} of {} allowed; the process {}", format_bytes(stats.memory_peak),
                  format_bytes(stats.memory_limit), format_bytes(report.fed.process_peak_bytes)));
  if (report.fed.steps > 0)
    row(out, terminal, "first batch", fmt::format("after {}", seconds(report.fed.first_batch_s)));
  if (report.errors.empty()) {
    row(out, terminal, "errors", "none");
  } else {
    std::string kinds;
    // Stage "list" is a part of the data set that could not be listed.
    const bool has_losses = std::any_of(report.errors.begin(), report.errors.end(),
                                        [](const loader::SampleError& error) { return !error.is_sample(); });
    const std::string_view what =
        report.errors.size() == 1 ? (has_losses ? "part" : "sample") : (has_losses ? "samples or parts" : "samples");
    for (const auto& [stage, count] : by_stage(report.errors)) {
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", stage, format_count(count));
    }
    row(out, terminal, "errors", fmt::format("{} bad {}: {}", format_count(report.errors.size()), what, kinds));
    constexpr std::size_t kShown = 5;
    for (std::size_t i = 0; i < std::min(kShown, report.errors.size()); ++i) {
      row(out, terminal, "",
          fmt::format("{} ({})", printable(in_flags(report.errors[i].message(), load_verb())),
                      report.errors[i].action));
    }
    if (report.errors.size() > kShown && report.errors_file.empty()) {
      row(out, terminal, "",
          fmt::format("and {} more: --save-errors FILE", format_count(report.errors.size() - kShown)));
    }
  }
  if (!report.errors_file.empty())
    row(out, terminal, "saved", fmt::format("errors to `{}`", printable(report.errors_file)));
  if (!report.state_file.empty())
    row(out, terminal, "saved", fmt::format("where it stopped to `{}`", printable(report.state_file)));
  for (const std::string& note : report.notes) long_row(out, terminal, "note", printable(note));
  if (total.steps > 0) long_row(out, terminal, "try", in_flags(feed::next_step(fed_run(report)), load_verb()));
  if (report.explain) {
    out += "\n";
    out += report.passes.empty() ? fmt::format("  {}\n", report.plan) : passes_table(report.passes);
  }
  return out;
}

Json to_json(const std::vector<loader::SampleError>& errors) {
  Json list = Json::array();
  for (const loader::SampleError& error : errors) {
    Json entry = {{"name", error.name},
                  {"index", error.index},
                  {"id", error.id},
                  {"epoch", error.epoch},
                  {"position", error.position},
                  {"stage", error.stage},
                  {"cause", in_flags(error.cause, load_verb())},
                  {"action", error.action},
                  {"message", in_flags(error.message(), load_verb())}};
    if (!error.is_sample()) {
      for (const char* const word : {"index", "id", "epoch", "position"}) entry[word] = nullptr;
    }
    entry["offset"] = error.offset >= 0 ? Json(error.offset) : Json(nullptr);
    list.push_back(std::move(entry));
  }
  return list;
}

Json shuffle_json(const dataset::Shuffle& shuffle) {
  if (!is_switch(shuffle)) return text(shuffle);
  return shuffle.how == dataset::Shuffle::How::full;
}

Json to_json(const LoadReport& report) {
  const feed::Span& total = report.fed.total;
  const loader::Stats& stats = report.fed.stats;
  const meter::Verdict verdict = verdict_of(total);
  Json json = json_head("load");
  json["dataset"] = {{"address", report.address},
                     {"kind", report.kind},
                     {"samples", report.size},
                     {"classes", report.classes},
                     {"total_bytes", report.total_bytes}};
  json["options"] = {
      {"batch_size", report.options.batch_size},
      {"shuffle", shuffle_json(report.options.shuffle)},
      {"seed", report.options.seed},
      {"transform", report.transform},
      {"storage", storage::name(report.options.storage)},
      {"decode", loader::name(report.options.decode)},
      {"exif_orientation", report.options.exif_orientation},
      {"on_error", loader::name(report.options.on_error)},
      {"num_workers", report.options.num_workers == loader::kAuto ? Json("auto") : Json(report.options.num_workers)},
      {"prefetch_factor", report.options.prefetch_factor},
      {"memory_limit", report.options.memory_limit},
      {"rank", report.options.rank},
      {"world_size", report.options.world_size},
      {"step_ms", report.step_ms},
      {"workload", report.workload ? Json(report.workload->name) : Json(nullptr)}};
  json["output"] = report.output;
  json["cache"] = report.cache;
  json["interrupted"] = report.fed.interrupted;
  json["first_step_excluded"] = report.fed.first_step_excluded;
  json["steps"] = report.fed.steps;
  json["samples"] = report.fed.samples;
  json["wall_s"] = report.fed.wall_s;
  json["total"] = to_json(total);
  if (report.step_ms > 0) {
    json["au"] = total.au();
    if (report.workload) {
      json["au_min"] = report.workload->au_min;
      json["au_met"] = total.au() >= report.workload->au_min;
    }
  }
  json["epochs"] = Json::array();
  for (const feed::Span& span : report.fed.epochs) {
    Json entry = {{"epoch", span.epoch}, {"cache", cache_of(report, span.epoch)}};
    entry.update(to_json(span));
    if (report.step_ms > 0) entry["au"] = span.au();
    json["epochs"].push_back(std::move(entry));
  }
  json["verdict"] = {{"bound", total.steps ? Json(meter::name(verdict.bound)) : Json(nullptr)},
                     {"general", total.steps ? Json(meter::general_name(verdict.bound)) : Json(nullptr)},
                     {"share", verdict.share},
                     {"severity", verdict.severity},
                     {"gain", verdict.gain}};
  json["ready_queue"] = {{"mean", stats.ready.mean},
                         {"least", stats.ready.least},
                         {"most", stats.ready.most},
                         {"empty_share", stats.ready.empty_share}};
  json["workers"] = stats.num_workers;
  json["io_threads"] = stats.io_threads;
  json["cpu"] = {{"seconds", report.fed.cpu_s},
                 {"cores_used", report.fed.wall_s > 0 ? report.fed.cpu_s / report.fed.wall_s : 0},
                 {"cores", report.cores}};
  json["memory"] = {{"peak_bytes", stats.memory_peak},
                    {"limit_bytes", stats.memory_limit},
                    {"process_peak_bytes", report.fed.process_peak_bytes}};
  json["first_batch_s"] = report.fed.first_batch_s;
  json["drop_s"] = report.drop_s ? Json(*report.drop_s) : Json(nullptr);
  Json kinds = Json::object();
  for (const auto& [stage, count] : by_stage(report.errors)) kinds[stage] = count;
  constexpr std::size_t kListed = 100;
  json["errors"] = {
      {"count", report.errors.size()},
      {"by_stage", kinds},
      {"first", to_json(std::vector<loader::SampleError>(
                    report.errors.begin(),
                    report.errors.begin() + static_cast<std::ptrdiff_t>(std::min(kListed, report.errors.size()))))}};
  const auto file = [](const std::string& path) { return path.empty() ? Json(nullptr) : Json(path); };
  json["state_file"] = file(report.state_file);
  json["errors_file"] = file(report.errors_file);
  json["nothing_left"] = report.nothing_left;
  json["notes"] = report.notes;
  json["next_step"] = total.steps > 0 ? Json(in_flags(feed::next_step(fed_run(report)), load_verb())) : Json(nullptr);
  if (report.explain) json["plan"] = {{"text", report.plan}, {"passes", passes_json(report.passes)}};
  return json;
}

}  // namespace stoker::cli
