#include "stoker/measure/host.h"

#include <cmath>

#include <gtest/gtest.h>

#include "stoker/os/temp_folder_test.h"

namespace stoker::measure {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr const char* kNoLibrary = "libno-such-nvml.so";

TEST(Accelerators, ReadsTheLibraryAndSaysWhatItDoesNotTell) {
  const os::TempFolder root;
  const Accelerators accelerators(STOKER_FAKE_NVML, root.path());
  const auto readings = accelerators.read();
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[0].name, "Fake 1");
  EXPECT_DOUBLE_EQ(*readings[0].busy, 0.37);
  EXPECT_EQ(readings[0].memory_used_bytes, 77000u);
  EXPECT_FALSE(readings[1].busy);
}

TEST(Accelerators, ReadsSysfsOfAmd) {
  const os::TempFolder root;
  root.file("sys/class/drm/card1/device/gpu_busy_percent", "98\n");
  root.file("sys/class/drm/card1/device/mem_info_vram_used", "1000\n");
  root.file("sys/class/drm/card1/device/mem_info_vram_total", "4000\n");
  root.file("sys/class/drm/card1-HDMI-A-1/device/gpu_busy_percent", "5\n");
  root.file("sys/class/drm/card2/device/vendor", "0x8086\n");
  const auto readings = Accelerators(kNoLibrary, root.path()).read();
  ASSERT_EQ(readings.size(), 1u);
  EXPECT_DOUBLE_EQ(*readings[0].busy, 0.98);
  EXPECT_EQ(readings[0].memory_total_bytes, 4000u);
}

TEST(Accelerators, SeeTheSwingFromFullToIdle) {
  std::vector<double> swinging;
  for (int i = 0; i < 10; ++i) swinging.insert(swinging.end(), {1.0, 0.95, 0.4, 0.0, 0.05});
  EXPECT_EQ(swings(swinging), 10u);
  EXPECT_EQ(swings({0.5, 0.6, 0.95, 0.5, 0.95}), 0u);
}

