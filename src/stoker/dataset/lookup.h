// Looks up many files at once, in parallel: their sizes, or that they are not there.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

inline constexpr std::uint64_t kNoFile = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint64_t kNotAFile = kNoFile - 1;

// The size of the regular file `path` below `directory`; kNoFile if it does not exist; kNotAFile for a folder or pipe.
// Throws Error(permission) or the like where that cannot be told.
std::uint64_t size_of_file(int directory, const char* path);

constexpr bool is_found(std::uint64_t size) noexcept {
  return size < kNotAFile;
}

// Why size_of_file found no file: "no such file: `x`", "`x` is a pipe, not a file".
std::string why_no_file(int directory, const char* path, std::string_view name);

// The files that look_up() did not find.
struct NotFound {
  std::uint64_t count = 0;
  std::uint64_t total = 0;  // files that were looked up
  std::uint64_t first = 0;  // the one to name
  bool is_refused = false;  // the data set cannot be opened

  // `why`: why_no_file() of `first`.
  std::string cause(const std::string& why) const;  // of the refusal
  std::string note(const std::string& why) const;   // where the data set is opened without them
};

// sizes[i] = size_of(i) for every i, on OpenOptions::threads threads. With OpenOptions::skip_losses a file that does
// not exist or cannot be looked up has the size 0: it stays in the data set, and its reader gets the reason. What
// is not a regular file is refused even then, because it must not be opened; so is a list of which no file exists.
NotFound look_up(std::vector<std::uint64_t>& sizes, const std::function<std::uint64_t(std::uint64_t)>& size_of,
                 const OpenOptions& options);

// Which samples repeat an earlier id, and how often it came before: (sample, occurrence from 1), by sample.
std::vector<std::pair<std::uint64_t, std::uint64_t>> find_repeats(
    std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& id_of);
// The occurrence of `sample` among equal ids, 0 for the first.
std::uint64_t occurrence(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& repeats,
                         std::uint64_t sample) noexcept;

}  // namespace stoker::dataset
