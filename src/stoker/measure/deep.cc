#include "stoker/measure/deep.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"

namespace stoker::measure {
namespace {

constexpr double kAgree = 0.1;
constexpr double kCachedStill = 0.02;
constexpr std::uint64_t kFewSteps = 20;

std::string milliseconds(double seconds) {
  return fmt::format("{:.2f} ms", 1e3 * seconds);
}
std::int64_t ns(double seconds) {
  return std::llround(1e9 * seconds);
}

}  // namespace

std::string_view name(Doubtful doubtful) noexcept {
  switch (doubtful) {
    case Doubtful::neither:
      return "neither";
    case Doubtful::ledger:
      return "ledger";
    case Doubtful::difference:
      return "difference";
  }
  return "neither";
}

DeepAnswer compare(const DeepRuns& runs) {
  DeepAnswer answer;
  answer.verdict = meter::judge(ns(runs.ledger_compute_s), {.fetch_ns = ns(runs.ledger_fetch_s),
                                                            .prep_ns = ns(runs.ledger_prep_s),
                                                            .handoff_ns = ns(runs.ledger_handoff_s)});
  const double step = std::max(runs.real_s, 1e-9);
  const double compute = (runs.compute_s + runs.compute_again_s) / 2;
  answer.wait_s = std::max(0.0, runs.real_s - compute);
  answer.apart = std::abs(answer.wait_s - runs.ledger_wait_s()) / step;
  answer.hidden = runs.warm_s > 0 ? std::clamp((runs.warm_s - answer.wait_s) / runs.warm_s, 0.0, 1.0) : 0;

  const double drift = std::abs(runs.compute_again_s - runs.compute_s);
  if (answer.apart <= kAgree) {
    answer.why_doubtful = "";
  } else if (drift > kAgree * step) {
    answer.doubtful = Doubtful::difference;
    answer.why_doubtful =
        fmt::format("the step alone took {} before and {} after the other runs: the machine was not quiet",
                    milliseconds(runs.compute_s), milliseconds(runs.compute_again_s));
  } else if (compute > runs.real_s * (1 + kAgree)) {
    answer.doubtful = Doubtful::difference;
    answer.why_doubtful = fmt::format(
        "the step alone ({}) is slower than with its loader ({}): one batch over and over "
        "is no stand-in for real ones here",
        milliseconds(compute), milliseconds(runs.real_s));
  } else if (runs.ledger_compute_s > compute) {
    answer.doubtful = Doubtful::difference;
    answer.why_doubtful = fmt::format(
        "the step takes {} beside the loader and {} alone: they take cores or memory "
        "bandwidth from one another, so fewer workers may be faster",
        milliseconds(runs.ledger_compute_s), milliseconds(compute));
  } else {
    answer.doubtful = Doubtful::ledger;
    answer.why_doubtful = fmt::format(
        "the ledger sees {} of compute where the step alone takes {}: some of it goes on "
        "while the loop already waits, as on a device",
        milliseconds(runs.ledger_compute_s), milliseconds(compute));
  }

  answer.notes = runs.notes;
  if (runs.cold_left && *runs.cold_left > kCachedStill)
    answer.notes.push_back(
        fmt::format("{:.0f} % of the sampled pages stayed in the page cache: another process has the "
                    "files open, or the file system keeps them; cold is then partly warm",
                    100 * *runs.cold_left));
  if (!runs.cold_s && !runs.cold_why.empty()) answer.notes.push_back("no cold run: " + runs.cold_why);
  if (runs.steps < kFewSteps)
    answer.notes.push_back(
        format_text("only {} steps in each run: more say more ({}, more data)", runs.steps, option("steps")));
  return answer;
}

DeepRuns parse_deep(std::string_view text, const std::string& name) {
  const auto json = Json::parse_or_null(text);
  try {
    DeepRuns runs;
    runs.steps = json.at("steps").get<std::uint64_t>();
    runs.compute_s = json.at("compute_s").get<double>();
    runs.compute_again_s = json.at("compute_again_s").get<double>();
    runs.warm_s = json.at("warm_s").get<double>();
    if (!json.at("cold_s").is_null()) runs.cold_s = json.at("cold_s").get<double>();
    if (!json.at("cold_left").is_null()) runs.cold_left = json.at("cold_left").get<double>();
    runs.cold_why = json.at("cold_why").get<std::string>();
    runs.real_s = json.at("real_s").get<double>();
    const auto& ledger = json.at("ledger");
    runs.ledger_compute_s = ledger.at("compute_s").get<double>();
    runs.ledger_fetch_s = ledger.at("fetch_s").get<double>();
    runs.ledger_prep_s = ledger.at("prep_s").get<double>();
    runs.ledger_handoff_s = ledger.at("handoff_s").get<double>();
    for (const std::string& note : json.at("notes").get<std::vector<std::string>>()) runs.notes.emplace_back(note);
    return runs;
  } catch (const Error& error) {
    throw Error(ErrorKind::corrupt,
                fmt::format("cannot read what the difference runs of `{}` wrote: {}", name, error.what()),
                "is the package `stoker` of that Python of the same version?");
  }
}

Json to_json(const DeepRuns& runs, const DeepAnswer& answer, const SpellText& spell) {
  const auto step = [](double seconds) { return Json{{"ms_per_step", 1e3 * seconds}}; };
  Json json = {{"steps", runs.steps}};
  json["verdict"] = {{"bound", name(answer.verdict.bound)},
                     {"general", meter::general_name(answer.verdict.bound)},
                     {"share", answer.verdict.share},
                     {"severity", answer.verdict.severity},
                     {"gain", answer.verdict.gain}};
  json["compute_only"] = step(runs.compute_s);
  json["compute_only_again"] = step(runs.compute_again_s);
  json["loader_only"] = {{"warm", step(runs.warm_s)},
                         {"cold=data", runs.cold_s ? step(*runs.cold_s) : Json(nullptr)},
                         {"cached_after_drop", runs.cold_left ? Json(*runs.cold_left) : Json(nullptr)}};
  if (!runs.store.empty()) json["loader_only"] = {{"from", runs.store}, {"ms_per_step", 1e3 * runs.warm_s}};
  json["real"] = step(runs.real_s);
  json["real"]["ledger"] = {{"compute_ms", 1e3 * runs.ledger_compute_s},
                            {"fetch_ms", 1e3 * runs.ledger_fetch_s},
                            {"prep_ms", 1e3 * runs.ledger_prep_s},
                            {"handoff_ms", 1e3 * runs.ledger_handoff_s},
                            {"wait_ms", 1e3 * runs.ledger_wait_s()}};
  json["difference"] = {{"wait_ms", 1e3 * answer.wait_s},
                        {"apart", answer.apart},
                        {"agrees", answer.doubtful == Doubtful::neither},
                        {"doubtful", name(answer.doubtful)},
                        {"why", answer.why_doubtful},
                        {"loader_hidden", answer.hidden}};
  json["notes"] = spell_all(answer.notes, spell);
  return json;
}

}  // namespace stoker::measure
