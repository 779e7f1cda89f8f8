#include "stoker/report/svg.h"

#include <gtest/gtest.h>

#include "stoker/report/charts.h"

namespace stoker::report {
namespace {

TEST(Escaping, MakesTextOfTagsQuotesAndEntities) {
  EXPECT_EQ(escaped("<b a=\"1\" c='2'>&"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
}

TEST(Escaping, KeepsLettersOfAnyLanguage) {
  EXPECT_EQ(escaped("größe 数 🎉"), "größe 数 🎉");
}

TEST(Escaping, ReplacesControlCharactersAndBytesThatAreNoText) {
  EXPECT_EQ(escaped(std::string_view("a\0b\x1b[2J\x7f", 8)), "a\uFFFDb\uFFFD[2J\uFFFD");
  EXPECT_EQ(escaped("\xFF\xC3"), "\uFFFD\uFFFD");
  EXPECT_EQ(escaped("\xC0\xAF"), "\uFFFD\uFFFD") << "an overlong slash";
  EXPECT_EQ(escaped("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD") << "half a surrogate pair";
  EXPECT_EQ(escaped("line\nbreak"), "line\nbreak");
}

TEST(Ticks, AreRoundAndCoverTheLargestFigure) {
  EXPECT_EQ(ticks(503, 5), (std::vector<double>{0, 200, 400, 600}));
  EXPECT_EQ(ticks(0.9, 3).back(), 1.0);
  for (const double most : {1e-9, 1.0, 17.0, 99.9, 1e12}) {
    const std::vector<double> marks = ticks(most, 5);
    EXPECT_GE(marks.back(), most);
    EXPECT_LE(marks.size(), 8u);
  }
}

TEST(Ticks, OfNothingAreStillAnAxis) {
  EXPECT_EQ(ticks(0, 5), (std::vector<double>{0, 1}));
  EXPECT_EQ(ticks(-3, 5), (std::vector<double>{0, 1}));
}

TEST(Ticks, OfBytesAreRoundInPowersOf1024) {
  const std::vector<double> marks = byte_ticks(3.1 * (1 << 30), 4);
  EXPECT_EQ(marks[1], 1.0 * (1 << 30));
  EXPECT_EQ(marks.back(), 4.0 * (1 << 30));
}

TEST(Drawing, WritesNumbersWithoutNoise) {
  EXPECT_EQ(number(3), "3");
  EXPECT_EQ(number(2.504), "2.5");
  EXPECT_EQ(number(-0.001), "0");
  EXPECT_EQ(number(1.0 / 0.0), "0");
}

LineChart one_curve(std::vector<Mark> marks) {
  return {.x_label = "num_workers", .y_label = "samples/s", .curves = {{"the choice", std::move(marks)}}};
}

TEST(LineChart, OfOnePointIsDrawnInTheMiddle) {
  const std::string svg = line_chart(one_curve({{.x = 4, .y = {.value = 100}, .tip = "here"}}), kWide);
  EXPECT_NE(svg.find("data-tip=\"here\""), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(LineChart, DrawsWhiskersWhereAnIntervalIsKnownAndNoneElsewhere) {
  const std::string with =
      line_chart(one_curve({{.x = 0, .y = {.value = 5}}, {.x = 1, .y = {.value = 10, .low = 9, .high = 11}}}), kWide);
  const std::string without = line_chart(one_curve({{.x = 0, .y = {.value = 5}}, {.x = 1, .y = {.value = 10}}}), kWide);
  EXPECT_NE(with.find("whisker"), std::string::npos);
  EXPECT_EQ(without.find("whisker"), std::string::npos);
}

TEST(LineChart, DrawsALimitThatIsNearAndOnlyNamesOneThatIsFar) {
  LineChart chart = one_curve({{.x = 1, .y = {.value = 10}}, {.x = 2, .y = {.value = 20}}});
  chart.limit = 30;
  chart.limit_label = "limit 30";
  EXPECT_NE(line_chart(chart, kWide).find("class=\"limit\""), std::string::npos);
  chart.limit = 3000;
  EXPECT_EQ(line_chart(chart, kWide).find("class=\"limit\""), std::string::npos);
}

TEST(HeatMapChart, ShowsARateAGlyphOrNothingInEachCell) {
  HeatMap map{.down = "num_workers", .across = "batch_size", .rows = {"0", "8"}, .columns = {"32", "<script>"}};
  map.cells = {{{.rate = 78.0, .tip = "slow"}, {.glyph = "×", .tip = "fault"}},
               {{.rate = 495.0, .is_chosen = true}, {}}};
  const std::string svg = heat_map(map, kNarrow);
  EXPECT_NE(svg.find(">495<"), std::string::npos);
  EXPECT_NE(svg.find(">×<"), std::string::npos);
  EXPECT_NE(svg.find(">chosen<"), std::string::npos);
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
}

TEST(SplitChart, ScalesEveryBarToTheLongest) {
  const std::string svg =
      split_chart({{"before", {{Stage::compute, 10}, {Stage::fetch, 90}}}, {"after", {{Stage::compute, 10}}}}, 500);
  EXPECT_NE(svg.find("width=\"449\""), std::string::npos) << "fetch: 90 of 100 ms, less a hairline";
  EXPECT_NE(svg.find("width=\"49\""), std::string::npos) << "compute: 10 of 100 ms";
}

TEST(SplitChart, OfNoTimeAtAllDividesByNothing) {
  EXPECT_EQ(split_chart({{"idle", {}}}, 500).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace stoker::report
