// A folder for one test, gone with everything in it when the test ends. Used by the tests of os/ and storage/.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace stoker::os {

class TempFolder {
 public:
  TempFolder() {
    path_ = (std::filesystem::temp_directory_path() / "stoker_test_XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

  // Writes `text` to `name` below the folder, making folders on the way; returns the whole path.
  std::string file(const std::string& name, std::string_view text) const {
    const std::filesystem::path whole = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole, std::ios::binary | std::ios::trunc)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
    return whole.string();
  }

 private:
  std::string path_;
};

}  // namespace stoker::os
