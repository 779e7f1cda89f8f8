#include "stoker/plan/options.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/plan/host_memory.h"
#include "stoker/plan/learning_rate.h"

namespace stoker::plan {
namespace {

constexpr double kModelError = 0.15, kRatioError = 0.25;  // of a predicted gain
constexpr double kWorth = 1.03;
constexpr double kMoreThan = 1.02;            // times the gain of a cheaper change, to be worth more
constexpr double kFull = 0.92, kTight = 0.8;  // of a limit
constexpr double kStart_s = 5;                // to start the workers of an epoch, where it was not measured
constexpr double kUsualImage = 224, kSmallImage = 160;

RateSpread around(double gain, double error) {
  return {gain * (1 - error), gain, gain * (1 + error), 0, true};
}

// The larger risk wins; its reason with it.
void raise(Option& option, Risk risk, const std::string& reason) {
  if (risk <= option.risk) return;
  option.risk = risk;
  option.reason = option.risk_reason = reason;
}

void weigh_memory(Option& option, const Situation& situation) {
  const auto against = [&](const char* what, std::optional<double> bytes, double limit) {
    if (!bytes || limit <= 0) return;
    const double share = *bytes / limit;
    const std::string text = fmt::format("{} {} of {}", what, bytes_text(*bytes), bytes_text(limit));
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
  if (option.gain.p50 < kWorth && option.worth && !option.for_batch) {
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
  option.stages = what.stages;
  return option;
}

// Twice the workers, on a machine whose cores nobody told: what they give if there are cores for them.
void add_workers_at_most(const Situation& situation, std::vector<Option>& all) {
  const Stages& now = *situation.stages;
  if (now.workers < 1 || !predict(now).is_loader_bound()) return;
  const WhatIf what = with_workers(now, 2 * now.workers);
  Option option = option_of(what);
  option.gain = {1, what.gain, what.gain, 0, true};
  option.at_most = true;
  option.stages.reset();  // no base for combinations
  option.host_bytes = host_total(situation, 2 * now.workers);
  set_command(option, situation, what.flags);
  weigh_memory(option, situation);
  raise(option, Risk::medium, "this is the most that it gives: the cores of the machine are not known");
  all.push_back(std::move(option));
}

void add_workers(const Situation& situation, std::vector<Option>& all) {
  const Stages& now = *situation.stages;
  if (now.cores <= 0) return add_workers_at_most(situation, all);
  const double most = meter::most_workers(now);
  if (now.workers >= most) return;
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

double knob_or(const Situation& situation, const std::string& name, double fallback) {
  const auto found = situation.knobs.find(name);
  const double value = found == situation.knobs.end() ? 0 : std::atof(found->second.c_str());
  return value > 0 ? value : fallback;
}

// On the device, with that batch. Activations grow with it; weights and optimizer do not. Where only the present sum is
// known, this is the worst case.
std::optional<double> device_bytes_at(const Situation& situation, double batch) {
  if (situation.device_line) return situation.device_line->at(batch);
  if (situation.device_now_bytes <= 0 || situation.stages->batch_size <= 0) return std::nullopt;
  return situation.device_now_bytes * batch / situation.stages->batch_size;
}

// More steps of the present batch before each update: the effective batch grows, the memory and the speed do not.
void add_accumulation(const Situation& situation, double times, std::vector<Option>& all) {
  const double now = knob_or(situation, "accumulate_steps", 1), steps = std::round(now * times);
  const double batch = situation.stages->batch_size;
  Option option{
      .name = fmt::format("accumulate_steps={:g}", steps),
      .knob = "accumulate_steps",
      .value = fmt::format("{:g}", steps),
      .change = fmt::format("weights change after {:g} steps: an effective batch of {:g}", steps, steps * batch),
      .gain = {1, 1, 1, 0, true}};
  option.for_batch = true;
  option.changes_training = true;
  option.training = fmt::format("an effective batch of {:g} instead of {:g}: {}", steps * batch, now * batch,
                                rate_text(situation.learning_rate, steps / now));
  option.device_bytes = device_bytes_at(situation, batch);
  set_command(option, situation, {});
  raise(option, Risk::low, "the memory of the present batch, and its speed");
  all.push_back(std::move(option));
}

void add_batch(const Situation& situation, std::vector<Option>& all) {
  const Stages& now = *situation.stages;
  const double wanted = situation.effective_batch.value_or(0), steps = knob_or(situation, "accumulate_steps", 1);
  std::set<double> batches = {2 * now.batch_size};
  if (now.batch_size >= 16) batches.insert(std::round(1.5 * now.batch_size));
  double too_large = 0;  // times the present batch
  bool fits = false;     // a larger batch
  for (const double batch : batches) {
    const WhatIf what = with_batch(now, batch);
    Option option = option_of(what);
    option.changes_training = true;
    option.training = fmt::format("a larger batch wants another rate: {}",
                                  rate_text(situation.learning_rate, batch / now.batch_size));
    option.device_bytes = device_bytes_at(situation, batch);
    set_command(option, situation, what.flags);
    weigh_memory(option, situation);
    const double limit = situation.device_limit_bytes;
    const bool ran_out = situation.too_large_batch && batch >= *situation.too_large_batch;
    if (ran_out || (limit > 0 && option.device_bytes.value_or(0) > kFull * limit)) {
      too_large = std::max(too_large, batch / now.batch_size);
    } else {
      fits = true;
    }
    if (ran_out) {
      option.worth = false;
      option.reason = fmt::format("a batch of {:g} ran out of device memory", *situation.too_large_batch);
    } else if (predict(now).is_loader_bound() && what.gain < kWorth) {
      option.worth = false;
      std::string memory;
      if (option.device_bytes && limit > 0) {
        memory = fmt::format("; device memory {} {} of {}", situation.device_line ? "would be" : "may reach",
                             bytes_text(*option.device_bytes), bytes_text(limit));
      }
      option.reason = "raising the batch cannot help: the loader is the limit" + memory;
    }
    all.push_back(std::move(option));
  }
  if (wanted > steps * now.batch_size) {
    add_accumulation(situation, wanted / (steps * now.batch_size), all);
  } else if (too_large > 0 && !fits) {
    add_accumulation(situation, too_large, all);
  }
}

std::optional<bool> truth_of(const Situation& situation, const std::string& name) {
  const auto found = situation.knobs.find(name);
  if (found == situation.knobs.end()) return std::nullopt;
  return found->second == "true" || found->second == "True" || found->second == "1" || found->second == "on";
}

// Workers that live on from epoch to epoch need not be started again, and keep what they have piled up.
void add_persistent(const Situation& situation, std::vector<Option>& all) {
  const std::optional<bool> now = truth_of(situation, "persistent_workers");
  if (!now || situation.stages->workers < 1 || !situation.job.epoch_images || situation.rate.p50 <= 0) return;
  const double epoch_s = *situation.job.epoch_images / situation.rate.p50;
  const double start = situation.start_share ? *situation.start_share : std::min(0.5, kStart_s / epoch_s);
  Option option{.name = *now ? "persistent_workers=false" : "persistent_workers=true",
                .knob = "persistent_workers",
                .value = *now ? "false" : "true",
                .change = *now ? "workers start again with each epoch" : "workers live on from epoch to epoch",
                .gain = around(*now ? 1 - start : 1 / (1 - start), situation.start_share ? kModelError : 0),
                .evidence = situation.start_share ? Evidence::model : Evidence::ratio};
  HostUse use = situation.host;
  use.seconds = *now ? epoch_s : situation.job.images / situation.rate.p50;  // how long a worker may grow
  HostUse present = situation.host;
  present.seconds = *now ? situation.job.images / situation.rate.p50 : epoch_s;
  const double then_bytes = host_budget(use, situation.limits).total_bytes;
  const double now_bytes = host_budget(present, situation.limits).total_bytes;
  if (use.main_bytes > 0 || use.worker_bytes > 0) option.host_bytes = then_bytes;
  set_command(option, situation, {});
  weigh_memory(option, situation);
  const std::string starts =
      situation.start_share
          ? fmt::format("starting workers took {:.1f} % of the time", 100 * start)
          : fmt::format("starting workers takes seconds, and an epoch {}",
                        format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(epoch_s * 1e9))));
  if (*now) {
    const double limit = situation.limits.memory_bytes;
    option.for_batch = limit > 0 && now_bytes > kFull * limit && then_bytes < now_bytes;  // for memory, not for speed
    option.worth = option.for_batch;
    option.reason =
        option.worth
            ? fmt::format("workers grow to {} of {} where they live on", bytes_text(now_bytes), bytes_text(limit))
        : now_bytes > then_bytes
            ? fmt::format("it would save {}, and memory is not short; {}", bytes_text(now_bytes - then_bytes), starts)
            : fmt::format("it saves no memory that was measured; {}", starts);
  } else if (option.gain.p50 < kWorth) {
    option.worth = false;
    option.reason =
        starts + (then_bytes > now_bytes ? fmt::format("; it would take {} more", bytes_text(then_bytes - now_bytes))
                                         : std::string());
  }
  if (!option.worth && option.host_bytes && situation.limits.memory_bytes > 0)
    option.reason += fmt::format("; host memory {} of {}", bytes_text(*option.host_bytes),
                                 bytes_text(situation.limits.memory_bytes));
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
    option.feasible = what.feasible;
    if (!what.feasible) {
      option.worth = false;
      option.reason = what.why;
    }
    all.push_back(std::move(option));
  }
}

// The effective batch of a row that ran, over the present one; 1: it is the same, or not known.
double effective_times(const Situation& situation, const Configuration& one) {
  double times = 1;
  for (const char* const key : {"batch_size", "accumulate_steps"}) {
    const auto found = one.knobs.find(key);
    const double then = found != one.knobs.end() ? std::atof(found->second.c_str()) : 0;
    if (const double now = knob_or(situation, key, 0); now > 0 && then > 0) times *= then / now;
  }
  return times;
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
    if (const double times = effective_times(situation, one); times != 1)
      option.training =
          fmt::format("another effective batch is another training: {}", rate_text(situation.learning_rate, times));
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

// Smaller crops of the same files: the step gets cheaper, reading and decoding do not.
void add_smaller_images(const Situation& situation, std::vector<Option>& all) {
  const Stages& now = *situation.stages;
  const double img = situation.vit ? situation.vit->img : situation.img_size.value_or(kUsualImage);
  const double step = situation.vit ? situation.vit->patch : 32;
  const double small = std::floor(img * kSmallImage / kUsualImage / step) * step;
  if (small < step || (!situation.vit && !situation.img_size)) return;
  Vit smaller = situation.vit.value_or(Vit{});
  smaller.img = small;
  const double work =
      situation.vit ? smaller.forward_flops() / situation.vit->forward_flops() : small * small / (img * img);
  Stages then = now;
  then.compute_s = now.compute_s * work;
  const Predicted before = predict(now);
  const double gain = before.per_s > 0 ? predict(then).per_s / before.per_s : 1;
  Option option{.name = fmt::format("img_size={:g}", small),
                .knob = "img_size",
                .value = fmt::format("{:g}", small),
                .change = "smaller images",
                .gain = around(gain, kRatioError),
                .evidence = Evidence::ratio,
                .changes_training = true,
                .training = "a smaller image is another training"};
  option.stages = then;
  if (situation.device_line) {
    const MemoryLine& line = *situation.device_line;
    option.device_bytes = line.fixed_bytes + work * line.bytes_per_image * now.batch_size;
  }
  raise(option, Risk::high, "what the model learns changes");
  set_command(option, situation, {});
  if (gain < kWorth) {
    option.worth = false;
    option.reason =
        before.is_loader_bound()
            ? "the loader is the limit, and smaller crops of the same files cost it as much; smaller files cost "
              "less"
            : "the time of the step is not known";
  }
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
    add_persistent(situation, all);
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

std::optional<double> host_now_bytes(const Situation& situation) {
  return host_total(situation, situation.stages ? situation.stages->workers : situation.host.workers);
}

}  // namespace stoker::plan
