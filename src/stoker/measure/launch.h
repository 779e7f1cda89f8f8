// Runs a training job with the hook in it, and collects what it does until it ends. One thread; signals are passed on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stoker/measure/job.h"

namespace stoker::measure {

struct LaunchOptions {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // beyond our own
  std::uint64_t steps = 0;                         // call `after_steps` after this number of steps; 0: never
  bool stop = false;                               // then end the job: SIGTERM, after 10 s SIGKILL
  std::chrono::milliseconds patience{60'000};      // without a loader until `no_loader` is called
  std::function<void()> after_steps;
  std::function<void()> no_loader;
  std::function<void(int pid)> tick;  // about ten times a second, with the job's process
};

struct Launched {
  int code = 0;              // of the child, as a shell gives it; 0 where we ended it on purpose
  int signal = 0;            // that ended it
  bool stopped = false;      // by us, after --steps
  bool interrupted = false;  // by SIGINT
  double seconds = 0;
  std::uint64_t lost_segments = 0;
};

// Records go to a folder below TMPDIR (or /tmp) that is removed afterwards. Throws Error where the command cannot be
// run.
Launched launch(const LaunchOptions& options, Job& job);

}  // namespace stoker::measure
