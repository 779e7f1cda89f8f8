// Waits until what was written is on the disk. Interrupted calls are repeated. From any thread; each returns 0 or the
// error number.
#pragma once

namespace stoker::os {

int sync_file(int fd) noexcept;  // its bytes, and all that is known of it (fsync)
int sync_data(int fd) noexcept;  // its bytes and its size (fdatasync)
// The names in an open folder. 0 too where the file system cannot do that.
int sync_folder(int fd) noexcept;
// Everything that was written to the file system of `fd`, by anyone: one call for many small files.
int sync_file_system(int fd) noexcept;

}  // namespace stoker::os
