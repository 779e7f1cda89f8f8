#include "stoker/plan/job_command.h"

#include <sstream>

#include <gtest/gtest.h>

namespace stoker::plan {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// The command with num_workers changed from 0 to 2, or "-" where it cannot be.
std::string with_workers_flag(const std::string& command, const std::string& now = "0") {
  const auto changed = with_knob(words(command), "num_workers", now, "2");
  if (!changed) return "-";
  std::string text;
  for (const std::string& word : *changed) text += (text.empty() ? "" : " ") + word;
  return text;
}

TEST(JobCommand, ChangesTheFlagThatSetsTheWorkers) {
  EXPECT_EQ(with_workers_flag("python main.py -j 0 --epochs 1"), "python main.py -j 2 --epochs 1");
  EXPECT_EQ(with_workers_flag("python main.py -j0"), "python main.py -j2");
  EXPECT_EQ(with_workers_flag("python main.py --workers 0"), "python main.py --workers 2");
  EXPECT_EQ(with_workers_flag("python main.py --num-workers=0"), "python main.py --num-workers=2");
  EXPECT_EQ(with_workers_flag("python main.py --data.num_workers 0"), "python main.py --data.num_workers 2");
  EXPECT_EQ(with_workers_flag("python main.py +data.num_workers=0 lr=0"), "python main.py +data.num_workers=2 lr=0");
  EXPECT_EQ(with_workers_flag("python run.py --dataloader_num_workers 0"), "python run.py --dataloader_num_workers 2");
}

TEST(JobCommand, LeavesAloneWhatItCannotBeSureOf) {
  EXPECT_EQ(with_workers_flag("python main.py"), "-") << "the program sets it";
  EXPECT_EQ(with_workers_flag("python main.py --workers 4"), "-") << "that is not what the loader had";
  EXPECT_EQ(with_workers_flag("python main.py --workers 0 -j 0"), "-") << "which of the two?";
  EXPECT_EQ(with_workers_flag("python main.py --gpu 0 --seed 0 workers 0"), "-");
  EXPECT_EQ(with_workers_flag("python main.py --batch-size 0"), "-");
  EXPECT_FALSE(with_knob(words("python main.py --depth 3"), "depth", "3", "4"));
}

TEST(JobCommand, KnowsOtherKnobs) {
  EXPECT_EQ(with_knob(words("train -b 32"), "batch_size", "32", "64"), words("train -b 64"));
  EXPECT_EQ(with_knob(words("train --per_device_train_batch_size 8"), "batch_size", "8", "16"),
            words("train --per_device_train_batch_size 16"));
}

}  // namespace
}  // namespace stoker::plan
