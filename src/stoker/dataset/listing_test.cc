#include "stoker/dataset/listing.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/hash.h"
#include "stoker/base/random.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/os/fault.h"
#include "stoker/os/read_file.h"

namespace stoker::dataset {
namespace {

std::vector<std::string> files_in(const Tree& tree) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(tree.at())) names.push_back(entry.path().string());
  return names;
}

// Returns when a file that changes next gets a later time than one that changed before. A file system's clock may be as
// coarse as a tick.
void wait_for_the_next_tick() {
  const Tree probe;
  const auto changed = [&] { return std::filesystem::last_write_time(probe.write("x", "")); };
  const auto before = changed();
  while (changed() == before) {
  }
}

// Opens with the cache and without it, and expects the same data set. Returns the one from the cache.
DatasetPtr open_both_ways(const Tree& tree, const Tree& cache) {
  DatasetPtr cached = open(tree.at(), with_cache(cache));
  const DatasetPtr fresh = open(tree.at(), without_cache());
  EXPECT_EQ(names_of(*cached), names_of(*fresh));
  EXPECT_EQ(labels_of(*cached), labels_of(*fresh));
  EXPECT_EQ(sizes_of(*cached), sizes_of(*fresh));
  EXPECT_EQ(ids_of(*cached), ids_of(*fresh));
  EXPECT_EQ(cached->facts().classes, fresh->facts().classes);
  EXPECT_EQ(cached->facts().notes, fresh->facts().notes);
  EXPECT_EQ(cached->facts().fingerprint, fresh->facts().fingerprint);
  EXPECT_EQ(cached->facts().total_bytes, fresh->facts().total_bytes);
  wait_for_the_next_tick();
  return cached;
}

void fill_classes(const Tree& tree) {
  tree.write("cat/1.jpg", "1");
  tree.write("cat/deep/2.jpg", "12");
  tree.write("dog/3.jpg", "123");
  tree.write("dog/readme.txt", "");
  tree.write("dog/.hidden", "");
}

TEST(Listing, OfAnUnchangedTreeIsTakenOver) {
  Tree tree, cache;
  fill_classes(tree);
  EXPECT_FALSE(open_both_ways(tree, cache)->facts().sizes_may_be_stale);
  EXPECT_EQ(files_in(cache).size(), 1u);

  // The address, its pack.json and its index.csv; the listing itself; each of the four folders. Files are not looked
  // up.
  const os::InjectFault ninth_stat(os::Call::stat, {.error_number = EIO, .skip = 8, .times = 1000});
  const DatasetPtr cached = open(tree.at(), with_cache(cache));
  EXPECT_EQ(ninth_stat.hits(), 0u);
  EXPECT_EQ(cached->size(), 3u);
  EXPECT_TRUE(cached->facts().sizes_may_be_stale);
}

TEST(Listing, IsTheSameDatasetAsAFreshScan) {
  Tree tree, cache;
  fill_classes(tree);
  open(tree.at(), with_cache(cache));
  EXPECT_TRUE(open_both_ways(tree, cache)->facts().sizes_may_be_stale);
}

TEST(Listing, SeesFilesAndFoldersThatCameWentOrWereRenamed) {
  Tree tree, cache;
  fill_classes(tree);
  open_both_ways(tree, cache);
  tree.write("cat/deep/4.jpg", "1");
  EXPECT_EQ(open_both_ways(tree, cache)->size(), 4u);
  tree.remove("cat/1.jpg");
  EXPECT_EQ(open_both_ways(tree, cache)->size(), 3u);
  tree.write("emu/5.jpg", "1");
  EXPECT_EQ(open_both_ways(tree, cache)->facts().classes.size(), 3u);
  std::filesystem::rename(tree.at("emu"), tree.at("ant"));
  EXPECT_EQ(open_both_ways(tree, cache)->facts().classes[0], "ant");
  tree.remove("dog");
  EXPECT_EQ(open_both_ways(tree, cache)->facts().classes.size(), 2u);
  std::filesystem::rename(tree.at("cat/deep/4.jpg"), tree.at("cat/deep/0.jpg"));
  EXPECT_TRUE(open_both_ways(tree, cache)->facts().sizes_may_be_stale);
}

