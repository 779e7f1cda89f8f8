// Sweeps: which rows are read together, and that what comes out is what goes in whatever the limits and the faults.
#include "stoker/loader/sweep.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/base/units.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/os/fault.h"
#include "stoker/storage/source.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kRow = 1000;

const storage::Source* source_at(std::uintptr_t number) {  // never looked into
  return reinterpret_cast<const storage::Source*>(number * 4096);
}

struct Made {
  std::unique_ptr<Unit> unit = std::make_unique<Unit>();
  Sweep sweep{1 * kMiB};

  void add(std::uint64_t offset, std::uint64_t bytes, const storage::Source* source = source_at(1)) {
    sweep.add(*unit, 0, {source, offset, bytes});
  }
  // {offset, bytes} of each read.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> reads() {
    sweep.arrange();
    std::vector<std::pair<std::uint64_t, std::uint64_t>> list;
    for (const Sweep::Read& read : sweep.reads) list.emplace_back(read.offset, read.bytes);
    return list;
  }
};
using Reads = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST(Sweep, JoinsNeighboursInWhateverOrderTheyWereAskedFor) {
  Made made;
  for (const std::uint64_t row : {5, 3, 4, 100, 6}) made.add(row * kRow, kRow);
  EXPECT_EQ(made.reads(), (Reads{{3 * kRow, 4 * kRow}, {100 * kRow, kRow}}));
}

