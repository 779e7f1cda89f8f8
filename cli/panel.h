// A few lines at the bottom of the terminal that show a running job. What the job prints scrolls above them: the
// terminal is told to scroll only the lines above, and each drawing is one write that puts the cursor back. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/measure/live.h"

#include "terminal.h"

namespace stoker::cli {

struct PanelFacts {
  double seconds = 0;
  std::uint64_t steps = 0;                                     // so far
  measure::Steps recent;                                       // of the last half minute
  double ready = 0;                                            // batches that lay finished
  std::uint64_t queue = 0;                                     // how many may; 0: no workers
  std::uint64_t workers = 0, worker_bytes = 0, job_bytes = 0;  // 0: not known
  std::string verdict;                                         // so far
};

std::vector<std::string> panel_lines(const Terminal& terminal, const PanelFacts& facts, int columns);

class Panel {
 public:
  explicit Panel(const Face& face) : face_(face) {}
  ~Panel() { close(); }
  Panel(const Panel&) = delete;
  Panel& operator=(const Panel&) = delete;

  // Reads the terminal's size again. A terminal that is too small, or shows another job, shows nothing.
  void draw(const PanelFacts& facts);
  // Gives the lines back. Before anything else is printed at length; draw() opens it again.
  void close();

 private:
  const Face& face_;
  TerminalSize size_;  // for which the scrolling is set up
  bool open_ = false;
};

}  // namespace stoker::cli
