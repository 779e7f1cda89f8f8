// What doctor sees of a machine, and what it advises.
#include "stoker/feed/machine.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "stoker/base/units.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::feed {
namespace {

using std::chrono::milliseconds;

Machine good_machine() {
  Machine machine;
  machine.vectors = "AVX2";
  machine.cores.available = machine.cores.online = 8;
  machine.cores_of_others = 0.1;
  machine.memory.bytes = 64 * kGiB;
  machine.shm = os::Space{.used_bytes = 0, .total_bytes = 32 * kGiB, .free_bytes = 32 * kGiB};
  machine.has_ring = true;
  machine.open_files = 65536;
  machine.disk_rates = storage::DiskRates{2e9, 3e9, 100};
  return machine;
}

std::vector<std::string> subjects(const Machine& machine) {
  std::vector<std::string> about;
  for (const MachineAdvice& advice : advise(machine)) {
    EXPECT_FALSE(advice.what.empty());
    EXPECT_FALSE(advice.remedy.in_python().empty());
    about.push_back(advice.about);
  }
  return about;
}

TEST(MachineAdvice, IsEmptyWhereNothingIsMissing) {
  EXPECT_TRUE(advise(good_machine()).empty());
}

TEST(MachineAdvice, NamesEachThingThatIsMissing) {
  using Words = std::vector<std::string>;
  Machine machine = good_machine();
  machine.cores.available = 1;
  EXPECT_EQ(subjects(machine), Words{"cores"});
  machine = good_machine();
  machine.cores_of_others = 5;
  EXPECT_EQ(subjects(machine), Words{"busy"});
  machine = good_machine();
  machine.shm->total_bytes = 64 * kMiB;
  EXPECT_EQ(subjects(machine), Words{"shm"});
  machine = good_machine();
  machine.has_ring = false;
  machine.why_no_ring = "Operation not permitted";
  EXPECT_EQ(subjects(machine), Words{"io_uring"});
  machine = good_machine();
  machine.open_files = 1024;
  EXPECT_EQ(subjects(machine), Words{"open_files"});
  machine = good_machine();
  machine.vectors.clear();
  EXPECT_EQ(subjects(machine), Words{"cpu"});
  machine = good_machine();
  machine.disk_rates->single_bytes_per_s = 50e6;
  EXPECT_EQ(subjects(machine), Words{"disk"});
}

TEST(MachineAdvice, OffersBlocksOnlyWhereNeighboursAreFaster) {
  Machine machine = good_machine();
  machine.disk_rates = storage::DiskRates{20e6, 150e6, 100};
  EXPECT_NE(advise(machine).at(0).remedy.in_python().find("blocks"), std::string::npos);
  machine.disk_rates = storage::DiskRates{20e6, 21e6, 100};
  EXPECT_EQ(advise(machine).at(0).remedy.in_python().find("blocks"), std::string::npos);
}

TEST(Machine, IsSeenAndTheTrialLeavesNothing) {
  const os::TempFolder folder;
  const Machine machine = look_at_machine({.folder = folder.path(),
                                           .trial_bytes = 4 * kMiB,
                                           .disk_time = milliseconds(20),
                                           .core_time = milliseconds(5),
                                           .nvml = "no-such-library.so"});
  EXPECT_GT(machine.cores.available, 0);
  EXPECT_GT(machine.memory.bytes, 0u);
  EXPECT_GT(machine.open_files, 0u);
  EXPECT_TRUE(machine.accelerators.empty());
  EXPECT_EQ(machine.has_ring, machine.why_no_ring.empty());
  EXPECT_EQ(machine.disk_rates.has_value(), machine.why_no_disk_rates.empty()) << machine.why_no_disk_rates;
  EXPECT_GT(machine.disk_rates.value_or(storage::DiskRates{1, 1, 1}).single_bytes_per_s, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Machine, SaysWhyADiskWasNotRead) {
  const Machine machine = look_at_machine({.folder = "/nowhere/at/all", .core_time = milliseconds(1)});
  EXPECT_FALSE(machine.disk_rates);
  EXPECT_NE(machine.why_no_disk_rates.find("/nowhere/at/all"), std::string::npos) << machine.why_no_disk_rates;
}

}  // namespace
}  // namespace stoker::feed
