#include "stoker/prepare/stage_pack.h"

#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/prepare/pack.h"

namespace stoker::prepare {

StageReport stage_pack(const StageOptions& options) {
  if (!options.splits.empty()) {
    throw Error(ErrorKind::usage, format_text("cannot make one pack of several splits ({})", option("split")),
                fmt::format("make a pack of each: `stoker stage {}/{} {}.pack`", options.source,
                            options.splits.front().name, options.splits.front().name));
  }
  if (options.max_rate != 0) {
    throw Error(ErrorKind::usage, format_text("{} does not hold for packs", option("max_rate")),
                "copy into a folder at that rate, then pack the folder");
  }
  PackOptions packing;
  packing.source = options.source;
  packing.destination = options.destination;
  packing.label = options.label;
  packing.narrowing = options.narrowing;
  packing.on_error = options.on_error;
  packing.force = options.force;
  packing.dry_run = options.dry_run;
  packing.cache_dir = options.cache_dir;
  if (options.progress) {
    packing.progress = [&](const PackProgress& progress) {
      return options.progress({progress.phase, progress.done, progress.total, 0, 0});
    };
  }
  PackReport packed = make_pack(packing);
  StageReport report;
  report.source = options.source;
  report.source_kind = std::move(packed.source_kind);
  report.destination = std::move(packed.destination);
  report.to_pack = true;
  report.dry_run = options.dry_run;
  report.idle = packed.idle;
  report.files = packed.count;
  report.bytes = packed.bytes;
  report.fetched = packed.added + packed.changed;
  report.fetched_bytes = packed.idle ? 0 : packed.dry_run ? packed.source_bytes : packed.written_bytes;
  report.kept = packed.kept;
  report.pruned = packed.removed;
  report.seconds = packed.seconds;
  report.measured_files = packed.measured_samples;
  report.classes = std::move(packed.classes);
  report.notes.assign(packed.notes.begin(), packed.notes.end());
  for (dataset::PackSkipped& skipped : packed.skipped)
    report.bad.push_back({std::move(skipped.name), std::move(skipped.cause)});
  return report;
}

}  // namespace stoker::prepare
