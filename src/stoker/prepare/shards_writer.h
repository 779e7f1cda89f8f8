// Writes samples, in the order given, into the shards of a pack that is being made; notes in the journal what is on the
// disk, and goes on from there after a kill. The same samples give the same files, however often it was interrupted.
// One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/pack_format.h"
#include "stoker/prepare/journal.h"
#include "stoker/prepare/seek_spill.h"
#include "stoker/prepare/shard_file.h"

namespace stoker::prepare {

struct ShardsOptions {
  std::string folder;
  std::uint64_t plan = 0;  // key of the journal
  dataset::PackKind kind = dataset::PackKind::raw;
  DType dtype = DType::u8;           // raw
  std::vector<std::uint64_t> shape;  // raw: of one sample
  std::uint64_t shard_bytes = 1'000'000'000;
  std::uint64_t first_shard = 0;                        // place of the first new shard in the manifest's list
  std::uint64_t first_number = 0;                       // in its name
  std::uint64_t sync_bytes = std::uint64_t{256} << 20;  // a note in the journal at least so often
  std::chrono::nanoseconds sync_every = std::chrono::seconds(5);
  bool seek = false;  // keep NewSample::seek, in a spill (seek_spill.h)
};

struct NewSample {
  std::uint64_t position = 0;  // in the pack
  // Which new shard it goes into, from 0 and never falling; none: the next one, once the open one is full.
  std::optional<std::uint64_t> shard;
  dataset::PackRow row;  // all but shard, offset, bytes and xxh3
  std::span<const std::byte> payload;
  std::optional<std::uint64_t> xxh3;  // of the payload, where it is known already
  std::string_view name;              // kept in the journal, where no source has it
  // encoded
  std::string_view member;          // its name in the tar: key.jpg
  std::string_view cls, json;       // what lies beside it under the same key; empty: nothing
  std::span<const std::byte> seek;  // noted of it (ShardsOptions::seek); empty: nothing
};

class ShardsWriter {
 public:
  explicit ShardsWriter(ShardsOptions options);
  ~ShardsWriter();

  std::uint64_t cursor() const noexcept { return cursor_; }  // samples dealt with, also by runs before this one
  std::uint64_t bytes() const noexcept { return bytes_; }    // written by this run

  void append(const NewSample& sample);
  void skip(std::string_view name, std::string_view cause);
  void checkpoint();  // notes everything so far; append calls it when it is due
  void checkpoint_if_due();
  void finish();                                        // closes the last shard
  SeekSpill* spill() noexcept { return spill_.get(); }  // null without ShardsOptions::seek

  // Complete after finish().
  const std::vector<JournalRow>& rows() const noexcept { return rows_; }
  const std::vector<dataset::PackShard>& shards() const noexcept { return shards_; }
  const std::vector<dataset::PackSkipped>& skipped() const noexcept { return skipped_; }
  const std::vector<std::string>& names() const noexcept { return names_; }  // of rows(), where they were given

 private:
  void resume();
  void open_shard(std::uint64_t number);
  std::string name_of(std::uint64_t number) const;
  void close_shard();
  void note(bool shard_done);
  std::uint64_t needed(const NewSample& sample) const;

  ShardsOptions options_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<ShardFile> file_;
  std::unique_ptr<SeekSpill> spill_;
  std::uint64_t cursor_ = 0, bytes_ = 0, noted_bytes_ = 0;
  std::chrono::steady_clock::time_point noted_at_;
  std::vector<JournalRow> rows_;
  std::size_t noted_rows_ = 0;
  std::vector<dataset::PackShard> shards_;  // the last one may be open
  std::uint64_t number_ = 0;  // of the last one, from 0; a shard whose samples are all skipped has no file
  std::vector<dataset::PackSkipped> skipped_;
  std::size_t noted_skipped_ = 0;
  std::vector<std::string> names_;
  std::size_t noted_names_ = 0;
};

}  // namespace stoker::prepare
