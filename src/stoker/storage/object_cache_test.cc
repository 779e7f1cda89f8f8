#include "stoker/storage/object_cache.h"

#include <cerrno>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/storage/cache_folder_test.h"

namespace stoker::storage {
namespace {

constexpr std::uint64_t kMuch = std::uint64_t{1} << 30;

class Caching : public ::testing::Test {
 protected:
  std::string error_of(const std::string& folder) {
    try {
      const ObjectCache cache(folder, kMuch);
    } catch (const Error& error) {
      return error.message() + " | " + error.hint();
    }
    return {};
  }
  // Runs `work` in a process of its own, which is killed at the end of it.
  template <typename Work>
  void in_a_process_that_is_killed(Work&& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      work();
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended earlier, with " << WEXITSTATUS(status);
  }

  CacheFolder folder_;
};

TEST_F(Caching, KeepsWhatIsStoredForEverybody) {
  ObjectCache one(folder_.path(), kMuch), other(folder_.path(), kMuch);
  EXPECT_EQ(look(one, 1).found, Found::claimed);
  EXPECT_EQ(look(one, 1).found, Found::busy);
  EXPECT_EQ(look(other, 1).found, Found::busy);
  EXPECT_TRUE(store(one, 1));
  EXPECT_EQ(read_hit(one, look(one, 1)), bytes_number(1));
  EXPECT_EQ(read_hit(other, look(other, 1)), bytes_number(1));
  EXPECT_TRUE(one.notes().empty());
}

TEST_F(Caching, KeepsWhatIsStoredForLaterRuns) {
  {
    ObjectCache cache(folder_.path(), kMuch);
    look(cache, 1);
    store(cache, 1);
  }
  ObjectCache later(folder_.path(), kMuch);
  EXPECT_EQ(read_hit(later, look(later, 1)), bytes_number(1));
}

TEST_F(Caching, AClaimThatIsGivenUpIsFree) {
  ObjectCache one(folder_.path(), kMuch), other(folder_.path(), kMuch);
  look(one, 1);
  one.release(key_number(1));
  EXPECT_EQ(look(other, 1).found, Found::claimed);
}

TEST_F(Caching, AClaimOfAKilledProcessIsFree) {
  ObjectCache cache(folder_.path(), kMuch);
  in_a_process_that_is_killed([&] {
    ObjectCache mine(folder_.path(), kMuch);
    if (look(mine, 1).found != Found::claimed) ::_exit(1);
  });
  EXPECT_EQ(look(cache, 1).found, Found::claimed);
}

TEST_F(Caching, AProcessThatIsKilledWithinTheTableLeavesItToTheNext) {
  ObjectCache cache(folder_.path(), kMuch);
  look(cache, 1);
  store(cache, 1);
  in_a_process_that_is_killed([&] {
    ObjectCache mine(folder_.path(), kMuch);
    const os::InjectFault fault(os::Call::step, {.kill = true});
    look(mine, 2);
    ::_exit(1);
  });
  EXPECT_EQ(read_hit(cache, look(cache, 1)), bytes_number(1));
  EXPECT_EQ(look(cache, 2).found, Found::claimed);
}

TEST_F(Caching, EvictsToKeepToItsLimit) {
  constexpr std::uint64_t kLimit = 100'000;
  ObjectCache cache(folder_.path(), kLimit);
  for (std::uint64_t number = 0; number < 50; ++number) {
    ASSERT_EQ(look(cache, number).found, Found::claimed);
    ASSERT_TRUE(store(cache, number));
    ASSERT_LE(folder_.bytes_on_disk(), kLimit);
    ASSERT_EQ(folder_.bytes_on_disk(), cache.contents().used_bytes);
    ASSERT_EQ(look(cache, number).found, Found::hit) << "the newest is not the one to go";
  }
  EXPECT_GT(cache.stats().evicted, 30u);
  EXPECT_EQ(look(cache, 0).found, Found::claimed);
}

TEST_F(Caching, PassesByWhatIsUsedLaterThanAllThatItHas) {
  ObjectCache cache(folder_.path(), 60'000);
  std::uint64_t number = 0;
  for (; cache.stats().passed_by == 0 && number < 100; ++number) {
    const NextUse use{7, number, 1000 + number};
    ASSERT_EQ(look(cache, number, use).found, Found::claimed);
    store(cache, number, use);
  }
  EXPECT_EQ(cache.stats().evicted, 0u);
  const NextUse soon{7, number, number + 1};
  look(cache, number, soon);
  EXPECT_TRUE(store(cache, number, soon));
  EXPECT_GT(cache.stats().evicted, 0u);
}

TEST_F(Caching, KeepsWhatIsUsedLaterIfSomebodyWaitsForIt) {
  ObjectCache cache(folder_.path(), 30'000), other(folder_.path(), 30'000);
  for (std::uint64_t number = 0; number < 10; ++number) {
    const NextUse use{7, number, 1000 + number};
    look(cache, number, use);
    ASSERT_EQ(look(other, number, use).found, Found::busy);
    ASSERT_TRUE(store(cache, number, use));
    ASSERT_EQ(look(other, number, use).found, Found::hit);
  }
}

TEST_F(Caching, AnObjectAboveTheLimitIsNotKeptAndSaidOnce) {
  ObjectCache cache(folder_.path(), 10'000);
  EXPECT_EQ(look(cache, 1, {}, 20'000).found, Found::outside);
  EXPECT_EQ(look(cache, 2, {}, 20'000).found, Found::outside);
  ASSERT_EQ(cache.notes().size(), 1u);
  EXPECT_NE(cache.notes()[0].in_python().find("cache_limit"), std::string::npos) << cache.notes()[0].in_python();
}

TEST_F(Caching, AFullDiskEndsTheCachingAndNothingElse) {
  ObjectCache cache(folder_.path(), kMuch);
  look(cache, 1);
  ASSERT_TRUE(store(cache, 1));
  look(cache, 2);
  look(cache, 3);
  {
    const os::InjectFault fault(os::Call::write, {.error_number = ENOSPC, .times = 100});
    EXPECT_FALSE(store(cache, 2));
  }
  EXPECT_FALSE(store(cache, 3));
  EXPECT_EQ(look(cache, 2).found, Found::outside);
  EXPECT_EQ(look(cache, 3).found, Found::outside);
  EXPECT_EQ(read_hit(cache, look(cache, 1)), bytes_number(1));
  EXPECT_EQ(folder_.files().size(), 1u);
  ASSERT_EQ(cache.notes().size(), 1u);
  EXPECT_NE(cache.notes()[0].in_python().find("No space left"), std::string::npos) << cache.notes()[0].in_python();
}

TEST_F(Caching, AFileThatIsDamagedIsDroppedAndSaidOnce) {
  ObjectCache cache(folder_.path(), kMuch);
  for (std::uint64_t number = 1; number < 4; ++number) {
    look(cache, number);
    store(cache, number);
    const auto hit = look(cache, number);
    std::filesystem::resize_file(cache.path_of({hit.key, hit.bytes, hit.checksum}), 1);
    ASSERT_FALSE(read_hit(cache, hit));
    cache.drop(hit, true);
    EXPECT_EQ(look(cache, number).found, Found::claimed);
  }
  EXPECT_TRUE(folder_.files().empty());
  EXPECT_EQ(cache.notes().size(), 1u);
  EXPECT_EQ(cache.stats().damaged, 3u);
}

TEST_F(Caching, TouchesNoFilesThatItDidNotWrite) {
  { const ObjectCache cache(folder_.path(), kMuch); }
  const std::vector<std::string> foreign = {folder_.objects() + "/00/holiday.jpg", folder_.objects() + "/parts/note",
                                            folder_.objects() + "/parts/1-x", folder_.path() + "/listing-1.bin"};
  for (const char* const folder : {"/00", "/parts"}) std::filesystem::create_directory(folder_.objects() + folder);
  for (const std::string& path : foreign) std::ofstream(path) << "mine";
  std::filesystem::remove(folder_.objects() + "/table");
  ObjectCache cache(folder_.path(), 40'000);
  for (std::uint64_t number = 0; number < 20; ++number) {
    look(cache, number);
    store(cache, number);
  }
  for (const std::string& path : foreign) EXPECT_TRUE(std::filesystem::exists(path)) << path;
}

TEST_F(Caching, RefusesAFolderThatItDidNotMake) {
  std::filesystem::create_directory(folder_.objects());
  std::ofstream(folder_.objects() + "/thesis.tex") << "mine";
  EXPECT_NE(error_of(folder_.path()).find("not of a cache"), std::string::npos) << error_of(folder_.path());
}

TEST_F(Caching, SaysWhyAFolderCannotBeUsed) {
  EXPECT_NE(error_of("/proc/none").find("cannot cache objects"), std::string::npos) << error_of("/proc/none");
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  { const ObjectCache cache(folder_.path(), kMuch); }
  ASSERT_EQ(::chown(folder_.objects().c_str(), 1234, 1234), 0);
  EXPECT_NE(error_of(folder_.path()).find("another user"), std::string::npos) << error_of(folder_.path());
}

TEST_F(Caching, ATableThatIsRemovedOrDamagedIsMadeAgainFromTheFiles) {
  ObjectCache cache(folder_.path(), kMuch);
  for (std::uint64_t number = 0; number < 10; ++number) {
    look(cache, number);
    store(cache, number);
  }
  const std::string table = folder_.objects() + "/table";
  std::filesystem::remove(table);
  {
    ObjectCache other(folder_.path(), kMuch);
    EXPECT_EQ(other.contents().entries, 10u);
    look(cache, 10);
    store(cache, 10);
    look(cache, 11);
    store(cache, 11);
    EXPECT_EQ(look(other, 11).found, Found::hit) << "both use the new table";
  }
  std::fstream(table, std::ios::in | std::ios::out | std::ios::binary).write("garbage", 7);
  ObjectCache other(folder_.path(), kMuch);
  EXPECT_EQ(other.contents().entries, 12u - 1u) << "what the first wrote without a claim in the new table is not kept";
}

TEST_F(Caching, AFolderThatIsRemovedEndsTheCaching) {
  ObjectCache cache(folder_.path(), kMuch);
  look(cache, 1);
  std::filesystem::remove_all(folder_.objects());
  EXPECT_FALSE(store(cache, 1));
  EXPECT_EQ(cache.notes().size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder_.objects()));
}

TEST_F(Caching, MakesFoldersOfFilesAgainWhereSomebodyRemovedThem) {
  ObjectCache cache(folder_.path(), kMuch);
  for (int round = 0; round < 2; ++round) {
    const auto lookup = look(cache, 1);
    if (lookup.found == Found::hit) cache.drop(lookup, false);
    look(cache, 1);
    EXPECT_TRUE(store(cache, 1));
    for (const auto& file : folder_.files()) std::filesystem::remove_all(file.parent_path());
    std::filesystem::remove_all(folder_.objects() + "/parts");
  }
  EXPECT_TRUE(cache.notes().empty());
}

TEST_F(Caching, GrowsWithTheNumberOfObjectsWhileOthersUseIt) {
  ObjectCache cache(folder_.path(), kMuch), other(folder_.path(), kMuch);
  for (std::uint64_t number = 0; number < 3000; ++number) {
    ObjectCache& user = number % 2 == 0 ? cache : other;
    ASSERT_EQ(look(user, number, {}, 10).found, Found::claimed);
    ASSERT_TRUE(user.store(key_number(number), as_span("0123456789").first(10)));
  }
  for (std::uint64_t number = 0; number < 3000; ++number) {
    ASSERT_EQ(look(number % 2 == 0 ? other : cache, number, {}, 10).found, Found::hit);
  }
}

TEST_F(Caching, ALockThatFailsEndsTheCachingAndNothingElse) {
  ObjectCache cache(folder_.path(), kMuch);
  const os::InjectFault fault(os::Call::lock, {.error_number = ENOLCK, .times = 100});
  EXPECT_EQ(look(cache, 1).found, Found::outside);
  EXPECT_FALSE(store(cache, 1));
  cache.release(key_number(1));
  EXPECT_EQ(cache.notes().size(), 1u);
}

TEST_F(Caching, ASmallerLimitHoldsFromTheStart) {
  {
    ObjectCache cache(folder_.path(), kMuch);
    for (int i = 0; i < 40; ++i) {
      look(cache, static_cast<std::uint64_t>(i));
      ASSERT_TRUE(store(cache, static_cast<std::uint64_t>(i)));
    }
  }
  constexpr std::uint64_t kLess = 100'000;
  {
    ObjectCache cache(folder_.path(), kLess);
    EXPECT_LE(folder_.bytes_on_disk(), kLess);
    EXPECT_GT(folder_.bytes_on_disk(), kLess / 2);
    EXPECT_EQ(look(cache, 39).found, Found::hit) << "the last one that was used";
    EXPECT_NE(look(cache, 0).found, Found::hit);
  }
  const ObjectCache none(folder_.path(), 1000);
  EXPECT_TRUE(folder_.files().empty());
}

TEST_F(Caching, AFileThatReplacedADamagedOneIsNotDropped) {
  ObjectCache cache(folder_.path(), kMuch);
  look(cache, 1);
  store(cache, 1);
  const ObjectCache::Lookup first = look(cache, 1), second = look(cache, 1);  // two requests read the damaged file
  cache.drop(first, true);
  EXPECT_EQ(look(cache, 1).found, Found::claimed);
  store(cache, 1);
  cache.drop(second, true);
  EXPECT_EQ(read_hit(cache, look(cache, 1)), bytes_number(1));
}

TEST_F(Caching, AFolderInPlaceOfAFileCostsThatObjectOnly) {
  ObjectCache cache(folder_.path(), kMuch);
  for (const std::uint64_t number : {1, 2}) {
    look(cache, number);
    store(cache, number);
  }
  const ObjectCache::Lookup hit = look(cache, 1);
  const std::string path = cache.path_of({hit.key, hit.bytes, hit.checksum});
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  cache.drop(hit, true);
  EXPECT_EQ(look(cache, 1).found, Found::claimed);
  EXPECT_FALSE(store(cache, 1));
  EXPECT_EQ(read_hit(cache, look(cache, 2)), bytes_number(2));
  look(cache, 3);
  EXPECT_TRUE(store(cache, 3));
  bool is_named = false;
  for (const Text& note : cache.notes()) is_named = is_named || note.in_python().find(path) != std::string::npos;
  EXPECT_TRUE(is_named);
}

TEST_F(Caching, ObjectsAboveTheLimitAreNotedOnce) {
  ObjectCache cache(folder_.path(), 1000);
  for (const std::uint64_t bytes : {5000, 90'000, 7000}) EXPECT_EQ(look(cache, bytes, {}, bytes).found, Found::outside);
  ASSERT_EQ(cache.notes().size(), 1u);
  EXPECT_NE(cache.notes()[0].in_python().find("87.9 KiB"), std::string::npos) << cache.notes()[0].in_python();
}

}  // namespace
}  // namespace stoker::storage
