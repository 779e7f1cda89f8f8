// The error that a call ends with. For tests.
#pragma once

#include <functional>

#include "stoker/base/error.h"

namespace stoker::prepare {

inline Error refusal(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, "nothing was thrown");
}

}  // namespace stoker::prepare
