#include "stoker/dataset/patches.h"

#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/dataset/tree_test.h"

namespace stoker::dataset {
namespace {

PatchedVolume volume_of(const Extents& extents, double weight = 1, const Extents& cell = {16, 16, 16}) {
  PatchedVolume volume;
  volume.name = "v.npy";
  volume.extents = extents;
  volume.cell = cell;
  volume.weight = weight;
  return volume;
}

PatchOptions uniform(const Extents& patch, std::uint64_t samples) {
  PatchOptions options;
  options.patch = patch;
  options.samples = samples;
  return options;
}

PatchOptions grid(const Extents& patch, const Extents& overlap = {}) {
  PatchOptions options;
  options.patch = patch;
  options.sampling = Sampling::grid;
  options.overlap = overlap;
  return options;
}

TEST(PatchPlan, KeepsEveryPatchInsideItsVolume) {
  const PatchPlan plan(uniform({4, 5, 6}, 500), {volume_of({10, 5, 33}), volume_of({4, 40, 6})});
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::uint64_t i = 0; i < plan.size(); ++i) {
      const Placement at = plan.place(i, {1, epoch, i});
      const Extents& extents = plan.volumes()[at.volume].extents;
      for (std::size_t axis = 0; axis < 3; ++axis)
        ASSERT_LE(at.corner[axis] + plan.options().patch[axis], extents[axis]) << i;
    }
  }
}

TEST(PatchPlan, TakesEveryCornerOnceWhereThereAreAsManySamples) {
  // 7 x 3 x 5 corners, in cells that do not divide them.
  const PatchPlan plan(uniform({2, 2, 2}, 7 * 3 * 5), {volume_of({8, 4, 6}, 1, {4, 2, 3})});
  std::set<Extents> seen;
  for (std::uint64_t i = 0; i < plan.size(); ++i) seen.insert(plan.place(i, {3, 0, i}).corner);
  EXPECT_EQ(seen.size(), plan.size());
}

TEST(PatchPlan, NeighboursLieInTheSameCell) {
  const PatchPlan plan(uniform({8, 8, 8}, 800), {volume_of({39, 39, 39}, 1, {16, 16, 16})});
  std::uint64_t changes = 0;
  Extents before{};
  for (std::uint64_t i = 0; i < plan.size(); ++i) {
    Extents cell = plan.place(i, {3, 0, i}).corner;
    for (std::uint64_t& edge : cell) edge /= 16;
    changes += cell != before;
    before = cell;
  }
  EXPECT_LE(changes, 2 * 8u) << "8 cells hold the corners";
}

TEST(PatchPlan, DependsOnTheKeyAlone) {
  PatchOptions options = uniform({2, 8, 8}, 50);
  options.flip = {true, true, true};
  options.turn = true;
  const PatchPlan plan(options, {volume_of({20, 64, 64})});
  std::uint64_t same = 0, turned = 0;
  for (std::uint64_t i = 0; i < plan.size(); ++i) {
    const Placement a = plan.place(i, {5, 1, i}), again = plan.place(i, {5, 1, i}), other = plan.place(i, {5, 2, i});
    EXPECT_EQ(a.corner, again.corner);
    EXPECT_EQ(a.flip, again.flip);
    EXPECT_EQ(a.quarter_turns, again.quarter_turns);
    same += a.corner == other.corner;
    turned += a.quarter_turns != 0;
  }
  EXPECT_LT(same, 5u) << "an epoch has corners of its own";
  EXPECT_GT(turned, 20u);
}

TEST(PatchPlan, SharesSamplesByWeightExactly) {
  const PatchPlan plan(uniform({1, 1, 1}, 100),
                       {volume_of({9, 9, 9}, 1), volume_of({9, 9, 9}, 0), volume_of({9, 9, 9}, 2)});
  std::map<std::uint32_t, int> counts;
  for (std::uint64_t i = 0; i < plan.size(); ++i) ++counts[plan.volume_of(i)];
  EXPECT_EQ(counts, (std::map<std::uint32_t, int>{{0, 33}, {2, 67}}));
}

