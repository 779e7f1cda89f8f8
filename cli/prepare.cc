// stoker prepare dicom: DICOM files to 16-bit slices with an index. And the worker process that decodes them.
#include <algorithm>
#include <chrono>
#include <functional>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"

#include "interrupt.h"
#include "json_head.h"
#include "own_verb.h"
#include "phase_bar.h"
#include "terminal.h"
#include "verbs.h"

#ifdef STOKER_HAS_DICOM
#include "stoker/dicom/decode.h"
#include "stoker/dicom/prepare.h"
#include "stoker/dicom/worker.h"
#endif

namespace stoker::cli {
namespace {

#ifdef STOKER_HAS_DICOM
using dicom::PrepareOptions;
using dicom::PrepareReport;

constexpr std::size_t kNamedFiles = 10;  // that the text names; --json names all

PrepareOptions prepare_options(const Arguments& arguments) {
  PrepareOptions options;
  options.source = arguments.operand(1);
  options.destination = arguments.operand(2);
  options.format = dicom::parse_format(arguments.text("--format"));
  if (arguments.text("--workers") != "auto") {
    const std::uint64_t workers = arguments.count("--workers", 1);
    if (workers > 1024) throw Error(ErrorKind::usage, "`--workers` is at most 1024");
    options.workers = static_cast<int>(workers);
  }
  options.memory_limit = arguments.bytes("--memory-limit");
  options.keep_identifiers = arguments.has("--keep-identifiers");
  options.key_file = arguments.text("--key-file");
  if (options.keep_identifiers && arguments.has("--key-file")) {
    throw Error(ErrorKind::usage, "`--key-file` has no use with `--keep-identifiers`", "leave one of them out");
  }
  options.prune = arguments.has("--prune");
  options.dry_run = arguments.has("--dry-run");
  if (arguments.has("--part")) options.part = prepare::parse_part(arguments.text("--part"));
  options.join = arguments.has("--join");
  options.worker_command = {own_program(), kDicomWorker};
  return options;
}

class PrepareBar {
 public:
  explicit PrepareBar(const Face& face) : phases_(face) {}

  bool operator()(const dicom::PrepareProgress& progress) {
    const bool are_slices = progress.phase == "writing" || progress.phase == "packing";
    phases_.of(progress.phase, progress.total).update(progress.done, are_slices ? "slices" : "files");
    return !interrupted();
  }
  void clear() { phases_.clear(); }

 private:
  PhaseBar phases_;
};

std::string counted(std::uint64_t count, std::string_view word) {
  const bool is_plural = count != 1 && !word.ends_with("series");
  return fmt::format("{} {}{}", format_count(count), word, is_plural ? "s" : "");
}

// The files that `is_ignored` says, named up to a limit.
void add_left_out(std::string& out, const PrepareReport& report, bool is_ignored) {
  std::size_t named = 0, all = 0;
  for (const dicom::LeftOut& one : report.left_out) {
    if (one.is_ignored != is_ignored) continue;
    ++all;
    if (named == kNamedFiles) continue;
    out += fmt::format("    {}: {}\n", printable(one.path), printable(one.cause));
    ++named;
  }
  if (all > named) out += fmt::format("    and {} more: --json names all\n", format_count(all - named));
}

std::string to_text(const PrepareReport& report, const Terminal& terminal) {
  std::string out;
  const auto row = [&](std::string_view label, std::string_view text) { out += labelled(terminal, label, 10, text); };
  out += fmt::format("{}{}: {}{} in {} of {}\n", printable(report.destination),
                     report.part ? fmt::format(", part {}", report.part->text()) : "",
                     report.dry_run ? "would hold "
                     : report.idle  ? "up to date, "
                                    : "",
                     counted(report.slices, "slice"), counted(report.series, "series"), printable(report.source));
  row("series",
      fmt::format("{} {}, {} {}, {} there unchanged", format_count(report.added), report.dry_run ? "to add" : "added",
                  format_count(report.changed), report.dry_run ? "to redo" : "redone", format_count(report.kept)));
  row("files", fmt::format("{} looked at, {} with slices", format_count(report.files), format_count(report.images)));
  if (!report.dry_run && !report.part) row("index", printable(report.index));
  if (report.slices_written > 0) {
    const double seconds = std::max(1e-9, report.seconds);
    row("time", fmt::format("{}, {} slices/s, {} written",
                            format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9))),
                            format_rate(static_cast<double>(report.slices_written) / seconds),
                            format_bytes(report.bytes_written)));
  }
  if (!report.removed.empty()) {
    row("removed", report.pruned
                       ? fmt::format("{} whose files are gone", counted(report.removed.size(), "series"))
                       : fmt::format("the files of {} are gone; the slices stay in the index; --prune removes them",
                                     counted(report.removed.size(), "series")));
  }
  const std::uint64_t refused = report.refused(), ignored = report.left_out.size() - refused;
  if (refused > 0) {
    row("left out", fmt::format("{}{}", counted(refused, "file"),
                                report.refused_series > 0
                                    ? fmt::format(", and with them {}", counted(report.refused_series, "whole series"))
                                    : ""));
    add_left_out(out, report, false);
  }
  if (ignored > 0) {
    row("ignored", counted(ignored, "file"));
    add_left_out(out, report, true);
  }
  for (std::size_t i = 0; i < std::min(kNamedFiles, report.series_notes.size()); ++i)
    row("note",
        fmt::format("{}: {}", printable(report.series_notes[i].series), printable(report.series_notes[i].text)));
  if (report.series_notes.size() > kNamedFiles)
    row("note",
        fmt::format("{} more notes on series: --json has all", format_count(report.series_notes.size() - kNamedFiles)));
  for (const std::string& note : report.notes) row("note", printable(note));
  return out;
}

