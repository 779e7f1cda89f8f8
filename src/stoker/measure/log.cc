#include "stoker/measure/log.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>
#include <span>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/plain_text.h"
#include "stoker/os/fd.h"

namespace stoker::measure {
namespace {

constexpr std::size_t kTroubleKept = 5, kMostFigures = 32, kLongestLine = 2000, kLongestName = 40;
constexpr std::size_t kClockWithin = 60;  // a line's own time stands in its first characters

// What memory that ran out and workers that died leave in a log, in lower case. `killed` and `oom` are words there:
// "skilled" and "zoom" are none.
constexpr std::string_view kTrouble[] = {
    "out of memory",    "outofmemory",         "can't allocate memory", "cannot allocate memory",
    "memoryerror",      "is killed by signal", "exited unexpectedly",   "insufficient shared memory",
    "items of ancdata", "too many open files"};
constexpr std::string_view kTroubleWords[] = {"killed", "oom"};
constexpr std::string_view kTroubleTails[] = {"killed", "killer", "kill"};  // "OOMKilled" is one word

// Groups of a pattern that have a meaning.
constexpr std::string_view kKnownGroups[] = {"step",        "epoch",         "step_s",      "step_ms",
                                             "steps_per_s", "samples_per_s", "images_per_s"};

// Whether one letter more, less or other makes `a` of `b`.
bool is_one_letter_off(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin());
  const std::string_view rest_a(in_a, a.end()), rest_b(in_b, b.end());
  return !rest_b.empty() && (a.size() == b.size() ? rest_a.substr(1) == rest_b.substr(1) : rest_a == rest_b.substr(1));
}

// The known group that `name` misspells; empty: it is one, or has a name of its own.
std::string_view almost_known(const std::string& name) {
  if (std::find(std::begin(kKnownGroups), std::end(kKnownGroups), name) != std::end(kKnownGroups)) return {};
  const std::string lower = to_lower(name);
  for (const std::string_view known : kKnownGroups) {
    if (lower == known || is_one_letter_off(lower, known)) return known;
  }
  return {};
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_trouble(std::string_view line) {
  const std::string lower = to_lower(line);
  for (const std::string_view words : kTrouble) {
    if (lower.find(words) != std::string::npos) return true;
  }
  for (const std::string_view word : kTroubleWords) {
    for (std::size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
      if (at > 0 && is_letter(lower[at - 1])) continue;
      const std::string_view rest = std::string_view(lower).substr(at + word.size());
      if (rest.empty() || !is_letter(rest.front())) return true;
      for (const std::string_view tail : kTroubleTails) {
        if (rest.starts_with(tail)) return true;
      }
    }
  }
  return false;
}

// A number with or without thousands separators: "121,000", "18.02", "1e-3".
std::optional<double> number_of_text(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != ',') plain += c;
  }
  double number = 0;
  const auto [after, code] = std::from_chars(plain.data(), plain.data() + plain.size(), number);
  return code == std::errc{} && after == plain.data() + plain.size() && std::isfinite(number) ? std::optional(number)
                                                                                              : std::nullopt;
}

// 0 where it is none, or larger than any.
double figure_of(std::string_view text) {
  return number_of_text(text).value_or(0);
}

