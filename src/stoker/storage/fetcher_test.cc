// One suite for every kind of fetcher; fetcher_faults_test.cc has what goes wrong.
#include "stoker/storage/fetcher.h"

#include "stoker/storage/every_fetcher_test.h"

namespace stoker::storage {
namespace {

TEST_P(EveryFetcher, GivesTheExactBytesOfFilesOfEverySize) {
  std::vector<Fetch> fetches;
  std::vector<std::string> texts, names;
  for (const std::size_t bytes : {0, 1, 511, 512, 4095, 4096, 4097, 7000, 8192, 65'536, 300'001}) {
    names.push_back("deep/er/" + std::to_string(bytes));
    texts.push_back(pattern(bytes, bytes));
    put(names.back(), texts.back());
  }
  for (std::size_t i = 0; i < texts.size(); ++i) fetches.push_back(file(names[i], texts[i].size(), i));
  const auto answers = fetch_all(fetches);
  for (std::size_t i = 0; i < texts.size(); ++i) expect_ok(answers.at(i), texts[i]);
}

TEST_P(EveryFetcher, ReadsManyMoreFilesThanItIsDeep) {
  std::vector<Fetch> fetches;
  std::vector<std::string> texts, names;
  for (std::size_t i = 0; i < 500; ++i) {
    names.push_back(std::to_string(i));
    texts.push_back(pattern(i * 37 % 9000, i));
    put(names.back(), texts.back());
  }
  for (std::size_t i = 0; i < 500; ++i) fetches.push_back(file(names[i], texts[i].size(), i));
  for (int round = 0; round < 2; ++round) {
    const auto answers = fetch_all(fetches);
    for (std::size_t i = 0; i < 500; ++i) ASSERT_TRUE(answers.at(i).text == texts[i]) << i;
  }
}

TEST_P(EveryFetcher, ThePathIsBorrowedOnlyUntilSubmitReturns) {
  const std::string text = pattern(3000);
  put("name", text);
  std::string name = "name";
  Fetch fetch = file("name", 3000);
  if (!has_objects()) fetch.where.name = name.c_str();
  fetcher_->submit({&fetch, 1});
  name = "else";
  Fetched fetched;
  ASSERT_EQ(fetcher_->wait({&fetched, 1}, kForever), 1u);
  EXPECT_EQ(fetched.code, FetchCode::ok);
}

TEST_P(EveryFetcher, AnAbsolutePathNeedsNoDirectory) {
  if (has_objects()) GTEST_SKIP() << "about files";
  const std::string path = folder_.file("f", "abc");
  Fetch fetch = file(path, 3);
  fetch.where.directory = AT_FDCWD;
  expect_ok(fetch_one(fetch), "abc");
}

TEST_P(EveryFetcher, AViewIsCopiedIntoTheBufferThatIsGivenAndAnsweredInPlaceWithoutOne) {
  if (is_store_alone()) GTEST_SKIP() << "a store reads its own objects only";
  const std::string text = "all of it lies in memory";
  const auto source = memory_source("memory", std::as_bytes(std::span(text)));
  std::array<std::byte, 9> into{};
  const auto answer = [&](std::span<std::byte> buffer) {
    const Fetch fetch{.where = Location::in_source(source.get(), 7, 9), .into = buffer};
    fetcher_->submit({&fetch, 1});
    Fetched out;
    EXPECT_EQ(fetcher_->wait({&out, 1}, kForever), 1u);
    return out.data;
  };

  EXPECT_EQ(answer({}).data(), source->view().data() + 7);
  EXPECT_EQ(answer(into).data(), into.data());
  EXPECT_EQ(std::memcmp(into.data(), text.data() + 7, 9), 0);
}

TEST_P(EveryFetcher, ReadsRangesOfEverySourceAtEveryOffset) {
  constexpr std::size_t kSize = 100'003;
  const std::string text = pattern(kSize);
  const std::string path = folder_.file("f", text);
  std::vector<std::unique_ptr<Source>> sources;
  if (has_objects()) sources.push_back(open("f", text));
  if (!is_store_alone()) {
    sources.push_back(open_source(path, Storage::buffered));
    sources.push_back(open_source(path, Storage::mmap));
    sources.push_back(memory_source("memory", std::as_bytes(std::span(text))));
  }
  // A direct source needs the buffers that only a direct fetcher asks for.
  if (GetParam().storage == Storage::direct && !is_store_alone()) {
    sources.push_back(open_source(path, Storage::direct));
  }
  for (const auto& source : sources) {
    EXPECT_EQ(fetcher_->reads_in_place(*source), !source->is_direct());
    std::vector<Fetch> fetches;
    for (const std::uint64_t offset : {0, 1, 4095, 4096, 4097, 99'999, 100'003}) {
      for (const std::uint64_t bytes : {0, 1, 4, 4096, 4097, 50'000}) {
        if (offset + bytes <= kSize) fetches.push_back(range(*source, offset, bytes, fetches.size()));
      }
    }
    const auto answers = fetch_all(fetches);
    for (const Fetch& fetch : fetches)
      expect_ok(answers.at(fetch.tag), text.substr(fetch.where.offset, fetch.where.bytes));
  }
}

TEST_P(EveryFetcher, RangesThatAreReadInPlaceNeedNoSlackAndTouchNothingBeyond) {
  const std::string text = pattern(5000);
  const auto source = has_objects() ? open("f", text) : open_source(folder_.file("f", text), Storage::buffered);
  std::string slot(1002, '#');
  Fetch fetch{.where = Location::in_source(source.get(), 123, 1000), .into = {}};
  fetch.into = std::as_writable_bytes(std::span(slot)).subspan(1, 1000);
  expect_ok(fetch_one(fetch), text.substr(123, 1000));
  EXPECT_EQ(slot, "#" + text.substr(123, 1000) + "#");
}

TEST_P(EveryFetcher, KeepsToItsDepth) {
  start(3, 2);
  put("f", "abc");
  EXPECT_EQ(fetcher_->room(), 3u);
  std::vector<Fetch> fetches = {file("f", 3, 0), file("f", 3, 1), file("f", 3, 2), file("f", 3, 3)};
  EXPECT_THROW(fetcher_->submit(fetches), Error);
  EXPECT_EQ(fetcher_->in_flight(), 0u);
  fetcher_->submit(std::span(fetches).first(3));
  EXPECT_EQ(fetcher_->room(), 0u);
  EXPECT_EQ(fetcher_->in_flight(), 3u);
  Fetched one;
  ASSERT_EQ(fetcher_->wait({&one, 1}, kForever), 1u);
  EXPECT_EQ(fetcher_->room(), 1u);
  fetcher_->submit(std::span(fetches).last(1));
  std::vector<Fetched> out(4);
  for (std::size_t got = 0; got < 3;) got += fetcher_->wait(out, kForever);
  EXPECT_EQ(fetcher_->room(), 3u);
}

TEST_P(EveryFetcher, RefusesABufferThatIsTooSmall) {
  put("f", pattern(5000));
  Fetch fetch = file("f", 5000);
  fetch.into = fetch.into.first(4999);
  EXPECT_THROW(fetcher_->submit({&fetch, 1}), Error);
  EXPECT_EQ(fetcher_->in_flight(), 0u);
}

TEST_P(EveryFetcher, WaitingWithNothingInFlightReturnsAtOnce) {
  Fetched one;
  EXPECT_EQ(fetcher_->wait({&one, 1}, kForever), 0u);
  EXPECT_EQ(fetcher_->wait({}, kForever), 0u);
}

TEST_P(EveryFetcher, AWakeThatCameBeforeEndsTheNextWaitAndNothingIsLost) {
  put("f", "abc");
  for (int round = 0; round < 3; ++round) {
    fetcher_->wake();
    fetcher_->wake();
    expect_ok(fetch_one(file("f", 3)), "abc");
  }
}

TEST_P(EveryFetcher, StaysUsableWhileAnotherThreadWakesIt) {
  put("f", "abc");
  std::vector<Fetch> fetches;
  for (std::uint64_t i = 0; i < 300; ++i) fetches.push_back(file("f", 3, i));
  std::atomic<bool> stop{false};
  std::jthread waker([&] {
    while (!stop) fetcher_->wake();
  });
  EXPECT_EQ(fetch_all(fetches).size(), 300u);
  stop = true;
}

TEST_P(EveryFetcher, ManyThreadsEachWithOneOfTheirOwn) {
  const std::string text = pattern(7000);
  put("f", text);
  const Location where = location("f", 7000);
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto mine = make(8, 4);
      const std::size_t each = (mine->buffer_bytes(7000) + 4095) / 4096 * 4096;
      const os::Arena arena(8 * each);
      std::vector<Fetched> out(8);
      for (int round = 0; round < 50; ++round) {
        std::vector<Fetch> fetches;
        for (std::size_t i = 0; i < 8; ++i) {
          fetches.push_back({.where = where, .into = {}});
          fetches.back().into = arena.bytes().subspan(i * each, each);
        }
        mine->submit(fetches);
        while (mine->in_flight() > 0) {
          const std::size_t filled = mine->wait(out, kForever);
          for (std::size_t i = 0; i < filled; ++i) {
            if (out[i].code != FetchCode::ok || std::memcmp(out[i].data.data(), text.data(), 7000) != 0) ++wrong;
          }
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_P(EveryFetcher, MayBeMadeUsedAndEndedInDifferentThreads) {
  put("f", "abc");
  std::jthread([this] { expect_ok(fetch_one(file("f", 3)), "abc"); }).join();
  std::jthread([this] {
    const Fetch fetch = file("f", 3);
    fetcher_->submit({&fetch, 1});
  }).join();
  fetcher_.reset();
}

TEST_P(EveryFetcher, EndingItWhileReadsAreInFlightWritesNothingAfterwards) {
  if (has_objects()) GTEST_SKIP() << "about files";
  const std::string text = pattern(300'000);
  const std::string path = folder_.file("f", text);
  for (int round = 0; round < 20; ++round) {
    const os::Fd fd = os::open_file(path, O_RDONLY);
    (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
    const std::size_t each = (fetcher_->buffer_bytes(300'000) + 4095) / 4096 * 4096;
    std::vector<Fetch> fetches;
    {
      os::Arena arena(16 * each);
      for (std::size_t i = 0; i < 16; ++i) {
        fetches.push_back({.where = Location::in_folder(directory_.get(), "f", 300'000), .into = {}});
        fetches.back().into = arena.bytes().subspan(i * each, each);
      }
      fetcher_->submit(fetches);
      Fetched one;
      if (round % 2 == 0) fetcher_->wait({&one, 1}, milliseconds(0));
      fetcher_.reset();
      std::memset(arena.data(), 0x5a, arena.size());
      for (const std::byte byte : arena.bytes()) {
        if (byte != std::byte{0x5a}) {
          ADD_FAILURE() << "written after the end";
          break;
        }
      }
    }
    start(16, 4);
  }
}

TEST_P(EveryFetcher, LeavesNoFileOpen) {
  if (is_s3()) GTEST_SKIP() << "the sockets of its server are open in this process too";
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  put("f", "abc");
  fetch_all({file("f", 3, 0), file("f", 4, 1), file("none", 1, 2)});
  const auto before = open_files();
  std::vector<Fetch> fetches;
  for (std::uint64_t i = 0; i < 100; ++i) fetches.push_back(file(i % 2 == 0 ? "f" : "none", i % 5, i));
  fetch_all(fetches);
  fetch_all(fetches);
  EXPECT_EQ(open_files(), before);
}

TEST_P(EveryFetcher, HasAsManyRequestsInFlightAsItIsDeep) {
  if (!has_objects() || is_warm()) GTEST_SKIP() << "about objects that are fetched";
  if (is_s3()) GTEST_SKIP() << "its server answers too soon; see s3/fetcher_test.cc";
  start(256, 32);
  store_.memory().await_in_flight(256);
  std::vector<Fetch> fetches;
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    texts.push_back(pattern(100 + i, i));
    put(std::to_string(i), texts.back());
    fetches.push_back(file(std::to_string(i), texts[i].size(), i));
  }
  const auto answers = fetch_all(fetches);
  for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(answers.at(i).text == texts[i]) << i;
  EXPECT_EQ(store_.most_in_flight(), 256u);
}

TEST_P(EveryFetcher, AWakeEndsAWaitForWhatDoesNotCome) {
  if (!has_objects() || is_warm()) GTEST_SKIP() << "about objects that are fetched";
  put("f", "abc");
  store_.hold("bucket/f");
  const Fetch fetch = file("f", 3);
  fetcher_->submit({&fetch, 1});
  std::jthread waker([&] { fetcher_->wake(); });
  Fetched one;
  EXPECT_EQ(fetcher_->wait({&one, 1}, kForever), 0u);
  EXPECT_EQ(fetcher_->wait({&one, 1}, milliseconds(1)), 0u);
  store_.let_go();
  while (fetcher_->wait({&one, 1}, kForever) == 0) {
  }
  EXPECT_EQ(one.code, FetchCode::ok);
}

TEST_P(EveryFetcher, FilesComeWhileObjectsAreAwaited) {
  if (GetParam().place != Place::files_of_two) GTEST_SKIP() << "about two at once";
  put("hit", "abc");
  store_.put("bucket/miss", "defg");
  store_.hold("bucket/miss");
  const Fetch miss{.where = Location::in_store(store_, "bucket/miss", nullptr, 0, 4), .into = buffer(4), .tag = 1};
  fetcher_->submit({&miss, 1});
  for (int round = 0; round < 20; ++round) {
    const Fetch hit = file("hit", 3, 2);
    fetcher_->submit({&hit, 1});
    Fetched one;
    while (fetcher_->wait({&one, 1}, kForever) == 0) {
    }
    EXPECT_EQ(one.tag, 2u);
  }
  EXPECT_EQ(fetcher_->in_flight(), 1u);
  std::jthread later([&] { store_.let_go(); });
  Fetched one;
  while (fetcher_->wait({&one, 1}, kForever) == 0) {
  }
  EXPECT_EQ(one.tag, 1u);
  EXPECT_EQ(one.data.size(), 4u);
}

TEST(FetchOf, ALocationWithoutRoomForItsNameCannotBeAskedFor) {
  EXPECT_FALSE(fetch_of(Location::in_folder(kWorkingFolder, nullptr, 3), 7));
  const std::optional<Fetch> fetch = fetch_of(Location::in_folder(kWorkingFolder, "a", 3), 7);
  ASSERT_TRUE(fetch);
  EXPECT_EQ(fetch->tag, 7u);
  EXPECT_EQ(fetch->where.bytes, 3u);
  EXPECT_TRUE(fetch->into.empty());
  EXPECT_FALSE(has_view(fetch->where)) << "a file of its own";
}

INSTANTIATE_TEST_SUITE_P(Fetchers, EveryFetcher, ::testing::ValuesIn(kKinds), name_of_kind);

}  // namespace
}  // namespace stoker::storage
