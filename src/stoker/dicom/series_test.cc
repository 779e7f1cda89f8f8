#include "stoker/dicom/series.h"

#include <gtest/gtest.h>

namespace stoker::dicom {
namespace {

std::string plain_name(std::string_view, const std::string& value) {
  return value;
}

// An axial CT slice at `z` mm.
Source slice_at(const std::string& path, double z, std::int64_t instance = 1) {
  Source source;
  source.path = path;
  source.found = Found::image;
  Header& header = source.header;
  header.sop_instance = path;
  header.series = "S";
  header.patient = "P";
  header.modality = "CT";
  header.instance = instance;
  header.rows = header.columns = 512;
  header.facts.position = {0, 0, z};
  header.facts.orientation = {1, 0, 0, 0, 1, 0};
  header.facts.pixel_spacing = {0.7, 0.7};
  header.facts.slope = 1;
  header.facts.intercept = -1024;
  return source;
}

SeriesPlan planned(const std::vector<Source>& sources) {
  return plan_series(sources, plain_name);
}

std::vector<std::string> order_of(const std::vector<Source>& sources, const Series& series) {
  std::vector<std::string> paths;
  for (const Slice& slice : series.slices) paths.push_back(sources[slice.source].path);
  return paths;
}

bool has_note(const Series& series, std::string_view words) {
  for (const std::string& note : series.notes) {
    if (note.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(DicomSeries, SortsAlongTheNormalWhateverTheNamesAndNumbersSay) {
  const std::vector<Source> sources = {slice_at("a", 5, 1), slice_at("b", -2.5, 2), slice_at("c", 0, 3),
                                       slice_at("d", 2.5, 4)};
  const SeriesPlan plan = planned(sources);
  ASSERT_EQ(plan.series.size(), 1u);
  EXPECT_EQ(order_of(sources, plan.series[0]), (std::vector<std::string>{"b", "c", "d", "a"}));
  EXPECT_DOUBLE_EQ(*plan.series[0].slice_spacing, 2.5);
  EXPECT_TRUE(plan.series[0].notes.empty());
  EXPECT_TRUE(plan.left_out.empty());
}

TEST(DicomSeries, MeasuresPositionsAlongATiltedNormal) {
  std::vector<Source> sources = {slice_at("a", 0), slice_at("b", 0)};
  for (Source& source : sources) source.header.facts.orientation = {0, 1, 0, 0, 0, -1};  // sagittal: the normal is -x
  sources[0].header.facts.position = {4, 9, 9};
  sources[1].header.facts.position = {1, 7, 3};
  const SeriesPlan plan = planned(sources);
  EXPECT_EQ(order_of(sources, plan.series[0]), (std::vector<std::string>{"a", "b"}));
  EXPECT_DOUBLE_EQ(*plan.series[0].slice_spacing, 3);
}

TEST(DicomSeries, UsesInstanceNumbersWhereAPositionIsMissing) {
  std::vector<Source> sources = {slice_at("a", 1, 3), slice_at("b", 2, 1), slice_at("c", 3, 2)};
  sources[1].header.facts.position.reset();
  const SeriesPlan plan = planned(sources);
  EXPECT_EQ(order_of(sources, plan.series[0]), (std::vector<std::string>{"b", "c", "a"}));
  EXPECT_TRUE(has_note(plan.series[0], "order of their InstanceNumber"));
  EXPECT_FALSE(plan.series[0].slice_spacing.has_value());
}

TEST(DicomSeries, TellsTwoSeriesOfOneFolderApart) {
  std::vector<Source> sources = {slice_at("x/1", 0), slice_at("x/2", 0)};
  sources[1].header.series = "T";
  const SeriesPlan plan = planned(sources);
  ASSERT_EQ(plan.series.size(), 2u);
  EXPECT_EQ(plan.series[0].name, "S");
  EXPECT_EQ(plan.series[1].name, "T");
}

TEST(DicomSeries, SplitsSizesAndOrientationsAndSaysSo) {
  std::vector<Source> sources = {slice_at("a", 0), slice_at("b", 1), slice_at("c", 2), slice_at("d", 3)};
  sources[1].header.rows = 256;
  sources[2].header.facts.orientation = {1, 0, 0, 0, 0, -1};
  sources[3].header.facts.orientation = {0.99999, 0, 0, 0, 1, 0};  // rounding
  const SeriesPlan plan = planned(sources);
  ASSERT_EQ(plan.series.size(), 3u);
  EXPECT_EQ(order_of(sources, plan.series[0]), (std::vector<std::string>{"a", "d"}));
  EXPECT_EQ(plan.series[1].name, "S-2");
  EXPECT_EQ(plan.series[1].rows, 256u);
  EXPECT_EQ(plan.series[2].name, "S-3");
  EXPECT_EQ(plan.series[2].series, "S");
  EXPECT_TRUE(has_note(plan.series[0], "several sizes or orientations (2 of 512x512, 1 of 512x256, 1 of 512x512)"));
}

TEST(DicomSeries, KeepsTheFirstOfTwoCopies) {
  std::vector<Source> sources = {slice_at("a", 0), slice_at("b", 0)};
  sources[1].header.sop_instance = "a";
  const SeriesPlan plan = planned(sources);
  ASSERT_EQ(plan.left_out.size(), 1u);
  EXPECT_EQ(plan.left_out[0].path, "b");
  EXPECT_EQ(plan.left_out[0].cause, "it is the same instance as `a`");
  EXPECT_TRUE(plan.left_out[0].is_ignored);
}

TEST(DicomSeries, KeepsASliceWithoutOrientationAmongTheOthers) {
  std::vector<Source> sources = {slice_at("a", 0), slice_at("b", 1), slice_at("c", 2)};
  for (const std::size_t missing : {0, 1}) {
    std::vector<Source> some = sources;
    some[missing].header.facts.orientation.reset();
    const SeriesPlan plan = planned(some);
    ASSERT_EQ(plan.series.size(), 1u);
    EXPECT_EQ(order_of(some, plan.series[0]), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_DOUBLE_EQ(*plan.series[0].slice_spacing, 1);
    EXPECT_TRUE(has_note(plan.series[0], "1 of its slices have no orientation"));
  }
}

TEST(DicomSeries, SplitsTheTimesOfOnePlace) {
  const std::vector<Source> sources = {slice_at("a", 0, 1), slice_at("b", 1, 2), slice_at("c", 0, 3),
                                       slice_at("d", 1, 4), slice_at("e", 0, 5)};
  const SeriesPlan plan = planned(sources);
  ASSERT_EQ(plan.series.size(), 3u);
  EXPECT_EQ(order_of(sources, plan.series[0]), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(order_of(sources, plan.series[1]), (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(order_of(sources, plan.series[2]), (std::vector<std::string>{"e"}));
  EXPECT_EQ(plan.series[1].name, "S-2");
  EXPECT_TRUE(has_note(plan.series[0], "up to 3 slices lie at one place"));
  EXPECT_FALSE(has_note(plan.series[0], "several"));
}

TEST(DicomSeries, KeepsFramesTogetherThatAllHaveOnePlace) {
  std::vector<Source> sources = {slice_at("a", 0)};
  sources[0].header.frames = 3;
  const SeriesPlan plan = planned(sources);
  ASSERT_EQ(plan.series.size(), 1u);
  EXPECT_EQ(plan.series[0].slices.size(), 3u);
}

TEST(DicomSeries, RemembersCopiesOfTheSameSize) {
  std::vector<Source> sources = {slice_at("a", 0), slice_at("b", 0), slice_at("c", 0)};
  sources[1].header.sop_instance = sources[2].header.sop_instance = "a";
  sources[2].header.rows = 256;
  const SeriesPlan plan = planned(sources);
  EXPECT_EQ(plan.series[0].slices[0].copies, (std::vector<std::size_t>{1}));
}

TEST(DicomSeries, NotesGapsAndFallbacks) {
  std::vector<Source> sources = {slice_at("a", 0), slice_at("b", 1), slice_at("c", 2), slice_at("d", 4)};
  for (Source& source : sources) source.header.facts.slope.reset();
  sources[0].header.facts.pixel_spacing.reset();
  const SeriesPlan plan = planned(sources);
  EXPECT_TRUE(has_note(plan.series[0], "unevenly spaced, 1 to 2 mm"));
  EXPECT_TRUE(has_note(plan.series[0], "no RescaleSlope or RescaleIntercept: 1 and 0 are taken"));
  EXPECT_TRUE(has_note(plan.series[0], "1 of its slices have no PixelSpacing"));
}

TEST(DicomSeries, GroupsFilesWithoutASeriesByFolder) {
  std::vector<Source> sources = {slice_at("x/a", 0), slice_at("x/b", 1), slice_at("y/a", 0)};
  for (Source& source : sources) source.header.series.clear();
  const SeriesPlan plan = planned(sources);
  ASSERT_EQ(plan.series.size(), 2u);
  EXPECT_EQ(plan.series[0].slices.size(), 2u);
  EXPECT_TRUE(has_note(plan.series[0], "name no series"));
}

TEST(DicomSeries, GivesEachFrameASlice) {
  std::vector<Source> sources = {slice_at("a", 0)};
  sources[0].header.frames = 3;
  for (const double z : {4.0, 0.0, 2.0}) {
    FrameFacts facts = sources[0].header.facts;
    facts.position = {0, 0, z};
    sources[0].header.per_frame.push_back(facts);
  }
  const SeriesPlan plan = planned(sources);
  ASSERT_EQ(plan.series[0].slices.size(), 3u);
  EXPECT_EQ(plan.series[0].slices[0].frame, 1u);
  EXPECT_EQ(plan.series[0].slices[2].frame, 0u);
  EXPECT_DOUBLE_EQ(*plan.series[0].slice_spacing, 2);
}

TEST(DicomSeries, DropsAModalityThatIsNoCode) {
  std::vector<Source> sources = {slice_at("a", 0)};
  sources[0].header.modality = "Doe^Jane";
  EXPECT_EQ(planned(sources).series[0].modality, "");
}

}  // namespace
}  // namespace stoker::dicom
