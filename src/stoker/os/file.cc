#include "stoker/os/file.h"

#include <atomic>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/call.h"
#include "stoker/os/fd.h"
#include "stoker/os/sync.h"
#include "stoker/os/write_all.h"

namespace stoker::os {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string aside_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  const std::size_t slash = path.rfind('/');
  const std::size_t base = slash == std::string::npos ? 0 : slash + 1;
  return fmt::format("{}.{}.{}-{}.part", path.substr(0, base), path.substr(base), ::getpid(), counter++);
}

}  // namespace

NewFile::NewFile(std::string path) : path_(std::move(path)) {
  int error_number = 0;
  std::string aside = aside_name(path_);
  fd_ = try_open(AT_FDCWD, aside.c_str(), O_WRONLY | O_CREAT | O_EXCL, error_number);
  check(error_number, "write");
  aside_ = std::move(aside);
}

NewFile::~NewFile() {
  if (!aside_.empty()) ::unlink(aside_.c_str());
}

void NewFile::check(int error_number, const char* operation) const {
  if (error_number != 0) throw system_error(error_number, operation, path_);
}

void NewFile::close_to_others() {
  check(::fchmod(fd_.get(), S_IRUSR | S_IWUSR) == 0 ? 0 : errno, "close to other users");
}

void NewFile::write(std::span<const std::byte> bytes) {
  check(write_all(fd_.get(), bytes), "write");
}

void NewFile::commit() {
  check(sync_file(fd_.get()), "write to the disk");
  check(fd_.reset(), "close");
  check(call(Call::rename, [&] { return ::rename(aside_.c_str(), path_.c_str()); }), "write");
  aside_.clear();

  int error_number = 0;
  const Fd folder = try_open(AT_FDCWD, folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY, error_number);
  if (!folder) return;  // a folder that may be written but not read: nothing to sync through
  check(sync_folder(folder.get()), "write to the disk the folder of");
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  NewFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

void write_private_file(const std::string& path, std::string_view text) {
  NewFile file(path);
  file.close_to_others();
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  file.commit();
}

int write_aside(const std::string& aside, const std::string& path, std::span<const std::byte> bytes) noexcept {
  int error_number = 0;
  Fd fd = try_open(AT_FDCWD, aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC, error_number);
  if (error_number != 0) return error_number;
  error_number = write_all(fd.get(), bytes);
  if (const int closing = fd.reset(); error_number == 0) error_number = closing;
  if (error_number == 0) error_number = rename_file(aside, path);
  if (error_number != 0) ::unlink(aside.c_str());
  return error_number;
}

int write_unsynced_file(const std::string& path, std::string_view text) {
  return write_aside(aside_name(path), path, std::as_bytes(std::span(text.data(), text.size())));
}

int rename_file(const std::string& from, const std::string& to) noexcept {
  return call(Call::rename, [&] { return ::rename(from.c_str(), to.c_str()); });
}

int remove_file(const std::string& path) noexcept {
  const int error_number = call(Call::unlink, [&] { return ::unlink(path.c_str()); });
  return error_number == ENOENT ? 0 : error_number;
}

bool is_ours(const std::string& path) noexcept {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && facts.st_uid == ::geteuid();
}

bool make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return true;
  const int error_number = errno;  // EROFS and EACCES also come for folders that are there already
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) throw system_error(error_number, "make the folder", path);
  return false;
}

void make_folders(const std::string& path) {
  if (path.empty()) throw Error(ErrorKind::usage, "cannot make a folder: its name is empty");
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    struct stat facts {};
    if (::mkdir(part.c_str(), 0777) != 0) {
      const int error_number = errno;  // EROFS and EACCES also come for folders that are there already
      if (::stat(part.c_str(), &facts) != 0) throw system_error(error_number, "make the folder", path);
      if (!S_ISDIR(facts.st_mode)) throw system_error(ENOTDIR, "make the folder", path);
    }
    if (end == std::string::npos) return;
  }
}

bool others_may_read(const std::string& path) noexcept {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && (facts.st_mode & (S_IRGRP | S_IROTH)) != 0;
}

}  // namespace stoker::os
