#include "stoker/prepare/pack_folder.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/prepare/journal.h"

namespace stoker::prepare {
namespace {

void sync_folder(const std::string& path) {
  int error_number = 0;
  const os::Fd fd = os::try_open(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY, error_number);
  if (!fd) throw system_error(error_number, "open", path);
  if (::fsync(fd.get()) != 0 && errno != EINVAL) throw system_error(errno, "write to the disk the folder", path);
}

// The same file is still there under the name: nobody unlinked it between our open and our flock.
bool is_still(int fd, const std::string& path) {
  struct stat mine {
  }, there{};
  return ::fstat(fd, &mine) == 0 && ::stat(path.c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
         mine.st_dev == there.st_dev;
}

}  // namespace

PackFolder::PackFolder(const std::string& destination) : destination_(destination) {
  while (destination_.size() > 1 && destination_.ends_with('/')) destination_.pop_back();
  const std::size_t slash = destination_.rfind('/');
  const std::string above = slash == std::string::npos ? "" : destination_.substr(0, slash + 1);
  const std::string name = destination_.substr(slash + 1);  // npos + 1 is 0
  if (name.empty() || name == "." || name == "..")
    throw Error(ErrorKind::usage, fmt::format("cannot make a pack at `{}`: it needs a name of its own", destination));
  part_ = fmt::format("{}.{}.part", above, name);
  lock_path_ = fmt::format("{}.{}.lock", above, name);
  if (!above.empty() && ::access(above.c_str(), F_OK) != 0)
    throw system_error(errno, "make a pack in", above.substr(0, above.size() - 1));
  while (true) {
    os::Fd fd(::open(lock_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!fd) throw system_error(errno, "make a pack at", destination_);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) throw system_error(errno, "lock", lock_path_);
      throw Error(ErrorKind::unavailable,
                  fmt::format("cannot write `{}`: another program is making this pack", destination_),
                  "wait until it has ended");
    }
    if (!is_still(fd.get(), lock_path_)) continue;
    lock_ = std::move(fd);
    break;
  }
  // Killed where the file system cannot exchange two folders: the old pack gets its name back.
  if (::access(destination_.c_str(), F_OK) != 0) (void)::rename((part_ + ".old").c_str(), destination_.c_str());
  ::unlink(fmt::format("{}/{}", destination_, kJournal).c_str());
}

void PackFolder::release() noexcept {
  if (lock_) ::unlink(lock_path_.c_str());
  lock_.reset();
}

void PackFolder::make_part() {
  if (::mkdir(part_.c_str(), 0777) != 0 && errno != EEXIST) throw system_error(errno, "make the folder", part_);
}

bool PackFolder::is_part_unused() const {
  std::error_code error;
  return std::filesystem::is_empty(part_, error) && !error;
}

bool PackFolder::has_part() const {
  return ::access(part_.c_str(), F_OK) == 0;
}

void PackFolder::empty_part() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(part_, error)) {
    if (::unlink(entry.path().c_str()) != 0 && errno != ENOENT)
      throw system_error(errno, "remove", entry.path().string());
  }
}

void PackFolder::take_over(const std::string& name) const {
  const std::string from = fmt::format("{}/{}", destination_, name), to = fmt::format("{}/{}", part_, name);
  if (::link(from.c_str(), to.c_str()) == 0) return;
  if (errno == EEXIST) {
    if (::unlink(to.c_str()) != 0 || ::link(from.c_str(), to.c_str()) != 0) throw system_error(errno, "write", to);
    return;
  }
  if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK && errno != ENOSYS)
    throw system_error(errno, "write", to);
  std::error_code error;
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, error);
  if (error) throw system_error(error.value(), "write", to);
}

void PackFolder::commit(const dataset::PackManifest& pack) {
  std::set<std::string, std::less<>> named = {std::string(kJournal), std::string(dataset::kPackJson)};
  for (const dataset::PackShard& shard : pack.shards) named.insert(shard.name);
  for (const dataset::PackFile& file : pack.files) named.insert(file.name);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(part_, error)) {
    if (!named.contains(entry.path().filename().string())) ::unlink(entry.path().c_str());
  }
  sync_folder(part_);
  if (::renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, destination_.c_str(), RENAME_EXCHANGE) == 0) {
    // The old one now has the hidden name.
  } else if (errno == ENOENT || ::rmdir(destination_.c_str()) == 0) {
    if (::rename(part_.c_str(), destination_.c_str()) != 0) throw system_error(errno, "write", destination_);
  } else {
    // No exchange on this file system: for an instant there is no pack under the name.
    const std::string old = part_ + ".old";
    remove_flat_folder(old);
    if (::rename(destination_.c_str(), old.c_str()) != 0) throw system_error(errno, "write", destination_);
    if (::rename(part_.c_str(), destination_.c_str()) != 0) {
      const int error_number = errno;
      (void)::rename(old.c_str(), destination_.c_str());
      throw system_error(error_number, "write", destination_);
    }
    remove_flat_folder(old);
  }
  ::unlink(fmt::format("{}/{}", destination_, kJournal).c_str());
  const std::size_t slash = destination_.rfind('/');
  sync_folder(slash == std::string::npos ? "." : slash == 0 ? "/" : destination_.substr(0, slash));
  remove_flat_folder(part_);
}

bool remove_flat_folder(const std::string& path) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (!entry.is_directory(error)) ::unlink(entry.path().c_str());
  }
  return ::rmdir(path.c_str()) == 0;
}

}  // namespace stoker::prepare
