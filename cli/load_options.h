// The flags that describe our own loader and the step it feeds, shared by the verbs that run one. Those of the loader
// come from loader/option_table.h. Every reader throws Error(usage), naming the flag.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stoker/feed/workload.h"
#include "stoker/loader/option_table.h"

#include "flags.h"

namespace stoker::cli {

Flag option_flag(std::string_view option);  // as the table has it; throws Error(usage) if there is none
Section batch_flags();
Section sample_flags();
Section resource_flags();
std::vector<Flag> trouble_flags();
std::vector<Flag> step_flags();  // --step-ms, --workload
std::string loader_help();       // the transforms and the workloads, for --help

struct EmulatedStep {
  std::optional<feed::Workload> workload;
  double step_ms = 0;  // 0: full speed
};
EmulatedStep emulated_step(const Arguments& arguments);
// What the flags ask of a loader and of its data set; `workload` brings a batch size of its own.
loader::Request loader_request(const Arguments& arguments, const std::optional<feed::Workload>& workload);

}  // namespace stoker::cli
