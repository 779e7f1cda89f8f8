// Copies of stores: what they hold, what a second run fetches, what an interruption leaves. Of folders:
// stage_local_test.cc.
#include "stoker/prepare/stage.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/random.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/os/fault.h"
#include "stoker/os/read_file.h"
#include "stoker/prepare/contents_test.h"
#include "stoker/prepare/object_reader.h"
#include "stoker/storage/any_store_test.h"

namespace stoker::prepare {
namespace {

namespace fs = std::filesystem;
using dataset::error_of;
using dataset::mentions;
using dataset::Tree;
using storage::AnyStore;
using storage::StoreKind;

class Stage : public testing::TestWithParam<StoreKind> {
 protected:
  Stage() : store_(GetParam()) {
    for (const char* const cls : {"ant", "bee", "cat", "dog"}) {
      for (int i = 0; i < 3; ++i) put(fmt::format("{}/{}.wav", cls, i), fmt::format("bytes of {} {}", cls, i));
    }
  }

  void put(const std::string& name, const std::string& bytes) {
    store_.put("bucket/set/" + name, bytes);
    wanted_[name] = bytes;
  }
  StageOptions options() const {
    StageOptions options;
    options.source = store_.address("bucket/set");
    options.destination = tree_.at("copy");
    return options;
  }
  Contents copied() const { return contents_of(tree_.at("copy")); }

