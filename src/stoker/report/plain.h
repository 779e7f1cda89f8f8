// Pieces of text that the Markdown and the terminal share. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/report/report.h"

namespace stoker::report {

std::size_t columns_of(std::string_view text) noexcept;  // characters, not bytes
std::string bar_of_blocks(double share, int cells);      // "██████▌"
std::string heat_text(const HeatMap& map);               // a table of figures and glyphs, in fixed columns
std::string sparkline(const std::vector<std::optional<double>>& values, double most, std::size_t cells = 60);
// Broken at spaces to at most `width` columns; lines after the first begin with `indent`.
std::string wrapped(std::string_view text, std::size_t width, std::string_view indent);
std::string one_line(std::string_view text);  // line ends and control characters become spaces

}  // namespace stoker::report
