// The flags that describe our own loader and the step it feeds, shared by the verbs that run one: their tables, and
// what they say. Every reader throws Error(usage), naming the flag.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/feed/workload.h"
#include "stoker/loader/options.h"

#include "flags.h"

namespace stoker::cli {

Section batch_flags();
Section sample_flags();
Section resource_flags();
std::vector<Flag> trouble_flags();
std::vector<Flag> step_flags();  // --step-ms, --workload
std::string loader_help();       // the transforms and the workloads, for --help

// --color names the pictures' colours (as LoaderOptions does) or, with its own three words, the terminal's.
std::string terminal_color(const Arguments& arguments);

struct EmulatedStep {
  std::optional<feed::Workload> workload;
  double step_ms = 0;  // 0: full speed
};
EmulatedStep emulated_step(const Arguments& arguments);
loader::LoaderOptions loader_options(const Arguments& arguments, const std::optional<feed::Workload>& workload);
dataset::OpenOptions open_options(const Arguments& arguments, storage::Storage storage);

}  // namespace stoker::cli
