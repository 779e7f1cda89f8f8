// What is kept of a store in the cache folder: listings, and the members of tar shards.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/dataset/read_sample.h"
#include "stoker/dataset/tar_shard.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::dataset {
namespace {

using storage::MemoryStore;

OpenOptions keeping(const Tree& cache) {
  OpenOptions options = with_cache(cache);
  options.listing = UseListing::kept;
  return options;
}

std::string cause_of(const Dataset& data, std::uint64_t index) {
  std::vector<std::byte> bytes;
  return read_sample(data, index, bytes).failure.text;
}

std::vector<std::filesystem::path> files_of(const Tree& cache) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(cache.at())) files.push_back(entry.path());
  return files;
}

// Flips a byte in the middle.
void damage(const std::filesystem::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path) / 2)).put('\x7f');
}

TEST(KeptListing, HasTheSamplesAndVersionsOfTheStore) {
  Tree cache;
  MemoryStore store;
  for (int i = 0; i < 3000; ++i)
    store.put(fmt::format("bucket/set/c{}/{:05}.wav", i % 7, i), std::string(i % 50 + 1, 'x'));
  const DatasetPtr fresh = open("memory://bucket/set", without_cache());
  const DatasetPtr listed = open("memory://bucket/set", keeping(cache));
  EXPECT_FALSE(has_note(*listed, "the listing is"));
  ASSERT_EQ(files_of(cache).size(), 1u);
  const DatasetPtr kept = open("memory://bucket/set", keeping(cache));
  EXPECT_TRUE(has_note(*kept, "the listing is"));
  EXPECT_EQ(names_of(*kept), names_of(*fresh));
  EXPECT_EQ(sizes_of(*kept), sizes_of(*fresh));
  EXPECT_EQ(labels_of(*kept), labels_of(*fresh));
  EXPECT_EQ(ids_of(*kept), ids_of(*fresh));
  EXPECT_EQ(kept->facts().fingerprint, fresh->facts().fingerprint);
  char text[storage::kLocationText], other[storage::kLocationText];
  for (std::uint64_t i = 0; i < fresh->size(); ++i) {
    ASSERT_STREQ(kept->locate(i, text).version, fresh->locate(i, other).version);
    ASSERT_STREQ(kept->locate(i, text).name, fresh->locate(i, other).name);
  }
}

TEST(KeptListing, ThatIsOldNamesWhatChangedAndIsReplacedByAFreshOne) {
  Tree cache;
  MemoryStore store;
  store.put("bucket/a.wav", "first");
  open("memory://bucket", keeping(cache));
  store.put("bucket/a.wav", "other");
  store.put("bucket/b.wav", "new");
  const DatasetPtr kept = open("memory://bucket", keeping(cache));
  EXPECT_EQ(kept->size(), 1u) << "what was added is not seen";
  EXPECT_EQ(cause_of(*kept, 0), "it changed since it was listed: version v1 then, v2 now");
  const DatasetPtr fresh = open("memory://bucket", with_cache(cache));
  EXPECT_EQ(fresh->size(), 2u);
  EXPECT_EQ(open("memory://bucket", keeping(cache))->size(), 2u) << "the fresh listing replaced it";
}

TEST(KeptListing, IsNotKeptUnlessAskedFor) {
  Tree cache;
  MemoryStore store;
  store.put("bucket/a.wav", "first");
  open("memory://bucket", with_cache(cache));
  EXPECT_TRUE(files_of(cache).empty());
}

TEST(KeptListing, ThatIsDamagedCutOrOfAnotherAddressCountsAsNone) {
  Tree cache;
  MemoryStore store;
  for (int i = 0; i < 100; ++i) store.put(fmt::format("bucket/{:05}.wav", i), "x");
  const auto look = [&] { return open("memory://bucket", keeping(cache)); };
  look();
  const std::filesystem::path path = files_of(cache).at(0);
  const std::uintmax_t bytes = std::filesystem::file_size(path);
  for (std::uintmax_t cut = 0; cut < bytes; cut += 97) {
    look();
    std::filesystem::resize_file(path, cut);
    EXPECT_FALSE(has_note(*look(), "the listing is")) << cut;
  }
  damage(path);
  EXPECT_FALSE(has_note(*look(), "the listing is"));
  EXPECT_EQ(look()->size(), 100u);
}

