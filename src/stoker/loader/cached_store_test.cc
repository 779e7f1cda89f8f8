// The loader on a store with the disk cache: every object is fetched once for all loaders of a node, and the batches
// are those of local files whatever happens to the cache.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/loader/made_data_test.h"
#include "stoker/os/fault.h"
#include "stoker/storage/any_store_test.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kMuch = std::uint64_t{1} << 30;

class CachedStore : public ::testing::TestWithParam<storage::StoreKind> {
 protected:
  void put_sounds(int count, std::uint32_t frames = 100) {
    for (int i = 0; i < count; ++i) put(name(i), wav(frames, static_cast<std::int16_t>(i)));
  }
  void put(const std::string& name, const std::string& bytes) {
    store_.put("bucket/set/" + name, bytes);
    folder_.write(name, bytes);
  }
  static std::string name(int i) { return fmt::format("{}/{:06}.wav", i % 2 == 0 ? "even" : "odd", i); }

  dataset::DatasetPtr objects() const { return open_uncached(store_.address("bucket/set")); }
  dataset::DatasetPtr files() const { return open_uncached(folder_.path()); }

  LoaderOptions cached(std::uint64_t limit = kMuch) const {
    LoaderOptions options = batches_of(8);
    options.shuffle = true;
    options.seed = 7;
    options.transform = transform::parse_ops("pad:100");
    options.cache_dir = cache_.path();
    options.cache_limit = limit;
    return options;
  }
  std::vector<Taken> of_files(std::uint64_t epoch) const { return epoch_of(files(), cached(), epoch); }

  std::vector<std::filesystem::path> cached_files() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_.path("objects"))) {
      if (entry.is_regular_file() && entry.path().parent_path().filename().string().size() == 2) {
        found.push_back(entry.path());
      }
    }
    return found;
  }
  static bool has_note(const Loader& loader, std::string_view words) {
    const std::vector<Text> notes = loader.notes();
    return std::any_of(notes.begin(), notes.end(),
                       [&](const Text& note) { return note.in_python().find(words) != std::string::npos; });
  }

  storage::AnyStore store_{GetParam()};
  Folder folder_, cache_;
};

TEST_P(CachedStore, TheSecondEpochAsksTheStoreForNothing) {
  put_sounds(100);
  Loader loader(objects(), cached());
  EXPECT_EQ(drain(loader), of_files(0));
  const Stats first = loader.stats();
  loader.start_epoch(1);
  EXPECT_EQ(drain(loader), of_files(1));
  loader.start_epoch(2);
  const std::uint64_t requests = store_.requests();
  EXPECT_EQ(drain(loader), of_files(2));
  EXPECT_EQ(store_.requests(), requests);
  loader.close();
  const Stats all = loader.stats();
  EXPECT_EQ(all.store.cache_misses, 100u) << "each object once, and none again when the next epoch is read ahead";
  EXPECT_GE(all.store.cache_hits, 200u);
  EXPECT_GE(all.store.requests, 100u) << "a slow one may be asked for twice";
  EXPECT_GE(first.store.cache_misses, 100u);
  EXPECT_EQ(first.store.store_bytes, 100 * wav(100, 0).size());
  EXPECT_EQ(cached_files().size(), 100u);
}

TEST_P(CachedStore, ALaterRunFindsAllObjects) {
  put_sounds(40);
  const dataset::DatasetPtr data = objects();
  EXPECT_EQ(epoch_of(data, cached()), of_files(0));
  Loader again(data, cached());
  EXPECT_EQ(drain(again), of_files(0));
  EXPECT_EQ(again.stats().store.requests, 0u);
}

TEST_P(CachedStore, RanksOfANodeFetchEachObjectOnce) {
  put_sounds(120);
  store_.set_latency(std::chrono::milliseconds(2));
  const dataset::DatasetPtr data = objects();
  constexpr std::uint64_t kRanks = 3;
  std::vector<std::uint64_t> misses(kRanks);
  std::vector<std::thread> ranks;
  for (std::uint64_t rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      LoaderOptions options = cached();
      options.rank = rank, options.world_size = kRanks;
      Loader loader(data, options);
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        loader.start_epoch(epoch);
        LoaderOptions plain = options;
        plain.cache_limit = 0;
        EXPECT_EQ(drain(loader), epoch_of(files(), plain, epoch));
      }
      loader.close();
      misses[rank] = loader.stats().store.cache_misses;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(misses[0] + misses[1] + misses[2], 120u);
}

TEST_P(CachedStore, FilesThatAreDamagedCutOrRemovedAreFetchedAgain) {
  put_sounds(30);
  const dataset::DatasetPtr data = objects();
  epoch_of(data, cached());
  const std::vector<std::filesystem::path> found = cached_files();
  ASSERT_EQ(found.size(), 30u);
  std::filesystem::resize_file(found[0], 10);
  std::filesystem::remove(found[1]);
  std::fstream(found[2], std::ios::in | std::ios::out | std::ios::binary).seekp(60).write("damage", 6);
  Loader loader(data, cached());
  EXPECT_EQ(drain(loader), of_files(0));
  EXPECT_EQ(loader.stats().store.cache_misses, 3u);
  EXPECT_TRUE(has_note(loader, "damaged"));
  EXPECT_EQ(cached_files().size(), 30u);
}

TEST_P(CachedStore, AnObjectThatChangedIsFetchedAgain) {
  put_sounds(30);
  epoch_of(objects(), cached());
  put(name(4), wav(100, 1234));
  Loader loader(objects(), cached());
  EXPECT_EQ(drain(loader), of_files(0));
  EXPECT_EQ(loader.stats().store.cache_misses, 1u);
}