TEST(Listing, OfRandomChangesAlwaysEqualsAFreshScan) {
  Tree tree, cache;
  fill_classes(tree);
  for (std::uint64_t round = 0; round < 60; ++round) {
    Random random(3, 0, round);
    for (std::uint32_t change = random.below(4); change > 0; --change) {
      const std::string folder =
          fmt::format("{}{}", random.below(5), random.below(2) == 0 ? "" : fmt::format("/{}", random.below(3)));
      const std::string file = fmt::format("{}/{}.jpg", folder, random.below(4));
      switch (random.below(4)) {
        case 0:
        case 1:
          tree.remove(file);
          tree.write(file, std::string(random.below(9), 'x'));
          break;
        case 2:
          tree.remove(file);
          break;
        default:
          tree.remove(folder);
          break;
      }
    }
    open_both_ways(tree, cache);
  }
}

TEST(Listing, OfAFolderChangedJustBeforeTheScanIsNotTrusted) {
  Tree tree, cache;
  fill_classes(tree);
  OpenOptions options = with_cache(cache);
  options.now_ns = nullptr;  // the true time: everything was written within the last two seconds
  open(tree.at(), options);
  EXPECT_FALSE(open(tree.at(), options)->facts().sizes_may_be_stale);
}

TEST(Listing, ReadsAFolderAgainWhoseLinksLeadNowhere) {
  Tree tree, cache, elsewhere;
  fill_classes(tree);
  tree.link("cat/later.jpg", elsewhere.at("later.jpg"));
  EXPECT_TRUE(has_note(*open_both_ways(tree, cache), "cat/later.jpg"));
  elsewhere.write("later.jpg", "1");
  EXPECT_EQ(open_both_ways(tree, cache)->size(), 4u);
}

TEST(Listing, SeesThatALinkedFolderWentAwayOrChanged) {
  Tree tree, cache, elsewhere;
  fill_classes(tree);
  elsewhere.write("emus/1.jpg", "1");
  tree.link("emu", elsewhere.at("emus"));
  EXPECT_EQ(open_both_ways(tree, cache)->size(), 4u);
  elsewhere.write("emus/2.jpg", "1");
  EXPECT_EQ(open_both_ways(tree, cache)->size(), 5u);
  elsewhere.remove("emus");
  EXPECT_EQ(open(tree.at(), with_cache(cache))->size(), 3u);
  open_both_ways(tree, cache);
}

TEST(Listing, KeepsNamingALoop) {
  Tree tree, cache;
  fill_classes(tree);
  tree.link("cat/up", "..");
  open_both_ways(tree, cache);
  EXPECT_TRUE(has_note(*open_both_ways(tree, cache), "cat/up"));
}

TEST(Listing, GivesStaleSizesWhereFilesChangedInPlaceAndSaysSo) {
  Tree tree, cache;
  fill_classes(tree);
  open(tree.at(), with_cache(cache));
  tree.write("cat/1.jpg", "now longer");
  const DatasetPtr cached = open(tree.at(), with_cache(cache));
  EXPECT_EQ(cached->location(0).bytes, 1u);
  EXPECT_TRUE(cached->facts().sizes_may_be_stale);
}

TEST(Listing, OfAnotherTreeIsIgnored) {
  Tree a, b, cache;
  fill_classes(a);
  b.write("emu/1.jpg", "1");
  open(a.at(), with_cache(cache));
  const std::string foreign = os::read_text(files_in(cache)[0]);
  cache.remove(std::filesystem::path(files_in(cache)[0]).filename().string());
  open(b.at(), with_cache(cache));
  cache.write(std::filesystem::path(files_in(cache)[0]).filename().string(), foreign);
  EXPECT_EQ(open_both_ways(b, cache)->size(), 1u);
}

