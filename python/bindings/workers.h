// Memory shared with worker processes, as Python holds it.
#pragma once

#include <memory>

#include "stoker/os/shared_region.h"

#include "bindings/bindings.h"

namespace stoker::bindings {

struct SharedHandle {
  std::shared_ptr<os::SharedRegion> memory = std::make_shared<os::SharedRegion>();
};

}  // namespace stoker::bindings
