#include "stoker/dicom/index.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace stoker::dicom {
namespace {

TEST(DicomIndex, HasAFieldForEveryColumn) {
  Series series;
  series.patient = "p";
  series.rows = 512;
  series.columns = 256;
  series.slice_spacing = 2.5000000001;
  Header header;
  header.facts.pixel_spacing = {0.7, 0.8};
  header.facts.slope = 1;
  header.facts.intercept = -1024;
  const Slice slice{0, 2, -0.00000001};
  const std::string line = index_line({series, slice, header, "s/00000.png", 0, "x"});
  EXPECT_EQ(std::count(line.begin(), line.end(), ','), std::count(kIndexColumns.begin(), kIndexColumns.end(), ','));
  EXPECT_EQ(line, "s/00000.png,p,,,,,3,0,2.5,0.7,0.8,32768,512,256,,,1,-1024,,0,x");
}

}  // namespace
}  // namespace stoker::dicom