TEST(Listing, ThatIsDamagedAnywhereIsIgnored) {
  Tree tree, cache;
  fill_classes(tree);
  open(tree.at(), with_cache(cache));
  const std::string whole = os::read_text(files_in(cache)[0]);
  const std::string real_path = std::filesystem::canonical(tree.at()).string();
  ASSERT_TRUE(from_listing(whole, real_path));
  EXPECT_FALSE(from_listing(whole, "/elsewhere"));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(from_listing(damaged, real_path)) << "byte " << i;
    EXPECT_FALSE(from_listing(std::string_view(whole).substr(0, i), real_path)) << "cut at " << i;
  }
  cache.write(std::filesystem::path(files_in(cache)[0]).filename().string(), "garbage");
  EXPECT_EQ(open_both_ways(tree, cache)->size(), 3u);
}

TEST(Listing, WithARightChecksumOverHostileBytesNeverHarms) {
  Tree tree, cache;
  fill_classes(tree);
  open(tree.at(), with_cache(cache));
  const std::string whole = os::read_text(files_in(cache)[0]);
  const std::string real_path = std::filesystem::canonical(tree.at()).string();
  const std::size_t head = 16;
  for (std::uint64_t trial = 0; trial < 20'000; ++trial) {
    Random random(5, 0, trial);
    std::string hostile = whole;
    const std::uint32_t changes = 1 + random.below(3);
    for (std::uint32_t c = 0; c < changes; ++c) {
      hostile[head + random.below(static_cast<std::uint32_t>(whole.size() - head))] =
          static_cast<char>(random.below(256));
    }
    if (random.below(4) == 0) hostile.resize(head + random.below(static_cast<std::uint32_t>(whole.size() - head)));
    const std::uint64_t sum = hash_text(std::string_view(hostile).substr(head), 0x6C697374);
    std::memcpy(hostile.data() + 8, &sum, sizeof sum);
    const std::unique_ptr<ScannedFolder> folder = from_listing(hostile, real_path);
    if (!folder) continue;
    for (const auto& child : folder->folders) {
      EXPECT_EQ(child->name.find('/'), std::string::npos);
      EXPECT_NE(child->name, "..");
      for (const ScannedFile& file : child->files) EXPECT_EQ(child->name_of(file).find('/'), std::string_view::npos);
    }
  }
}

TEST(Listing, ThatCannotBeWrittenIsSaidOnceAndLeavesNothingHalfWritten) {
  Tree tree, cache;
  fill_classes(tree);
  {
    const os::InjectFault disk_full(os::Call::write, {.error_number = ENOSPC, .times = 100});
    const DatasetPtr data = open(tree.at(), with_cache(cache));
    EXPECT_EQ(data->size(), 3u);
    const auto& notes = data->facts().notes;
    EXPECT_EQ(
        std::count_if(notes.begin(), notes.end(),
                      [](const std::string& note) { return note.find("listing is not cached") != std::string::npos; }),
        1);
    EXPECT_TRUE(has_note(*data, "No space left on device"));
  }
  EXPECT_TRUE(files_in(cache).empty());

  OpenOptions options = with_cache(cache);
  options.cache_dir = cache.write("file", "") + "/below";
  EXPECT_TRUE(has_note(*open(tree.at(), options), "listing is not cached"));
}

TEST(Listing, IsKeptWhereXdgSaysUnlessAFolderIsGiven) {
  Tree cache;
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string saved = before == nullptr ? "" : before;
  ::setenv("XDG_CACHE_HOME", cache.at().c_str(), 1);
  EXPECT_EQ(listing_folder(""), cache.at("stoker"));
  EXPECT_EQ(listing_folder("/given"), "/given");
  if (before == nullptr) {
    ::unsetenv("XDG_CACHE_HOME");
  } else {
    ::setenv("XDG_CACHE_HOME", saved.c_str(), 1);
  }
}

}  // namespace
}  // namespace stoker::dataset
