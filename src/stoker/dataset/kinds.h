// The kinds of data sets that open() tells apart, one function each. All throw Error.
#pragma once

#include <functional>
#include <string>

#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

DatasetPtr open_folder(const std::string& address, const OpenOptions& options);
// The objects below an address of a store, as if they were a folder: the same samples, ids, labels and fingerprint.
DatasetPtr open_objects(const std::string& address, const OpenOptions& options);
DatasetPtr open_csv(const std::string& address, const OpenOptions& options);
DatasetPtr open_npy(const std::string& address, const OpenOptions& options);
DatasetPtr open_pack(const std::string& address, const OpenOptions& options);
DatasetPtr open_tar(const std::string& pattern, const OpenOptions& options);

// Narrows and widens as the options ask: classes, then samples, then copies.
DatasetPtr narrow_and_widen(DatasetPtr dataset, const OpenOptions& options);

// Calls `open_now` so that OpenOptions::progress also ends waits for a store that does not answer.
DatasetPtr open_interruptibly(const OpenOptions& options,
                              const std::function<DatasetPtr(const OpenOptions&)>& open_now);

}  // namespace stoker::dataset
