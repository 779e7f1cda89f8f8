#include "stoker/plan/verify.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"
#include "stoker/plan/ledger.h"

namespace stoker::plan {
namespace {

constexpr double kLongestFill = 120;    // seconds
constexpr double kMostPackBytes = 2e9;  // a pack for trying is not made of more than that
constexpr double kNoisy = 0.15;         // runs of one setting that differ by more cannot show a smaller gain

bool is_taken(const std::vector<std::string>& words, const std::string& flag) {
  return std::find(words.begin(), words.end(), flag) != words.end();
}

bool is_ram(const WhatIf& what) {
  return what.kind == Change::knob && what.knob == "storage" && what.value == name(Access::ram);
}

std::string why_not(const WhatIf& what, const PlanRun& input) {
  if (!what.feasible) return what.why;
  if (what.kind == Change::pack_raw) return "it holds what the transforms make of a sample: pack that, and measure it";
  if (what.needs_pack && input.setting.dataset_bytes > kMostPackBytes)
    return "the data is too large to be packed for a try";
  if (is_ram(what) && input.stages && input.setting.dataset_samples > kLongestFill * predict(*input.stages).per_s) {
    return "filling the memory takes too long for a try";
  }
  if (what.needs_pack || !what.flags.empty() || what.kind == Change::faster_decode) return "";
  return "it cannot be run on one machine by flags alone";
}

double mean_rate(const std::vector<tune::Row>& rows) {
  double sum = 0;
  for (const tune::Row& row : rows) sum += *row.images_per_s;
  return sum / static_cast<double>(rows.size());
}

// By how much the runs of one setting differ: 0.3 means that the fastest is 1.3 times as fast as the slowest.
double difference_of(const std::vector<tune::Row>& rows) {
  const auto [least, most] = std::minmax_element(rows.begin(), rows.end(), [](const tune::Row& a, const tune::Row& b) {
    return *a.images_per_s < *b.images_per_s;
  });
  return *most->images_per_s / *least->images_per_s - 1;
}

// `base` are the runs of the present settings, made in the same rounds.
void judge(VerifiedWhatIf& one, const std::vector<tune::Row>& rows, const std::vector<tune::Row>& base) {
  for (const tune::Row& row : rows) {
    const double low = row.ci_low.value_or(*row.images_per_s), high = row.ci_high.value_or(*row.images_per_s);
    one.low = one.low ? std::min(*one.low, low) : low;
    one.high = one.high ? std::max(*one.high, high) : high;
  }
  one.measured_per_s = mean_rate(rows);
  one.gain = *one.measured_per_s / mean_rate(base);
  const double noise = std::max(difference_of(rows), difference_of(base));
  if (noise > kNoisy && std::abs(std::log(*one.gain)) < std::log(1 + noise)) one.noise = noise;
  const double predicted = mean_rate(base) * one.what.gain;  // in these minutes
  const double beyond = predicted > *one.high ? predicted - *one.high : predicted < *one.low ? *one.low - predicted : 0;
  one.error = beyond / *one.measured_per_s;
}

}  // namespace

std::vector<std::string> load_words(const PlanRun& run, const std::string& address,
                                    const std::vector<std::string>& more, std::uint64_t bench_steps) {
  std::vector<std::string> words = {"load", address, "--quiet", "--json"};
  const auto add = [&](const std::string& flag, const std::string& value) {
    if (is_taken(more, flag) || is_taken(words, flag)) return;
    words.push_back(flag);
    if (!value.empty()) words.push_back(value);
  };
  for (const auto& [knob, value] : run.current) {
    std::string flag = "--" + knob;
    std::replace(flag.begin(), flag.end(), '_', '-');
    if (knob == "shuffle") {
      if (value == "true") add("--shuffle", "");
      continue;
    }
    add(flag, value);
  }
  for (std::size_t i = 0; i + 1 < run.flags.size(); i += 2) add(run.flags[i], run.flags[i + 1]);
  if (run.shuffle && !run.current.contains("shuffle")) words.emplace_back("--shuffle");
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"--bench-steps", std::to_string(bench_steps)});
  add("--warmup-steps", "8");
  return words;
}

void measure_ledger(PlanRun& input, const VerifyOptions& options) {
  if (options.begun) options.begun("the ledger");
  const Tried tried = options.run(load_words(input, input.address, {}, options.bench_steps));
  if (!tried.row.ok()) {
    throw Error(ErrorKind::usage, fmt::format("cannot measure `{}`: {}", input.address, tried.row.error),
                "run the same settings with `stoker load` to see more");
  }
  read_ledger(Json::parse_or_null(tried.output), input.address, input);
}

void verify(PlannedRun& planned, const VerifyOptions& options) {
  std::vector<std::vector<tune::Row>> rows(planned.what_ifs.size());
  std::map<std::size_t, std::string> packs;  // of what-ifs: addresses
  std::vector<tune::Row> base;
  for (std::uint64_t round = 0; round < options.rounds; ++round) {
    if (options.begun) options.begun("the present settings");
    const Tried present = options.run(load_words(planned.input, planned.input.address, {}, options.bench_steps));
    if (present.row.ok()) base.push_back(present.row);
    for (std::size_t i = 0; i < planned.what_ifs.size(); ++i) {
      VerifiedWhatIf& one = planned.what_ifs[i];
      if (round == 0) one.not_run = why_not(one.what, planned.input);
      if (!one.not_run.empty()) continue;
      if (options.interrupted && options.interrupted()) return;
      if (options.begun) options.begun(one.what.name);
      std::string address = planned.input.address;
      std::vector<std::string> flags = one.what.flags;
      if (is_ram(one.what)) {  // the first epoch fills the memory
        const double epoch = planned.input.setting.dataset_samples / planned.input.stages->batch_size;
        flags.insert(flags.end(), {"--warmup-steps", fmt::format("{:.0f}", std::ceil(epoch) + 2)});
      }
      if (one.what.kind == Change::faster_decode) flags = {"--decode", "fast"};
      if (one.what.needs_pack) {
        if (!packs.contains(i)) {
          const TriedPack made = options.pack(address, one.what.kind);
          packs[i] = made.address;
          if (made.address.empty()) one.not_run = fmt::format("it cannot be packed so: {}", made.error);
        }
        if (!one.not_run.empty()) continue;
        address = packs[i];
      }
      const Tried tried = options.run(load_words(planned.input, address, flags, options.bench_steps));
      if (tried.row.ok()) {
        rows[i].push_back(tried.row);
      } else {
        one.not_run = fmt::format("it failed: {}", tried.row.error);
      }
    }
  }
  if (base.empty()) {
    planned.notes.emplace_back("the present settings could not be run again, so nothing was verified");
    return;
  }
  planned.verified_per_s = mean_rate(base);
  double noise = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) continue;
    judge(planned.what_ifs[i], rows[i], base);
    noise = std::max(noise, planned.what_ifs[i].noise.value_or(0));
  }
  if (noise <= 0) return;
  planned.notes.push_back(
      format_text("the noise is too large to tell some gains: runs of the same settings differed by {:.0f} %; their "
                  "gain stays a prediction. Verify on a quieter machine, or with more {}",
                  100 * noise, option("bench_steps")));
}

}  // namespace stoker::plan
