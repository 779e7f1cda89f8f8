#include "stoker/os/shared_mapping.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/os/fd.h"

namespace stoker::os {
namespace {

int allocate(int fd, std::size_t bytes) noexcept {
  for (;;) {
    Fault fault;
    const bool fails = fault_now(Call::write, fault) && fault.error_number != 0;
    const int error_number = fails ? fault.error_number : ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    if (error_number != EINTR) return error_number;
  }
}

}  // namespace

SharedMapping::SharedMapping(int fd, std::size_t bytes, const std::string& path) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) throw system_error(errno, "map", path);
  data_ = static_cast<std::byte*>(at);
  size_ = bytes;
  struct stat facts {};
  if (::fstat(fd, &facts) == 0) {
    device_ = facts.st_dev;
    inode_ = facts.st_ino;
  }
}

SharedMapping SharedMapping::make(const std::string& path, std::size_t bytes) {
  const Fd fd = open_file(path, O_RDWR | O_CREAT | O_EXCL);
  try {
    if (const int error_number = allocate(fd.get(), bytes); error_number != 0) {
      throw system_error(error_number, "write", path);
    }
    return {fd.get(), bytes, path};
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
}

SharedMapping SharedMapping::open(const std::string& path) {
  const Fd fd = open_file(path, O_RDWR);
  const std::uint64_t bytes = file_size(fd.get(), path);
  if (bytes == 0) throw Error(ErrorKind::corrupt, "cannot map `" + path + "`: it is empty");
  return {fd.get(), bytes, path};
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      device_(other.device_),
      inode_(other.inode_) {}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

SharedMapping::~SharedMapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

bool SharedMapping::is_in_place(const std::string& path) const noexcept {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && facts.st_dev == device_ && facts.st_ino == inode_;
}

}  // namespace stoker::os
