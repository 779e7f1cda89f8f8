#include "stoker/plan/options.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/units.h"

namespace stoker::plan {
namespace {

constexpr double kModelError = 0.15, kRatioError = 0.25;  // of a predicted gain
constexpr double kWorth = 1.03;
constexpr double kMoreThan = 1.02;            // times the gain of a cheaper change, to be worth more
constexpr double kFull = 0.92, kTight = 0.8;  // of a limit

std::string size(double bytes) {
  return format_bytes(static_cast<std::uint64_t>(std::max(0.0, bytes)));
}

RateSpread around(double gain, double error) {
  return {gain * (1 - error), gain, gain * (1 + error), 0, true};
}

// The larger risk wins; its reason with it.
void raise(Option& option, Risk risk, const std::string& reason) {
  if (risk <= option.risk) return;
  option.risk = risk;
  option.reason = reason;
}

void weigh_memory(Option& option, const Situation& situation) {
  const auto against = [&](const char* what, std::optional<double> bytes, double limit) {
    if (!bytes || limit <= 0) return;
    const double share = *bytes / limit;
    const std::string text = fmt::format("{} {} of {}", what, size(*bytes), size(limit));
    if (share > 1) {
      raise(option, Risk::high, text + ": it will run out");
    } else if (share > kFull) {
      raise(option, Risk::high, text + ": no margin");
    } else if (share > kTight) {
      raise(option, Risk::medium, text + ": little margin");
    } else {
      raise(option, Risk::low, text);
    }
  };
  against("host memory", option.host_bytes, situation.limits.memory_bytes);
  against("device memory", option.device_bytes, situation.device_limit_bytes);
  if (option.risk == Risk::unknown) raise(option, Risk::medium, "its memory use was not measured: watch it");
}

void finish(Option& option, const Situation& situation) {
  if (!option.days && situation.rate.p50 > 0 && situation.job.images > 0) {
    option.days = days_of(situation.job, situation.rate.p50 * option.gain.p50);
  }
  if (option.gain.p50 < kWorth && option.worth) {
    option.worth = false;
    option.reason =
        option.evidence == Evidence::measured ? "it was no faster when it was measured" : "the model predicts no gain";
  }
}

// None where the memory of a worker is not known, and there are to be some.
std::optional<double> host_total(const Situation& situation, double workers, double more = 0) {
  HostUse use = situation.host;
  if (use.main_bytes <= 0 && use.worker_bytes <= 0) return std::nullopt;
  const double before = situation.stages ? situation.stages->workers : use.workers;
  if (use.worker_bytes <= 0 && workers > before) return std::nullopt;
  if (use.worker_bytes > 0) use.workers = workers;
  use.cache_bytes += more;
  return host_budget(use, situation.limits).total_bytes;
}

void set_command(Option& option, const Situation& situation, const std::vector<std::string>& flags) {
  if (!situation.command) return;
  Command command = situation.command(option, flags);
  option.command = std::move(command.text);
  option.needs_edit = command.needs_edit;
}

Option option_of(const WhatIf& what) {
  Option option{.name = what.name, .kind = what.kind, .knob = what.knob, .value = what.value, .change = what.change};
  option.evidence = what.evidence;
  option.gain = around(what.gain, what.evidence == Evidence::ratio ? kRatioError : kModelError);
  return option;
}

void add_workers(const Situation& situation, std::vector<Option>& all) {
  const Stages& now = *situation.stages;
  const double most = meter::most_workers(now);
  if (now.cores <= 0 || now.workers >= most) return;
  const double top = std::min(most, std::max<double>(now.workers + 1, meter::fewest_workers(now)));
  std::set<double> counts;
  for (const double share : {1 / 3.0, 1 / 2.0, 1.0}) counts.insert(std::max(now.workers + 1, std::round(top * share)));
  const WhatIf* cheaper = nullptr;
  std::vector<WhatIf> tried;
  tried.reserve(counts.size());
  for (const double workers : counts) {
    const WhatIf& what = tried.emplace_back(with_workers(now, workers));
    Option option = option_of(what);
    option.host_bytes = host_total(situation, workers);
    set_command(option, situation, what.flags);
    weigh_memory(option, situation);
    if (what.gain < kWorth && !predict(now).is_loader_bound()) {
      option.worth = false;
      option.reason = "the loader keeps up: more workers only take memory";
    } else if (cheaper != nullptr && what.gain < kMoreThan * cheaper->gain) {
      option.worth = false;
      option.reason = fmt::format("{} is as fast and cheaper", cheaper->name);
    } else {
      cheaper = &what;
    }
    all.push_back(std::move(option));
  }
}

void add_batch(const Situation& situation, std::vector<Option>& all) {
  const Stages& now = *situation.stages;
  const double batch = 2 * now.batch_size;
  const WhatIf what = with_batch(now, batch);
  Option option = option_of(what);
  option.changes_training = true;
  option.training = "a larger batch wants another learning rate";
  if (situation.device_line) {
    option.device_bytes = situation.device_line->at(batch);
  } else if (situation.device_now_bytes > 0) {
    // Activations grow with the batch; weights and optimizer do not. Only the sum is known, so this is the worst case.
    option.device_bytes = 2 * situation.device_now_bytes;
  }
  set_command(option, situation, what.flags);
  weigh_memory(option, situation);
  if (predict(now).is_loader_bound() && what.gain < kWorth) {
    option.worth = false;
    std::string memory;
    if (option.device_bytes && situation.device_limit_bytes > 0) {
      memory = fmt::format("; device memory {} {} of {}", situation.device_line ? "would be" : "may reach",
                           size(*option.device_bytes), size(situation.device_limit_bytes));
    }
    option.reason = "raising the batch cannot help: the loader is the limit" + memory;
  }
  all.push_back(std::move(option));
}

void add_prefetch(const Situation& situation, std::vector<Option>& all) {
  const auto now = situation.knobs.find("prefetch_factor");
  if (now == situation.knobs.end() || std::atof(now->second.c_str()) >= 2) return;
  Option option{.name = "prefetch_factor=2", .change = "two batches ahead per worker"};
  option.knob = "prefetch_factor", option.value = "2";
  const bool limited = predict(*situation.stages).is_loader_bound();
  option.gain = limited ? RateSpread{1, 1, 1.1, 0, true} : RateSpread{1, 1.05, 1.2, 0, true};
  set_command(option, situation, {"--prefetch-factor", "2"});
  HostUse use = situation.host;
  use.prefetch_factor = 2;
  if (use.main_bytes > 0) option.host_bytes = host_budget(use, situation.limits).total_bytes;
  weigh_memory(option, situation);
  if (limited) {
    option.worth = false;
    option.reason = "a deeper queue evens out bursts, but makes the loader no faster";
  }
  all.push_back(std::move(option));
}

void add_what_ifs(const Situation& situation, std::vector<Option>& all) {
  for (const WhatIf& what : situation.what_ifs) {
    const bool is_listed =
        what.kind == Change::knob && what.knob == "num_workers" && what.evidence != Evidence::measured;
    if (is_listed || what.kind == Change::ranks) continue;
    Option option = option_of(what);
    if (situation.host.main_bytes > 0) {
      const bool are_workers = what.kind == Change::knob && what.knob == "num_workers";
      option.host_bytes =
          host_total(situation, are_workers ? what.stages.workers : situation.host.workers, what.most_bytes);
    }
    set_command(option, situation, what.flags);
    weigh_memory(option, situation);
    if (!what.feasible) {
      option.worth = false;
      option.reason = what.why;
    }
    all.push_back(std::move(option));
  }
}

// Rows that ran and differ from the present in some knobs. One changed knob is a plain comparison; several are not.
void add_measured(const Situation& situation, std::vector<Option>& all) {
  if (situation.knobs.empty() || situation.rate.p50 <= 0) return;
  std::vector<Option> found;
  for (const Configuration& one : situation.measured) {
    if (!one.ok() || one.knobs == situation.knobs) continue;
    std::string name, knob, value;
    std::size_t changes = 0;
    bool batch = false;
    for (const auto& [key, word] : one.knobs) {
      const auto now = situation.knobs.find(key);
      if (now != situation.knobs.end() && now->second == word) continue;
      name += (name.empty() ? "" : " ") + key + "=" + word;
      knob = key, value = word;
      batch = batch || key == "batch_size" || key == "accumulate_steps" || key == "img_size";
      ++changes;
    }
    const RateSpread then = spread_of(one.rates);
    const double width = std::hypot(std::log(then.p90 / then.p50), std::log(situation.rate.p90 / situation.rate.p50));
    const double gain = then.p50 / situation.rate.p50;
    Option option{.name = name, .change = "as measured"};
    option.evidence = Evidence::measured;
    option.gain = {gain * std::exp(-width), gain, gain * std::exp(width), one.rates.size(), false};
    if (one.host_peak_bytes) option.host_bytes = static_cast<double>(*one.host_peak_bytes);
    if (one.device_allocated_bytes) option.device_bytes = static_cast<double>(*one.device_allocated_bytes);
    option.changes_training = batch;
    if (batch) option.training = "another batch or image size is another training";
    weigh_memory(option, situation);
    if (!option.host_bytes && !option.device_bytes) option.risk = Risk::low, option.reason = "it ran";
    if (changes > 1) {
      raise(option, Risk::medium, fmt::format("{} knobs at once: which of them helped is not known", changes));
    } else {
      option.knob = knob, option.value = value;
      set_command(option, situation, {});
    }
    if (option.gain.p50 >= kWorth && option.gain.p10 < 1) {
      raise(option, Risk::medium, "the difference may be chance: measure it again");
    }
    found.push_back(std::move(option));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Option& a, const Option& b) { return a.gain.p50 > b.gain.p50; });
  constexpr std::size_t kMost = 3;  // the table of all rows stands elsewhere
  std::size_t taken = 0;
  for (Option& option : found) {
    if (option.gain.p50 < kWorth || taken++ >= kMost) break;
    all.push_back(std::move(option));
  }
}

using KnobValue = std::pair<std::string, std::string>;

// Points that ran and differ from the present in one knob.
std::set<KnobValue> single_changes(const Situation& situation) {
  std::set<KnobValue> all;
  for (const Configuration& one : situation.measured) {
    if (!one.ok() || situation.knobs.empty()) continue;
    std::vector<KnobValue> changed;
    for (const auto& [key, word] : one.knobs) {
      const auto now = situation.knobs.find(key);
      if (now == situation.knobs.end() || now->second != word) changed.emplace_back(key, word);
    }
    if (changed.size() == 1) all.insert(changed.front());
  }
  return all;
}

// A model that a run contradicts, even one in which more was changed, is not to be trusted.
void weigh_rows(Option& option, const Situation& situation) {
  if (option.evidence == Evidence::measured || option.knob.empty() || situation.rate.p50 <= 0) return;
  for (const Configuration& one : situation.measured) {
    const auto found = one.knobs.find(option.knob);
    if (!one.ok() || found == one.knobs.end() || found->second != option.value || one.knobs == situation.knobs)
      continue;
    const double gain = spread_of(one.rates).p50 / situation.rate.p50;
    if (gain >= 0.9 || option.gain.p50 < kWorth) continue;
    raise(option, Risk::high,
          fmt::format("a run with {} was slower ({:.2f}x), though other knobs differed too", option.name, gain));
  }
}

void add_smaller_images(const Situation& situation, std::vector<Option>& all) {
  if (!situation.vit || !situation.stages || predict(*situation.stages).limit != Limit::compute) return;
  Vit smaller = *situation.vit;
  smaller.img = std::floor(smaller.img * 160 / 224 / smaller.patch) * smaller.patch;
  if (smaller.img < smaller.patch) return;
  const double gain = situation.vit->forward_flops() / smaller.forward_flops();
  Option option{.name = fmt::format("img_size={:g}", smaller.img),
                .knob = "img_size",
                .value = fmt::format("{:g}", smaller.img),
                .change = "smaller images",
                .gain = around(gain, kRatioError),
                .evidence = Evidence::ratio,
                .changes_training = true,
                .training = "a smaller image is another training"};
  raise(option, Risk::high, "what the model learns changes");
  set_command(option, situation, {});
  all.push_back(std::move(option));
}

}  // namespace

