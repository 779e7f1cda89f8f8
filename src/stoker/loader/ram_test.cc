// storage=ram through the loader: the same batches, no second read of what fits, and the memory limit.
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "stoker/loader/made_data_test.h"

namespace stoker::loader {
namespace {

using storage::Storage;

LoaderOptions in_ram(std::uint64_t batch_size) {
  LoaderOptions options = batches_of(batch_size);
  options.storage = Storage::ram;
  options.shuffle = true;
  return options;
}

bool mentions(const std::vector<Text>& notes, const std::string& words) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const Text& note) { return note.in_python().find(words) != std::string::npos; });
}

TEST(LoaderRam, FilesAreNotNeededAgainOnceAllWereRead) {
  Folder folder;
  write_wavs(folder, 60);
  const auto data = open_uncached(folder.path());
  LoaderOptions options = in_ram(8);
  options.transform = transform::parse_ops("pad:100");
  const auto right = epoch_of(
      data,
      [&] {
        LoaderOptions plain = options;
        plain.storage = Storage::buffered;
        return plain;
      }(),
      2);
  Loader loader(data, options);
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start_epoch(epoch);
    drain(loader);
  }
  EXPECT_EQ(loader.stats().ram_bytes, data->facts().total_bytes);
  std::filesystem::remove_all(folder.path("even"));
  std::filesystem::remove_all(folder.path("odd"));
  loader.start_epoch(2);
  EXPECT_EQ(drain(loader), right);
}

TEST(LoaderRam, CopiesOfAnInflatedDataSetShareTheirBytes) {
  Folder folder;
  write_wavs(folder, 10);
  dataset::OpenOptions open;
  open.inflate = 50;
  const auto data = open_uncached(folder.path(), open);
  LoaderOptions options = in_ram(8);
  options.transform = transform::parse_ops("pad:100");
  Loader loader(data, options);
  loader.start_epoch(0);
  EXPECT_EQ(drain(loader).size(), 63u);
  EXPECT_EQ(loader.stats().ram_bytes, data->facts().total_bytes);
}

TEST(LoaderRam, WhatDoesNotFitIsReadEachTimeAndSaid) {
  Folder folder;
  folder.write("x.npy", npy(3000, 10'000));  // 30 MB
  const auto data = open_uncached(folder.path("x.npy"));
  LoaderOptions options = in_ram(16);
  options.memory_limit = 20 << 20;
  Loader loader(data, options);
  EXPECT_TRUE(mentions(loader.notes(), "the rest is read from disk each epoch"));
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(epoch);
    for (const Taken& batch : drain(loader)) {
      for (std::size_t i = 0; i < batch.rows.size(); ++i) {
        ASSERT_EQ(batch.rows[i], std::string(10'000, static_cast<char>(batch.indices[i] % 251)));
      }
    }
    EXPECT_LE(loader.stats().memory_peak, options.memory_limit);
  }
  while (loader.stats().ram_bytes < (10u << 20)) std::this_thread::yield();  // or the test's time limit ends it
}

TEST(LoaderRam, AutoKeepsInMemoryWhatFitsAndSaysWhy) {
  Folder folder;
  folder.write("x.npy", npy(3000, 10'000));
  const auto data = open_uncached(folder.path("x.npy"));
  LoaderOptions options = batches_of(16);
  options.storage = Storage::automatic;
  options.memory_limit = 128 << 20;
  Loader large(data, options);
  EXPECT_EQ(large.options().storage, Storage::ram);
  EXPECT_TRUE(mentions(large.notes(), "storage=\"ram\": the data is"));
  options.memory_limit = 20 << 20;
  Loader small(data, options);
  EXPECT_EQ(small.options().storage, Storage::buffered);
  EXPECT_TRUE(mentions(small.notes(), "storage=\"buffered\": the data is"));
}

}  // namespace
}  // namespace stoker::loader
