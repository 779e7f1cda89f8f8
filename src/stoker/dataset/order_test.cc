#include "stoker/dataset/order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/random.h"

namespace stoker::dataset {
namespace {

struct Draw {
  std::uint64_t size, batch, ranks, start, seed, epoch;
  Shuffle shuffle;
  LastBatch last;
};

Draw draw(std::uint64_t trial) {
  Random random(7, 0, trial);
  Draw d{};
  d.size = random.below(4) == 0 ? random.below(12) : random.below(3000);
  d.batch = 1 + random.below(40);
  d.ranks = 1 + random.below(9);
  d.start = d.size == 0 || random.below(2) == 0 ? 0 : random.below(static_cast<std::uint32_t>(d.size + 1));
  d.seed = random.next();
  d.epoch = random.below(100);
  if (const std::uint32_t how = random.below(7); how < 2) {
    d.shuffle = {Shuffle::How::blocks, 1 + random.below(50), random.below(1000)};
  } else if (how < 4) {
    d.shuffle = Shuffle::by_node(1 + random.below(9), 1 + random.below(60));
  } else {
    d.shuffle = how != 4;
  }
  d.last = static_cast<LastBatch>(random.below(3));
  return d;
}

OrderOptions options_of(const Draw& d, std::uint64_t rank) {
  return {.size = d.size,
          .shuffle = d.shuffle,
          .seed = d.seed,
          .batch_size = d.batch,
          .rank = rank,
          .world_size = d.ranks,
          .last_batch = d.last};
}

std::vector<Order> all_ranks(const Draw& d) {
  std::vector<Order> orders;
  for (std::uint64_t rank = 0; rank < d.ranks; ++rank) orders.emplace_back(options_of(d, rank), d.epoch, d.start);
  return orders;
}

// The valid samples of one step, over all ranks, in rank order.
std::vector<std::uint64_t> samples_of_step(const std::vector<Order>& orders, std::uint64_t step) {
  std::vector<std::uint64_t> samples;
  for (const Order& order : orders) {
    const BatchRange range = order.batch(step);
    for (std::uint64_t i = 0; i < range.valid; ++i) samples.push_back(order.sample(range.first + i));
  }
  return samples;
}

std::vector<std::uint64_t> samples_of_epoch(const std::vector<Order>& orders) {
  std::vector<std::uint64_t> samples;
  for (std::uint64_t step = 0; step < orders[0].steps(); ++step) {
    const auto part = samples_of_step(orders, step);
    samples.insert(samples.end(), part.begin(), part.end());
  }
  return samples;
}

constexpr std::uint64_t kTrials = 400;

TEST(Order, GivesEverySampleOncePerEpochOverAllRanks) {
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    Draw d = draw(trial);
    d.start = 0;
    std::vector<std::uint64_t> samples = samples_of_epoch(all_ranks(d));
    if (d.last == LastBatch::drop) {
      EXPECT_EQ(samples.size(), d.size / (d.batch * d.ranks) * (d.batch * d.ranks));
      EXPECT_EQ(std::set(samples.begin(), samples.end()).size(), samples.size());
      continue;
    }
    std::sort(samples.begin(), samples.end());
    std::vector<std::uint64_t> all(d.size);
    std::iota(all.begin(), all.end(), 0);
    ASSERT_EQ(samples, all) << "trial " << trial;
  }
}

TEST(Order, KnowsThePositionOfEverySample) {
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    const Draw d = draw(trial);
    const Order order(options_of(d, 0), d.epoch, d.start);
    for (std::uint64_t position = 0; position < d.size; ++position) {
      ASSERT_EQ(order.position_of(order.sample(position)), position) << "trial " << trial;
    }
  }
}

TEST(Order, EnteredInTheMiddleGivesExactlyTheRest) {
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    Draw d = draw(trial);
    d.last = LastBatch::keep;
    const std::vector<Order> orders = all_ranks(d);
    std::vector<std::uint64_t> rest;
    for (std::uint64_t p = d.start; p < d.size; ++p) rest.push_back(orders[0].sample(p));
    ASSERT_EQ(samples_of_epoch(orders), rest) << "trial " << trial;
  }
}