// The number at the start of `text`, and how many characters it has. A comma counts where three digits follow it, and
// as a decimal point where a unit follows its digits: "1,5s". Other commas may mean either, and give no number. "121k"
// and "1.2M" count thousands and millions.
std::optional<std::pair<double, std::size_t>> leading_number(std::string_view text) {
  std::size_t end = 0;
  const auto digits_at = [&](std::size_t from) {
    std::size_t count = 0;
    while (from + count < text.size() && is_digit(text[from + count])) ++count;
    return count;
  };
  end += digits_at(0);
  if (end == 0) return std::nullopt;
  while (end < text.size() && text[end] == ',' && digits_at(end + 1) == 3) end += 4;
  if (end < text.size() && text[end] == ',' && digits_at(end + 1) > 0) {
    const std::size_t after = end + 1 + digits_at(end + 1);
    if (after >= text.size() || !(is_letter(text[after]) || text[after] == '%')) return std::nullopt;
    std::string with_point(text.substr(0, after));
    with_point[end] = '.';
    const auto number = number_of_text(with_point);
    return number ? std::optional(std::pair(*number, after)) : std::nullopt;
  }
  if (end < text.size() && text[end] == '.' && digits_at(end + 1) > 0) end += 1 + digits_at(end + 1);
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {  // 4.9e-05
    const std::size_t sign = end + 1 < text.size() && (text[end + 1] == '-' || text[end + 1] == '+') ? 1 : 0;
    if (const std::size_t digits = digits_at(end + 1 + sign); digits > 0) end += 1 + sign + digits;
  }
  auto number = number_of_text(text.substr(0, end));
  if (!number) return std::nullopt;
  const char sign = end < text.size() ? text[end] : ' ';
  const bool is_word = end + 1 < text.size() && is_letter(text[end + 1]);
  if (!is_word && (sign == 'k' || sign == 'K' || sign == 'M')) {
    *number *= sign == 'M' ? 1e6 : 1e3;
    ++end;
  }
  return std::pair(*number, end);
}

double seconds_in(std::string_view unit) {
  const std::string lower = to_lower(unit);
  if (lower == "ms" || lower == "msec") return 1e-3;
  if (lower == "us") return 1e-6;
  if (lower.starts_with("min")) return 60;
  return 1;
}

bool is_unit(std::string_view word) {
  static constexpr std::string_view known[] = {"s",  "sec", "secs", "seconds", "ms", "us", "min", "h",  "%",
                                               "GB", "GiB", "MB",   "MiB",     "KB", "B",  "KiB", "fps"};
  if (word.find('/') != std::string_view::npos && word.front() != '/' && word.back() != '/') return true;
  return std::find(std::begin(known), std::end(known), word) != std::end(known);
}

// Names whose figure is one without a unit too.
bool names_rate(const std::string& name) {
  const std::string lower = to_lower(name);
  for (const std::string_view word : {"throughput", "rate", "speed", "per_s", "depth", "usage", "utiliz", "time"}) {
    if (lower.find(word) != std::string::npos && lower != "learning_rate" && lower != "learning rate") return true;
  }
  return false;
}

void add_value(std::vector<LogFigure>& figures, const std::string& name, const std::string& unit, double value) {
  auto found = std::find_if(figures.begin(), figures.end(),
                            [&](const LogFigure& one) { return one.name == name && one.unit == unit; });
  if (found == figures.end()) {
    if (figures.size() == kMostFigures) return;
    found = figures.insert(figures.end(), {name, unit, {}});
  }
  found->values.push_back(value);
}

// "Throughput" of "step 7 Throughput": each step would have a figure of its own.
std::string_view without_count(std::string_view name) {
  for (const std::string_view word : {"step", "epoch", "iter", "iteration", "batch"}) {
    if (name.size() <= word.size() || to_lower(name.substr(0, word.size())) != word || name[word.size()] != ' ')
      continue;
    const std::size_t count = name.find_first_not_of("0123456789/", word.size() + 1);
    if (count == std::string_view::npos || count == word.size() + 1 || name[count] != ' ') continue;
    return without_count(name.substr(count + 1));
  }
  return name;
}

// "time" of "1.0e-04 time": the figure of the field before.
std::string_view without_figure(std::string_view name) {
  const auto trim = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of(' '), text.size()));
  };
  name = trim(name);
  const auto number = leading_number(name);
  if (!number) return name;
  std::string_view rest = name.substr(number->second);
  const std::string_view word = trim(rest).substr(0, trim(rest).find(' '));
  if (is_unit(word)) return trim(rest).substr(word.size());
  return rest.starts_with(' ') ? rest : name;  // "3D" is no figure
}

