#include "stoker/measure/record_file.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/os/temp_folder_test.h"

namespace stoker::measure {
namespace {

using Lines = std::vector<std::string>;

Lines poll(RecordFolder& folder) {
  Lines lines;
  folder.poll([&](int pid, std::string_view line) { lines.push_back(std::to_string(pid) + " " + std::string(line)); });
  return lines;
}

std::string allocated(std::string text) {
  text.resize(4096, '\0');
  return text;
}

TEST(RecordFolder, ReadsLinesAsTheyAppear) {
  const os::TempFolder temp;
  RecordFolder folder(temp.path());
  EXPECT_EQ(poll(folder), Lines{});
  temp.file("12-99-000000.jsonl", allocated("one\ntw"));
  EXPECT_EQ(poll(folder), Lines{"12 one"});
  temp.file("12-99-000000.jsonl", allocated("one\ntwo\n"));
  EXPECT_EQ(poll(folder), Lines{"12 two"});
  EXPECT_EQ(poll(folder), Lines{});
}

TEST(RecordFolder, GoesOnWithTheNextSegmentAndCountsLostOnes) {
  const os::TempFolder temp;
  RecordFolder folder(temp.path(), true);
  temp.file("12-99-000000.jsonl", "one\n");
  temp.file("12-99-000001.jsonl", allocated("two\n"));
  EXPECT_EQ(poll(folder), (Lines{"12 one", "12 two"}));
  EXPECT_FALSE(std::filesystem::exists(temp.path() + "/12-99-000000.jsonl"));
  temp.file("12-99-000005.jsonl", "three\n");
  EXPECT_EQ(poll(folder), Lines{"12 three"});
  EXPECT_EQ(folder.lost_segments(), 3u);
}

TEST(RecordFolder, LeavesOtherFilesAlone) {
  const os::TempFolder temp;
  RecordFolder folder(temp.path(), true);
  temp.file("notes.txt", "x\n");
  temp.file("x-1.jsonl.partial", "x\n");
  EXPECT_EQ(poll(folder), Lines{});
}

TEST(RecordFolder, AProcessNumberUsedTwiceIsTwoProcesses) {
  const os::TempFolder temp;
  RecordFolder folder(temp.path());
  temp.file("12-50-000000.jsonl", "old\n");
  EXPECT_EQ(poll(folder), Lines{"12 old"});
  temp.file("12-90-000000.jsonl", "new\n");
  EXPECT_EQ(poll(folder), Lines{"12 new"});
}

}  // namespace
}  // namespace stoker::measure
