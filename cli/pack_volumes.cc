#include "pack_volumes.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/dataset/volumes.h"
#include "stoker/prepare/pack_volumes.h"

#include "json_head.h"
#include "pack_bar.h"

namespace stoker::cli {
namespace {

using prepare::PackVolumesReport;

std::string patch_text(const dataset::Extents& extents) {
  return fmt::format("{}x{}x{}", extents[0], extents[1], extents[2]);
}

std::string format_ms(double seconds) {
  return fmt::format("{:.2f} ms", seconds * 1e3);
}

std::string to_text(const PackVolumesReport& report, const Terminal& terminal) {
  std::string out;
  const auto row = [&](std::string_view label, std::string_view text) { out += labelled(terminal, label, 10, text); };
  out += fmt::format("{}: {}{} volumes{} in bricks of {}, {}\n", printable(report.destination),
                     report.dry_run ? "would hold "
                     : report.idle  ? "up to date, "
                                    : "",
                     format_count(report.volumes),
                     report.masks > 0 ? fmt::format(" and {} masks", format_count(report.masks)) : "",
                     patch_text(report.brick), format_bytes(report.bytes));
  if (report.resumed > 0)
    row("resumed", fmt::format("{} files were there from a run that was interrupted", format_count(report.resumed)));
  if (report.patch_bytes > 0) {
    const auto bytes = [](double value) { return format_bytes(static_cast<std::uint64_t>(value)); };
    row("a patch",
        fmt::format("of {} reads about {} here, and {} in the source: {:.1f} times less", bytes(report.patch_bytes),
                    bytes(report.read_after), bytes(report.read_before), report.read_before / report.read_after));
  }
  if (report.patch_s_after > 0) {
    row("measured", fmt::format("{} for a patch here, {} in the source: {:.1f} times faster, read from the disk",
                                format_ms(report.patch_s_after), format_ms(report.patch_s_before),
                                report.patch_s_before / report.patch_s_after));
  }
  if (!report.dry_run && !report.idle)
    row("time", fmt::format("{}, {} MB/s written",
                            format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(report.seconds * 1e9))),
                            format_rate(static_cast<double>(report.bytes) / 1e6 / std::max(1e-9, report.seconds))));
  return out;
}

Json to_json(const PackVolumesReport& report) {
  Json json = json_head("pack");
  json.update({{"source", report.source},
               {"destination", report.destination},
               {"kind", "volume"},
               {"dry_run", report.dry_run},
               {"up_to_date", report.idle},
               {"brick", patch_text(report.brick)},
               {"volumes", report.volumes},
               {"masks", report.masks},
               {"resumed", report.resumed},
               {"bytes", report.bytes},
               {"source_bytes", report.source_bytes},
               {"patch_bytes", report.patch_bytes},
               {"patch_reads_in_source", report.read_before},
               {"patch_reads_in_pack", report.read_after},
               {"seconds", report.seconds}});
  if (report.patch_s_after > 0) {
    json["patch_s_in_source"] = report.patch_s_before;
    json["patch_s_in_pack"] = report.patch_s_after;
  }
  return json;
}

}  // namespace

Section volume_pack_flags() {
  return {"volumes",
          {{"--patch", "DxHxW", "",
            "of --kind volume: the patch that will be loaded; bricks are a quarter of it along each axis"},
           {"--brick", "DxHxW", "", "of --kind volume: the brick itself"}}};
}

int run_pack_volumes(const Arguments& arguments, const Face& face) {
  for (const char* const flag :
       {"--dtype", "--samples", "--size", "--transform", "--image-color", "--label", "--where", "--class-list",
        "--class-subset", "--subset", "--shard-size", "--seek-index", "--trust-times", "--part", "--join",
        "--work-folder", "--num-workers", "--memory-limit", "--on-error"}) {
    if (arguments.has(flag))
      throw Error(ErrorKind::usage, fmt::format("`{}` does not go with `--kind volume`", flag), "leave it out");
  }
  prepare::PackVolumesOptions options;
  options.source = arguments.operand(0);
  options.destination = arguments.operand(1);
  for (const auto& [word, into] : {std::pair("patch", &options.patch), std::pair("brick", &options.brick)}) {
    const std::string flag = fmt::format("--{}", word);
    if (!arguments.has(flag)) continue;
    *into = dataset::parse_extents(arguments.text(flag), word);
    if (std::ranges::find(*into, 0u) != into->end())
      throw Error(ErrorKind::usage, fmt::format("`{}` has an axis without elements", flag)).about(word);
  }
  options.force = arguments.has("--force");
  options.measure = true;
  options.dry_run = arguments.has("--dry-run");
  PackBar bar(face);
  options.progress = std::ref(bar);
  const PackVolumesReport report = prepare::pack_volumes(options);
  bar.clear();
  answer(face.json ? to_json(report).dump(2) + "\n" : to_text(report, face.out));
  return 0;
}

}  // namespace stoker::cli
