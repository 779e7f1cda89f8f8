// The processes of one job that share this machine, as their launcher tells them: torchrun, Open MPI, MPICH and Intel
// MPI, or a Slurm step. Reads the environment: call it before another thread may change that.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stoker::os {

struct LocalRanks {
  int rank = 0;        // of this process on this machine
  int count = 1;       // processes of the job on this machine
  std::string origin;  // "LOCAL_WORLD_SIZE=4"; empty: this process is alone, as far as it knows
  std::string job;     // tells jobs on this machine apart; the same for all ranks of one job
};

using ReadVariable = std::function<const char*(const char* name)>;  // null: not set

LocalRanks local_ranks();
LocalRanks local_ranks(const ReadVariable& variable, int parent);  // `parent`: process id of the launcher

// The tasks on node `node` by Slurm's list: "2(x3),1" has 2 on nodes 0 to 2, and 1 on node 3. 0: there is no such node.
int tasks_on_node(const std::string& list, int node) noexcept;

// The CPUs of the NUMA node that rank `rank` of `count` belongs to, when neighbouring ranks share a node. Empty: the
// machine, or what this process may use of it, has one node, or fewer ranks than nodes. `root` as in effective_cores.
std::vector<int> numa_cpus(const LocalRanks& ranks, const std::string& root = "/");

// Lets the calling thread run on these CPUs only. False: the kernel refuses; the thread then runs as before.
bool bind_thread(const std::vector<int>& cpus) noexcept;

}  // namespace stoker::os
