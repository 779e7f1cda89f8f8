// What a tar shard holds, before all shards together decide what labels are; and how it is kept in the cache folder, so
// that the next start need not read the shard. Kept are shards of a store that tells versions, and without damage: the
// key is the store, the address, the version and the size, so a shard that changed has another key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/dataset/tar_label.h"

namespace stoker::dataset {

struct TarSample {
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t name_at = 0;
  std::uint32_t name_bytes = 0;
  std::uint32_t shard = 0;
};

// Members of a shard that cannot be used: how many, and the first of them.
struct UnusedMembers {
  std::uint64_t count = 0;
  std::string first;  // its name, and what is wrong with it

  template <typename Describe>
  void add(const Describe& describe) {
    if (count++ == 0) first = describe();
  }
  void add(const UnusedMembers& other) {
    if (count == 0) first = other.first;
    count += other.count;
  }
};

struct ScannedShard {
  std::string names;
  std::vector<TarSample> samples;
  std::vector<FoundLabel> labels;  // one per sample
  std::vector<TarGap> gaps;
  std::vector<std::uint64_t> beside_gaps;  // samples that may have lost their label
  bool lacks_end = false;                  // it ends behind a whole member, without the marker
  std::uint64_t without_data = 0;
  UnusedMembers links;                            // that lead to no member
  UnusedMembers bad_labels;                       // members that should have one
  UnusedMembers labels_apart;                     // of samples that have data elsewhere in the shard
  UnusedMembers labels_alone;                     // of samples that have no data
  std::map<std::string, std::uint64_t> left_out;  // further members of known kinds, counted by extension

  std::string_view name(std::uint64_t sample) const noexcept {
    return std::string_view(names).substr(samples[sample].name_at, samples[sample].name_bytes);
  }
};

// As bytes with a checksum, and back. False: `bytes` is not a whole and sound record of `key`.
std::string to_record(const ScannedShard& shard, std::string_view key);
bool from_record(std::string_view bytes, std::string_view key, ScannedShard& shard);

// Takes the shard over from the cache folder. False: it is not there, or `source` may not be kept.
bool load_shard(const storage::Source& source, std::uint32_t number, const OpenOptions& options, ScannedShard& shard);
void save_shard(const storage::Source& source, const OpenOptions& options, const ScannedShard& shard) noexcept;

}  // namespace stoker::dataset
