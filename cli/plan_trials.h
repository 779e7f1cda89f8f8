// The processes that `stoker plan --verify` runs: this program, as trials, in a folder that is gone at the end. One
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stoker/os/temporary_folder.h"
#include "stoker/plan/verify.h"

namespace stoker::cli {

class PlanTrials {
 public:
  PlanTrials(std::uint64_t bench_steps, std::function<bool()> interrupted)
      : bench_steps_(bench_steps), interrupted_(std::move(interrupted)) {}

  plan::Tried run(const std::vector<std::string>& words);
  plan::TriedPack pack(const std::string& address, plan::Change change);

 private:
  const std::uint64_t bench_steps_;
  const std::function<bool()> interrupted_;
  const os::TemporaryFolder scratch_{"stoker-plan-"};
  std::uint64_t next_ = 0;  // folder of a trial
};

}  // namespace stoker::cli
