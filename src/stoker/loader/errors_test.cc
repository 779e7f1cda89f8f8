// Bad samples, by every policy; each ends in a named error or a stand-in, never in a hang or a wrong row.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>

#include "stoker/codec/made_jpeg_test.h"
#include "stoker/loader/held_data_test.h"
#include "stoker/loader/placed_data_test.h"
#include "stoker/os/fault.h"

namespace stoker::loader {
namespace {

class LoaderErrors : public PlacedData {};
INSTANTIATE_TEST_SUITE_P(Places, LoaderErrors, ::testing::ValuesIn(kPlaces), name_of);

LoaderOptions sound(OnError on_error, int workers = 2) {
  LoaderOptions options = batches_of(4, workers);
  options.transform = transform::parse_ops("pad:100");
  options.on_error = on_error;
  return options;
}

// 20 files, of which number 9 (in the third batch) is damaged.
void write_with_damage(const Folder& folder, const std::string& damage) {
  for (int i = 0; i < 20; ++i) folder.write(fmt::format("{:02}.wav", i), wav(100, static_cast<std::int16_t>(i)));
  folder.write("09.wav", damage);
}

template <typename F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::internal, "");
}

TEST_P(LoaderErrors, RaiseNamesTheFileTheSampleAndTheCauseAtItsBatch) {
  for (const std::string& damage :
       {std::string(), std::string("garbage, not a RIFF file"), wav(100, 9).substr(0, 30)}) {
    for (const int workers : {0, 2}) {
      Folder folder;
      write_with_damage(folder, damage);
      Loader loader(placed(folder), sound(OnError::raise, workers));
      EXPECT_EQ(drain(loader, 2).size(), 2u);
      const Error error = error_of([&] { loader.next(); });
      EXPECT_NE(error.message().find("`09.wav` (sample 9)"), std::string::npos) << error.message();
      EXPECT_NE(error.hint().find("on_error"), std::string::npos);
      EXPECT_EQ(error_of([&] { loader.next(); }).message(), error.message());
      ASSERT_EQ(loader.errors().size(), 1u);
      EXPECT_EQ(loader.errors()[0].name, "09.wav");
    }
  }
}

TEST_P(LoaderErrors, SkipShortensItsBatchAndMovesNothingElse) {
  Folder folder;
  write_with_damage(folder, "x");
  const auto data = placed(folder);
  Loader loader(data, sound(OnError::skip));
  const auto batches = drain(loader);
  ASSERT_EQ(batches.size(), 5u);
  EXPECT_EQ(batches[2].indices, (std::vector<std::int64_t>{8, 10, 11}));
  EXPECT_EQ(batches[3].indices, (std::vector<std::int64_t>{12, 13, 14, 15}));
  float value = 0;
  std::memcpy(&value, batches[2].rows[1].data(), 4);
  EXPECT_EQ(value, 10 / 32768.0f);
  ASSERT_EQ(loader.errors().size(), 1u);
  EXPECT_EQ(loader.errors()[0].action, "skip");
}

// The plan must not mind that a finished batch became shorter: few reads in flight let workers overtake it.
TEST_P(LoaderErrors, SkipNeitherStopsNorRepeatsABatchWhateverTheDepth) {
  Folder folder;
  for (int i = 0; i < 200; ++i) {
    folder.write(fmt::format("{:03}.wav", i), i % 3 == 0 ? "bad" : wav(100, static_cast<std::int16_t>(i)));
  }
  const auto data = placed(folder);
  for (const std::uint64_t batch_size : {1, 2, 3, 8}) {
    for (const std::uint64_t depth : {1, 2, 8}) {
      for (const int workers : {0, 1, 4}) {
        LoaderOptions options = sound(OnError::skip, workers);
        options.batch_size = batch_size;
        options.io_depth = depth;
        options.io_threads = 1;
        options.timeout = std::chrono::seconds(20);
        Loader loader(data, options);
        for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
          loader.start_epoch(epoch);
          std::size_t rows = 0;
          for (const Taken& batch : drain(loader)) {
            for (std::size_t i = 0; i < batch.rows.size(); ++i) {
              float value = 0;
              std::memcpy(&value, batch.rows[i].data(), 4);
              ASSERT_EQ(value, static_cast<float>(batch.indices[i]) / 32768.0f);
              ++rows;
            }
          }
          ASSERT_EQ(rows, 133u) << batch_size << " " << depth << " " << workers;
        }
      }
    }
  }
}