// The name that ends at `end`: back to what sets fields of a line apart.
std::string name_before(std::string_view line, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && std::string_view("|,;:=\t([])").find(line[begin - 1]) == std::string_view::npos &&
         !(line[begin - 1] == ' ' && begin > 1 && (line[begin - 2] == ' ' || line[begin - 2] == '-'))) {
    --begin;
  }
  std::string_view name = without_figure(line.substr(begin, end - begin));
  while (!name.empty() && !is_letter(name.front())) name.remove_prefix(1);
  while (!name.empty() && std::string_view(" '\"").find(name.back()) != std::string_view::npos) name.remove_suffix(1);
  return name.size() <= kLongestName ? std::string(without_count(name)) : std::string();
}

// Every "Name: 11.5s", "name=3.2 MB/s" and "Queue Depth: avg=2.2" of a line.
void add_figures(std::string_view line, std::vector<LogFigure>& figures) {
  for (std::size_t at = line.find_first_of(":="); at != std::string_view::npos; at = line.find_first_of(":=", at + 1)) {
    std::size_t from = at + 1;
    while (from < line.size() && line[from] == ' ') ++from;
    for (const std::string_view word : {"avg=", "avg:", "avg ", "mean="}) {
      if (line.substr(from).starts_with(word)) from += word.size();
    }
    const auto number = leading_number(line.substr(std::min(from, line.size())));
    if (!number) continue;
    std::size_t after = from + number->second;
    if (after < line.size() && (line[after] == ':' || line[after] == '/' || line[after] == '-')) continue;  // a clock
    while (after < line.size() && line[after] == ' ') ++after;
    std::size_t end = after;
    while (end < line.size() && (is_letter(line[end]) || line[end] == '%' || line[end] == '/')) ++end;
    std::string unit(line.substr(after, end - after));
    if (unit.empty() || !is_unit(unit)) unit.clear();
    if (unit == "%" && end < line.size() && line[end] == '|') continue;  // of a progress bar
    const std::string name = name_before(line, at);
    if (name.empty() || (unit.empty() && !names_rate(name))) continue;
    add_value(figures, name, unit, number->first);
    at = from + number->second - 1;
  }
}

// The time at the start of a line, in seconds; days count where they are written.
std::optional<double> clock_of(const std::string& line) {
  static const std::regex clock(R"((?:(\d{4})[-/](\d\d)[-/](\d\d)[ T])?\b(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?)",
                                std::regex::optimize);
  std::smatch match;
  const std::string head = line.substr(0, kClockWithin);
  if (!std::regex_search(head, match, clock)) return std::nullopt;
  const auto part = [&](std::size_t group) { return match[group].matched ? std::stod(match[group].str()) : 0.0; };
  double days = 0;
  if (match[1].matched) {  // days since 0000-03-01, by Hinnant's formula
    const double month = part(2), year = part(1) - (month <= 2 ? 1 : 0);
    const double of_year = std::floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + part(3) - 1;
    days = 365 * year + std::floor(year / 4) - std::floor(year / 100) + std::floor(year / 400) + of_year;
  }
  const double fraction = match[7].matched ? std::stod("0." + match[7].str()) : 0;
  return days * 86400 + part(4) * 3600 + part(5) * 60 + part(6) + fraction;
}

// Lines that name their step: when it was, by the clock of the line or a time that it counts from the start.
class StepClock {
 public:
  void add(std::uint64_t step, double seconds) {
    if (has_ && step > last_step_) {
      double more = seconds - last_s_;
      if (more < 0 && seconds < 86400) more += 86400;  // a clock without a date, past midnight
      if (more >= 0) steps_ += static_cast<double>(step - last_step_), seconds_ += more;
    }
    has_ = true, last_step_ = step, last_s_ = seconds;
  }
  std::optional<double> per_step() const {
    return steps_ > 0 && seconds_ > 0 ? std::optional(seconds_ / steps_) : std::nullopt;
  }

 private:
  bool has_ = false;
  std::uint64_t last_step_ = 0;
  double last_s_ = 0, steps_ = 0, seconds_ = 0;
};

