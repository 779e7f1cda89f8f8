#include "measure_log.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/base/utf8.h"
#include "stoker/base/version.h"

namespace stoker::cli {
namespace {

constexpr std::uint64_t kMostOfALog = 16 * kMiB;  // of its end: seconds of work

// As the log itself writes it, about: whole numbers stay whole.
std::string value_text(double value) {
  return value >= 1000 ? format_rate(value) : fmt::format("{:.4g}", value);
}

std::string file_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string named(const std::string& name, const std::string& unit) {
  return unit.empty() ? name : fmt::format("{} ({})", name, unit);
}

// Names come from logs: only what every terminal shows as one column.
std::string cell(std::string_view text) {
  std::string plain;
  for (const char c : printable(text)) plain += c >= ' ' && c < 127 ? c : '?';
  return plain;
}

std::string headline(const std::vector<measure::LogFacts>& logs, const std::vector<measure::ComparedFigure>& all) {
  if (logs.size() == 1) {
    return logs[0].step_s ? fmt::format("{:.3g} s per step, by `{}`", *logs[0].step_s, logs[0].path)
                          : fmt::format("`{}` names no time per step", logs[0].path);
  }
  const auto most = std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.best.has_value(), a.apart) < std::pair(b.best.has_value(), b.apart);
  });
  if (most == all.end()) return fmt::format("{} logs, and no figure in any of them", logs.size());
  const std::string start = fmt::format("{} logs, {} figure{}", logs.size(), all.size(), all.size() == 1 ? "" : "s");
  if (!most->best) return start;
  return fmt::format("{}; {} differs most: {:.2f}x, best in {}", start, most->name, most->apart,
                     file_of(logs[*most->best].path));
}

std::vector<std::string> notes_of(const std::vector<measure::LogFacts>& logs) {
  std::vector<std::string> notes;
  for (const measure::LogFacts& log : logs) {
    for (const std::string& line : log.trouble) notes.push_back(fmt::format("in `{}`: {}", log.path, line));
    if (log.matched && *log.matched == 0)
      notes.push_back(fmt::format("no line of `{}` matches --log-pattern", log.path));
    if (!log.matched && !log.step_s && log.figures.empty()) {
      notes.push_back(
          fmt::format("`{}` has no figure that is known: say with --log-pattern how it prints them", log.path));
    }
  }
  if (logs.size() > 1) {
    notes.emplace_back(
        "a log does not say whether its files were in the page cache: the second of two runs may be faster "
        "for that alone; change one setting at a time, and run each twice");
  }
  return notes;
}

}  // namespace

std::optional<measure::LogPattern> log_pattern(const Arguments& arguments) {
  if (!arguments.has("--log-pattern")) return std::nullopt;
  return measure::LogPattern(arguments.text("--log-pattern"));
}

std::string log_line(const measure::LogFigure& figure) {
  std::string text =
      fmt::format("{} {}{}{}", figure.name, value_text(figure.median()), figure.unit.empty() ? "" : " ", figure.unit);
  if (figure.values.size() > 1) {
    const auto [low, high] = std::minmax_element(figure.values.begin(), figure.values.end());
    text += fmt::format(" (median of {}, {} to {})", figure.values.size(), value_text(*low), value_text(*high));
  }
  return text;
}

Json to_json(const measure::LogFacts& log) {
  Json json = {{"file", log.path}};
  json["step_s"] = log.step_s ? Json(*log.step_s) : Json(nullptr);
  json["seen_steps"] = log.seen_steps;
  json["of_steps"] = log.of_steps ? Json(*log.of_steps) : Json(nullptr);
  json["epochs"] = Json::array();
  for (const measure::LogEpoch& epoch : log.epochs)
    json["epochs"].push_back({{"epoch", epoch.epoch}, {"steps_per_s", epoch.steps_per_s}});
  json["figures"] = Json::array();
  for (const measure::LogFigure& figure : log.figures) {
    json["figures"].push_back({{"name", figure.name},
                               {"unit", figure.unit.empty() ? Json(nullptr) : Json(figure.unit)},
                               {"median", figure.median()},
                               {"values", figure.values}});
  }
  json["trouble"] = log.trouble;
  return json;
}

int measure_logs(const Arguments& arguments, const Face& face) {
  if (!arguments.operands().empty())
    throw Error(ErrorKind::usage, "`--log` and a command exclude each other",
                "either logs of jobs that ran, or a job to start; --pid watches one that runs");
  const std::optional<measure::LogPattern> pattern = log_pattern(arguments);
  std::vector<measure::LogFacts> logs;
  for (const std::string& file : arguments.all("--log"))
    logs.push_back(measure::read_log(file, pattern ? &*pattern : nullptr, kMostOfALog));
  const std::vector<measure::ComparedFigure> all = measure::compare_logs(logs);
  const std::vector<std::string> notes = notes_of(logs);
  if (face.json) {
    Json json = {{"schema", "stoker.measure-log/1"}, {"stoker_version", kVersion}, {"headline", headline(logs, all)}};
    json["logs"] = Json::array();
    for (const measure::LogFacts& log : logs) json["logs"].push_back(to_json(log));
    json["compared"] = Json::array();
    for (const measure::ComparedFigure& one : all) {
      Json values = Json::array();
      for (const std::optional<double>& value : one.values) values.push_back(value ? Json(*value) : Json(nullptr));
      json["compared"].push_back({{"name", one.name},
                                  {"unit", one.unit.empty() ? Json(nullptr) : Json(one.unit)},
                                  {"values", values},
                                  {"best", one.best ? Json(*one.best) : Json(nullptr)},
                                  {"apart", one.apart}});
    }
    json["notes"] = notes;
    answer(json.dump(2) + "\n");
    return 0;
  }
  std::string out = fmt::format("{} {}\n", face.out.paint(Paint::bold, "stoker:"), printable(headline(logs, all)));
  std::vector<std::vector<std::string>> rows = {{"figure"}};
  for (const measure::LogFacts& log : logs) rows[0].push_back(cell(file_of(log.path)));
  if (logs.size() > 1) rows[0].insert(rows[0].end(), {"apart", "best"});
  for (const measure::ComparedFigure& one : all) {
    std::vector<std::string> cells = {cell(named(one.name, one.unit))};
    for (const std::optional<double>& value : one.values) cells.push_back(value ? value_text(*value) : "");
    if (logs.size() > 1) {
      cells.push_back(one.apart > 1 ? fmt::format("{:.2f}x", one.apart) : "");
      cells.push_back(one.best ? cell(file_of(logs[*one.best].path)) : "");
    }
    rows.push_back(std::move(cells));
  }
  if (!all.empty()) out += table(rows, "  ");
  for (const measure::LogFacts& log : logs) {
    if (log.epochs.size() < 2) continue;
    std::vector<std::vector<std::string>> epochs = {{"epoch", "it/s"}};
    for (const measure::LogEpoch& epoch : log.epochs)
      epochs.push_back({std::to_string(epoch.epoch), fmt::format("{:.2f}", epoch.steps_per_s)});
    if (logs.size() > 1) out += labelled(face.out, "log", 9, printable(log.path));
    out += table(epochs, "  ");
  }
  for (const std::string& note : notes) out += labelled(face.out, "note", 9, printable(note));
  answer(out);
  return 0;
}

}  // namespace stoker::cli