TEST_P(LoaderErrors, AStandInOfAnyLengthIsTheSameWhateverElseIsInItsBatch) {
  Folder folder;
  for (int i = 0; i < 20; ++i) {
    folder.write(fmt::format("{:02}.wav", i), i == 9 || i == 10 ? "x" : wav(10 + 7 * static_cast<std::uint32_t>(i), 1));
  }
  const auto data = placed(folder);
  LoaderOptions options = batches_of(20);
  options.on_error = OnError::replace;
  const std::vector<std::int64_t> right = indices_of(epoch_of(data, options));
  for (const std::uint64_t batch_size : {1, 2, 3, 11}) {
    for (const int workers : {0, 2}) {
      options.batch_size = batch_size;
      options.num_workers = workers;
      Loader loader(data, options);
      EXPECT_EQ(indices_of(drain(loader)), right);
      for (const SampleError& error : loader.errors()) EXPECT_EQ(error.action, "replace");
    }
  }
}

TEST(LoaderErrors, ASelectionOfNoFilesIsNamedAsSuch) {
  Folder folder;
  folder.write("a.wav", wav(100, 1));
  const auto none = dataset::take_indices(open_uncached(folder.path()), {});
  const Error error = error_of([&] { Loader(none, sound(OnError::raise)); });
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_NE(error.message().find("no sample of it is selected"), std::string::npos) << error.message();
}

TEST(LoaderErrors, RunningOutOfDescriptorsEndsTheRunWhateverThePolicy) {
  Folder folder;
  for (int i = 0; i < 40; ++i) folder.write(fmt::format("{:02}.wav", i), wav(100, 1));
  const auto data = open_uncached(folder.path());
  Loader loader(data, sound(OnError::skip));
  const os::InjectFault fault(os::Call::open, {.error_number = EMFILE, .skip = 10, .times = 1000});
  const Error error = error_of([&] { drain(loader); });
  EXPECT_EQ(error.kind(), ErrorKind::unavailable);
  EXPECT_NE(error.hint().find("ulimit -n"), std::string::npos) << error.hint();
}

