// A tuning run seen as curves and cells: which knob is the x axis, which points differ in one knob only. Borrows from
// the run. Pure; from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/report/from_run.h"
#include "stoker/tune/measured.h"

namespace stoker::report {

struct RunView {
  explicit RunView(const tune::RecordedRun& run);

  const tune::RecordedRun& run;
  std::vector<tune::Measured> points;
  const tune::Measured* chosen = nullptr;
  const tune::Measured* best = nullptr;
  std::string x_knob;                  // workers where they vary, else the number that varies most; empty: none
  std::string down_knob, across_knob;  // of the heat map; empty: fewer than two knobs vary

  Figure rate(const tune::Measured& point) const;
  std::vector<std::string> values(std::string_view knob) const;  // as written, in ascending order
  // Points that differ from `from` in `knob` alone, and itself, by that knob; also those that failed.
  std::vector<const tune::Measured*> along(const tune::Measured& from, std::string_view knob) const;
  const tune::Measured* at(const tune::Point& point) const;
  std::string tip(const tune::Measured& point) const;
};

// True where the two differ in nothing but `knob`.
bool same_but(const tune::Point& a, const tune::Point& b, std::string_view knob);

}  // namespace stoker::report
