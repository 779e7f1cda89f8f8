#include "stoker/measure/run_job.h"

#include <gtest/gtest.h>

namespace stoker::measure {
namespace {

TEST(SuppliedLoaders, TakesTheLastLineOfEachLoaderAndPassesOverTheRest) {
  const auto loaders = supplied_loaders({
      R"({"pid": 7, "loader": 1, "file": "/job/train.py", "line": 31, "replaced": true, "samples": 10})",
      "not json",
      R"(["neither"])",
      R"({"pid": 7, "loader": 2, "file": "/job/train.py", "line": 40, "replaced": false, "why": "RandAugment is not known"})",
      R"({"pid": 7, "loader": 1, "file": "/job/train.py", "line": 31, "replaced": true, "samples": 2560,
          "samples_per_s": 1234.4, "gain": 4.04, "by_python": 2})",
  });
  ASSERT_EQ(loaders.size(), 2u);
  EXPECT_EQ(loaders[0].text(),
            "train.py:31: replaced, 2,560 samples, 1,234 samples/s; the job's own code took about 4.0x as long for the "
            "first samples; "
            "the job's own code made 2 samples");
  EXPECT_EQ(loaders[1].text(), "train.py:40: not replaced: RandAugment is not known");
  EXPECT_EQ(to_json(loaders[1]).dump(), R"({"pid":7,"file":"/job/train.py","line":40,"name":"","rank":null,)"
                                        R"("replaced":false,"why":"RandAugment is not known","samples":0,)"
                                        R"("samples_per_s":0.0,"gain":null,"by_python":0,)"
                                        R"("text":"train.py:40: not replaced: RandAugment is not known"})");
}

TEST(SuppliedLoaders, NeedsNoPlace) {
  EXPECT_EQ(supplied_loaders({R"({"pid": 7, "loader": 1, "file": null, "replaced": false, "why": "x"})"})[0].text(),
            "a DataLoader: not replaced: x");
}

TEST(RunJob, GivesTheExitCodeOfTheJob) {
  EXPECT_EQ(run_job({.command = {"sh", "-c", "exit 7"}}).code, 7);
  EXPECT_EQ(
      run_job({.command = {"sh", "-c", "test \"$STOKER_SUPPLY\" = 1 && test -d \"$STOKER_RUN_DIR\""}, .supply = true})
          .code,
      0);
  EXPECT_EQ(run_job({.command = {"sh", "-c", "test \"$STOKER_SETTINGS\" = '{}' && test -z \"$STOKER_SUPPLY\""},
                     .settings = "{}"})
                .code,
            0);
}

}  // namespace
}  // namespace stoker::measure
