// stoker pack: makes a pack of a data set, or brings one up to date.
#include "stoker/prepare/pack.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/loader/option_table.h"

#include "json_head.h"
#include "narrowing_flags.h"
#include "pack_bar.h"
#include "pack_ray.h"
#include "pack_volumes.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

using prepare::PackOptions;
using prepare::PackReport;

constexpr std::size_t kNamed = 10;  // bad samples that the text names

// A flag that the loader has too, read by the loader's table.
void take_option(loader::Request& request, const Arguments& arguments, std::string_view name) {
  const loader::Option& option = loader::find_option(name);
  const std::string flag = flag_of(name);
  if (arguments.has(flag)) loader::set_option(request, option, loader::read_value(option, arguments.text(flag)));
}

PackOptions pack_options(const Arguments& arguments) {
  PackOptions options;
  options.source = arguments.operand(0);
  options.destination = arguments.operand(1);
  options.label = arguments.text("--label");
  options.narrowing = narrowing_of(arguments);
  if (arguments.has("--kind")) options.kind = dataset::parse_pack_kind(arguments.text("--kind"));
  if (arguments.has("--dtype")) {
    options.dtype = parse_dtype(arguments.text("--dtype"));
    if (!options.dtype) {
      throw Error(ErrorKind::usage, fmt::format("there is no dtype `{}`", arguments.text("--dtype")),
                  "packs hold uint8 or uint16 (images), int16 or float32 (audio), arrays as they are stored");
    }
  }
  if (arguments.has("--samples")) options.samples = arguments.count("--samples", 1);
  options.size = arguments.text("--size");
  loader::Request request;
  for (const char* name : {"transform", "color", "memory_limit", "num_workers", "on_error", "seek_index"})
    take_option(request, arguments, name);
  options.transform = request.loader.transform;
  options.color = request.loader.color;
  if (arguments.has("--image-color") && !options.kind) options.kind = dataset::PackKind::raw;
  options.shard_size = arguments.bytes("--shard-size");
  options.memory_limit = request.loader.memory_limit;
  if (request.loader.num_workers == 0)
    throw Error(ErrorKind::usage, "`--num-workers` of a pack is auto or at least 1, not `0`");
  if (request.loader.num_workers != loader::kAuto) options.num_workers = request.loader.num_workers;
  options.on_error = request.loader.on_error;
  if (request.loader.seek_index == loader::UseSeekIndex::memory)
    throw Error(ErrorKind::usage, "`--seek-index` of a pack is auto or off, not `memory`: a pack is saved");
  options.seek_index = request.loader.seek_index != loader::UseSeekIndex::off;
  options.trust_times = arguments.has("--trust-times");
  options.force = arguments.has("--force");
  options.work_folder = arguments.text("--work-folder");
  options.dry_run = arguments.has("--dry-run");
  if (arguments.has("--part")) options.part = prepare::parse_part(arguments.text("--part"));
  options.join = arguments.has("--join");
  return options;
}

std::string count_of(std::uint64_t count, std::string_view word) {
  return fmt::format("{} {}{}", format_count(count), word, count == 1 ? "" : "s");
}

