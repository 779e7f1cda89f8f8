// The life of an object cache at random, against a model: objects are looked up, stored, given up, evicted and damaged
// by two users in this process and by children that are killed at a random step, while calls fail now and then.
// Whatever happens: a hit has the right bytes or is known to be wrong, the limit holds, no file lies there that the
// table does not know, claims of dead users are free, and files of others stay.
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <random>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/os/fault.h"
#include "stoker/storage/cache_folder_test.h"

namespace stoker::storage {
namespace {

constexpr std::uint64_t kObjects = 60;
constexpr std::uint64_t kRoom = 150'000;  // about a quarter of all objects

class Life {
 public:
  explicit Life(std::uint64_t seed) : random_(seed) {
    for (auto& user : users_) user = std::make_unique<ObjectCache>(folder_.path(), kRoom);
    foreign_ = folder_.objects() + "/7f/mine.txt";
    std::filesystem::create_directory(folder_.objects() + "/7f");
    std::ofstream(foreign_) << "mine";
  }

  void step() {
    switch (random_() % 12) {
      case 0:
        damage();
        break;
      case 1:
        crash();
        break;
      case 2:
        fail();
        break;
      case 3:
        restart();
        break;
      default:
        use(*users_[random_() % 2]);
    }
    check();
  }

  std::uint64_t crashes() const { return crashes_; }
  std::uint64_t hits() const { return hits_; }

 private:
  NextUse next_use() {
    ++position_;
    return ordered_ ? NextUse{9, position_, position_ + 1 + random_() % 200} : NextUse{};
  }

  // One object, as a fetcher would have it.
  void use(ObjectCache& cache) {
    const std::uint64_t number = random_() % kObjects;
    const NextUse use = next_use();
    const auto lookup = look(cache, number, use);
    switch (lookup.found) {
      case Found::hit: {
        const auto bytes = read_hit(cache, lookup);
        if (bytes) {
          ASSERT_EQ(*bytes, bytes_number(number));
          ++hits_;
        } else {
          cache.drop(lookup, true);
          ASSERT_NE(look(cache, number).found, Found::hit);
          cache.release(key_number(number));
        }
        break;
      }
      case Found::claimed:
        if (random_() % 8 == 0) {
          cache.release(key_number(number));
        } else {
          const bool is_kept = store(cache, number, use);
          if (is_kept) {
            ASSERT_EQ(look(cache, number, use).found, Found::hit);
          }
        }
        break;
      case Found::busy:
        FAIL() << "nobody alive has a claim";
      case Found::outside:
        break;
    }
  }

  void damage() {
    const auto files = folder_.files(false);
    if (files.empty()) return;
    const auto& file = files[random_() % files.size()];
    switch (random_() % 4) {
      case 0:
        std::filesystem::remove(file);
        break;
      case 1:
        std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
        break;
      case 2: {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekg(0);
        const int byte = stream.get();
        stream.seekp(0);
        stream.put(static_cast<char>(byte ^ 1));
        break;
      }
      default:
        if (random_() % 4 == 0) std::filesystem::remove(folder_.objects() + "/table");
    }
    is_damaged_ = true;
  }

  // A child uses the cache, with a cache of its own, until it is killed in the middle of a call.
  void crash() {
    constexpr os::Call kCalls[] = {os::Call::step,   os::Call::step,   os::Call::write, os::Call::rename,
                                   os::Call::unlink, os::Call::unlink, os::Call::open,  os::Call::lock};
    const os::Call call = kCalls[random_() % std::size(kCalls)];
    const auto skip = static_cast<std::uint32_t>(random_() % 40);
    const std::uint64_t seed = random_();
    const pid_t child = ::fork();
    if (child == 0) {
      const os::InjectFault fault(call, {.skip = skip, .kill = true});
      ObjectCache cache(folder_.path(), kRoom);
      random_.seed(seed);
      for (int i = 0; i < 20; ++i) use(cache);
      for (std::uint64_t number = 0; number < 5; ++number) look(cache, number);  // claims that it dies with
      if (::testing::Test::HasFailure()) ::_exit(1);
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
    ++crashes_;
  }

  void fail() {
    constexpr os::Call kCalls[] = {os::Call::write, os::Call::rename, os::Call::open, os::Call::close};
    constexpr int kErrors[] = {ENOSPC, EIO, EMFILE};
    auto& user = users_[random_() % 2];
    {
      const os::InjectFault fault(kCalls[random_() % std::size(kCalls)],
                                  {.error_number = kErrors[random_() % std::size(kErrors)],
                                   .skip = static_cast<std::uint32_t>(random_() % 3),
                                   .times = 2});
      use(*user);
    }
    user.reset();  // it may have stopped for good
    user = std::make_unique<ObjectCache>(folder_.path(), kRoom);
  }

  void restart() {
    auto& user = users_[random_() % 2];
    user.reset();
    ordered_ = random_() % 2 == 0;
    if (random_() % 4 == 0) users_[0].reset(), users_[1].reset();
    for (auto& one : users_) {
      if (!one) one = std::make_unique<ObjectCache>(folder_.path(), kRoom);
    }
  }

  void check() {
    ASSERT_TRUE(std::filesystem::exists(foreign_));
    if (random_() % 4 != 0) return;
    ASSERT_LE(folder_.bytes_on_disk(), kRoom);
    if (random_() % 2 != 0) return;
    // Who opens it clears what killed processes left. Then the table and the files agree, but for damage.
    ObjectCache fresh(folder_.path(), kRoom);
    const auto contents = fresh.contents();
    ASSERT_LE(contents.used_bytes, kRoom);
    if (!is_damaged_) {
      ASSERT_EQ(contents.used_bytes, folder_.bytes_on_disk());
    }
    ASSERT_LE(folder_.files().size(), contents.entries) << "a file that the table does not know";
    if (!is_damaged_) return;
    for (std::uint64_t number = 0; number < kObjects; ++number) {
      const auto lookup = look(fresh, number);
      ASSERT_NE(lookup.found, Found::busy);
      if (lookup.found == Found::claimed) fresh.release(lookup.key);
      if (lookup.found == Found::hit && !read_hit(fresh, lookup)) fresh.drop(lookup, true);
    }
    is_damaged_ = false;
    ASSERT_EQ(fresh.contents().used_bytes, folder_.bytes_on_disk());
  }

  std::mt19937_64 random_;
  CacheFolder folder_;
  std::unique_ptr<ObjectCache> users_[2];
  std::string foreign_;
  bool ordered_ = false, is_damaged_ = false;
  std::uint64_t position_ = 0, crashes_ = 0, hits_ = 0;
};

TEST(CacheLife, AtRandomIsAsTheModelSays) {
  const char* const from = std::getenv("STOKER_LIFE_SEED");
  const std::uint64_t first = from != nullptr ? std::strtoull(from, nullptr, 10) : 1;
  std::uint64_t crashes = 0, hits = 0;
  for (std::uint64_t seed = first; seed < first + 6; ++seed) {
    Life life(seed);
    for (int step = 0; step < 300; ++step) {
      life.step();
      ASSERT_FALSE(::testing::Test::HasFailure()) << "STOKER_LIFE_SEED=" << seed << ", step " << step;
    }
    crashes += life.crashes();
    hits += life.hits();
  }
  EXPECT_GT(crashes, 80u);
  EXPECT_GT(hits, 100u);
}

}  // namespace
}  // namespace stoker::storage
