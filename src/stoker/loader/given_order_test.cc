// A loader that follows an order from outside: the same batches whatever the workers, resume, and orders that are
// wrong.
#include "stoker/loader/given_order.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "stoker/codec/made_jpeg_test.h"
#include "stoker/loader/held_data_test.h"

namespace stoker::loader {
namespace {

using Steps = std::vector<std::vector<std::uint64_t>>;

LoaderOptions following(std::uint64_t batch_size, int workers = 2) {
  LoaderOptions options = batches_of(batch_size, workers);
  options.transform = transform::parse_ops("pad:100");
  options.shuffle = dataset::Shuffle(dataset::Shuffle::How::given, 0, 0);
  return options;
}

// Gives batches as far ahead as the loader wants them, and takes them all.
std::vector<Taken> follow(Loader& loader, const Steps& steps, std::uint64_t epoch = 0, std::uint64_t position = 0) {
  std::uint64_t skipped = 0;
  std::size_t next = 0;
  while (skipped < position) skipped += steps[next++].size();
  loader.start_epoch(epoch, position);
  std::vector<Taken> all;
  while (true) {
    for (; next < steps.size() && loader.steps_wanted() > 0; ++next) loader.give(steps[next]);
    if (next == steps.size()) loader.end_order();
    const BatchPtr batch = loader.next();
    if (!batch) return all;
    all.push_back(copy_out(*batch));
  }
}

std::vector<std::int64_t> flat(const Steps& steps) {
  std::vector<std::int64_t> all;
  for (const auto& step : steps) all.insert(all.end(), step.begin(), step.end());
  return all;
}

const Steps kSteps = {{9, 3, 3}, {0}, {1, 2}, {9, 9, 9}, {5, 4, 8}, {7}};

TEST(GivenOrder, GivesPositionsToBatchesAndForgetsThemWithTheEpoch) {
  GivenOrder order;
  order.restart(7);
  order.add({4, 5});
  order.add({6});
  order.end();
  EXPECT_EQ(order.steps(), 2u);
  EXPECT_EQ(order.take()->position, 7u);
  EXPECT_FALSE(order.is_over());
  EXPECT_EQ(order.take()->position, 9u);
  EXPECT_TRUE(order.is_over());
  EXPECT_FALSE(order.take());
  order.restart(0);
  EXPECT_FALSE(order.is_ended());
  EXPECT_EQ(order.steps(), 0u);
}

TEST(GivenOrder, IsFollowedWithRepeatsShortBatchesAndAnyNumberOfWorkers) {
  Folder folder;
  write_wavs(folder, 10);
  const auto data = open_uncached(folder.path());
  std::vector<Taken> reference;
  for (const int workers : {0, 1, 3}) {
    Loader loader(data, following(3, workers));
    const std::vector<Taken> taken = follow(loader, kSteps);
    ASSERT_EQ(taken.size(), kSteps.size());
    for (std::size_t step = 0; step < taken.size(); ++step) EXPECT_EQ(taken[step].rows.size(), kSteps[step].size());
    EXPECT_EQ(indices_of(taken), flat(kSteps));
    if (reference.empty()) reference = taken;
    EXPECT_EQ(taken, reference);
  }
}

TEST(GivenOrder, IsFollowedInRowsOfAnArrayThroughEveryStorage) {
  Folder folder;
  folder.write("x.npy", npy(300, 5000));
  Steps steps;
  for (std::uint64_t i = 0; i < 100; ++i) steps.push_back({(i * 7) % 300, (i * 131) % 300, i});
  for (const auto storage : {storage::Storage::buffered, storage::Storage::direct, storage::Storage::mmap}) {
    dataset::OpenOptions open;
    open.storage = storage;
    LoaderOptions options = following(3);
    options.transform = {};
    options.storage = storage;
    Loader loader(open_uncached(folder.path("x.npy"), open), options);
    const std::vector<Taken> taken = follow(loader, steps);
    EXPECT_EQ(indices_of(taken), flat(steps));
    for (const Taken& batch : taken) {
      for (std::size_t i = 0; i < batch.rows.size(); ++i)
        ASSERT_EQ(batch.rows[i], std::string(5000, static_cast<char>(batch.indices[i] % 251)));
    }
  }
}

TEST(GivenOrder, GoesOnAtThePositionOfAState) {
  Folder folder;
  write_wavs(folder, 10);
  const auto data = open_uncached(folder.path());
  Loader whole(data, following(3));
  const std::vector<Taken> all = follow(whole, kSteps, 4);
  EXPECT_EQ(whole.state().epoch, 5u) << "the epoch is over";

  Loader first(data, following(3));
  first.start_epoch(4);
  for (std::size_t step = 0; step < 4; ++step) first.give(kSteps[step]);
  const std::vector<Taken> begun = drain(first, 3);
  const State state = first.state();
  EXPECT_EQ(state.epoch, 4u);
  EXPECT_EQ(state.position, 6u);
  EXPECT_EQ(text(state.shuffle), "given");

  Loader second(data, following(3));
  second.check_state(state);
  std::vector<Taken> rest = follow(second, kSteps, state.epoch, state.position);
  rest.insert(rest.begin(), begun.begin(), begun.end());
  EXPECT_EQ(rest, all);
  EXPECT_THROW(Loader(data, batches_of(3)).check_state(state), Error);
}

TEST(GivenOrder, WantsAFewStepsAheadAndNoMore) {
  Folder folder;
  write_wavs(folder, 10);
  LoaderOptions options = following(2);
  options.io_depth = 4;
  Loader loader(open_uncached(folder.path()), options);
  loader.start_epoch(0);
  const std::uint64_t wanted = loader.steps_wanted();
  EXPECT_GT(wanted, options.prefetch_factor);
  EXPECT_LE(wanted, options.prefetch_factor + 3);
  for (std::uint64_t step = 0; step < wanted; ++step) loader.give({step % 10});
  EXPECT_EQ(loader.steps_wanted(), 0u);
  ASSERT_TRUE(loader.next());
  EXPECT_EQ(loader.steps_wanted(), 1u);
  loader.end_order();
  EXPECT_EQ(loader.steps_wanted(), 0u);
}

TEST(GivenOrder, OfAnEpochThatIsLeftIsForgotten) {
  Folder folder;
  write_wavs(folder, 10);
  Loader loader(open_uncached(folder.path()), following(2));
  loader.start_epoch(0);
  loader.give({1, 2});
  loader.give({3, 4});
  ASSERT_TRUE(loader.next());
  EXPECT_EQ(indices_of(follow(loader, {{8}, {9}}, 1)), (std::vector<std::int64_t>{8, 9}));
  EXPECT_EQ(follow(loader, {}, 2).size(), 0u) << "an epoch may have no batch";
}

TEST(GivenOrder, ThatIsWrongIsRefusedInOneSentence) {
  Folder folder;
  write_wavs(folder, 10);
  const auto data = open_uncached(folder.path());
  const auto refusal = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  Loader loader(data, following(2));
  loader.start_epoch(0);
  EXPECT_EQ(refusal([&] { loader.give({1, 10}); }), "the order holds sample 10, and the data set has samples 0 to 9");
  EXPECT_NE(refusal([&] { loader.give({1, 2, 3}); }).find("cannot make a batch of 3 samples"), std::string::npos);
  EXPECT_NE(refusal([&] { loader.next(); }).find("goes no further yet"), std::string::npos);
  loader.end_order();
  EXPECT_NE(refusal([&] { loader.give({1}); }).find("the order was ended"), std::string::npos);
  Loader computes(data, batches_of(2));
  EXPECT_NE(refusal([&] { computes.give({1}); }).find("computes its own"), std::string::npos);
}

TEST(GivenOrder, DrawsEachRepeatOfASampleAnew) {
  Folder folder;
  const codec::File picture = codec::made::encode(60, 50, codec::made::Scene::noise, {});
  const codec::Bytes bytes = picture;
  folder.write("a/x.jpg", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  LoaderOptions options = following(8);
  options.transform = transform::parse_ops("rrc:8");
  Loader loader(open_uncached(folder.path()), options);
  const std::vector<Taken> taken = follow(loader, {{0, 0, 0, 0, 0, 0, 0, 0}});
  std::vector<std::string> rows = taken[0].rows;
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(std::unique(rows.begin(), rows.end()) - rows.begin(), 8);
}

TEST(GivenOrder, NamesTheSampleThatIsWaitedFor) {
  const auto data = std::make_shared<HeldData>(std::vector<std::string>(6, wav(100, 1)));
  LoaderOptions options = following(2);
  options.timeout = std::chrono::milliseconds(50);
  Loader loader(data, options);
  data->reads.let(3);
  loader.start_epoch(0);
  loader.give({5, 0});
  try {
    loader.next();
    ADD_FAILURE() << "a batch without its sample";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("held[5]"), std::string::npos) << error.message();
  }
  data->reads.let();
}

}  // namespace
}  // namespace stoker::loader
