// What a fetcher with a disk cache does beyond the suite of all fetchers.
#include "stoker/storage/cached_fetcher.h"

#include <cerrno>
#include <deque>
#include <map>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/os/arena.h"
#include "stoker/os/fault.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/cache_folder_test.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::storage {
namespace {

constexpr auto kNoEnd = std::chrono::nanoseconds::max();

class Cached : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint64_t number = 0; number < kObjects; ++number) store_.put(name(number), bytes_number(number));
  }
  static std::string name(std::uint64_t number) { return "bucket/" + std::to_string(number); }
  std::shared_ptr<ObjectCache> open(std::uint64_t limit = std::uint64_t{1} << 30) {
    return std::make_shared<ObjectCache>(folder_.path(), limit);
  }
  std::unique_ptr<Fetcher> make(const std::shared_ptr<ObjectCache>& cache) {
    FetcherOptions options;
    options.cache = cache;
    const Backend* const backends[] = {&store_};
    return make_fetcher(options, backends);
  }
  Fetch fetch(std::uint64_t number) {
    texts_.push_back(name(number));
    const char* const object = texts_.back().c_str();
    texts_.push_back(store_.version(texts_.back()));
    const std::uint64_t bytes = bytes_number(number).size();
    arenas_.emplace_back(bytes + 1);
    Fetch fetch{
        .where = Location::in_store(store_, object, texts_.back().c_str(), 0, bytes), .into = {}, .tag = number};
    fetch.into = {arenas_.back().data(), bytes + 1};
    return fetch;
  }
  // Fetches objects [first, end), and compares them.
  void expect_all(Fetcher& fetcher, std::uint64_t first = 0, std::uint64_t end = kObjects) {
    std::vector<Fetch> fetches;
    for (std::uint64_t number = first; number < end; ++number) fetches.push_back(fetch(number));
    fetcher.submit(fetches);
    std::vector<Fetched> out(8);
    std::uint64_t came = 0;
    while (fetcher.in_flight() > 0) {
      const std::size_t count = fetcher.wait(out, kNoEnd);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(out[i].code, FetchCode::ok) << out[i].why().text;
        ASSERT_EQ(std::string(reinterpret_cast<const char*>(out[i].data.data()), out[i].data.size()),
                  bytes_number(out[i].tag));
        ++came;
      }
    }
    ASSERT_EQ(came, end - first);
    arenas_.clear();
    texts_.clear();
  }

  static constexpr std::uint64_t kObjects = 100;
  MemoryStore store_;
  CacheFolder folder_;
  std::deque<std::string> texts_;
  std::deque<os::Arena> arenas_;
};

TEST_F(Cached, AsksTheStoreOnceForEachObject) {
  const auto cache = open();
  const auto fetcher = make(cache);
  for (int epoch = 0; epoch < 3; ++epoch) expect_all(*fetcher);
  EXPECT_EQ(store_.requests(), kObjects);
  EXPECT_EQ(cache->stats().hits, 2 * kObjects);
  expect_all(*make(open()));
  EXPECT_EQ(store_.requests(), kObjects) << "a later run finds them too";
}

TEST_F(Cached, SeveralUsersAtOnceAskTheStoreOnceForEachObject) {
  store_.set_latency(std::chrono::milliseconds(5));
  std::vector<std::jthread> users;
  std::atomic<int> wrong{0};
  for (int user = 0; user < 3; ++user) {
    users.emplace_back([&] {
      const auto fetcher = make(open());  // as a process of its own has it
      std::vector<std::string> buffers(kObjects), names(kObjects), versions(kObjects);
      std::vector<Fetch> fetches(kObjects);
      for (std::uint64_t i = 0; i < kObjects; ++i) {
        const std::size_t bytes = bytes_number(i).size();
        buffers[i].resize(bytes + 1);
        names[i] = name(i);
        versions[i] = store_.version(names[i]);
        fetches[i].where = Location::in_store(store_, names[i].c_str(), versions[i].c_str(), 0, bytes);
        fetches[i].into = std::as_writable_bytes(std::span(buffers[i]));
        fetches[i].tag = i;
      }
      fetcher->submit(fetches);
      std::vector<Fetched> out(16);
      while (fetcher->in_flight() > 0) {
        const std::size_t count = fetcher->wait(out, kNoEnd);
        for (std::size_t i = 0; i < count; ++i) {
          wrong += out[i].code != FetchCode::ok ||
                   buffers[out[i].tag].substr(0, out[i].data.size()) != bytes_number(out[i].tag);
        }
      }
    });
  }
  users.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store_.requests(), kObjects);
}

