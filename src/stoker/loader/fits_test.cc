// Whether a sample fits memory_limit is a matter of the sample and the options that shape a batch: the same samples
// arrive whatever the workers, the storage and the moment.
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/units.h"
#include "stoker/codec/made_jpeg_test.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/loader/made_data_test.h"

namespace stoker::loader {
namespace {

using codec::made::encode, codec::made::Scene;
using storage::Storage;

std::string text_of(const codec::File& file) {
  const codec::Bytes bytes = file;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Pictures whose working memory goes from little to more than the limit, the large ones spread over the batches; the
// same as files and as a tar.
void write_pictures(const Folder& folder) {
  std::string tar;
  for (std::uint32_t i = 0; i < 12; ++i) {
    const std::uint32_t side = 200 + i * 5 % 12 * 125;
    const std::string name = fmt::format("{:02}.jpg", i);
    const std::string file =
        text_of(encode(side, side, Scene::smooth, {.h_sampling = 2, .v_sampling = 2, .progressive = i % 5 == 0}));
    folder.write("files/" + name, file);
    tar += dataset::tar_header(name, file.size(), 0) + file + std::string((512 - file.size() % 512) % 512, '\0');
  }
  folder.write("all.tar", tar + std::string(1024, '\0'));
}

LoaderOptions near_the_limit(std::uint64_t limit_bytes, OnError on_error) {
  LoaderOptions options = batches_of(5);
  options.transform = transform::parse_ops("resize:32x32");
  options.memory_limit = limit_bytes;
  options.on_error = on_error;
  return options;
}

std::vector<Taken> two_epochs(const std::string& address, LoaderOptions options, Storage storage, int workers) {
  dataset::OpenOptions open;
  open.storage = storage;
  options.storage = storage;
  options.num_workers = workers;
  Loader loader(open_uncached(address, open), options);
  std::vector<Taken> all;
  for (const std::uint64_t epoch : {0, 1}) {
    loader.start_epoch(epoch);
    for (Taken& taken : drain(loader)) all.push_back(std::move(taken));
  }
  EXPECT_LE(loader.stats().memory_peak, options.memory_limit);
  return all;
}

// Sanitizers look at memory and at how threads meet, not at what the policies make of it, and decode about ten times
// slower. The release build tries every combination (`./dev test --fast` or `--slow`).
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kFewer = true;
#else
constexpr bool kFewer = false;
#endif

TEST(LoaderFits, TheSameSamplesWhateverTheWorkersTheStorageAndTheMoment) {
  Folder folder;
  write_pictures(folder);
  for (const OnError on_error : {OnError::skip, OnError::replace, OnError::zero}) {
    for (const std::uint64_t limit : {12 * kMiB, 15 * kMiB}) {
      if ((on_error != OnError::skip || kFewer) && limit != 12 * kMiB) continue;
      if (on_error != OnError::skip && kFewer) continue;
      const LoaderOptions options = near_the_limit(limit, on_error);
      for (const char* const name : {"files", "all.tar"}) {
        const std::vector<Taken> expected = two_epochs(folder.path(name), options, Storage::buffered, 0);
        if (on_error == OnError::skip) {
          const auto indices = indices_of(expected);
          const std::set<std::int64_t> loaded(indices.begin(), indices.end());
          ASSERT_GT(loaded.size(), 3u);
          ASSERT_LT(loaded.size(), 12u) << "some do not fit, or the test shows nothing";
        }
        for (const Storage storage :
             {Storage::buffered, Storage::direct, Storage::mmap, Storage::ram, Storage::automatic}) {
          for (int workers = 0; workers <= 4; workers += on_error == OnError::skip ? 1 : 2) {
            if (kFewer && workers != 3) continue;
            ASSERT_EQ(two_epochs(folder.path(name), options, storage, workers), expected)
                << name << ", " << storage::name(storage) << ", " << workers << " workers, " << limit;
          }
        }
      }
    }
  }
}

TEST(LoaderFits, ManyWorkersTakeTurnsWithLittleMemory) {
  Folder folder;
  write_pictures(folder);
  const LoaderOptions options = near_the_limit(17 * kMiB, OnError::skip);
  const std::vector<Taken> expected = two_epochs(folder.path("files"), options, Storage::buffered, 0);
  for (int repetition = 0; repetition < (kFewer ? 1 : 10); ++repetition) {
    ASSERT_EQ(two_epochs(folder.path("files"), options, Storage::buffered, 8), expected);
  }
}

// memory_limit="23MiB" is enough: what an error names.
std::uint64_t named_limit(const std::string& message) {
  const std::size_t at = message.find("memory_limit=\"");
  return at == std::string::npos ? 0 : std::stoull(message.substr(at + 14)) * kMiB;
}

TEST(LoaderFits, TheErrorNamesALimitThatIsEnough) {
  Folder folder;
  write_pictures(folder);
  for (int i = 0; i < 6; ++i) folder.write(fmt::format("sounds/{}.wav", i), wav(i < 4 ? 1000 : i * 400'000, 1));
  for (const char* const name : {"files", "all.tar", "sounds"}) {
    LoaderOptions options = near_the_limit(12 * kMiB, OnError::raise);
    if (std::string(name) == "sounds") options.transform = {};
    int raised = 0;
    for (; raised < 20; ++raised) {
      try {
        epoch_of(open_uncached(folder.path(name)), options);
        break;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::unavailable) << error.message();
        const std::uint64_t enough = named_limit(error.message());
        ASSERT_GT(enough, options.memory_limit) << error.message();
        options.memory_limit = enough;
      }
    }
    EXPECT_GT(raised, 0) << name;
    EXPECT_LT(raised, 20) << name;
  }
}

TEST(LoaderFits, TheLimitThatTheErrorNamesIsEnoughForEveryCrop) {
  Folder folder;
  folder.write("x/0.jpg", text_of(encode(200, 200, Scene::smooth, {})));
  folder.write("x/1.jpg", text_of(encode(1500, 1400, Scene::smooth, {})));
  LoaderOptions options = near_the_limit(11 * kMiB, OnError::raise);
  options.transform = transform::parse_ops("rrc:32");
  int raised = 0;
  for (std::uint64_t epoch = 0; epoch < 40;) {
    Loader loader(open_uncached(folder.path("x")), options);
    try {
      for (; epoch < 40; ++epoch) {
        loader.start_epoch(epoch);
        drain(loader);
      }
    } catch (const Error& error) {
      options.memory_limit = named_limit(error.message());
      ASSERT_LT(++raised, 2) << error.message();
    }
  }
  EXPECT_EQ(raised, 1);
}

TEST(LoaderFits, ASampleThatDoesNotFitIsSkippedOrNamedWhereverItsBytesLie) {
  Folder folder;
  folder.write("x/0.wav", wav(1000, 1));
  folder.write("x/1.wav", wav(5'000'000, 2));
  folder.write("x/2.wav", wav(1000, 3));
  for (const Storage storage : {Storage::buffered, Storage::direct, Storage::ram}) {
    for (const char* const ops : {"", "pad:2000"}) {
      LoaderOptions options = near_the_limit(16 * kMiB, OnError::skip);
      options.transform = transform::parse_ops(ops);
      EXPECT_EQ(indices_of(two_epochs(folder.path("x"), options, storage, 2)), (std::vector<std::int64_t>{0, 2, 0, 2}))
          << storage::name(storage) << " " << ops;
    }
  }
}

}  // namespace
}  // namespace stoker::loader
