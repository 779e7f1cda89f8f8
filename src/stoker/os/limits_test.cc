// Made-up trees of proc and sys files, as different hosts show them.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "stoker/os/cpu.h"
#include "stoker/os/memory.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

class Limits : public ::testing::Test {
 protected:
  Limits() {
    host_.file("sys/devices/system/cpu/online", "0-15\n");
    host_.file("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-15\n");
    host_.file("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
  }
  void put(const std::string& name, const std::string& text) { host_.file(name, text + "\n"); }
  Cores cores() { return effective_cores(host_.path()); }
  MemoryLimit memory() { return memory_limit(host_.path()); }

  TempFolder host_;
};

TEST_F(Limits, ABareMachineHasAllItsCoresAndMemory) {
  EXPECT_EQ(cores().available, 16);
  EXPECT_EQ(cores().limited_by, "");
  EXPECT_EQ(memory().bytes, std::uint64_t{16} << 30);
  EXPECT_EQ(memory().limited_by, "host memory");
}

TEST_F(Limits, IdleTimeIsThatOfAllCoresWithWaitingForDisks) {
  EXPECT_FALSE(core_time(host_.path()));
  const long ticks = ::sysconf(_SC_CLK_TCK);
  put("proc/stat", "cpu  1 2 3 " + std::to_string(4 * ticks) + " " + std::to_string(ticks) + " 6 7\ncpu0 9 9 9 9 9");
  EXPECT_EQ(core_time(host_.path())->idle, std::chrono::seconds(5));
}

TEST_F(Limits, CoresOfOthersAreBusyCoresThatAreNotOurs) {
  EXPECT_FALSE(core_time(host_.path()));
  const auto at = [&](long user, long idle, long steal) {
    const std::string ticks = std::to_string(::sysconf(_SC_CLK_TCK)).substr(1);  // "00"
    put("proc/stat", fmt::format("cpu  {0}{3} 0 0 {1}{3} 0 0 0 {2}{3} 0 0\ncpu0 9 9", user, idle, steal, ticks));
    return *core_time(host_.path());
  };
  const CoreTime from = at(100, 200, 5), to = at(130, 250, 5);
  EXPECT_EQ(cores_of_others(from, to, std::chrono::seconds(10), 20, 4), 1);  // 30 of 20 s x 4 cores busy, 10 ours
  EXPECT_EQ(cores_of_others(from, to, std::chrono::seconds(40), 20, 4), 0);
  EXPECT_EQ(cores_of_others(from, at(130, 210, 45), std::chrono::seconds(10), 20, 4), 1) << "stolen is not busy";
  EXPECT_FALSE(cores_of_others(from, from, std::chrono::seconds(0), 20, 4)) << "it does not count at all";
  EXPECT_FALSE(cores_of_others(from, to, std::chrono::seconds(0), 0, 4));
}

TEST_F(Limits, ProcessesOfOneJobDivideTheCoresUnlessTheyAreBoundToFewer) {
  const auto share = [&](int processes) { return effective_cores(host_.path(), processes); };
  EXPECT_EQ(share(4).available, 4);
  EXPECT_EQ(share(4).limited_by, "4 processes of this job on this machine");
  EXPECT_EQ(share(32).whole(), 1);
  put("proc/self/status", "Cpus_allowed_list:\t0-2");
  EXPECT_EQ(share(4).available, 3);
  EXPECT_EQ(share(4).limited_by, "affinity");
  EXPECT_EQ(share(8).available, 2);
}

TEST_F(Limits, TheAffinityMaskCounts) {
  put("proc/self/status", "Cpus_allowed_list:\t0-2,5");
  EXPECT_EQ(cores().available, 4);
  EXPECT_EQ(cores().online, 16);
  EXPECT_EQ(cores().limited_by, "affinity");
}

TEST_F(Limits, TheLeastOfAllGroupsAboveCountsV2) {
  put("proc/self/cgroup", "0::/user.slice/job/step");
  put("sys/fs/cgroup/user.slice/job/step/cpu.max", "max 100000");
  put("sys/fs/cgroup/user.slice/job/cpu.max", "150000 100000");
  put("sys/fs/cgroup/user.slice/cpu.max", "400000 100000");
  put("sys/fs/cgroup/user.slice/job/step/memory.max", "4294967296");
  put("sys/fs/cgroup/user.slice/job/memory.high", "2147483648");
  put("sys/fs/cgroup/user.slice/job/memory.max", "max");
  EXPECT_EQ(cores().available, 1.5);
  EXPECT_EQ(cores().whole(), 1);
  EXPECT_EQ(cores().limited_by, "cgroup quota 1.5 (/sys/fs/cgroup/user.slice/job/cpu.max)");
  EXPECT_EQ(memory().bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(memory().limited_by, "/sys/fs/cgroup/user.slice/job/memory.high");
}

TEST_F(Limits, AContainerWhoseMountIsItsOwnGroupV2) {
  put("proc/self/cgroup", "0::/");
  put("sys/fs/cgroup/cpu.max", "50000 100000");
  put("sys/fs/cgroup/memory.max", "1073741824");
  EXPECT_EQ(cores().available, 0.5);
  EXPECT_EQ(cores().whole(), 1);
  EXPECT_EQ(memory().limited_by, "/sys/fs/cgroup/memory.max");
}

TEST_F(Limits, QuotasOfV1AreReadFromTheMountThatMountinfoNames) {
  put("proc/self/cgroup", "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:name=systemd:/");
  put("proc/self/mountinfo",
      "30 25 0:26 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
      "31 25 0:27 / /mnt/memory ro - cgroup cgroup rw,memory");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  put("mnt/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712");
  put("mnt/memory/docker/memory.limit_in_bytes", "536870912");
  EXPECT_EQ(cores().available, 3);
  EXPECT_EQ(cores().limited_by, "cgroup quota 3 (/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us)");
  EXPECT_EQ(memory().bytes, std::uint64_t{512} << 20);
  EXPECT_EQ(memory().limited_by, "/mnt/memory/docker/memory.limit_in_bytes");
}

TEST_F(Limits, NoLimitInV1IsNoLimit) {
  put("proc/self/cgroup", "5:cpu:/\n4:memory:/");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(cores().limited_by, "");
  EXPECT_EQ(memory().limited_by, "host memory");
}

TEST_F(Limits, CpusetsOfBothVersionsCount) {
  put("proc/self/cgroup", "0::/job");
  put("sys/fs/cgroup/job/cpuset.cpus.effective", "0-7");
  EXPECT_EQ(cores().available, 8);
  EXPECT_EQ(cores().limited_by, "cpuset (/sys/fs/cgroup/job/cpuset.cpus.effective)");
  put("proc/self/cgroup", "3:cpuset:/job");
  put("sys/fs/cgroup/cpuset/job/cpuset.cpus", "0,2,4");
  EXPECT_EQ(cores().available, 3);
  EXPECT_EQ(cores().limited_by, "cpuset (/sys/fs/cgroup/cpuset/job/cpuset.cpus)");
}

TEST_F(Limits, NonsenseIsIgnored) {
  put("proc/self/cgroup", "garbage\n0:\n::\n0::relative\n0::/job");
  put("sys/fs/cgroup/job/cpu.max", "");
  put("sys/fs/cgroup/job/memory.max", "lots");
  put("sys/fs/cgroup/job/cpuset.cpus", "a-b");
  put("sys/fs/cgroup/cpu.max", "0 0");
  EXPECT_EQ(cores().available, 16);
  EXPECT_EQ(memory().limited_by, "host memory");
}

TEST(ThisMachine, HasCoresMemoryAndClocksThatRun) {
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  const Cores cores = effective_cores();
  EXPECT_GT(cores.available, 0);
  EXPECT_LE(cores.available, CPU_COUNT(&set));
  EXPECT_GT(memory_limit().bytes, std::uint64_t{1} << 20);
  EXPECT_GT(process_memory().anonymous_bytes, 0u);
  EXPECT_GE(process_memory().peak_bytes, process_memory().anonymous_bytes);
  const auto before = thread_cpu_time();
  volatile int work = 0;
  while (thread_cpu_time() <= before) work = work + 1;
  EXPECT_GE(process_cpu_time(), thread_cpu_time());
}

}  // namespace
}  // namespace stoker::os
