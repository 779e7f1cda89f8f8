#include "stoker/os/append_file.h"

#include <utility>

#include <fcntl.h>

#include "stoker/base/error.h"
#include "stoker/os/sync.h"
#include "stoker/os/write_all.h"
#include "stoker/os/write_at.h"

namespace stoker::os {

AppendFile::AppendFile(std::string path, std::uint64_t keep_bytes) : path_(std::move(path)) {
  int error_number = 0;
  fd_ = try_open(AT_FDCWD, path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, error_number);
  check(error_number, "write");
  if (keep_bytes != kEverything) check(set_file_size(fd_.get(), keep_bytes), "cut");
}

void AppendFile::check(int error_number, const char* operation) const {
  if (error_number != 0) throw system_error(error_number, operation, path_);
}

void AppendFile::append(std::span<const std::byte> bytes) {
  check(write_all(fd_.get(), bytes), "write");
}

void AppendFile::append(std::string_view text) {
  append(std::as_bytes(std::span(text.data(), text.size())));
}

void AppendFile::sync() {
  check(sync_data(fd_.get()), "write to the disk");
}

}  // namespace stoker::os