std::string_view name(Risk risk) noexcept {
  switch (risk) {
    case Risk::unknown:
      return "";
    case Risk::low:
      return "low";
    case Risk::medium:
      return "medium";
    case Risk::high:
      return "high";
  }
  return "";
}

std::vector<Option> options(const Situation& situation) {
  std::vector<Option> all;
  add_measured(situation, all);
  if (situation.stages) {
    add_workers(situation, all);
    add_what_ifs(situation, all);
    add_prefetch(situation, all);
    add_batch(situation, all);
    add_smaller_images(situation, all);
  }
  for (Option& option : all) {
    weigh_rows(option, situation);
    finish(option, situation);
  }
  const auto rank = [](const Option& option) {
    const double gain = std::round(100 * option.gain.p50);  // as it is shown
    return std::tuple(!option.worth, option.risk == Risk::high, option.changes_training, option.needs_edit, -gain,
                      option.host_bytes.value_or(0));
  };
  std::stable_sort(all.begin(), all.end(), [&](const Option& a, const Option& b) { return rank(a) < rank(b); });
  std::set<KnobValue> measured = single_changes(situation);  // what was measured stands for what is predicted
  for (const Option& option : all) {
    if (option.evidence == Evidence::measured) measured.emplace(option.knob, option.value);
  }
  std::erase_if(all, [&](const Option& option) {
    return option.evidence != Evidence::measured && !option.knob.empty() &&
           measured.contains({option.knob, option.value});
  });
  int order = 0;
  for (Option& option : all) {
    if (option.worth) option.order = ++order;
  }
  return all;
}

}  // namespace stoker::plan