TEST(KeptListing, OfAnIndexIsUsedToo) {
  Tree cache;
  MemoryStore store;
  store.put("bucket/1.wav", "one");
  store.put("bucket/index.csv", "path\n1.wav\n");
  open("memory://bucket/index.csv", keeping(cache));
  const DatasetPtr kept = open("memory://bucket/index.csv", keeping(cache));
  EXPECT_TRUE(has_note(*kept, "the listing is"));
  EXPECT_EQ(kept->size(), 1u);
}

std::string shard(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string tar;
  for (const auto& [name, text] : members) {
    tar += tar_header(name, text.size(), 0) + text;
    tar.resize(tar_padded(tar.size()), '\0');
  }
  return tar.append(2 * kTarBlock, '\0');
}

TEST(KeptMembers, OfAShardAreReadOnceForEachVersion) {
  Tree cache;
  MemoryStore store;
  const std::vector<std::pair<std::string, std::string>> members = {
      {"1.wav", "one"}, {"1.cls", "cat"}, {"2.wav", "two"}, {"2.cls", "7"}, {"2.png", "more"}, {"x.txt", "y"}};
  store.put("bucket/x-0.tar", shard(members));
  store.put("bucket/x-1.tar", shard({{"3.wav", "three"}, {"3.json", "{\"label\": 2.5}"}}));
  const DatasetPtr fresh = open("memory://bucket/x-{0..1}.tar", without_cache());
  open("memory://bucket/x-{0..1}.tar", with_cache(cache));
  ASSERT_EQ(files_of(cache).size(), 2u);
  store.fail("bucket/x-0.tar", {ErrorKind::unavailable, "503", "", true, false});  // reading it would fail
  store.fail("bucket/x-1.tar", {ErrorKind::unavailable, "503", "", true, false});
  const DatasetPtr kept = open("memory://bucket/x-{0..1}.tar", with_cache(cache));
  store.forgive();
  EXPECT_EQ(names_of(*kept), names_of(*fresh));
  EXPECT_EQ(labels_of(*kept), labels_of(*fresh));
  EXPECT_EQ(sizes_of(*kept), sizes_of(*fresh));
  EXPECT_EQ(kept->facts().classes, fresh->facts().classes);
  EXPECT_EQ(kept->facts().notes, fresh->facts().notes);
  EXPECT_EQ(kept->facts().fingerprint, fresh->facts().fingerprint);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(kept->location(i).offset, fresh->location(i).offset);
  store.put("bucket/x-1.tar", shard({{"4.wav", "four"}}));
  EXPECT_EQ(names_of(*open("memory://bucket/x-{0..1}.tar", with_cache(cache))),
            (std::vector<std::string>{"1.wav", "2.wav", "4.wav"}));
}

TEST(KeptMembers, ThatAreDamagedOrCutAreReadAgain) {
  ScannedShard one;
  one.names = "1.wav";
  one.samples.push_back({512, 3, 0, 5, 0});
  one.labels.push_back({FoundLabel::Kind::text, 0, 0, "cat"});
  one.left_out["png"] = 4;
  one.links.count = 2;
  const std::string bytes = to_record(one, "key");
  ScannedShard other;
  ASSERT_TRUE(from_record(bytes, "key", other));
  EXPECT_EQ(other.name(0), "1.wav");
  EXPECT_EQ(other.labels[0].text, "cat");
  EXPECT_EQ(other.left_out, one.left_out);
  EXPECT_EQ(other.links.count, 2u);
  EXPECT_FALSE(from_record(bytes, "another key", other));
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_FALSE(from_record(bytes.substr(0, cut), "key", other));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(from_record(damaged, "key", other)) << at;
  }
}

TEST(KeptMembers, AreNotKeptOfLocalFilesAndOfShardsWithDamage) {
  Tree cache, tree;
  MemoryStore store;
  tree.write("x.tar", shard({{"1.wav", "one"}}));
  open(tree.at("x.tar"), with_cache(cache));
  std::string broken = shard({{"1.wav", "one"}, {"2.wav", "two"}, {"3.wav", "three"}});
  broken[2 * kTarBlock + 150] = 'z';
  store.put("bucket/x.tar", broken);
  OpenOptions options = with_cache(cache);
  options.skip_losses = true;
  EXPECT_FALSE(open("memory://bucket/x.tar", options)->facts().losses.empty());
  EXPECT_FALSE(open("memory://bucket/x.tar", options)->facts().losses.empty());
  EXPECT_TRUE(files_of(cache).empty());
}

}  // namespace
}  // namespace stoker::dataset