TEST(Order, GivesEveryRankTheSameNumberOfSteps) {
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    const Draw d = draw(trial);
    const std::vector<Order> orders = all_ranks(d);
    for (const Order& order : orders) {
      ASSERT_EQ(order.steps(), orders[0].steps());
      for (std::uint64_t step = 0; step < order.steps(); ++step) {
        const BatchRange range = order.batch(step);
        ASSERT_LE(range.count, d.batch);
        ASSERT_LE(range.valid, range.count);
        ASSERT_EQ(order.position_after(step), orders[0].position_after(step));
      }
    }
  }
}

TEST(Order, GivesTheSameStepsForAnyRankCountWhenTheGlobalBatchIsEqual) {
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    Draw one = draw(trial);
    Draw many = one;
    one.batch = one.batch * one.ranks, one.ranks = 1;
    const std::vector<Order> a = all_ranks(one), b = all_ranks(many);
    ASSERT_EQ(a[0].steps(), b[0].steps());
    for (std::uint64_t step = 0; step < a[0].steps(); ++step) {
      ASSERT_EQ(samples_of_step(a, step), samples_of_step(b, step)) << "trial " << trial << " step " << step;
    }
  }
}

TEST(Order, ResumedAnyNumberOfTimesWithOtherRanksAndBatchesGivesTheSequenceOfNoResume) {
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    Draw d = draw(trial);
    d.start = 0;
    d.last = trial % 2 == 0 ? LastBatch::keep : LastBatch::pad;
    const std::vector<std::uint64_t> whole = samples_of_epoch(all_ranks(d));
    Random random(11, 0, trial);
    std::vector<std::uint64_t> pieces;
    while (d.start < d.size) {
      const std::vector<Order> orders = all_ranks(d);
      const std::uint64_t stop = 1 + random.below(static_cast<std::uint32_t>(orders[0].steps()));
      for (std::uint64_t step = 0; step < stop; ++step) {
        const auto part = samples_of_step(orders, step);
        pieces.insert(pieces.end(), part.begin(), part.end());
      }
      d.start = orders[0].position_after(stop - 1);
      ASSERT_EQ(d.start, pieces.size());
      d.batch = 1 + random.below(40);
      d.ranks = 1 + random.below(9);
    }
    ASSERT_EQ(pieces, whole) << "trial " << trial;
  }
}

TEST(Order, PadsTheLastStepToWholeBatchesFromTheStartOfTheEpoch) {
  const Draw d{
      .size = 10, .batch = 3, .ranks = 2, .start = 0, .seed = 5, .epoch = 1, .shuffle = true, .last = LastBatch::pad};
  const std::vector<Order> orders = all_ranks(d);
  ASSERT_EQ(orders[0].steps(), 2u);
  EXPECT_EQ(orders[0].batch(1).count, 3u);
  EXPECT_EQ(orders[0].batch(1).valid, 3u);
  EXPECT_EQ(orders[1].batch(1).count, 3u);
  EXPECT_EQ(orders[1].batch(1).valid, 1u);

  const Draw odd{
      .size = 9, .batch = 3, .ranks = 2, .start = 0, .seed = 5, .epoch = 1, .shuffle = true, .last = LastBatch::pad};
  const std::vector<Order> padded = all_ranks(odd);
  const BatchRange last = padded[1].batch(1);
  EXPECT_EQ(last.count, 3u);
  EXPECT_EQ(last.valid, 0u);
  EXPECT_EQ(padded[1].sample(last.first), padded[1].sample(0));
  EXPECT_EQ(padded[1].sample(last.first + 2), padded[1].sample(2));
}

TEST(Order, SharesAShortLastStepEvenly) {
  const Draw d{
      .size = 5, .batch = 4, .ranks = 4, .start = 0, .seed = 0, .epoch = 0, .shuffle = false, .last = LastBatch::keep};
  std::vector<std::uint64_t> counts;
  for (const Order& order : all_ranks(d)) counts.push_back(order.batch(0).count);
  EXPECT_EQ(counts, (std::vector<std::uint64_t>{2, 1, 1, 1}));
}

