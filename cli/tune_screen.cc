#include "tune_screen.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/tune/choose.h"

#include "tune_report.h"

namespace stoker::cli {
namespace {

int screen_height() {
  const int rows = size_of_terminal().rows;
  return rows > 0 ? rows : 24;
}

}  // namespace

void TuneScreen::begin(const tune::Ask& ask, std::uint64_t trial, std::uint64_t at_most) {
  running_ =
      fmt::format("{}: {}{}", trial, tune::text(ask.point), ask.why.empty() ? "" : fmt::format(" ({})", ask.why));
  at_most_ = at_most;
  begun_ = Clock::now();
  draw();
}

void TuneScreen::end(const tune::Ask& ask, const tune::Row& row, bool from_before) {
  rows_.push_back(row);
  running_.clear();
  clear();
  if (!is_quiet_ && !from_before) say(printable_lines(one_line(ask, row)));
}

void TuneScreen::tick() {
  if (Clock::now() - drawn_ >= std::chrono::seconds(1)) draw();
}

void TuneScreen::clear() {
  if (lines_ > 0) say(fmt::format("\x1b[{}A\r\x1b[J", lines_));
  lines_ = 0;
}

std::string TuneScreen::panel() const {
  const auto since = [](Clock::time_point then) {
    return format_duration(std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - then));
  };
  const auto failed = static_cast<std::size_t>(
      std::count_if(rows_.begin(), rows_.end(), [](const tune::Row& row) { return !row.ok(); }));
  std::string out = "\n";
  if (!running_.empty()) out += fmt::format("  running  {}, {}\n", running_, since(begun_));
  const tune::Choice choice = tune::choose(rows_);
  if (choice.best) {
    const tune::Row best = mean_of(rows_, rows_[*choice.best]);
    out += fmt::format("  best     {}: {}\n", tune::text(best.knobs), rate_text(best));
  }
  out += fmt::format("  trials   {} in {}{}; at most {} more\n", rows_.size(), since(started_),
                     failed == 0 ? "" : fmt::format(", {} failed", failed), at_most_);
  const std::string map = heat_map(rows_);
  return map.empty() ? out : out + "\n" + map;
}

void TuneScreen::draw() {
  if (!face_.bars || is_quiet_) return;
  drawn_ = Clock::now();
  // A line that wraps, or a panel that scrolls, could not be taken back.
  const std::string text = printable_lines(panel());
  const auto width = static_cast<std::size_t>(std::max(1, face_.err.width - 1));
  const int most = std::max(1, screen_height() - 2);
  std::string out;
  int lines = 0;
  for (std::size_t at = 0; at < text.size() && lines < most; ++lines) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += text.substr(at, std::min(end - at, width)) + "\n";
    at = end + 1;
  }
  clear();
  say(out);
  lines_ = lines;
}

}  // namespace stoker::cli