std::string duration(double seconds) {
  return format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

std::string to_text(const PackReport& report, const Terminal& terminal) {
  std::string out;
  const auto row = [&](std::string_view label, std::string_view text) { out += labelled(terminal, label, 10, text); };
  const std::string what =
      fmt::format("{} in {}, {} ({}, {})", count_of(report.count, "sample"), count_of(report.shards, "shard"),
                  format_bytes(report.bytes), name(report.kind), report.content);
  if (report.part && !report.was_there) {
    out += fmt::format("{}, part {}: {}{}\n", printable(report.destination), report.part->text(),
                       report.idle ? "there already, " : "", what);
  } else if (report.dry_run) {
    out += fmt::format("{}: would hold about {}\n", printable(report.destination), what);
  } else if (report.idle) {
    out += fmt::format("{}: up to date, {}\n", printable(report.destination), what);
  } else {
    out += fmt::format("{}: {}\n", printable(report.destination), what);
  }
  if (report.was_there || report.dry_run) {
    row("samples", fmt::format("{} added, {} changed, {} removed, {} kept", format_count(report.added),
                               format_count(report.changed), format_count(report.removed), format_count(report.kept)));
    if (report.compared > 0)
      row("compared", fmt::format("{} by content: nothing else said whether {} changed",
                                  count_of(report.compared, "file"), report.compared == 1 ? "it" : "they"));
    if (report.relabelled > 0) row("labels", fmt::format("of {} changed", count_of(report.relabelled, "kept sample")));
  }
  if (report.resumed > 0)
    row("resumed", fmt::format("{} were there from a run that was interrupted", count_of(report.resumed, "sample")));
  if (report.dry_run) {
    row("time", report.measured_samples == 0
                    ? "nothing to do"
                    : fmt::format("about {}, from {} packed on trial", duration(report.seconds),
                                  count_of(report.measured_samples, "sample")));
  } else if (!report.idle) {
    const std::uint64_t packed =
        report.added + report.changed - std::min(report.resumed, report.added + report.changed);
    row("time",
        fmt::format("{}, {} samples/s, {} MB/s written", duration(report.seconds),
                    format_rate(static_cast<double>(packed) / std::max(1e-9, report.seconds)),
                    format_rate(static_cast<double>(report.written_bytes) / 1e6 / std::max(1e-9, report.seconds))));
  }
  if (report.part) {
    const std::uint64_t missing = report.part->of - std::min(report.part->of, report.parts_whole);
    row("parts", report.was_there ? "they are joined already, and the pack is up to date"
                 : missing > 0    ? fmt::format("{} of {} are made", report.parts_whole, report.part->of)
                                  : fmt::format("all {} are made: now --join makes the pack", report.part->of));
  }
  if (report.seek_bytes > 0)
    row("seek",
        fmt::format("index of {}, {}", count_of(report.seek_files, "JPEG file"), format_bytes(report.seek_bytes)));
  if (!report.skipped.empty()) {
    row("skipped", fmt::format("{}; pack.json names all", count_of(report.skipped.size(), "bad sample")));
    for (std::size_t i = 0; i < std::min(kNamed, report.skipped.size()); ++i)
      out += fmt::format("    {}: {}\n", printable(report.skipped[i].name), printable(report.skipped[i].cause));
  }
  for (const std::string& note : report.notes) row("note", printable(note));
  return out;
}

Json to_json(const PackReport& report) {
  Json json = json_head("pack");
  json.update({{"source", report.source},
               {"source_kind", report.source_kind},
               {"destination", report.destination},
               {"dry_run", report.dry_run},
               {"up_to_date", report.idle},
               {"kind", name(report.kind)},
               {"content", report.content},
               {"count", report.count},
               {"shards", report.shards},
               {"bytes", report.bytes},
               {"source_bytes", report.source_bytes},
               {"seek_files", report.seek_files},
               {"seek_bytes", report.seek_bytes},
               {"added", report.added},
               {"changed", report.changed},
               {"removed", report.removed},
               {"kept", report.kept},
               {"relabelled", report.relabelled},
               {"compared", report.compared},
               {"resumed", report.resumed},
               {"written_bytes", report.written_bytes},
               {"seconds", report.seconds},
               {"measured_samples", report.measured_samples}});
  if (report.part)
    json["part"] = {{"number", report.part->number}, {"of", report.part->of}, {"parts_made", report.parts_whole}};
  json["skipped"] = Json::array();
  for (const dataset::PackSkipped& skipped : report.skipped)
    json["skipped"].push_back({{"name", skipped.name}, {"cause", skipped.cause}});
  json["notes"] = report.notes;
  return json;
}

int run_pack(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  if (arguments.has("--kind") && arguments.text("--kind") == "volume") {
    if (arguments.has("--ray"))
      throw Error(ErrorKind::usage, "packs of volumes have no parts, which `--ray` would make", "leave it out");
    return run_pack_volumes(arguments, face);
  }
  for (const Flag& flag : volume_pack_flags().flags) {
    if (arguments.has(flag.name))
      throw Error(ErrorKind::usage, fmt::format("`{}` goes with `--kind volume`", flag.name),
                  "add it, or leave this out");
  }
  PackOptions options = pack_options(arguments);
  if (arguments.has("--ray")) return run_pack_on_ray(arguments, face);
  for (const char* flag : {"--ray-parts", "--ray-cpus", "--python"}) {
    if (arguments.has(flag))
      throw Error(ErrorKind::usage, fmt::format("`{}` goes with `--ray`", flag), "add it, or leave this out");
  }
  PackBar bar(face);
  options.progress = std::ref(bar);
  const PackReport report = prepare::make_pack(options);
  bar.clear();
  if (face.json) {
    answer(to_json(report).dump(2) + "\n");
  } else {
    answer(to_text(report, face.out));
  }
  return 0;
}

}  // namespace

