// Tar shards of a store: what opening reads, how often, and what it keeps of it. Requests are counted, not timed.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/units.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/storage/cache_key.h"
#include "stoker/storage/hand_over.h"
#include "stoker/storage/memory_store_test.h"
#include "stoker/storage/object_cache.h"

namespace stoker::dataset {
namespace {

class TarStore : public ::testing::Test {
 protected:
  struct Member {
    std::string name, content;
  };
  static std::string tar(const std::vector<Member>& members) {
    std::string out;
    for (const Member& member : members) {
      out += tar_header(member.name, member.content.size(), 0) + member.content;
      out.resize(tar_padded(out.size()), '\0');
    }
    return out.append(2 * kTarBlock, '\0');
  }
  // Shards of `samples` WAV members of `bytes` each, with a label; the same as objects and as files.
  void put_shards(int shards, int samples, std::size_t bytes) {
    for (int s = 0; s < shards; ++s) {
      std::vector<Member> members;
      for (int i = 0; i < samples; ++i) {
        members.push_back(
            {fmt::format("{:02}-{:04}.wav", s, i), std::string(bytes + static_cast<std::size_t>(i), 'x')});
        members.push_back({fmt::format("{:02}-{:04}.cls", s, i), fmt::format("{}", i % 5)});
      }
      put(fmt::format("{}.tar", s), tar(members));
    }
    pattern_ = fmt::format("{{0..{}}}.tar", shards - 1);
  }
  void put(const std::string& name, const std::string& bytes) {
    store_.put("bucket/" + name, bytes);
    folder_.write(name, bytes);
    total_ += bytes.size();
  }
  static OpenOptions limited(std::uint64_t memory_limit) {
    OpenOptions options = without_cache();
    options.memory_limit = memory_limit;
    return options;
  }
  DatasetPtr open_objects(const OpenOptions& options) const { return open("memory://bucket/" + pattern_, options); }
  DatasetPtr open_files(const OpenOptions& options) const { return open(folder_.at(pattern_), options); }

  static void expect_equal(const Dataset& one, const Dataset& other) {
    EXPECT_EQ(names_of(one), names_of(other));
    EXPECT_EQ(labels_of(one), labels_of(other));
    EXPECT_EQ(sizes_of(one), sizes_of(other));
    EXPECT_EQ(ids_of(one), ids_of(other));
    EXPECT_EQ(one.facts().fingerprint, other.facts().fingerprint);
    EXPECT_EQ(one.facts().notes, other.facts().notes);
    ASSERT_EQ(one.facts().losses.size(), other.facts().losses.size());
    for (std::size_t i = 0; i < one.facts().losses.size(); ++i) {
      EXPECT_EQ(one.facts().losses[i].cause, other.facts().losses[i].cause);
      EXPECT_EQ(one.facts().losses[i].offset, other.facts().losses[i].offset);
      EXPECT_EQ(one.facts().losses[i].bytes, other.facts().losses[i].bytes);
    }
  }

