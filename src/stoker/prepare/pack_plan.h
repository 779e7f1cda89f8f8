// What is to be done to make a pack equal its source: which shards of the pack that is there stay as they are, and
// which samples are written again, from the source or from the old pack. Pure, but for looking up when files were
// changed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/dataset/packed.h"

namespace stoker::prepare {

// Size and times of the file behind each sample, as they are now. A sample inside another file (a row of an .npy, a
// member of a tar) has the times of that file.
struct SourceState {
  std::vector<std::uint64_t> bytes;
  // 0 where the file is gone: reading it will say so. Of an object: a hash of the version that its store tells, or 0.
  std::vector<std::int64_t> mtime_ns;
  std::vector<std::int64_t> changed_ns;  // ctime: see source_times.h
  std::vector<bool> has_version;         // an object whose version says whether it changed; empty: none is
  std::vector<bool> differs;             // compared with the pack, and found to be another; empty: none was compared
};
SourceState look_at_source(const dataset::Dataset& source, const dataset::Progress& progress);

struct PackPlan {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  // Samples to be written into new shards, by position in the source (which is the position in the pack).
  struct Loose {
    std::uint64_t position = 0;
    std::uint64_t base = kNone;  // sample of the old pack whose payload is still good; kNone: from the source
  };
  std::vector<Loose> loose;
  std::vector<std::uint32_t> kept_shards;                     // of the old pack, ascending
  std::vector<std::pair<std::uint64_t, std::uint64_t>> kept;  // (position, sample of the old pack) in those shards
  std::uint64_t added = 0, changed = 0, removed = 0, unchanged = 0, relabelled = 0;
  bool reordered = false;         // the same samples, but in another order
  std::uint64_t next_number = 0;  // of the first new shard, in its name
  std::uint64_t key = 0;          // of everything that decides what the new pack holds

  bool is_idle() const noexcept { return loose.empty() && removed == 0 && relabelled == 0 && !reordered; }
};

// For each position of the source the sample of the pack that has the same id, or kNone.
std::vector<std::uint64_t> find_in(const dataset::Packed& base, const dataset::Dataset& source);

// `base` may be null; else `in_base` is what find_in() gives. `shard_bytes`: shards smaller than this are merged while
// they are no larger than what is loose.
PackPlan make_plan(const dataset::Dataset& source, const SourceState& state, const dataset::Packed* base,
                   std::span<const std::uint64_t> in_base, dataset::PackKind kind, std::uint64_t shard_bytes,
                   std::uint64_t settings_key);

}  // namespace stoker::prepare
