#include "stoker/plan/answer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/base/utf8.h"
#include "stoker/plan/command.h"
#include "stoker/tune/classify.h"
#include "stoker/tune/verdict.h"

namespace stoker::plan {
namespace {

double knob(const Configuration& one, const char* name, double fallback) {
  const auto found = one.knobs.find(name);
  return found == one.knobs.end() ? fallback : tune::number_of(found->second).value_or(fallback);
}

Training training_of(const PlanRun& run, const Configuration& one) {
  Training training = run.training;
  if (one.knobs.contains("checkpointing")) training.checkpointing = knob(one, "checkpointing", 0) > 0;
  if (const auto amp = one.knobs.find("amp"); amp != one.knobs.end())
    training.half = amp->second != "none" && amp->second != "off" && amp->second != "false";
  return training;
}

// Knobs that shift the line of memory over the batch.
bool same_memory_settings(const Configuration& a, const Configuration& b) {
  for (const char* name : {"checkpointing", "amp", "img_size"}) {
    const auto x = a.knobs.find(name), y = b.knobs.find(name);
    if ((x == a.knobs.end()) != (y == b.knobs.end())) return false;
    if (x != a.knobs.end() && x->second != y->second) return false;
  }
  return true;
}

MemoryPoint point_of(const Configuration& one) {
  MemoryPoint point{.batch = knob(one, "batch_size", 0)};
  if (one.device_allocated_bytes) point.observed_bytes = static_cast<double>(*one.device_allocated_bytes);
  point.out_of_memory = one.status == tune::Status::oom_device || one.status == tune::Status::oom_suspect;
  return point;
}

std::optional<DevicePlan> device_of(const PlannedRun& run, double margin) {
  const PlanRun& input = run.input;
  std::vector<MemoryPoint> alike;
  const Configuration* const chosen = run.chosen ? &run.configurations[*run.chosen].measured : nullptr;
  for (const PlannedConfiguration& one : run.configurations) {
    if (knob(one.measured, "batch_size", 0) <= 0) continue;
    if (!chosen || same_memory_settings(one.measured, *chosen)) alike.push_back(point_of(one.measured));
  }
  DevicePlan device;
  device.limit_bytes = input.device_limit_bytes;
  const std::optional<double> limit = device.limit_bytes > 0 ? std::optional(device.limit_bytes) : std::nullopt;
  const std::optional<MemoryLine> fitted = fit_line(alike);
  if (input.vit) {
    device.parameters = input.vit->parameters();
    device.forward_flops = input.vit->forward_flops();
    const Training usual = chosen ? training_of(input, *chosen) : input.training;
    device.line = fitted ? *fitted : memory_line(*input.vit, usual);
    device.parts = memory_parts(*input.vit, usual);
    for (const PlannedConfiguration& one : run.configurations) {  // each by its own settings
      const MemoryPoint point = point_of(one.measured);
      if (point.batch <= 0 || (!point.observed_bytes && !point.out_of_memory)) continue;
      const bool is_alike = !chosen || same_memory_settings(one.measured, *chosen);
      const MemoryLine line = fitted && is_alike ? *fitted : memory_line(*input.vit, training_of(input, one.measured));
      device.points.push_back(compare(line, {&point, 1}, limit).front());
    }
  } else if (input.traced) {
    device.parameters = input.traced->parameters;
    device.forward_flops = input.traced->forward_flops;
    device.parts = input.traced->parts;
    device.line = fitted ? *fitted : input.traced->line;
    std::erase_if(alike, [](const MemoryPoint& point) { return !point.observed_bytes && !point.out_of_memory; });
    device.points = compare(device.line, alike, limit);
  } else if (fitted) {
    device.line = *fitted;
    std::erase_if(alike, [](const MemoryPoint& point) { return !point.observed_bytes && !point.out_of_memory; });
    device.points = compare(device.line, alike, limit);
  } else {
    return std::nullopt;
  }
  if (chosen) device.parts_batch = knob(*chosen, "batch_size", 0);
  if (limit) device.largest_batch = largest_batch(device.line, *limit, margin);
  return device;
}

std::optional<HostBudget> host_of(const PlannedRun& run, const PlanAnswer& answer) {
  const PlanRun& input = run.input;
  HostUse use = input.host;
  if (use.main_bytes <= 0 && use.worker_bytes <= 0) {
    const PlannedConfiguration* const chosen = run.picked();
    if (!chosen || !chosen->measured.host_peak_bytes) return std::nullopt;
    use = {};
    use.main_bytes = static_cast<double>(*chosen->measured.host_peak_bytes);  // all of its processes, as measured
  }
  if (run.picked() && run.picked()->measured.device_allocated_bytes)
    use.device_bytes = static_cast<double>(*run.picked()->measured.device_allocated_bytes);
  if (answer.has_job && run.picked() && run.picked()->duration) use.seconds = run.picked()->duration->p50 * 86400;
  return host_budget(use, input.limits);
}

void note_epochs(PlannedRun& run) {
  const std::vector<EpochFigure>& epochs = run.input.epochs;
  if (epochs.size() < 2) return;
  const double workers = run.input.stages ? run.input.stages->workers : 1;
  const double first = epochs.front().per_s, later = epochs.back().per_s;
  const double images = run.epochs ? run.epochs->images : 0;
  run.epochs = split_epochs(images > 0 ? images : 1, first, later, workers);
}

// Rows that differ in several knobs each cannot say which of them mattered.
void note_confounded(PlannedRun& run) {
  const auto& rows = run.configurations;
  if (rows.size() < 2 || rows.size() > 8) return;
  std::size_t least = 1000;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      std::size_t different = 0;
      for (const auto& [name, value] : rows[i].measured.knobs) {
        const auto other = rows[j].measured.knobs.find(name);
        different += other == rows[j].measured.knobs.end() || other->second != value;
      }
      least = std::min(least, different);
    }
  }
  if (least > 1 && least < 1000) {
    run.notes.push_back(
        fmt::format("every row differs from every other in {} knobs or more at once: which of them "
                    "mattered cannot be told; change one at a time",
                    least));
  }
}

