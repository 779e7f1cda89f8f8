// What launchers tell their processes, and made-up trees of NUMA nodes.
#include "stoker/os/local_ranks.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

LocalRanks ranks_in(const std::map<std::string, std::string>& environment, int parent = 7) {
  return local_ranks(
      [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      parent);
}

TEST(LocalRanksOfALauncher, AreThoseThatItTells) {
  const LocalRanks torchrun = ranks_in({{"LOCAL_WORLD_SIZE", "4"}, {"LOCAL_RANK", "3"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(torchrun.rank, 3);
  EXPECT_EQ(torchrun.count, 4);
  EXPECT_EQ(torchrun.origin, "LOCAL_WORLD_SIZE=4");
  EXPECT_EQ(torchrun.job, "MASTER_PORT=29500;");
  EXPECT_EQ(ranks_in({{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}).count, 2);
  EXPECT_EQ(ranks_in({{"MPI_LOCALNRANKS", "8"}, {"MPI_LOCALRANKID", "7"}}).rank, 7);
  EXPECT_EQ(ranks_in({{"MPI_LOCALNRANKS", "8"}, {"MPI_LOCALRANKID", "7"}}).job, "parent=7");
  EXPECT_EQ(ranks_in({}).count, 1);
}

TEST(LocalRanksOfALauncher, AreIgnoredWhereTheyMakeNoSense) {
  EXPECT_EQ(ranks_in({{"LOCAL_WORLD_SIZE", "4"}}).count, 1);
  EXPECT_EQ(ranks_in({{"LOCAL_WORLD_SIZE", "4"}, {"LOCAL_RANK", "4"}}).count, 1);
  EXPECT_EQ(ranks_in({{"LOCAL_WORLD_SIZE", "four"}, {"LOCAL_RANK", "0"}}).count, 1);
  EXPECT_EQ(ranks_in({{"LOCAL_WORLD_SIZE", "-4"}, {"LOCAL_RANK", "-5"}}).count, 1);
}

TEST(LocalRanksOfASlurmStep, AreThoseOfItsNode) {
  std::map<std::string, std::string> step = {{"SLURM_LOCALID", "1"}, {"SLURM_NTASKS_PER_NODE", "4"}};
  EXPECT_EQ(ranks_in(step).count, 1) << "a batch script is one process";
  step["SLURM_STEP_NUM_TASKS"] = "7";
  EXPECT_EQ(ranks_in(step).count, 4);
  step["SLURM_STEP_TASKS_PER_NODE"] = "2(x3),1";
  step["SLURM_NODEID"] = "2";
  EXPECT_EQ(ranks_in(step).count, 2);
  EXPECT_EQ(ranks_in(step).origin, "SLURM_STEP_TASKS_PER_NODE=2(x3),1");
  EXPECT_EQ(tasks_on_node("2(x3),1", 3), 1);
  EXPECT_EQ(tasks_on_node("2(x3),1", 4), 0);
  EXPECT_EQ(tasks_on_node("x", 0), 0);
}

class NumaNodes : public ::testing::Test {
 protected:
  NumaNodes() {
    host_.file("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-7\n");
    host_.file("sys/devices/system/node/online", "0-1\n");
    host_.file("sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
    host_.file("sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
  }
  std::vector<int> cpus(int rank, int count) { return numa_cpus({rank, count, "", ""}, host_.path()); }

  TempFolder host_;
};

TEST_F(NumaNodes, AreSharedByNeighbouringRanks) {
  const std::vector<int> first = {0, 1, 4, 5}, second = {2, 3, 6, 7};
  EXPECT_EQ(cpus(0, 4), first);
  EXPECT_EQ(cpus(1, 4), first);
  EXPECT_EQ(cpus(2, 4), second);
  EXPECT_EQ(cpus(3, 4), second);
  EXPECT_EQ(cpus(2, 3), second);
}

TEST_F(NumaNodes, BindNobodyWhereARankNeedsMoreThanOne) {
  EXPECT_TRUE(cpus(0, 1).empty());
}

TEST_F(NumaNodes, BindNobodyWhoIsBoundAlready) {
  host_.file("proc/self/status", "Cpus_allowed_list:\t2-3\n");
  EXPECT_TRUE(cpus(0, 4).empty());
}

TEST_F(NumaNodes, AreNotNeededWhereThereIsOne) {
  host_.file("sys/devices/system/node/online", "0\n");
  EXPECT_TRUE(cpus(0, 4).empty());
}

}  // namespace
}  // namespace stoker::os