// A digit before `s` or `ms`, with anything between them: "18.0s", "18 sec", "220 ms".
bool has_time(std::string_view lower) {
  for (std::size_t at = lower.find('s'); at != std::string_view::npos; at = lower.find('s', at + 1)) {
    std::size_t before = at > 0 && lower[at - 1] == 'm' ? at - 1 : at;
    while (before > 0 && lower[before - 1] == ' ') --before;
    if (before > 0 && is_digit(lower[before - 1])) return true;
  }
  return false;
}

// Times that grow from line to line count from the start of the run: they are no time of a step.
bool is_growing(const std::vector<double>& times) {
  return times.size() >= 3 && std::is_sorted(times.begin(), times.end(), std::less_equal<>()) &&
         times.back() > 1.5 * times.front();
}

class LogReader {
 public:
  explicit LogReader(const LogPattern* pattern) : pattern_(pattern) {
    if (pattern != nullptr) facts_.matched = 0;
  }

  void add(std::string_view whole) {
    const std::string line = without_escapes(whole.substr(0, kLongestLine));
    if (is_trouble(line)) {
      facts_.trouble.push_back(line.substr(0, 200));
      if (facts_.trouble.size() > kTroubleKept) facts_.trouble.erase(facts_.trouble.begin());
    }
    if (pattern_ != nullptr) add_matches(line);
    if (pattern_ == nullptr || !pattern_->tells_step()) add_step(line);
    add_figures(line, facts_.figures);
  }

  LogFacts facts() {
    if (!facts_.step_s && !told_s_.empty() && !is_growing(told_s_)) {
      facts_.step_s = told_s_.back();
      facts_.seen_steps = told_s_.size();
    }
    if (!facts_.step_s) {
      const auto by_told = is_growing(told_s_) ? told_.per_step() : std::nullopt;
      facts_.step_s = by_told ? by_told : clock_.per_step();
      if (facts_.step_s) facts_.seen_steps = step_lines_;
    }
    return std::move(facts_);
  }

 private:
  void add_matches(const std::string& line) {
    const auto groups = pattern_->find(line);
    if (groups.empty()) return;
    ++*facts_.matched;
    std::optional<std::uint64_t> epoch;
    std::optional<double> step_s;
    for (const auto& [name, text] : groups) {
      const std::optional<double> number = number_of_text(text);
      if (!number) continue;
      if (name == "step_s") {
        step_s = *number;
      } else if (name == "step_ms") {
        step_s = *number / 1e3;
      } else if (name == "steps_per_s" && *number > 0) {
        step_s = 1 / *number;
      } else if (name == "epoch" && *number >= 0) {
        epoch = static_cast<std::uint64_t>(*number);
      } else if (name != "step") {
        add_value(facts_.figures, name, "", *number);
      } else if (const auto clock = clock_of(line); clock && *number >= 0) {
        ++step_lines_;
        clock_.add(static_cast<std::uint64_t>(*number), *clock);
      }
    }
    if (step_s && *step_s > 0) tell(*step_s, epoch);
  }

  void tell(double step_s, std::optional<std::uint64_t> epoch) {
    facts_.step_s = step_s;
    ++facts_.seen_steps;
    if (!epoch) return;
    if (facts_.epochs.empty() || facts_.epochs.back().epoch != *epoch) facts_.epochs.push_back({*epoch, 0});
    facts_.epochs.back().steps_per_s = 1 / step_s;
  }

