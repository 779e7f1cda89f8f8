#include "panel.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/measure/answer.h"

namespace stoker::cli {
namespace {

constexpr int kLines = 5, kLeastRows = 12, kLeastColumns = 40;
constexpr std::string_view kKeep = "\0337", kPutBack = "\0338";  // cursor and colours
constexpr std::string_view kDown = "\033D";                      // a line, in the same column; scrolls at the end

// The first `columns` columns; colour codes take none.
std::string clipped(std::string_view text, int columns) {
  std::string out;
  bool coloured = false;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] == '\x1b') {
      end = std::min(text.find('m', at), text.size() - 1) + 1;
      coloured = true;
    } else {
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
      if (columns-- <= 0) break;
    }
    out += text.substr(at, end - at);
    at = end;
  }
  return coloured ? out + "\x1b[0m" : out;
}

std::vector<Part> parts_of(const measure::Steps& steps) {
  const double running = static_cast<double>(std::max<std::int64_t>(1, steps.running_ns()));
  const auto share = [&](std::int64_t ns) { return static_cast<double>(ns) / running; };
  const meter::WaitSplit split = steps.wait.split();
  std::vector<Part> parts = {{"compute", share(steps.compute_ns), Paint::green, "█", '#'}};
  if (steps.h2d_steps > 0) parts.push_back({"h2d", share(steps.h2d_ns), Paint::cyan, "▚", '>'});
  parts.push_back({"fetch", share(split.fetch_ns), Paint::yellow, "░", '.'});
  parts.push_back({"prep", share(split.prep_ns), Paint::red, "▒", '='});
  parts.push_back({"hand-off", share(split.handoff_ns), Paint::magenta, "▓", '-'});
  return parts;
}

}  // namespace

std::vector<std::string> panel_lines(const Terminal& terminal, const PanelFacts& facts, int columns) {
  std::vector<std::string> lines;
  const std::string_view dash = terminal.unicode ? "─" : "-";
  const std::string time = facts.seconds < 60
                               ? fmt::format("{:.0f} s", facts.seconds)
                               : format_duration(std::chrono::nanoseconds(std::llround(facts.seconds) * 1'000'000'000));
  std::string title = fmt::format(" stoker: step {}, {} ", format_count(facts.steps), time);
  const double recent_s = static_cast<double>(facts.recent.running_ns()) * 1e-9;
  if (recent_s > 0)
    title += fmt::format("at {} samples/s ", format_rate(static_cast<double>(facts.recent.samples) / recent_s));
  std::string rule = fmt::format("{0}{0}{1}", dash, title);
  for (int i = static_cast<int>(title.size()) + 2; i < columns; ++i) rule += dash;
  lines.push_back(terminal.paint(Paint::dim, rule));

  if (facts.recent.steps == 0) {
    lines.emplace_back(facts.steps == 0 ? "  no step so far" : "  no step in the last half minute");
    lines.emplace_back();
  } else {
    const std::vector<Part> parts = parts_of(facts.recent);
    const std::string step =
        fmt::format("  {:.4g} ms a step  ", recent_s * 1e3 / static_cast<double>(facts.recent.steps));
    lines.push_back(step +
                    stacked_bar(terminal, parts, std::clamp(columns - static_cast<int>(step.size()) - 2, 8, 60)));
    lines.push_back("  " + legend(terminal, parts));
  }
  std::string third = facts.queue > 0 ? fmt::format("  {:.1f} of {} batches ready", facts.ready, facts.queue)
                                      : std::string("  no workers");
  if (facts.workers > 0)
    third += fmt::format(", {} worker{} hold{} {}", facts.workers, facts.workers == 1 ? "" : "s",
                         facts.workers == 1 ? "s" : "", format_bytes(facts.worker_bytes));
  if (facts.job_bytes > 0) third += fmt::format(", the job {}", format_bytes(facts.job_bytes));
  lines.push_back(third);
  lines.push_back(fmt::format("  {} {}", terminal.paint(Paint::bold, "so far:"), facts.verdict));
  for (std::string& line : lines) line = clipped(line, columns);
  return lines;
}

void Panel::draw(const PanelFacts& facts) {
  if (!face_.bars || !owns_terminal()) return;
  const TerminalSize size = size_of_terminal();
  if (size.rows < kLeastRows || size.columns < kLeastColumns) {
    close();
    return;
  }
  std::string out;
  const int top = size.rows - kLines + 1;
  if (!open_ || size != size_) {
    if (open_) out += fmt::format("{}\x1b[r{}", kKeep, kPutBack);
    // Room below the cursor, which keeps its column: somebody may be in the middle of a line.
    for (int i = 0; i < kLines; ++i) out += kDown;
    out += fmt::format("\x1b[{}A{}\x1b[E\x1b[J\x1b[1;{}r{}", kLines, kKeep, top - 1, kPutBack);
    open_ = true;
    size_ = size;
  }
  out += kKeep;
  int row = top;
  for (const std::string& line : panel_lines(face_.err, facts, size.columns - 1))
    out += fmt::format("\x1b[{};1H\x1b[0m\x1b[2K{}", row++, line);
  out += kPutBack;
  say(out);
}

void Panel::close() {
  if (!open_) return;
  open_ = false;
  const TerminalSize size = size_of_terminal();
  std::string out = fmt::format("{}\x1b[r", kKeep);
  for (int row = std::max(1, size.rows - kLines + 1); row <= size.rows; ++row)
    out += fmt::format("\x1b[{};1H\x1b[2K", row);
  say(out + std::string(kPutBack));
}

}  // namespace stoker::cli
