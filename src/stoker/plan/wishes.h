// What a caller asks of the job and says of the machine, beyond what runs and cases tell; and the rules by which it is
// put into the input of a plan. Plain values; from any thread. Errors name the options.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stoker/plan/input.h"

namespace stoker::plan {

// None: nothing is said, and what the input has stays.
struct JobWishes {
  std::optional<double> images = {};  // all epochs together
  std::optional<double> epochs = {};
  std::optional<double> epoch_images = {}, dataset_bytes = {};  // of a data set that was looked at
  std::optional<double> budget_days = {};
  std::optional<double> effective_batch = {};
  std::optional<double> learning_rate = {};
  std::optional<double> validation_s = {}, checkpoint_s = {}, checkpoint_every_s = {};
  std::optional<double> cold_per_s = {};
  bool needs_no_job = false;  // a ledger alone: what-ifs, without days
};

// The data of the runs, where the wishes need the size of an epoch and nothing else tells it. The caller looks at the
// first that is still there. Empty: none is needed, or no run has any.
std::vector<std::string> data_to_look_at(const JobWishes& wishes, const PlanInput& input);
// Throws Error(usage) where wishes contradict each other or say too little.
void add_wishes(const JobWishes& wishes, PlanInput& input);

struct MachineWishes {
  std::vector<std::string> models = {};  // "vit:...", or one to trace: one for all runs, or one per run in their order
  std::map<std::string, TracedModel> traced = {};  // what models_to_trace() asked for
  std::string optimizer = {};                      // "sgd" or "adam"; empty: nothing is said
  std::string amp = {};                            // "bf16", "fp16", "none"; empty: nothing is said
  bool checkpointing = false, unified = false;
  std::optional<double> device_memory_bytes = {}, memory_limit_bytes = {}, shm_bytes = {}, disk_bytes_per_s = {};
  std::optional<double> cores = {};
  std::map<std::string, std::string> current = {};  // knobs of the job as it runs now
};
// Models of the wishes and of cases that no formula describes: "torchvision:resnet50,img=224". The caller traces them.
std::vector<std::string> models_to_trace(const MachineWishes& wishes, const PlanInput& input);
// Call it when the runs have their rows and their ledger. Throws Error(usage).
void add_wishes(const MachineWishes& wishes, PlanInput& input);

// A what-if needs a ledger, or rows that give one. Throws Error(usage) naming the run.
void require_stages(const PlanInput& input);

}  // namespace stoker::plan
