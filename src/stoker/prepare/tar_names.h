// What a tar says of each sample of a data set besides its bytes: the member's name, label and columns.
// Immutable; safe from any thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "stoker/dataset/dataset.h"

namespace stoker::prepare {

class TarNames {
 public:
  // Looks for samples that would share a key. The data set must outlive it.
  explicit TarNames(const dataset::Dataset& dataset);

  // `extension` (".jpg") is added where the name has none that says what it is.
  std::string member(std::uint64_t index, std::string_view extension) const;
  std::string cls(std::uint64_t index) const;   // empty: labels are not whole numbers
  std::string json(std::uint64_t index) const;  // {"label": 0.5, "column": "text"}; empty: nothing to say
  // What the sample and the members beside it take in the tar. It follows from the listing: an extension that only the
  // content tells is not counted.
  std::uint64_t bytes(std::uint64_t index, std::uint64_t payload_bytes) const;

 private:
  const dataset::Dataset& dataset_;
  std::set<std::uint64_t> clashes_;
};

// The name that a sample has in a tar, as WebDataset groups members: everything before the first dot behind the last
// slash is the key, so dots before the extension become underscores. `clashes`: another sample has the same key, so the
// id goes into it.
std::string member_name(std::string_view name, std::uint64_t id, bool clashes);
std::string member_key(std::string_view name);
// Where the extension begins, with its dot; the end of the name if it has none.
std::size_t extension_of(std::string_view name) noexcept;

}  // namespace stoker::prepare
