#include "stoker/loader/seek_store.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/codec/made_jpeg_test.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/os/fault.h"
#include "stoker/os/read_file.h"

namespace stoker::loader {
namespace {

using codec::File;
using codec::made::encode, codec::made::Scene;
using Pixels8 = std::vector<std::uint8_t>;

constexpr std::uint32_t kWidth = 203, kHeight = 150;

File picture(Scene scene = Scene::smooth, int sampling = 1) {
  return encode(kWidth, kHeight, scene, {.h_sampling = sampling, .v_sampling = sampling});
}

// A region of the picture, decoded through the store (or without one).
std::optional<Pixels8> try_crop(codec::Bytes file, const Rect& region, SeekStore* store) {
  Scratch scratch;
  Pixels8 values(std::size_t{3} * region.width * region.height);
  Pixels into{reinterpret_cast<std::byte*>(values.data()), 3 * region.width, region.width, region.height, 3, DType::u8};
  SeekStore::Lease lease;
  if (store != nullptr) store->lease(file, lease);
  if (!codec::decode_image(codec::media_named("jpeg"), file, {}, region, into, scratch, lease.index()).ok()) return {};
  return values;
}

Pixels8 crop(codec::Bytes file, const Rect& region, SeekStore* store) {
  const std::optional<Pixels8> values = try_crop(file, region, store);
  EXPECT_TRUE(values.has_value());
  return values.value_or(Pixels8());
}

Rect any_region(Random& random) {
  const std::uint32_t x = random.below(kWidth), y = random.below(kHeight);
  return {x, y, 1 + random.below(kWidth - x), 1 + random.below(kHeight - y)};
}

void expect_same_pixels(const File& file, SeekStore& store, int crops, std::uint64_t seed) {
  Random random(seed, 7, 7);
  for (int i = 0; i < crops; ++i) {
    const Rect region = any_region(random);
    ASSERT_EQ(crop(file, region, &store), crop(file, region, nullptr)) << "crop " << i;
  }
}

std::uint32_t known_of(const File& file, SeekStore& store) {
  SeekStore::Lease lease;
  store.lease(file, lease);
  return lease.index() != nullptr ? lease.index()->known : 0;
}

SeekOptions in_memory(std::uint64_t limit_bytes, std::uint32_t step) {
  SeekOptions options;
  options.limit_bytes = limit_bytes;
  options.step = step;
  return options;
}

std::vector<std::vector<Taken>> three_epochs(Loader& loader) {
  std::vector<std::vector<Taken>> all;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(epoch);
    all.push_back(drain(loader));
  }
  return all;
}

class Seeking : public testing::Test {
 protected:
  void SetUp() override {
    if (codec::seekable_mcus(picture()) == 0) GTEST_SKIP() << "this CPU has no AVX2: libjpeg-turbo decodes everything";
  }
  SeekOptions options(std::uint32_t step = 8) const {
    SeekOptions options = in_memory(4 << 20, step);
    options.path = folder_.path("cache/seek.bin");
    return options;
  }
  std::string read() const { return os::read_text(options().path); }
  void write(const std::string& bytes) const { folder_.write("cache/seek.bin", bytes); }