void explain_failures(PlannedRun& run, bool all_failed) {
  std::map<std::string_view, std::map<std::string, std::size_t>> classes;  // status: error: how many
  for (const PlannedConfiguration& one : run.configurations) {
    if (!one.rate) ++classes[name(one.measured.status)][one.measured.error];
  }
  for (const auto& [status, errors] : classes) {
    std::size_t count = 0;
    for (const auto& [error, times] : errors) count += times;
    const auto most = std::max_element(errors.begin(), errors.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    Text text = fmt::format("{} of {} points: {}", count, run.configurations.size(), status);
    if (!most->first.empty()) text = format_text("{}: {}", text, as_utf8(most->first, 160));
    if (errors.size() > 1 && !most->first.empty())
      text = format_text("{} ({} of them; the others say otherwise)", text, most->second);
    if (all_failed) {
      const tune::Failure failure = tune::classify_text(most->first);
      if (!failure.remedy.empty()) text = format_text("{}; {}", text, failure.remedy);
    }
    run.notes.push_back(text);
  }
}

std::string label_of(const PlannedRun& run) {
  const PlannedConfiguration* const chosen = run.picked();
  return chosen ? text(chosen->measured.knobs) : "";
}

// The settings as they are now, where they were measured; else the chosen ones.
const PlannedConfiguration* present(const PlannedRun& run) {
  const PlannedConfiguration* now = run.picked();
  for (const PlannedConfiguration& one : run.configurations) {
    if (!run.input.current.empty() && one.rate && one.measured.knobs == run.input.current) now = &one;
  }
  return now && now->rate ? now : nullptr;
}

void add_options(PlannedRun& run, const PlanAnswer& answer) {
  const PlanRun& input = run.input;
  const PlannedConfiguration* const now = present(run);
  if (!now) return;
  std::vector<Configuration> measured;
  for (const PlannedConfiguration& one : run.configurations) measured.push_back(one.measured);
  std::vector<WhatIf> what_ifs;
  for (const VerifiedWhatIf& one : run.what_ifs) {
    what_ifs.push_back(one.what);
    if (!one.gain || one.noise) continue;  // noise says nothing against the prediction
    what_ifs.back().gain = *one.gain;
    what_ifs.back().evidence = Evidence::measured;
  }
  Situation situation;
  situation.knobs = now->measured.knobs;
  situation.rate = *now->rate;
  situation.job = answer.job;
  situation.stages = input.stages;
  situation.setting = input.setting;
  situation.host = input.host;
  situation.limits = input.limits;
  if (run.device) situation.device_line = run.device->line;
  situation.device_limit_bytes = input.device_limit_bytes;
  situation.device_now_bytes = input.device_now_bytes;
  for (const PlannedConfiguration& one : run.configurations) {
    const MemoryPoint point = point_of(one.measured);
    if (!point.out_of_memory || point.batch <= 0 || !same_memory_settings(one.measured, now->measured)) continue;
    situation.too_large_batch = std::min(point.batch, situation.too_large_batch.value_or(point.batch));
  }
  situation.vit = input.vit;
  situation.measured = measured;
  situation.what_ifs = what_ifs;
  situation.command = [&](const Option& option, const std::vector<std::string>& flags) {
    return command_for(input, option, flags);
  };
  if (const double img = knob(now->measured, "img_size", input.img_size.value_or(0)); img > 0) situation.img_size = img;
  situation.learning_rate = answer.learning_rate;
  situation.effective_batch = answer.effective_batch;
  situation.start_share = input.start_share;
  run.options = options(situation);
  run.bundles = bundles(situation, run.options);
}

void add_what_ifs(PlannedRun& run, const PlanWishes& wishes) {
  if (!run.input.stages) return;
  const Stages& stages = *run.input.stages;
  std::vector<WhatIf> all;
  for (const std::string& text : wishes.what_ifs) all.push_back(asked(stages, run.input.setting, text));
  if (wishes.what_ifs.empty()) all = what_ifs(stages, run.input.setting);
  const PlannedConfiguration* const now = present(run);
  const double base = now ? now->rate->p50 : predict(stages).per_s;
  for (WhatIf& what : all) {
    set_base(what, base);
    VerifiedWhatIf one{.what = std::move(what)};
    if (run.input.target_per_s) {
      Stages without = one.what.stages;  // the accelerator itself is not asked here
      without.compute_s = 0;
      one.closes = one.what.feasible && predict(without).per_s >= run.input.target_per_s->first;
    }
    run.what_ifs.push_back(std::move(one));
  }
  std::vector<double> nodes = wishes.nodes;
  run.saturating_nodes = saturating_nodes(stages);
  if (nodes.empty() && run.saturating_nodes) nodes = {1, 2, 4, 8, 16};
  if (!nodes.empty()) run.nodes = scale_out(stages, nodes);
}

void add_costs(PlannedRun& run, const PlanAnswer& answer) {
  if (!answer.prices) return;
  const Setting& setting = run.input.setting;
  const double samples = answer.job.epoch_images.value_or(setting.dataset_samples);
  if (samples <= 0 || setting.dataset_bytes <= 0) {
    run.notes.push_back(format_text("what the store costs is not told: the size of the data set is not known: give {}",
                                    option("dataset")));
    return;
  }
  // An epoch may be a part of the data set that was measured.
  const double share = setting.dataset_samples > 0 ? samples / setting.dataset_samples : 1;
  run.costs = store_costs(*answer.prices, samples, share * setting.dataset_bytes, answer.job);
  if (!setting.is_file_per_sample) {
    run.notes.emplace_back("each sample is priced as one request; neighbours in a pack, an array or a shard share one");
  }
}

FleetLimit limit_of_node(const PlannedRun& run) {
  Limit limit = Limit::none;
  if (run.input.stages) {
    Stages alone = *run.input.stages;
    alone.storage_per_s = 0;
    limit = predict(alone).limit;
  } else if (const auto bound = tune::parse_bound(present(run)->measured.verdict)) {
    limit = *bound == meter::Bound::compute ? Limit::compute : *bound == meter::Bound::prep ? Limit::prep : Limit::none;
  }
  return limit == Limit::compute                         ? FleetLimit::accelerator
         : limit == Limit::prep || limit == Limit::cores ? FleetLimit::cores
                                                         : FleetLimit::node;
}

// One node of the run, as far as it was measured or the wishes say.
FleetNode node_of(const PlannedRun& run, const PlanAnswer& answer, const FleetWishes& wishes) {
  const PlanRun& input = run.input;
  FleetNode node{.per_s = present(run)->rate->p50,
                 .limit = limit_of_node(run),
                 .nic_bytes_per_s = wishes.nic_bytes_per_s.value_or(0),
                 .disk_bytes_per_s = input.setting.disk_bytes_per_s,
                 .cache_bytes = wishes.cache_bytes};
  if (input.stages && input.setting.access == Access::remote && input.stages->storage_per_s > 0) {
    Stages alone = *input.stages;
    alone.storage_per_s = 0;
    node.fetch_per_s = input.stages->storage_per_s;
    node.per_s *= predict(alone).per_s / predict(*input.stages).per_s;
  }
  if (answer.job.cold_per_s) node.fetch_per_s = *answer.job.cold_per_s;
  if (input.setting.access == Access::remote && input.epochs.size() > 1 && node.fetch_per_s <= 0)
    node.fetch_per_s = input.epochs.front().per_s;
  if (wishes.node_per_s) node.per_s = *wishes.node_per_s, node.limit = FleetLimit::node;
  return node;
}

void add_fleet(PlannedRun& run, const PlanAnswer& answer, const PlanWishes& wishes) {
  if (wishes.nodes.empty() || !present(run)) return;
  const Setting& setting = run.input.setting;
  const double samples = answer.job.epoch_images.value_or(setting.dataset_samples);
  if (samples <= 0 || setting.dataset_bytes <= 0) {
    run.notes.push_back(
        format_text("the epochs of several nodes are not told: the size of the data set is not known: give {}, or {} "
                    "and {}",
                    option("dataset"), option("dataset_samples"), option("dataset_bytes")));
    return;
  }
  const double share = setting.dataset_samples > 0 ? samples / setting.dataset_samples : 1;
  FleetInput input{.samples = samples,
                   .bytes = share * setting.dataset_bytes,
                   .node = node_of(run, answer, wishes.fleet),
                   .store = wishes.fleet.store,
                   .prices = answer.prices};
  if (answer.has_job) input.epochs = answer.job.images / samples;
  run.fleet = plan_fleet(input, wishes.nodes);
}

PlannedRun plan_run(PlanRun input, const PlanAnswer& answer, const PlanWishes& wishes) {
  PlannedRun run;
  run.notes = input.notes;
  run.best = input.choice.best;
  run.chosen = input.choice.chosen;
  Job job = answer.job;
  if (!job.cold_per_s && input.epochs.size() > 1 && input.epochs.front().per_s < input.epochs.back().per_s) {
    job.cold_per_s = input.epochs.front().per_s;
  }
  for (const Configuration& measured : input.configurations) {
    PlannedConfiguration one{.measured = measured};
    if (measured.ok()) {
      one.rate = spread_of(measured.rates);
      if (measured.step_ms && measured.compute_ms && *measured.compute_ms > 0) {
        // No luck makes a run faster than its step, which itself differs a little from run to run.
        constexpr double kStepDiffers = 1.03;
        const double waiting = std::max(1.0, *measured.step_ms / *measured.compute_ms);
        one.rate->p90 = std::min(one.rate->p90, one.rate->p50 * waiting * kStepDiffers);
      }
      if (answer.has_job) one.duration = duration_of(job, *one.rate);
    }
    run.configurations.push_back(std::move(one));
  }
  if (run.best) run.configurations[*run.best].is_best = true;
  if (run.chosen) run.configurations[*run.chosen].is_chosen = true;
  run.input = std::move(input);
  if (run.chosen && run.input.current.empty()) run.input.current = run.configurations[*run.chosen].measured.knobs;
  explain_failures(run, !run.chosen);
  add_costs(run, answer);
  if (!run.chosen) return run;
  run.device = device_of(run, wishes.margin);
  run.host = host_of(run, answer);
  if (run.input.epochs.size() > 1) {
    run.epochs = EpochSplit{.images = answer.job.epoch_images.value_or(0)};
    note_epochs(run);
  }
  note_confounded(run);
  if (run.input.stages && run.input.stages->cores <= 0 && predict(*run.input.stages).limit != Limit::compute) {
    run.notes.push_back(format_text(
        "the cores of the machine are not known, so what more workers give may be less than predicted: give {}",
        option("cores")));
  }
  add_what_ifs(run, wishes);
  add_options(run, answer);
  add_fleet(run, answer, wishes);
  if (run.configurations[*run.chosen].rate->assumed && run.input.kind != PlanSource::given) {
    run.notes.emplace_back("one run without an interval: the width of its range is assumed, not measured");
  }
  return run;
}

// The first option that closes what is missing, or the one that comes nearest; one of high risk only if all are.
const Option* way_out(const PlannedRun& run, double times) {
  for (const bool is_risky : {false, true}) {
    const Option* nearest = nullptr;
    for (const Option& option : run.options) {
      if (!option.worth || option.for_batch || (option.risk == Risk::high) != is_risky) continue;
      if (option.gain.p50 >= times) return &option;
      if (!nearest || option.gain.p50 > nearest->gain.p50) nearest = &option;
    }
    if (nearest) return nearest;
  }
  return nullptr;
}

std::string range_of(const Duration& duration) {
  const TimeUnit unit = time_unit(duration.p50);
  return fmt::format("{} {} ({} to {})", in_unit(duration.p50, unit), unit.name, in_unit(duration.p10, unit),
                     in_unit(duration.p90, unit));
}

std::string time_text(double days) {
  const TimeUnit unit = time_unit(days);
  return fmt::format("{} {}", in_unit(days, unit), unit.name);
}

std::string shortfall_of(const PlanAnswer& answer, const PlannedRun& run) {
  const Duration& duration = *run.picked()->duration;
  if (!answer.needed_per_s) return "validation, checkpoints and epoch 0 alone take longer than the budget";
  const double times = *answer.needed_per_s / run.picked()->rate->p50;
  std::string text = fmt::format("{} too long; {} images/s are needed, {:.2f} times what it has",
                                 time_text(duration.over_days), format_rate(*answer.needed_per_s), times);
  if (const Option* const option = way_out(run, times)) {
    const std::string what =
        fmt::format("{} ({}{:.2f}x, {}{})", option->name, option->at_most ? "at most " : "", option->gain.p50,
                    name(option->evidence), option->risk == Risk::high ? ", a high risk" : "");
    text += option->gain.p50 >= times ? fmt::format("; the cheapest way to close it: {}", what)
                                      : fmt::format("; nothing here closes it, {} comes nearest", what);
  } else {
    text += fmt::format(
        "; nothing that was measured or predicted makes it faster: fewer images ({:.3g} million fit), a smaller "
        "model, or {:.0f} such accelerators",
        answer.job.images / times / 1e6, std::ceil(times));
  }
  return text;
}

void say_pivot(PlanAnswer& answer) {
  const PlannedRun& best = answer.runs[*answer.chosen_run];
  for (const PlannedRun& run : answer.runs) {
    if (&run == &best || !run.picked() || !run.picked()->duration) continue;
    const Duration &long_one = *run.picked()->duration, &short_one = *best.picked()->duration;
    std::string ratio;
    if (run.input.vit && best.input.vit) {
      ratio = fmt::format(" (measured {:.2f} times apart; their FLOPs alone say {:.2f})",
                          best.picked()->rate->p50 / run.picked()->rate->p50,
                          run.input.vit->forward_flops() / best.input.vit->forward_flops());
    }
    const bool both_fit = long_one.verdict && *long_one.verdict <= BudgetVerdict::likely;
    answer.pivot = fmt::format(
        "{} would take {}, {} takes {}{}: {}", run.input.name, time_text(long_one.p50), best.input.name,
        time_text(short_one.p50), ratio,
        both_fit ? std::string(run.input.vit && best.input.vit ? "both fit, so the larger model is a free choice"
                                                               : "both fit")
                 : fmt::format("go on with {}, {}", best.input.name, label_of(best)));
    return;
  }
}

}  // namespace

