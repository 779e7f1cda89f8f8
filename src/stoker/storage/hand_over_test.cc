#include "stoker/storage/hand_over.h"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::storage {
namespace {

class Handing : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kShard = 100'000;
  static inline const std::uint64_t kRoom = os::Arena::rounded(kShard);

  bool keep(HandOver& store, const Source& source, char fill, std::uint64_t sample_bytes = kShard) {
    os::Arena room = store.take_room(kShard);
    if (room.size() == 0) return false;
    std::memset(room.data(), fill, kShard);
    store.keep(source, std::move(room), sample_bytes);
    return true;
  }
  static std::string copied(const HandOver& store, const Source& source, std::uint64_t offset, std::size_t bytes) {
    std::string text(bytes, '?');
    return store.copy(source, offset, std::as_writable_bytes(std::span(text))) ? text : "none";
  }
  static bool hand_out(HandOver& store, const Source& source, std::uint64_t offset, std::size_t bytes) {
    std::string text(bytes, '?');
    return store.hand_out(source, offset, std::as_writable_bytes(std::span(text)), bytes);
  }

  std::string content_ = std::string(kShard, 'x');
  std::unique_ptr<Source> a_ = memory_source("a", std::as_bytes(std::span(content_)));
  std::unique_ptr<Source> b_ = memory_source("b", std::as_bytes(std::span(content_)));
  std::unique_ptr<Source> c_ = memory_source("c", std::as_bytes(std::span(content_)));
};

TEST_F(Handing, KeepsWhatFitsItsLimit) {
  HandOver store(2 * kRoom);
  EXPECT_TRUE(keep(store, *a_, 'a'));
  EXPECT_TRUE(keep(store, *b_, 'b'));
  EXPECT_FALSE(keep(store, *c_, 'c'));
  EXPECT_EQ(store.held_bytes(), 2 * kRoom);
  EXPECT_EQ(copied(store, *a_, 5, 3), "aaa");
  EXPECT_EQ(copied(store, *b_, kShard - 2, 2), "bb");
  EXPECT_EQ(copied(store, *c_, 0, 1), "none");
}

TEST_F(Handing, RoomThatIsNotUsedIsThereAgain) {
  HandOver store(kRoom);
  os::Arena room = store.take_room(kShard);
  EXPECT_EQ(room.size(), kRoom);
  EXPECT_EQ(store.take_room(1).size(), 0u);
  store.give_back(std::move(room));
  EXPECT_EQ(store.held_bytes(), 0u);
  EXPECT_TRUE(keep(store, *a_, 'a', 0)) << "a shard without samples";
  EXPECT_EQ(store.held_bytes(), 0u);
}

TEST_F(Handing, ASourceLeavesWithTheLastOfItsSamples) {
  HandOver store(2 * kRoom);
  keep(store, *a_, 'a', 300);
  EXPECT_TRUE(hand_out(store, *a_, 0, 100));
  EXPECT_EQ(copied(store, *a_, 0, 1), "a") << "looking does not count";
  EXPECT_TRUE(hand_out(store, *a_, 100, 100));
  EXPECT_EQ(store.held_bytes(), kRoom);
  EXPECT_TRUE(hand_out(store, *a_, 200, 100));
  EXPECT_EQ(store.held_bytes(), 0u);
  EXPECT_FALSE(hand_out(store, *a_, 200, 100));
}

TEST_F(Handing, ASourceThatIsTakenIsNoLongerHere) {
  HandOver store(2 * kRoom);
  keep(store, *a_, 'a');
  const os::Arena bytes = store.take(*a_);
  ASSERT_EQ(bytes.size(), kRoom);
  EXPECT_EQ(static_cast<char>(bytes.data()[kShard - 1]), 'a');
  EXPECT_EQ(store.take(*a_).size(), 0u);
  EXPECT_EQ(copied(store, *a_, 0, 1), "none");
  EXPECT_EQ(store.held_bytes(), 0u);
}

TEST_F(Handing, ShrinksToWhatItMayHold) {
  HandOver store(3 * kRoom);
  for (const Source* const source : {a_.get(), b_.get(), c_.get()}) keep(store, *source, 'x');
  store.shrink(2 * kRoom + 1);
  EXPECT_EQ(store.held_bytes(), 2 * kRoom);
  store.clear();
  EXPECT_EQ(store.held_bytes(), 0u);
}

TEST_F(Handing, ManyThreadsMayCopyWhileItIsCleared) {
  HandOver store(2 * kRoom);
  keep(store, *a_, 'a');
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::string text = copied(store, *a_, 0, 5000); text != "none"; text = copied(store, *a_, 0, 5000)) {
        ASSERT_EQ(text, std::string(5000, 'a'));
      }
    });
  }
  store.clear();
}

}  // namespace
}  // namespace stoker::storage
