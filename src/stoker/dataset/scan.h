// Reads a folder tree, in parallel: every file of a known kind with its size, sorted, and a count of what was left out.
// Folders that a cached listing knows, and that have not changed since, are taken over after one stat.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

// Tells whether a folder was changed: entries came, went or were renamed.
struct Stamp {
  std::uint64_t device = 0, inode = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

struct ScannedFile {
  std::uint64_t bytes = 0;
  std::uint32_t name_at = 0;  // in ScannedFolder::names
  std::uint16_t name_bytes = 0;
  codec::Media media;
  std::uint8_t version_bytes = 0;  // of an object: its version follows its name
};

// What a folder holds besides samples and folders.
struct LeftOut {
  std::uint64_t hidden = 0;                                       // names that begin with a dot, and lost+found
  std::uint64_t unknown = 0;                                      // files whose extension is none of ours
  std::vector<std::pair<std::string, std::uint64_t>> extensions;  // of those, the first few: ".txt" and how many
  std::uint64_t too_long = 0;                                     // paths above 4095 bytes
};

struct ScannedFolder {
  ScannedFolder* parent = nullptr;
  std::string name;
  std::string path;  // from the root, with a slash at the end; empty for the root itself
  Stamp stamp;
  // A later scan may take this folder over when its stamp is unchanged. False if it changed within 2 s of being read
  // (a change in the same tick of its clock would not show), or holds what may change without it: links that lead
  // nowhere or into a loop, special files, files or folders that could not be read.
  bool can_be_trusted = false;
  bool changes_show = true;  // see shows_changes
  bool from_cache = false;
  bool is_loop = false;             // the same folder as one above it; not read
  bool is_missing = false;          // went away during the scan
  int error_number = 0;             // it could not be read, or files in it could not be looked up
  std::uint64_t unknown_files = 0;  // those that could not be looked up
  std::string first_unknown_file;   // the first of them by name
  LeftOut left_out;
  std::vector<std::string> broken_links, special_files;  // names
  std::string names;                                     // of the files, one after another
  std::vector<ScannedFile> files;                        // sorted by name, bytewise
  std::vector<std::unique_ptr<ScannedFolder>> folders;   // sorted by name and a slash: the order of the paths inside

  bool is_unreadable() const noexcept { return error_number != 0 && unknown_files == 0; }
  std::string_view name_of(const ScannedFile& file) const noexcept {
    return std::string_view(names).substr(file.name_at, file.name_bytes);
  }
  std::string_view version_of(const ScannedFile& file) const noexcept {
    return std::string_view(names).substr(file.name_at + file.name_bytes, file.version_bytes);
  }
};

// What `stoker stage` notes in the folder that it writes. No note counts it as a hidden file.
inline constexpr std::string_view kStageManifest = ".stage.jsonl";

// Names that begin with a dot, and lost+found.
bool is_hidden(std::string_view name) noexcept;
void count_unknown(LeftOut& left_out, std::string_view name);  // a file whose extension is none of ours

// Whether a folder's times change whenever its entries do, by the file system's number (statfs). Not so where a program
// makes them up: object stores mounted through FUSE often show one fixed time for all folders.
bool shows_changes(std::uint64_t file_system) noexcept;

inline constexpr std::size_t kMaxPath = 4095;
// Two changes within this time may get the same time stamp: the coarsest clock of a file system in use is FAT's.
inline constexpr std::int64_t kRacyNs = 2'000'000'000;

// Scans below the open folder `root`; `address` is for messages. `known` (may be null) is an earlier listing of the
// same folder; its parts are moved from. Throws Error; with OpenOptions::skip_losses a folder that cannot be read is
// marked and left empty.
std::unique_ptr<ScannedFolder> scan(int root, const std::string& address, std::unique_ptr<ScannedFolder> known,
                                    const OpenOptions& options);

}  // namespace stoker::dataset
