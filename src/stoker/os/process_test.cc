#include "stoker/os/process.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

TEST(Process, TreeFollowsChildrenOfEveryThread) {
  const TempFolder root;
  root.file("proc/10/task/10/children", "11 12 ");
  root.file("proc/10/task/13/children", "14");
  root.file("proc/12/task/12/children", "15 ");
  std::vector<int> tree = process_tree(10, root.path());
  std::sort(tree.begin(), tree.end());  // threads come in any order
  EXPECT_EQ(tree, (std::vector<int>{10, 11, 12, 14, 15}));
}

TEST(Process, TheBootIdIsALine) {
  const TempFolder root;
  EXPECT_EQ(boot_id(root.path()), std::nullopt);
  root.file("proc/sys/kernel/random/boot_id", "0d3c-11\n");
  EXPECT_EQ(boot_id(root.path()), "0d3c-11");
}

TEST(Process, CountersStandAfterANameWithBrackets) {
  const TempFolder root;
  root.file("proc/10/stat", "10 (pt (data) w) D 1 1 1 0 -1 4194304 100 0 0 0 250 50 30 10 20 0 1 0 5 1 1");
  root.file(
      "proc/10/io",
      "rchar: 5000\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n");
  const auto counters = process_counters(10, root.path());
  ASSERT_TRUE(counters);
  EXPECT_EQ(counters->state, 'D');
  EXPECT_EQ(counters->cpu, std::chrono::nanoseconds(300 * (1'000'000'000 / ::sysconf(_SC_CLK_TCK))));
  EXPECT_EQ(counters->children_cpu, std::chrono::nanoseconds(40 * (1'000'000'000 / ::sysconf(_SC_CLK_TCK))));
  EXPECT_EQ(counters->read_bytes, 4096u);
  EXPECT_EQ(counters->read_chars, 5000u);
  EXPECT_EQ(counters->written_bytes, 8192u);
}

TEST(Process, ThreadsHaveCountersOfTheirOwn) {
  const TempFolder root;
  root.file("proc/10/task/10/stat", "10 (python) S 1 1");
  root.file("proc/10/task/11/stat", "11 (read (1)) D 1 1");
  root.file("proc/10/task/11/schedstat", "5000 70 3");
  root.file("proc/10/task/11/io", "rchar: 9\nread_bytes: 4096\n");
  std::vector<ThreadCounters> threads = thread_counters(10, 64, root.path());
  std::sort(threads.begin(), threads.end(), [](const auto& a, const auto& b) { return a.thread < b.thread; });
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_EQ(threads[0].read_bytes, std::nullopt);
  EXPECT_EQ(threads[1].name, "read (1)");
  EXPECT_EQ(threads[1].state, 'D');
  EXPECT_EQ(threads[1].cpu.count(), 5000);
  EXPECT_EQ(threads[1].delay.count(), 70);
  EXPECT_EQ(threads[1].read_bytes, 4096u);
  EXPECT_EQ(thread_counters(10, 1, root.path()).size(), 1u);
  EXPECT_TRUE(thread_counters(99, 64, root.path()).empty());
}

TEST(Process, SharedPagesAreCountedOnce) {
  const TempFolder root;
  root.file("proc/10/smaps_rollup",
            "55d0-7fff ---p 00000000 00:00 0 [rollup]\nRss:  2600 kB\nPss:   685 kB\nPss_Anon: 1 kB\nPrivate_Clean:  "
            "98 kB\nPrivate_Dirty: 100 kB\n");
  root.file("proc/10/statm", "9000 700 200 5 0 600 0");
  EXPECT_EQ(process_resident_bytes(10, root.path()), 700u * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(process_anonymous_bytes(10, root.path()), 500u * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  const auto shares = process_shares(10, root.path());
  ASSERT_TRUE(shares);
  EXPECT_EQ(shares->pss_bytes, 685u * 1024);
  EXPECT_EQ(shares->uss_bytes, 198u * 1024);
}

TEST(Process, MountIsTheDeepestOne) {
  const TempFolder root;
  root.file("proc/self/mountinfo",
            "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
            "40 22 0:50 / /mnt/s3\\040bucket rw - fuse.mountpoint-s3 mountpoint-s3 rw\n");
  EXPECT_EQ(mount_under("/mnt/s3 bucket/train/1.jpg", root.path())->type, "fuse.mountpoint-s3");
  EXPECT_EQ(mount_under("/mnt/s3 bucketeer/1.jpg", root.path())->type, "ext4");
}

TEST(Process, MachineCounters) {
  const TempFolder root;
  root.file(
      "proc/pressure/io",
      "some avg10=0.07 avg60=0.26 avg300=0.55 total=558222397\nfull avg10=0.07 avg60=0.20 avg300=0.37 total=207\n");
  root.file("proc/net/dev",
            "Inter-|   Receive\n face |bytes\n    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n  eth0: 100 1 0 0 0 0 0 0 "
            "20 1 0 0 0 0 0 0\n  eth1:1 1 0 0 0 0 0 0 2 1 0 0 0 0 0 0\n");
  root.file("proc/meminfo", "MemTotal:       100 kB\nMemAvailable:    42 kB\n");
  EXPECT_EQ(pressure_us("io", root.path()), 558222397u);
  EXPECT_EQ(network_counters(root.path())->received_bytes, 101u);
  EXPECT_EQ(network_counters(root.path())->sent_bytes, 22u);
  EXPECT_EQ(available_memory(root.path()), 42u * 1024);
}

TEST(Process, WhatIsMissingIsNotZero) {
  const TempFolder root;
  EXPECT_EQ(process_tree(10, root.path()), std::vector<int>{10});
  EXPECT_FALSE(process_counters(10, root.path()));
  EXPECT_FALSE(process_shares(10, root.path()));
  EXPECT_FALSE(process_resident_bytes(10, root.path()));
  EXPECT_FALSE(process_anonymous_bytes(10, root.path()));
  EXPECT_FALSE(process_run_delay(10, root.path()));
  EXPECT_FALSE(open_descriptors(10, root.path()));
  EXPECT_FALSE(pressure_us("io", root.path()));
  EXPECT_FALSE(network_counters(root.path()));
  EXPECT_FALSE(available_memory(root.path()));
  EXPECT_FALSE(space_of("/nonexistent"));
}

TEST(Process, TellsTheRoomOfADisk) {
  const TempFolder folder;
  const auto space = space_of(folder.path());
  ASSERT_TRUE(space);
  if (space->total_bytes == 0) GTEST_SKIP() << "this file system does not say";
  EXPECT_LE(space->used_bytes + space->free_bytes, space->total_bytes);
}

TEST(Process, ReadsThisOne) {
  const TempFolder folder;
  const std::string path = folder.file("data.bin", "x");
  const auto real = std::filesystem::canonical(path).string();
  FILE* file = fopen(path.c_str(), "r");
  bool found = false;
  for (const std::string& open : open_files(::getpid())) found = found || open == real;
  fclose(file);
  EXPECT_TRUE(found);
  ASSERT_TRUE(process_counters(::getpid()));
  EXPECT_GT(process_counters(::getpid())->read_chars.value_or(1), 0u);
}

}  // namespace
}  // namespace stoker::os