  Folder folder_;
};

TEST_F(Seeking, CropsAreTheSameToTheBitAndWhatWasPassedIsKnownAfterwards) {
  for (const int sampling : {1, 2}) {
    const File file = picture(Scene::noise, sampling);
    SeekStore store(in_memory(4 << 20, 8));
    EXPECT_EQ(known_of(file, store), 0u);
    crop(file, {0, 0, 40, 75}, &store);
    const std::uint32_t half = known_of(file, store);
    EXPECT_GT(half, 0u);
    expect_same_pixels(file, store, 60, 1);
    EXPECT_GT(known_of(file, store), half) << "later crops extend what is known";
    EXPECT_EQ(known_of(file, store), (codec::seekable_mcus(file) - 1) / 8);
    EXPECT_EQ(store.figures().files, 1u);
  }
}

TEST_F(Seeking, WhatWasSavedIsKnownInTheNextRun) {
  const File one = picture(Scene::noise), two = picture(Scene::smooth);
  {
    SeekStore store(options());
    expect_same_pixels(one, store, 40, 2);
    crop(two, {0, 0, 50, 60}, &store);  // only the upper part
    store.finish_saving();
    EXPECT_EQ(store.problem(), "");
    EXPECT_EQ(store.figures().unsaved_places, 0u);
  }
  SeekStore store(options(64));  // another step for new files
  EXPECT_EQ(store.note(), "");
  EXPECT_EQ(store.figures().files, 2u);
  EXPECT_GT(known_of(one, store), 0u);
  const std::uint32_t upper = known_of(two, store);
  EXPECT_GT(upper, 0u);
  expect_same_pixels(one, store, 40, 3);
  expect_same_pixels(two, store, 40, 4);
  EXPECT_GT(known_of(two, store), upper);
}

TEST_F(Seeking, TwoRunsThatSaveToOneFileKeepWhatEachLearnt) {
  const File one = picture(Scene::noise), two = picture(Scene::smooth);
  SeekStore first(options()), second(options());
  expect_same_pixels(one, first, 10, 5);
  expect_same_pixels(two, second, 10, 6);
  first.finish_saving();
  second.finish_saving();
  SeekStore after(options());
  EXPECT_EQ(after.figures().files, 2u);
}

TEST_F(Seeking, FilesThatAreGoneAreForgottenOnceAllOfTheDataSetWasSeen) {
  const File gone = picture(Scene::noise), stays = picture(Scene::smooth);
  {
    SeekStore store(options());
    expect_same_pixels(gone, store, 5, 1);
    expect_same_pixels(stays, store, 5, 1);
    store.finish_saving();
  }
  SeekOptions all = options();
  all.files = 1;
  {
    SeekStore store(all);
    EXPECT_EQ(store.figures().files, 2u);
    const File changed = picture(Scene::extreme);
    expect_same_pixels(changed, store, 40, 1);
    store.finish_saving();
  }
  EXPECT_EQ(SeekStore(options()).figures().files, 1u);
}

TEST_F(Seeking, AFileThatChangedIsAnotherFile) {
  SeekStore store(in_memory(4 << 20, 8));
  expect_same_pixels(picture(Scene::noise), store, 20, 1);
  expect_same_pixels(picture(Scene::smooth), store, 20, 1);
  EXPECT_EQ(store.figures().files, 2u);
}

TEST(IdentityOf, DependsOnEveryByteAndOnTheLength) {
  std::vector<std::byte> bytes(30'000);
  Random random(1, 2, 3);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  const std::uint64_t before = identity_of(bytes);
  EXPECT_EQ(identity_of(bytes), before);
  EXPECT_NE(identity_of(codec::Bytes(bytes).first(bytes.size() - 1)), before);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] ^= std::byte{1};
    ASSERT_NE(identity_of(bytes), before) << "byte " << at;
    bytes[at] ^= std::byte{1};
  }
}

TEST_F(Seeking, EveryByteOfTheSavedFileMayBeWrongAndThePixelsAreStillRight) {
  const File file = encode(64, 40, Scene::noise, {});
  const auto crop_small = [&](SeekStore* store) {
    Scratch scratch;
    Pixels8 values(3 * 20 * 10);
    const Pixels into{reinterpret_cast<std::byte*>(values.data()), 60, 20, 10, 3, DType::u8};
    SeekStore::Lease lease;
    if (store != nullptr) store->lease(file, lease);
    EXPECT_TRUE(
        codec::decode_image(codec::media_named("jpeg"), file, {}, {30, 25, 20, 10}, into, scratch, lease.index()).ok());
    return values;
  };
  const Pixels8 right = crop_small(nullptr);
  {
    SeekStore store(options());
    crop_small(&store);
    store.finish_saving();
  }
  const std::string good = read();
  ASSERT_GT(good.size(), 64u);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char flip : {'\x01', '\x80'}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      write(bad);
      SeekStore store(options());
      ASSERT_EQ(crop_small(&store), right) << "byte " << at;
    }
    write(good.substr(0, at));
    SeekStore store(options());
    ASSERT_EQ(crop_small(&store), right) << "cut at " << at;
    ASSERT_NE(store.note(), "") << "cut at " << at;
  }
}

