#include "terminal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/meter/counters.h"
#include "stoker/os/write_all.h"

namespace stoker::cli {
namespace {

bool stdout_was_closed = false;  // written once, before any thread starts
bool answered = false;           // written by the thread that answers

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = to_lower(environment(name));
    if (value.empty()) continue;
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

Terminal look_at(int fd, const std::string& color) {
  Terminal terminal;
  terminal.is_terminal = os::is_terminal(fd);
  const bool is_dumb = environment("TERM") == "dumb";
  terminal.color =
      color == "always" || (color == "auto" && terminal.is_terminal && environment("NO_COLOR").empty() && !is_dumb);
  terminal.unicode = speaks_utf8() && !is_dumb;
  const int columns = terminal.is_terminal ? os::terminal_size(fd).columns : 0;
  if (columns >= 20) terminal.width = std::min(columns, 200);
  return terminal;
}

}  // namespace

TerminalSize size_of_terminal() {
  return os::terminal_size(os::kStderr);
}

bool owns_terminal() {
  return os::is_in_foreground(os::kStderr);
}

Face make_face(const Arguments& arguments, const std::string& color) {
  if (color != "auto" && color != "always" && color != "never") {
    const bool is_of_images = color == "rgb" || color == "gray" || color == "keep";
    throw Error(ErrorKind::usage, fmt::format("`--color` takes auto, always or never, not `{}`", color),
                is_of_images ? fmt::format("the colour of images is `--image-color {}`", color) : "");
  }
  Face face;
  face.out = look_at(os::kStdout, color);
  face.err = look_at(os::kStderr, color);
  face.json = arguments.has("--json");
  face.bars = face.err.is_terminal && !face.json && !arguments.has("--quiet") &&
              environment("STOKER_NO_PROGRESS").empty() && environment("TERM") != "dumb";
  return face;
}

std::string Terminal::paint(Paint paint, std::string_view text) const {
  constexpr std::array<std::string_view, 9> codes = {"", "1", "2", "31", "32", "33", "34", "35", "36"};
  if (!color || paint == Paint::plain) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(paint)], text);
}

std::string Terminal::gauge(double share, int cells) const {
  constexpr std::array<std::string_view, 8> eighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  share = std::clamp(share, 0.0, 1.0);
  std::string out;
  if (!unicode) {
    const int full = static_cast<int>(std::lround(share * cells));
    out.assign(static_cast<std::size_t>(full), '#');
    if (full == 0 && share > 0) out = ".";
    return out;
  }
  int parts = static_cast<int>(std::lround(share * cells * 8));
  if (parts == 0 && share > 0) parts = 1;
  for (int i = 0; i < parts / 8; ++i) out += "█";
  out += eighths[static_cast<std::size_t>(parts % 8)];
  return out;
}

std::string stacked_bar(const Terminal& terminal, std::span<const Part> parts, int cells) {
  // Largest remainder: the cells add up, and a part of at least half a cell is seen.
  std::vector<int> count(parts.size());
  std::vector<std::pair<double, std::size_t>> rest;
  int used = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double exact = std::max(0.0, parts[i].share) * cells;
    count[i] = static_cast<int>(exact);
    used += count[i];
    rest.emplace_back(exact - count[i], i);
  }
  std::sort(rest.rbegin(), rest.rend());
  for (const auto& [remainder, i] : rest) {
    if (used >= cells || remainder <= 0) break;
    ++count[i], ++used;
  }
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string run;
    for (int c = 0; c < count[i]; ++c) {
      if (terminal.unicode) {
        run += parts[i].block;
      } else {
        run += parts[i].ascii;
      }
    }
    if (!run.empty()) out += terminal.paint(parts[i].paint, run);
  }
  out.append(static_cast<std::size_t>(std::max(0, cells - used)), ' ');
  return out;
}

std::string legend(const Terminal& terminal, std::span<const Part> parts) {
  std::string out;
  for (const Part& part : parts) {
    const std::string mark = terminal.unicode ? std::string(part.block) : std::string(1, part.ascii);
    if (!out.empty()) out += "  ";
    const double percent = 100 * part.share;
    out += fmt::format("{} {} {:.{}f} %", terminal.paint(part.paint, mark), part.name, percent, percent < 9.95 ? 1 : 0);
  }
  return out;
}

