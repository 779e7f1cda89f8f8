// What of a pack is on the disk already, so that a run that was killed can go on: a file of records in the folder where
// the pack is made, each written after the bytes it speaks of. Belongs to one plan; a journal of another one is
// ignored. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/pack_format.h"
#include "stoker/os/append_file.h"

namespace stoker::prepare {

inline constexpr std::string_view kJournal = ".journal";
inline constexpr std::uint64_t kJournalHead = 16;  // bytes of one without records
// Beside it where a program builds the pack (builder.h): dtype, shape and labels of the rows.
inline constexpr std::string_view kShape = ".shape";

struct JournalRow {
  std::uint64_t position = 0;  // of the sample in the pack
  dataset::PackRow row;
};

struct JournalRecord {
  std::uint64_t cursor = 0;       // samples of the plan that were dealt with, skipped ones too
  std::uint64_t shard = 0;        // which new shard, from 0
  std::uint64_t shard_bytes = 0;  // of it on the disk
  std::uint64_t seek_bytes = 0;   // of the spilled seek places on the disk
  bool shard_done = false;
  std::vector<JournalRow> rows;  // since the record before
  std::string text;              // what the writer adds: names, bad samples
};

// The records of `folder`'s journal up to the first that is not whole; none if it belongs to another plan.
std::vector<JournalRecord> read_journal(const std::string& folder, std::uint64_t plan);

class Journal {
 public:
  // Starts an empty one, or goes on behind the records that read_journal found. Throws Error.
  Journal(const std::string& folder, std::uint64_t plan, bool go_on);
  // On the disk when it returns.
  void add(const JournalRecord& record);

 private:
  std::uint64_t plan_;
  os::AppendFile file_;
};

}  // namespace stoker::prepare
