// The files that the rows of an index.csv name: below its own folder, or objects of the store that it lies in.
//
// Paths are below the csv's folder, or below the one above if that folder is `_index`.
// Built by one thread; then only read, by any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stoker/dataset/csv_table.h"
#include "stoker/dataset/dataset.h"
#include "stoker/os/fd.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {

class CsvFiles {
 public:
  // Opens the folder of the csv, or lists what lies around it in a store. `options` is borrowed until look_up() has
  // ended. Adds to `notes` what a user should know. Throws Error.
  CsvFiles(const std::string& address, const OpenOptions& options, std::vector<std::string>& notes);

  bool is_file(const CsvField& path) const;
  // Finds the files of all rows: their sizes, and the versions of objects. Throws Error for one that is not there, as
  // OpenOptions::skip_losses says.
  void look_up(const CsvTable& table, std::vector<std::string>& notes);

  storage::Location locate(const CsvTable& table, std::uint64_t row, std::span<char> text) const noexcept;
  std::uint64_t bytes(std::uint64_t row) const noexcept { return sizes_[row] & kSizeMask; }
  // The path as the csv has it, with a NUL; 0 if it does not fit.
  static std::size_t write_path(const CsvTable& table, std::uint64_t row, std::span<char> out) noexcept {
    return write_row(table, row, false, out);
  }
  std::span<const storage::Backend* const> backends() const noexcept { return {&backend_, backend_ ? 1u : 0u}; }
  std::uint64_t memory_bytes() const noexcept;

 private:
  static constexpr std::uint64_t kBesideTheIndex = std::uint64_t{1} << 63;  // the file lies below the csv's own folder
  static constexpr std::uint64_t kSizeMask = kBesideTheIndex - 1;

  struct Object {
    std::uint64_t bytes = 0;
    std::string version;
  };

  void open_folders(const std::string& folder);
  bool list_around(std::string_view folder, std::vector<std::string>& notes);
  void refuse_paths_upwards(const CsvTable& table) const;
  void ask_for_objects(const CsvTable& table);
  void look_up_sizes(const CsvTable& table, std::vector<std::string>& notes);
  void keep_versions(const CsvTable& table);
  std::uint64_t size_of(const CsvField& path) const;
  std::uint64_t size_below(const char* path) const;
  std::string object_name(std::string_view path) const;
  std::string_view object_path(std::string_view path) const noexcept;
  const char* put_root_before(std::span<char> text, std::size_t length) const noexcept;
  static std::size_t write_row(const CsvTable& table, std::uint64_t row, bool beside_the_index,
                               std::span<char> out) noexcept;
  static std::size_t write_field(const CsvField& field, bool beside_the_index, std::span<char> out) noexcept;

  const OpenOptions* options_;                 // while it is being made
  const storage::Backend* backend_ = nullptr;  // not null: the csv and its files are objects, below root_
  std::string root_;
  os::Fd base_;              // one descriptor serves both folders: `_index/` comes before the path
  bool has_parent_ = false;  // the csv lies in `_index`
  bool is_listed_ = false;   // objects_ has all that lies below root_
  std::unordered_map<std::string, Object> objects_;  // while it is being made
  std::string versions_;                             // of the objects, each with a NUL
  std::vector<std::uint64_t> version_at_;            // in versions_
  std::vector<std::uint64_t> sizes_;
};

}  // namespace stoker::dataset
