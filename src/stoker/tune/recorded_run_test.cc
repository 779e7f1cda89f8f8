#include "stoker/tune/recorded_run.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
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

TEST(RecordedRun, AllOfAFolderIsReadForAPlan) {
  const os::TempFolder folder;
  const std::string run_folder = folder.path() + "/run", data = folder.path() + "/rows.npy";
  std::filesystem::create_directories(run_folder + "/trials/0001");
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 100), }";
  header.resize(117, ' ');
  header += '\n';
  os::write_file(data, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + std::string(400, 'x'));
  os::write_file(run_folder + "/results.csv", "trial,status,num_workers,images_per_s\n1,ok,4,100\n2,oom_host,8,\n");
  os::write_file(run_folder + "/config.json", "{\"source\": \"" + data + "\"}");
  os::write_file(run_folder + "/trials/0001/steps.jsonl",
                 "{\"event\": \"block\", \"steps\": 2, \"samples\": 16, \"seconds\": 0.5, \"warmup\": false}\n");

  const RecordedRun run = read_all(run_folder);

  EXPECT_EQ(run.rows.size(), 2u);
  EXPECT_EQ(run.blocks.at(1).size(), 1u);
  ASSERT_TRUE(run.data);
  EXPECT_FALSE(run.data->is_file_per_sample);
  EXPECT_FALSE(run.data->decodes);
  EXPECT_EQ(run.data->sample_bytes, 100);
  EXPECT_TRUE(run.notes.empty());

  os::write_file(data, "no array any more");
  const RecordedRun later = read_all(run_folder);
  ASSERT_EQ(later.notes.size(), 1u);
  EXPECT_NE(later.notes[0].in_python().find("the data of the run has changed since"), std::string::npos);
  EXPECT_THROW(read_all(folder.path()), Error);  // it has no results.csv
}

}  // namespace
}  // namespace stoker::tune
