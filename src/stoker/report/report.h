// What a report says, ready to be laid out: sentences, tables, and the figures of its charts. Made by from_run(),
// from_measure() and from_plan(); rendered by to_html(), to_markdown() and to_text(). A section without data is empty
// and left out. Plain values; from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stoker/base/json_facts.h"

namespace stoker::report {

using stoker::Fact;

// With its 95 % interval, where one was measured.
struct Figure {
  double value = 0;
  std::optional<double> low = {}, high = {};
};

struct Tile {
  std::string label, value, note;
};

// How points ended that did not run.
struct Failure {
  std::string status, glyph, meaning, example;
  std::size_t count = 0;
};

struct Mark {
  double x = 0;
  Figure y = {};
  std::string tip = {};    // what hovering shows
  std::string label = {};  // "chosen", "best"; empty: none
};

struct Curve {
  std::string name;
  std::vector<Mark> marks;  // by x
};

enum class Unit : std::uint8_t { per_second, bytes };

// y over x; the first curve is the one that it is about.
struct LineChart {
  std::string x_label, y_label;
  Unit unit = Unit::per_second;
  std::vector<Curve> curves = {};
  std::optional<double> knee = {};  // on the x axis
  std::optional<std::pair<double, double>> band = {};
  std::optional<double> limit = {};
  std::string limit_label = {};
  std::vector<std::pair<double, std::string>> failed = {};  // x, and the glyph of how it failed
  std::string note = {};                                    // under the chart
};

struct HeatCell {
  std::optional<double> rate = {};
  std::string glyph = {};  // where there is no rate; empty: never tried
  std::string tip = {};
  bool is_best = false, is_chosen = false;
};

struct HeatMap {
  std::string down, across;                // knobs
  std::vector<std::string> rows, columns;  // their values
  std::vector<std::vector<HeatCell>> cells = {};
  std::string note = {};
};

enum class Stage : std::uint8_t { compute, h2d, fetch, prep, handoff, wait };  // wait: not split further
std::string_view name(Stage stage) noexcept;                                   // "hand-off"

struct SplitBar {
  std::string label;
  std::vector<std::pair<Stage, double>> parts;  // ms per step
  std::string note = {};

  double total_ms() const noexcept;
};

struct TimePoint {
  double from_s = 0, to_s = 0;
  std::optional<double> ready = {};    // batches
  std::optional<double> compute = {};  // share of the time, 0 to 1
};

struct Timeline {
  std::string label;
  std::vector<TimePoint> points = {};
  std::string note = {};
};

struct Table {
  std::string title;
  std::vector<std::string> header = {};
  std::vector<std::vector<std::string>> rows = {};
  std::string note = {};
  std::size_t text_columns = 1;  // from the left; the others hold figures
};

struct Option {
  std::string title = {}, gain = {}, text = {};
  std::vector<Fact> facts = {};
  std::string command = {};  // exact; empty: none
};

struct Comparison {
  std::string sentence;
  Table table = {};
  std::vector<SplitBar> bars = {};
};

struct Command {
  std::string does, text;
};

struct Link {
  std::string path, what;  // relative to the report
};

struct Report {
  std::string title, made;  // `made`: when and by which version
  std::string headline;
  bool has_result = true;  // false: nothing ran that could be reported
  std::vector<Tile> tiles = {};
  std::vector<std::string> context = {};
  std::vector<Fact> configuration = {}, environment = {};
  std::string outcome = {};  // one sentence
  std::vector<Failure> failures = {};
  std::vector<std::string> findings = {};
  std::optional<LineChart> knee = {};
  std::optional<HeatMap> heat = {};
  std::vector<SplitBar> split = {};
  std::string split_note = {};
  std::vector<Timeline> timelines = {};
  std::vector<LineChart> memory = {};
  std::string memory_note = {};
  std::optional<Table> ranks = {};  // of a job on several nodes
  std::optional<Table> choice = {};
  std::vector<std::string> reasons = {};  // of the choice, and what would change it
  std::vector<Option> options = {};
  std::vector<std::string> plan_sentences = {};
  std::vector<Table> plan = {};
  std::optional<Comparison> comparison = {};
  std::optional<Table> trials = {};
  std::vector<Command> commands = {};
  std::vector<Link> links = {};
};

std::string to_html(const Report& report);
std::string to_markdown(const Report& report);
std::string to_text(const Report& report, int width = 80);

}  // namespace stoker::report
