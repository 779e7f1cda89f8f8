// Why bytes did not come, as a value: one sample that cannot be read does not end a run.
#pragma once

#include <string>

#include "stoker/base/error.h"

namespace stoker::storage {

struct Failure {
  ErrorKind kind = ErrorKind::unavailable;
  std::string text;           // the cause: what stands behind "cannot read `x`: "
  std::string hint;           // the remedy, or empty
  bool may_retry = false;     // the same request may succeed later
  bool ends_the_run = false;  // it says nothing about the sample (no descriptors, no memory): no policy hides it
};

Failure failure_of(int error_number);
Failure failure_of(const std::exception& error);  // an Error keeps its kind and hint

}  // namespace stoker::storage
