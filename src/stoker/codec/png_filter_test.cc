#include "stoker/codec/png_filter.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"

namespace stoker::codec {
namespace {

using Row = std::vector<std::uint8_t>;

// As the specification words it.
int nearest_neighbour(int a, int b, int c) {
  const int p = a + b - c;
  const int pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
  if (pa <= pb && pa <= pc) return a;
  return pb <= pc ? b : c;
}

std::uint8_t neighbour(const Row& row, std::size_t i, std::size_t step) {
  return i < step ? std::uint8_t{0} : row[i - step];
}

Row undone(int filter, Row row, const Row& above, std::size_t step) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const int a = neighbour(row, i, step), b = above[i], c = neighbour(above, i, step);
    const int guess = filter == 1 ? a : filter == 2 ? b : filter == 3 ? (a + b) / 2 : nearest_neighbour(a, b, c);
    row[i] = static_cast<std::uint8_t>(row[i] + guess);
  }
  return row;
}

// Small differences, as images have, or any bytes at all.
Row draw_row(Random& random, std::size_t count, bool calm) {
  Row row(count);
  for (std::uint8_t& byte : row) {
    byte = static_cast<std::uint8_t>(calm ? 250u + random.below(12) : random.below(256));
  }
  return row;
}

TEST(PngFilter, TheNearestNeighbourIsThatOfTheSpecificationForAllBytes) {
  int wrong = 0;
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      for (int c = 0; c < 256; ++c) wrong += paeth(a, b, c) != nearest_neighbour(a, b, c);
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(PngFilter, UndoesRowsOfEveryStepLengthAndPlaceAsTheSpecificationSays) {
  std::uint64_t number = 0;
  for (const std::size_t step : {1, 2, 3, 4, 6, 8}) {
    for (std::size_t pixels = 0; pixels <= 130; ++pixels) {
      const std::size_t count = pixels * step;
      for (const int filter : {1, 2, 3, 4}) {
        Random random(9, 0, number++);
        const Row row = draw_row(random, count, pixels % 2 == 0), above = draw_row(random, count, pixels % 4 < 2);
        const Row none(count, 0);
        for (const bool first : {false, true}) {
          const Row expected = undone(filter, row, first ? none : above, step);
          for (std::size_t place = 0; place < 16; ++place) {
            const std::size_t gap = random.below(16);
            for (const bool portable : {false, true}) {
              // A guard of one byte on both sides of rows that begin anywhere.
              Row room(place + count + 1, 0xA5), room_above(gap + count, 0);
              std::copy(row.begin(), row.end(), room.begin() + static_cast<std::ptrdiff_t>(place));
              std::copy(above.begin(), above.end(), room_above.begin() + static_cast<std::ptrdiff_t>(gap));
              const auto undo = portable ? unfilter_portable : unfilter;
              ASSERT_TRUE(undo(static_cast<std::uint8_t>(filter), room.data() + place,
                               first ? nullptr : room_above.data() + gap, count, step));
              const Row done(room.begin() + static_cast<std::ptrdiff_t>(place), room.end() - 1);
              ASSERT_EQ(done, expected) << "filter " << filter << ", step " << step << ", " << pixels
                                        << " pixels, first " << first << ", portable " << portable;
              ASSERT_EQ(room.back(), 0xA5) << "wrote beyond the row";
              ASSERT_TRUE(place == 0 || room[place - 1] == 0xA5) << "wrote before the row";
            }
          }
        }
      }
    }
  }
}

TEST(PngFilter, UndoesManyRowsOfMixedFiltersAsOneByOne) {
  for (std::uint32_t number = 0; number < 4000; ++number) {
    Random random(10, 0, number);
    const std::size_t step = std::array{2, 2, 2, 1, 3, 4, 6, 8}[random.below(8)];
    const std::size_t count = step * (1 + random.below(70));
    const std::uint32_t rows = 1 + random.below(9);
    const bool first = random.below(4) == 0, mostly_paeth = random.below(2) == 0, calm = random.below(2) == 0;
    const Row before = first ? Row(count, 0) : draw_row(random, count, calm);
    Row expected, above = before, room;
    for (std::uint32_t y = 0; y < rows; ++y) {
      const int filter = mostly_paeth && random.below(4) != 0 ? 4 : static_cast<int>(random.below(5));
      const Row row = draw_row(random, count, calm);
      room.push_back(static_cast<std::uint8_t>(filter));
      room.insert(room.end(), row.begin(), row.end());
      above = filter == 0 ? row : undone(filter, row, above, step);
      expected.push_back(static_cast<std::uint8_t>(filter));
      expected.insert(expected.end(), above.begin(), above.end());
    }
    room.push_back(0xA5), expected.push_back(0xA5);
    ASSERT_TRUE(unfilter_rows(room.data(), rows, first ? nullptr : before.data(), count, step));
    ASSERT_EQ(room, expected) << "case " << number << ": " << rows << " rows of " << count << " bytes, step " << step;
  }
}

TEST(PngFilter, UndoesFourRowsTogetherOfEveryLengthAndPlace) {
  for (std::size_t pixels = 14; pixels <= 60; ++pixels) {
    for (std::size_t place = 0; place < 16; ++place) {
      Random random(11, pixels, place);
      const std::size_t count = 2 * pixels;
      const Row before = draw_row(random, count, false);
      // Paeth in two rows, anything in the others; every third time Paeth and Up alone, which have a loop of their own.
      Row room(place, 0xA5), expected = room, above = before;
      for (std::uint32_t y = 0; y < 4; ++y) {
        const std::uint32_t drawn = place % 3 == 0 ? 2 * random.below(2) + 2 : random.below(5);
        const int filter = y % 2 == 1 ? 4 : static_cast<int>(drawn);
        const Row row = draw_row(random, count, pixels % 2 == 0);
        above = filter == 0 ? row : undone(filter, row, above, 2);
        for (Row* const rows : {&room, &expected}) rows->push_back(static_cast<std::uint8_t>(filter));
        room.insert(room.end(), row.begin(), row.end());
        expected.insert(expected.end(), above.begin(), above.end());
      }
      ASSERT_TRUE(unfilter_rows(room.data() + place, 4, before.data(), count, 2));
      ASSERT_EQ(room, expected) << pixels << " pixels at place " << place;
    }
  }
}

TEST(PngFilter, FindsAnUnknownFilterInAnyRow) {
  for (std::size_t bad = 0; bad < 6; ++bad) {
    Row room;
    for (std::size_t y = 0; y < 6; ++y) {
      room.push_back(y == bad ? 5 : 4);
      room.insert(room.end(), 64, 1);
    }
    EXPECT_FALSE(unfilter_rows(room.data(), 6, nullptr, 64, 2)) << bad;
  }
}

TEST(PngFilter, KnowsFiveFilters) {
  for (const auto undo : {unfilter, unfilter_portable}) {
    for (const std::size_t count : {std::size_t{4}, std::size_t{64}}) {
      Row row(count, 7), above(count, 9);
      EXPECT_TRUE(undo(0, row.data(), above.data(), count, 2));
      EXPECT_EQ(row, Row(count, 7));
      EXPECT_FALSE(undo(5, row.data(), above.data(), count, 2));
      EXPECT_FALSE(undo(255, row.data(), nullptr, count, 2));
    }
  }
}

}  // namespace
}  // namespace stoker::codec
