// The last step of a pack: index.npy, names.txt, columns.csv and pack.json from the rows that were written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/prepare/journal.h"

namespace stoker::prepare {

// Writes the files into `folder`, pack.json last. `rows` in any order; positions are samples of `source`, which has
// names, labels and columns. Fills in what of `pack` follows from them; `pack.files` has those that are there already.
void write_index(const std::string& folder, const dataset::Dataset& source, std::vector<JournalRow> rows,
                 dataset::PackManifest& pack);

void sort_rows(std::vector<JournalRow>& rows);          // by position
std::uint64_t folder_bytes(const std::string& folder);  // of the plain files in it

}  // namespace stoker::prepare