  void add_step(const std::string& line) {
    static constexpr auto kHow = std::regex::ECMAScript | std::regex::icase | std::regex::optimize;
    static const std::regex per_step(
        R"(([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*(ms|s|sec|min)/(?:it|iter|step|batch)\b)", kHow);
    static const std::regex per_second(
        R"(([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*(?:it|iters?|steps?|batch|batches)/s(?:ec)?\b)", kHow);
    static const std::regex named_time(
        R"((?:step[_ ]?time|time[_ ]?per[_ ]?step|s_per_step|step_s)\s*[:=]?\s*([0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)(?![0-9:.])\s*(ms|s|sec|min)?)",
        kHow);
    static const std::regex plain_time(R"(\b([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*(ms|s|sec|secs|seconds)\b(?!/))",
                                       kHow);
    static const std::regex step_number(R"(\b(?:step|iter(?:ation)?)s?\b[ :=#\[]*([0-9]+)(?:\s*(?:/|of)\s*([0-9]+))?)",
                                        kHow);
    static const std::regex epoch_number(R"(\bepoch\b[ :=#\[]*([0-9]+))", kHow);
    const std::string lower = to_lower(line);
    const bool names_step = lower.find("step") != std::string::npos || lower.find("iter") != std::string::npos;
    const bool has_rate = lower.find("/s") != std::string::npos || lower.find("s/") != std::string::npos ||
                          lower.find("/it") != std::string::npos;
    if (!names_step && !has_rate) return;
    std::smatch match;
    std::optional<double> step_s;
    // The last of a line: progress bars repeat theirs.
    const auto last = [&](const std::regex& regex) {
      std::optional<std::smatch> found;
      for (std::sregex_iterator one(line.begin(), line.end(), regex), end; one != end; ++one) found = *one;
      return found;
    };
    // Searching with a regular expression is dear: only in lines that may match.
    const bool names_time = lower.find("time") != std::string::npos || lower.find("step_s") != std::string::npos ||
                            lower.find("per_step") != std::string::npos;
    if (const auto slow = has_rate ? last(per_step) : std::nullopt) {
      step_s = figure_of((*slow)[1].str()) * seconds_in((*slow)[2].str());
    } else if (const auto fast = has_rate ? last(per_second) : std::nullopt) {
      if (const double rate = figure_of((*fast)[1].str()); rate > 0) step_s = 1 / rate;
    } else if (names_step && names_time && std::regex_search(line, match, named_time)) {
      step_s = figure_of(match[1].str()) * seconds_in(match[2].str());
    }
    if (step_s && *step_s > 0) {
      const auto epoch = last(epoch_number);
      tell(*step_s, epoch && (*epoch)[1].length() < 10 ? std::optional(std::stoull((*epoch)[1].str())) : std::nullopt);
    }
    if (!names_step || !std::regex_search(line, match, step_number) || match[1].length() > 15) return;
    ++step_lines_;
    const std::uint64_t step = std::stoull(match[1].str());
    if (match[2].matched && match[2].length() <= 15) facts_.of_steps = std::stoull(match[2].str());
    if (const auto clock = clock_of(line)) clock_.add(step, *clock);
    if (const auto plain = !step_s && has_time(lower) ? last(plain_time) : std::nullopt) {
      told_s_.push_back(figure_of((*plain)[1].str()) * seconds_in((*plain)[2].str()));
      told_.add(step, told_s_.back());
    }
  }

  const LogPattern* pattern_;
  LogFacts facts_;
  StepClock clock_, told_;
  std::vector<double> told_s_;  // plain times of lines that name their step
  std::uint64_t step_lines_ = 0;
};

}  // namespace

