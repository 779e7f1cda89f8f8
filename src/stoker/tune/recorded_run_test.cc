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

TEST(RecordedRun, AGridThatStoppedEarlySaysHowFarItCame) {
  RecordedRun run{.place = "run", .is_folder = true};
  run.choice.points = 3;
  run.config = {{"search", "grid"}, {"grid", {{"batch_size", {"8", "16"}}, {"num_workers", {"1", "2"}}}}};
  EXPECT_EQ(unfinished_of(run), "3 of 4 points have a row");
  run.config["search"] = "auto";
  EXPECT_EQ(unfinished_of(run), "");
}

TEST(RecordedRun, AFolderIsReadWithWhatItHolds) {
  const os::TempFolder folder;
  os::write_file(folder.path() + "/results.csv", "trial,status,num_workers,images_per_s\n1,ok,4,100\n");
  os::write_file(folder.path() + "/config.json", "{\"source\": \"data\"}");

  const RecordedRun run = read_rows(folder.path());

  EXPECT_TRUE(run.is_folder);
  EXPECT_EQ(run.knobs, std::vector<std::string>{"num_workers"});
  ASSERT_EQ(run.rows.size(), 1u);
  EXPECT_EQ(run.rows[0].images_per_s, 100);
  EXPECT_EQ(read_json_of(run, "config.json").at("source"), "data");
  EXPECT_TRUE(read_json_of(run, "subset.json").is_null());
  EXPECT_TRUE(read_blocks(run, 1).empty());
  EXPECT_EQ(files_of(run.place, {"results.csv", "report.md"}), std::vector<std::string>{"results.csv"});
}

}  // namespace
}  // namespace stoker::tune
