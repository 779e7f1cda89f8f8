#include "stoker/report/plain.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "stoker/report/words.h"

namespace stoker::report {

std::size_t columns_of(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string bar_of_blocks(double share, int cells) {
  constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * cells * 8));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + std::string(kEighths[static_cast<std::size_t>(eighths % 8)]);
}

std::string heat_text(const HeatMap& map) {
  std::vector<std::vector<std::string>> lines = {{fmt::format("{} \\ {}", one_line(map.down), one_line(map.across))}};
  for (const std::string& column : map.columns) lines[0].push_back(one_line(column));
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    lines.push_back({one_line(map.rows[r])});
    for (const HeatCell& cell : map.cells[r]) {
      std::string text = cell.rate ? per_second(*cell.rate) : cell.glyph;
      lines.back().push_back(text + (cell.is_chosen ? "*" : cell.is_best ? "+" : " "));
    }
  }
  std::vector<std::size_t> widths(lines[0].size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], columns_of(line[i]) + (&line == &lines[0] && i > 0 ? 1 : 0));
  }
  std::string out;
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string cell = line[i] + (&line == &lines[0] && i > 0 ? " " : "");
      text += (i == 0 ? "" : "  ") + std::string(widths[i] - columns_of(cell), ' ') + cell;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  return out;
}

std::string sparkline(const std::vector<std::optional<double>>& values, double most, std::size_t cells) {
  constexpr std::array<std::string_view, 8> kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string out;
  cells = std::min(cells, values.size());
  for (std::size_t i = 0; i < cells; ++i) {
    double sum = 0, count = 0;
    for (std::size_t j = values.size() * i / cells; j < values.size() * (i + 1) / cells; ++j) {
      if (values[j]) sum += *values[j], count += 1;
    }
    if (count == 0 || !(most > 0)) {
      out += " ";
      continue;
    }
    out += kHeights[static_cast<std::size_t>(std::clamp(std::lround(7 * sum / count / most), 0L, 7L))];
  }
  return out;
}

std::string wrapped(std::string_view text, std::size_t width, std::string_view indent) {
  std::string out;
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (column > 0 && column + 1 + columns_of(word) > width) {
      out += "\n" + std::string(indent);
      column = 0;
    }
    if (column > 0) out += ' ', ++column;
    out += word;
    column += columns_of(word);
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return out;
}

}  // namespace stoker::report
