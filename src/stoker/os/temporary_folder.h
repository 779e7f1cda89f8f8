// A folder below TMPDIR (or /tmp) that is gone, with all that is in it, when this object is.
#pragma once

#include <string>
#include <string_view>

namespace stoker::os {

class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string_view prefix);  // of its name. Throws Error.
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const noexcept { return path_; }
  void keep() noexcept { is_kept_ = true; }  // after all

 private:
  std::string path_;
  bool is_kept_ = false;
};

}  // namespace stoker::os
