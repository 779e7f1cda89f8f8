// stoker stage: copies a data set, or some of its classes, from an object store to a local disk.
#include "stoker/prepare/stage.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <initializer_list>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/loader/option_table.h"

#include "interrupt.h"
#include "json_head.h"
#include "narrowing_flags.h"
#include "phase_bar.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

using prepare::StageOptions;
using prepare::StageReport;

constexpr std::size_t kNamedBad = 10;  // bad objects that the text names

StageOptions stage_options(const Arguments& arguments) {
  StageOptions options;
  options.source = arguments.operand(0);
  options.destination = arguments.operand(1);
  options.label = arguments.text("--label");
  options.narrowing = narrowing_of(arguments);
  if (arguments.has("--split")) options.splits = prepare::parse_splits(arguments.text("--split"));
  if (arguments.has("--max-rate")) {
    options.max_rate = arguments.bytes("--max-rate");
    if (options.max_rate == 0)
      throw Error(ErrorKind::usage, "`--max-rate` is at least 1 byte per second", "leave it out for no limit");
  }
  options.memory_limit = arguments.bytes("--memory-limit");
  options.on_error = loader::parse_on_error(arguments.text("--on-error"));
  options.prune = arguments.has("--prune");
  options.force = arguments.has("--force");
  options.dry_run = arguments.has("--dry-run");
  if (arguments.has("--part")) options.part = prepare::parse_part(arguments.text("--part"));
  options.join = arguments.has("--join");
  return options;
}

// One bar per phase; of a copy it has megabytes, their rate and the time left.
class StageBar {
 public:
  explicit StageBar(const Face& face) : phases_(face) {}

  bool operator()(const prepare::StageProgress& progress) {
    const bool in_bytes = progress.of_bytes > kMB;
    Bar& bar = phases_.of(progress.phase, in_bytes ? progress.of_bytes / kMB : progress.of_files);
    if (in_bytes) {
      const double seconds = phases_.seconds();
      bar.update(progress.bytes / kMB, "MB", 0, seconds > 0 ? static_cast<double>(progress.bytes) / seconds : -1);
    } else {
      bar.update(progress.files, "files");
    }
    return !interrupted();
  }
  void clear() { phases_.clear(); }

 private:
  static constexpr std::uint64_t kMB = 1'000'000;

  PhaseBar phases_;
};

std::string files_text(std::uint64_t count) {
  return fmt::format("{} {}", format_count(count), count == 1 ? "file" : "files");
}