  AnyStore store_;
  Tree tree_;
  Contents wanted_;
};

std::string name_of_store(const testing::TestParamInfo<StoreKind>& info) {
  return storage::name_of(info.param);
}
INSTANTIATE_TEST_SUITE_P(Of, Stage, testing::ValuesIn(storage::kStores), name_of_store);

TEST_P(Stage, CopiesEveryObjectAndFetchesNothingTwice) {
  const StageReport first = stage(options());
  EXPECT_EQ(copied(), wanted_);
  EXPECT_EQ(first.files, 12u);
  EXPECT_EQ(first.fetched, 12u);
  EXPECT_EQ(first.requests, 12u);
  EXPECT_FALSE(first.idle);
  const dataset::DatasetPtr copy = dataset::open(tree_.at("copy"), dataset::without_cache());
  const dataset::DatasetPtr original = dataset::open(options().source, dataset::without_cache());
  EXPECT_EQ(copy->facts().fingerprint, original->facts().fingerprint);
  EXPECT_EQ(dataset::ids_of(*copy), dataset::ids_of(*original));
  EXPECT_EQ(dataset::labels_of(*copy), dataset::labels_of(*original));
  EXPECT_TRUE(copy->facts().notes.empty());

  const StageReport second = stage(options());
  EXPECT_TRUE(second.idle);
  EXPECT_EQ(second.fetched, 0u);
  EXPECT_EQ(second.kept, 12u);
  EXPECT_EQ(copied(), wanted_);
}

TEST_P(Stage, FetchesOnlyWhatIsNewOrChanged) {
  stage(options());
  put("bee/new.wav", "new");
  put("cat/1.wav", "BYTES OF cat 1");  // of the same length
  fs::remove(tree_.at("copy/dog/2.wav"));
  const StageReport report = stage(options());
  EXPECT_EQ(report.fetched, 3u);
  EXPECT_EQ(report.kept, 10u);
  EXPECT_EQ(copied(), wanted_);
}

TEST_P(Stage, CopiesTheSamplesThatTheSameWordsChooseElsewhere) {
  StageOptions narrowed = options();
  narrowed.narrowing = {.class_subset = 2, .class_subset_seed = 7, .subset = 5, .subset_seed = 3};
  const StageReport report = stage(narrowed);
  dataset::OpenOptions opening = dataset::without_cache();
  narrowed.narrowing.put_into(opening);
  const dataset::DatasetPtr original = dataset::open(narrowed.source, opening);
  const dataset::DatasetPtr copy = dataset::open(tree_.at("copy"), dataset::without_cache());
  EXPECT_EQ(report.classes, original->facts().classes);
  EXPECT_EQ(report.classes_of_source, 4u);
  EXPECT_EQ(dataset::names_of(*copy), dataset::names_of(*original));
  EXPECT_EQ(dataset::ids_of(*copy), dataset::ids_of(*original));
  EXPECT_EQ(copy->size(), 5u);
}

TEST_P(Stage, KeepsTheLabelsWhereClassesHaveNoSampleLeft) {
  StageOptions narrowed = options();
  narrowed.narrowing = {.subset = 2, .subset_seed = 3};
  const StageReport report = stage(narrowed);
  dataset::OpenOptions opening = dataset::without_cache();
  narrowed.narrowing.put_into(opening);
  const dataset::DatasetPtr original = dataset::open(narrowed.source, opening);
  const dataset::DatasetPtr copy = dataset::open(tree_.at("copy"), dataset::without_cache());
  EXPECT_EQ(copy->facts().classes, original->facts().classes);
  EXPECT_EQ(dataset::labels_of(*copy), dataset::labels_of(*original));
  EXPECT_EQ(dataset::ids_of(*copy), dataset::ids_of(*original));
  EXPECT_TRUE(stage(narrowed).idle);
  int removed = 0;
  for (const char* const cls : {"ant", "bee", "cat", "dog"}) {
    std::error_code is_not_empty;
    removed += fs::remove(tree_.at(fmt::format("copy/{}", cls)), is_not_empty) ? 1 : 0;
  }
  EXPECT_GE(removed, 2);
  EXPECT_FALSE(stage(narrowed).idle);
  EXPECT_EQ(dataset::open(tree_.at("copy"), dataset::without_cache())->facts().classes, original->facts().classes);

  // Another choice: the empty folders of the first one would count as classes.
  narrowed.narrowing = {.class_list = {"bee", "cat"}};
  EXPECT_TRUE(error_of([&] { stage(narrowed); }));
  narrowed.prune = true;
  stage(narrowed);
  EXPECT_EQ(dataset::open(tree_.at("copy"), dataset::without_cache())->facts().classes,
            (std::vector<std::string>{"bee", "cat"}));
}

TEST_P(Stage, AnObjectThatAnIndexNamesAndTheStoreLacksIsBad) {
  store_.put("bucket/csv/1.wav", "one");
  store_.put("bucket/csv/empty.wav", "");
  store_.put("bucket/csv/index.csv", "path,label\n1.wav,a\ngone.wav,b\nempty.wav,a\n");
  StageOptions skipping = options();
  skipping.source = store_.address("bucket/csv/index.csv");
  EXPECT_TRUE(mentions(error_of([&] { stage(skipping); }), "there is no object `gone.wav` below"));
  skipping.on_error = loader::OnError::skip;
  const StageReport report = stage(skipping);
  ASSERT_EQ(report.bad.size(), 1u);
  EXPECT_EQ(report.bad[0].name, "gone.wav");
  EXPECT_NE(report.bad[0].cause.find("no such object"), std::string::npos) << report.bad[0].cause;
  EXPECT_EQ(report.files, 2u);
  EXPECT_EQ(report.fetched, 2u);
  Contents copy = copied();
  copy.erase("index.csv");
  EXPECT_EQ(copy, (Contents{{"1.wav", "one"}, {"empty.wav", ""}}));
  EXPECT_FALSE(stage(skipping).idle) << "a copy that lacks an object is not up to date";
}

TEST_P(Stage, NamesThatAreAFileAndAFolderCollide) {
  put("ant/0.wav/below.wav", "below a file");
  StageOptions skipping = options();
  skipping.on_error = loader::OnError::skip;
  const StageReport report = stage(skipping);
  ASSERT_EQ(report.bad.size(), 1u);
  EXPECT_NE(report.bad[0].cause.find("two names collide"), std::string::npos) << report.bad[0].cause;
}

TEST_P(Stage, GoesOnAfterAnInterruptionAndFetchesNothingTwice) {
  StageOptions interrupted = options();
  interrupted.memory_limit = 1;  // one request at a time
  store_.hold("bucket/set/cat/0.wav");
  interrupted.progress = [&](const StageProgress& progress) {
    return progress.phase != "copying" || progress.files < 6;
  };
  EXPECT_TRUE(mentions(error_of([&] { stage(interrupted); }), "interrupted"));
  store_.let_go();
  const Contents half = copied();
  EXPECT_EQ(half.size(), 6u);
  for (const auto& [name, bytes] : half) EXPECT_EQ(bytes, wanted_.at(name));
  const StageReport rest = stage(options());
  EXPECT_EQ(rest.kept, 6u);
  EXPECT_EQ(rest.fetched, 6u);
  EXPECT_EQ(copied(), wanted_);
}

TEST_P(Stage, CopiesLargeObjectsInPieces) {
  std::string large(2 * kPieceBytes + 12345, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7 + i / 65537);
  put("ant/large.wav", large);
  const StageReport report = stage(options());
  EXPECT_TRUE(copied() == wanted_);
  EXPECT_EQ(report.requests, 15u);
}

TEST_P(Stage, LeavesABadObjectOutAndNamesItOrEndsThere) {
  // The listing names it; the object is another one by the time it is read.
  StageOptions changing = options();
  changing.progress = [&](const StageProgress& progress) {
    if (progress.phase == "comparing") store_.put("bucket/set/bee/1.wav", "changed meanwhile");
    return true;
  };
  const auto error = error_of([&] { stage(changing); });
  EXPECT_TRUE(mentions(error, "cannot copy `bee/1.wav`: it changed since it was listed"));
  EXPECT_NE(error->hint().find("on_error=\"skip\""), std::string::npos);
  EXPECT_FALSE(copied().contains("bee/1.wav"));

  changing.on_error = loader::OnError::skip;
  const StageReport report = stage(changing);
  ASSERT_EQ(report.bad.size(), 1u);
  EXPECT_EQ(report.bad[0].name, "bee/1.wav");
  EXPECT_EQ(report.files, 11u);
  wanted_.erase("bee/1.wav");
  EXPECT_EQ(copied(), wanted_);
}

TEST_P(Stage, DryRunWritesNothingAndCountsBytesAndRequests) {
  StageOptions dry = options();
  dry.dry_run = true;
  dry.narrowing.class_list = {"ant", "dog"};
  const StageReport report = stage(dry);
  EXPECT_TRUE(report.dry_run);
  EXPECT_EQ(report.fetched, 6u);
  EXPECT_EQ(report.requests, 6u);
  EXPECT_EQ(report.fetched_bytes, 6 * std::string("bytes of ant 0").size());
  EXPECT_EQ(report.measured_files, 6u);
  EXPECT_FALSE(fs::exists(tree_.at("copy")));
}

TEST_P(Stage, MakesAPackAndBringsItUpToDateByVersions) {
  for (int i = 0; i < 6; ++i)
    store_.put(fmt::format("bucket/sounds/{}/{}.wav", "ab"[i % 2], i), loader::wav(100, static_cast<std::int16_t>(i)));
  StageOptions packing = options();
  packing.source = store_.address("bucket/sounds");
  packing.destination = tree_.at("x.pack");
  packing.narrowing.class_list = {"b"};
  packing.cache_dir = tree_.at("cache");
  const StageReport first = stage(packing);
  EXPECT_TRUE(first.to_pack);
  EXPECT_EQ(first.files, 3u);
  EXPECT_EQ(dataset::open(tree_.at("x.pack"), dataset::without_cache())->facts().classes,
            (std::vector<std::string>{"b"}));
  const std::uint64_t before = store_.requests();
  EXPECT_TRUE(stage(packing).idle);
  const std::uint64_t listing_and_first_look = store_.requests() - before;
  EXPECT_LE(listing_and_first_look, 4u);
  store_.put("bucket/sounds/b/3.wav", loader::wav(100, 77));
  const StageReport third = stage(packing);
  EXPECT_EQ(third.fetched, 1u);
  EXPECT_EQ(third.kept, 2u);
  packing.narrowing = {};
  EXPECT_TRUE(mentions(error_of([&] { stage(packing); }), "it was made with other settings"));
}

}  // namespace
}  // namespace stoker::prepare
