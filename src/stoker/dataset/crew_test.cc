#include "stoker/dataset/crew.h"

#include <set>

#include <gtest/gtest.h>

#include "stoker/dataset/tree_test.h"

namespace stoker::dataset {
namespace {

const Progress kNoProgress;

TEST(Crew, RunsTasksThatTasksAdd) {
  for (const int threads : {1, 2, 8}) {
    Crew crew(threads, kNoProgress);
    std::atomic<int> done{0};
    std::function<void(int)> grow = [&](int depth) {
      ++done;
      if (depth == 0) return;
      crew.add([&grow, depth] { grow(depth - 1); });
      crew.add([&grow, depth] { grow(depth - 1); });
    };
    crew.add([&] { grow(10); });
    crew.run();
    EXPECT_EQ(done, (1 << 11) - 1);
  }
}

TEST(Crew, CoversEveryPartOnce) {
  for (const std::uint64_t count : {0, 1, 99, 100, 101, 12'345}) {
    std::vector<std::atomic<int>> hits(count);
    Crew crew(4, kNoProgress);
    crew.run_in_parts(count, 100, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) ++hits[i];
      crew.count(end - begin);
    });
    for (const auto& hit : hits) EXPECT_EQ(hit, 1);
  }
}

TEST(Crew, ThrowsWhatATaskThrewAndEndsTheOthers) {
  Crew crew(4, kNoProgress);
  for (int i = 0; i < 3; ++i) {
    crew.add([&] {
      for (;;) crew.count(1);  // ends by the failure of another task only
    });
  }
  crew.add([] { throw Error(ErrorKind::permission, "one task failed"); });
  EXPECT_TRUE(mentions(error_of([&] { crew.run(); }), "one task failed"));
}

TEST(Crew, AsksProgressOnTheCallingThreadAndStopsWhenToldTo) {
  std::set<std::thread::id> asked_on;
  std::uint64_t seen = 0;
  const Progress stop_at_once = [&](std::uint64_t files) {
    asked_on.insert(std::this_thread::get_id());
    seen = files;
    return false;
  };
  for (const int threads : {1, 4}) {
    Crew crew(threads, stop_at_once);
    for (int i = 0; i < 4; ++i) {
      crew.add([&] {
        for (;;) crew.count(1);  // ends by the interruption only
      });
    }
    const auto error = error_of([&] { crew.run(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::unavailable);
    EXPECT_EQ(error->message(), "interrupted");
    EXPECT_GT(seen, 0u);
  }
  EXPECT_EQ(asked_on, std::set{std::this_thread::get_id()});
}

TEST(Crew, AsksProgressWhileTheCallerWaitsForTheOthers) {
  std::atomic<bool> other_is_busy{false};
  const std::thread::id caller = std::this_thread::get_id();
  const Progress stop = [&](std::uint64_t) { return !other_is_busy; };
  Crew crew(2, stop);
  std::function<void()> task = [&] {
    if (std::this_thread::get_id() == caller) {
      crew.add(task);  // not for the caller
      std::this_thread::yield();
      return;
    }
    other_is_busy = true;
    for (;;) crew.count(1);  // ends by the interruption only
  };
  crew.add(task);
  EXPECT_TRUE(mentions(error_of([&] { crew.run(); }), "interrupted"));
}

}  // namespace
}  // namespace stoker::dataset