TimeUnit time_unit(double of_days) {
  if (of_days >= 3) return {"days", 1};
  if (of_days * 24 >= 2) return {"hours", 24};
  if (of_days * 1440 >= 2) return {"min", 1440};
  return {"s", 86400};
}

std::string in_unit(double days, const TimeUnit& unit) {
  const double value = days * unit.per_day;
  if (value < 0.995) return fmt::format("{:.2f}", value);
  if (value >= 29.95 || std::abs(value - std::round(value)) < 0.05) return fmt::format("{:.0f}", value);
  return fmt::format("{:.1f}", value);
}

void finish_plan(PlanAnswer& answer) {
  for (PlannedRun& run : answer.runs) {
    if (run.chosen) add_options(run, answer);
  }
  answer.chosen_run.reset();
  const auto rank = [](const PlannedRun& run) {
    const PlannedConfiguration* const picked = run.picked();
    return picked->duration ? picked->duration->p50 : 1 / picked->rate->p50;
  };
  for (std::size_t i = 0; i < answer.runs.size(); ++i) {
    if (!answer.runs[i].picked()) continue;
    if (!answer.chosen_run || rank(answer.runs[i]) < rank(answer.runs[*answer.chosen_run])) answer.chosen_run = i;
  }
  answer.pivot.clear();
  answer.next_command.clear();
  if (!answer.chosen_run) {
    answer.is_no = true;
    std::size_t points = 0;
    for (const PlannedRun& run : answer.runs) points += run.configurations.size();
    answer.headline = fmt::format("nothing is planned: none of {} points ran", points);
    return;
  }
  const PlannedRun& run = answer.runs[*answer.chosen_run];
  const PlannedConfiguration& picked = *run.picked();
  if (picked.duration && answer.job.budget_days) {
    const BudgetVerdict verdict = *picked.duration->verdict;
    const std::string budget = time_text(*answer.job.budget_days);
    answer.is_no = verdict == BudgetVerdict::unlikely || verdict == BudgetVerdict::over;
    answer.headline =
        answer.is_no ? fmt::format("{} does not fit {}: {} at {} images/s; {}", run.input.name, budget,
                                   range_of(*picked.duration), format_rate(picked.rate->p50), shortfall_of(answer, run))
                     : fmt::format("{} {} {}: {} at {} images/s", run.input.name,
                                   verdict == BudgetVerdict::fits ? "fits" : "probably fits", budget,
                                   range_of(*picked.duration), format_rate(picked.rate->p50));
  } else if (picked.duration) {
    answer.headline = fmt::format("{} takes {} at {} images/s", run.input.name, range_of(*picked.duration),
                                  format_rate(picked.rate->p50));
  } else {
    answer.headline = fmt::format("{}: {} images/s", run.input.name, format_rate(picked.rate->p50));
  }
  if (answer.runs.size() > 1 && picked.duration) say_pivot(answer);
  for (const Option& option : run.options) {
    if (option.order == 1 && !option.for_batch) answer.next_command = option.command;
  }
}

PlanAnswer make_plan(PlanInput input, const PlanWishes& wishes) {
  PlanAnswer answer;
  answer.job = input.job;
  answer.has_job = input.job.images > 0;
  answer.prices = input.prices;
  answer.effective_batch = input.effective_batch;
  answer.learning_rate = input.learning_rate;
  if (answer.has_job) answer.needed_per_s = needed_per_s(input.job);
  for (PlanRun& run : input.runs) {
    settle_rows(run, input.effective_batch);
    answer.runs.push_back(plan_run(std::move(run), answer, wishes));
  }
  finish_plan(answer);
  return answer;
}

}  // namespace stoker::plan
