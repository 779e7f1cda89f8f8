// The source of a pack: opened, looked at, and what its samples become. Every run over the same files and options sees
// the same content, settings and shards, on any machine. One thread; uses threads of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/packed.h"
#include "stoker/prepare/pack.h"
#include "stoker/prepare/pack_plan.h"
#include "stoker/prepare/payloads.h"
#include "stoker/prepare/shards_writer.h"
#include "stoker/prepare/tar_names.h"

namespace stoker::prepare {

// Tells how far the work is; false cancels it.
using Say = std::function<bool(std::string_view phase, std::uint64_t done, std::uint64_t total)>;

// The name of a source in pack.json, one for all spellings of it and from any folder: the real path, without `file://`.
// The folder of a pattern is made absolute, the pattern itself stays. Addresses of stores stay as they are.
std::string absolute_address(const std::string& given);

class PackSource {
 public:
  // Opens the source and reads its first samples. `options` must outlive it. Throws Error.
  PackSource(const PackOptions& options, const Say& say);

  void look(const Say& say);  // fills `state`
  void name_members();        // fills `names`

  // Where each shard begins in `loose`. The borders follow from the listing: a sample that is skipped later leaves its
  // shard shorter. look() and name_members() come first; `base` may be null.
  std::vector<std::uint64_t> shard_starts(const std::vector<PackPlan::Loose>& loose, const dataset::Packed* base) const;
  // What the samples take on the disk, without the index.
  std::uint64_t expected_bytes(const std::vector<PackPlan::Loose>& loose) const;

  // Everything but shards, skipped samples and what write_index() fills in.
  dataset::PackManifest manifest() const;
  ShardsOptions shards_options(std::string folder, std::uint64_t plan) const;
  void append(const Payload& payload, std::optional<std::uint64_t> shard, ShardsWriter& writer) const;
  // Writes the rest of `loose`, from the cursor of the writer on. `starts` is what shard_starts() gives for `loose`.
  // `keep_going` is asked between samples. Throws Error.
  void write(const std::vector<PackPlan::Loose>& loose, const std::shared_ptr<const dataset::Packed>& base,
             std::span<const std::uint64_t> starts, ShardsWriter& writer,
             const std::function<bool()>& keep_going) const;
  // Remembers the change times of the pack's samples (source_times.h). `positions`: of its samples, in their order.
  // Returns a note where they cannot be saved.
  std::string remember_times(const std::string& destination, std::uint64_t key,
                             std::span<const std::uint64_t> positions) const;
  void begin_report(const std::string& destination, PackReport& report) const;

  const PackOptions& options;
  dataset::DatasetPtr data;
  Content content;
  std::string settings;  // JSON
  std::string address;   // of the source, absolute
  bool seeks = false;    // places in JPEG files are noted
  SourceState state;
  std::int64_t looked_at_ns = 0;
  std::optional<TarNames> names;  // encoded
};

// Why a sample was left out, as pack.json keeps it: a file names options by their own names.
std::string in_pack(const Text& fault);

// "it needs 3 GB and its disk has 1 GB left", or empty. `there`: bytes that an interrupted run has written already.
std::string lack_of_room(const std::string& folder, std::uint64_t needed, std::uint64_t there);

// Throws the error again with the advice to run the same command once more.
[[noreturn]] void throw_resumable(const Error& error);

}  // namespace stoker::prepare
