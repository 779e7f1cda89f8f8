// What one trial came to: a row of results.csv, in the columns of the design. Absent figures are absent, never 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stoker/tune/knobs.h"

namespace stoker::tune {

enum class Status : std::uint8_t {
  ok,
  oom_device,
  oom_host,
  oom_shm,
  oom_fd,
  oom_suspect,
  runtime_fault,
  worker_died,
  hang,
  killed_unknown,
  user_error,
  skipped_memory,
  pruned,
};
std::string_view name(Status status) noexcept;
std::optional<Status> parse_status(std::string_view text) noexcept;  // none: not one of ours

struct Row {
  std::uint64_t trial = 0;  // from 1
  Status status = Status::ok;
  Point knobs = {};
  std::optional<double> images_per_s = {}, ci_low = {}, ci_high = {};  // of the steady rate, queue-corrected; 95 %
  std::optional<std::uint64_t> steps = {}, warmup_steps = {};
  std::optional<double> step_ms = {}, data_ms = {}, h2d_ms = {}, compute_ms = {};  // per step
  std::string bound = {};    // "io_bound" or "compute_bound", as case A's column
  std::string verdict = {};  // "fetch_bound", "prep_bound", "handoff_bound", "compute_bound"
  std::optional<double> queue_depth = {};
  std::optional<std::uint64_t> host_peak_bytes = {}, device_allocated_bytes = {}, device_reserved_bytes = {};
  std::optional<double> cpu_seconds = {};
  std::string error = {};                    // one line; empty when ok
  std::optional<double> trial_seconds = {};  // all of the trial, with its start

  // The trial hung before it reported any progress: 0 steps were seen. It may be slow to start, or never report any.
  bool is_unseen() const noexcept { return status == Status::hang && steps == 0u; }
  bool ok() const noexcept { return status == Status::ok && images_per_s.value_or(0) > 0; }
};

}  // namespace stoker::tune
