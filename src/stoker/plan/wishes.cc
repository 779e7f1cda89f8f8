#include "stoker/plan/wishes.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/units.h"

namespace stoker::plan {
namespace {

constexpr double kSameImages = 0.01;  // what the product of epochs and their size may differ from the images

void add_epochs(double epochs, bool has_images, Job& job) {
  if (!job.epoch_images && job.images > 0) {
    job.epoch_images = job.images / epochs;
  } else if (!job.epoch_images) {
    throw Error(ErrorKind::usage, format_text("`{}` says nothing without the size of an epoch", option("epochs")),
                format_text("add {}, or {} for all epochs together", option("dataset", "PATH"), option("images")));
  } else if (!has_images) {
    job.images = epochs * *job.epoch_images;
  } else if (std::abs(job.images - epochs * *job.epoch_images) > kSameImages * job.images) {
    throw Error(
        ErrorKind::usage,
        format_text("`{}` and `{}` of {} samples contradict each other",
                    option("images", fmt::format("{:g}", job.images)), option("epochs", fmt::format("{:g}", epochs)),
                    format_count(static_cast<std::uint64_t>(*job.epoch_images))),
        "give one of them");
  }
}

template <class T>
void take(const std::optional<T>& wish, T& into) {
  if (wish) into = *wish;
}

void require_above_zero(std::string_view name, const std::optional<double>& wish) {
  if (!wish || *wish > 0) return;
  throw Error(ErrorKind::usage, format_text("`{}` is 0, which no machine has", option(name)),
              "leave it out if it is not known")
      .about(name);
}

// A knob that no row has would change nothing.
void require_knobs(const std::map<std::string, std::string>& current, const PlanInput& input) {
  std::set<std::string_view> known;
  for (const PlanRun& run : input.runs) {
    for (const tune::Row& row : run.rows) {
      for (const auto& [knob, value] : row.knobs) known.insert(knob);
    }
  }
  for (const auto& [knob, value] : current) {
    if (known.contains(knob)) continue;
    throw Error(
        ErrorKind::usage,
        format_text("`{}` names `{}`, and no row that is planned from has such a knob", option("current"), knob),
        known.empty() ? std::string("the rows have no knobs at all: leave it out")
                      : fmt::format("the rows have {}", fmt::join(known, ", ")))
        .about("current");
  }
}

}  // namespace

std::vector<std::string> data_to_look_at(const JobWishes& wishes, const PlanInput& input) {
  std::vector<std::string> addresses;
  if (!wishes.epochs || wishes.images || input.job.epoch_images) return addresses;
  for (const PlanRun& run : input.runs) {
    if (!run.data.empty()) addresses.push_back(run.data);
  }
  return addresses;
}

void add_wishes(const JobWishes& wishes, PlanInput& input) {
  Job& job = input.job;
  take(wishes.images, job.images);
  if (wishes.epoch_images) job.epoch_images = wishes.epoch_images;
  if (wishes.dataset_bytes) {
    for (PlanRun& run : input.runs) {
      run.limits.dataset_bytes = run.setting.dataset_bytes = *wishes.dataset_bytes;
      if (wishes.epoch_images) run.setting.dataset_samples = *wishes.epoch_images;
    }
  }
  if (wishes.epochs) add_epochs(*wishes.epochs, wishes.images.has_value(), job);
  if (wishes.budget_days) job.budget_days = wishes.budget_days;
  if (job.budget_days && *job.budget_days <= 0)
    throw Error(ErrorKind::usage, format_text("`{}` is no time at all", option("budget")));
  if (wishes.effective_batch) input.effective_batch = wishes.effective_batch;
  if (wishes.learning_rate) input.learning_rate = wishes.learning_rate;
  take(wishes.validation_s, job.validation_s);
  take(wishes.checkpoint_s, job.checkpoint_s);
  take(wishes.checkpoint_every_s, job.checkpoint_every_s);
  if (job.checkpoint_every_s <= 0) {
    throw Error(ErrorKind::usage, format_text("`{}` is a time above 0", option("checkpoint_every")),
                format_text("leave {} out for none", option("checkpoint_time")));
  }
  if (wishes.cold_per_s) job.cold_per_s = wishes.cold_per_s;
  if (job.images <= 0 && !wishes.needs_no_job) {
    throw Error(
        ErrorKind::usage, "cannot plan: how much is to be trained is not known",
        format_text("add {}, or {} {}", option("images", "28.4e6"), option("epochs", "90"), option("dataset", "PATH")));
  }
  if (job.validation_s > 0 && !job.epoch_images) {
    throw Error(ErrorKind::usage,
                format_text("`{}` is per epoch, and the size of an epoch is not known", option("validation_time")),
                format_text("add {} or {}", option("epochs"), option("dataset")));
  }
}

std::vector<std::string> models_to_trace(const MachineWishes& wishes, const PlanInput& input) {
  std::set<std::string> all;
  for (const std::string& model : wishes.models) all.insert(model);
  if (wishes.models.empty()) {
    for (const PlanRun& run : input.runs) all.insert(run.model);
  }
  std::vector<std::string> found;
  for (const std::string& model : all) {
    if (model.find(':') != std::string::npos && !model.starts_with("vit:") && !model.starts_with("dino:"))
      found.push_back(model);
  }
  return found;
}

void add_wishes(const MachineWishes& wishes, PlanInput& input) {
  const std::vector<std::string>& models = wishes.models;
  if (models.size() > 1 && models.size() != input.runs.size()) {
    throw Error(ErrorKind::usage, fmt::format("{} models for {} runs", models.size(), input.runs.size()),
                format_text("give one {} per run, in their order, or one for all", option("model")));
  }
  if (!wishes.amp.empty() && wishes.amp != "bf16" && wishes.amp != "fp16" && wishes.amp != "none")
    throw Error(ErrorKind::usage, format_text("`{}` is bf16, fp16 or none, not `{}`", option("amp"), wishes.amp));
  if (!wishes.optimizer.empty() && wishes.optimizer != "sgd" && wishes.optimizer != "adam")
    throw Error(ErrorKind::usage, format_text("`{}` is sgd or adam, not `{}`", option("optimizer"), wishes.optimizer));
  require_above_zero("device_memory", wishes.device_memory_bytes);
  require_above_zero("memory_limit", wishes.memory_limit_bytes);
  require_above_zero("shm", wishes.shm_bytes);
  require_above_zero("disk_rate", wishes.disk_bytes_per_s);
  require_knobs(wishes.current, input);
  for (std::size_t i = 0; i < input.runs.size(); ++i) {
    PlanRun& run = input.runs[i];
    if (!models.empty()) run.model = models[std::min(i, models.size() - 1)];
    if (const auto traced = wishes.traced.find(run.model); traced != wishes.traced.end()) {
      run.traced = traced->second;
      run.img_size = traced->second.img;
    } else if (!models.empty()) {
      run.vit = parse_vit(run.model);
    }
    if (!wishes.optimizer.empty()) run.training.sgd = wishes.optimizer == "sgd";
    if (!wishes.amp.empty()) run.training.half = wishes.amp != "none";
    if (wishes.checkpointing) run.training.checkpointing = true;
    take(wishes.device_memory_bytes, run.device_limit_bytes);
    take(wishes.memory_limit_bytes, run.limits.memory_bytes);
    take(wishes.shm_bytes, run.limits.shm_bytes);
    if (wishes.unified) run.limits.unified = true;
    take(wishes.disk_bytes_per_s, run.setting.disk_bytes_per_s);
    if (!wishes.current.empty()) run.current = wishes.current;
    take(wishes.cores, run.cores);
    if (run.stages && run.cores > 0) run.stages->cores = run.cores, run.stages->free_cores = 0;
    if (run.setting.memory_bytes <= 0) run.setting.memory_bytes = run.limits.memory_bytes;
    limit_by_disk(run);
  }
}

void require_stages(const PlanInput& input) {
  for (const PlanRun& run : input.runs) {
    PlanRun settled = run;  // its rows may say enough
    settle_rows(settled, input.effective_batch);
    if (settled.stages) continue;
    throw Error(ErrorKind::usage,
                format_text("`{}` needs a ledger, and neither a file nor the rows of `{}` give one", option("what_if"),
                            run.name),
                format_text("add {}, or {}", option("ledger", "FILE"), option("verify")));
  }
}

}  // namespace stoker::plan
