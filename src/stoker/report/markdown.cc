// The report as Markdown that can be committed beside the code: the same sections as the page, charts as tables and
// text. And its first lines for the terminal.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/report/plain.h"
#include "stoker/report/report.h"
#include "stoker/report/words.h"

namespace stoker::report {
namespace {

// What others wrote must stay text: no table cell ends early, no tag, no link, no emphasis.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (c == '<') {
      out += "&lt;";
      continue;
    }
    if (std::string_view("\\`*|[]").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string fenced(std::string_view text, std::string_view language) {
  std::string fence = "```";
  while (text.find(fence) != std::string_view::npos) fence += '`';
  return fmt::format("{}{}\n{}{}{}\n", fence, language, text, text.ends_with('\n') ? "" : "\n", fence);
}

class MarkdownPage {
 public:
  explicit MarkdownPage(const Report& report) : report_(report) {}

  std::string whole() {
    add(fmt::format("# {}\n\n**{}**\n", plain(report_.title), plain(report_.headline)));
    if (!report_.tiles.empty()) {
      for (const Tile& tile : report_.tiles)
        add(fmt::format("- {}: **{}** ({})", plain(tile.label), plain(tile.value), plain(tile.note)));
      add("");
    }
    sentences("Context", report_.context);
    if (!report_.configuration.empty() || !report_.environment.empty()) {
      add("## Configuration and environment\n");
      facts(report_.configuration);
      if (!report_.environment.empty()) add("### Environment\n");
      facts(report_.environment);
    }
    outcomes();
    if (!report_.findings.empty()) {
      add("## Findings\n");
      for (const std::string& text : report_.findings) add("- " + plain(text));
      add("");
    }
    if (report_.ranks) {
      add("## Ranks and nodes\n");
      table(*report_.ranks);
    }
    charts();
    if (report_.choice) {
      add("## Best and chosen configuration\n");
      for (const std::string& reason : report_.reasons) add(plain(reason) + "\n");
      table(*report_.choice);
    }
    options();
    if (!report_.plan_sentences.empty() || !report_.plan.empty()) {
      add("## Plan\n");
      for (const std::string& text : report_.plan_sentences) add(plain(text) + "\n");
      for (const Table& one : report_.plan) table(one);
    }
    if (report_.comparison) {
      add("## Before and after\n");
      if (!report_.comparison->sentence.empty()) add(plain(report_.comparison->sentence) + "\n");
      split(report_.comparison->bars);
      table(report_.comparison->table);
    }
    if (!report_.commands.empty()) {
      add("## Commands to reproduce\n");
      for (const Command& command : report_.commands)
        add(fmt::format("{}:\n\n{}", plain(command.does), fenced(command.text, "sh")));
    }
    raw();
    add(plain(report_.made));
    return std::move(out_);
  }

 private:
  void add(const std::string& text) { out_ += text + "\n"; }

  void sentences(std::string_view title, const std::vector<std::string>& list) {
    if (list.empty()) return;
    add(fmt::format("## {}\n", title));
    for (const std::string& text : list) add(plain(text) + "\n");
  }

  void facts(const std::vector<Fact>& list) {
    for (const Fact& fact : list) add(fmt::format("- {}: {}", plain(fact.name), plain(fact.value)));
    if (!list.empty()) add("");
  }

  void table(const Table& table) {
    if (!table.title.empty()) add(fmt::format("### {}\n", plain(table.title)));
    std::string line = "|", rule = "|";
    for (std::size_t i = 0; i < table.header.size(); ++i) {
      line += fmt::format(" {} |", plain(table.header[i]));
      rule += i < table.text_columns ? "---|" : "---:|";
    }
    add(line + "\n" + rule);
    for (const auto& row : table.rows) {
      line = "|";
      for (const std::string& cell : row) line += fmt::format(" {} |", plain(cell));
      add(line);
    }
    add("");
    if (!table.note.empty()) add(plain(table.note) + "\n");
  }

  void outcomes() {
    if (report_.outcome.empty()) return;
    add(fmt::format("## Outcomes\n\n{}\n", plain(report_.outcome)));
    if (report_.failures.empty()) return;
    add("| | how it ended | points | what that means | for example |\n|---|---|---:|---|---|");
    for (const Failure& failure : report_.failures) {
      add(fmt::format("| {} | {} | {} | {} | {} |", failure.glyph, failure.status, failure.count,
                      plain(failure.meaning), plain(failure.example.substr(0, 200))));
    }
    add("");
  }

  void lines(const LineChart& chart) {
    double most = 0;
    for (const Curve& curve : chart.curves) {
      for (const Mark& mark : curve.marks) most = std::max(most, mark.y.value);
    }
    const auto text = [&](double value) { return chart.unit == Unit::bytes ? byte_text(value) : per_second(value); };
    for (const Curve& curve : chart.curves) {
      const bool is_main = &curve == &chart.curves[0];
      if (chart.curves.size() > 1) add(fmt::format("{}:\n", plain(curve.name)));
      add(fmt::format("| {} | {} | 95 % interval | | |\n|---:|---:|---|---|---|", plain(chart.x_label),
                      plain(chart.y_label)));
      for (const Mark& mark : curve.marks) {
        std::string label = mark.label;
        if (is_main && chart.knee && mark.x == *chart.knee) label += label.empty() ? "knee" : ", knee";
        add(fmt::format("| {} | {} | {} | {} | {} |", short_number(mark.x), text(mark.y.value),
                        mark.y.low && mark.y.high ? fmt::format("{} to {}", text(*mark.y.low), text(*mark.y.high)) : "",
                        bar_of_blocks(most > 0 ? mark.y.value / most : 0, 24), label));
      }
      add("");
    }
    if (chart.limit) add(fmt::format("Limit: {}.\n", text(*chart.limit)));
    for (const auto& [x, glyph] : chart.failed)
      add(fmt::format("{} at {}={}\n", glyph, plain(chart.x_label), short_number(x)));
    if (!chart.note.empty()) add(plain(chart.note) + "\n");
  }

  void split(const std::vector<SplitBar>& bars) {
    if (bars.empty()) return;
    std::vector<Stage> used;
    for (const Stage stage : {Stage::compute, Stage::h2d, Stage::fetch, Stage::prep, Stage::handoff, Stage::wait}) {
      for (const SplitBar& bar : bars) {
        const bool has =
            std::any_of(bar.parts.begin(), bar.parts.end(), [&](const auto& part) { return part.first == stage; });
        if (has && (used.empty() || used.back() != stage)) used.push_back(stage);
      }
    }
    Table one{.title = "", .header = {"", "step"}};
    for (const Stage stage : used) one.header.emplace_back(name(stage));
    for (const SplitBar& bar : bars) {
      std::vector<std::string> row = {bar.label, milliseconds(bar.total_ms())};
      for (const Stage stage : used) {
        double ms = 0;
        for (const auto& part : bar.parts) ms += part.first == stage ? part.second : 0;
        row.push_back(ms > 0 ? fmt::format("{} ({})", milliseconds(ms), percent(ms / bar.total_ms())) : "0");
      }
      one.rows.push_back(std::move(row));
    }
    table(one);
  }

  void charts() {
    if (report_.knee) {
      add("## Knee curve\n");
      lines(*report_.knee);
    }
    if (report_.heat) {
      std::string key;
      for (const Failure& failure : report_.failures) key += fmt::format("; {} {}", failure.glyph, failure.status);
      add(fmt::format("## Heat map\n\n{}\n{}; \\* chosen, + best{}.\n", fenced(heat_text(*report_.heat), ""),
                      plain(report_.heat->note), key));
    }
    if (!report_.split.empty()) {
      add("## Step split\n");
      split(report_.split);
      if (!report_.split_note.empty()) add(plain(report_.split_note) + "\n");
    }
    if (!report_.timelines.empty()) {
      add("## Queue depth and device activity\n");
      for (const Timeline& line : report_.timelines) {
        std::vector<std::optional<double>> compute, ready;
        double deepest = 0, seconds = 0;
        for (const TimePoint& point : line.points) {
          compute.push_back(point.compute);
          ready.push_back(point.ready);
          deepest = std::max(deepest, point.ready.value_or(0));
          seconds = std::max(seconds, point.to_s);
        }
        add(fmt::format("{}, {} s:\n\n{}\n{}\n", plain(line.label), short_number(seconds),
                        fenced(fmt::format("compute, 0 to 100 %   {}\nready, 0 to {:<9.3g} {}\n", sparkline(compute, 1),
                                           deepest, sparkline(ready, deepest)),
                               ""),
                        plain(line.note)));
      }
    }
    if (!report_.memory.empty() || !report_.memory_note.empty()) {
      add("## Memory\n");
      if (!report_.memory_note.empty()) add(plain(report_.memory_note) + "\n");
      for (const LineChart& chart : report_.memory) lines(chart);
    }
  }

  void options() {
    if (report_.options.empty()) return;
    add("## Options\n");
    for (const Option& option : report_.options) {
      add(fmt::format("### {}{}\n", plain(option.title), option.gain.empty() ? "" : ": " + plain(option.gain)));
      if (!option.text.empty()) add(plain(option.text) + "\n");
      facts(option.facts);
      if (!option.command.empty()) add(fenced(option.command, "sh"));
    }
  }

  void raw() {
    if (report_.links.empty() && !report_.trials) return;
    add("## Raw data\n");
    for (const Link& link : report_.links)
      add(fmt::format("- [{}](<{}>): {}", plain(link.path), plain(link.path), plain(link.what)));
    if (!report_.links.empty()) add("");
    if (report_.trials) table(*report_.trials);
  }

  const Report& report_;
  std::string out_;
};

}  // namespace

std::string to_markdown(const Report& report) {
  return MarkdownPage(report).whole();
}

std::string to_text(const Report& report, int width) {
  const auto columns = static_cast<std::size_t>(std::max(40, width));
  std::string out = wrapped(one_line(report.headline), columns - 8, "        ");
  out = fmt::format("stoker: {}\n", out);
  const auto row = [&](std::string_view label, std::string_view text) {
    out += fmt::format("  {:<9} {}\n", label, wrapped(one_line(text), columns - 12, "            "));
  };
  row("report", report.title);
  if (!report.outcome.empty()) row("outcome", report.outcome);
  for (const std::string& reason : report.reasons) row("why", reason);
  for (const std::string& finding : report.findings) row("finding", finding);
  for (const std::string& text : report.plan_sentences) row("plan", text);
  for (const Option& option : report.options)
    row("option", fmt::format("{}{}{}{}", option.title, option.gain.empty() ? "" : ", " + option.gain,
                              option.text.empty() ? "" : ": ", option.text));
  if (report.heat)
    out += "\n" + heat_text(*report.heat) + fmt::format("{}; * chosen, + best\n", one_line(report.heat->note));
  return out;
}

}  // namespace stoker::report
