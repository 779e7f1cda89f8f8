// Where the parts of one row lie in the memory that is taken for them together. Parts that need no slack lie side by
// side, so that the row is one run of bytes. Planning a row and reading it add the same parts in the same order.
#pragma once

#include <cstddef>

#include "stoker/storage/fetcher.h"

namespace stoker::loader {

class PartLayout {
 public:
  PartLayout(const storage::Fetcher& fetcher, std::size_t alignment) noexcept
      : fetcher_(&fetcher), alignment_(alignment) {}

  struct Place {
    std::size_t at = 0, bytes = 0;
  };
  Place add(const storage::Location& part) noexcept {
    Place place{total_, part.bytes};
    if (part.source == nullptr || !fetcher_->reads_in_place(*part.source)) {
      place = {up(total_), up(fetcher_->buffer_bytes(part.bytes))};
    }
    total_ = place.at + place.bytes;
    return place;
  }

  std::size_t total() const noexcept { return total_; }

 private:
  std::size_t up(std::size_t value) const noexcept { return (value + alignment_ - 1) / alignment_ * alignment_; }

  const storage::Fetcher* fetcher_;
  std::size_t alignment_;
  std::size_t total_ = 0;
};

}  // namespace stoker::loader
