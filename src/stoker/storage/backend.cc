#include "stoker/storage/backend.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/storage/s3/backend.h"
#include "stoker/storage/s3/web_backend.h"

namespace stoker::storage {
namespace {

// One line for each backend that is built in.
constexpr std::array kBuiltIn = {
    &local_files,
#ifdef STOKER_HAS_S3
    &s3::s3_objects,
    &s3::http_files,
    &s3::https_files,
#endif
};

constexpr std::size_t kLongestScheme = 15;

struct Added {
  std::mutex mutex;
  std::vector<const Backend*> backends;
};

Added& added() {
  static Added added;
  return added;
}

}  // namespace

std::unique_ptr<ObjectWriter> Backend::create(std::string_view name) const {
  throw Error(ErrorKind::unsupported, fmt::format("cannot write `{}://{}`: Stoker only reads there", scheme(), name));
}

void Backend::remove(std::string_view name) const {
  throw Error(ErrorKind::unsupported, fmt::format("cannot remove `{}://{}`: Stoker only reads there", scheme(), name));
}

Address split_address(std::string_view address) noexcept {
  const std::size_t end = address.find("://");
  if (end == std::string_view::npos || end == 0 || end > kLongestScheme) return {{}, address};
  return {address.substr(0, end), address.substr(end + 3)};
}

const Backend* find_backend(std::string_view scheme) noexcept {
  if (scheme.empty()) return &local_files();
  const std::string lower = to_lower(scheme);  // as URLs have it: S3:// is s3://
  for (const auto& built_in : kBuiltIn) {
    if (built_in().scheme() == lower) return &built_in();
  }
  const std::scoped_lock lock(added().mutex);
  for (const Backend* const backend : added().backends) {
    if (backend->scheme() == lower) return backend;
  }
  return nullptr;
}

const Backend* store_of(std::string_view address) noexcept {
  const std::string_view scheme = split_address(address).scheme;
  const Backend* const backend = scheme.empty() ? nullptr : find_backend(scheme);
  return backend == &local_files() ? nullptr : backend;
}

std::string without_file_scheme(const std::string& address) {
  const auto [scheme, name] = split_address(address);
  return !scheme.empty() && find_backend(scheme) == &local_files() ? std::string(name) : address;
}

std::string_view option_of(std::string_view scheme) noexcept {
  const std::string lower = to_lower(scheme);
  return lower == "s3" || lower == "http" || lower == "https" ? "STOKER_S3" : "";
}

ReadAdvice advice_on(const Location& location) noexcept {
  if (location.source != nullptr) return location.source->advice();
  return (location.backend != nullptr ? *location.backend : local_files()).advice();
}

AddedBackend::AddedBackend(const Backend& backend) : backend_(backend) {
  const std::scoped_lock lock(added().mutex);
  added().backends.push_back(&backend_);
}

AddedBackend::~AddedBackend() {
  const std::scoped_lock lock(added().mutex);
  std::erase(added().backends, &backend_);
}

}  // namespace stoker::storage
