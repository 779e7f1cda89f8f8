#include "stoker/tune/recorded_run.h"

#include <gtest/gtest.h>

#include "stoker/os/file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::tune {
namespace {

TEST(RecordedRun, BlocksOfATrialAreReadWithoutItsWarmUp) {
  const std::vector<Block> blocks = parse_blocks(
      "{\"event\": \"hello\"}\n"
      "{\"event\": \"block\", \"steps\": 5, \"samples\": 40, \"seconds\": 1, \"warmup\": true}\n"
      "{\"event\": \"block\", \"steps\": 2, \"samples\": 16, \"seconds\": 0.5, \"warmup\": false}\n"
      "{\"event\": \"blo");
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].samples, 16);
}

TEST(RecordedRun, AFolderIsReadWithWhatItHolds) {
  const os::TempFolder folder;
  os::write_file(folder.path() + "/results.csv", "trial,status,num_workers,images_per_s\n1,ok,4,100\n");
  os::write_file(folder.path() + "/config.json", "{\"source\": \"data\"}");

  RecordedRun run = read_rows(folder.path());
  read_settings(run);

  EXPECT_TRUE(run.is_folder);
  EXPECT_EQ(run.knobs, std::vector<std::string>{"num_workers"});
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].images_per_s, 100);
  ASSERT_TRUE(run.config);
  EXPECT_EQ(run.config->target.address, "data");
  EXPECT_FALSE(run.subset);
  EXPECT_TRUE(read_blocks(run, 1).empty());
  EXPECT_EQ(files_of(run.place, {"results.csv", "report.md"}), std::vector<std::string>{"results.csv"});
}

}  // namespace
}  // namespace stoker::tune