TEST(Order, ShufflesEachEpochAndSeedInItsOwnWay) {
  const OrderOptions options{.size = 1000, .shuffle = true, .seed = 1};
  OrderOptions other = options;
  other.seed = 2;
  std::uint64_t same_epoch = 0, same_seed = 0;
  for (std::uint64_t p = 0; p < 1000; ++p) {
    same_epoch += Order(options, 0).sample(p) == Order(options, 1).sample(p);
    same_seed += Order(options, 0).sample(p) == Order(other, 0).sample(p);
  }
  EXPECT_LT(same_epoch, 20u);
  EXPECT_LT(same_seed, 20u);
}

TEST(Order, MixesWholeBlocksOfNeighboursWithinWindows) {
  const OrderOptions options{.size = 1037, .shuffle = {Shuffle::How::blocks, 10, 205}, .seed = 3};
  const Order order(options, 1);
  std::map<std::uint64_t, std::vector<std::uint64_t>> windows;
  for (std::uint64_t position = 0; position < 1037; ++position) {
    windows[order.window(position)].push_back(order.sample(position));
  }
  ASSERT_EQ(windows.size(), 6u);  // 103 blocks, at most 20 in each; the last has the 7 samples beyond whole blocks too
  std::set<std::uint64_t> blocks_seen;
  for (auto& [number, samples] : windows) {
    EXPECT_EQ(samples.size(), number == 0 ? 180u : number < 5 ? 170u : 177u);
    EXPECT_FALSE(std::is_sorted(samples.begin(), samples.end()));
    std::map<std::uint64_t, std::uint64_t> blocks;
    std::uint64_t together = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      ++blocks[samples[i] / 10];
      if (i > 0 && samples[i] / 10 == samples[i - 1] / 10) ++together;
    }
    EXPECT_LT(together, samples.size() / 4) << "neighbours still follow one another";
    for (const auto& [block, count] : blocks) {
      EXPECT_EQ(count, block < 103 ? 10u : 7u);
      EXPECT_TRUE(blocks_seen.insert(block).second) << "block " << block << " is in two windows";
    }
  }
  EXPECT_EQ(blocks_seen.size(), 104u);
  EXPECT_NE(Order(options, 2).sample(0) / 10 + Order(options, 3).sample(0) / 10,
            Order(options, 4).sample(0) / 10 + Order(options, 5).sample(0) / 10);
}

// The samples of each node in the whole steps of an epoch, where two ranks share a node.
std::vector<std::set<std::uint64_t>> samples_of_nodes(const OrderOptions& options, std::uint64_t epoch) {
  std::vector<std::set<std::uint64_t>> nodes(options.shuffle.nodes);
  for (std::uint64_t rank = 0; rank < options.world_size; ++rank) {
    OrderOptions own = options;
    own.rank = rank;
    const Order order(own, epoch);
    for (std::uint64_t step = 0; step + 1 < order.steps(); ++step) {
      const BatchRange range = order.batch(step);
      for (std::uint64_t i = 0; i < range.count; ++i) nodes[rank / 2].insert(order.sample(range.first + i));
    }
  }
  return nodes;
}

TEST(Order, KeepsSamplesOnTheirNodeAndMixesThemAnewEachEpoch) {
  const OrderOptions options{
      .size = 1013, .shuffle = Shuffle::by_node(3, 20), .seed = 5, .batch_size = 10, .world_size = 6};
  std::vector<std::set<std::uint64_t>> homes(3);
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
    const auto nodes = samples_of_nodes(options, epoch);
    for (std::size_t node = 0; node < 3; ++node) homes[node].insert(nodes[node].begin(), nodes[node].end());
  }
  std::set<std::uint64_t> all;
  for (const auto& home : homes) {
    EXPECT_LE(home.size(), 338u);  // a third of the samples, whichever epoch
    EXPECT_GE(home.size(), 330u);  // what the last steps leave out of an epoch is in another one
    for (const std::uint64_t sample : home) EXPECT_TRUE(all.insert(sample).second) << sample << " has two homes";
  }
  std::uint64_t same = 0;
  for (std::uint64_t p = 0; p < 960; ++p) same += Order(options, 0).sample(p) == Order(options, 1).sample(p);
  EXPECT_LT(same, 30u);
}

