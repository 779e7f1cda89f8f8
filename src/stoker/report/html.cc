// The report as one HTML file that needs no other and no network. Well-formed as XML too, so that a parser can check
// it.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "stoker/base/version.h"
#include "stoker/report/charts.h"
#include "stoker/report/page_style.h"
#include "stoker/report/report.h"
#include "stoker/report/svg.h"
#include "stoker/report/words.h"

namespace stoker::report {
namespace {

// A path as the target of a link. A name such as `javascript:x` never becomes a scheme.
std::string href(std::string_view path) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  std::string out;
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

// Sentences: a figure and its per cent sign stay on one line.
std::string prose(std::string_view text) {
  std::string out = escaped(text);
  for (std::size_t at = out.find(" %"); at != std::string::npos; at = out.find(" %", at + 2))
    out.replace(at, 1, "\u00a0");
  return out;
}

// Lists of settings, in a narrow column: a long name=value breaks behind its equals sign.
std::string breakable(std::string_view text) {
  std::string out = escaped(text);
  for (std::size_t at = out.find('='); at != std::string::npos; at = out.find('=', at + 1))
    out.insert(at + 1, "<wbr/>");
  return out;
}

class Page {
 public:
  explicit Page(const Report& report) : report_(report) {}

  std::string whole() {
    body();
    std::string contents;
    for (const auto& [id, title] : contents_) contents += fmt::format("<li><a href=\"#{}\">{}</a></li>", id, title);
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta "
        "charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
        "<meta name=\"generator\" content=\"stoker {}\"/>\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src '{}'\"/>\n"
        "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}\n<div class=\"page\">\n<nav "
        "aria-label=\"contents\"><ul>{}</ul></nav>\n"
        "{}</div>\n<div id=\"tip\" role=\"status\" hidden=\"hidden\"></div>\n<script>{}</script>\n</body>\n</html>\n",
        kVersion, kScriptHash, escaped(report_.title), kPageStyle, kPatterns, contents, out_, kPageScript);
  }

 private:
  void add(const std::string& html) { out_ += html + "\n"; }
  void open(std::string_view id, std::string_view title) {
    contents_.emplace_back(id, title);
    add(fmt::format("<section id=\"{}\">\n<h2>{}</h2>", id, title));
  }
  void close() { add("</section>"); }
  void paragraph(std::string_view text, std::string_view style = {}) {
    if (text.empty()) return;
    add(style.empty() ? fmt::format("<p>{}</p>", prose(text))
                      : fmt::format("<p class=\"{}\">{}</p>", style, prose(text)));
  }

  void body() {
    head();
    context();
    configuration();
    outcomes();
    findings();
    ranks();
    charts();
    choice();
    options();
    plan();
    comparison();
    commands();
    raw();
    add(fmt::format("<footer>{}</footer>", escaped(report_.made)));
  }

  void head() {
    add("<header>");
    add("<p class=\"over\">Stoker report</p>");
    add(fmt::format("<h1>{}</h1>", escaped(report_.title)));
    add(fmt::format("<p class=\"headline\">{}</p>", prose(report_.headline)));
    if (!report_.tiles.empty()) {
      add("<dl class=\"tiles\">");
      for (const Tile& tile : report_.tiles) {
        add(fmt::format("<div class=\"tile\"><dt>{}</dt><dd class=\"figure\">{}</dd><dd class=\"under\">{}</dd></div>",
                        escaped(tile.label), escaped(tile.value), breakable(tile.note)));
      }
      add("</dl>");
    }
    add("</header>");
  }

  void context() {
    if (report_.context.empty()) return;
    open("context", "Context");
    for (const std::string& text : report_.context) paragraph(text);
    close();
  }

  void facts(const std::vector<Fact>& list) {
    add("<dl class=\"facts\">");
    for (const Fact& fact : list) add(fmt::format("<dt>{}</dt><dd>{}</dd>", escaped(fact.name), escaped(fact.value)));
    add("</dl>");
  }

  void configuration() {
    if (report_.configuration.empty() && report_.environment.empty()) return;
    open("configuration", "Configuration and environment");
    if (!report_.configuration.empty()) facts(report_.configuration);
    if (!report_.environment.empty()) {
      add("<h3>Environment</h3>");
      facts(report_.environment);
    }
    close();
  }

