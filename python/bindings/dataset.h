// A data set as Python holds it.
#pragma once

#include "bindings/bindings.h"

namespace stoker::bindings {

struct DatasetHandle {
  dataset::DatasetPtr dataset;
};

}  // namespace stoker::bindings
