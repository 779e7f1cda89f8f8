// part.json: what one finished part of a pack holds, and what it was made from. Written last, when every shard of the
// part is on the disk. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/pack_format.h"
#include "stoker/prepare/part_name.h"

namespace stoker::prepare {

inline constexpr std::string_view kPartJson = "part.json";

struct PartRecord {
  PartName part;
  std::string source;         // its address on the machine that made the part
  std::uint64_t samples = 0;  // of the whole source
  std::uint64_t listing = 0;  // hash of names, sizes, modification times, labels and columns of the whole source
  std::string settings;       // as in pack.json
  std::uint64_t shard_size = 0;
  bool seeks = false;
  std::int64_t looked_at_ns = 0;  // when the files were looked up, since 1970
  std::uint64_t changed = 0;      // hash of the change times of the part's files
  std::uint64_t rows = 0;         // samples in the shards; the journal has the rows themselves
  std::vector<dataset::PackShard> shards;
  std::vector<dataset::PackSkipped> skipped;

  // The key of the part's journal: of all that decides what the part holds.
  std::uint64_t key() const noexcept;
};

void write_part(const std::string& folder, const PartRecord& record);  // throws Error
// None where the part is not finished, or part.json is unreadable.
std::optional<PartRecord> read_part(const std::string& folder);

}  // namespace stoker::prepare
