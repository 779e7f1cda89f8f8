#include "stoker/os/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "stoker/base/error.h"

namespace stoker::os {

TemporaryFolder::TemporaryFolder(std::string_view prefix) {
  const char* const base = std::getenv("TMPDIR");
  path_ = fmt::format("{}/{}XXXXXX", base != nullptr && *base != '\0' ? base : "/tmp", prefix);
  if (::mkdtemp(path_.data()) == nullptr) throw system_error(errno, "make a temporary folder like", path_);
}

TemporaryFolder::~TemporaryFolder() {
  if (is_kept_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace stoker::os
