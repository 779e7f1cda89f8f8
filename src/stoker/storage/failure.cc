#include "stoker/storage/failure.h"

#include <cerrno>
#include <cstring>
#include <new>

namespace stoker::storage {
namespace {

bool may_pass(int error_number) noexcept {
  switch (error_number) {
    case EAGAIN:
    case EINTR:
    case EIO:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ESTALE:
    case ETIMEDOUT:
    case ECONNRESET:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return true;
    default:
      return false;
  }
}

}  // namespace

Failure failure_of(int error_number) {
  Failure failure;
  const Error system = system_error(error_number, "read", "");
  failure.kind = system.kind();
  failure.text = std::strerror(error_number);
  failure.may_retry = may_pass(error_number);
  failure.ends_the_run = error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM;
  if (failure.ends_the_run) failure.hint = system.hint();
  return failure;
}

Failure failure_of(const std::exception& error) {
  Failure failure;
  failure.text = error.what();
  failure.ends_the_run = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  if (const auto* const known = dynamic_cast<const Error*>(&error)) {
    failure.text = known->cause();
    failure.kind = known->kind();
    failure.hint = known->hint();
    failure.may_retry = known->kind() == ErrorKind::unavailable;
  }
  return failure;
}

}  // namespace stoker::storage
