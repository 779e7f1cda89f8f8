#include "stoker/storage/prefault.h"

#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stoker/base/random.h"
#include "stoker/os/fd.h"
#include "stoker/os/mapping.h"
#include "stoker/os/temp_folder_test.h"
#include "stoker/storage/fetcher.h"

namespace stoker::storage {
namespace {

constexpr std::size_t kRow = 16'000, kRows = 1024;

std::string text_of_rows() {
  std::string text;
  for (std::size_t i = 0; i < kRows; ++i) text.append(kRow, static_cast<char>(i % 251));
  return text;
}

class Mapped : public testing::Test {
 protected:
  // Out of the page cache; false where the file system does not let it go.
  bool drop() const {
    const os::Fd fd = os::open_file(path_, O_RDONLY);
    (void)::fsync(fd.get());
    (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
    const os::Mapping mapping(fd.get(), kRow * kRows, path_);
    std::vector<unsigned char> there(kRow * kRows / 4096 + 1);
    auto* const data = const_cast<std::byte*>(mapping.bytes().data());
    if (::mincore(data, kRow * kRows, there.data()) != 0) return false;
    std::size_t count = 0;
    for (const unsigned char page : there) count += page & 1;
    return count == 0;
  }

  os::TempFolder folder_;
  const std::string path_ = folder_.file("rows", text_of_rows());
};

TEST_F(Mapped, PagesThatHadToBeWaitedForAreAskedForAheadUntilAllAreThere) {
  if (!drop()) GTEST_SKIP() << "this file system keeps its files in memory";
  const os::Mapping mapping(os::open_file(path_, O_RDONLY).get(), kRow * kRows, path_);
  const auto row = [&](std::size_t i) { return mapping.bytes().subspan(i * kRow, kRow); };
  Prefault prefault;
  EXPECT_FALSE(prefault.ask(row(0))) << "nothing is known yet";
  prefault.begin();
  prefault.settle(row(0), false);
  prefault.end(false);
  ASSERT_TRUE(prefault.is_cold());
  EXPECT_TRUE(prefault.ask(row(500)));
  prefault.begin();
  prefault.settle(row(500), true);
  prefault.end(true);
  EXPECT_TRUE(prefault.is_cold()) << "nobody was left to tell";
  ASSERT_TRUE(mapping.populate());
  std::size_t asked = 0;
  while (prefault.ask(row(asked % kRows))) ++asked;
  EXPECT_LT(asked, 1000u) << "now and then one must be left to tell";
  prefault.begin();
  prefault.settle(row(asked % kRows), false);
  prefault.end(false);
  EXPECT_FALSE(prefault.is_cold());
}

TEST_F(Mapped, RowsAreTheSameColdAndWarmCopiedOrInPlace) {
  (void)drop();
  const auto source = open_source(path_, Storage::mmap);
  const auto fetcher = make_fetcher({.storage = Storage::mmap, .depth = 64});
  std::vector<std::byte> room(64 * kRow);
  std::vector<Fetched> done(64);
  Random random(1, 2, 3);
  for (int round = 0; round < 40; ++round) {
    std::vector<Fetch> fetches(64);
    for (std::size_t i = 0; i < fetches.size(); ++i) {
      const std::uint64_t row = random.below(kRows);
      fetches[i].where = Location::in_source(source.get(), row * kRow, kRow);
      fetches[i].tag = row;
      if (round % 2 == 0) fetches[i].into = {room.data() + i * kRow, kRow};
    }
    fetcher->submit(fetches);
    for (std::size_t left = fetches.size(); left > 0;) {
      const std::size_t count = fetcher->wait(done, std::chrono::seconds(10));
      ASSERT_GT(count, 0u);
      left -= count;
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(done[i].code, FetchCode::ok);
        ASSERT_EQ(done[i].data.size(), kRow);
        ASSERT_EQ(done[i].data.front(), static_cast<std::byte>(done[i].tag % 251));
        ASSERT_EQ(done[i].data.back(), static_cast<std::byte>(done[i].tag % 251));
      }
    }
  }
}

}  // namespace
}  // namespace stoker::storage
