// The table alone, against a map; and what eviction by next use gives, against the least recently used.
#include "stoker/storage/cache_table.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/hash.h"
#include "stoker/base/permutation.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::storage {
namespace {

using State = CacheEntry::State;

CacheKey key_of(std::uint64_t number) {
  return {mix(number, 1), mix(number, 2)};
}

class Table : public ::testing::Test {
 protected:
  CacheTable make(std::uint64_t capacity = CacheTable::kLeast) { return CacheTable::make(path_, capacity, 1); }
  static CacheEntry& add(CacheTable& table, std::uint64_t number, std::uint64_t bytes, const NextUse& use = {}) {
    CacheEntry& entry = table.insert(key_of(number));
    entry.bytes = bytes;
    table.set_state(entry, State::present);
    table.touch(entry, use);
    return entry;
  }
  os::TempFolder folder_;
  std::string path_ = folder_.path() + "/table";
};

TEST_F(Table, FindsWhatIsInItThroughManyInsertionsAndErasures) {
  CacheTable table = make();
  std::map<std::uint64_t, std::uint64_t> model;
  std::mt19937_64 random(5);
  for (int step = 0; step < 20'000; ++step) {
    // Few different homes, so that runs are long and wrap round the end.
    const std::uint64_t number = random() % 600;
    const CacheKey key{number, random() % 2 == 0 ? number % 40 : 0 - number % 40};
    const std::uint64_t name = number * 1000 + (key.low & 511);
    CacheEntry* const entry = table.find(key);
    ASSERT_EQ(entry != nullptr, model.contains(name));
    if (entry != nullptr) {
      ASSERT_EQ(entry->bytes, model[name]);
      table.erase(*entry);
      model.erase(name);
    } else if (table.has_room()) {
      CacheEntry& added = table.insert(key);
      added.bytes = model[name] = random() % 10'000;
      table.set_state(added, State::present);
    }
    ASSERT_EQ(table.entries(), model.size());
  }
  std::uint64_t used = 0;
  for (const auto& [name, bytes] : model) used += CacheTable::charge(bytes);
  EXPECT_EQ(table.used_bytes(), used);
}

TEST_F(Table, IsOpenedByOthersAndCopiedToALargerOne) {
  CacheTable table = make();
  for (std::uint64_t i = 0; i < 700; ++i) add(table, i, i);
  auto other = CacheTable::open(path_, 1);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->find(key_of(699))->bytes, 699u);
  CacheTable larger = CacheTable::make(path_ + "2", 2048, 1);
  table.copy_to(larger);
  EXPECT_EQ(larger.entries(), 700u);
  EXPECT_EQ(larger.used_bytes(), table.used_bytes());
  for (std::uint64_t i = 0; i < 700; ++i) ASSERT_EQ(larger.find(key_of(i))->bytes, i);
}

TEST_F(Table, IsNotOpenedWhenItIsNotWhatItShouldBe) {
  EXPECT_FALSE(CacheTable::open(path_, 1)) << "missing";
  CacheTable table = make();
  add(table, 1, 100);
  EXPECT_TRUE(CacheTable::open(path_, 1));
  EXPECT_FALSE(CacheTable::open(path_, 2)) << "of another boot";
  table.set_changing(true);
  EXPECT_FALSE(CacheTable::open(path_, 1)) << "a change was interrupted";
  table.set_changing(false);
  table.find(key_of(1))->bytes = 1'000'000;
  EXPECT_FALSE(CacheTable::open(path_, 1)) << "it does not add up";
  table.find(key_of(1))->bytes = 100;
  EXPECT_TRUE(CacheTable::open(path_, 1));
  table.set_replaced();
  EXPECT_FALSE(CacheTable::open(path_, 1)) << "replaced";
  std::filesystem::resize_file(folder_.file("cut", std::string(9000, 'x')), 8500);
  EXPECT_FALSE(CacheTable::open(folder_.path() + "/cut", 1)) << "something else";
}

TEST_F(Table, EvictsTheLeastRecentlyUsedWhereNobodySaysWhatComesNext) {
  CacheTable table = make();
  for (std::uint64_t i = 0; i < 10; ++i) add(table, i, 1);
  table.touch(*table.find(key_of(0)), {});
  EXPECT_EQ(table.choose_victim({})->key, key_of(1));
}

