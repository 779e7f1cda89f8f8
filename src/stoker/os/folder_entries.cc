#include "stoker/os/folder_entries.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stoker/os/call.h"

namespace stoker::os {

int make_folder(const std::string& path) noexcept {
  return ::mkdir(path.c_str(), 0777) == 0 ? 0 : errno;
}

int remove_empty_folder(const std::string& path) noexcept {
  return ::rmdir(path.c_str()) == 0 ? 0 : errno;
}

int remove_entry(const std::string& path) noexcept {
  return ::unlink(path.c_str()) == 0 ? 0 : errno;
}

int link_entry(const std::string& from, const std::string& to) noexcept {
  return ::link(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

int rename_entry(const std::string& from, const std::string& to) noexcept {
  return call(Call::rename, [&] { return ::rename(from.c_str(), to.c_str()); });
}

int exchange_entries(const std::string& one, const std::string& other) noexcept {
  return call(Call::rename,
              [&] { return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE); });
}

}  // namespace stoker::os
