// A short text that changes with the bytes of a volume: a pack notes it to know whether its source changed.
// Blocks; safe from any thread.
#pragma once

#include <string>

namespace stoker::prepare {

// A file: its size and times. An object of a store: its size and version (ETag), or a hash of its content where the
// store tells no version. A folder or prefix (zarr, slices): the same of everything in it. A missing file has a stamp
// too; opening the volume reports it. Throws Error where a store cannot be asked.
std::string stamp_of_volume(const std::string& address);

}  // namespace stoker::prepare
