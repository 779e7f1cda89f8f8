// What could be changed, ranked: expected gain with its range, memory against the limits, evidence, risk, and the next
// command. One change at a time. Pure arithmetic; from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/plan/device_memory.h"
#include "stoker/plan/duration.h"
#include "stoker/plan/host_memory.h"
#include "stoker/plan/what_if.h"

namespace stoker::plan {

enum class Risk : std::uint8_t { unknown, low, medium, high };
std::string_view name(Risk risk) noexcept;  // "" of unknown

struct Option {
  std::string name = {};  // "num_workers=12"
  Change kind = Change::knob;
  std::string knob = {}, value = {};                         // of Change::knob, where one knob changes
  std::string change = {};                                   // what that is
  RateSpread gain = {};                                      // times the present rate
  std::optional<double> days = {};                           // of the job then, at P50
  std::optional<double> host_bytes = {}, device_bytes = {};  // peak
  Evidence evidence = Evidence::model;
  Risk risk = Risk::unknown;
  std::string reason = {};  // of the risk, or why it is not worth it
  bool changes_training = false;
  std::string training = {};          // in what way
  std::string command = {};           // to try it
  bool needs_edit = false;            // before the command is run: the job has no flag for it
  bool worth = true;                  // false: `reason` says why not
  int order = 0;                      // in which to test, from 1; 0: not to be tested
  bool at_most = false;               // the gain is an upper bound: something that decides it is not known
  bool for_batch = false;             // for a larger effective batch, not for speed: worth it without a gain
  std::optional<Stages> stages = {};  // as it would be then; none: the model says nothing of it
  std::string risk_reason = {};       // of the risk, also where `reason` says why it is not worth it
  bool feasible = true;               // false: it cannot be done
};

struct Command {
  std::string text = {};
  bool needs_edit = false;  // of the job's program, first
};

struct Situation {
  std::map<std::string, std::string> knobs = {};  // as it runs now
  RateSpread rate = {};
  Job job = {};
  std::optional<Stages> stages = {};  // none: no ledger, only what was measured counts
  Setting setting = {};
  HostUse host = {};
  HostLimits limits = {};
  std::optional<MemoryLine> device_line = {};
  double device_limit_bytes = 0, device_now_bytes = 0;  // 0: not known
  std::optional<double> too_large_batch = {};           // the smallest that ran out of device memory
  std::optional<Vit> vit = {};
  std::optional<double> img_size = {};         // of the present images, where it is known
  std::optional<double> learning_rate = {};    // that the job has now
  std::optional<double> effective_batch = {};  // that the training wants
  std::optional<double> start_share = {};      // of the time: starting workers for each epoch
  std::span<const Configuration> measured = {};
  std::span<const WhatIf> what_ifs = {};
  // The command that tries one change; `flags` are those of `stoker load`, where there are such.
  std::function<Command(const Option& option, const std::vector<std::string>& flags)> command = {};
};

// Ranked: what is worth testing first, by gain, the cheaper first of equals. What changes the training comes after what
// does not, and what the job's program must be edited for after what runs as it is.
std::vector<Option> options(const Situation& situation);

// What the host holds with the present settings; none: not known.
std::optional<double> host_now_bytes(const Situation& situation);

}  // namespace stoker::plan
