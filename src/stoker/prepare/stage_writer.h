// Writes the files of a copy so that none has its name before it is whole and on the disk: each is written aside, many
// are synced at once, then the manifest notes them, then they get their names. One thread.
//
//   .stage.jsonl        the manifest
//   .stage-17.part      a file that is being written; a kill leaves it behind, and the next run removes it
//   cat/1.jpg           whole, of this run or an earlier one
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "stoker/os/fd.h"
#include "stoker/prepare/stage_manifest.h"

namespace stoker::prepare {

class StageWriter {
 public:
  struct Target {
    std::string path;     // below the folder
    std::string version;  // for the manifest
    std::uint64_t bytes = 0;
  };
  // A file that cannot get its name, because of the name: too long, or a folder has it.
  using Refused = std::function<void(std::size_t item, const std::string& cause)>;

  // `folder` is open as `directory`, and outlives the writer. Removes what a kill left.
  StageWriter(std::string folder, int directory, StageManifest& manifest, Refused refused);
  ~StageWriter();  // removes what has no name yet
  StageWriter(const StageWriter&) = delete;
  StageWriter& operator=(const StageWriter&) = delete;

  // Some bytes of the file of `item`; `is_last`: all are there then. These throw Error where the disk is to blame.
  void write(std::size_t item, const Target& target, std::uint64_t offset, std::span<const std::byte> bytes,
             bool is_last);
  void abandon(std::size_t item);  // what was written of it goes
  void settle();                   // every whole file has its name when it returns
  // After an error: what is half goes, and as many whole files as possible get their names. A full disk gets room for
  // the lines of the manifest from the newest of them. Throws nothing.
  void rescue() noexcept;

  // A path below the folder, and the same on every disk: no empty, `.` or `..` component.
  static bool is_plain(std::string_view path) noexcept;
  static bool is_part(std::string_view name) noexcept;  // a file of this name is one that is being written

 private:
  struct Open {
    std::string part;
    os::Fd fd;
  };
  struct Whole {
    std::size_t item = 0;
    std::string part;
    Target target;
    std::int64_t modified_ns = 0;
    bool is_noted = false;  // in the manifest
  };

  std::string whole_path(const std::string& path) const { return folder_ + "/" + path; }
  void name_files();  // of those that are on the disk
  void name_file(const Whole& whole);
  std::optional<std::string> collision_above(const std::string& path) const;

  std::string folder_;
  int directory_;
  StageManifest& manifest_;
  Refused refused_;
  std::unordered_map<std::size_t, Open> open_;
  std::vector<Whole> whole_;
  std::uint64_t whole_bytes_ = 0, parts_ = 0;
  std::chrono::steady_clock::time_point settled_;
  std::unordered_set<std::string> folders_made_;
};

}  // namespace stoker::prepare
