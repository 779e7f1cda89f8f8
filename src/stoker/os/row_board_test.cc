#include "stoker/os/row_board.h"

#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/os/arena.h"

namespace stoker::os {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

struct Table {
  explicit Table(RowBoard::Size size) : arena(RowBoard::bytes_for(size)), board(arena.bytes(), size) {}
  Arena arena;
  RowBoard board;
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string_view text_of(const RowBoard& board, std::uint32_t slot) {
  const auto text = board.text(slot);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

TEST(RowBoard, GivesTheRowsOfTheOldestItemInOrder) {
  Table table({.slots = 2, .rows = 4, .workers = 1, .text_bytes = 16});
  table.board.publish(1, 7, 1, 3, bytes_of("older"));
  table.board.publish(0, 8, 0, 2, bytes_of("newer"));
  for (const auto& [item, row] : std::vector<std::pair<std::uint64_t, std::uint32_t>>{{7, 1}, {7, 2}, {8, 0}, {8, 1}}) {
    const auto claim = table.board.try_claim(0);
    ASSERT_TRUE(claim);
    EXPECT_EQ(claim->item, item);
    EXPECT_EQ(claim->row, row);
    EXPECT_EQ(text_of(table.board, claim->slot), item == 7 ? "older" : "newer");
    EXPECT_FALSE(table.board.is_finished(claim->slot));
    table.board.finish(0, *claim, RowBoard::done, 5);
  }
  EXPECT_FALSE(table.board.try_claim(0));
  EXPECT_TRUE(table.board.is_finished(0) && table.board.is_finished(1));
  EXPECT_EQ(table.board.work_of(0).rows, 4u);
  EXPECT_EQ(table.board.work_of(0).busy_ns, 20u);
}

TEST(RowBoard, LosesOnlyTheRowOfAWorkerThatDied) {
  Table table({.slots = 1, .rows = 3, .workers = 2});
  table.board.publish(0, 1, 0, 3, {});
  ASSERT_TRUE(table.board.try_claim(1));
  const auto other = table.board.try_claim(0);
  const auto lost = table.board.lose(1);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->row, 0u);
  EXPECT_FALSE(table.board.lose(1));
  table.board.finish(0, *other, RowBoard::failed, 0);
  table.board.finish(0, *table.board.try_claim(0), RowBoard::done, 0);
  EXPECT_TRUE(table.board.is_finished(0));
  EXPECT_EQ(table.board.outcome(0, 0), RowBoard::lost);
  EXPECT_EQ(table.board.outcome(0, 1), RowBoard::failed);
  EXPECT_EQ(table.board.outcome(0, 2), RowBoard::done);
}

TEST(RowBoard, RunsNoRowOfACanceledItemThatNobodyHas) {
  Table table({.slots = 1, .rows = 3, .workers = 1});
  table.board.publish(0, 1, 0, 3, {});
  const auto claim = table.board.try_claim(0);
  table.board.cancel(0);
  EXPECT_FALSE(table.board.try_claim(0));
  EXPECT_FALSE(table.board.is_finished(0)) << "one row is still worked on";
  table.board.finish(0, *claim, RowBoard::done, 0);
  EXPECT_TRUE(table.board.is_finished(0));
}

TEST(RowBoard, EveryRowOfManyItemsIsClaimedOnce) {
  constexpr std::uint32_t kWorkers = 3, kRows = 7, kItems = 400;
  Table table({.slots = 2, .rows = kRows, .workers = kWorkers});
  std::vector<std::atomic<int>> runs(kItems * kRows);
  std::vector<std::thread> workers;
  for (std::uint32_t w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&, w] {
      while (const auto claim = table.board.claim(w, seconds(60))) {
        runs[(claim->item - 1) * kRows + claim->row].fetch_add(1);
        table.board.finish(w, *claim, RowBoard::done, 1);
      }
    });
  }
  for (std::uint32_t item = 0; item < kItems; ++item) {
    const std::uint32_t slot = item % 2;
    while (!table.board.is_finished(slot)) table.board.wait(slot, seconds(60));
    table.board.publish(slot, item + 1, 0, 1 + item % kRows, {});
  }
  for (std::uint32_t slot = 0; slot < 2; ++slot) table.board.wait(slot, seconds(60));
  table.board.close();
  for (auto& worker : workers) worker.join();
  for (std::uint32_t item = 0; item < kItems; ++item) {
    for (std::uint32_t row = 0; row < kRows; ++row) {
      EXPECT_EQ(runs[item * kRows + row].load(), row <= item % kRows ? 1 : 0) << item << ' ' << row;
    }
  }
  EXPECT_FALSE(table.board.claim(0, nanoseconds(0)));
}

}  // namespace
}  // namespace stoker::os
