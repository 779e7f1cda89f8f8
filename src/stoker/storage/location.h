// Where bytes are, known before anything is read: a file below a folder, a range of an open source, or an object of a
// store. A small value. Whoever gives it out (a data set) owns what it points to; `name` and `version` may lie in the
// buffer that the caller passed along, and stay as long as that does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker::storage {

class Backend;
class Source;

inline constexpr int kWorkingFolder = -100;         // AT_FDCWD
inline constexpr std::size_t kLocationText = 4096;  // a buffer of this size has room for the text of any location

// Some bytes of an open source.
struct Range {
  const Source* source = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct Location {
  const Source* source = nullptr;    // not null: a range of this source
  const Backend* backend = nullptr;  // not null: an object of this backend. Both null: a file of its own
  // Of a file: its path below `directory`. Of an object: its address without the scheme. NUL-terminated. Null: nobody
  // asked for it, or it is too long.
  const char* name = nullptr;
  const char* version = nullptr;  // of an object, as its store tells it (an ETag); null: any
  int directory = kWorkingFolder;
  std::uint64_t offset = 0;  // in the source or object; files are read whole
  std::uint64_t bytes = 0;
  std::uint64_t object_bytes = 0;  // of the whole object as it was listed; 0: not known. Another size is a change

  static Location in_source(const Source* source, std::uint64_t offset, std::uint64_t bytes) noexcept {
    Location location;
    location.source = source;
    location.offset = offset;
    location.bytes = bytes;
    return location;
  }
  static Location in_folder(int directory, const char* path, std::uint64_t bytes) noexcept {
    Location location;
    location.name = path;
    location.directory = directory;
    location.bytes = bytes;
    return location;
  }
  static Location in_store(const Backend& backend, const char* name, const char* version, std::uint64_t offset,
                           std::uint64_t bytes) noexcept {
    Location location;
    location.backend = &backend;
    location.name = name;
    location.version = version;
    location.offset = offset;
    location.bytes = bytes;
    return location;
  }
  static Location whole_object(const Backend& backend, const char* name, const char* version,
                               std::uint64_t bytes) noexcept {
    Location location = in_store(backend, name, version, 0, bytes);
    location.object_bytes = bytes;
    return location;
  }

  bool has_name() const noexcept { return source == nullptr; }  // a range needs none
  bool is_file() const noexcept { return source == nullptr && backend == nullptr; }
  Range range() const noexcept { return {source, offset, bytes}; }
};

}  // namespace stoker::storage
