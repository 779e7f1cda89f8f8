// Is every sample what it should be? Of a pack: checksums, index, heads of the shards; of anything else: whether each
// sample can be read and begins as its kind should. Blocks; uses threads of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/text.h"
#include "stoker/prepare/pack.h"

namespace stoker::prepare {

struct CheckOptions {
  std::string address;
  std::string label;    // index.csv: the label column
  bool decode = false;  // decode every sample wholly
  bool repair = false;  // of a pack: rebuild the damaged samples from its source; of volumes: all of it
  std::string source;   // repair: where the source is now, if it was moved
  TellProgress progress;
};

struct Damage {
  std::uint64_t index = 0;
  std::string name, cause;
  bool repaired = false;
  std::string not_repaired;  // why not, where repair was asked for
};

struct CheckReport {
  std::string address, kind;
  std::string_view unit = "sample";  // what is counted: a pack of volumes has bricks
  std::uint64_t count = 0;           // that were looked at
  std::uint64_t bytes = 0;
  bool decoded = false, is_pack = false;
  std::vector<Damage> damaged;
  std::vector<std::string> broken;  // files of a pack: one sentence each
  bool broken_repaired = false;
  std::vector<Text> notes;
  double seconds = 0;

  bool is_sound() const noexcept;  // nothing is damaged, or all of it was repaired
};

// Throws Error where the data set cannot be opened at all; damage is in the report.
CheckReport check(const CheckOptions& options);

}  // namespace stoker::prepare
