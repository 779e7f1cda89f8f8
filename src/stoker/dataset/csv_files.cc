#include "stoker/dataset/csv_files.h"

#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/dataset/files.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/look_up_objects.h"
#include "stoker/dataset/lookup.h"
#include "stoker/dataset/object_listing.h"
#include "stoker/dataset/paced_progress.h"
#include "stoker/dataset/scan.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kObjectsBetweenReports = 1000;

}  // namespace

CsvFiles::CsvFiles(const std::string& address, const OpenOptions& options, std::vector<std::string>& notes)
    : options_(&options), backend_(storage::store_of(address)) {
  const std::size_t slash = address.rfind('/');
  if (backend_ == nullptr) {
    open_folders(slash == std::string::npos ? "." : slash == 0 ? "/" : address.substr(0, slash));
    return;
  }
  const std::string_view name = storage::split_address(address).name;
  const std::vector<std::string> said = backend_->notes();
  notes.insert(notes.end(), said.begin(), said.end());
  root_ = name.substr(0, name.rfind('/') + 1);
  is_listed_ = backend_->can_list() && list_around(root_, notes);
}

void CsvFiles::look_up(const CsvTable& table, std::vector<std::string>& notes) {
  if (backend_ != nullptr && backend_->can_list()) refuse_paths_upwards(table);
  if (backend_ != nullptr && !is_listed_) ask_for_objects(table);
  look_up_sizes(table, notes);
  if (backend_ != nullptr) keep_versions(table);
  options_ = nullptr;
}

bool CsvFiles::is_file(const CsvField& path) const {
  return is_found(size_of(path));
}

storage::Location CsvFiles::locate(const CsvTable& table, std::uint64_t row, std::span<char> text) const noexcept {
  const bool is_beside = (sizes_[row] & kBesideTheIndex) != 0;
  const std::size_t length = text.empty() ? 0 : write_row(table, row, is_beside, text);
  if (backend_ == nullptr) return in_folder(base_.get(), text, length, bytes(row));
  const char* const version = versions_.c_str() + version_at_[row];
  return storage::Location::whole_object(*backend_, length == 0 ? nullptr : put_root_before(text, length),
                                         *version == '\0' ? nullptr : version, bytes(row));
}

std::uint64_t CsvFiles::memory_bytes() const noexcept {
  return held_bytes(sizes_) + held_bytes(versions_) + held_bytes(version_at_);
}

void CsvFiles::open_folders(const std::string& folder) {
  os::Fd own = os::open_file(folder, O_RDONLY | O_DIRECTORY);
  has_parent_ = real_path_of(folder).ends_with(fmt::format("/{}", kIndexFolder));
  base_ = has_parent_ ? os::open_file(folder + "/..", O_RDONLY | O_DIRECTORY) : std::move(own);
}

// What lies below the csv's folder in a store, or below the one above if that folder is `_index`: one listing, not a
// request for each row. False: these keys may read, and not list.
bool CsvFiles::list_around(std::string_view folder, std::vector<std::string>& notes) {
  has_parent_ = folder.ends_with(fmt::format("/{}/", kIndexFolder));
  if (has_parent_) folder.remove_suffix(kIndexFolder.size() + 1);
  root_ = std::string(folder);
  bool is_interrupted = false;
  PacedProgress progress(options_->progress);
  const auto take = [&](const storage::Backend::Object& object) {
    objects_.emplace(object.name.substr(root_.size()), Object{object.bytes, std::string(object.version)});
    is_interrupted = objects_.size() % kObjectsBetweenReports == 0 && !progress.goes_on(objects_.size());
    return !is_interrupted;
  };
  try {
    dataset::list_objects(*backend_, root_, *options_, take, notes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::permission) throw;
    objects_.clear();
    notes.push_back("the store refuses to list what lies beside the csv: each object was asked for");
    return false;
  }
  if (is_interrupted) throw Error(ErrorKind::unavailable, "interrupted");
  return true;
}

// A store has no folders to go up from: `a/../b` is a key of its own there.
void CsvFiles::refuse_paths_upwards(const CsvTable& table) const {
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    const std::string_view path = table.path(i).value_or(CsvField{}).raw;
    if (path.find("..") == std::string_view::npos || fmt::format("/{}/", path).find("/../") == std::string::npos)
      continue;
    throw table.error_at_row(ErrorKind::usage, i, fmt::format("`{}` leads upwards, which keys of a store cannot", path),
                             "write paths below the csv's folder, or whole addresses");
  }
}

// Each file that the rows name, where no listing tells of them.
void CsvFiles::ask_for_objects(const CsvTable& table) {
  std::vector<std::string> paths, names;
  char buffer[kMaxPath + 1];
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    const std::size_t length = write_path(table, i, buffer);
    if (length == 0) continue;
    paths.emplace_back(object_path({buffer, length}));
    names.push_back(object_name(paths.back()));
  }
  const auto found = look_up_objects(*backend_, {names.begin(), names.end()}, *options_);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const FoundObject& object = found.at(names[i]);
    if (is_found(object.bytes)) objects_.try_emplace(paths[i], Object{object.bytes, object.version});
  }
}