TEST_F(Seeking, AFileOfAnotherVersionIsNamedAndReplaced) {
  {
    SeekStore store(options());
    crop(picture(), {0, 0, 100, 100}, &store);
    store.finish_saving();
  }
  for (const auto& [version, word] : {std::pair{2, "earlier version"}, std::pair{4, "later version"}}) {
    std::string bytes = read();
    bytes[8] = static_cast<char>(version);
    write(bytes);
    {
      SeekStore store(options());
      EXPECT_NE(store.note().find(word), std::string::npos) << store.note();
      crop(picture(), {0, 0, 100, 100}, &store);
      store.finish_saving();
    }
    EXPECT_EQ(SeekStore(options()).note(), "");
  }
}

TEST_F(Seeking, MemoryIsNeverMoreThanTheLimitAndWhatDoesNotFitIsDecodedWithout) {
  SeekStore store(in_memory(64 << 10, 1));
  for (std::uint32_t i = 0; i < 60; ++i) {
    const File file = encode(kWidth, kHeight + i % 7, Scene::noise, {.quality = static_cast<int>(30 + i)});
    const Rect region{10, 10, 100, 100};
    ASSERT_EQ(crop(file, region, &store), crop(file, region, nullptr));
    ASSERT_LE(store.figures().memory_bytes, 64u << 10);
  }
  EXPECT_GT(store.figures().files, 0u);
  EXPECT_LT(store.figures().files, 60u);
}

TEST_F(Seeking, ADiskThatIsFullIsToldAndLeavesTheOldFile) {
  {
    SeekStore store(options());
    crop(picture(), {0, 0, 100, 100}, &store);
    store.finish_saving();
  }
  const std::string before = read();
  SeekStore store(options());
  crop(picture(), {0, 0, 100, 150}, &store);
  {
    const os::InjectFault full(os::Call::write, {.error_number = ENOSPC});
    store.finish_saving();
  }
  EXPECT_NE(store.problem().find("the seek index is not saved"), std::string::npos) << store.problem();
  EXPECT_EQ(read(), before);
}

TEST_F(Seeking, ManyThreadsMayLearnAndUseTheSameFilesWhileTheyAreSaved) {
  std::vector<File> files;
  for (int i = 0; i < 4; ++i) files.push_back(encode(kWidth, kHeight, Scene::noise, {.quality = 60 + 10 * i}));
  SeekStore store(options());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t, 1, 1);
      for (int i = 0; i < 60; ++i) {
        const File& file = files[random.below(4)];
        const Rect region = any_region(random);
        wrong += crop(file, region, &store) != crop(file, region, nullptr);
      }
    });
  }
  for (int i = 0; i < 20; ++i) store.save_soon();
  for (auto& thread : threads) thread.join();
  store.finish_saving();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(SeekStore(options()).figures().files, 4u);
}

// Files of which one bit changes, while length and time stay the same.
class ChangedFiles : public Seeking {
 protected:
  static constexpr int kFiles = 12;

  static constexpr std::uint32_t kLargeWidth = 320, kLargeHeight = 240;

