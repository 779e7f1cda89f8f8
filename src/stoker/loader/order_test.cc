// The promises about order, for files and for objects: same batches whatever the workers, exactly once, resume, ranks.
#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/loader/placed_data_test.h"

namespace stoker::loader {
namespace {

using transform::parse_ops;

class LoaderOrder : public PlacedData {};
INSTANTIATE_TEST_SUITE_P(Places, LoaderOrder, ::testing::ValuesIn(kPlaces), name_of);

LoaderOptions shuffled(std::uint64_t batch_size, int workers = 2) {
  LoaderOptions options = batches_of(batch_size, workers);
  options.shuffle = true;
  options.seed = 42;
  return options;
}

TEST_P(LoaderOrder, RowsHoldTheSampleTheirIndexNames) {
  Folder folder;
  folder.write("x.npy", npy(200, 300));
  for (const auto storage : storages()) {
    dataset::OpenOptions open;
    open.storage = storage;
    const auto data = placed(folder, "x.npy", open);
    LoaderOptions options = shuffled(16);
    options.storage = storage;
    const auto batches = epoch_of(data, options);
    ASSERT_EQ(batches.size(), 13u);
    for (const Taken& batch : batches) {
      for (std::size_t i = 0; i < batch.rows.size(); ++i) {
        ASSERT_EQ(batch.rows[i], std::string(300, static_cast<char>(batch.indices[i] % 251)));
      }
    }
    auto seen = indices_of(batches);
    std::sort(seen.begin(), seen.end());
    std::vector<std::int64_t> every(200);
    std::iota(every.begin(), every.end(), 0);
    EXPECT_EQ(seen, every);
  }
}

TEST_P(LoaderOrder, WorkersStorageAndIoThreadsNeverChangeTheBatches) {
  Folder folder;
  write_wavs(folder, 150);
  const auto data = placed(folder);
  LoaderOptions options = shuffled(8, 0);
  options.transform = parse_ops("pad:120");
  const auto reference = epoch_of(data, options, 3);
  ASSERT_EQ(reference.size(), 19u);
  for (const int workers : {1, 2, 5}) {
    for (const auto storage : storages()) {
      for (const int io_threads : {1, 3}) {
        options.num_workers = workers;
        options.storage = storage;
        options.io_threads = io_threads;
        EXPECT_EQ(epoch_of(data, options, 3), reference) << workers << " " << name(storage) << " " << io_threads;
      }
    }
  }
}

TEST_P(LoaderOrder, WorkersMayChangeWhileRunning) {
  Folder folder;
  write_wavs(folder, 300);
  const auto data = placed(folder);
  LoaderOptions options = shuffled(4);
  options.transform = parse_ops("pad:100");
  const auto reference = epoch_of(data, options);
  Loader loader(data, options);
  std::vector<Taken> taken;
  for (int i = 0; const BatchPtr batch = loader.next(); ++i) {
    taken.push_back(copy_out(*batch));
    loader.set_num_workers(1 + i % 4);
  }
  EXPECT_EQ(taken, reference);
}

// Seven of eight workers may not take what there is to do, and each batch finds all of them asleep.
TEST_P(LoaderOrder, WorkReachesTheOneWorkerThatMayTakeIt) {
  Folder folder;
  write_wavs(folder, 300);
  const auto data = placed(folder);
  LoaderOptions options = shuffled(4, 8);
  options.transform = parse_ops("pad:100");
  options.timeout = std::chrono::seconds(20);
  options.read_ahead = options.io_depth = 1;  // no bytes before there is a slab for them
  const auto reference = epoch_of(data, options);
  Loader loader(data, options);
  std::vector<Taken> taken{copy_out(*loader.next())};
  loader.set_num_workers(1);
  const auto is_full = [&] {
    loader.reset_stats();
    return loader.stats().ready.most >= options.prefetch_factor;
  };
  while (const BatchPtr batch = loader.next()) {
    taken.push_back(copy_out(*batch));
    for (int i = 0; i < 100'000 && !is_full(); ++i) std::this_thread::yield();
  }
  EXPECT_EQ(taken, reference);
}

TEST_P(LoaderOrder, EachEpochIsAnotherOrderAndTheEdgeIsSeamless) {
  Folder folder;
  folder.write("x.npy", npy(100, 10));
  const auto data = placed(folder, "x.npy");
  Loader loader(data, shuffled(7));
  std::vector<std::vector<std::int64_t>> epochs;
  for (std::uint64_t e = 0; e < 4; ++e) {
    loader.start_epoch(e);
    EXPECT_EQ(loader.steps(), 15u);
    epochs.push_back(indices_of(drain(loader)));
    EXPECT_EQ(epochs.back(), indices_of(epoch_of(data, shuffled(7), e)));
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST_P(LoaderOrder, LeavingAnEpochHalfWayStartsTheNextOneCleanly) {
  Folder folder;
  folder.write("x.npy", npy(500, 64));
  const auto data = placed(folder, "x.npy");
  Loader loader(data, shuffled(8));
  for (std::uint64_t e : {0, 1, 5, 2}) {
    loader.start_epoch(e);
    drain(loader, 3);
  }
  loader.start_epoch(6);
  EXPECT_EQ(indices_of(drain(loader)), indices_of(epoch_of(data, shuffled(8), 6)));
}

TEST_P(LoaderOrder, RanksShareTheGlobalSequence) {
  Folder folder;
  folder.write("x.npy", npy(101, 8));
  const auto data = placed(folder, "x.npy");
  const auto whole = epoch_of(data, shuffled(12));
  ASSERT_EQ(whole.size(), 9u);
  std::vector<std::vector<Taken>> parts;
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    LoaderOptions options = shuffled(4);
    options.rank = rank;
    options.world_size = 3;
    parts.push_back(epoch_of(data, options));
    ASSERT_EQ(parts.back().size(), whole.size());
  }
  for (std::size_t step = 0; step < whole.size(); ++step) {
    std::vector<std::int64_t> joined;
    for (const auto& part : parts) joined.insert(joined.end(), part[step].indices.begin(), part[step].indices.end());
    EXPECT_EQ(joined, whole[step].indices);
  }
}

TEST_P(LoaderOrder, PaddingIsMarkedAndKeepsRanksInStep) {
  Folder folder;
  folder.write("x.npy", npy(10, 8));
  const auto data = placed(folder, "x.npy");
  std::size_t valid = 0, rows = 0;
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    LoaderOptions options = shuffled(2);
    options.rank = rank;
    options.world_size = 4;
    options.last_batch = dataset::LastBatch::pad;
    for (const Taken& batch : epoch_of(data, options)) {
      rows += batch.valid.size();
      valid += static_cast<std::size_t>(std::count(batch.valid.begin(), batch.valid.end(), 1));
    }
  }
  EXPECT_EQ(valid, 10u);
  EXPECT_EQ(rows, 16u);
}

// k resumes, each with another number of ranks and workers, equal none.
TEST_P(LoaderOrder, ResumesAnywhereWithAnyRanksAndWorkers) {
  Folder folder;
  write_wavs(folder, 97, 20);
  const auto data = placed(folder);
  LoaderOptions options = shuffled(5);
  options.transform = parse_ops("pad:20");
  std::vector<std::int64_t> reference;
  {
    Loader loader(data, options);
    for (std::uint64_t e = 0; e < 3; ++e) {
      loader.start_epoch(e);
      for (std::int64_t i : indices_of(drain(loader))) reference.push_back(i);
    }
  }
  for (std::uint64_t trial = 0; trial < 12; ++trial) {
    Random random(trial, 0, 0);
    std::vector<std::int64_t> taken;
    State state{0, 0, 42, true, data->size(), data->facts().fingerprint};
    while (state.epoch < 3) {
      const std::uint64_t ranks = 1 + random.below(3);
      const std::uint64_t steps = 1 + random.below(9);
      options.batch_size = 1 + random.below(9);
      options.num_workers = static_cast<int>(random.below(3));
      options.world_size = ranks;
      std::vector<std::vector<Taken>> parts;
      State after;
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        options.rank = rank;
        Loader loader(data, options);
        loader.load_state(state);
        parts.push_back(drain(loader, steps));
        after = loader.state();
      }
      for (std::size_t step = 0; step < parts[0].size(); ++step) {
        for (const auto& part : parts) taken.insert(taken.end(), part[step].indices.begin(), part[step].indices.end());
      }
      state = after;
    }
    ASSERT_EQ(taken, reference) << trial;
  }
}

// shuffle=nodes: the order depends on the nodes, so an epoch that is resumed goes on in the order of its state.
TEST_P(LoaderOrder, OfNodesResumesWithOtherNodesRanksAndBatchesAndGivesEverySampleOnce) {
  Folder folder;
  write_wavs(folder, 97, 20);
  const auto data = placed(folder);
  LoaderOptions options = shuffled(5);
  options.transform = parse_ops("pad:20");
  std::vector<std::int64_t> every(97);
  std::iota(every.begin(), every.end(), 0);
  for (std::uint64_t trial = 0; trial < 12; ++trial) {
    Random random(trial, 0, 0);
    std::map<std::uint64_t, std::vector<std::int64_t>> epochs;
    State state{0, 0, 42, dataset::Shuffle::by_node(1, 5), data->size(), data->facts().fingerprint};
    while (state.epoch < 3) {
      const std::uint64_t nodes = 1 + random.below(3), ranks = nodes * (1 + random.below(2));
      const std::uint64_t steps = 1 + random.below(9);
      options.shuffle = dataset::Shuffle::by_node(nodes);
      options.batch_size = 1 + random.below(9);
      options.num_workers = static_cast<int>(random.below(3));
      options.world_size = ranks;
      State after;
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        options.rank = rank;
        Loader loader(data, options);
        loader.load_state(state);
        const std::vector<std::int64_t> taken = indices_of(drain(loader, steps));
        auto& epoch = epochs[state.epoch];
        epoch.insert(epoch.end(), taken.begin(), taken.end());
        after = loader.state();
      }
      state = after;
    }
    for (auto& [epoch, seen] : epochs) {
      std::sort(seen.begin(), seen.end());
      ASSERT_EQ(seen, every) << "trial " << trial << ", epoch " << epoch;
    }
  }
}

TEST_P(LoaderOrder, OfAStateOfOtherNodesEndsWithItsEpoch) {
  Folder folder;
  folder.write("x.npy", npy(96, 8));
  const auto data = placed(folder, "x.npy");
  LoaderOptions options = shuffled(4);
  options.shuffle = dataset::Shuffle::by_node(2);
  options.world_size = 2;
  Loader two(data, options);
  two.start_epoch(0);
  const auto begun = indices_of(drain(two, 3));
  const State state = two.state();
  ASSERT_EQ(state.shuffle, dataset::Shuffle::by_node(2, 4));
  options.world_size = 4;
  options.shuffle = dataset::Shuffle::by_node(4);
  const auto straight = [&](const dataset::Shuffle& shuffle, std::uint64_t epoch, std::uint64_t from) {
    LoaderOptions other = options;
    other.shuffle = shuffle;
    Loader loader(data, other);
    loader.start_epoch(epoch, from);
    return indices_of(drain(loader));
  };
  Loader four(data, options);
  four.start_epoch(0, state.position);  // reading ahead in an order that the state then replaces
  four.load_state(state);
  EXPECT_EQ(indices_of(drain(four)), straight(state.shuffle, 0, state.position));
  EXPECT_EQ(four.state().shuffle, dataset::Shuffle::by_node(4, 4));
  four.start_epoch(1);
  EXPECT_EQ(indices_of(drain(four)), straight(dataset::Shuffle::by_node(4, 4), 1, 0));
}

TEST_P(LoaderOrder, OfNodesThatRanksDoNotDivideIsRefused) {
  Folder folder;
  folder.write("x.npy", npy(96, 8));
  LoaderOptions options = shuffled(4);
  options.shuffle = dataset::Shuffle::by_node(4);
  options.world_size = 6;
  EXPECT_THROW(Loader(placed(folder, "x.npy"), options), Error);
}

TEST_P(LoaderOrder, AStateOfAnotherDataSetIsRefused) {
  Folder folder;
  folder.write("x.npy", npy(10, 8));
  folder.write("y.npy", npy(11, 8));
  Loader x(placed(folder, "x.npy"), batches_of(2));
  Loader y(placed(folder, "y.npy"), batches_of(2));
  EXPECT_THROW(y.load_state(x.state()), Error);
  EXPECT_THROW(y.check_state(x.state()), Error);
}

TEST_P(LoaderOrder, CheckingAStateStartsNothing) {
  Folder folder;
  folder.write("x.npy", npy(10, 8));
  Loader loader(placed(folder, "x.npy"), batches_of(2));
  State state = loader.state();
  state.position = 10;
  loader.check_state(state);
  state.position = 11;
  EXPECT_THROW(loader.check_state(state), Error);
  EXPECT_EQ(loader.state().position, 0u);
  EXPECT_EQ(loader.stats().slabs, 0u);
}

TEST_P(LoaderOrder, InflatedCopiesHaveIdsOfTheirOwn) {
  Folder folder;
  folder.write("x.npy", npy(10, 8));
  dataset::OpenOptions open;
  open.inflate = 3;
  const auto batches = epoch_of(placed(folder, "x.npy", open), shuffled(30));
  ASSERT_EQ(batches.size(), 1u);
  auto ids = batches[0].ids;
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
  EXPECT_EQ(ids.size(), 30u);
}

}  // namespace
}  // namespace stoker::loader