std::string labelled(const Terminal& terminal, std::string_view label, int label_width, std::string_view text) {
  const auto room = static_cast<std::size_t>(std::clamp(terminal.width, 60, 110) - label_width - 2);
  std::string out;
  for (;;) {
    std::size_t cut = std::string_view::npos;
    if (text.size() > room) {
      cut = text.rfind(' ', room);
      if (cut == std::string_view::npos || cut == 0) cut = text.find(' ', room);
    }
    out += fmt::format("  {}{}\n", terminal.paint(Paint::bold, fmt::format("{:<{}}", label, label_width)),
                       text.substr(0, cut));
    if (cut == std::string_view::npos) return out;
    text.remove_prefix(cut + 1);
    label = "";
  }
}

std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    out += indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == 0) {
        out += fmt::format("{:<{}}", row[i], widths[i]);
      } else {
        out += fmt::format("  {:>{}}", row[i], widths[i]);
      }
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    out += '\n';
  }
  return out;
}

void open_standard_descriptors() {
  stdout_was_closed = os::open_standard_descriptors();
}

void answer(std::string_view text) {
  if (stdout_was_closed) {
    throw Error(ErrorKind::unavailable, "cannot write the answer: stdout is closed",
                "leave `>&-` out, or discard the answer with `>/dev/null`");
  }
  answered = answered || !text.empty();
  const int error_number = os::write_all(os::kStdout, bytes_of(text));
  if (error_number == EPIPE) throw ReaderLeft{};
  if (error_number != 0) throw system_error(error_number, "write", "stdout");
}

bool has_answered() noexcept {
  return answered;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += printable(text.substr(at, end - at));
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

void say(std::string_view text) {
  (void)os::write_all(os::kStderr, bytes_of(text));  // nobody is left to tell
}

Bar::Bar(const Face& face, std::string label, std::uint64_t total)
    : face_(face), label_(std::move(label)), total_(total), started_ns_(meter::now_ns()) {}

void Bar::update(std::uint64_t done, std::string_view unit, double per_second, double bytes_per_second) {
  if (!face_.bars) return;
  const std::int64_t now = meter::now_ns();
  std::int64_t drawn = drawn_ns_.load(std::memory_order_relaxed);
  if (now - drawn < 100'000'000 || !drawn_ns_.compare_exchange_strong(drawn, now)) return;
  const std::lock_guard lock(mutex_);
  const double seconds = std::max(1e-9, static_cast<double>(now - started_ns_) * 1e-9);
  if (per_second < 0) per_second = static_cast<double>(done) / seconds;
  std::string tail = fmt::format("{} {}", format_count(done), unit);
  if (per_second > 0) tail += fmt::format("  {}/s", format_rate(per_second));
  if (bytes_per_second > 0) tail += fmt::format("  {} MB/s", format_rate(bytes_per_second / 1e6));
  std::string line = "  " + label_ + "  ";
  if (total_ > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
    if (share > 0 && seconds > 1) {
      const double left = seconds * (1 - share) / share;
      tail +=
          fmt::format("  {} left", format_duration(std::chrono::nanoseconds(std::llround(std::min(left, 1e8) * 1e9))));
    }
    const int cells = std::clamp(face_.err.width - static_cast<int>(line.size() + tail.size()) - 12, 0, 30);
    std::string filled;
    const int full = static_cast<int>(share * cells);
    for (int i = 0; i < cells; ++i) filled += face_.err.unicode ? (i < full ? "█" : "░") : (i < full ? "#" : ".");
    line += fmt::format("{} {:3.0f} %  ", face_.err.paint(Paint::cyan, filled), 100 * share);
    line += tail;
  } else {
    line += tail;
    line.resize(std::min(line.size(), static_cast<std::size_t>(face_.err.width - 1)));
  }
  say("\r" + line + "\x1b[K");
  visible_ = true;
}

void Bar::clear() {
  const std::lock_guard lock(mutex_);
  if (visible_) say("\r\x1b[K");
  visible_ = false;
}

}  // namespace stoker::cli
