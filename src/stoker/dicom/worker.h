// The program that decodes and writes slices, run by `stoker prepare dicom` as a process of its own, so that a crash on
// a damaged file costs that file alone. Requests and answers are lines of JSON:
//   {"do": "slices", "path": P, "frames": [0, 1], "rows": R, "columns": C, "to": ["a.png", "b.png"]}
//   {"do": "slices", ..., "array": "slices.npy", "at": [128, 524416]}: into an array that is there, at these bytes
//     -> {"bytes": [123, 124], "errors": ["", ""]}: for each frame what was written, or why it was not
//   {"do": "sync", "folder": F} -> {}: everything in F is on the disk
//   any of them -> {"error": "..."}: nothing of it could be done; {"stop": "..."}: the output cannot be written
#pragma once

#include <cstdint>
#include <string_view>

#include "stoker/base/json.h"
#include "stoker/codec/png_writer.h"

namespace stoker::dicom {

class SliceWorker {
 public:
  Json answer(const Json& request) noexcept;

 private:
  Json write_slices(const Json& request);

  codec::PngWriter png_;
};

// Answers the lines of standard input until it ends. `memory_limit` bounds the address space; 0: no bound. The verb
// `stoker dicom-worker` is this.
int serve_slices(std::uint64_t memory_limit);

}  // namespace stoker::dicom