void CsvFiles::look_up_sizes(const CsvTable& table, std::vector<std::string>& notes) {
  sizes_.resize(table.size());
  const NotFound not_found = dataset::look_up(
      sizes_, [&](std::uint64_t i) { return size_of(*table.path(i)); }, *options_);
  if (not_found.count == 0) return;
  const std::string name = table.path(not_found.first).value_or(CsvField{}).text();
  char buffer[kMaxPath + 1];
  write_path(table, not_found.first, buffer);
  const std::string why = backend_ == nullptr
                              ? why_no_file(base_.get(), buffer, name)
                              : fmt::format("there is no object `{}` below `{}://{}`", name, backend_->scheme(), root_);
  if (!not_found.is_refused) {
    notes.push_back(not_found.note(why));
    return;
  }
  Text hint = has_parent_ ? "paths are looked up below the csv's folder and the one above it"
                          : "paths are looked up below the csv's folder";
  if (not_found.count < table.size() && !options_->skip_losses)
    hint = format_text("{}; {} goes on without it", hint, option("on_error", "skip"));
  throw table.error_at_row(ErrorKind::not_found, not_found.first, not_found.cause(why), hint);
}

void CsvFiles::keep_versions(const CsvTable& table) {
  char buffer[kMaxPath + 1];
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    const std::size_t length = write_row(table, i, (sizes_[i] & kBesideTheIndex) != 0, buffer);
    const auto found = objects_.find(std::string(object_path({buffer, length})));
    version_at_.push_back(versions_.size());
    if (found != objects_.end()) versions_ += found->second.version;
    versions_ += '\0';
  }
  objects_ = {};
}

std::uint64_t CsvFiles::size_below(const char* path) const {
  if (backend_ == nullptr) return size_of_file(base_.get(), path);
  const auto found = objects_.find(std::string(object_path(path)));
  return found == objects_.end() ? kNoFile : found->second.bytes;
}

// With kBesideTheIndex where the file was found below the csv's own folder and that is not the base.
std::uint64_t CsvFiles::size_of(const CsvField& path) const {
  char buffer[kMaxPath + 1];
  if (has_parent_ && !path.raw.starts_with('/') && write_field(path, true, buffer) != 0) {
    const std::uint64_t bytes = size_below(buffer);
    if (is_found(bytes)) return bytes | kBesideTheIndex;
  }
  return write_field(path, false, buffer) == 0 ? kNoFile : size_below(buffer);
}

// Of a path that object_path() gave: below root_, or a whole address, which may lead to another server.
std::string CsvFiles::object_name(std::string_view path) const {
  const auto [scheme, name] = storage::split_address(path);
  return scheme == backend_->scheme() ? std::string(name) : fmt::format("{}{}", root_, path);
}

// The key below root_ of a path as the csv has it.
std::string_view CsvFiles::object_path(std::string_view path) const noexcept {
  while (path.starts_with("./")) path.remove_prefix(2);
  const std::size_t scheme = path.find("://");
  if (scheme != std::string_view::npos && path.substr(0, scheme) == backend_->scheme() &&
      path.substr(scheme + 3).starts_with(root_)) {
    path.remove_prefix(scheme + 3 + root_.size());
  }
  return path;
}

// Makes a path in `text` the name of an object; null if it does not fit.
const char* CsvFiles::put_root_before(std::span<char> text, std::size_t length) const noexcept {
  const std::string_view path = object_path({text.data(), length});
  if (const auto [scheme, name] = storage::split_address(path); scheme == backend_->scheme()) {
    std::memmove(text.data(), name.data(), name.size());
    text[name.size()] = '\0';
    return text.data();
  }
  if (root_.size() + path.size() >= text.size()) return nullptr;
  std::memmove(text.data() + root_.size(), path.data(), path.size());
  std::memcpy(text.data(), root_.data(), root_.size());
  text[root_.size() + path.size()] = '\0';
  return text.data();
}

std::size_t CsvFiles::write_row(const CsvTable& table, std::uint64_t row, bool beside_the_index,
                                std::span<char> out) noexcept {
  const auto field = table.path(row);
  return field ? write_field(*field, beside_the_index, out) : 0;
}

std::size_t CsvFiles::write_field(const CsvField& field, bool beside_the_index, std::span<char> out) noexcept {
  const bool prefixed = beside_the_index && !field.raw.starts_with('/');
  std::size_t at = prefixed ? join(out, kIndexFolder, "/") : 0;
  if (prefixed && at == 0) return 0;
  if (!field.has_doubled_quotes) {
    const std::size_t length = join(out.subspan(at), field.raw);
    return length == 0 ? 0 : at + length;
  }
  for (std::size_t i = 0; i < field.raw.size(); ++i) {
    if (at + 1 >= out.size()) return 0;
    out[at++] = field.raw[i];
    if (field.raw[i] == '"') ++i;
  }
  out[at] = '\0';
  return at;
}

}  // namespace stoker::dataset