  storage::MemoryStore store_;
  Tree folder_;
  std::string pattern_;
  std::uint64_t total_ = 0;
};

TEST_F(TarStore, ShardsThatFitAreReadOnceWithOneRequestEach) {
  put_shards(5, 20, 10'000);
  store_.set_latency(std::chrono::milliseconds(1));
  const DatasetPtr data = open_objects(limited(64 * kMiB));
  EXPECT_EQ(store_.requests(), 5u);
  EXPECT_EQ(store_.sent_bytes(), total_);
  ASSERT_TRUE(data->hand_over());
  expect_equal(*data, *open_files(without_cache()));
  for (std::uint64_t i = 0; i < data->size(); ++i) {
    Scratch scratch;
    const storage::WholeRead read = read_sample(*data, i, scratch);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read.bytes.size(), data->location(i).bytes);
    EXPECT_EQ(static_cast<char>(read.bytes.back()), 'x');
  }
  EXPECT_EQ(store_.requests(), 5u) << "samples come from what opening has read";
}

TEST_F(TarStore, ShardsAreReadAtTheSameTime) {
  put_shards(6, 4, 1000);
  for (int s = 0; s < 6; ++s) store_.hold(fmt::format("bucket/{}.tar", s));
  std::jthread releases([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (store_.most_in_flight() < 6 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    store_.let_go();
  });
  EXPECT_EQ(open_objects(limited(64 * kMiB))->size(), 24u);
  EXPECT_EQ(store_.most_in_flight(), 6u);
}

TEST_F(TarStore, OnlyWhatFitsHalfOfTheLimitIsKept) {
  put_shards(8, 20, 40'000);  // about 0.8 MB each
  const DatasetPtr data = open_objects(limited(4 * kMiB));
  ASSERT_TRUE(data->hand_over());
  EXPECT_LE(data->hand_over()->held_bytes(), 2 * kMiB);
  EXPECT_GE(data->hand_over()->held_bytes(), kMiB);
  EXPECT_LE(store_.sent_bytes(), total_) << "the others are read once too";
  expect_equal(*data, *open_files(without_cache()));
  EXPECT_FALSE(open_objects(without_cache())->hand_over()) << "without a limit nothing is kept";
}

TEST_F(TarStore, SmallMembersAreReadOverInWindowsThatGrow) {
  put_shards(1, 400, 50'000);  // 20 MB
  open_objects(without_cache());
  EXPECT_LE(store_.sent_bytes(), total_) << "no byte twice";
  EXPECT_LE(store_.requests(), 8u);  // of 256 KiB, 1 MiB, 4 MiB and then 16 MiB: two pieces each
}

TEST_F(TarStore, OfLargeMembersOnlyTheHeadersAreRead) {
  put_shards(1, 6, 4 << 20);
  const DatasetPtr data = open_objects(without_cache());
  EXPECT_LT(store_.sent_bytes(), 2 * kMiB);
  EXPECT_LE(store_.requests(), 7u);
  expect_equal(*data, *open_files(without_cache()));
}

TEST_F(TarStore, EveryWayOfReadingFindsTheSame) {
  put_shards(2, 30, 3000);
  std::string damaged = tar({{"a.wav", "one"}, {"a.cls", "1"}, {"b.wav", "two"}, {"b.cls", "2"}, {"c.wav", "three"}});
  damaged[4 * kTarBlock + 20] = 'z';
  put("2.tar", damaged);
  std::string cut = tar({{"d.wav", std::string(5000, 'd')}, {"d.cls", "3"}, {"e.wav", std::string(300'000, 'e')}});
  put("3.tar", cut.substr(0, cut.size() - 20'000));
  pattern_ = "{0..3}.tar";
  for (const std::uint64_t limit : {std::uint64_t{0}, 300 * kKiB, 64 * kMiB}) {
    OpenOptions options = limited(limit);
    const auto refused = error_of([&] { open_objects(options); });
    ASSERT_TRUE(refused);
    EXPECT_NE(refused->message().find("memory://bucket/"), std::string::npos) << refused->message();
    options.skip_losses = true;
    expect_equal(*open_objects(options), *open_files(options));
  }
}

TEST_F(TarStore, LinksDoNotReadAShardTwice) {
  std::string bytes = tar({{"a.wav", std::string(3000, 'a')}});
  bytes.resize(bytes.size() - 2 * kTarBlock);
  std::string link = tar_header("b.wav", 0, 0);
  link[156] = '1';
  link.replace(157, 5, "a.wav");
  unsigned sum = 0;
  for (std::size_t i = 0; i < kTarBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(link[i]);
  link.replace(148, 7, fmt::format("{:06o}", sum) + std::string(1, '\0'));
  put("0.tar", bytes + link + std::string(2 * kTarBlock, '\0'));
  pattern_ = "0.tar";
  const DatasetPtr data = open_objects(limited(64 * kMiB));
  ASSERT_EQ(data->size(), 2u);
  EXPECT_EQ(data->location(1).bytes, 3000u);
  EXPECT_EQ(store_.requests(), 1u);
}

TEST_F(TarStore, AShardThatCannotBeReadIsNamed) {
  put_shards(3, 5, 1000);
  store_.fail("bucket/1.tar", {ErrorKind::unavailable, "503 Slow Down (5 tries)", "", true, false});
  for (const std::uint64_t limit : {std::uint64_t{0}, 64 * kMiB}) {
    const auto error = error_of([&] { open_objects(limited(limit)); });
    EXPECT_TRUE(mentions(error, "cannot read `memory://bucket/1.tar` at byte 0: 503 Slow Down"));
  }
}

TEST_F(TarStore, AShardThatChangesWhileItIsReadIsNamed) {
  put_shards(2, 5, 1000);
  store_.hold("bucket/0.tar");
  std::jthread changes([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (store_.requests() < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    store_.put("bucket/0.tar", tar({{"new.wav", "other"}}));
    store_.let_go();
  });
  const auto error = error_of([&] { open_objects(limited(64 * kMiB)); });
  EXPECT_TRUE(mentions(error, "memory://bucket/0.tar"));
  EXPECT_TRUE(mentions(error, "it changed since it was listed"));
}

TEST_F(TarStore, WithADiskCacheItsSamplesAreThereAfterwards) {
  put_shards(3, 20, 10'000);
  Tree cache;
  OpenOptions options = limited(64 * kMiB);
  options.use_cache = true;
  options.cache_dir = cache.at();
  options.cache_limit = 64 * kMiB;
  const DatasetPtr data = open_objects(options);
  EXPECT_EQ(store_.sent_bytes(), total_);
  EXPECT_FALSE(data->hand_over()) << "memory does not hold what the disk has";
  storage::ObjectCache objects(cache.at(), options.cache_limit);
  for (std::uint64_t i = 0; i < data->size(); ++i) {
    const storage::Location where = data->location(i);
    storage::ObjectCache::Lookup lookup;
    lookup.key = storage::cache_key(where, store_.identity()).value();
    lookup.bytes = where.bytes;
    objects.look({&lookup, 1});
    EXPECT_EQ(lookup.found, storage::ObjectCache::Found::hit) << i;
  }
}

TEST_F(TarStore, ReadingEndsWhenTheCallerSaysSo) {
  put_shards(1, 2000, 2000);
  store_.set_latency(std::chrono::milliseconds(150));  // so that progress is asked for
  OpenOptions options = limited(kMiB);
  options.progress = [](std::uint64_t) { return false; };
  EXPECT_TRUE(mentions(error_of([&] { open_objects(options); }), "interrupted"));
}

}  // namespace
}  // namespace stoker::dataset
