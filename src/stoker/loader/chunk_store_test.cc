#include "stoker/loader/chunk_store.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kChunk = 8192;

std::uint64_t room_for(std::uint64_t chunks) {
  return os::Arena::rounded(chunks * kChunk) + chunks * (ChunkStore::bytes_for(kChunk) - kChunk);
}

// Takes the chunk, decoding it where it is not there. Whether it was.
bool use(ChunkStore& store, std::uint64_t chunk) {
  ChunkStore::Lease lease = store.lease({1, chunk});
  const bool was_there = lease.is_filled();
  if (lease.data() != nullptr && !was_there) {
    std::memcpy(lease.data(), &chunk, sizeof chunk);
    lease.fill();
  }
  return was_there;
}

TEST(ChunkStore, DecodesAChunkOnceWhileItIsKept) {
  ChunkStore store(room_for(4), kChunk);
  EXPECT_FALSE(use(store, 7));
  EXPECT_TRUE(use(store, 7));
  EXPECT_FALSE(store.lease({2, 7}).is_filled()) << "of another volume";
  EXPECT_EQ(store.figures().hits, 1u);
}

TEST(ChunkStore, GivesUpTheOneThatWasNotUsedForLongest) {
  ChunkStore store(room_for(3), kChunk);
  for (const std::uint64_t chunk : {1, 2, 3, 1, 4}) use(store, chunk);
  EXPECT_TRUE(use(store, 1));
  EXPECT_TRUE(use(store, 3));
  EXPECT_FALSE(use(store, 2));
  EXPECT_EQ(store.figures().chunks, 3u);
}

TEST(ChunkStore, StaysWithinItsLimitAndLeasedChunksStay) {
  ChunkStore store(room_for(2), kChunk);
  EXPECT_LE(store.figures().memory_bytes, room_for(2));
  use(store, 1);
  const ChunkStore::Lease one = store.lease({1, 1});
  const ChunkStore::Lease two = store.lease({1, 2});
  EXPECT_NE(two.data(), nullptr);
  EXPECT_EQ(store.lease({1, 3}).data(), nullptr) << "both are in use";
}

TEST(ChunkStore, ForgetsAChunkThatCouldNotBeDecoded) {
  ChunkStore store(room_for(2), kChunk);
  { const ChunkStore::Lease lease = store.lease({1, 5}); }
  EXPECT_FALSE(store.lease({1, 5}).is_filled());
  EXPECT_FALSE(use(store, 5));
  EXPECT_TRUE(use(store, 5));
}

TEST(ChunkStore, WithoutRoomForOneItKeepsNothing) {
  ChunkStore store(100, kChunk);
  EXPECT_EQ(store.lease({1, 1}).data(), nullptr);
}

TEST(ChunkStore, ManyThreadsSeeWholeChunksOnly) {
  ChunkStore store(room_for(3), kChunk);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t, 0, 0);
      for (int i = 0; i < 2000; ++i) {
        const std::uint64_t chunk = random.below(6);
        ChunkStore::Lease lease = store.lease({1, chunk});
        if (lease.data() == nullptr) continue;
        if (!lease.is_filled()) {
          if (random.below(8) == 0) continue;  // it could not be decoded
          for (std::size_t at = 0; at < kChunk; at += 8) std::memcpy(lease.data() + at, &chunk, 8);
          lease.fill();
        }
        std::uint64_t first = 0, last = 0;
        std::memcpy(&first, lease.data(), 8);
        std::memcpy(&last, lease.data() + kChunk - 8, 8);
        wrong += first != chunk || last != chunk;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
}

}  // namespace
}  // namespace stoker::loader