  void outcomes() {
    if (report_.outcome.empty()) return;
    open("outcomes", "Outcomes");
    paragraph(report_.outcome);
    if (!report_.failures.empty()) {
      add("<div class=\"scroll\"><table><thead><tr><th class=\"w\">how it ended</th><th>points</th><th "
          "class=\"w\">what that means</th></tr></thead><tbody>");
      for (const Failure& failure : report_.failures) {
        add(fmt::format(
            "<tr><td class=\"w n\"><span class=\"glyph-key\">{}</span> {}</td><td>{}</td><td "
            "class=\"w\">{}{}</td></tr>",
            escaped(failure.glyph), escaped(failure.status), failure.count, escaped(failure.meaning),
            failure.example.empty() ? ""
                                    : fmt::format("<br/><code>{}</code>", escaped(failure.example.substr(0, 300)))));
      }
      add("</tbody></table></div>");
    }
    close();
  }

  void findings() {
    if (report_.findings.empty()) return;
    open("findings", "Findings");
    add("<ul class=\"findings\">");
    for (const std::string& text : report_.findings) add(fmt::format("<li>{}</li>", prose(text)));
    add("</ul>");
    close();
  }

  // Both sizes of a drawing; the style shows the one that fits.
  template <typename Draw>
  void both(Draw draw) {
    add(fmt::format("<div class=\"wide scroll\">{}</div>", draw(kWide)));
    add(fmt::format("<div class=\"narrow scroll\">{}</div>", draw(kNarrow)));
  }

  void line_figure(const LineChart& chart) {
    add("<figure>");
    both([&](double width) { return line_chart(chart, width); });
    if (chart.curves.size() > 1) {
      std::string keys;
      for (std::size_t i = 0; i < chart.curves.size(); ++i) {
        keys += fmt::format(
            "<li><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"30\" height=\"10\" aria-hidden=\"true\"><path "
            "d=\"M0 5H30\" class=\"curve c{}\"/></svg>{}</li>",
            std::min<std::size_t>(i, kCurveStyles - 1), escaped(chart.curves[i].name));
      }
      add(fmt::format("<ul class=\"legend narrow-legend\">{}</ul>", keys));
    }
    if (!chart.note.empty()) add(fmt::format("<figcaption>{}</figcaption>", prose(chart.note)));
    add("</figure>");
  }

  void split_figure(const std::vector<SplitBar>& bars, std::string_view note) {
    add("<figure>");
    both([&](double width) { return split_chart(bars, width); });
    std::string keys;
    for (const Stage stage : {Stage::compute, Stage::h2d, Stage::fetch, Stage::prep, Stage::handoff, Stage::wait}) {
      const bool is_used = std::any_of(bars.begin(), bars.end(), [&](const SplitBar& bar) {
        return std::any_of(bar.parts.begin(), bar.parts.end(), [&](const auto& part) { return part.first == stage; });
      });
      if (!is_used) continue;
      const std::string style = stage == Stage::handoff ? "handoff" : std::string(name(stage));
      keys += fmt::format(
          "<li><svg xmlns=\"http://www.w3.org/2000/svg\" width=\"16\" height=\"12\" aria-hidden=\"true\"><rect "
          "width=\"16\" height=\"12\" class=\"s-{0}\"/>"
          "<rect width=\"16\" height=\"12\" class=\"grain g-{0}\"/></svg>{1}</li>",
          style, name(stage));
    }
    add(fmt::format("<ul class=\"legend\">{}</ul>", keys));
    if (!note.empty()) add(fmt::format("<figcaption>{}</figcaption>", prose(note)));
    add("</figure>");
  }

  void charts() {
    if (report_.knee) {
      open("knee", "Knee curve");
      line_figure(*report_.knee);
      close();
    }
    if (report_.heat) {
      open("heat-map", "Heat map");
      add("<figure>");
      both([&](double width) { return heat_map(*report_.heat, width); });
      std::string keys;
      for (const Failure& failure : report_.failures)
        keys += fmt::format("<li><span class=\"glyph-key\">{}</span>{} ({})</li>", escaped(failure.glyph),
                            escaped(failure.status), failure.count);
      if (!keys.empty()) add(fmt::format("<ul class=\"legend\">{}</ul>", keys));
      add(fmt::format("<figcaption>{}</figcaption>", prose(report_.heat->note)));
      add("</figure>");
      close();
    }
    if (!report_.split.empty()) {
      open("step-split", "Step split");
      split_figure(report_.split, report_.split_note);
      close();
    }
    if (!report_.timelines.empty()) {
      open("over-time", "Queue depth and device activity");
      for (const Timeline& line : report_.timelines) {
        add(fmt::format("<h3>{}</h3><figure>", escaped(line.label)));
        both([&](double width) { return timeline_chart(line, width); });
        if (!line.note.empty()) add(fmt::format("<figcaption>{}</figcaption>", prose(line.note)));
        add("</figure>");
      }
      close();
    }
    if (!report_.memory.empty() || !report_.memory_note.empty()) {
      open("memory", "Memory");
      paragraph(report_.memory_note);
      for (const LineChart& chart : report_.memory) line_figure(chart);
      close();
    }
  }

