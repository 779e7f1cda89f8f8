// A folder for one test, gone afterwards, and verbs to fill it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "stoker/base/error.h"
#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

class Tree {
 public:
  Tree() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stoker-dataset-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  std::string at(std::string_view path = "") const { return path.empty() ? root_ : root_ + "/" + std::string(path); }

  std::string write(std::string_view path, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(at(path)).parent_path());
    std::ofstream(at(path), std::ios::binary) << text;
    return at(path);
  }
  void make_folder(std::string_view path) const { std::filesystem::create_directories(at(path)); }
  void link(std::string_view path, const std::string& target) const {
    std::filesystem::create_symlink(target, at(path));
  }
  void remove(std::string_view path) const { std::filesystem::remove_all(at(path)); }

 private:
  std::string root_;
};

inline OpenOptions without_cache() {
  OpenOptions options;
  options.use_cache = false;
  return options;
}

// Keeps listings in `cache`, and says it is ten seconds later than it is: folders written just now count as settled.
inline OpenOptions with_cache(const Tree& cache) {
  OpenOptions options;
  options.cache_dir = cache.at();
  options.now_ns = [] {
    return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count() + 10'000'000'000;
  };
  return options;
}

inline std::vector<std::string> names_of(const Dataset& dataset) {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < dataset.size(); ++i) names.push_back(dataset.name(i));
  return names;
}

inline std::vector<std::int64_t> labels_of(const Dataset& dataset) {
  std::vector<std::int64_t> labels;
  for (std::uint64_t i = 0; i < dataset.size(); ++i) labels.push_back(dataset.label(i).integer);
  return labels;
}

inline std::vector<std::uint64_t> sizes_of(const Dataset& dataset) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < dataset.size(); ++i) sizes.push_back(dataset.location(i).bytes);
  return sizes;
}

inline std::vector<std::uint64_t> ids_of(const Dataset& dataset) {
  std::vector<std::uint64_t> ids;
  for (std::uint64_t i = 0; i < dataset.size(); ++i) ids.push_back(dataset.id(i));
  return ids;
}

inline bool has_note(const Dataset& dataset, std::string_view part) {
  for (const std::string& note : dataset.facts().notes) {
    if (note.find(part) != std::string::npos) return true;
  }
  return false;
}

// The Error that `function` throws; none if it throws none.
inline std::optional<Error> error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

inline bool mentions(const std::optional<Error>& error, std::string_view part) {
  return error && error->message().find(part) != std::string::npos;
}

}  // namespace stoker::dataset
