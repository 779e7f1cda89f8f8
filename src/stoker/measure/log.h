// What a job's own log says: the time of a step, the rate of each epoch, every figure that it prints with a name, and
// lines about memory that ran out. Pure functions, but for read_log. From any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/measure/user_regex.h"

namespace stoker::measure {

// "Disk I/O: 11.5s (95.6%)" is the figure `Disk I/O` in s.
struct LogFigure {
  std::string name, unit;      // unit as printed; empty: none
  std::vector<double> values;  // in the order of the log

  double median() const;
  // By its unit: times are better when low (-1), rates when high (1); 0: not known.
  int better() const noexcept;
};

struct LogEpoch {
  std::uint64_t epoch = 0;
  double steps_per_s = 0;  // the last one printed
};

struct LogFacts {
  std::string path;
  std::optional<double> step_s;           // the last one told, or from the clock of lines that name their step
  std::uint64_t seen_steps = 0;           // how many lines told it
  std::optional<std::uint64_t> of_steps;  // "step 120/4000": 4000
  std::vector<LogEpoch> epochs;
  std::vector<LogFigure> figures;        // in the order in which they appear first
  std::vector<std::string> trouble;      // the last lines about memory that ran out or workers that died
  std::optional<std::uint64_t> matched;  // lines that the user's pattern matched; none: there is no pattern
};

// A regular expression of the user's own, with named groups: (?<name>...) or (?P<name>...). The groups `step_s`,
// `step_ms` and `steps_per_s` are the time of a step, `step` its number and `epoch` its epoch; any other group that
// matches a number is a figure of that name.
class LogPattern {
 public:
  // Throws Error(usage) where it is no regular expression of RE2's, has no named group, or has one whose name is almost
  // one of the known names (`steps_s`).
  explicit LogPattern(const std::string& text);

  // The named groups that a line matches, with their text. Lines beyond 2,000 characters are cut.
  std::vector<std::pair<std::string, std::string>> find(std::string_view line) const;
  bool has(std::string_view group) const noexcept;
  bool tells_step() const noexcept;

 private:
  UserRegex regex_;
};

// Colours and other commands to a terminal are dropped from each line.
LogFacts parse_log(std::string_view text, const LogPattern* pattern = nullptr);
// The last `most_bytes` of the log, which may be UTF-16 with a byte order mark. Throws Error where it cannot be read.
LogFacts read_log(const std::string& path, const LogPattern* pattern = nullptr, std::uint64_t most_bytes = 256 * 1024);

// One figure in several logs, in their order; none: that log does not have it.
struct ComparedFigure {
  std::string name, unit;
  std::vector<std::optional<double>> values;  // medians
  std::optional<std::size_t> best;            // none: its unit does not tell, or there is one value only
  double apart = 1;                           // the largest over the smallest
};
// The time of a step first, then every figure that one of the logs has.
std::vector<ComparedFigure> compare_logs(const std::vector<LogFacts>& logs);

}  // namespace stoker::measure