TEST(Sweep, ReadsWhatLiesBetweenWhereItIsLittle) {
  Made made;
  made.add(0, 512);
  made.add(1024, 512);
  made.add(100'000, 512);
  EXPECT_EQ(made.reads(), (Reads{{0, 1536}, {100'000, 512}}));
}

TEST(Sweep, ReadsASampleThatIsAskedForTwiceOnce) {
  Made made;
  made.add(4096, 500);
  made.add(4096, 500);
  made.add(4200, 100);
  EXPECT_EQ(made.reads(), (Reads{{4096, 500}}));
  EXPECT_EQ(made.sweep.reads[0].pieces, 3u);
}

TEST(Sweep, NeverJoinsTwoFiles) {
  Made made;
  made.add(0, 100, source_at(1));
  made.add(100, 100, source_at(2));
  EXPECT_EQ(made.reads().size(), 2u);
}

TEST(Sweep, ReadsFitItsMemoryAndNeverOverlapThere) {
  for (std::uint32_t trial = 0; trial < 200; ++trial) {
    Random random(9, 0, trial);
    Made made;
    const std::uint64_t span = 1 + random.below(4 << 20), most = 1 + random.below(20'000);
    std::size_t rows = 0;
    while (true) {
      const storage::Range range{source_at(1 + random.below(3)), random.below(static_cast<std::uint32_t>(span)),
                                 1 + random.below(static_cast<std::uint32_t>(most))};
      if (!made.sweep.has_room(range, 1 * kMiB)) break;
      made.sweep.add(*made.unit, 0, range);
      ++rows;
    }
    made.sweep.arrange();
    ASSERT_GT(rows, 0u);
    const std::byte* const begin = made.sweep.reads[0].into;
    const std::byte* end = begin;
    std::size_t pieces = 0;
    for (const Sweep::Read& read : made.sweep.reads) {
      ASSERT_EQ(read.into, end) << trial;
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(read.into) % 4096, 0u);
      ASSERT_GE(read.room, read.offset % 4096 + read.bytes);
      end += read.room;
      for (std::uint32_t i = 0; i < read.pieces; ++i, ++pieces) {
        const storage::Range& range = made.sweep.pieces[read.first + i].range;
        ASSERT_EQ(range.source, read.source);
        ASSERT_TRUE(range.offset >= read.offset && range.offset + range.bytes <= read.offset + read.bytes);
      }
    }
    ASSERT_LE(end - begin, static_cast<std::ptrdiff_t>(1 * kMiB)) << trial;
    ASSERT_EQ(pieces, rows);
  }
}

dataset::DatasetPtr open_direct(const std::string& path) {
  dataset::OpenOptions open;
  open.storage = storage::Storage::direct;
  return open_uncached(path, open);
}

LoaderOptions direct(std::uint64_t batch_size, dataset::Shuffle shuffle) {
  LoaderOptions options = batches_of(batch_size, 2);
  options.storage = storage::Storage::direct;
  options.shuffle = shuffle;
  options.seed = 7;
  return options;
}

const dataset::Shuffle kBlocks(dataset::Shuffle::How::blocks, 8, 64);

TEST(Sweeps, GiveTheBatchesOfEveryOtherStorageWhateverTheMemory) {
  Folder folder;
  folder.write("x.npy", npy(500, 3000));
  const auto data = open_direct(folder.path("x.npy"));
  for (const dataset::Shuffle& shuffle : {dataset::Shuffle(false), dataset::Shuffle(true), kBlocks}) {
    LoaderOptions options = direct(16, shuffle);
    LoaderOptions plain = options;
    plain.storage = storage::Storage::buffered;
    const auto reference = epoch_of(open_uncached(folder.path("x.npy")), plain, 2);
    for (const std::uint64_t limit : {std::uint64_t{3700} << 10, std::uint64_t{4} << 20, std::uint64_t{64} << 20}) {
      for (const int workers : {0, 3}) {
        for (const int io_threads : {1, 3}) {
          options.memory_limit = limit;
          options.num_workers = workers;
          options.io_threads = io_threads;
          ASSERT_EQ(epoch_of(data, options, 2), reference)
              << text(shuffle) << ", limit " << limit << ", " << workers << " workers, " << io_threads << " I/O";
        }
      }
    }
  }
}

TEST(Sweeps, OfBlocksReadLittleMoreThanTheData) {
  Folder folder;
  folder.write("x.npy", npy(1024, 4096));
  LoaderOptions options = direct(32, kBlocks);
  options.num_workers = 1;
  Loader loader(open_direct(folder.path("x.npy")), options);
  loader.start_epoch(0);
  EXPECT_EQ(drain(loader).size(), 32u);
  // Several windows are read ahead of the next epoch.
  EXPECT_LT(loader.stats().encoded_bytes, 3u * 1024 * 4096);
}

TEST(Sweeps, SayHowBlocksWereChosen) {
  Folder folder;
  folder.write("x.npy", npy(300, 4096));
  Loader loader(open_direct(folder.path("x.npy")), direct(8, {dataset::Shuffle::How::blocks, 0, 0}));
  EXPECT_EQ(loader.options().shuffle, dataset::Shuffle(dataset::Shuffle::How::blocks, 128, 16384));
  EXPECT_EQ(loader.notes().back().in_python(),
            "shuffle=\"blocks\": 128 neighbours (512.0 KiB) stay together, 300 samples (1.2 MiB) are mixed");
}

TEST(Sweeps, AReadThatFailsOnceIsReadAgainRowByRow) {
  Folder folder;
  folder.write("x.npy", npy(100, 3000));
  if (!storage::open_source(folder.path("x.npy"), storage::Storage::direct)->is_direct())
    GTEST_SKIP() << "this file system refuses O_DIRECT";
  const auto data = open_direct(folder.path("x.npy"));
  const LoaderOptions options = direct(10, false);
  const auto reference = epoch_of(data, options);
  Loader loader(data, options);
  const os::InjectFault fault(os::Call::read, {.error_number = EIO, .skip = 1, .times = 1});
  loader.start_epoch(0);
  EXPECT_EQ(drain(loader), reference);
  EXPECT_EQ(fault.hits(), 1u);
}

TEST(Sweeps, AFileCutShortFailsOnlyWhereItEnds) {
  Folder folder;
  folder.write("x.npy", npy(100, 3000));
  const auto data = open_direct(folder.path("x.npy"));
  std::filesystem::resize_file(folder.path("x.npy"), std::filesystem::file_size(folder.path("x.npy")) - 10 * 3000 - 5);
  LoaderOptions options = direct(10, true);
  options.on_error = OnError::skip;
  Loader loader(data, options);
  loader.start_epoch(0);
  std::size_t rows = 0;
  for (const Taken& batch : drain(loader)) rows += batch.rows.size();
  EXPECT_EQ(rows, 89u);
  EXPECT_EQ(loader.errors().size(), 11u);
}

TEST(Sweeps, LeavingAnEpochHalfWayStartsTheNextOneCleanly) {
  Folder folder;
  folder.write("x.npy", npy(900, 2000));
  const auto data = open_direct(folder.path("x.npy"));
  LoaderOptions options = direct(8, kBlocks);
  options.memory_limit = 5 << 20;
  Loader loader(data, options);
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
    loader.start_epoch(epoch);
    EXPECT_EQ(drain(loader, 3 + epoch).size(), 3 + epoch);
  }
  loader.start_epoch(9);
  EXPECT_EQ(drain(loader), epoch_of(data, options, 9));
}

}  // namespace
}  // namespace stoker::loader
