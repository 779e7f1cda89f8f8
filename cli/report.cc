// stoker report: what a run found out, as a page that people like to read.
#include <filesystem>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/report/files.h"

#include "files.h"
#include "json_head.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

struct Wanted {
  bool html = false, markdown = false;
  std::string file;  // of the one rendering that is wanted; empty: beside the data
};

Wanted wanted(const Arguments& arguments) {
  Wanted wanted{arguments.has("--html"), arguments.has("--md"), arguments.text("--out")};
  if (wanted.file.empty()) {
    if (!wanted.html && !wanted.markdown) wanted.html = wanted.markdown = true;
    return wanted;
  }
  if (wanted.html && wanted.markdown) {
    throw Error(ErrorKind::usage, "`--out` names one file, but --html and --md ask for two", "run it once for each");
  }
  if (!wanted.html && !wanted.markdown) {
    const std::string extension = std::filesystem::path(wanted.file).extension().string();
    wanted.html = extension == ".html" || extension == ".htm";
    wanted.markdown = extension == ".md";
    if (!wanted.html && !wanted.markdown) {
      throw Error(ErrorKind::usage, fmt::format("what is `{}` to be?", wanted.file),
                  "name it .html or .md, or add --html or --md");
    }
  }
  return wanted;
}

// Links lead from where the report is to where the data is.
void move_links(report::Report& report, const std::string& data_folder, const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path there = fs::weakly_canonical(fs::absolute(data_folder.empty() ? "." : data_folder), error);
  const fs::path here = fs::weakly_canonical(fs::absolute(file).parent_path(), error);
  if (error) return;
  for (report::Link& link : report.links) {
    const std::string path = (there / link.path).lexically_relative(here).string();
    if (!path.empty()) link.path = path;
  }
}

Json to_json(const report::Report& report, const std::vector<std::pair<std::string, std::size_t>>& written) {
  Json json = json_head("report");
  json.update({{"title", report.title},
               {"headline", report.headline},
               {"outcome", report.outcome},
               {"findings", report.findings},
               {"reasons", report.reasons}});
  json["failures"] = Json::object();
  for (const report::Failure& failure : report.failures) json["failures"][failure.status] = failure.count;
  json["plan"] = report.plan_sentences;
  json["change"] = report.comparison ? Json(report.comparison->sentence) : Json(nullptr);
  json["written"] = Json::array();
  for (const auto& [file, bytes] : written) json["written"].push_back({{"file", file}, {"bytes", bytes}});
  return json;
}

int run_report(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  const Wanted wants = wanted(arguments);
  report::ReportOptions options;
  options.places = arguments.operands();
  options.before = arguments.text("--before");
  options.after = arguments.text("--after");
  if (options.before.empty() != options.after.empty()) {
    throw Error(ErrorKind::usage, "`--before` and `--after` belong together", "give the folders of both runs");
  }
  if (options.before.empty()) (void)arguments.operand();
  for (const std::string& text : arguments.all("--map")) tune::add_column(options.columns, text);
  report::Report report = report::read_report(options);

  const std::string place = options.places.empty() ? options.after : options.places.back();
  const std::string folder =
      std::filesystem::is_directory(place) ? place : std::filesystem::path(place).parent_path().string();
  const std::string stem =
      std::filesystem::is_directory(place)
          ? folder + "/report"
          : (std::filesystem::path(place).parent_path() / (std::filesystem::path(place).stem().string() + "-report"))
                .string();
  if (!std::filesystem::is_directory(place))
    report.links = {
        {std::filesystem::path(place).filename().string(), place.ends_with(".json") ? "the plan" : "the rows"}};
  std::vector<std::pair<std::string, std::size_t>> written;
  const auto write = [&](const std::string& file, std::string (*render)(const report::Report&)) {
    report::Report own = report;
    if (file != "-") move_links(own, folder, file);
    const std::string text = render(own);
    if (file == "-") {
      answer(text);
      return;
    }
    report::write_report(file, text, arguments.has("--force"));
    written.emplace_back(file, text.size());
  };
  if (wants.html) write(wants.file.empty() ? stem + ".html" : wants.file, report::to_html);
  if (wants.markdown) write(wants.file.empty() ? stem + ".md" : wants.file, report::to_markdown);
  const int code = report.has_result ? 0 : 1;
  if (face.json) {
    answer(to_json(report, written).dump(2) + "\n");
    return code;
  }
  if (wants.file == "-") return code;
  answer(printable_lines(report::to_text(report, face.out.width)));
  if (!arguments.has("--quiet")) {
    for (const auto& [file, bytes] : written)
      say(labelled(face.err, "written", 9, fmt::format("{} ({})", printable(file), format_bytes(bytes))));
  }
  return code;
}

std::string more_report_help() {
  return "RUNDIR is a folder of `stoker tune` or of `stoker measure --out`, or a CSV file of\n"
         "rows that others measured. Without --html and --md both are written, as report.html\n"
         "and report.md of the folder; a summary goes to stdout. The HTML is one file: no\n"
         "network, dark and light, fit for phones and printers. A report that people wrote\n"
         "into is not overwritten without --force. Exit code 1: nothing ran that could be\n"
         "reported. docs/how-to/report.md has the rest.\n";
}

}  // namespace

const Verb& report_verb() {
  static const Verb verb = {
      "report",
      "one page that says what a run found out: HTML, Markdown, text",
      "RUNDIR...",
      "what `stoker tune` or `stoker measure --out` wrote; the report is about the last",
      {{"stoker report runs/tune/20261116_101500", "write report.html and report.md into that folder"},
       {"stoker report results.csv --map images_per_s=throughput --out page.html",
        "make a page of a table from elsewhere"},
       {"stoker report --before runs/monday --after runs/tuesday", "compare two measured jobs"}},
      {{"what is compared",
        {{"--before", "DIR", "", "a run to compare with, of `stoker measure` or `stoker tune`", true},
         {"--after", "DIR", "", "the run after the change", true}}},
       {"rows of others",
        {{"--map", "OURS=THEIRS", "", "the file's column for one of ours, such as images_per_s=throughput"}}},
       {"output",
        {{"--html", "", "", "the HTML only", true},
         {"--md", "", "", "the Markdown only", true},
         {"--out", "FILE", "", "write there; - is stdout", true},
         {"--force", "", "", "overwrite a report that people wrote into, or any other file"}}},
       common_flags()},
      more_report_help,
      run_report};
  return verb;
}

}  // namespace stoker::cli
