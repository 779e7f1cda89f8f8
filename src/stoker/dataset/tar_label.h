// The label of a sample in a tar shard: a .cls member holds it as text, a .json member under `label`, `cls` or `class`.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/dataset/tar_format.h"

namespace stoker::dataset {

// A label as it was found, before all of them decide what labels are.
struct FoundLabel {
  enum class Kind : std::uint8_t { none, integer, real, text } kind = Kind::none;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;  // as it was written, where it was; a number among texts is a text
};

// The label that a .cls or .json member holds. `problem` says why a member that should hold one holds none.
FoundLabel read_label(TarReader& reader, const TarMember& member, bool is_json, const char*& problem);

}  // namespace stoker::dataset
