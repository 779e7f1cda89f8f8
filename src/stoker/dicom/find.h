// Finds the DICOM files below a folder, by their content, and reads their headers in parallel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/dicom/file.h"
#include "stoker/dicom/prepare.h"

namespace stoker::dicom {

struct FoundFiles {
  std::uint64_t looked_at = 0;      // files of any kind
  std::vector<Source> sources;      // DICOM files, by path
  std::vector<LeftOut> unreadable;  // folders that cannot be listed
};

// Links are followed, each folder once. The destination is left out where it lies below the source. Throws Error: the
// source is not a folder, or the caller's progress ends it.
FoundFiles find_files(const PrepareOptions& options);

}  // namespace stoker::dicom
