#include "stoker/os/local_ranks.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "stoker/os/cgroup.h"

namespace stoker::os {
namespace {

constexpr int kMostRanks = 100'000;
constexpr int kMostCpus = 1 << 18;

struct Launcher {
  const char *size, *rank;
  std::vector<const char*> job;  // variables that tell its jobs apart
};

const Launcher kLaunchers[] = {
    {"LOCAL_WORLD_SIZE", "LOCAL_RANK", {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"}},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {"MPI_LOCALNRANKS", "MPI_LOCALRANKID", {"PMI_KVSNAME", "HYDRA_BSTRAP_LOCALHOST"}},
};

std::optional<int> whole_number(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0 || value > kMostRanks)
    return std::nullopt;
  return value;
}

std::vector<int> cpus_in(const std::string& list) {
  std::vector<int> cpus;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0, last = 0;
    const int read = std::sscanf(part.c_str(), "%d-%d", &first, &last);
    if (read < 1) continue;
    if (read < 2) last = first;
    for (int cpu = std::max(0, first); cpu <= std::min(last, kMostCpus - 1); ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> allowed_cpus(const std::string& root) {
  std::istringstream lines(read_small_file(under(root, "proc/self/status")).value_or(""));
  constexpr std::string_view kAllowed = "Cpus_allowed_list:";
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kAllowed)) return cpus_in(line.substr(kAllowed.size()));
  }
  return {};
}

}  // namespace

int tasks_on_node(const std::string& list, int node) noexcept {
  int first = 0;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    int tasks = 0, nodes = 1;
    const std::string part = list.substr(at, end - at);
    if (std::sscanf(part.c_str(), "%d(x%d)", &tasks, &nodes) < 1 || tasks < 1 || nodes < 1 || tasks > kMostRanks)
      return 0;
    if (node < first + nodes) return tasks;
    first += nodes;
    at = end + 1;
  }
  return 0;
}

LocalRanks local_ranks(const ReadVariable& variable, int parent) {
  const auto job_of = [&](const std::vector<const char*>& names) {
    std::string job;
    for (const char* const name : names) {
      if (const char* const value = variable(name)) job += fmt::format("{}={};", name, value);
    }
    return job.empty() ? fmt::format("parent={}", parent) : job;
  };
  for (const Launcher& launcher : kLaunchers) {
    const auto count = whole_number(variable(launcher.size));
    const auto rank = whole_number(variable(launcher.rank));
    if (!count || *count < 1 || !rank || *rank >= *count) continue;
    return {*rank, *count, fmt::format("{}={}", launcher.size, *count), job_of(launcher.job)};
  }
  // In a batch script, outside of a step, one process stands for all tasks.
  if (variable("SLURM_STEP_NUM_TASKS") == nullptr) return {};
  const auto rank = whole_number(variable("SLURM_LOCALID"));
  if (!rank) return {};
  const std::string job = job_of({"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"});
  if (const char* const list = variable("SLURM_STEP_TASKS_PER_NODE")) {
    const int count = tasks_on_node(list, whole_number(variable("SLURM_NODEID")).value_or(0));
    if (count > *rank) return {*rank, count, fmt::format("SLURM_STEP_TASKS_PER_NODE={}", list), job};
  }
  const auto count = whole_number(variable("SLURM_NTASKS_PER_NODE"));
  if (count && *count > *rank) return {*rank, *count, fmt::format("SLURM_NTASKS_PER_NODE={}", *count), job};
  return {};
}

LocalRanks local_ranks() {
  return local_ranks([](const char* name) -> const char* { return std::getenv(name); }, ::getppid());
}

std::vector<int> numa_cpus(const LocalRanks& ranks, const std::string& root) {
  const std::vector<int> allowed = allowed_cpus(root);
  std::vector<std::vector<int>> nodes;
  for (const int node : cpus_in(read_small_file(under(root, "sys/devices/system/node/online")).value_or(""))) {
    std::vector<int> usable;
    for (const int cpu : cpus_in(
             read_small_file(under(root, fmt::format("sys/devices/system/node/node{}/cpulist", node))).value_or(""))) {
      if (std::find(allowed.begin(), allowed.end(), cpu) != allowed.end()) usable.push_back(cpu);
    }
    if (!usable.empty()) nodes.push_back(std::move(usable));
  }
  if (nodes.size() < 2 || ranks.count < static_cast<int>(nodes.size())) return {};
  return nodes[static_cast<std::size_t>(ranks.rank) * nodes.size() / static_cast<std::size_t>(ranks.count)];
}

bool bind_thread(const std::vector<int>& cpus) noexcept {
  if (cpus.empty()) return false;
  const int most = *std::max_element(cpus.begin(), cpus.end()) + 1;
  cpu_set_t* const set = CPU_ALLOC(most);
  if (set == nullptr) return false;
  const std::size_t bytes = CPU_ALLOC_SIZE(most);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, set);
  const bool is_bound = ::sched_setaffinity(0, bytes, set) == 0;
  CPU_FREE(set);
  return is_bound;
}

}  // namespace stoker::os