TEST_F(Cached, TheSameObjectTwiceAtOnceIsFetchedOnce) {
  const auto fetcher = make(open());
  std::vector<Fetch> fetches = {fetch(1), fetch(1), fetch(1)};
  fetcher->submit(fetches);
  std::vector<Fetched> out(4);
  while (fetcher->in_flight() > 0) {
    const std::size_t count = fetcher->wait(out, kNoEnd);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(out[i].code, FetchCode::ok);
  }
  EXPECT_EQ(store_.requests(), 1u);
}

TEST_F(Cached, FetchesWhatAnotherProcessWasFetchingWhenItWasKilled) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ObjectCache mine(folder_.path(), std::uint64_t{1} << 30);
    for (std::uint64_t number = 0; number < kObjects; ++number) {
      const Fetch claimed = fetch(number);
      ObjectCache::Lookup lookup{
          .key = *cache_key(claimed.where, store_.identity()), .bytes = claimed.where.bytes, .use = {}};
      mine.look({&lookup, 1});
    }
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  const auto fetcher = make(open());
  const Fetch waiting = fetch(1);
  fetcher->submit({&waiting, 1});
  Fetched one;
  EXPECT_EQ(fetcher->wait({&one, 1}, std::chrono::milliseconds(5)), 0u) << "it waits for the other one";
  EXPECT_EQ(store_.requests(), 0u);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(fetcher->wait({&one, 1}, kNoEnd), 1u);
  EXPECT_EQ(one.code, FetchCode::ok);
  expect_all(*fetcher);
}

TEST_F(Cached, FetchesAgainWhatWasDamagedRemovedOrCutShort) {
  const auto cache = open();
  const auto fetcher = make(cache);
  expect_all(*fetcher);
  const auto files = folder_.files();
  ASSERT_EQ(files.size(), kObjects);
  for (std::size_t i = 0; i < 10; ++i) std::filesystem::remove(files[i]);
  for (std::size_t i = 10; i < 20; ++i)
    std::filesystem::resize_file(files[i], std::filesystem::file_size(files[i]) - 1);
  for (std::size_t i = 20; i < 30; ++i) {
    std::fstream(files[i], std::ios::in | std::ios::out | std::ios::binary).put(char(bytes_number(0)[0] ^ 0x55));
  }
  expect_all(*fetcher);
  const std::uint64_t requests = store_.requests();
  EXPECT_GE(requests, kObjects + 29);  // one byte in 256 was that already
  EXPECT_EQ(cache->notes().size(), 1u);
  expect_all(*fetcher);
  EXPECT_EQ(store_.requests(), requests);
}

TEST_F(Cached, AFullDiskChangesNothingButTheNumberOfRequests) {
  const auto cache = open();
  const auto fetcher = make(cache);
  {
    const os::InjectFault fault(os::Call::write, {.error_number = ENOSPC, .skip = 10, .times = 1000});
    expect_all(*fetcher);
    expect_all(*fetcher);
  }
  EXPECT_EQ(cache->notes().size(), 1u);
  EXPECT_LT(store_.requests(), 2 * kObjects);
}

TEST_F(Cached, ACacheThatIsTooSmallStillGivesEverything) {
  const auto cache = open(200'000);
  const auto fetcher = make(cache);
  for (int epoch = 0; epoch < 5; ++epoch) expect_all(*fetcher);
  EXPECT_GT(cache->stats().evicted, 0u);
  EXPECT_LE(folder_.bytes_on_disk(), 200'000u);
}

TEST_F(Cached, ObjectsWithoutAVersionAreNotKept) {
  const auto fetcher = make(open());
  for (int round = 0; round < 2; ++round) {
    Fetch one = fetch(1);
    one.where.version = nullptr;
    fetcher->submit({&one, 1});
    Fetched out;
    ASSERT_EQ(fetcher->wait({&out, 1}, kNoEnd), 1u);
    EXPECT_EQ(out.code, FetchCode::ok);
  }
  EXPECT_EQ(store_.requests(), 2u);
  EXPECT_TRUE(folder_.files().empty());
}

TEST_F(Cached, ANewVersionIsFetched) {
  const auto fetcher = make(open());
  expect_all(*fetcher, 0, 10);
  for (std::uint64_t number = 0; number < 10; ++number) store_.put(name(number), bytes_number(number));
  expect_all(*fetcher, 0, 10);
  EXPECT_EQ(store_.requests(), 20u);
}

TEST_F(Cached, EndingItGivesUpWhatItClaimed) {
  const auto cache = open();
  store_.hold(name(1));
  {
    const auto fetcher = make(cache);
    const Fetch held = fetch(1);
    fetcher->submit({&held, 1});
  }
  store_.let_go();
  expect_all(*make(cache));
  EXPECT_EQ(cache->contents().entries, kObjects);
}

}  // namespace
}  // namespace stoker::storage
