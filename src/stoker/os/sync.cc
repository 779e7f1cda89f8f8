#include "stoker/os/sync.h"

#include <unistd.h>

#include "stoker/os/call.h"

namespace stoker::os {

int sync_file(int fd) noexcept {
  return call(Call::fsync, [fd] { return ::fsync(fd); });
}

int sync_data(int fd) noexcept {
  return call(Call::fsync, [fd] { return ::fdatasync(fd); });
}

int sync_folder(int fd) noexcept {
  const int error_number = sync_file(fd);
  return error_number == EINVAL ? 0 : error_number;
}

int sync_file_system(int fd) noexcept {
  return call(Call::fsync, [fd] { return ::syncfs(fd); });
}

}  // namespace stoker::os
