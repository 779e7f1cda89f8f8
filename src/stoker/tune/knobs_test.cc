#include "stoker/tune/knobs.h"

#include <set>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/tune/grid_test.h"
#include "stoker/tune/row.h"

namespace stoker::tune {
namespace {

std::string refusal(std::initializer_list<const char*> knobs) {
  try {
    grid(knobs);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.message();
  }
  return "";
}

TEST(Grid, CountsThroughItsPointsWithTheLastKnobFastest) {
  const Grid it = grid({"batch_size=32,64", "num_workers=0, 4 ,8", "training.amp=bf16"});
  ASSERT_EQ(it.size(), 6u);
  EXPECT_EQ(text(it.point(0)), "batch_size=32 num_workers=0 training.amp=bf16");
  EXPECT_EQ(text(it.point(1)), "batch_size=32 num_workers=4 training.amp=bf16");
  EXPECT_EQ(text(it.point(5)), "batch_size=64 num_workers=8 training.amp=bf16");
  const std::vector<Point> points = it.points();
  EXPECT_EQ(std::set<Point>(points.begin(), points.end()).size(), 6u);
  ASSERT_NE(it.find("num_workers"), nullptr);
  EXPECT_EQ(it.find("num_workers")->values, (std::vector<std::string>{"0", "4", "8"}));
  EXPECT_EQ(it.find("workers"), nullptr);
}

TEST(Grid, IsEmptyWithoutKnobs) {
  EXPECT_EQ(Grid{}.size(), 0u);
  EXPECT_TRUE(Grid{}.points().empty());
}

TEST(Grid, RefusesWhatIsNoListOfValuesAndSaysWhy) {
  EXPECT_EQ(refusal({"batch_size"}), "cannot add `batch_size` to the grid: no `=` between a knob and its values");
  EXPECT_EQ(refusal({"=1,2"}), "cannot add `=1,2` to the grid: `` is not a knob's name");
  EXPECT_EQ(refusal({"2x=1"}), "cannot add `2x=1` to the grid: `2x` is not a knob's name");
  EXPECT_EQ(refusal({"b="}), "cannot add `b=` to the grid: a value of `b` is empty");
  EXPECT_EQ(refusal({"b=1,,2"}), "cannot add `b=1,,2` to the grid: a value of `b` is empty");
  EXPECT_EQ(refusal({"b=1,2,1"}), "cannot add `b=1,2,1` to the grid: `1` and `1` are the same value of `b`");
  EXPECT_EQ(refusal({"b=32,32.0"}), "cannot add `b=32,32.0` to the grid: `32` and `32.0` are the same value of `b`");
  EXPECT_EQ(refusal({"b=true,True"}),
            "cannot add `b=true,True` to the grid: `true` and `True` are the same value of `b`");
  EXPECT_EQ(refusal({"b=1", "b=2"}), "cannot add `b=2` to the grid: the knob `b` is already in it");
  EXPECT_EQ(refusal({"b=1,true"}), "");
}

TEST(Grid, RefusesMorePointsThanAnyoneTries) {
  Grid it;
  for (const char* knob : {"a", "b", "c", "d", "e", "f"}) it.add(std::string(knob) + "=0,1,2,3,4,5,6,7,8,9");
  EXPECT_EQ(it.size(), 1'000'000u);
  EXPECT_THROW(it.add("g=1,2"), Error);
  it.add("g=1");
  EXPECT_EQ(it.size(), 1'000'000u);
}

TEST(Words, AreNumbersWhereTheyAreWrittenAsNumbers) {
  EXPECT_EQ(number_of("32"), 32);
  EXPECT_EQ(number_of("1e-3"), 1e-3);
  EXPECT_EQ(number_of("-2.5"), -2.5);
  EXPECT_EQ(number_of("true"), 1);
  EXPECT_EQ(number_of("False"), 0);
  for (const char* word : {"", "bf16", "32k", "inf", "nan", " 3", "1,5"})
    EXPECT_EQ(number_of(word), std::nullopt) << word;
  const Point point = {{"batch_size", "32"}, {"amp", "bf16"}};
  EXPECT_EQ(number_of(point, "batch_size"), 32);
  EXPECT_EQ(number_of(point, "amp"), std::nullopt);
  EXPECT_EQ(number_of(point, "img_size"), std::nullopt);
}

TEST(Status, ParsesItsOwnNamesAndNoOthers) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Status::pruned); ++i) {
    const auto status = static_cast<Status>(i);
    EXPECT_EQ(parse_status(name(status)), status);
    names.insert(name(status));
  }
  EXPECT_EQ(names.size(), 13u);
  EXPECT_EQ(name(Status::skipped_memory), "skipped_memory");
  EXPECT_EQ(name(Status::worker_died), "worker_died");
  EXPECT_EQ(parse_status("error"), std::nullopt);
  EXPECT_EQ(parse_status(""), std::nullopt);
}

}  // namespace
}  // namespace stoker::tune