TEST_P(LoaderErrors, TheListIsBoundedAndTheCountIsNot) {
  Folder folder;
  folder.write("good.wav", wav(100, 1));
  folder.write("z.wav", "bad");
  dataset::OpenOptions open;
  open.inflate = 12'000;
  LoaderOptions options = sound(OnError::zero);
  options.batch_size = 1000;
  Loader loader(placed(folder, "", open), options);
  EXPECT_EQ(indices_of(drain(loader)).size(), 24'000u);
  EXPECT_EQ(loader.errors().size(), 10'000u);
  EXPECT_EQ(loader.stats().errors, 12'000u);
}

TEST_P(LoaderErrors, ZeroGivesZerosMarkedNotValid) {
  Folder folder;
  write_with_damage(folder, "x");
  Loader loader(placed(folder), sound(OnError::zero));
  const auto batches = drain(loader);
  EXPECT_EQ(batches[2].valid, (std::vector<std::uint8_t>{1, 0, 1, 1}));
  EXPECT_EQ(batches[2].rows[1], std::string(400, '\0'));
}

TEST_P(LoaderErrors, ReplacementIsTheSameForAnyWorkersAndRanks) {
  Folder folder;
  write_with_damage(folder, "x");
  const auto data = placed(folder);
  LoaderOptions options = sound(OnError::replace);
  options.shuffle = true;
  options.seed = 7;
  const auto reference = epoch_of(data, options);
  auto all = indices_of(reference);
  EXPECT_EQ(all.size(), 20u);
  EXPECT_EQ(std::count(all.begin(), all.end(), 9), 0);
  options.num_workers = 0;
  EXPECT_EQ(epoch_of(data, options), reference);
  options.batch_size = 2;
  options.world_size = 2;
  std::vector<std::int64_t> joined;
  std::vector<std::vector<Taken>> parts;
  for (options.rank = 0; options.rank < 2; ++options.rank) parts.push_back(epoch_of(data, options));
  for (std::size_t step = 0; step < parts[0].size(); ++step) {
    for (const auto& part : parts) joined.insert(joined.end(), part[step].indices.begin(), part[step].indices.end());
  }
  EXPECT_EQ(joined, all);
}

TEST_P(LoaderErrors, MaxErrorsEndsTheRun) {
  Folder folder;
  for (int i = 0; i < 40; ++i) folder.write(fmt::format("{:02}.wav", i), i % 4 == 3 ? "bad" : wav(100, 1));
  LoaderOptions options = sound(OnError::skip);
  options.max_errors = 3;
  Loader counted(placed(folder), options);
  EXPECT_EQ(drain(counted, 3).size(), 3u);
  EXPECT_NE(error_of([&] { counted.next(); }).message().find("max_errors=3"), std::string::npos);
  EXPECT_EQ(counted.errors().size(), 4u);
  options.max_errors = 0.5;
  Loader share(placed(folder), options);
  EXPECT_EQ(drain(share).size(), 10u);
}

TEST(LoaderErrors, MaxErrorsAboveOneIsACount) {
  LoaderOptions options = sound(OnError::skip);
  for (const double whole : {0.0, 0.5, 1.0, 3.0}) {
    options.max_errors = whole;
    EXPECT_NO_THROW(Loader(held_sounds(4), options)) << whole;
  }
  for (const double wrong : {-1.0, 1.5, std::numeric_limits<double>::infinity()}) {
    options.max_errors = wrong;
    const Error error = error_of([&] { Loader(held_sounds(4), options); });
    EXPECT_EQ(error.option(), "max_errors") << wrong;
  }
}

TEST(LoaderErrors, AFileThatVanishedIsNamed) {
  Folder folder;
  for (int i = 0; i < 8; ++i) folder.write(fmt::format("{:02}.wav", i), wav(100, 1));
  const auto data = open_uncached(folder.path());
  std::filesystem::remove(folder.path("05.wav"));
  Loader loader(data, sound(OnError::raise));
  EXPECT_EQ(drain(loader, 1).size(), 1u);
  const Error error = error_of([&] { loader.next(); });
  EXPECT_NE(error.message().find("05.wav"), std::string::npos);
  EXPECT_EQ(error.kind(), ErrorKind::not_found);
}

TEST(LoaderErrors, AFileThatChangedItsSizeSinceItWasListedIsReadAsItIs) {
  for (const storage::Storage storage : {storage::Storage::buffered, storage::Storage::direct, storage::Storage::ram}) {
    for (const int workers : {0, 2}) {
      Folder folder;
      for (int i = 0; i < 8; ++i) folder.write(fmt::format("{:02}.wav", i), wav(100, 1));
      const auto data = open_uncached(folder.path());
      LoaderOptions options = sound(OnError::raise);
      options.storage = storage;
      options.num_workers = workers;
      Loader loader(data, options);
      folder.write("03.wav", wav(60, 2));
      folder.write("05.wav", wav(30'000, 3));
      EXPECT_EQ(drain(loader), epoch_of(open_uncached(folder.path()), options));
    }
  }
}

TEST(LoaderErrors, ASpecialFileIsNamedAsOne) {
  Folder folder;
  for (int i = 0; i < 8; ++i) folder.write(fmt::format("{:02}.wav", i), wav(100, 1));
  std::filesystem::create_symlink("/proc/version", folder.path("05a.wav"));
  const Error error = error_of([&] { epoch_of(open_uncached(folder.path()), sound(OnError::raise)); });
  EXPECT_NE(error.message().find("05a.wav"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("it is a special file"), std::string::npos) << error.message();
}

TEST_P(LoaderErrors, PoliciesLookPastManyBadSamplesForTheFirstGoodOne) {
  for (const int bad : {20, 400}) {
    Folder folder;
    for (int i = 0; i < bad; ++i) folder.write(fmt::format("{:03}.wav", i), "bad");
    for (int i = 0; i < 10; ++i) folder.write(fmt::format("z{}.wav", i), wav(100, 1));
    EXPECT_NE(error_of([&] { Loader(placed(folder), sound(OnError::raise)); })
                  .message()
                  .find("none of 16 samples can be read"),
              std::string::npos);
    EXPECT_EQ(indices_of(epoch_of(placed(folder), sound(OnError::skip))).size(), 10u);
    EXPECT_EQ(indices_of(epoch_of(placed(folder), sound(OnError::zero))).size(), 10u + bad);
  }
  Folder folder;
  for (int i = 0; i < 300; ++i) folder.write(fmt::format("{:03}.wav", i), "bad");
  EXPECT_NE(
      error_of([&] { Loader(placed(folder), sound(OnError::skip)); }).message().find("none of 256 samples can be read"),
      std::string::npos);
}

// The listing in the cache has the old size: the file is read again when that shows, and decoded from what was read.
TEST(LoaderErrors, AFileThatGrewSinceItWasListedIsReadAsItIsAndSaysIfItDoesNotFit) {
  using codec::made::Scene;
  const auto picture = [](std::uint32_t width, std::uint32_t height, int quality = 90) {
    const codec::File file = codec::made::encode(width, height, Scene::smooth, {.quality = quality});
    const codec::Bytes bytes = file;
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  Folder folder;
  for (int i = 0; i < 8; ++i) folder.write(fmt::format("data/{}.jpg", i), picture(64, 48));
  dataset::OpenOptions listed;
  listed.cache_dir = folder.path("cache");
  listed.now_ns = [] { return std::numeric_limits<std::int64_t>::max(); };  // the folder counts as settled
  (void)dataset::open(folder.path("data"), listed);
  LoaderOptions options = batches_of(4);
  options.transform = transform::parse_ops("rrc:32");
  options.memory_limit = 8 << 20;

  folder.write("data/5.jpg", picture(100, 80));
  EXPECT_TRUE(dataset::open(folder.path("data"), listed)->facts().sizes_may_be_stale);
  EXPECT_EQ(epoch_of(dataset::open(folder.path("data"), listed), options),
            epoch_of(open_uncached(folder.path("data")), options));

  for (const int quality : {90, 1}) {  // what does not fit is the file, or the picture in it
    folder.write("data/5.jpg", picture(3000, 2000, quality));
    const Error error = error_of([&] { epoch_of(dataset::open(folder.path("data"), listed), options); });
    EXPECT_NE(error.message().find("5.jpg"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("memory_limit"), std::string::npos) << error.message();
  }
}

// It fits while nothing else is held, and says what the data set holds. Later there is no room for it.
TEST(LoaderErrors, TheFirstLookAtAFileThatGrewCountsAsMemory) {
  Folder folder;
  for (int i = 0; i < 8; ++i) folder.write(fmt::format("data/{}.wav", i), wav(100, 1));
  dataset::OpenOptions listed;
  listed.cache_dir = folder.path("cache");
  listed.now_ns = [] { return std::numeric_limits<std::int64_t>::max(); };  // the folder counts as settled
  (void)dataset::open(folder.path("data"), listed);
  constexpr std::uint64_t kGrown = 12'000'000;
  std::filesystem::resize_file(folder.path("data/0.wav"), kGrown);
  LoaderOptions options = sound(OnError::skip);
  options.memory_limit = 16'000'000;
  Loader loader(dataset::open(folder.path("data"), listed), options);
  EXPECT_EQ(indices_of(drain(loader)).size(), 7u);
  EXPECT_GE(loader.stats().memory_peak, kGrown);
  EXPECT_LE(loader.stats().memory_peak, options.memory_limit);
}

TEST_P(LoaderErrors, ASampleLargerThanTheBudgetIsAClearError) {
  Folder folder;
  for (int i = 0; i < 30; ++i) folder.write(fmt::format("{:02}.wav", i), wav(100, 1));
  folder.write("17.wav", wav(3'000'000, 1));
  LoaderOptions options = sound(OnError::raise);
  options.memory_limit = 5 << 20;
  Loader loader(placed(folder), options);
  const Error error = error_of([&] { drain(loader); });
  EXPECT_NE(error.message().find("17.wav"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("memory_limit"), std::string::npos);
  options.on_error = OnError::skip;
  EXPECT_EQ(indices_of(epoch_of(placed(folder), options)).size(), 29u);
}

TEST(LoaderErrors, SystemCallFaultsAreRetriedOrNamed) {
  Folder folder;
  for (int i = 0; i < 40; ++i) folder.write(fmt::format("{:02}.wav", i), wav(100, 1));
  const auto data = open_uncached(folder.path());
  const LoaderOptions options = sound(OnError::raise);
  {
    const os::InjectFault fault(os::Call::read, {.error_number = EINTR, .times = 3});
    EXPECT_EQ(epoch_of(data, options).size(), 10u);
  }
  {
    const os::InjectFault fault(os::Call::read, {.short_bytes = 10, .times = 5});
    EXPECT_EQ(epoch_of(data, options).size(), 10u);
  }
  {
    // All from the 21st on: one alone may be of the next epoch, which is read ahead in whatever order files open.
    const os::InjectFault fault(os::Call::read, {.error_number = EIO, .skip = 20, .times = 1000});
    const Error error = error_of([&] { epoch_of(data, options); });
    EXPECT_NE(error.message().find("Input/output error"), std::string::npos) << error.message();
  }
  {
    const os::InjectFault fault(os::Call::open, {.error_number = EMFILE, .skip = 20, .times = 1000});
    const Error error = error_of([&] { epoch_of(data, options); });
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_NE(error.message().find("Too many open files"), std::string::npos) << error.message();
  }
  {
    const os::InjectFault fault(os::Call::ring_setup, {.error_number = EPERM, .times = 1000});
    Loader loader(data, options);
    EXPECT_EQ(drain(loader).size(), 10u);
    const auto notes = loader.notes();
    EXPECT_TRUE(std::any_of(notes.begin(), notes.end(),
                            [](const Text& note) { return note.in_python().find("io_uring") != std::string::npos; }));
  }
}

TEST(Failures, TheTextOfAStoreReachesTheListAndTheMessage) {
  const auto data = held_sounds(8);
  data->failures.emplace(3, Error(ErrorKind::permission, "403 Forbidden (request 7f)", "look at the credentials"));
  LoaderOptions options = batches_of(4);
  options.on_error = OnError::skip;
  Loader skipping(data, options);
  skipping.start_epoch(0);
  EXPECT_EQ(indices_of(drain(skipping)), (std::vector<std::int64_t>{0, 1, 2, 4, 5, 6, 7}));
  ASSERT_EQ(skipping.errors().size(), 1u);
  EXPECT_EQ(skipping.errors()[0].cause, "403 Forbidden (request 7f)");
  EXPECT_EQ(skipping.errors()[0].stage, "read");

  options.on_error = OnError::raise;
  Loader raising(data, options);
  raising.start_epoch(0);
  try {
    drain(raising);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::permission);
    EXPECT_NE(error.message().find("403 Forbidden (request 7f)"), std::string::npos) << error.message();
    EXPECT_EQ(error.hint(), "look at the credentials");
  }
}

}  // namespace
}  // namespace stoker::loader