TEST_P(CachedStore, ACacheThatIsSmallerThanTheDataKeepsWhatIsUsedNext) {
  put_sounds(100, 4000);  // two blocks of a disk each
  LoaderOptions options = cached(50 * 8192);
  options.read_ahead = 64 << 10;
  options.transform = transform::parse_ops("pad:4000");
  Loader loader(objects(), options);
  drain(loader);
  loader.reset_stats();
  for (std::uint64_t epoch = 1; epoch < 4; ++epoch) {
    loader.start_epoch(epoch);
    drain(loader);
  }
  const storage::StoreFigures store = loader.stats().store;
  // The least recently used half of a shuffled order is found in about 15 % of the reads.
  EXPECT_GT(store.cache_hits * 100, 35 * (store.cache_hits + store.cache_misses));
  EXPECT_TRUE(has_note(loader, "holds a part of the data"));
}

TEST_P(CachedStore, AFullDiskAndALimitBelowAnObjectAreNotesAndNothingElse) {
  put_sounds(30);
  {
    Loader loader(objects(), cached());
    const os::InjectFault fault(os::Call::write, {.error_number = ENOSPC, .times = 1000});
    EXPECT_EQ(drain(loader), of_files(0));
    EXPECT_TRUE(has_note(loader, "No space left"));
  }
  Loader loader(objects(), cached(100));
  EXPECT_EQ(drain(loader), of_files(0));
  EXPECT_TRUE(has_note(loader, "is less than objects of up to"));
}

TEST_P(CachedStore, AFolderThatCannotBeUsedIsAnErrorBeforeAnythingIsRead) {
  put_sounds(3);
  folder_.write("even/taken", "a file");
  LoaderOptions options = cached();
  options.cache_dir = folder_.path("even/taken");
  try {
    const Loader loader(objects(), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("cannot cache objects"), std::string::npos) << error.message();
    EXPECT_NE(error.hint().find("cache_dir"), std::string::npos) << error.hint();
  }
}

TEST_P(CachedStore, OfLocalFilesIsSaidToBeUnused) {
  put_sounds(3);
  const Loader loader(files(), cached());
  EXPECT_TRUE(has_note(loader, "lies in local files"));
  EXPECT_FALSE(std::filesystem::exists(cache_.path("objects")));
}

TEST_P(CachedStore, RowsOfAnArrayComeFromTheCacheToo) {
  const std::string bytes = npy(200, 3000);
  store_.put("bucket/array.npy", bytes);
  folder_.write("array.npy", bytes);
  const dataset::DatasetPtr data = open_uncached(store_.address("bucket/array.npy"));
  LoaderOptions options = cached();
  options.transform = {};
  Loader loader(data, options);
  EXPECT_EQ(drain(loader), epoch_of(open_uncached(folder_.path("array.npy")), options));
  loader.start_epoch(1);
  EXPECT_EQ(drain(loader), epoch_of(open_uncached(folder_.path("array.npy")), options, 1));
  loader.close();
  EXPECT_EQ(loader.stats().store.cache_misses, 200u);
}

TEST_P(CachedStore, MemoryLiesAboveTheDisk) {
  const std::string bytes = npy(200, 3000);
  store_.put("bucket/array.npy", bytes);
  put_sounds(50);
  LoaderOptions sounds = cached(), rows = cached();
  rows.transform = {};
  for (LoaderOptions* const options : {&sounds, &rows}) options->storage = storage::Storage::ram;
  const std::pair<std::string, const LoaderOptions*> cases[] = {{"bucket/set", &sounds}, {"bucket/array.npy", &rows}};
  for (const auto& [name, options] : cases) {
    const dataset::DatasetPtr data = open_uncached(store_.address(name));
    LoaderOptions plain = *options;
    plain.cache_limit = 0;
    plain.storage = storage::Storage::buffered;
    for (const bool is_first : {true, false}) {
      Loader loader(data, *options);
      EXPECT_EQ(drain(loader), epoch_of(data, plain));
      loader.start_epoch(1);
      EXPECT_EQ(drain(loader), epoch_of(data, plain, 1));
      EXPECT_EQ(loader.stats().ram_bytes, data->facts().total_bytes) << name;
      loader.start_epoch(5);  // all of it is in memory by now
      const std::uint64_t hits = loader.stats().store.cache_hits;
      EXPECT_EQ(drain(loader), epoch_of(data, plain, 5));
      EXPECT_EQ(loader.stats().store.cache_hits, hits) << name;
      EXPECT_EQ(loader.stats().store.cache_misses, is_first ? data->size() : 0) << name;
    }
  }
}

TEST_P(CachedStore, AProcessThatIsKilledLeavesACacheThatOthersUse) {
  if (store_.is_s3()) GTEST_SKIP() << "its server does not survive the fork";
  put_sounds(60);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Loader loader(objects(), cached());
    drain(loader, 3);
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  Loader loader(objects(), cached());
  EXPECT_EQ(drain(loader), of_files(0));
  loader.start_epoch(1);
  EXPECT_EQ(drain(loader), of_files(1));
  EXPECT_LT(loader.stats().store.cache_misses, 60u) << "what the other one fetched is there";
  EXPECT_TRUE(loader.notes().empty());
}

INSTANTIATE_TEST_SUITE_P(Stores, CachedStore, ::testing::ValuesIn(storage::kStores),
                         [](const auto& kind) { return std::string(storage::name_of(kind.param)); });

}  // namespace
}  // namespace stoker::loader