  void table(const Table& table) {
    if (!table.title.empty()) add(fmt::format("<h3>{}</h3>", escaped(table.title)));
    std::string html = "<div class=\"scroll\"><table><thead><tr>";
    for (std::size_t i = 0; i < table.header.size(); ++i)
      html += fmt::format("<th{}>{}</th>", i < table.text_columns ? " class=\"w\"" : "", escaped(table.header[i]));
    html += "</tr></thead><tbody>";
    for (const std::vector<std::string>& row : table.rows) {
      html += "<tr>";
      for (std::size_t i = 0; i < row.size(); ++i) {
        const bool is_short = row[i].size() <= 24;
        const std::string style = std::string(i < table.text_columns ? "w" : "") + (is_short ? " n" : "");
        html += fmt::format("<td class=\"{}\">{}</td>", style, prose(row[i]));
      }
      html += "</tr>\n";
    }
    add(html + "</tbody></table></div>");
    paragraph(table.note, "small");
  }

  void ranks() {
    if (!report_.ranks) return;
    open("ranks", "Ranks and nodes");
    table(*report_.ranks);
    close();
  }

  void choice() {
    if (!report_.choice) return;
    open("choice", "Best and chosen configuration");
    for (const std::string& reason : report_.reasons) paragraph(reason);
    table(*report_.choice);
    close();
  }

  void options() {
    if (report_.options.empty()) return;
    open("options", "Options");
    add("<ol class=\"options\">");
    for (const Option& option : report_.options) {
      add("<li>");
      if (!option.gain.empty()) add(fmt::format("<span class=\"gain\">{}</span>", escaped(option.gain)));
      add(fmt::format("<h3>{}</h3>", escaped(option.title)));
      paragraph(option.text);
      if (!option.facts.empty()) facts(option.facts);
      if (!option.command.empty()) add(fmt::format("<pre>{}</pre>", escaped(option.command)));
      add("</li>");
    }
    add("</ol>");
    close();
  }

  void plan() {
    if (report_.plan_sentences.empty() && report_.plan.empty()) return;
    open("plan", "Plan");
    for (const std::string& text : report_.plan_sentences) paragraph(text);
    for (const Table& one : report_.plan) table(one);
    close();
  }

  void comparison() {
    if (!report_.comparison) return;
    open("before-after", "Before and after");
    paragraph(report_.comparison->sentence);
    if (!report_.comparison->bars.empty()) split_figure(report_.comparison->bars, "");
    table(report_.comparison->table);
    close();
  }

  void commands() {
    if (report_.commands.empty()) return;
    open("commands", "Commands to reproduce");
    for (const Command& command : report_.commands) {
      paragraph(command.does, "small");
      add(fmt::format("<pre>{}</pre>", escaped(command.text)));
    }
    close();
  }

  void raw() {
    if (report_.links.empty() && !report_.trials) return;
    open("raw", "Raw data");
    if (!report_.links.empty()) {
      add("<dl class=\"facts\">");
      for (const Link& link : report_.links)
        add(fmt::format("<dt><a href=\"{}\">{}</a></dt><dd>{}</dd>", href(link.path), escaped(link.path),
                        escaped(link.what)));
      add("</dl>");
    }
    if (report_.trials) {
      add(fmt::format("<details class=\"trials\"><summary>{} in a table</summary>",
                      escaped(plural(report_.trials->rows.size(), "trial"))));
      table(*report_.trials);
      add("</details>");
    }
    close();
  }

  const Report& report_;
  std::string out_;
  std::vector<std::pair<std::string, std::string>> contents_;
};

}  // namespace

std::string to_html(const Report& report) {
  return Page(report).whole();
}

}  // namespace stoker::report
