#include "stoker/tune/run_data.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::tune {
namespace {

dataset::DatasetPtr open_plainly(const std::string& address, const dataset::OpenOptions& options) {
  return dataset::open(address, options);
}

// Four samples; nothing decodes them here.
struct Sounds {
  Sounds() {
    for (const char* name : {"a.wav", "b.wav", "c.wav", "d.wav"}) os::write_file(folder.path() + "/" + name, "RIFF");
  }
  RunConfig config() const {
    return {.target = {.address = folder.path()}, .knobs = {{"batch_size", {"2", "8"}}}, .search = "grid"};
  }
  os::TempFolder folder;
};

TEST(RunData, WithoutASubsetIsTheWholeDataSet) {
  const Sounds sounds;
  const RunData data = open_run_data(sounds.config(), open_plainly);
  ASSERT_TRUE(data.data);
  EXPECT_FALSE(data.subset);
  EXPECT_EQ(facts_of(data.data)->samples, 4u);
  EXPECT_EQ(facts_of(data.data)->fingerprint.size(), 16u);
  EXPECT_FALSE(facts_of(nullptr));
}

TEST(RunData, OfASubsetIsWrittenOnce) {
  const Sounds sounds;
  RunConfig config = sounds.config();
  config.narrowing.subset = 3;
  const RunData data = open_run_data(config, open_plainly);
  ASSERT_TRUE(data.subset);
  EXPECT_EQ(data.data->size(), 3u);
  const os::TempFolder run;
  write_subset(config, data, run.path());
  const std::string file = run.path() + "/subset.json";
  ASSERT_TRUE(os::exists(file));
  os::write_file(file, "mine");
  write_subset(config, data, run.path());
  EXPECT_EQ(os::read_text(file), "mine");
}

TEST(RunData, ABatchThatTheDataCannotFillIsRefusedUnlessItIsRepeated) {
  const Sounds sounds;
  RunConfig config = sounds.config();
  const RunData data = open_run_data(config, open_plainly);
  EXPECT_THROW(check_batches(config, data), Error);
  config.inflation_factor = 2;
  check_batches(config, data);
  config.inflation_factor.reset();
  config.target.function = "train:build";  // whose data need not be what the address names
  check_batches(config, data);
}

TEST(RunData, ThatOnlyTheJobCanOpenIsANote) {
  RunConfig config{.target = {.address = "/nowhere", .function = "train:build"}, .search = "grid"};
  config.narrowing.subset = 3;
  const RunData data = open_run_data(config, open_plainly);
  EXPECT_FALSE(data.data);
  EXPECT_EQ(data.notes.size(), 1u);
  config.target.function.clear();
  EXPECT_THROW(open_run_data(config, open_plainly), Error);
}

}  // namespace
}  // namespace stoker::tune