const Verb& pack_verb() {
  static const Verb verb = {
      "pack",
      "put a data set into a few large files that load faster, or bring such a pack up to date",
      "SOURCE DEST",
      "a folder, an index.csv, a .npy, a .pack or .tar shards; and the pack to make, such as train.pack or "
      "s3://bucket/train.pack",
      {{"stoker pack data/train train.pack", "put the files as they are into tar shards"},
       {"stoker pack data/speech speech.pack --kind raw --samples 16000",
        "decode audio to one length, into .npy shards"},
       {"stoker pack data/train small.pack --kind raw --size 256",
        "decode and resize images once, instead of in each epoch"},
       {"stoker pack data/train s3://bucket/train.pack", "make the pack here, and upload it; pack.json goes last"},
       {"stoker pack volumes.csv volumes.pack --kind volume --patch 72x136x136",
        "cut 3-D volumes into bricks that fit a patch"},
       {"stoker pack data/train train.pack --part 1/4",
        "make a quarter on each of four machines; --join completes the pack"},
       {"stoker pack /shared/train /shared/train.pack --ray auto",
        "make the parts as tasks of a Ray cluster, and join them"},
       {"stoker pack data/train train.pack --dry-run", "say how large and how long, and write nothing"}},
      {{"what is packed",
        {{"--kind", "KIND", "",
          "raw (decoded), encoded (as it is) or volume (bricks); without: raw where a flag needs it", true},
         {"--dtype", "NAME", "",
          "raw: uint8 or uint16 for images, int16 or float32 for audio; without: what loses nothing", true},
         {"--samples", "N", "", "raw audio: frames each, padded with zeros or trimmed", true},
         {"--size", "N|HxW", "", "raw images: shorter side N, then the centre; or exactly H x W", true},
         {"--transform", "TEXT", "", "raw: before the two above, such as mono,resample:16000; nothing random"},
         {"--image-color", "NAME", "rgb", "channels of raw images: rgb, gray or keep"},
         {"--label", "COLUMN", "", "of an index.csv; without: `label` where there is one"}}},
       {"which samples", narrowing_flags()},
       volume_pack_flags(),
       {"how",
        {{"--shard-size", "SIZE", "1GB", "of one file of the pack; 1 MiB or more", true},
         {"--seek-index", "HOW", "auto",
          "of encoded JPEG files: note places from which crops can be decoded (auto), or do not (off)"},
         {"--dry-run", "", "", "say what would be done, how large it would be and how long it would take", true},
         {"--trust-times", "", "",
          "again: keep a sample whose file has the same size and modification time, without comparing its content"},
         {"--force", "", "", "replace a pack of another source or with other settings", true},
         {"--work-folder", "DIR", "", "of a DEST in a store: make the pack here first; without: the cache folder"},
         {"--part", "K/N", "",
          "make the K-th of N parts; several machines may make one pack on a disk that they share"},
         {"--join", "", "", "join the parts, when all are made; give it the options of the parts"},
         {"--num-workers", "N", "auto", "threads that decode"},
         {"--memory-limit", "SIZE", "25 % of RAM, 8GB at most", "bound on memory while decoding, as 4GB"},
         {"--on-error", "HOW", "raise", "a bad sample: raise, or skip to leave it out"}}},
       ray_flags(),
       common_flags()},
      nullptr,
      run_pack};
  return verb;
}

}  // namespace stoker::cli
