// Writing files so that a name never shows half a file: write aside, fsync, rename, fsync the folder.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "stoker/os/fd.h"

namespace stoker::os {

// A file that is written piece by piece and appears under its name when it is whole. Dropped before commit(), nothing
// is left of it. Belongs to one thread; many writers of one name are safe, and the last one wins.
class NewFile {
 public:
  explicit NewFile(std::string path);  // opens it aside, in the same folder; these throw Error, naming `path`
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  void close_to_others();  // only this user may read and write it
  void write(std::span<const std::byte> bytes);
  void commit();  // the last call

 private:
  void check(int error_number, const char* operation) const;

  std::string path_, aside_;  // aside: empty once it was renamed
  Fd fd_;
};

// Replaces `path` by `bytes`, whole or not at all; after an error the old file is untouched and nothing is left behind.
// (Only a failing fsync of the folder comes too late for that: the new file is then whole, but may not survive a
// crash.) Throws Error. Safe from many threads and processes; the last one wins.
void write_file(const std::string& path, std::span<const std::byte> bytes);
void write_file(const std::string& path, std::string_view text);
void write_private_file(const std::string& path, std::string_view text);  // closed to other users, from the start

// Writes `bytes` to the new file `aside` and renames it to `path`, in place of what may be there, without waiting for
// the disk: after a power failure the file may hold anything, so its reader has to check it. Returns 0 or the error
// number; nothing is left of a file that failed.
int write_aside(const std::string& aside, const std::string& path, std::span<const std::byte> bytes) noexcept;
// The same, aside under a name of its own. Safe from many threads and processes; the last one wins.
int write_unsynced_file(const std::string& path, std::string_view text);
// 0 or the error number. A file that has the name `to` is replaced in one step.
int rename_file(const std::string& from, const std::string& to) noexcept;
int remove_file(const std::string& path) noexcept;  // 0, also if there is none, or the error number

bool is_ours(const std::string& path) noexcept;  // it exists, and belongs to the user of this process

// Makes the folder `path`, closed to other users; false: something of that name is there. Throws Error.
bool make_private_folder(const std::string& path);

// Makes `path` and the folders above it that are missing. Throws Error.
void make_folders(const std::string& path);

bool others_may_read(const std::string& path) noexcept;  // the permission bits let the group or the world read it

}  // namespace stoker::os
