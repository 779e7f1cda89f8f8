// Packs that are written to a store: the same as local ones, and never half of one.
#include "stoker/prepare/pack_upload.h"

#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/storage/any_store_test.h"

namespace stoker::prepare {
namespace {

namespace fs = std::filesystem;
using dataset::error_of;
using dataset::mentions;

class PackInAStore : public testing::TestWithParam<storage::StoreKind> {
 protected:
  PackInAStore() : store_(GetParam()) {
    store_.put("bucket/other", "so that the bucket is there");
    for (int i = 0; i < 6; ++i)
      tree_.write(fmt::format("data/{}/{}.wav", "ab"[i % 2], i), loader::wav(100, static_cast<std::int16_t>(i)));
  }
  PackOptions options() const {
    PackOptions options;
    options.source = tree_.at("data");
    options.destination = store_.address("bucket/x.pack");
    options.work_folder = tree_.at("work");
    options.cache_dir = tree_.at("cache");
    return options;
  }
  std::set<std::string> objects() const {
    std::set<std::string> names;
    try {
      store_.backend().list("bucket/x.pack/", [&](const storage::Backend::Object& object) {
        names.insert(std::string(object.name.substr(std::string_view("bucket/x.pack/").size())));
        return true;
      });
    } catch (const Error&) {
      // There are none.
    }
    return names;
  }

  storage::AnyStore store_;
  dataset::Tree tree_;
};

std::string name_of_upload_store(const testing::TestParamInfo<storage::StoreKind>& info) {
  return storage::name_of(info.param);
}
INSTANTIATE_TEST_SUITE_P(Of, PackInAStore, testing::ValuesIn(storage::kStores), name_of_upload_store);

TEST_P(PackInAStore, HasTheSamplesOfTheSourceAndLeavesNothingBehind) {
  const PackReport report = make_pack(options());
  EXPECT_EQ(report.count, 6u);
  EXPECT_EQ(report.destination, store_.address("bucket/x.pack"));
  const dataset::DatasetPtr pack = dataset::open(options().destination, dataset::without_cache());
  const dataset::DatasetPtr files = dataset::open(options().source, dataset::without_cache());
  EXPECT_EQ(dataset::ids_of(*pack), dataset::ids_of(*files));
  EXPECT_EQ(pack->facts().classes, files->facts().classes);
  for (std::uint64_t i = 0; i < files->size(); ++i) {
    std::vector<std::byte> a, b;
    const auto packed = dataset::read_sample(*pack, i, a), file = dataset::read_sample(*files, i, b);
    ASSERT_TRUE(packed.ok() && file.ok());
    EXPECT_TRUE(std::equal(packed.bytes.begin(), packed.bytes.end(), file.bytes.begin(), file.bytes.end()));
  }
  for (const auto& entry : fs::directory_iterator(tree_.at("work"))) ADD_FAILURE() << entry.path() << " stayed";
}

TEST_P(PackInAStore, IsReplacedOnlyWhenAsked) {
  make_pack(options());
  EXPECT_TRUE(mentions(error_of([&] { make_pack(options()); }), "it is there already"));
  store_.put("bucket/x.pack/data-00077.tar", "of an older pack");
  store_.put("bucket/x.pack/mine.txt", "not of a pack");
  tree_.write("data/b/new.wav", loader::wav(100, 9));
  PackOptions forced = options();
  forced.force = true;
  make_pack(forced);
  EXPECT_EQ(dataset::open(options().destination, dataset::without_cache())->size(), 7u);
  EXPECT_FALSE(objects().contains("data-00077.tar"));
  EXPECT_TRUE(objects().contains("mine.txt"));
}

TEST_P(PackInAStore, AnInterruptedUploadLeavesNoPackAndTheNextRunUploads) {
  PackOptions interrupted = options();
  interrupted.progress = [](const PackProgress& progress) { return progress.phase != "uploading"; };
  EXPECT_TRUE(mentions(error_of([&] { make_pack(interrupted); }), "interrupted"));
  EXPECT_TRUE(objects().empty());
  EXPECT_EQ(make_pack(options()).count, 6u);
  EXPECT_TRUE(objects().contains("pack.json"));
}

TEST_P(PackInAStore, NeedsANameThatSaysItIsAPack) {
  PackOptions unnamed = options();
  unnamed.destination = store_.address("bucket/x");
  EXPECT_TRUE(mentions(error_of([&] { make_pack(unnamed); }), "its name must end in .pack"));
}

TEST(PackInMemory, AFileThatCannotBeWrittenTakesTheOthersWithIt) {
  storage::MemoryStore store;
  dataset::Tree tree;
  tree.write("data/1.wav", loader::wav(100, 1));
  storage::Failure failure;
  failure.text = "the store is full";
  store.fail("bucket/x.pack/pack.json", failure);
  PackOptions options;
  options.source = tree.at("data");
  options.destination = store.address("bucket/x.pack");
  options.work_folder = tree.at("work");
  const auto error = error_of([&] { make_pack(options); });
  EXPECT_TRUE(mentions(error, "the store is full"));
  EXPECT_NE(error->hint().find("run the same command again"), std::string::npos);
  store.list("bucket/x.pack", [&](const storage::Backend::Object& object) {
    ADD_FAILURE() << object.name << " stayed";
    return true;
  });
  store.forgive();
  EXPECT_EQ(make_pack(options).count, 1u);
}

}  // namespace
}  // namespace stoker::prepare
