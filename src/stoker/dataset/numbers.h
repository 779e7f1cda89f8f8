// A data set whose samples are made elsewhere, by their number: the loader orders, batches and resumes them as any
// others. Each stands for itself as one zero byte.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

// `name` names it in messages: sample 7 is "name[7]". Narrowed as `options` say. Throws Error.
DatasetPtr numbers(std::uint64_t count, const std::string& name, const OpenOptions& options = {});

}  // namespace stoker::dataset