TEST_F(Table, EvictsWhatIsUsedLastAndBeforeItWhatIsNotUsedAgain) {
  CacheTable table = make();
  add(table, 1, 1, {.order = 7, .now = 10, .next = 50});
  add(table, 2, 1, {.order = 7, .now = 11, .next = 90});
  add(table, 3, 1, {.order = 7, .now = 12, .next = 60});
  const EvictionRule rule{.order = 7, .now = 20};
  EXPECT_EQ(table.choose_victim(rule)->key, key_of(2));
  EXPECT_TRUE(rule.is_later({7, 20, 100}, *table.find(key_of(2))));
  EXPECT_FALSE(rule.is_later({7, 20, 80}, *table.find(key_of(2))));
  EXPECT_FALSE(rule.is_later({8, 20, 100}, *table.find(key_of(2))));
  add(table, 4, 1, {.order = 7, .now = 5, .next = 19});
  EXPECT_EQ(table.choose_victim(rule)->key, key_of(4)) << "its next use has passed";
  add(table, 5, 1, {.order = 8, .now = 5, .next = 30});
  table.erase(*table.find(key_of(4)));
  EXPECT_EQ(table.choose_victim(rule)->key, key_of(5)) << "of an order that nobody follows";
}

TEST_F(Table, FollowsAnOrderOnlyIfAllProcessesDo) {
  CacheTable table = make();
  EXPECT_EQ(table.rule().order, 0u);
  table.seat(3) = {.order = 7, .now = 500, .is_taken = 1, .has_asked = 1};
  table.seat(4) = {.order = 7, .now = 400, .is_taken = 1, .has_asked = 1};
  table.seat(5) = {.order = 0, .now = 0, .is_taken = 1, .has_asked = 0};
  EXPECT_EQ(table.rule().order, 7u);
  EXPECT_EQ(table.rule().now, 400u) << "of the slowest";
  table.seat(5) = {.order = 9, .now = 0, .is_taken = 1, .has_asked = 1};
  EXPECT_EQ(table.rule().order, 0u);
  table.seat(5) = {.order = 0, .now = 0, .is_taken = 1, .has_asked = 1};
  EXPECT_EQ(table.rule().order, 0u) << "one does not say";
}

// Epochs over `samples` objects of one size, each a new permutation, through a cache with room for `kept` of them.
struct HitRate {
  bool by_next_use;
  double operator()(CacheTable table, std::uint64_t samples, std::uint64_t kept) const {
    constexpr std::uint64_t kEpochs = 4;
    std::uint64_t hits = 0, uses = 0, room = kept;
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const Permutation order(samples, epoch), next(samples, epoch + 1);
      for (std::uint64_t position = 0; position < samples; ++position) {
        const std::uint64_t sample = order(position);
        const NextUse use{by_next_use ? 7u : 0u, epoch * samples + position,
                          (epoch + 1) * samples + next.inverse(sample)};
        const EvictionRule rule{use.order, use.now};
        CacheEntry* const entry = table.find(key_of(sample));
        if (epoch > 0) {
          ++uses;
          hits += entry != nullptr;
        }
        if (entry != nullptr) {
          table.touch(*entry, use);
          continue;
        }
        if (room == 0) {
          CacheEntry* const victim = table.choose_victim(rule);
          if (rule.is_later(use, *victim)) continue;
          table.erase(*victim);
          ++room;
        }
        CacheEntry& added = table.insert(key_of(sample));
        table.set_state(added, State::present);
        table.touch(added, use);
        --room;
      }
    }
    return static_cast<double>(hits) / static_cast<double>(uses);
  }
};

TEST_F(Table, KeepsMoreHitsByNextUseThanByLastUse) {
  constexpr std::uint64_t kSamples = 10'000;  // more than are looked at one by one
  std::printf("share kept   least recently used   by next use   (%u objects, a new order each epoch)\n",
              static_cast<unsigned>(kSamples));
  for (const std::uint64_t percent : {10, 25, 50, 75, 90}) {
    const std::uint64_t kept = kSamples * percent / 100;
    const auto rate = [&](bool by_next_use) {
      std::filesystem::remove(path_);
      return HitRate{by_next_use}(make(CacheTable::capacity_for(kept)), kSamples, kept);
    };
    const double lru = rate(false), next_use = rate(true);
    std::printf("%9u %%   %17.1f %%   %9.1f %%\n", static_cast<unsigned>(percent), 100 * lru, 100 * next_use);
    EXPECT_GT(next_use, lru);
    // An epoch uses each object once, so that only what was there at its start can be a hit: no choice gives more.
    EXPECT_DOUBLE_EQ(next_use, static_cast<double>(percent) / 100);
  }
}

}  // namespace
}  // namespace stoker::storage