  // Large, so that one bit is a tiny part of it.
  static std::string large(int number) {
    const File file = encode(kLargeWidth, kLargeHeight, Scene::smooth, {.quality = 80 + number});
    const codec::Bytes bytes = file;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // Empty if the file is damaged: it is refused, or its places are forgotten.
  static Pixels8 last_pixel(const std::string& file) {
    const codec::Bytes bytes = std::as_bytes(std::span(file));
    SeekStore store(in_memory(4 << 20, 8));
    const std::optional<Pixels8> pixel = try_crop(bytes, {kLargeWidth - 1, kLargeHeight - 1, 1, 1}, &store);
    SeekStore::Lease lease;
    store.lease(bytes, lease);
    return pixel && lease.index() != nullptr ? *pixel : Pixels8();
  }
  // The next bit from `at` on whose change leaves a valid file with another last pixel: it belongs to a brightness,
  // from which all later ones are counted.
  static std::string with_one_bit_changed(std::string file, std::size_t at) {
    const Pixels8 before = last_pixel(file);
    for (std::size_t bit = 8 * at; bit < 8 * file.size(); ++bit) {
      const auto flip = [&] { file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << bit % 8)); };
      flip();
      if (const Pixels8 after = last_pixel(file); !after.empty() && after != before) return file;
      flip();
    }
    ADD_FAILURE() << "no bit does that";
    return file;
  }
  static std::string name_of(int number) { return fmt::format("data/{:03}.jpg", number); }

  // Three epochs of crops, each in the order of its samples.
  std::vector<std::vector<Taken>> epochs(UseSeekIndex use) const {
    dataset::OpenOptions open;
    open.cache_dir = folder_.path("cache");
    LoaderOptions options = batches_of(8);
    options.transform = transform::parse_ops("rrc:32,flip");
    options.seek_index = use;
    Loader loader(dataset::open(folder_.path("data"), open), options);
    return three_epochs(loader);
  }
};

TEST_F(ChangedFiles, GiveTheCropsOfTheirNewContent) {
  for (int i = 0; i < kFiles; ++i) folder_.write(name_of(i), large(i));
  EXPECT_TRUE(epochs(UseSeekIndex::automatic) == epochs(UseSeekIndex::off));
  for (int i = 0; i < kFiles; ++i) {
    const std::string path = folder_.path(name_of(i)), before = large(i);
    const auto time = std::filesystem::last_write_time(path);
    folder_.write(name_of(i), with_one_bit_changed(before, before.size() * (1 + i % 7) / 10));
    std::filesystem::last_write_time(path, time);
    ASSERT_EQ(std::filesystem::file_size(path), before.size());
  }
  EXPECT_TRUE(epochs(UseSeekIndex::automatic) == epochs(UseSeekIndex::off)) << "with what was noted of the old files";
}

TEST_F(ChangedFiles, NearlyIdenticalCopiesInOneFolderAreFilesOfTheirOwn) {
  const std::string first = large(0);
  for (int i = 0; i < kFiles; ++i) {
    folder_.write(name_of(i), i % 2 == 0 ? first : with_one_bit_changed(first, first.size() * (1 + i % 7) / 10));
  }
  EXPECT_TRUE(epochs(UseSeekIndex::memory) == epochs(UseSeekIndex::off));
}

TEST_F(Seeking, ALoaderGivesTheSameBatchesWithAndWithoutAndKeepsItsMemoryLimit) {
  for (int i = 0; i < 30; ++i) {
    const File file = encode(kWidth + static_cast<std::uint32_t>(i), kHeight, i % 2 ? Scene::noise : Scene::smooth,
                             {.h_sampling = 1 + i % 2, .progressive = i % 10 == 9});
    const codec::Bytes bytes = file;
    folder_.write(fmt::format("data/{:03}.jpg", i),
                  std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  dataset::OpenOptions open;
  open.cache_dir = folder_.path("cache");
  LoaderOptions options = batches_of(8);
  options.shuffle = true;
  options.transform = transform::parse_ops("rrc:32,flip");
  const auto epochs = [&](UseSeekIndex use) {
    options.seek_index = use;
    Loader loader(dataset::open(folder_.path("data"), open), options);
    const std::vector<std::vector<Taken>> all = three_epochs(loader);
    EXPECT_LE(loader.stats().memory_peak, options.memory_limit);
    EXPECT_EQ(loader.stats().seek_files, use == UseSeekIndex::off ? 0u : 27u);
    return all;
  };
  const auto right = epochs(UseSeekIndex::off);
  EXPECT_EQ(epochs(UseSeekIndex::memory), right);
  EXPECT_FALSE(std::filesystem::exists(dataset::open(folder_.path("data"), open)->facts().seek_path));
  EXPECT_EQ(epochs(UseSeekIndex::automatic), right);
  EXPECT_TRUE(std::filesystem::exists(dataset::open(folder_.path("data"), open)->facts().seek_path));
  EXPECT_EQ(epochs(UseSeekIndex::automatic), right) << "with what the run before has saved";
}

}  // namespace
}  // namespace stoker::loader