std::string time_text(double seconds) {
  return format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

std::string to_text(const StageReport& report, const Terminal& terminal) {
  std::string out;
  const auto row = [&](std::string_view label, std::string_view text) { out += labelled(terminal, label, 10, text); };
  const std::string what =
      fmt::format("{}, {}", report.to_pack ? format_count(report.files) + " samples" : files_text(report.files),
                  format_bytes(report.bytes));
  out += fmt::format("{}{}: {}{} of {} ({})\n", printable(report.destination),
                     report.part ? fmt::format(", part {}", report.part->text()) : "",
                     report.dry_run ? "would hold "
                     : report.idle  ? "up to date, "
                                    : "",
                     what, printable(report.source), report.source_kind);
  for (const StageReport::Split& split : report.splits)
    row("split", fmt::format("{}: {}, {}", printable(split.name), files_text(split.files), format_bytes(split.bytes)));
  if (!report.classes.empty() && report.classes.size() < report.classes_of_source)
    row("classes", fmt::format("{} of {}, `{}` to `{}`", format_count(report.classes.size()),
                               format_count(report.classes_of_source), printable(report.classes.front()),
                               printable(report.classes.back())));
  row("files", fmt::format("{} {} ({}), {} there unchanged{}", format_count(report.fetched),
                           report.dry_run ? "to fetch" : "fetched", format_bytes(report.fetched_bytes),
                           format_count(report.kept),
                           report.pruned > 0 ? fmt::format(", {} removed", format_count(report.pruned)) : ""));
  if (report.requests > 0) row("requests", fmt::format("{}, and those of the listing", format_count(report.requests)));
  if (report.dry_run) {
    row("time", report.measured_files == 0 ? "nothing to fetch"
                                           : fmt::format("about {}, from {} read on trial", time_text(report.seconds),
                                                         files_text(report.measured_files)));
  } else if (report.fetched > 0) {
    const double seconds = std::max(1e-9, report.seconds);
    row("time", fmt::format("{}, {} files/s, {} MB/s", time_text(report.seconds),
                            format_rate(static_cast<double>(report.fetched) / seconds),
                            format_rate(static_cast<double>(report.fetched_bytes) / 1e6 / seconds)));
  }
  if (!report.bad.empty()) {
    row("bad", fmt::format("{} left out", files_text(report.bad.size())));
    for (std::size_t i = 0; i < std::min(kNamedBad, report.bad.size()); ++i)
      out += fmt::format("    {}: {}\n", printable(report.bad[i].name), printable(report.bad[i].cause));
    if (report.bad.size() > kNamedBad)
      out += fmt::format("    and {} more: --json names all\n", format_count(report.bad.size() - kNamedBad));
  }
  for (const std::string& note : in_flags(report.notes, stage_verb())) row("note", printable(note));
  return out;
}

Json to_json(const StageReport& report) {
  Json json = json_head("stage");
  json.update({{"source", report.source},
               {"source_kind", report.source_kind},
               {"destination", report.destination},
               {"kind", report.to_pack ? "pack" : "folder"},
               {"dry_run", report.dry_run},
               {"up_to_date", report.idle},
               {"files", report.files},
               {"bytes", report.bytes},
               {"fetched", report.fetched},
               {"fetched_bytes", report.fetched_bytes},
               {"kept", report.kept},
               {"pruned", report.pruned},
               {"requests", report.requests},
               {"seconds", report.seconds},
               {"measured_files", report.measured_files},
               {"classes_of_source", report.classes_of_source}});
  json["part"] = report.part ? Json{{"number", report.part->number}, {"of", report.part->of}} : Json(nullptr);
  json["classes"] = report.classes;
  json["splits"] = Json::array();
  for (const StageReport::Split& split : report.splits)
    json["splits"].push_back({{"name", split.name}, {"files", split.files}, {"bytes", split.bytes}});
  json["bad"] = Json::array();
  for (const StageReport::Bad& bad : report.bad) json["bad"].push_back({{"name", bad.name}, {"cause", bad.cause}});
  json["notes"] = in_flags(report.notes, stage_verb());
  return json;
}

// The flags that -h shows too.
std::vector<Flag> brief(std::vector<Flag> flags, std::initializer_list<std::string_view> names) {
  for (Flag& flag : flags) flag.brief = std::find(names.begin(), names.end(), flag.name) != names.end();
  return flags;
}

int run_stage(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  StageOptions options = stage_options(arguments);
  watch_for_termination();
  StageBar bar(face);
  options.progress = std::ref(bar);
  const StageReport report = prepare::stage(options);
  bar.clear();
  answer(face.json ? to_json(report).dump(2) + "\n" : to_text(report, face.out));
  return 0;
}

}  // namespace

const Verb& stage_verb() {
  static const Verb verb = {
      "stage",
      "copy a data set, or some classes of it, from an object store to a local disk",
      "SOURCE DEST",
      "s3://bucket/prefix, a folder or an index.csv; and a local folder, or a name that ends in .pack",
      {{"stoker stage s3://bucket/imagenet/train /data/train",
        "copy all of it; a second run copies what is new or changed"},
       {"stoker stage s3://bucket/imagenet/train /data/small --class-subset 100", "copy 100 classes that a seed draws"},
       {"stoker stage s3://bucket/imagenet /data/small --class-subset 100 --split train=50000,val=1000",
        "copy the same 100 classes of train and of val, 50,000 and 1,000 images"},
       {"stoker stage s3://bucket/imagenet/train train.pack --class-list classes.txt", "pack the classes of a list"},
       {"stoker stage s3://bucket/imagenet/train /data/train --dry-run",
        "say how many bytes, requests and minutes, and write nothing"}},
      {{"which samples", brief(narrowing_flags(), {"--class-subset", "--class-list"})},
       {"how",
        {{"--split", "NAME=N,...", "",
          "N samples of the folder NAME of the source, for each; without such folders: of the whole", true},
         {"--label", "COLUMN", "", "of an index.csv; without: `label` where there is one"},
         {"--max-rate", "SIZE", "", "read at most SIZE per second, such as 50MB; without: no limit"},
         {"--dry-run", "", "", "say how many bytes and requests it takes, and how long; write nothing", true},
         {"--part", "K/N", "",
          "fetch the K-th of N parts; several machines may make one copy on a disk that they share"},
         {"--join", "", "", "join the parts, when all are fetched; give it the choice of the parts"},
         {"--prune", "", "", "remove files of earlier runs that are not chosen any more"},
         {"--force", "", "", "replace files in DEST that stage did not write, or that changed since"},
         {"--on-error", "HOW", "raise", "a bad object: raise, or skip to leave it out and name it", true},
         {"--memory-limit", "SIZE", "256MB", "bound on bytes that are on their way"}}},
       common_flags()},
      nullptr,
      run_stage};
  return verb;
}

}  // namespace stoker::cli
