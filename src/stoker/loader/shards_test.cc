// The loader on tar shards of a store: the first epoch takes what opening has read, and the batches are those of local
// shards. Once a data set is open, the tests put other objects in place of its shards: a read that goes to the store
// then fails, because the version is another one.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/dataset/tar_format.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/storage/any_store_test.h"
#include "stoker/storage/hand_over.h"

namespace stoker::loader {
namespace {

class ShardsOfAStore : public ::testing::TestWithParam<storage::StoreKind> {
 protected:
  static constexpr int kShards = 4, kSamples = 25;  // in each

  ShardsOfAStore() {
    for (int s = 0; s < kShards; ++s) {
      std::string tar;
      for (int i = 0; i < kSamples; ++i) {
        add(tar, fmt::format("{}-{:03}.wav", s, i), wav(2000, static_cast<std::int16_t>(s * kSamples + i)));
        add(tar, fmt::format("{}-{:03}.cls", s, i), fmt::format("{}", i % 3));
      }
      tar.append(2 * dataset::kTarBlock, '\0');
      store_.put(object(s), tar);
      folder_.write(fmt::format("{}.tar", s), tar);
    }
  }
  static void add(std::string& tar, const std::string& name, const std::string& content) {
    tar += dataset::tar_header(name, content.size(), 0) + content;
    tar.resize(dataset::tar_padded(tar.size()), '\0');
  }
  static std::string object(int shard) { return fmt::format("bucket/{}.tar", shard); }

  dataset::DatasetPtr objects(dataset::OpenOptions options) const {
    return dataset::open(store_.address("bucket/{0..3}.tar"), options);
  }
  static dataset::OpenOptions within(std::uint64_t memory_limit) {
    dataset::OpenOptions options;
    options.use_cache = false;
    options.memory_limit = memory_limit;
    return options;
  }
  dataset::DatasetPtr files() const { return open_uncached(folder_.path("{0..3}.tar")); }
  void replace_shards() {
    for (int s = 0; s < kShards; ++s) store_.put(object(s), "another object");
  }

  static LoaderOptions shuffled() {
    LoaderOptions options = batches_of(8);
    options.shuffle.how = dataset::Shuffle::How::full;
    options.seed = 7;
    options.transform = transform::parse_ops("pad:2000");
    return options;
  }
  std::vector<Taken> of_files(std::uint64_t epoch, const LoaderOptions& options = shuffled()) const {
    LoaderOptions plain = options;
    plain.storage = storage::Storage::buffered;
    plain.cache_limit = 0;
    return epoch_of(files(), plain, epoch);
  }

  storage::AnyStore store_{GetParam()};
  Folder folder_, cache_;
};

TEST_P(ShardsOfAStore, TheFirstEpochTakesWhatOpeningHasRead) {
  LoaderOptions encoded = shuffled();
  encoded.transform = {};
  encoded.decode = Decode::none;
  for (const LoaderOptions& options : {shuffled(), encoded}) {
    const dataset::DatasetPtr data = objects(within(options.memory_limit));
    Loader loader(data, options);
    EXPECT_EQ(drain(loader), of_files(0, options));
    loader.start_epoch(1);
    EXPECT_EQ(data->hand_over()->held_bytes(), 0u) << "the second epoch is read from the store";
    EXPECT_EQ(drain(loader), of_files(1, options));
    EXPECT_LE(loader.stats().memory_peak, options.memory_limit);
  }
}

TEST_P(ShardsOfAStore, TheFirstEpochAsksTheStoreForNothing) {
  const dataset::DatasetPtr data = objects(within(shuffled().memory_limit));
  replace_shards();
  Loader loader(data, shuffled());
  EXPECT_EQ(drain(loader), of_files(0));
  loader.start_epoch(1);
  try {
    drain(loader);
    FAIL() << "the second epoch needs the store";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("it changed since it was"), std::string::npos) << error.message();
  }
}

TEST_P(ShardsOfAStore, AShardThatChangedIsABadSampleWhereItsBytesWereNotKept) {
  const dataset::DatasetPtr data = objects(within(0));
  store_.put(object(2), "another object");
  LoaderOptions options = shuffled();
  options.on_error = OnError::skip;
  Loader loader(data, options);
  EXPECT_EQ(indices_of(drain(loader)).size(), 75u);
  ASSERT_EQ(loader.errors().size(), 25u);
  EXPECT_NE(loader.errors()[0].cause.in_python().find("it changed since it was"), std::string::npos);
}

TEST_P(ShardsOfAStore, ResumesSubsetsAndCopiesTakeItToo) {
  const std::vector<Taken> whole = of_files(0);
  Loader one(objects(within(shuffled().memory_limit)), shuffled());
  std::vector<Taken> got = drain(one, 5);
  const dataset::DatasetPtr data = objects(within(shuffled().memory_limit));
  dataset::OpenOptions few = within(shuffled().memory_limit);
  few.subset = 30;
  few.inflate = 2;
  const dataset::DatasetPtr subset = objects(few);
  replace_shards();
  Loader two(data, shuffled());
  two.load_state(one.state());
  for (Taken& batch : drain(two)) got.push_back(std::move(batch));
  EXPECT_EQ(got, whole);
  dataset::OpenOptions few_files = few;
  few_files.memory_limit = 0;
  Loader three(subset, shuffled());
  EXPECT_EQ(drain(three), epoch_of(dataset::open(folder_.path("{0..3}.tar"), few_files), shuffled()));
}

TEST_P(ShardsOfAStore, MemoryTakesThemOver) {
  LoaderOptions options = shuffled();
  options.storage = storage::Storage::ram;
  const dataset::DatasetPtr data = objects(within(options.memory_limit));
  replace_shards();
  Loader loader(data, options);
  for (const std::uint64_t epoch : {0, 1, 5}) {
    loader.start_epoch(epoch);
    EXPECT_EQ(drain(loader), of_files(epoch));
  }
  EXPECT_EQ(data->hand_over()->held_bytes(), 0u) << "nothing is held twice";
  EXPECT_GE(loader.stats().ram_bytes, data->facts().total_bytes);
  EXPECT_LE(loader.stats().memory_peak, options.memory_limit);
}

TEST_P(ShardsOfAStore, TheDiskCacheTakesThem) {
  LoaderOptions options = shuffled();
  options.cache_dir = cache_.path();
  options.cache_limit = 1 << 30;
  dataset::OpenOptions opening = within(options.memory_limit);
  opening.use_cache = true;
  opening.cache_dir = options.cache_dir;
  opening.cache_limit = options.cache_limit;
  Loader loader(objects(opening), options);  // looks at the first sample, past the cache
  replace_shards();
  EXPECT_EQ(drain(loader), of_files(0));
  loader.start_epoch(1);
  EXPECT_EQ(drain(loader), of_files(1));
  EXPECT_EQ(loader.stats().store.cache_misses, 0u);
}

TEST_P(ShardsOfAStore, KeepToATightLimit) {
  LoaderOptions options = shuffled();
  options.memory_limit = 4'200'000;  // little above the least
  const dataset::DatasetPtr data = objects(within(options.memory_limit));
  Loader loader(data, options);
  EXPECT_EQ(drain(loader), of_files(0, options));
  EXPECT_LE(loader.stats().memory_peak, options.memory_limit);
}

INSTANTIATE_TEST_SUITE_P(Stores, ShardsOfAStore, ::testing::ValuesIn(storage::kStores),
                         [](const auto& kind) { return storage::name_of(kind.param); });

}  // namespace
}  // namespace stoker::loader
