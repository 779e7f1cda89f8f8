// What a loader knows of its samples once it has looked at the first. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/base/sample_kind.h"
#include "stoker/transform/output.h"

namespace stoker::loader {

struct KindFacts {
  SampleKind kind = SampleKind::array;
  std::vector<transform::Output> outputs;
  std::string description;                      // of what is made of a sample; one line for people
  std::vector<transform::IndexColumn> columns;  // their values are part of a sample's key
  bool is_encoded = false;                      // nobody but the caller decodes
  bool varies = false;                          // the row length is known per batch only
  bool has_lengths = false;                     // rows have a true count of frames or bytes
  bool packs_rows = false;                      // rows lie one after another, each only as long as it is; they vary
  bool is_copy = false;                         // bytes may be read straight into the slot
  bool takes_parts = false;                     // rows come as parts that are not joined, and may have none
  bool is_heavy = false;                        // decoding costs far more than handing over
  std::uint64_t scratch_estimate = 0;           // bytes that one worker needs for a usual sample
  std::uint32_t seekable_mcus = 0;  // of the first image, if it is a JPEG file whose places can be noted; else 0
  std::uint64_t first_length = 1, first_bytes = 1;   // where rows vary: length of the first sample's, and its file's
  std::uint64_t chunk_bytes = 0, chunked_bytes = 0;  // of a decoded chunk at most, and of all chunks; 0: there are none
  std::uint32_t height = 0, width = 0;               // of images that leave
  std::uint32_t channels = 0, rate_hz = 0;           // of images and audio that leave
};

}  // namespace stoker::loader