TEST(PatchPlan, AGridCoversEveryElementAndRepeatsNoPatch) {
  for (const Extents& overlap : {Extents{0, 0, 0}, Extents{2, 1, 3}}) {
    const PatchPlan plan(grid({4, 3, 5}, overlap), {volume_of({11, 3, 12}), volume_of({4, 7, 5})});
    std::map<std::uint32_t, std::set<Extents>> corners;
    std::map<std::uint32_t, std::set<Extents>> covered;
    for (std::uint64_t i = 0; i < plan.size(); ++i) {
      const Placement at = plan.place(i, {9, i % 3, i});
      EXPECT_TRUE(corners[at.volume].insert(at.corner).second) << "the same patch twice";
      for (std::uint64_t z = 0; z < 4; ++z)
        for (std::uint64_t y = 0; y < 3; ++y)
          for (std::uint64_t x = 0; x < 5; ++x)
            covered[at.volume].insert({at.corner[0] + z, at.corner[1] + y, at.corner[2] + x});
    }
    EXPECT_EQ(covered[0].size(), 11u * 3 * 12);
    EXPECT_EQ(covered[1].size(), 4u * 7 * 5);
  }
}

TEST(PatchPlan, ShareWithLabelContainsLabel) {
  std::vector<std::uint8_t> mask(32 * 32 * 32, 0);
  const auto at = [](std::uint64_t z, std::uint64_t y, std::uint64_t x) { return (z * 32 + y) * 32 + x; };
  mask[at(31, 0, 17)] = 3;
  for (std::uint64_t x = 4; x < 9; ++x) mask[at(10, 20, x)] = 1;
  auto foreground = std::make_shared<Foreground>(Extents{32, 32, 32});
  foreground->add(reinterpret_cast<const std::byte*>(mask.data()), {0, 0, 0}, {32, 32, 32}, 1, 32, 32 * 32);
  foreground->finish();
  ASSERT_EQ(foreground->elements(), 6u);

  PatchOptions options = uniform({8, 8, 8}, 200);
  options.foreground = 0.25;
  PatchedVolume volume = volume_of({32, 32, 32});
  volume.foreground = foreground;
  const PatchPlan plan(options, {volume});
  std::uint64_t labelled = 0, exactly = 0;
  std::set<Extents> corners;
  for (std::uint64_t i = 0; i < plan.size(); ++i) {
    const Extents corner = plan.place(i, {1, 0, i}).corner;
    std::uint64_t found = 0;
    for (std::uint64_t z = 0; z < 8; ++z)
      for (std::uint64_t y = 0; y < 8; ++y)
        for (std::uint64_t x = 0; x < 8; ++x) found += mask[at(corner[0] + z, corner[1] + y, corner[2] + x)] != 0;
    labelled += found > 0;
    if (i % 4 == 3) {
      ++exactly;
      EXPECT_GT(found, 0u) << i;
      corners.insert(corner);
    }
  }
  EXPECT_EQ(exactly, 50u);
  EXPECT_GE(labelled, 50u);
  EXPECT_GT(corners.size(), 25u) << "the label lies anywhere in the patch";
}

TEST(PatchPlan, PadsAVolumeThatIsSmallerThanThePatch) {
  PatchOptions options = uniform({8, 8, 8}, 10);
  options.pad = true;
  const PatchPlan plan(options, {volume_of({4, 20, 8})});
  EXPECT_EQ(plan.inside(0), (Extents{4, 8, 8}));
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(plan.place(i, {1, 0, i}).corner[0], 0u);
}

TEST(PatchPlan, RefusesInOneSentenceThatNamesTheOption) {
  const std::vector<PatchedVolume> one = {volume_of({16, 16, 16})};
  const auto refusal = [&](const PatchOptions& options) {
    const std::optional<Error> error = error_of([&] { PatchPlan(options, one); });
    return error ? error->option() + ": " + error->message() : std::string("taken");
  };
  EXPECT_EQ(refusal(uniform({17, 1, 1}, 1)), "patch: the patch 17x1x1 is larger than `v.npy`, which is 16x16x16");
  EXPECT_EQ(refusal(uniform({4, 4, 4}, 0)), "samples: samples is 0: an epoch would have no patches");
  EXPECT_EQ(refusal(uniform({0, 4, 4}, 1)).substr(0, 6), "patch:");
  EXPECT_EQ(refusal(grid({4, 4, 4}, {0, 4, 0})).substr(0, 8), "overlap:");
  PatchOptions options = uniform({4, 4, 8}, 1);
  options.turn = true;
  EXPECT_EQ(refusal(options).substr(0, 5), "turn:");
  options = uniform({4, 4, 4}, 1);
  options.foreground = 1.5;
  EXPECT_EQ(refusal(options).substr(0, 11), "foreground:");
  EXPECT_EQ(error_of([&] { PatchPlan(uniform({1, 1, 1}, 1), {volume_of({4, 4, 4}, -1)}); })->option(), "weight");
}

}  // namespace
}  // namespace stoker::dataset
