// Making a pack from any data set, or bringing one up to date with it. Blocks until the pack is there; uses threads of
// its own. Nothing appears under the destination's name before it is whole.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/dtype.h"
#include "stoker/dataset/narrowing.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/loader/options.h"
#include "stoker/prepare/part_name.h"
#include "stoker/prepare/progress.h"

namespace stoker::prepare {

struct PackOptions {
  std::string source, destination;
  std::string label;             // index.csv: the label column
  dataset::Narrowing narrowing;  // which classes and samples
  std::optional<dataset::PackKind>
      kind;                    // none: raw for arrays, or where dtype, samples or size are given; else encoded
  std::optional<DType> dtype;  // raw; none: uint8 or uint16 for images, int16 for audio, as stored for arrays
  std::uint64_t samples = 0;   // raw audio: frames each, padded or trimmed; 0: all must be equally long
  std::string size;            // raw images: "256": shorter side, then centre crop; "256x320": exactly
  transform::Ops transform;    // raw: before the two above
  codec::Color color = codec::Color::rgb;    // raw images
  std::uint64_t shard_size = 1'000'000'000;  // bytes
  std::uint64_t memory_limit = 0;            // 0: that of a loader
  int num_workers = loader::kAuto;
  loader::OnError on_error = loader::OnError::raise;  // or skip
  bool seek_index = true;  // encoded: note places in JPEG files (seek_record.h), for loaders to start from
  // Keep a sample whose file has the size and the modification time that it had, though nothing says whether its
  // content changed; false: compare the content then.
  bool trust_times = false;
  std::string cache_dir;  // as in dataset::OpenOptions; has the listing of the source, and source_times.h
  // Makes one part of the pack, or joins its parts (pack_parts.h).
  std::optional<PartName> part;
  bool join = false;
  // A destination in a store: the local folder where the pack is made first; empty: the cache folder.
  std::string work_folder;
  bool force = false;    // replace a pack of another source or with other settings
  bool dry_run = false;  // say what would be done, and how long it would take
  bool only_compare =
      false;  // with the pack that is there: report.idle says whether it is up to date; nothing is packed
  std::uint64_t sync_bytes = std::uint64_t{256} << 20;  // a run that is killed loses at most so much, or five seconds
  TellProgress progress;                                // if it cancels, the next run resumes
  std::function<std::int64_t()> now_ns;                 // since 1970; empty: the system's clock (tests pass their own)
};

struct PackReport {
  std::string source, destination;
  std::string source_kind;
  dataset::PackKind kind = dataset::PackKind::raw;
  std::string content;  // "int16 [8000]", "jpeg, png"
  std::vector<std::string> classes;
  std::uint64_t count = 0;  // samples in the pack
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;  // of all its files
  std::uint64_t source_bytes = 0;
  std::uint64_t seek_files = 0, seek_bytes = 0;  // JPEG files whose places are in seek.bin, and its size
  std::uint64_t added = 0, changed = 0, removed = 0, kept = 0, relabelled = 0;
  std::uint64_t compared = 0;       // samples whose file was compared with the pack by content
  std::uint64_t resumed = 0;        // samples that an interrupted run had written
  std::uint64_t written_bytes = 0;  // by this run
  bool was_there = false;           // the destination was a pack already
  bool idle = false;                // nothing was to be done
  bool dry_run = false;
  std::optional<PartName> part;        // this run made one part; count, shards and bytes are those of the part
  std::uint64_t parts_whole = 0;       // how many parts are there, with this one
  double seconds = 0;                  // taken; dry_run: expected
  std::uint64_t measured_samples = 0;  // dry_run: how many samples the estimate rests on
  std::vector<dataset::PackSkipped> skipped;
  std::vector<std::string> notes;
};

// A destination may be an address of a store (pack_upload.h). Throws Error.
PackReport make_pack(const PackOptions& options);

}  // namespace stoker::prepare
