// What `stoker tune` shows while it works. On a terminal: each trial as a line, and below them a panel that is redrawn
// in place with the trial that runs, the best so far and the map of rates. Elsewhere plain lines only. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "stoker/tune/search.h"

#include "terminal.h"

namespace stoker::cli {

class TuneScreen {
 public:
  TuneScreen(const Face& face, bool is_quiet) : face_(face), is_quiet_(is_quiet) {}
  ~TuneScreen() { clear(); }
  TuneScreen(const TuneScreen&) = delete;
  TuneScreen& operator=(const TuneScreen&) = delete;

  void begin(const tune::Ask& ask, std::uint64_t trial, std::uint64_t at_most);  // `at_most` trials may still follow
  void end(const tune::Ask& ask, const tune::Row& row, bool from_before);
  void tick();   // as often as one likes
  void clear();  // the panel; lines stay

 private:
  using Clock = std::chrono::steady_clock;
  std::string panel() const;
  void draw();

  const Face& face_;
  bool is_quiet_;
  std::vector<tune::Row> rows_;
  std::string running_;  // empty: nothing
  std::uint64_t at_most_ = 0;
  Clock::time_point started_ = Clock::now(), begun_, drawn_;
  int lines_ = 0;  // of the panel on the screen
};

}  // namespace stoker::cli
