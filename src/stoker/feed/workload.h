// Accelerators that can be emulated, by the names that MLPerf Storage gives them. Constant tables; from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stoker::feed {

// Figures of MLPerf Storage: what the accelerator eats, and the utilisation that counts as fed.
struct Workload {
  std::string_view name;
  std::uint64_t batch_size;
  double step_ms;
  double au_min;
};
std::span<const Workload> workloads();
const Workload& find_workload(const std::string& name);  // throws Error(usage), offering the nearest

}  // namespace stoker::feed
