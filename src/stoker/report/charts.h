// The charts of a report as SVG, for a column of `width` px: the page holds one for wide and one for narrow screens.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "stoker/report/report.h"

namespace stoker::report {

std::string line_chart(const LineChart& chart, double width);
std::string heat_map(const HeatMap& map, double width);
std::string split_chart(const std::vector<SplitBar>& bars, double width);
std::string timeline_chart(const Timeline& line, double width);

inline constexpr double kWide = 720, kNarrow = 328;
inline constexpr int kCurveStyles = 6;  // c0 to c5: the first is the accent, the others differ by dashes and marks

}  // namespace stoker::report
