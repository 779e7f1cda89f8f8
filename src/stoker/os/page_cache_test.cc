#include "stoker/os/page_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "stoker/os/fd.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

TEST(PageCache, CountsThePagesOfARange) {
  const TempFolder folder;
  const Fd file = open_file(folder.file("data", std::string(3 * 65536, 'x')), O_RDONLY);
  const auto page = cached_pages(file.get(), 0, 1), all = cached_pages(file.get(), 0, 1u << 30);
  ASSERT_TRUE(page && all);
  EXPECT_EQ(page->pages, 1u);
  EXPECT_GE(all->pages, 3u);
  EXPECT_EQ(all->resident, all->pages);  // it was just written
}

TEST(PageCache, HasNoPagesBeyondTheEnd) {
  const TempFolder folder;
  const Fd file = open_file(folder.file("data", "x"), O_RDONLY);
  EXPECT_EQ(cached_pages(file.get(), 1u << 20, 10)->pages, 0u);
}

TEST(PageCache, ForgetsAFileThatIsDropped) {
  const TempFolder folder;
  const Fd file = open_file(folder.file("data", std::string(1 << 20, 'x')), O_RDONLY);
  drop_pages(file.get());
  const auto left = cached_pages(file.get(), 0, 1u << 20);
  ASSERT_TRUE(left);
  if (left->resident == left->pages) GTEST_SKIP() << "this file system keeps its pages";
  EXPECT_LT(left->resident, left->pages);
}

}  // namespace
}  // namespace stoker::os
