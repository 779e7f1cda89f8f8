// What `stoker stage` wrote into a folder: a hidden file of JSON lines in it. The first line says what was copied, each
// further line describes one file: ["train/cat/1.jpg", bytes, "version in the source", time of last change here]. Lines
// are added before the file gets its name; a later line replaces an earlier one. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "stoker/base/json.h"
#include "stoker/dataset/scan.h"
#include "stoker/os/entry.h"
#include "stoker/os/fd.h"
#include "stoker/os/file.h"

namespace stoker::prepare {

struct StagedFile {
  std::uint64_t bytes = 0;
  std::string version;           // as the source tells it; empty: it tells none
  std::int64_t modified_ns = 0;  // of the copy

  bool is(const os::Entry& entry) const noexcept {
    return entry.kind == os::Entry::Kind::file && entry.bytes == bytes && entry.modified_ns == modified_ns;
  }
};

class StageManifest {
 public:
  struct Known {
    StagedFile now;
    StagedFile before;       // what may still have the name, if a run ended between the two
    bool is_wanted = false;  // for the caller
    bool wrote(const os::Entry& entry) const noexcept { return now.is(entry) || before.is(entry); }
  };
  using Files = std::unordered_map<std::string, Known>;

  // Reads the manifest of the folder, if there is one. Throws Error: a file of that name that is no manifest.
  explicit StageManifest(const std::string& folder);

  bool was_there() const noexcept { return was_there_; }
  const std::string& source() const noexcept { return source_; }
  const Json& settings() const noexcept { return settings_; }
  Files& files() noexcept { return files_; }
  Known* find(const std::string& path) noexcept;

  // These throw Error. begin() writes the first line and all that is known, whole or not at all; add() is on its way to
  // the disk when flush() returns.
  void begin(const std::string& source, const Json& settings);
  void add(const std::string& path, StagedFile file);
  void flush();
  void remove(const std::string& path) { files_.erase(path); }
  void finish();  // rewrites it without the lines that were replaced

 private:
  std::string text() const;
  void read(const std::string& text);

  std::string path_, source_;
  Json settings_;
  Files files_;
  std::string pending_;
  os::Fd fd_;
  bool was_there_ = false;
};

}  // namespace stoker::prepare
