// How many cores other programs keep busy, from its making on; what this process and its ended children use is its own.
// One thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "stoker/os/cpu.h"

namespace stoker::cli {

class OtherPrograms {
 public:
  // Cores on average, so far. None where /proc does not say, or a quota or mask gives this process fewer than there
  // are.
  std::optional<double> cores() const {
    const os::Cores all = os::effective_cores();
    const auto now = os::core_time();
    if (!now || !before_ || !all.limited_by.empty()) return std::nullopt;
    return os::cores_of_others(*before_, *now, own() - own_,
                               std::chrono::duration<double>(Clock::now() - began_).count(), all.online);
  }
  // Where that is enough to change what was measured; else empty.
  std::string note() const {
    constexpr double kMatter = 0.25;  // of the cores
    const double all = os::effective_cores().available, busy = cores().value_or(0);
    if (busy < kMatter * all) return "";
    return fmt::format(
        "other programs kept {:.1f} of {:g} cores busy meanwhile: rates may be lower, and are less sure, than on a "
        "quiet machine",
        busy, all);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static std::chrono::nanoseconds own() { return os::process_cpu_time() + os::children_cpu_time(); }

  Clock::time_point began_ = Clock::now();
  std::optional<os::CoreTime> before_ = os::core_time();
  std::chrono::nanoseconds own_ = own();
};

}  // namespace stoker::cli
