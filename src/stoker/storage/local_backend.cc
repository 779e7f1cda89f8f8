#include <algorithm>
#include <filesystem>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/storage/backend.h"

namespace stoker::storage {
namespace {

namespace fs = std::filesystem;

class LocalFiles final : public Backend {
 public:
  std::string_view scheme() const noexcept override { return "file"; }
  ReadAdvice advice() const noexcept override { return {}; }

  std::unique_ptr<Source> open(std::string_view name, Storage storage) const override {
    return open_source(name, storage);
  }

  void list(std::string_view name, const Take& take) const override {
    struct File {
      std::string name;
      std::uint64_t bytes;
    };
    std::vector<File> files;
    try {
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(name))) {
        if (entry.is_regular_file()) files.push_back({entry.path().string(), entry.file_size()});
      }
    } catch (const fs::filesystem_error& error) {
      throw system_error(error.code().value(), "list", name);
    }
    std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.name < b.name; });
    for (const File& file : files) {
      if (!take({file.name, file.bytes, {}})) return;
    }
  }

  std::unique_ptr<Fetcher> make_fetcher(const FetcherOptions& options, std::string* fallback_reason) const override {
    return storage::make_fetcher(options, fallback_reason);
  }
};

}  // namespace

const Backend& local_files() noexcept {
  static const LocalFiles files;
  return files;
}

}  // namespace stoker::storage
