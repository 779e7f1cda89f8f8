// `stoker inspect` of volumes: shape, spacing, chunks, compression, and a slice as a small picture. Single-threaded.
#pragma once

#include <string>

#include "terminal.h"

namespace stoker::cli {

// Whether an address can only be volumes: a NIfTI or TIFF file, a zarr folder, a volumes.csv.
bool is_volumes(const std::string& address);
// Answers, and returns the exit code: 1 where a volume cannot be read. `html`: where a page of the same goes; empty:
// nowhere. Throws Error.
int inspect_volumes(const Face& face, const std::string& address, const std::string& html);

}  // namespace stoker::cli