TEST(Order, OfHalfTheNodesJoinsTheirHomes) {
  const OrderOptions four{
      .size = 800, .shuffle = Shuffle::by_node(4, 20), .seed = 5, .batch_size = 10, .world_size = 8};
  const OrderOptions two{.size = 800, .shuffle = Shuffle::by_node(2, 20), .seed = 5, .batch_size = 10, .world_size = 4};
  auto of_four = samples_of_nodes(four, 0), of_two = samples_of_nodes(two, 1);
  for (const std::size_t node : {0u, 1u}) {
    for (const std::uint64_t sample : of_two[node])
      EXPECT_FALSE(of_four[2 - 2 * node].contains(sample) || of_four[3 - 2 * node].contains(sample));
  }
}

TEST(Order, NamesAStandInThatIsAnotherSampleAndTheSameForEveryRankCount) {
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    Draw d = draw(trial);
    if (d.size < 2) continue;
    const std::vector<Order> orders = all_ranks(d);
    Random random(13, 0, trial);
    const std::uint64_t position = random.below(static_cast<std::uint32_t>(d.size));
    std::set<std::uint64_t> tried;
    const auto attempts = static_cast<std::uint32_t>(std::min<std::uint64_t>(20, d.size - 1));
    for (std::uint32_t attempt = 0; attempt < attempts; ++attempt) {
      const std::uint64_t other = orders[0].replacement(position, attempt);
      ASSERT_LT(other, d.size);
      ASSERT_NE(other, orders[0].sample(position));
      ASSERT_EQ(other, orders.back().replacement(position, attempt));
      tried.insert(other);
    }
    EXPECT_EQ(tried.size(), attempts) << "a try repeats a sample";
  }
}

TEST(Order, HasNoOtherSampleToOfferInASetOfOne) {
  EXPECT_EQ(Order({.size = 1}, 0).replacement(0, 3), 0u);
}

TEST(Order, OfNothingHasNoSteps) {
  for (const LastBatch last : {LastBatch::keep, LastBatch::drop, LastBatch::pad}) {
    EXPECT_EQ(Order({.size = 0, .batch_size = 4, .last_batch = last}, 0).steps(), 0u);
    EXPECT_EQ(Order({.size = 8, .batch_size = 4, .last_batch = last}, 0, 8).steps(), 0u);
  }
}

TEST(Order, SeeksInABillionSamplesAtOnce) {
  const OrderOptions options{.size = 1'000'000'000, .shuffle = true, .seed = 3, .batch_size = 256, .world_size = 8};
  const Order order(options, 5, 999'999'000);
  EXPECT_EQ(order.steps(), 1u);
  EXPECT_LT(order.sample(order.batch(0).first), options.size);
}

TEST(Order, RefusesImpossibleOptionsInOneSentence) {
  const auto refuses = [](const OrderOptions& options, std::uint64_t start) {
    try {
      Order order(options, 0, start);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::usage;
    }
    return false;
  };
  EXPECT_TRUE(refuses({.size = 4, .batch_size = 0}, 0));
  EXPECT_TRUE(refuses({.size = 4, .world_size = 0}, 0));
  EXPECT_TRUE(refuses({.size = 4, .rank = 2, .world_size = 2}, 0));
  EXPECT_TRUE(refuses({.size = 4, .batch_size = std::uint64_t{1} << 60, .world_size = 32}, 0));
  EXPECT_TRUE(refuses({.size = 4}, 5));
  EXPECT_TRUE(refuses({.size = 4, .shuffle = Shuffle::by_node(2, 0)}, 0));
  EXPECT_TRUE(refuses({.size = 4, .shuffle = Shuffle::by_node(std::uint64_t{1} << 40, std::uint64_t{1} << 40)}, 0));
}

}  // namespace
}  // namespace stoker::dataset