double LogFigure::median() const {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return sorted.empty() ? 0 : sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

int LogFigure::better() const noexcept {
  if (unit == "fps" || unit.ends_with("/s") || unit.ends_with("/sec")) return 1;
  for (const std::string_view time : {"s", "sec", "secs", "seconds", "ms", "us", "min", "h"}) {
    if (unit == time || unit.starts_with(std::string(time) + "/")) return -1;
  }
  return 0;
}

LogPattern::LogPattern(const std::string& text) : regex_(text, "log_pattern") {
  if (regex_.names().empty()) {
    throw Error(ErrorKind::usage, format_text("{} `{}` has no named group", option("log_pattern"), text),
                "name what each number is: 'Train step (?<step>[0-9]+).*took (?<step_s>[0-9.]+)'")
        .about("log_pattern");
  }
  for (const auto& [name, number] : regex_.names()) {
    const std::string_view meant = almost_known(name);
    if (meant.empty()) continue;
    throw Error(
        ErrorKind::usage,
        format_text("{} has a group `{}`; the nearest name with a meaning is `{}`", option("log_pattern"), name, meant),
        fmt::format("known are {}; a figure of your own needs a name that differs more", fmt::join(kKnownGroups, ", ")))
        .about("log_pattern");
  }
}

std::vector<std::pair<std::string, std::string>> LogPattern::find(std::string_view line) const {
  std::vector<std::pair<std::string, std::string>> found;
  const auto groups = regex_.search(line.substr(0, kLongestLine));
  if (groups.empty()) return found;
  for (const auto& [name, number] : regex_.names()) {
    if (groups[number]) found.emplace_back(name, *groups[number]);
  }
  return found;
}

bool LogPattern::has(std::string_view group) const noexcept {
  return std::any_of(regex_.names().begin(), regex_.names().end(), [&](const auto& one) { return one.first == group; });
}

bool LogPattern::tells_step() const noexcept {
  return has("step_s") || has("step_ms") || has("steps_per_s");
}

LogFacts parse_log(std::string_view text, const LogPattern* pattern) {
  LogReader reader(pattern);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", at), text.size());
    if (end > at) reader.add(text.substr(at, end - at));
    at = end + 1;
  }
  return reader.facts();
}

LogFacts read_log(const std::string& path, const LogPattern* pattern, std::uint64_t most_bytes) {
  const os::Fd fd = os::open_file(path, O_RDONLY | O_NONBLOCK);  // a pipe without a writer would be waited for
  const std::uint64_t size = os::file_size(fd.get(), path);
  std::string mark(2, '\0');
  mark.resize(os::read_up_to(fd.get(), std::as_writable_bytes(std::span(mark)), 0, path));
  const bool is_utf16 = has_utf16_mark(mark);
  // Of UTF-16 a part begins at an even place, and gets the mark that stands at the start of the file.
  const std::uint64_t from = size > most_bytes ? (size - most_bytes + 1) / 2 * 2 : 0;
  std::string text(size - std::min(from, size), '\0');
  text.resize(os::read_up_to(fd.get(), std::as_writable_bytes(std::span(text)), from, path));
  if (is_utf16 && from > 0) text = mark + text;
  LogFacts facts = parse_log(is_utf16 ? utf8_of_marked(text) : text, pattern);
  facts.path = path;
  return facts;
}

std::vector<ComparedFigure> compare_logs(const std::vector<LogFacts>& logs) {
  std::vector<ComparedFigure> all;
  const auto at = [&](const std::string& name, const std::string& unit) -> ComparedFigure& {
    for (ComparedFigure& one : all) {
      if (one.name == name && one.unit == unit) return one;
    }
    return all.emplace_back(ComparedFigure{name, unit, std::vector<std::optional<double>>(logs.size()), {}, 1});
  };
  for (std::size_t i = 0; i < logs.size(); ++i) {
    if (logs[i].step_s) at("step", "s").values[i] = *logs[i].step_s;
  }
  for (std::size_t i = 0; i < logs.size(); ++i) {
    for (const LogFigure& figure : logs[i].figures) at(figure.name, figure.unit).values[i] = figure.median();
  }
  for (ComparedFigure& one : all) {
    const int better = LogFigure{one.name, one.unit, {}}.better();
    std::optional<std::size_t> low, high;
    for (std::size_t i = 0; i < logs.size(); ++i) {
      if (!one.values[i]) continue;
      if (!low || *one.values[i] < *one.values[*low]) low = i;
      if (!high || *one.values[i] > *one.values[*high]) high = i;
    }
    if (!low || *low == *high) continue;
    if (*one.values[*low] > 0) one.apart = *one.values[*high] / *one.values[*low];
    if (better != 0 && one.apart > 1) one.best = better > 0 ? high : low;
  }
  return all;
}

}  // namespace stoker::measure
