// What the program may draw: colour, width, block characters, progress bars; and the one way to stdout.
// Terminal is a plain value; Bar may be updated from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/utf8.h"
#include "stoker/os/terminal.h"

#include "flags.h"

namespace stoker::cli {

enum class Paint : std::uint8_t { plain, bold, dim, red, green, yellow, blue, magenta, cyan };

struct Terminal {
  bool is_terminal = false;
  bool color = false;
  bool unicode = false;  // block characters; otherwise ASCII
  int width = 80;

  std::string paint(Paint paint, std::string_view text) const;
  // `share` of `cells` cells filled, in eighths of a cell where the terminal can.
  std::string gauge(double share, int cells) const;
};

using os::TerminalSize;
TerminalSize size_of_terminal();  // of stderr, as it is now
bool owns_terminal();             // this program runs in the foreground of stderr's terminal

// How this run speaks: from --json, --quiet, --color and the environment.
struct Face {
  Terminal out, err;
  bool json = false;
  bool bars = false;
};

// Throws Error(usage) for a wrong --color. `color` is the value of --color, or "auto".
Face make_face(const Arguments& arguments, const std::string& color);

// Parts of a whole as one line of cells: each part has its own mark, so that it reads without colour.
struct Part {
  std::string_view name;
  double share = 0;
  Paint paint = Paint::plain;
  std::string_view block;  // one character, UTF-8
  char ascii = '#';
};
std::string stacked_bar(const Terminal& terminal, std::span<const Part> parts, int cells);
std::string legend(const Terminal& terminal, std::span<const Part> parts);

// "  label   text", broken at spaces to stay within the terminal; `label_width` columns for the label.
std::string labelled(const Terminal& terminal, std::string_view label, int label_width, std::string_view text);

// Columns padded to the widest cell, right-aligned but the first. Cells must be ASCII.
std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view indent);

// Broken pipe: the reader has seen enough. main() turns it into exit code 0.
struct ReaderLeft {};
// Opens /dev/null for standard descriptors that the caller closed, so that no file of ours takes their numbers. For
// main(), before all else.
void open_standard_descriptors();
// Writes all of `text` to stdout. Throws ReaderLeft, or Error where stdout is closed or cannot be written.
void answer(std::string_view text);
bool has_answered() noexcept;     // whether answer() wrote anything
void say(std::string_view text);  // to stderr, never throws
// As printable() of base/utf8.h, for text of several lines: line ends stay. A name goes through printable().
std::string printable_lines(std::string_view text);

// A line on stderr that is redrawn at most ten times a second and is gone afterwards.
class Bar {
 public:
  Bar(const Face& face, std::string label, std::uint64_t total = 0);  // total 0: not known
  ~Bar() { clear(); }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

  void update(std::uint64_t done, std::string_view unit, double per_second = -1, double bytes_per_second = -1);
  void clear();

 private:
  const Face& face_;
  std::string label_;
  std::uint64_t total_;
  std::int64_t started_ns_ = 0;
  std::atomic<std::int64_t> drawn_ns_{0};
  std::mutex mutex_;
  bool visible_ = false;
};

}  // namespace stoker::cli
