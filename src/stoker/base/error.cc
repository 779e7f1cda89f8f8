#include "stoker/base/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/format_text.h"

namespace stoker {

std::string_view name(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::not_found:
      return "not_found";
    case ErrorKind::permission:
      return "permission";
    case ErrorKind::corrupt:
      return "corrupt";
    case ErrorKind::unavailable:
      return "unavailable";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::internal:
      return "internal";
  }
  return "internal";
}

Error::Error(ErrorKind kind, Text message, Text hint)
    : kind_(kind),
      text_(std::move(message)),
      hint_text_(std::move(hint)),
      message_(text_.in_python()),
      hint_(hint_text_.in_python()) {}

Error Error::about(std::string_view option) const {
  Error error = *this;
  error.option_ = option;
  return error;
}

Error Error::because(std::string cause) const {
  Error error = *this;
  error.cause_ = std::move(cause);
  return error;
}

namespace {

ErrorKind kind_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorKind::not_found;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorKind::permission;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
    case EISDIR:
      return ErrorKind::usage;
    default:
      return ErrorKind::unavailable;
  }
}

Text hint_of(int error_number) {
  switch (error_number) {
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files: `ulimit -n 65536`";
    case ENOSPC:
      return "free some space, or choose another folder";
    case ENOMEM:
      return format_text("lower {}, or free memory", option("memory_limit"));
    default:
      return {};
  }
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row[b.size()];
}

}  // namespace

Error system_error(int error_number, std::string_view operation, std::string_view subject) {
  return Error(kind_of(error_number),
               fmt::format("cannot {} `{}`: {}", operation, subject, std::strerror(error_number)),
               hint_of(error_number))
      .because(std::strerror(error_number));
}

std::string nearest(std::string_view word, const std::string_view* candidates, std::size_t count) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t d = distance(word, candidates[i]);
    if (d < best_distance) best_distance = d, best = candidates[i];
  }
  return std::string(best);
}

}  // namespace stoker
