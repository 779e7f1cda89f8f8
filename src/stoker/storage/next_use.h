// When bytes are used, and when again, in the order of a job: positions count the samples of all its epochs, the same
// on all of its ranks. The order is computed, so that a loader knows the next use of everything that it reads.
#pragma once

#include <cstdint>

namespace stoker::storage {

struct NextUse {
  std::uint64_t order = 0;  // which order: the same for all ranks of a job, another one for other jobs; 0: unknown
  std::uint64_t now = 0;    // the position of this use
  std::uint64_t next = 0;   // the position of the next one; it is above `now`

  bool is_known() const noexcept { return order != 0; }
};

}  // namespace stoker::storage
