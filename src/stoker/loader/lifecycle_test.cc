// Memory limits, consumers of every kind, stalls, forks, and batches that outlive their loader.
#include <filesystem>
#include <future>
#include <iterator>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/loader/placed_data_test.h"
#include "stoker/os/fault.h"
#include "stoker/os/fd.h"
#include "stoker/os/memory.h"
#include "stoker/os/ring.h"

namespace stoker::loader {
namespace {

using transform::parse_ops;

class LoaderLife : public PlacedData {};
INSTANTIATE_TEST_SUITE_P(Places, LoaderLife, ::testing::ValuesIn(kPlaces), name_of);
class LoaderMemory : public PlacedData {};
INSTANTIATE_TEST_SUITE_P(Places, LoaderMemory, ::testing::ValuesIn(kPlaces), name_of);
class LoaderSound : public PlacedData {};
INSTANTIATE_TEST_SUITE_P(Places, LoaderSound, ::testing::ValuesIn(kPlaces), name_of);

TEST_P(LoaderMemory, ALimitThatIsTooSmallNamesTheLeastThatWorks) {
  Folder folder;
  folder.write("x.npy", npy(64, 100'000));
  const auto data = placed(folder, "x.npy");
  LoaderOptions options = batches_of(16);
  options.memory_limit = 1 << 20;
  std::uint64_t least = 0;
  try {
    Loader loader(data, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    const std::size_t at = error.message().rfind('(');
    least = std::stoull(error.message().substr(at + 1));
  }
  options.memory_limit = least;
  EXPECT_EQ(epoch_of(data, options).size(), 4u);
}

TEST_P(LoaderMemory, WhatIsHeldNeverPassesTheLimit) {
  Folder folder;
  write_wavs(folder, 400, 2000);
  const auto data = placed(folder);
  for (const std::uint64_t limit : {5u << 20, 8u << 20, 13u << 20, 64u << 20}) {
    LoaderOptions options = batches_of(32);
    options.memory_limit = limit;
    options.transform = parse_ops("pad:2000");
    Loader loader(data, options);
    EXPECT_EQ(indices_of(drain(loader)).size(), 400u);
    EXPECT_LE(loader.stats().memory_peak, limit);  // counts whole pages, as they are mapped
    EXPECT_GT(loader.stats().memory_peak, 0u);
  }
}

TEST(LoaderThreads, OnesThatCannotBeStartedAreAnErrorWithTheRemedyAndNothingHangs) {
  Folder folder;
  write_wavs(folder, 20);
  const auto data = open_uncached(folder.path());
  for (const std::uint32_t started : {0u, 1u, 3u}) {
    LoaderOptions options = batches_of(4, 3);
    options.io_threads = 1;
    options.transform = parse_ops("pad:100");
    Loader loader(data, options);
    const os::InjectFault none_left(os::Call::thread, {.error_number = EAGAIN, .skip = started, .times = 100});
    for (int i = 0; i < 2; ++i) {  // and again, instead of a half-started loader
      try {
        loader.next();
        FAIL() << started;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::unavailable);
        // Without io_uring there are more I/O threads than asked for.
        EXPECT_NE(error.message().find(" I/O threads and 3 workers"), std::string::npos) << error.message();
        EXPECT_NE(error.hint().find("num_workers"), std::string::npos) << error.hint();
      }
    }
  }
}

TEST(LoaderThreads, MoreWorkersThanCanBeStartedLeaveTheOnesThatRun) {
  Folder folder;
  write_wavs(folder, 40);
  LoaderOptions options = batches_of(4, 1);
  options.transform = parse_ops("pad:100");
  const auto data = open_uncached(folder.path());
  const auto right = epoch_of(data, options);
  Loader loader(data, options);
  std::vector<Taken> taken = drain(loader, 3);
  {
    const os::InjectFault none_left(os::Call::thread, {.error_number = EAGAIN, .skip = 1, .times = 100});
    EXPECT_THROW(loader.set_num_workers(5), Error);
  }
  for (const Taken& batch : drain(loader)) taken.push_back(batch);
  EXPECT_EQ(taken, right);
  EXPECT_EQ(loader.stats().num_workers, 2);
}

TEST_P(LoaderMemory, KeepingEveryBatchIsAnErrorThatNamesCountBytesAndRemedy) {
  Folder folder;
  folder.write("x.npy", npy(2000, 20'000));
  LoaderOptions options = batches_of(50);
  options.memory_limit = 10 << 20;
  Loader loader(placed(folder, "x.npy"), options);
  std::vector<BatchPtr> kept;
  try {
    while (BatchPtr batch = loader.next()) kept.push_back(std::move(batch));
    FAIL() << "40 MB of batches fit 10 MB";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_NE(error.message().find(fmt::format("holds {} batches", kept.size())), std::string::npos) << error.message();
    EXPECT_NE(error.hint().find("copy=True"), std::string::npos);
  }
  EXPECT_GE(kept.size(), 2u);
  const std::size_t before = kept.size();
  kept.clear();
  EXPECT_EQ(drain(loader).size(), 40 - before);
}

TEST_P(LoaderMemory, FewBatchesMayBeKeptWithinTheLimit) {
  Folder folder;
  folder.write("x.npy", npy(100, 1000));
  Loader loader(placed(folder, "x.npy"), batches_of(10));
  std::vector<BatchPtr> kept;
  while (BatchPtr batch = loader.next()) kept.push_back(std::move(batch));
  ASSERT_EQ(kept.size(), 10u);
  for (std::size_t b = 0; b < kept.size(); ++b) {
    EXPECT_EQ(static_cast<int>(kept[b]->tensors()[0].data[0]), static_cast<int>(b * 10));
  }
}

TEST_P(LoaderMemory, SlabsAreReused) {
  Folder folder;
  folder.write("x.npy", npy(1000, 5000));
  Loader loader(placed(folder, "x.npy"), batches_of(10));
  drain(loader);
  EXPECT_LE(loader.stats().slabs, 5u);
}

std::size_t threads_of_this_process() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_P(LoaderLife, AConsumerThatNeverTakesABatchOrStopsHalfWayLeavesNoThread) {
  Folder folder;
  write_wavs(folder, 200);
  const auto data = placed(folder);
  LoaderOptions options = batches_of(4);
  options.transform = parse_ops("pad:100");
  const auto whole = indices_of(epoch_of(data, options));
  const std::size_t before = threads_of_this_process();
  for (std::size_t i = 0; i < 20; ++i) {
    Loader never(data, options);
    never.start_epoch(0);
    Loader half(data, options);
    const auto taken = indices_of(drain(half, i));
    EXPECT_EQ(taken, std::vector(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(4 * i)));
    Loader unstarted(data, options);
    EXPECT_GT(threads_of_this_process(), before);
  }
  // The kernel lists a thread a little longer than joining it takes.
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (threads_of_this_process() > before && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(threads_of_this_process(), before);
}

TEST_P(LoaderLife, BatchesOutliveTheirLoader) {
  Folder folder;
  folder.write("x.npy", npy(10, 1000));
  BatchPtr batch;
  {
    Loader loader(placed(folder, "x.npy"), batches_of(5));
    batch = loader.next();
  }
  EXPECT_EQ(copy_out(*batch).rows[3], std::string(1000, 3));
  EXPECT_EQ(batch->name_of(3), "x.npy[3]");
  std::thread([moved = std::move(batch)]() mutable { moved.reset(); }).join();
}

TEST(LoaderLife, ClosingFromAnotherThreadEndsTheWait) {
  Folder folder;
  write_wavs(folder, 300);
  const auto data = open_uncached(folder.path());
  for (const int workers : {0, 2}) {
    for (int round = 0; round < 20; ++round) {
      LoaderOptions options = batches_of(2, workers);
      options.transform = parse_ops("resample:44100,pad:2000");
      Loader loader(data, options);
      loader.start_epoch(0);
      std::promise<void> begun;
      std::thread consumer([&] {
        begun.set_value();
        EXPECT_THROW(
            {
              for (std::uint64_t epoch = 0;; ++epoch) {
                loader.start_epoch(epoch);
                drain(loader);
              }
            },
            Error);
      });
      begun.get_future().wait();
      for (int i = 0; i < 4 * round; ++i) std::this_thread::yield();
      loader.close();
      consumer.join();
    }
  }
}

TEST_P(LoaderMemory, PrefetchDoesNotPassTheLimitEither) {
  Folder folder;
  folder.write("x.npy", npy(100, 1000));
  LoaderOptions options = batches_of(10);
  options.prefetch_factor = 50'000'000;
  Loader loader(placed(folder, "x.npy"), options);
  EXPECT_EQ(drain(loader).size(), 10u);
  EXPECT_LE(loader.stats().memory_peak, options.memory_limit);
  options.prefetch_factor = 0;
  EXPECT_EQ(epoch_of(placed(folder, "x.npy"), options).size(), 10u);
}

TEST_P(LoaderLife, UseAfterCloseIsRefused) {
  Folder folder;
  folder.write("x.npy", npy(10, 10));
  Loader loader(placed(folder, "x.npy"), batches_of(5));
  loader.next();
  loader.close();
  loader.close();
  EXPECT_THROW(loader.next(), Error);
}

TEST(LoaderLife, InterruptionEndsTheWaitAndLosesNothing) {
  Folder folder;
  write_wavs(folder, 20);
  LoaderOptions options = batches_of(4);
  options.transform = parse_ops("pad:100");
  const auto data = open_uncached(folder.path());
  Loader loader(data, options);
  std::vector<Taken> taken;
  int asked = 0;
  while (true) {
    try {
      const BatchPtr batch = loader.next([&] { return ++asked % 2 == 1; });
      if (!batch) break;
      taken.push_back(copy_out(*batch));
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "interrupted");
    }
  }
  EXPECT_EQ(taken, epoch_of(data, options));
}

// A data set whose bytes never come: rows of a pipe that nobody writes to.
class Stuck final : public dataset::Dataset, public storage::Source {
 public:
  Stuck() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "make", "pipe");
    read_end_ = os::Fd(ends[0]);
    write_end_ = os::Fd(ends[1]);
    facts_.kind = "stuck";
    facts_.total_bytes = 1000;
    facts_.largest_bytes = 100;
    codec::ArrayInfo array;
    array.dtype = DType::u8;
    array.rank = 2;
    array.shape = {10, 100};
    facts_.array = array;
  }
  const dataset::Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return 10; }
  std::uint64_t id(std::uint64_t index) const noexcept override { return index; }
  storage::Location locate(std::uint64_t, std::span<char>) const noexcept override {
    return storage::Location::in_source(this, 0, 100);
  }
  dataset::Label label(std::uint64_t) const noexcept override { return {}; }
  codec::Media media(std::uint64_t) const noexcept override { return codec::media_named("npy"); }
  std::string name(std::uint64_t index) const override { return fmt::format("pipe[{}]", index); }
  double column(std::size_t, std::uint64_t) const noexcept override { return 0; }
  std::string_view name() const noexcept override { return "pipe"; }
  std::uint64_t size_bytes() const noexcept override { return 1000; }
  void read(std::span<const storage::Read>) const override {}
  int descriptor() const noexcept override { return read_end_.get(); }

 private:
  dataset::Facts facts_;
  os::Fd read_end_, write_end_;
};

TEST(LoaderLife, AStallEndsWithTheStageTheSampleAndTheTime) {
  int refused = 0;
  if (!os::Ring::try_make(1, refused))
    GTEST_SKIP() << "only io_uring waits for a pipe, and it is refused here: error " << refused;
  LoaderOptions options = batches_of(2);
  options.timeout = std::chrono::milliseconds(120);
  Loader loader(std::make_shared<Stuck>(), options);
  try {
    loader.next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_NE(error.message().find("`pipe[0]` (sample 0) in stage fetch"), std::string::npos) << error.message();
  }
}

TEST(LoaderLife, UseAfterForkIsRefusedAndTheChildEndsCleanly) {
  Folder folder;
  write_wavs(folder, 40);
  LoaderOptions options = batches_of(4);
  options.transform = parse_ops("pad:100");
  auto loader = std::make_unique<Loader>(open_uncached(folder.path()), options);
  BatchPtr batch = loader->next();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int code = 1;
    try {
      loader->next();
    } catch (const Error& error) {
      code = error.kind() == ErrorKind::usage && !error.hint().empty() ? 0 : 2;
    }
    batch.reset();
    loader.reset();
    ::_exit(code);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  batch.reset();
  EXPECT_EQ(drain(*loader).size(), 9u);
}

TEST_P(LoaderSound, UnequalLengthsArePaddedToTheLongestOfTheBatch) {
  Folder folder;
  for (int i = 0; i < 9; ++i)
    folder.write(fmt::format("{}.wav", i), wav(10 + 7 * static_cast<std::uint32_t>(i), 16384));
  for (const int workers : {0, 2}) {
    Loader loader(placed(folder), batches_of(3, workers));
    std::int64_t frames = 10;
    while (const BatchPtr batch = loader.next()) {
      ASSERT_EQ(batch->tensors()[0].shape, (std::vector<std::int64_t>{3, frames + 14}));
      const auto* values = reinterpret_cast<const float*>(batch->tensors()[0].data);
      for (std::int64_t row = 0; row < 3; ++row) {
        EXPECT_EQ(batch->lengths()[static_cast<std::size_t>(row)], frames + 7 * row);
        for (std::int64_t f = 0; f < frames + 14; ++f) {
          ASSERT_EQ(values[row * (frames + 14) + f], f < frames + 7 * row ? 0.5f : 0.0f);
        }
      }
      frames += 21;
    }
    EXPECT_EQ(frames, 73);
  }
}

TEST_P(LoaderSound, ABatchOfMoreUnitsThanUsualIsMeasuredWhole) {
  Folder folder;
  for (int i = 0; i < 20; ++i) folder.write(fmt::format("{:02}.wav", i), wav(10 + static_cast<std::uint32_t>(i), 1));
  dataset::OpenOptions open;
  open.inflate = 250;
  LoaderOptions options = batches_of(5000);
  options.io_depth = 1;  // one row a unit
  options.timeout = std::chrono::seconds(20);
  const auto batches = epoch_of(placed(folder, "", open), options);
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].lengths.size(), 5000u);
}

TEST_P(LoaderSound, EncodedBytesComeAsTheyAre) {
  Folder folder;
  for (int i = 0; i < 5; ++i) folder.write(fmt::format("{}.wav", i), wav(10 + static_cast<std::uint32_t>(i), 1));
  LoaderOptions options = batches_of(5);
  options.decode = Decode::none;
  Loader loader(placed(folder), options);
  const Taken taken = copy_out(*loader.next());
  for (std::size_t i = 0; i < 5; ++i) {
    const std::string bytes = wav(10 + static_cast<std::uint32_t>(i), 1);
    EXPECT_EQ(taken.lengths[i], static_cast<std::int64_t>(bytes.size()));
    EXPECT_EQ(taken.rows[i], bytes);
  }
}

TEST(LoaderStats, AddUp) {
  Folder folder;
  write_wavs(folder, 64);
  LoaderOptions options = batches_of(8);
  options.transform = parse_ops("pad:100");
  Loader loader(open_uncached(folder.path()), options);
  drain(loader);
  const Stats stats = loader.stats();
  EXPECT_EQ(stats.samples, 64u);
  EXPECT_EQ(stats.batches, 8u);
  EXPECT_GE(stats.encoded_bytes, 64u * 244);
  EXPECT_EQ(stats.decoded_bytes, 64u * 400);
  EXPECT_NEAR(stats.running_s, stats.compute_s + static_cast<double>(stats.wait.total_ns()) * 1e-9,
              0.02 * stats.running_s + 1e-3);
  EXPECT_GT(stats.first_batch_s, 0);
  loader.reset_stats();
  EXPECT_EQ(loader.stats().samples, 0u);
}

}  // namespace
}  // namespace stoker::loader
