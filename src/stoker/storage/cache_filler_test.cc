#include "stoker/storage/cache_filler.h"

#include <string>

#include <gtest/gtest.h>

#include "stoker/storage/cache_folder_test.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::storage {
namespace {

class Filling : public ::testing::Test {
 protected:
  Filling() {
    store_.put("bucket/shard", std::string(100'000, 's'));
    source_ = store_.open("bucket/shard", Storage::buffered);
  }
  Location range(std::uint64_t offset, std::uint64_t bytes) const {
    return Location::in_source(source_.get(), offset, bytes);
  }
  void add(CacheFiller& filler, std::uint64_t offset, std::uint64_t bytes) const {
    const std::string text(bytes, 's');
    filler.add(range(offset, bytes), as_span(text));
  }
  bool is_there(std::uint64_t offset, std::uint64_t bytes) const {
    ObjectCache cache(folder_.path(), 1 << 20);
    ObjectCache::Lookup lookup{*cache_key(range(offset, bytes), store_.identity()), bytes, {}, Found::outside, 0};
    cache.look({&lookup, 1});
    return lookup.found == Found::hit;
  }

  MemoryStore store_;
  std::unique_ptr<Source> source_;
  CacheFolder folder_;
};

TEST_F(Filling, SamplesAreFoundUnderTheKeyOfTheirRange) {
  CacheFiller filling(std::make_unique<ObjectCache>(folder_.path(), 1 << 20), store_.identity());
  add(filling, 0, 5000);
  add(filling, 5000, 100);
  EXPECT_TRUE(is_there(0, 5000));
  EXPECT_TRUE(is_there(5000, 100));
  EXPECT_FALSE(is_there(0, 100));
}

TEST_F(Filling, NothingLeavesTheCacheForThem) {
  {
    CacheFiller first(std::make_unique<ObjectCache>(folder_.path(), 64 << 10), store_.identity());
    add(first, 0, 40'000);
  }
  CacheFiller second(std::make_unique<ObjectCache>(folder_.path(), 64 << 10), store_.identity());
  EXPECT_TRUE(second.has_room(20'000));
  EXPECT_FALSE(second.has_room(40'000));
  add(second, 40'000, 40'000);
  add(second, 0, 40'000);  // is there, and takes no room
  add(second, 80'000, 20'000);
  EXPECT_FALSE(second.has_room(8000));
  EXPECT_TRUE(is_there(0, 40'000));
  EXPECT_FALSE(is_there(40'000, 40'000));
  EXPECT_TRUE(is_there(80'000, 20'000));
}

}  // namespace
}  // namespace stoker::storage
