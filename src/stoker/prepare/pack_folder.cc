#include "stoker/prepare/pack_folder.h"

#include <cerrno>
#include <filesystem>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/os/fd.h"
#include "stoker/os/file_facts.h"
#include "stoker/os/folder_entries.h"
#include "stoker/os/sync.h"
#include "stoker/prepare/journal.h"

namespace stoker::prepare {
namespace {

void throw_if_failed(int error_number, const char* operation, const std::string& path) {
  if (error_number != 0) throw system_error(error_number, operation, path);
}

void sync_names_in(const std::string& path) {
  const os::Fd folder = os::open_file(path, O_RDONLY | O_DIRECTORY);
  throw_if_failed(os::sync_folder(folder.get()), "write to the disk the folder", path);
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
  if (!above.empty())
    throw_if_failed(os::facts_of(above).error_number, "make a pack in", above.substr(0, above.size() - 1));
  int error_number = 0;
  lock_ = os::FileLock::try_take(lock_path_, error_number);
  if (!lock_ && error_number == EWOULDBLOCK) {
    throw Error(ErrorKind::unavailable,
                fmt::format("cannot write `{}`: another program is making this pack", destination_),
                "wait until it has ended");
  }
  if (!lock_ && error_number == ENOLCK) throw system_error(error_number, "lock", lock_path_);
  if (!lock_) throw system_error(error_number, "make a pack at", destination_);
  // Killed where the file system cannot exchange two folders: the old pack gets its name back.
  if (!os::can_reach(destination_)) (void)os::rename_entry(part_ + ".old", destination_);
  (void)os::remove_entry(fmt::format("{}/{}", destination_, kJournal));
}

std::string PackFolder::parent() const {
  const std::size_t slash = destination_.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : destination_.substr(0, slash);
}

void PackFolder::release() noexcept {
  if (lock_) (void)os::remove_entry(lock_path_);
  lock_.release();
}

void PackFolder::make_part() {
  const int error_number = os::make_folder(part_);
  if (error_number != EEXIST) throw_if_failed(error_number, "make the folder", part_);
}

bool PackFolder::is_part_unused() const {
  std::error_code error;
  return std::filesystem::is_empty(part_, error) && !error;
}

bool PackFolder::has_part() const {
  return os::can_reach(part_);
}

void PackFolder::empty_part() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(part_, error)) {
    const int error_number = os::remove_entry(entry.path().string());
    if (error_number != ENOENT) throw_if_failed(error_number, "remove", entry.path().string());
  }
}

void PackFolder::take_over(const std::string& name) const {
  const std::string from = fmt::format("{}/{}", destination_, name), to = fmt::format("{}/{}", part_, name);
  const int error_number = os::link_entry(from, to);
  if (error_number == EEXIST) {
    throw_if_failed(os::remove_entry(to), "write", to);
    throw_if_failed(os::link_entry(from, to), "write", to);
    return;
  }
  if (error_number == 0) return;
  if (error_number != EPERM && error_number != EOPNOTSUPP && error_number != EMLINK && error_number != ENOSYS)
    throw system_error(error_number, "write", to);
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
    if (!named.contains(entry.path().filename().string())) (void)os::remove_entry(entry.path().string());
  }
  sync_names_in(part_);
  const int exchanged = os::exchange_entries(part_, destination_);
  if (exchanged == 0) {
    // The old one now has the hidden name.
  } else if (exchanged == ENOENT || os::remove_empty_folder(destination_) == 0) {
    throw_if_failed(os::rename_entry(part_, destination_), "write", destination_);
  } else {
    // No exchange on this file system: for an instant there is no pack under the name.
    const std::string old = part_ + ".old";
    remove_flat_folder(old);
    throw_if_failed(os::rename_entry(destination_, old), "write", destination_);
    if (const int error_number = os::rename_entry(part_, destination_); error_number != 0) {
      (void)os::rename_entry(old, destination_);
      throw system_error(error_number, "write", destination_);
    }
    remove_flat_folder(old);
  }
  (void)os::remove_entry(fmt::format("{}/{}", destination_, kJournal));
  sync_names_in(parent());
  remove_flat_folder(part_);
}

void refuse_unfinished_rows(const PackFolder& folder, bool force) {
  if (force || !os::can_reach(fmt::format("{}/{}", folder.part(), kShape))) return;
  throw Error(ErrorKind::usage,
              fmt::format("cannot make the pack `{}`: `{}` holds rows that a program wrote and did not finish",
                          folder.destination(), folder.part()),
              format_text("finish that pack first, choose another name, or add {} to throw those rows away",
                          option("force", "True")));
}

bool remove_flat_folder(const std::string& path) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (!entry.is_directory(error)) (void)os::remove_entry(entry.path().string());
  }
  return os::remove_empty_folder(path) == 0;
}

}  // namespace stoker::prepare
