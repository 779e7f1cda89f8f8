// The renderings of an Answer: lines for people, JSON, and the table of steps.
#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/measure/answer.h"

namespace stoker::measure {
namespace {

double per_step_ms(std::int64_t ns, std::uint64_t steps) {
  return static_cast<double>(ns) * 1e-6 / static_cast<double>(std::max<std::uint64_t>(1, steps));
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
Json known(std::int64_t value) {
  return value < 0 ? Json(nullptr) : Json(value);
}

Json to_json(const Steps& steps) {
  const double running = static_cast<double>(std::max<std::int64_t>(1, steps.running_ns()));
  const auto part = [&](std::int64_t ns) {
    return Json{{"share", static_cast<double>(ns) / running}, {"ms_per_step", per_step_ms(ns, steps.steps)}};
  };
  const meter::WaitSplit split = steps.wait.split();
  Json handoff = part(split.handoff_ns);
  handoff["start"] = part(steps.wait.start_ns);
  handoff["task"] = part(steps.wait.task_ns);
  handoff["collate"] = part(steps.wait.collate_ns);
  handoff["deliver"] = part(steps.wait.deliver_ns);
  handoff["unknown"] = part(steps.wait.unknown_ns);
  Json compute = part(steps.compute_ns);
  compute["cpu_ms_per_step"] =
      steps.compute_cpu_steps > 0 ? Json(per_step_ms(steps.compute_cpu_ns, steps.compute_cpu_steps)) : Json(nullptr);
  Json wait = part(split.total_ns());
  wait["fetch"] = part(split.fetch_ns);
  wait["prep"] = part(split.prep_ns);
  wait["handoff"] = handoff;
  const StoreUse& store = steps.store;
  return {{"steps", steps.steps},
          {"samples", steps.samples},
          {"running_s", static_cast<double>(steps.running_ns()) * 1e-9},
          {"step_ms", per_step_ms(steps.running_ns(), steps.steps)},
          {"compute", compute},
          {"h2d", steps.h2d_steps > 0 ? part(steps.h2d_ns) : Json(nullptr)},
          {"wait", wait},
          {"store", store.is_any() ? Json{{"requests", store.requests},
                                          {"retries", store.retries},
                                          {"doubled", store.doubled},
                                          {"store_bytes", store.bytes},
                                          {"cache_hits", store.cache_hits},
                                          {"cache_misses", store.cache_misses}}
                                   : Json(nullptr)}};
}

Json to_json(const meter::Verdict& verdict, const std::optional<double>& half) {
  return {{"bound", name(verdict.bound)},
          {"general", meter::general_name(verdict.bound)},
          {"share", verdict.share},
          {"ci_low", half ? Json(std::max(0.0, verdict.share - *half)) : Json(nullptr)},
          {"ci_high", half ? Json(std::min(1.0, verdict.share + *half)) : Json(nullptr)},
          {"severity", verdict.severity},
          {"gain", verdict.gain}};
}

Json to_json(const LoaderAnswer& loader) {
  Json json = {{"rank", loader.rank},
               {"world_size", loader.world_size},
               {"pid", loader.pid},
               {"role", loader.evaluation ? "val" : "train"}};
  const LoaderFacts& facts = loader.facts;
  json["name"] = or_null(facts.name);
  json["file"] = or_null(facts.file);
  json["line"] = facts.file.empty() ? Json(nullptr) : Json(facts.line);
  json["settings"] = {{"type", facts.type},
                      {"dataset", facts.dataset},
                      {"iterable", facts.iterable},
                      {"samples", known(facts.samples)},
                      {"batch_size", known(facts.batch_size)},
                      {"num_workers", facts.num_workers},
                      {"prefetch_factor", facts.num_workers > 0 ? Json(facts.prefetch_factor) : Json(nullptr)},
                      {"persistent_workers", facts.persistent_workers},
                      {"pin_memory", facts.pin_memory},
                      {"in_order", facts.in_order},
                      {"start_method", or_null(facts.start_method)},
                      {"collate", facts.collate},
                      {"replaceable", facts.replaceable}};
  json["batch"] = nullptr;
  if (loader.batch) {
    json["batch"] = {{"bytes", loader.batch->bytes},        {"tensors", loader.batch->tensors},
                     {"objects", loader.batch->objects},    {"channels_last", loader.batch->channels_last},
                     {"torch", loader.batch->torch},        {"float32_matmul_precision", loader.batch->precision},
                     {"tf32", or_null(loader.batch->tf32)}, {"device", or_null(loader.batch->device)}};
  }
  const Arithmetic& arithmetic = loader.arithmetic;
  json["autocast"] = {
      {"entered", arithmetic.autocast_dtype.empty() && !arithmetic.watched ? Json(nullptr)
                                                                           : Json(!arithmetic.autocast_dtype.empty())},
      {"dtype", or_null(arithmetic.autocast_dtype)},
      {"device", or_null(arithmetic.autocast_device)}};
  json["channels_last_model"] =
      arithmetic.channels_last || arithmetic.watched ? Json(arithmetic.channels_last) : Json(nullptr);
  json["verdict"] = loader.verdict ? to_json(*loader.verdict, loader.half_width) : Json(nullptr);
  json["all_steps"] = loader.all_steps;
  json["first_batch_s"] = static_cast<double>(loader.first_batch_ns) * 1e-9;
  json["total"] = to_json(loader.steps);
  json["samples_per_s"] = loader.samples_per_s;
  json["corrected_samples_per_s"] = loader.corrected_samples_per_s;
  json["short_window"] = loader.short_window;
  json["queue_change"] = loader.queue_change;
  json["ready_mean"] = loader.ready_mean;
  json["clock"] = loader.device_timed ? "device" : "host";
  json["steady_state"] = nullptr;
  if (loader.steady)
    json["steady_state"] = {{"step_ms", loader.steady->step_ns * 1e-6},
                            {"verdict", to_json(loader.steady->verdict, std::nullopt)}};
  const double made = static_cast<double>(std::max<std::uint64_t>(1, loader.made.batches)) * 1e6;
  json["workers"] = {{"batches", loader.made.batches},
                     {"samples", loader.made.samples},
                     {"fetch_ms_per_batch", static_cast<double>(loader.made.fetch_ns) / made},
                     {"prep_ms_per_batch", static_cast<double>(loader.made.prep_ns) / made},
                     {"delay_ms_per_batch", static_cast<double>(loader.made.delay_ns) / made},
                     {"collate_ms_per_batch", static_cast<double>(loader.made.collate_ns) / made},
                     {"collate_delay_ms_per_batch", static_cast<double>(loader.made.collate_delay_ns) / made},
                     {"spinners_ms_per_batch", static_cast<double>(loader.made.spinners_ns) / made},
                     {"sent_bytes_per_batch", loader.sent_bytes}};
  json["epochs"] = Json::array();
  for (const EpochAnswer& epoch : loader.epochs) {
    Json entry = {{"epoch", epoch.epoch}};
    entry.update(to_json(epoch.steps));
    entry["verdict"] = to_json(epoch.verdict, std::nullopt);
    json["epochs"].push_back(std::move(entry));
  }
  json["slow_samples"] = Json::array();
  for (const SlowSample& slow : loader.slow) {
    if (json["slow_samples"].size() == 20) break;
    json["slow_samples"].push_back({{"sample", slow.sample},
                                    {"ms", static_cast<double>(slow.took_ns) * 1e-6},
                                    {"cpu_ms", static_cast<double>(slow.cpu_ns) * 1e-6}});
  }
  return json;
}

}  // namespace

std::string headline(const Answer& answer) {
  if (answer.loaders.empty() && answer.stages) return answer.stages->headline;
  if (answer.loaders.empty() && !answer.failure.empty())
    return fmt::format("{}, before a loader was seen", answer.failure);
  if (answer.loaders.empty()) return "no loader was seen";
  if (!answer.verdict) return "no verdict: too few steps";
  const meter::Verdict& verdict = *answer.verdict;
  const std::string half = answer.half_width ? fmt::format(" (+-{:.1f})", 100 * *answer.half_width) : "";
  const std::string_view bound = name(verdict.bound), general = meter::general_name(verdict.bound);
  if (verdict.bound == meter::Bound::compute)
    return fmt::format("compute_bound {:.1f} %{}: the loader keeps up", 100 * verdict.share, half);
  const std::string gain = verdict.gain >= 20 ? "more than 20x" : fmt::format("{:.2f}x", verdict.gain);
  return fmt::format("{}{} {:.1f} %{}, {}: {} faster if {} were free", bound,
                     bound == general ? "" : fmt::format(" ({})", general), 100 * verdict.share, half, verdict.severity,
                     gain, stage_name(verdict.bound));
}

std::string step_line(const Steps& steps) {
  const meter::WaitSplit split = steps.wait.split();
  const auto each = [&](std::int64_t ns) { return per_step_ms(ns, steps.steps); };
  return fmt::format("{:.2f} ms = compute {:.2f}{} + wait {:.2f} (fetch {:.2f}, prep {:.2f}, hand-off {:.2f})",
                     each(steps.running_ns()), each(steps.compute_ns),
                     steps.h2d_steps > 0 ? fmt::format(" + h2d {:.2f}", each(steps.h2d_ns)) : "",
                     each(split.total_ns()), each(split.fetch_ns), each(split.prep_ns), each(split.handoff_ns));
}

std::string arithmetic_line(const LoaderAnswer& loader) {
  if (!loader.batch) return "";
  const BatchFacts& batch = *loader.batch;
  const Arithmetic& arithmetic = loader.arithmetic;
  std::string text = fmt::format("{}: autocast {}", batch.device.empty() ? "no device" : batch.device,
                                 !arithmetic.autocast_dtype.empty()
                                     ? fmt::format("{} ({})", arithmetic.autocast_dtype, arithmetic.autocast_device)
                                     : std::string(arithmetic.watched ? "off" : "unknown"));
  if (!batch.device.empty()) text += fmt::format(", TF32 {}", !batch.tf32 ? "unknown" : *batch.tf32 ? "on" : "off");
  if (!batch.precision.empty()) text += fmt::format(", float32_matmul_precision {}", batch.precision);
  return text + fmt::format(", batches {}channels_last{}", batch.channels_last ? "" : "not ",
                            arithmetic.channels_last ? ", model channels_last" : "");
}

std::string settings_line(const LoaderAnswer& loader) {
  const LoaderFacts& facts = loader.facts;
  std::string text = facts.name.empty() ? facts.type : facts.name;
  if (!facts.file.empty()) {
    const std::size_t slash = facts.file.rfind('/');
    text +=
        fmt::format(" at {}:{}", slash == std::string::npos ? facts.file : facts.file.substr(slash + 1), facts.line);
  }
  text += fmt::format(": num_workers={}", facts.num_workers);
  if (facts.batch_size >= 0) text += fmt::format(", batch_size={}", facts.batch_size);
  if (facts.num_workers > 0) {
    text += fmt::format(", prefetch_factor={}", facts.prefetch_factor);
    if (!facts.start_method.empty()) text += ", " + facts.start_method;
    if (facts.persistent_workers) text += ", persistent_workers";
  }
  if (facts.pin_memory) text += ", pin_memory";
  return text;
}

std::vector<std::vector<std::string>> epoch_table(const LoaderAnswer& loader) {
  constexpr std::size_t kMostRows = 9, kFirst = 4, kLast = 4;
  const std::vector<EpochAnswer>& epochs = loader.epochs;
  if (epochs.size() < 2) return {};
  std::vector<std::vector<std::string>> rows = {{"epoch", "steps", "it/s", "samples/s", "time", "waiting", "verdict"}};
  const std::size_t middle = epochs.size() > kMostRows ? epochs.size() - kFirst - kLast : 0;  // in one row
  for (std::size_t first = 0, next = 0; first < epochs.size(); first = next) {
    next = middle > 0 && first == kFirst ? first + middle : first + 1;
    Steps steps;
    for (std::size_t i = first; i < next; ++i) steps.add(epochs[i].steps);
    if (steps.steps == 0 || steps.running_ns() <= 0) continue;
    const double seconds = static_cast<double>(steps.running_ns()) * 1e-9;
    const meter::WaitSplit split = steps.wait.split();
    const meter::Verdict verdict = meter::judge(steps.work_ns(), split);
    rows.push_back({next - first == 1 ? std::to_string(epochs[first].epoch)
                                      : fmt::format("{}-{}", epochs[first].epoch, epochs[next - 1].epoch),
                    format_count(steps.steps), fmt::format("{:.2f}", static_cast<double>(steps.steps) / seconds),
                    format_rate(static_cast<double>(steps.samples) / seconds),
                    format_duration(std::chrono::nanoseconds(steps.running_ns())),
                    fmt::format("{:.0f} %", 100 * static_cast<double>(split.total_ns()) * 1e-9 / seconds),
                    fmt::format("{} {:.0f} %", name(verdict.bound), 100 * verdict.share)});
  }
  return rows;
}

std::vector<std::string> store_lines(const LoaderAnswer& loader) {
  constexpr std::size_t kMostLines = 5, kAtEachEnd = 2;
  const std::vector<EpochAnswer>& epochs = loader.epochs;
  std::vector<std::string> lines;
  if (!loader.steps.store.is_any()) return lines;
  const std::size_t middle = epochs.size() > kMostLines ? epochs.size() - 2 * kAtEachEnd : 0;  // in one line
  for (std::size_t first = 0, next = 0; first < epochs.size(); first = next) {
    next = middle > 0 && first == kAtEachEnd ? first + middle : first + 1;
    StoreUse store;
    for (std::size_t i = first; i < next; ++i) store += epochs[i].steps.store;
    std::string line = next - first == 1 ? fmt::format("epoch {}", epochs[first].epoch)
                                         : fmt::format("epochs {} to {}", epochs[first].epoch, epochs[next - 1].epoch);
    line += fmt::format(": {} requests, {} received, {} retries", format_count(store.requests),
                        format_bytes(store.bytes), format_count(store.retries));
    if (store.doubled > 0) line += fmt::format(", {} doubled", format_count(store.doubled));
    if (const std::uint64_t reads = store.cache_hits + store.cache_misses; reads > 0) {
      line += fmt::format(", {} of {} reads from the cache", format_count(store.cache_hits), format_count(reads));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

Json to_json(const Answer& answer) {
  Json json;
  json["verdict"] = answer.verdict ? to_json(*answer.verdict, answer.half_width) : Json(nullptr);
  json["headline"] = headline(answer);
  json["total"] = to_json(answer.steps);
  json["slowest_rank"] = known(answer.slowest_rank);
  json["ranks"] = answer.ranks;
  json["main_loader"] = answer.main ? Json(*answer.main) : Json(nullptr);
  json["loaders"] = Json::array();
  for (const LoaderAnswer& loader : answer.loaders) json["loaders"].push_back(to_json(loader));
  json["stages"] = answer.stages ? to_json(*answer.stages) : Json(nullptr);
  json["why"] = answer.why;
  json["advice"] = answer.advice;
  json["notes"] = answer.notes;
  return json;
}

std::string steps_csv(const Job& job) {
  std::string out =
      "rank,loader,role,epoch,batch,samples,asked_s,step_ms,compute_ms,fetch_ms,prep_ms,handoff_ms,start_ms,task_ms,"
      "collate_ms,deliver_ms,unknown_ms,ready,h2d_ms\n";
  std::int64_t origin = 0;
  for (const auto& [key, run] : job.loaders()) {
    if (!run.steps.empty() && (origin == 0 || run.steps.front().asked_ns < origin)) origin = run.steps.front().asked_ns;
  }
  for (const auto& [key, run] : job.loaders()) {
    for (const Step& step : run.steps) {
      const meter::WaitSplit split = step.wait.split();
      const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-6; };
      out += fmt::format(
          "{},{},{},{},{},{},{:.6f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{},{}\n",
          run.rank, run.facts.name.empty() ? std::to_string(run.number) : run.facts.name,
          run.is_evaluation() ? "val" : "train", step.epoch, step.batch, step.samples,
          static_cast<double>(step.asked_ns - origin) * 1e-9, ms(step.compute_ns + step.wait.total_ns()),
          ms(step.compute_ns), ms(split.fetch_ns), ms(split.prep_ns), ms(split.handoff_ns), ms(step.wait.start_ns),
          ms(step.wait.task_ns), ms(step.wait.collate_ns), ms(step.wait.deliver_ns), ms(step.wait.unknown_ns),
          step.ready, step.device_h2d_ns ? fmt::format("{:.4f}", ms(*step.device_h2d_ns)) : "");
    }
  }
  return out;
}

}  // namespace stoker::measure
