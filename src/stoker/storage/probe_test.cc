#include "stoker/storage/probe.h"

#include <string>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::storage {
namespace {

TEST(Probe, MeasuresBothWaysOfReadingInFilesOfAnySize) {
  const os::TempFolder folder;
  for (const std::size_t size : {1u, 100u, 5000u, 3u << 20}) {
    const auto source = open_source(folder.file("f", std::string(size, 'x')), Storage::direct);
    for (const std::uint64_t sample : {1u, 16'000u, 64u << 20}) {
      const DiskRates rates = probe_disk(*source, sample, std::chrono::milliseconds(2));
      EXPECT_GT(rates.single_bytes_per_s, 0) << size << " " << sample;
      EXPECT_GT(rates.neighbour_bytes_per_s, 0) << size << " " << sample;
      EXPECT_GE(rates.reads, 64u);
    }
  }
}

TEST(Probe, AnEmptyFileHasNoRates) {
  const os::TempFolder folder;
  EXPECT_EQ(probe_disk(*open_source(folder.file("f", "")), 10, std::chrono::seconds(9)).reads, 0u);
}

TEST(Probe, AFailingDiskIsNamed) {
  const os::TempFolder folder;
  const auto source = open_source(folder.file("f", std::string(100'000, 'x')), Storage::direct);
  const os::InjectFault fault(os::Call::read, {.error_number = EIO, .times = 1000});
  EXPECT_THROW(probe_disk(*source, 4096, std::chrono::seconds(1)), Error);
}

TEST(Probe, AdvisesBlocksOnlyWhereTheyWouldHelp) {
  const DiskRates spinning{2e6, 180e6, 100}, solid{1.9e9, 2.8e9, 100};
  EXPECT_EQ(spinning.describe(true).in_python(),
            "this disk gives 2 MB/s of single samples and 180 MB/s of neighbours; shuffle=\"blocks\" would read up to "
            "90.0 times as fast");
  EXPECT_EQ(spinning.describe(false).in_python(),
            "this disk gives 2 MB/s of single samples and 180 MB/s of neighbours");
  EXPECT_EQ(solid.describe(true).in_python(),
            "this disk gives 1900 MB/s of single samples and 2800 MB/s of neighbours");
}

}  // namespace
}  // namespace stoker::storage
