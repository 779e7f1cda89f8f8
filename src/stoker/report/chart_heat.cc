#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/report/charts.h"
#include "stoker/report/svg.h"
#include "stoker/report/words.h"

namespace stoker::report {
namespace {

constexpr int kShades = 10;  // h0 to h9 of the page's style

double widest(const std::vector<std::string>& words, double size) {
  double width = 0;
  for (const std::string& word : words) width = std::max(width, text_width(word, size));
  return width;
}

}  // namespace

std::string heat_map(const HeatMap& map, double width) {
  const bool is_narrow = width < 500;
  const double text = is_narrow ? 11 : 13;
  const double left = std::min(widest(map.rows, text) + 14, 0.4 * width);
  const double columns = static_cast<double>(map.columns.size());
  // Cells keep a width that can be read; the figure scrolls where there are too many.
  const double cell = std::clamp((width - left - 2) / columns, is_narrow ? 36.0 : 44.0, 116.0);
  const double tall = is_narrow ? 38 : 44, top = 46;
  const double rows = static_cast<double>(map.rows.size());
  double most = 0;
  for (const auto& row : map.cells) {
    for (const HeatCell& one : row) most = std::max(most, one.rate.value_or(0));
  }
  Svg svg(left + cell * columns + 2, top + rows * tall + 4, "chart heat",
          fmt::format("Rates by {} and {}. The table of trials holds the same figures.", map.down, map.across));
  svg.text(0, 12, Anchor::start, "axis-name", fmt::format("{} ↓ · {} →", map.down, map.across));
  for (std::size_t c = 0; c < map.columns.size(); ++c) {
    svg.text(left + cell * (static_cast<double>(c) + 0.5), top - 9, Anchor::middle, "tick", map.columns[c]);
  }
  std::string marked;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = top + tall * static_cast<double>(r);
    svg.text(left - 10, y + tall / 2 + 4, Anchor::end, "tick", map.rows[r]);
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const HeatCell& one = map.cells[r][c];
      const double x = left + cell * static_cast<double>(c), middle = x + cell / 2;
      if (!one.rate) {
        if (one.glyph.empty()) continue;
        svg.box(x + 1, y + 1, cell - 2, tall - 2, "cell failed", {}, 3);
        svg.box(x + 1, y + 1, cell - 2, tall - 2, "cell hatched", one.tip, 3);
        svg.text(middle, y + tall / 2 + 5, Anchor::middle, "cell-glyph", one.glyph);
        continue;
      }
      const int shade = std::clamp(static_cast<int>(kShades * *one.rate / std::max(most, 1e-300)), 0, kShades - 1);
      const bool named = one.is_best || one.is_chosen;
      svg.box(x + 1, y + 1, cell - 2, tall - 2, fmt::format("cell h{}", shade), one.tip, 3);
      svg.text(middle, y + tall / 2 + (named ? -1 : 4), Anchor::middle, fmt::format("cell-text t{}", shade),
               per_second(*one.rate));
      if (!named) continue;
      svg.text(middle, y + tall / 2 + 13, Anchor::middle, fmt::format("cell-name t{}", shade),
               one.is_chosen && one.is_best && cell > 70 ? "best, chosen"
               : one.is_chosen                           ? "chosen"
                                                         : "best");
      if (one.is_chosen) svg.box(x + 2, y + 2, cell - 4, tall - 4, "cell-ring", {}, 3);
    }
  }
  return std::move(svg).whole();
}

}  // namespace stoker::report
