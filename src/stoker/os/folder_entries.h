// Changes the names in folders: each call gives, moves or removes one name. From any thread; each returns 0 or the
// error number.
#pragma once

#include <string>

namespace stoker::os {

int make_folder(const std::string& path) noexcept;  // its parent must exist
int remove_empty_folder(const std::string& path) noexcept;
int remove_entry(const std::string& path) noexcept;  // anything but a folder
// A second name for the file `from`. EEXIST: something has the name `to`.
int link_entry(const std::string& from, const std::string& to) noexcept;
// Replaces the file, or the empty folder, that has the name `to`, in one step.
int rename_entry(const std::string& from, const std::string& to) noexcept;
// Both must exist; each gets the other's name, in one step. EINVAL, ENOSYS: this file system cannot do that.
int exchange_entries(const std::string& one, const std::string& other) noexcept;

}  // namespace stoker::os