Json to_json(const PrepareReport& report) {
  Json json = json_head("prepare");
  json.update({{"kind", "dicom"},
               {"source", report.source},
               {"destination", report.destination},
               {"index", report.index},
               {"format", name(report.format)},
               {"dry_run", report.dry_run},
               {"up_to_date", report.idle},
               {"files", report.files},
               {"images", report.images},
               {"series", report.series},
               {"slices", report.slices},
               {"added", report.added},
               {"changed", report.changed},
               {"kept", report.kept},
               {"pruned", report.pruned},
               {"slices_written", report.slices_written},
               {"bytes_written", report.bytes_written},
               {"refused_files", report.refused()},
               {"refused_series", report.refused_series},
               {"seconds", report.seconds}});
  if (report.part) json["part"] = {{"number", report.part->number}, {"of", report.part->of}};
  json["removed"] = report.removed;
  json["left_out"] = Json::array();
  for (const dicom::LeftOut& one : report.left_out)
    json["left_out"].push_back({{"path", one.path}, {"cause", one.cause}, {"ignored", one.is_ignored}});
  json["series_notes"] = Json::array();
  for (const PrepareReport::SeriesNote& note : report.series_notes)
    json["series_notes"].push_back({{"series", note.series}, {"text", note.text}});
  json["notes"] = report.notes;
  return json;
}

int prepare_dicom(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  PrepareOptions options = prepare_options(arguments);
  watch_for_termination();
  PrepareBar bar(face);
  options.progress = std::ref(bar);
  const PrepareReport report = dicom::prepare(options);
  bar.clear();
  if (report.images == 0 && report.left_out.empty() && report.removed.empty()) {
    throw Error(
        ErrorKind::not_found,
        fmt::format("there is no DICOM file below `{}`: {} looked at", options.source, counted(report.files, "file")),
        "name the folder that the DICOM files lie below");
  }
  answer(face.json ? to_json(report).dump(2) + "\n" : to_text(report, face.out));
  return report.refused() > 0 ? 1 : 0;
}
#else
int prepare_dicom(const Arguments&) {
  throw Error(ErrorKind::unsupported, "this program was built without DICOM",
              "install libgdcm-dev and configure with -DSTOKER_DICOM=ON");
}
#endif

int run_prepare(const Arguments& arguments) {
  if (arguments.operand(0) != "dicom") {
    throw Error(ErrorKind::usage, fmt::format("cannot prepare `{}`", arguments.operand(0)),
                "stoker prepare dicom ROOT OUT");
  }
  return prepare_dicom(arguments);
}

std::string more_on_prepare() {
  return "Exit code: 0 when every image was written, 1 when some were left out (the\n"
         "answer names them), 2 when the run failed. DICOMDIR files, documents,\n"
         "localizers and second copies are ignored and do not change the code.\n"
         "\n"
         "Ids of patients, studies and series, and paths of source files, are written as\n"
         "keyed hashes. Names, dates and other text of the files are never written. The\n"
         "answer itself names files by their paths.\n";
}

}  // namespace

std::string dicom_version() {
#ifdef STOKER_HAS_DICOM
  return fmt::format("dicom (GDCM {})", dicom::gdcm_version());
#else
  return "nothing (built without STOKER_DICOM)";
#endif
}

int run_dicom_worker(const std::vector<std::string>& words) {
#ifdef STOKER_HAS_DICOM
  return dicom::serve_slices(words.empty() ? 0 : parse_bytes(words[0]));
#else
  (void)words;
  throw Error(ErrorKind::unsupported, "this program was built without DICOM");
#endif
}

const Verb& prepare_verb() {
  static const Verb verb = {
      "prepare",
      "write 16-bit slices and an index from DICOM files",
      "dicom ROOT OUT",
      "the folder that the DICOM files lie below, and the folder to write into",
      {{"stoker prepare dicom scans/ slices/", "write one folder of PNG files per series, and slices/_index/index.csv"},
       {"stoker prepare dicom scans/ slices/ --dry-run",
        "say which series there are and what would be left out, and write nothing"},
       {"stoker prepare dicom scans/ arrays/ --format npy", "write one array per series instead"},
       {"stoker load slices/_index/index.csv --image-color keep --transform window,resize:224",
        "load what was written"}},
      {{"how",
        {{"--format", "FORMAT", "png", "png, npy (one array per series) or pack (PNG files and a pack of them)", true},
         {"--workers", "N", "auto", "processes that decode; auto: the cores", true},
         {"--dry-run", "", "", "say what would be written and left out; write nothing", true},
         {"--part", "K/N", "", "write the K-th of N parts; several machines may write into one folder that they share"},
         {"--join", "", "", "write the index, when all parts are written; give it the options of the parts"},
         {"--prune", "", "", "remove series whose source files are gone; without: they stay"},
         {"--memory-limit", "SIZE", "1GB", "bound on decoding in all processes; a file that needs more is left out"}}},
       {"identifiers",
        {{"--keep-identifiers", "", "", "write ids and paths as they are in the files, not as keyed hashes", true},
         {"--key-file", "FILE", "",
          "the key of the hashes; without: ~/.config/stoker/dicom/key, made when first needed"}}},
       common_flags()},
      more_on_prepare,
      run_prepare};
  return verb;
}

}  // namespace stoker::cli
