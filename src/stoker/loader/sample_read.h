// One sample's bytes, read at once by the calling thread: for looking at the first sample and for replacing a bad one.
// The stream of batches does not use this; see storage/fetcher.h.
#pragma once

#include <cstdint>
#include <span>

#include "stoker/base/scratch.h"
#include "stoker/dataset/dataset.h"

namespace stoker::loader {

struct SampleBytes {
  std::span<const std::byte> bytes;
  int error_number = 0;  // not 0: the read failed
};

// The bytes live in `scratch` (or in the source's own memory) until its next reset.
SampleBytes read_sample(const dataset::Dataset& dataset, std::uint64_t index, Scratch& scratch) noexcept;

}  // namespace stoker::loader
