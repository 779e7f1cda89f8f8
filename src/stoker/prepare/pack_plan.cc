#include "stoker/prepare/pack_plan.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/dataset/crew.h"
#include "stoker/os/file_facts.h"
#include "stoker/prepare/source_times.h"

namespace stoker::prepare {
namespace {

constexpr std::uint64_t kGrain = 256;
constexpr std::uint64_t kAlwaysMerged = 64 * 1024;

// What stands in the index for an object, in place of a time: never 0.
std::int64_t time_of_version(const char* version) {
  return static_cast<std::int64_t>(hash_text(version) >> 1 | 1);
}

// The tar beside a payload holds label and columns too: where they differ the sample is written again.
bool same_beside(const dataset::Dataset& source, std::uint64_t position, const dataset::Packed& base,
                 std::uint64_t sample) {
  const dataset::LabelKind kind = source.facts().label_kind;
  if (kind != base.facts().label_kind || source.facts().columns != base.facts().columns) return false;
  if (dataset::label_bits(source.label(position), kind) != base.row(sample).label) return false;
  for (std::size_t c = 0; c < source.facts().columns.size(); ++c) {
    if (source.column_text(c, position) != base.column_text(c, sample)) return false;
  }
  return true;
}

bool same_in_index(const dataset::Dataset& source, std::uint64_t position, const dataset::Packed& base,
                   std::uint64_t sample) {
  return same_beside(source, position, base, sample) && source.facts().classes == base.facts().classes;
}

}  // namespace

SourceState look_at_source(const dataset::Dataset& source, const dataset::Progress& progress) {
  SourceState state;
  const std::uint64_t count = source.size();
  state.bytes.resize(count);
  state.mtime_ns.resize(count);
  state.changed_ns.resize(count);
  struct Times {
    std::int64_t modified_ns = 0, changed_ns = kUnknownTime;
  };
  std::map<const storage::Source*, Times> shared;  // one file for many samples
  for (std::uint64_t i = 0; i < count; ++i) {
    const storage::Location where = source.location(i);
    if (where.source == nullptr) break;
    auto found = shared.find(where.source);
    if (found == shared.end()) {
      Times times;
      if (const int fd = where.source->descriptor(); fd >= 0) {
        const os::FileFacts facts = os::facts_of(fd);
        if (!facts.is_found()) throw system_error(facts.error_number, "look up", where.source->name());
        times = {facts.modified_ns, facts.changed_ns};
      }
      found = shared.emplace(where.source, times).first;
    }
    state.bytes[i] = where.bytes;
    state.mtime_ns[i] = found->second.modified_ns;
    state.changed_ns[i] = found->second.changed_ns;
  }
  if (!shared.empty()) return state;

  dataset::Crew crew(0, progress);
  crew.run_in_parts(count, kGrain, [&](std::uint64_t begin, std::uint64_t end) {
    char text[storage::kLocationText];
    for (std::uint64_t i = begin; i < end; ++i) {
      const storage::Location file = source.locate(i, text);
      if (!file.is_file()) {  // an object of a store: without a version, what it holds is compared
        state.bytes[i] = file.bytes;
        state.changed_ns[i] = kUnknownTime;
        if (file.version != nullptr) state.mtime_ns[i] = time_of_version(file.version);
        continue;
      }
      if (file.name == nullptr) continue;
      const os::FileFacts facts = os::facts_of(file.directory, file.name);
      if (!facts.is_found()) continue;
      state.bytes[i] = facts.bytes;
      state.mtime_ns[i] = facts.modified_ns;
      state.changed_ns[i] = facts.changed_ns;
    }
    crew.count(end - begin);
  });
  if (!source.backends().empty()) {
    state.has_version.resize(count);
    for (std::uint64_t i = 0; i < count; ++i) state.has_version[i] = source.location(i).version != nullptr;
  }
  return state;
}

std::vector<std::uint64_t> find_in(const dataset::Packed& base, const dataset::Dataset& source) {
  std::unordered_map<std::uint64_t, std::uint64_t> by_id;
  by_id.reserve(base.size());
  for (std::uint64_t i = 0; i < base.size(); ++i) by_id.emplace(base.id(i), i);
  std::vector<std::uint64_t> found(source.size(), PackPlan::kNone);
  for (std::uint64_t i = 0; i < source.size(); ++i) {
    if (const auto at = by_id.find(source.id(i)); at != by_id.end()) found[i] = at->second;
  }
  return found;
}

PackPlan make_plan(const dataset::Dataset& source, const SourceState& state, const dataset::Packed* base,
                   std::span<const std::uint64_t> in_base, dataset::PackKind kind, std::uint64_t shard_bytes,
                   std::uint64_t settings_key) {
  PackPlan plan;
  plan.key = mix(settings_key, source.size());
  std::vector<bool> shard_stays;
  if (base != nullptr) {
    shard_stays.assign(base->manifest().shards.size(), true);
    for (const dataset::PackShard& shard : base->manifest().shards)
      plan.next_number = std::max(plan.next_number, dataset::shard_number(shard.name) + 1);
    plan.key = mix(plan.key, base->manifest().fingerprint);
  }
  constexpr std::uint64_t kNone = PackPlan::kNone;
  std::vector<std::uint64_t> found(source.size(), kNone);  // sample of the base with the same payload
  std::vector<bool> taken(base != nullptr ? base->size() : 0);
  for (std::uint64_t i = 0; i < source.size(); ++i) {
    plan.key = mix(mix(plan.key, source.id(i)), mix(state.bytes[i], static_cast<std::uint64_t>(state.mtime_ns[i])));
    plan.key = mix(plan.key, static_cast<std::uint64_t>(state.changed_ns[i]));
    plan.key = mix(plan.key, dataset::label_bits(source.label(i), source.facts().label_kind));
    const std::uint64_t sample = base == nullptr ? kNone : in_base[i];
    if (sample == kNone) {
      ++plan.added;
      continue;
    }
    taken[sample] = true;
    const dataset::PackRow row = base->row(sample);
    if (row.source_bytes != state.bytes[i] || row.source_mtime_ns != state.mtime_ns[i] ||
        (!state.differs.empty() && state.differs[i])) {
      ++plan.changed;
      shard_stays[row.shard] = false;
      continue;
    }
    found[i] = sample;
    plan.reordered = plan.reordered || sample != i;
    ++plan.unchanged;
    if (kind == dataset::PackKind::encoded && !same_beside(source, i, *base, sample)) {
      ++plan.relabelled;
      shard_stays[row.shard] = false;
    } else if (kind == dataset::PackKind::raw && !same_in_index(source, i, *base, sample)) {
      ++plan.relabelled;
    }
  }
  for (std::uint64_t i = 0; i < taken.size(); ++i) {
    if (taken[i]) continue;
    ++plan.removed;
    shard_stays[base->row(i).shard] = false;
  }

  if (base != nullptr) {
    // Many small additions would leave many small shards: the smallest are merged while they are no larger than twice
    // what is written anyway, which keeps their number to a logarithm.
    std::uint64_t loose_bytes = 0;
    for (std::uint64_t i = 0; i < source.size(); ++i) {
      if (found[i] == kNone || !shard_stays[base->row(found[i]).shard])
        loose_bytes += found[i] == kNone ? state.bytes[i] : base->row(found[i]).bytes;
    }
    std::vector<std::pair<std::uint64_t, std::uint32_t>> small;
    for (std::uint32_t s = 0; s < shard_stays.size(); ++s) {
      const std::uint64_t bytes = base->manifest().shards[s].bytes;
      if (shard_stays[s] && bytes < shard_bytes / 2) small.emplace_back(bytes, s);
    }
    std::sort(small.begin(), small.end());
    for (const auto& [bytes, s] : small) {
      if (loose_bytes == 0 || bytes > 2 * loose_bytes + kAlwaysMerged) break;
      shard_stays[s] = false;
      loose_bytes += bytes;
    }
    for (std::uint32_t s = 0; s < shard_stays.size(); ++s) {
      if (shard_stays[s]) plan.kept_shards.push_back(s);
    }
  }
  for (std::uint64_t i = 0; i < source.size(); ++i) {
    if (found[i] != kNone && shard_stays[base->row(found[i]).shard]) {
      plan.kept.emplace_back(i, found[i]);
    } else {
      plan.loose.push_back({i, found[i]});
    }
  }
  return plan;
}

}  // namespace stoker::prepare
