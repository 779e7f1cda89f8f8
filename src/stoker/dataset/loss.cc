#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

std::string Loss::message() const {
  if (bytes == 0) return fmt::format("cannot list `{}`: {}", name, cause);
  return fmt::format("cannot list `{}` at byte {}: {}; {} bytes are lost", name, offset, cause, format_count(bytes));
}

}  // namespace stoker::dataset
