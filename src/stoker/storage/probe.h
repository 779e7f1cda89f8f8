// What a disk gives, measured on the file at hand within a given time: for storage=auto, where the page cache cannot
// hold the data. Reads past the page cache, so that what was read before does not flatter.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "stoker/base/text.h"
#include "stoker/storage/source.h"

namespace stoker::storage {

struct DiskRates {
  double single_bytes_per_s = 0;     // reads of one sample each, at random, many in flight
  double neighbour_bytes_per_s = 0;  // large reads, one after another
  std::uint64_t reads = 0;

  // One clause for people: what was seen and, where `shuffled` samples suffer from it, what would help.
  Text describe(bool shuffled) const;
};

// `sample_bytes`: of a usual sample. Throws Error as Source::read does.
DiskRates probe_disk(const Source& source, std::uint64_t sample_bytes, std::chrono::nanoseconds budget);

}  // namespace stoker::storage
