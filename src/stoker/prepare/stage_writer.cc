#include "stoker/prepare/stage_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/os/disk.h"
#include "stoker/os/file.h"
#include "stoker/os/write_all.h"

namespace stoker::prepare {
namespace {

// How much a kill may lose.
constexpr std::uint64_t kSettleBytes = std::uint64_t{256} << 20;
constexpr std::size_t kSettleFiles = 4096;
constexpr std::chrono::seconds kSettleTime{5};

constexpr std::string_view kPartBegin = ".stage-", kPartEnd = ".part";

// The name is to blame, not the disk: the other files may do better.
bool is_about_the_name(int error_number) noexcept {
  switch (error_number) {
    case ENAMETOOLONG:
    case EISDIR:
    case ENOTDIR:
    case EEXIST:
    case ENOTEMPTY:
    case ELOOP:
    case EINVAL:
    case EILSEQ:
      return true;
    default:
      return false;
  }
}

}  // namespace

StageWriter::StageWriter(std::string folder, int directory, StageManifest& manifest, Refused refused)
    : folder_(std::move(folder)),
      directory_(directory),
      manifest_(manifest),
      refused_(std::move(refused)),
      settled_(std::chrono::steady_clock::now()) {
  std::error_code error;
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (is_part(name)) left.push_back(entry.path().string());
  }
  for (const std::string& part : left) (void)os::remove_file(part);
}

bool StageWriter::is_part(std::string_view name) noexcept {
  return name.starts_with(kPartBegin) && name.ends_with(kPartEnd);
}

bool StageWriter::is_plain(std::string_view path) noexcept {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

StageWriter::~StageWriter() {
  for (const auto& [item, open] : open_) (void)os::remove_file(open.part);
  for (const Whole& whole : whole_) (void)os::remove_file(whole.part);
}

void StageWriter::write(std::size_t item, const Target& target, std::uint64_t offset, std::span<const std::byte> bytes,
                        bool is_last) {
  auto [open, is_new] = open_.try_emplace(item);
  if (is_new) {
    open->second.part = fmt::format("{}/{}{}{}", folder_, kPartBegin, parts_++, kPartEnd);
    int error_number = 0;
    open->second.fd = os::try_open(AT_FDCWD, open->second.part.c_str(), O_WRONLY | O_CREAT | O_TRUNC, error_number);
    if (error_number != 0) throw system_error(error_number, "write", whole_path(target.path));
  }
  const int error_number = os::write_all_at(open->second.fd.get(), bytes, offset);
  if (error_number != 0) throw system_error(error_number, "write", whole_path(target.path));
  if (!is_last) return;
  if (const int closing = open->second.fd.reset(); closing != 0)
    throw system_error(closing, "write", whole_path(target.path));
  whole_.push_back({item, std::move(open->second.part), target});
  open_.erase(open);
  const os::Entry written = os::look_up(whole_.back().part);
  whole_.back().modified_ns = written.modified_ns;
  if (written.kind != os::Entry::Kind::file || written.bytes != target.bytes) {
    throw Error(ErrorKind::unavailable, fmt::format("cannot write `{}`: {} of {} bytes are there afterwards",
                                                    whole_path(target.path), written.bytes, target.bytes));
  }
  whole_bytes_ += target.bytes;
  if (whole_bytes_ >= kSettleBytes || whole_.size() >= kSettleFiles ||
      std::chrono::steady_clock::now() - settled_ >= kSettleTime) {
    settle();
  }
}

void StageWriter::abandon(std::size_t item) {
  const auto open = open_.find(item);
  if (open == open_.end()) return;
  (void)os::remove_file(open->second.part);
  open_.erase(open);
}

void StageWriter::settle() {
  settled_ = std::chrono::steady_clock::now();
  if (whole_.empty()) return;
  os::sync_file_system(directory_, folder_);
  name_files();
}

void StageWriter::name_files() {
  for (Whole& whole : whole_) {
    if (!std::exchange(whole.is_noted, true))
      manifest_.add(whole.target.path, {whole.target.bytes, whole.target.version, whole.modified_ns});
  }
  manifest_.flush();
  while (!whole_.empty()) {
    const Whole whole = std::move(whole_.back());
    whole_.pop_back();  // first: what is thrown now concerns this one, and the others get their names all the same
    name_file(whole);
  }
  whole_bytes_ = 0;
}

void StageWriter::rescue() noexcept {
  for (const auto& [item, open] : open_) (void)os::remove_file(open.part);
  open_.clear();
  try {
    if (!whole_.empty()) os::sync_file_system(directory_, folder_);
  } catch (const std::exception&) {
    return;  // what is on the disk is unknown
  }
  while (!whole_.empty()) {
    const std::size_t before = whole_.size();
    try {
      name_files();
    } catch (const std::exception&) {
      if (whole_.size() < before) continue;  // one of them could not have its name
      (void)os::remove_file(whole_.back().part);
      whole_.pop_back();
    }
  }
}

// A file that has the name of a folder above `path`.
std::optional<std::string> StageWriter::collision_above(const std::string& path) const {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string above = path.substr(0, slash);
    if (os::look_up(whole_path(above)).kind == os::Entry::Kind::file)
      return fmt::format("two names collide: `{}` is a file, and cannot be a folder too", above);
  }
  return std::nullopt;
}

void StageWriter::name_file(const Whole& whole) {
  const std::string path = whole_path(whole.target.path);
  const auto refuse = [&](const std::string& cause) {
    (void)os::remove_file(whole.part);
    manifest_.remove(whole.target.path);
    refused_(whole.item, cause);
  };
  const std::string folder = path.substr(0, path.rfind('/'));
  if (!folders_made_.contains(folder)) {
    try {
      os::make_folders(folder);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::unavailable || error.kind() == ErrorKind::permission) {
        (void)os::remove_file(whole.part);
        throw;
      }
      return refuse(collision_above(whole.target.path).value_or(error.message()));
    }
    folders_made_.insert(folder);
  }
  const int error_number = os::rename_file(whole.part, path);
  if (error_number == 0) return;
  if (!is_about_the_name(error_number)) {
    (void)os::remove_file(whole.part);
    throw system_error(error_number, "write", path);
  }
  refuse(error_number == EISDIR || error_number == ENOTEMPTY || error_number == EEXIST
             ? "two names collide: others lie below this one, and a file cannot be a folder too"
             : fmt::format("cannot write `{}`: {}", path, std::strerror(error_number)));
}

}  // namespace stoker::prepare