TEST(Growth, IsThatOfTheLaterHalf) {
  Growth growing, filled;
  for (int second = 0; second <= 150; ++second) {
    growing.add(second, 1e9 + 3e6 * second);
    filled.add(second, second < 20 ? 1e7 * second : 2e8);
  }
  growing.add(150.5, 1e6);  // it ends
  EXPECT_NEAR(*growing.per_second(), 3e6, 1e5);
  EXPECT_EQ(filled.per_second(), 0);
  EXPECT_FALSE(Growth().per_second());
  Growth days;
  for (int second = 0; second < 100'000; ++second) days.add(second, 1e9 + 1e4 * second);
  EXPECT_NEAR(*days.per_second(), 1e4, 100);
}

TEST(Growth, IsNotJudgedWithinTwoMinutes) {
  Growth warming;  // 62 MB in a minute of warm-up: 3.7 GB an hour, if it were to go on
  for (int second = 0; second <= 60; second += 5) warming.add(second, 1e9 + 1.03e6 * second);
  EXPECT_FALSE(warming.per_second());
  for (int second = 65; second <= 300; second += 5) warming.add(second, 1.062e9);
  EXPECT_EQ(warming.per_second(), 0);
}

TEST(Growth, IsSteadyOrNone) {
  Growth stepping, levelling, saw;
  for (int second = 0; second <= 600; second += 5) {
    stepping.add(second, second < 400 ? 1e9 : 1.1e9);                       // a second loader, say
    levelling.add(second, 1e9 * (2 - std::exp(-second / 100.0)));           // a cache that fills up
    saw.add(second, 1e9 + 2e5 * second + (second / 5 % 2 == 0 ? 0 : 2e6));  // noise on top of a leak
  }
  EXPECT_EQ(stepping.per_second(), 0);
  EXPECT_EQ(levelling.per_second(), 0);
  EXPECT_NEAR(*saw.per_second(), 2e5, 2e4);
}

// A job (pid 10) with one worker (pid 11) in a made-up /proc.
struct Machine {
  os::TempFolder root;
  void at(int second) {
    root.file("proc/10/task/10/children", "11");
    for (const char* pid : {"10", "11"}) {
      root.file(std::string("proc/") + pid + "/stat", std::string(pid) + " (python) S 1 1 1 0 -1 0 0 0 0 0 " +
                                                          std::to_string(second * 50) + " 0 0 0 20 0 1 0 5");
      root.file(std::string("proc/") + pid + "/io", "rchar: " + std::to_string(second * 1000000) + "\nread_bytes: " +
                                                        std::to_string(second * 250000) + "\nwrite_bytes: 0\n");
      root.file(std::string("proc/") + pid + "/smaps_rollup",
                "Pss: 900 kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: " + std::to_string(1000 + 2000 * second) + " kB\n");
    }
    root.file("proc/pressure/io", "some avg10=0 avg60=0 avg300=0 total=" + std::to_string(second * 250000) + "\n");
    root.file("proc/self/mountinfo",
              "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 22 0:50 / /mnt/s3 rw - fuse.mountpoint-s3 m rw\n");
    // 4 cores: three busy, half of one idle, the rest taken by the host
    root.file("sys/devices/system/cpu/online", "0-3");
    const auto ticks = [second](int cores_in_tenths) { return " " + std::to_string(second * 10 * cores_in_tenths); };
    root.file("proc/stat",
              "cpu " + ticks(20) + ticks(0) + ticks(10) + ticks(5) + ticks(0) + ticks(0) + ticks(0) + ticks(5));
    root.file("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 500000 kB\n");
    std::filesystem::create_directories(root.path() + "/proc/11/fd");
    std::error_code ignored;
    std::filesystem::create_symlink("/mnt/s3/train/1.jpg", root.path() + "/proc/11/fd/5", ignored);
    std::filesystem::create_symlink("/usr/lib/python3/x.py", root.path() + "/proc/11/fd/6", ignored);
  }
};

TEST(HostSampler, SumsTheJobsProcesses) {
  Machine machine;
  HostSampler sampler(false, machine.root.path(), kNoLibrary);
  for (int second = 0; second <= 130; ++second) {
    machine.at(second);
    sampler.sample(10, {11}, kSecond * (100 + second));
  }
  const HostFacts facts = sampler.facts();
  EXPECT_NEAR(facts.cores_used, 2 * 0.5, 0.05);  // at 100 ticks a second
  EXPECT_NEAR(*facts.cores_of_others, 3 - 2 * 0.5, 0.05);
  EXPECT_NE(host_line(facts).find("1.0 of 4 cores used, 2.0 by other programs"), std::string::npos) << host_line(facts);
  EXPECT_EQ(offer_of(facts).cores_of_others, 0) << "a core is free";
  EXPECT_NEAR(*facts.disk_read_bytes_per_s, 2 * 250000, 1);
  EXPECT_NEAR(*facts.page_cache_share, 0.75, 1e-9);
  EXPECT_NEAR(facts.pressure.at("io"), 0.25, 0.01);
  EXPECT_EQ(facts.pss_peak_bytes, 2u * 900 * 1024);
  EXPECT_EQ(facts.processes.at(0).pid, 11);
  EXPECT_NEAR(*facts.processes.at(0).growth_bytes_per_s, 2000 * 1024, 1);
  EXPECT_EQ(facts.data_file_systems.begin()->first, "fuse.mountpoint-s3 (/mnt/s3)");
  EXPECT_EQ(facts.data_file_systems.size(), 1u);

  const Offer offer = offer_of(facts);
  EXPECT_EQ(offer.memory_bytes, 500000u * 1024);
  EXPECT_NEAR(offer.worker_bytes_per_s, 2000 * 1024, 1);
  EXPECT_EQ(offer.data_file_system, "fuse.mountpoint-s3 (/mnt/s3)");
  EXPECT_NE(host_line(facts).find("data on fuse.mountpoint-s3 (/mnt/s3), accelerator unknown"), std::string::npos)
      << host_line(facts);
  EXPECT_TRUE(host_line(facts, true).ends_with("data on fuse.mountpoint-s3 (/mnt/s3)")) << "another line says it";
}

TEST(HostSampler, SeesTheMemoryOfAJobOfTwoSeconds) {
  Machine machine;
  HostSampler sampler(false, machine.root.path(), kNoLibrary);
  for (int tenth = 0; tenth < 20; ++tenth) {
    machine.at(tenth);  // the worker's own memory grows by 2000 KiB with each reading
    if (tenth == 10) sampler.loading_began();
    sampler.sample(10, tenth < 10 ? std::vector<int>{} : std::vector<int>{11}, kSecond * 100 + kSecond / 10 * tenth);
  }
  EXPECT_EQ(sampler.facts().processes.at(0).uss_bytes, (1000u + 2000u * 15) * 1024);  // read at once, and 0.5 s later
  sampler.sample_memory(kSecond * 102);
  EXPECT_EQ(sampler.facts().processes.at(0).uss_bytes, (1000u + 2000u * 19) * 1024);
}

TEST(HostSampler, CountsOnlyWhatHappensAfterItWasAttached) {
  Machine machine;
  HostSampler sampler(true, machine.root.path(), kNoLibrary);
  for (int second = 1000; second <= 1020; ++second) {
    machine.at(second);
    sampler.sample(10, {}, kSecond * second);
  }
  const HostFacts facts = sampler.facts();
  EXPECT_NEAR(facts.cores_used, 2 * 0.5, 0.05);
  EXPECT_NEAR(*facts.disk_read_bytes_per_s, 2 * 250000, 1);
  EXPECT_NEAR(facts.processes.at(0).seconds, 20, 0.1);
}

TEST(HostSampler, WhatIsNotThereIsUnknown) {
  const os::TempFolder root;
  HostSampler sampler(false, root.path(), kNoLibrary);
  sampler.sample(10, {}, kSecond);
  sampler.sample(10, {}, 2 * kSecond);
  const auto json = to_json(sampler.facts());
  EXPECT_EQ(json["accelerators"], "unknown");
  EXPECT_EQ(json["cores"]["used_by_others"], "unknown");
  EXPECT_EQ(json["disk"]["read_bytes_per_s"], "unknown");
  EXPECT_EQ(json["network"]["received_bytes_per_s"], "unknown");
  EXPECT_EQ(json["pressure"]["io"], "unknown");
  EXPECT_EQ(json["memory"]["pss_peak_bytes"], "unknown");
}

TEST(HostSampler, NamesGrowingMemoryAndAFullDevice) {
  HostFacts facts;
  facts.accelerators = {{"Fake", 0.5, 77, 80}};
  facts.accelerator_swings = 12;
  facts.open_descriptors_peak = 1000;
  facts.open_descriptors_limit = 1024;
  Answer answer;
  note_host(answer, facts);
  ASSERT_EQ(answer.notes.size(), 3u);
  EXPECT_NE(answer.notes[0].find("from full to idle and back 12 times"), std::string::npos);
  EXPECT_NE(answer.notes[1].find("activations"), std::string::npos);
  EXPECT_NE(answer.notes[2].find("ulimit -n"), std::string::npos);
}

}  // namespace
}  // namespace stoker::measure
