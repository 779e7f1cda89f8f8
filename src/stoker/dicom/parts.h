// Slices that several machines write together: what each finished part notes in the index folder, and whether all parts
// are there. Plain functions on small files; one thread per folder.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "stoker/prepare/part_name.h"

namespace stoker::dicom {

struct PartNote {
  prepare::PartName part;
  std::uint64_t plan = 0;            // hash of all series and their files, as the part saw them
  std::vector<std::string> refused;  // series of the part of which no slice could be written
};

void write_part_note(const std::string& index_folder, const PartNote& note);  // throws Error
void remove_part_notes(const std::string& index_folder) noexcept;

// The series that the parts refused. Throws Error if a part is missing, if parts overlap, or if one saw another plan.
std::set<std::string> require_all_parts(const std::string& index_folder, const std::string& destination,
                                        std::uint64_t plan);

}  // namespace stoker::dicom
