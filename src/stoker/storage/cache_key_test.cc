#include "stoker/storage/cache_key.h"

#include <gtest/gtest.h>

#include "stoker/storage/memory_store_test.h"

namespace stoker::storage {
namespace {

TEST(CacheKeyOf, DiffersWithStoreNameVersionAndRange) {
  const MemoryStore one, other("other");
  const CacheKey key = *cache_key(Location::in_store(one, "bucket/a", "v1", 0, 10), "memory");
  EXPECT_EQ(cache_key(Location::in_store(one, "bucket/a", "v1", 0, 10), "memory"), key);
  EXPECT_NE(cache_key(Location::in_store(other, "bucket/a", "v1", 0, 10), "other"), key);
  EXPECT_NE(cache_key(Location::in_store(one, "bucket/b", "v1", 0, 10), "memory"), key);
  EXPECT_NE(cache_key(Location::in_store(one, "bucket/a", "v2", 0, 10), "memory"), key);
  EXPECT_NE(cache_key(Location::in_store(one, "bucket/a", "v1", 1, 10), "memory"), key);
  EXPECT_NE(cache_key(Location::in_store(one, "bucket/a", "v1", 0, 9), "memory"), key);
  EXPECT_NE(cache_key(Location::in_store(one, "bucket/av", "1", 0, 10), "memory"), key)
      << "where one part ends matters";
}

TEST(CacheKeyOf, IsTheSameForAnObjectAndForTheWholeOfAnOpenSource) {
  MemoryStore store;
  store.put("bucket/a", "0123456789");
  const auto source = store.open("bucket/a", Storage::buffered);
  EXPECT_EQ(cache_key(Location::in_source(source.get(), 0, 10), "memory"),
            cache_key(Location::in_store(store, "bucket/a", store.version("bucket/a").c_str(), 0, 10), "memory"));
}

TEST(CacheKeyOf, NeedsAVersionAndBytesAndAStore) {
  const MemoryStore store;
  EXPECT_FALSE(cache_key(Location::in_store(store, "bucket/a", nullptr, 0, 10), "memory"));
  EXPECT_FALSE(cache_key(Location::in_store(store, "bucket/a", "", 0, 10), "memory"));
  EXPECT_FALSE(cache_key(Location::in_store(store, "bucket/a", "W/v1", 0, 10), "memory")) << "a weak version";
  EXPECT_FALSE(cache_key(Location::in_store(store, "bucket/a", "v1", 0, 0), "memory"));
  EXPECT_FALSE(cache_key(Location::in_folder(kWorkingFolder, "a", 10), "memory"));
}

TEST(CachedFileName, IsReadBackAndAnyOtherIsRefused) {
  const CachedFile file{{0x3f00000000000001, 2}, 123'456, 7};
  const std::string name = file_name(file);
  EXPECT_EQ(name, "3f/3f000000000000010000000000000002-0000000000000007-1e240");
  const auto parsed = parse_file_name("3f", name.substr(3));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->key, file.key);
  EXPECT_EQ(parsed->bytes, file.bytes);
  EXPECT_EQ(parsed->checksum, file.checksum);
  EXPECT_FALSE(parse_file_name("3e", name.substr(3))) << "in the wrong folder";
  for (const char* const other : {"", "x", "3f000000000000010000000000000002-0000000000000007-", "holiday.jpg",
                                  "3F000000000000010000000000000002-0000000000000007-1e240",
                                  "3f000000000000010000000000000002-0000000000000007-01e240",
                                  "3f000000000000010000000000000002-0000000000000007-1e240.bak",
                                  "3f000000000000010000000000000002+0000000000000007-1e240"}) {
    EXPECT_FALSE(parse_file_name("3f", other)) << other;
  }
}

}  // namespace
}  // namespace stoker::storage
