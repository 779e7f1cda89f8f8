#include "stoker/prepare/volume_stamp.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/os/file_facts.h"
#include "stoker/storage/backend.h"

namespace stoker::prepare {
namespace {

constexpr std::uint64_t kHashedAtOnce = std::uint64_t{8} << 20;  // bytes

std::string stamp_of_file(const os::FileFacts& facts) {
  return fmt::format("{} {} {}", facts.bytes, facts.modified_ns, facts.changed_ns);
}

// Every file counts: the times of a folder do not show that a file in it was written in place.
std::string stamp_of_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(path, fs::directory_options::follow_directory_symlink, error), end;
       !error && at != end; at.increment(error)) {
    files.push_back(at->path().string());
  }
  std::ranges::sort(files);
  std::uint64_t hash = 0;
  for (const std::string& file : files) {
    const os::FileFacts facts = os::facts_of(file);
    hash = hash_text(file.substr(path.size()), hash);
    if (facts.kind != os::FileKind::folder) hash = hash_text(stamp_of_file(facts), hash);
  }
  return fmt::format("{} files {:016x}", files.size(), hash);
}

std::uint64_t hash_of_content(const storage::Source& source) {
  std::uint64_t hash = 0;
  std::vector<std::byte> bytes(std::min(source.size_bytes(), kHashedAtOnce));
  for (std::uint64_t at = 0; at < source.size_bytes(); at += bytes.size()) {
    bytes.resize(std::min(source.size_bytes() - at, kHashedAtOnce));
    const storage::Read read{at, bytes};
    source.read({&read, 1});
    hash = hash_bytes(bytes, hash);
  }
  return hash;
}

std::string stamp_of_object(const storage::Source& source) {
  if (source.version().empty()) return fmt::format("{} content {:016x}", source.size_bytes(), hash_of_content(source));
  return fmt::format("{} version {}", source.size_bytes(), source.version());
}

std::string stamp_of_prefix(const storage::Backend& store, std::string_view name) {
  std::uint64_t hash = 0, count = 0;
  std::vector<std::string> unversioned;
  store.list(name, [&](const storage::Backend::Object& object) {
    hash = hash_text(object.name, hash);
    hash = hash_text(fmt::format("{} {}", object.bytes, object.version), hash);
    if (object.version.empty()) unversioned.emplace_back(object.name);
    ++count;
    return true;
  });
  for (const std::string& object : unversioned)
    hash = mix(hash, hash_of_content(*store.open(object, storage::Storage::buffered)));
  return fmt::format("{} objects {:016x}", count, hash);
}

}  // namespace

std::string stamp_of_volume(const std::string& given) {
  const std::string address = storage::without_file_scheme(given);
  const storage::Backend* const store = storage::store_of(address);
  if (store == nullptr) {
    const os::FileFacts facts = os::facts_of(address);
    return facts.kind == os::FileKind::folder ? stamp_of_folder(address) : stamp_of_file(facts);
  }
  std::string_view name = storage::split_address(address).name;
  while (name.ends_with('/')) name.remove_suffix(1);
  std::unique_ptr<storage::Source> object;
  try {
    object = store->open(name, storage::Storage::buffered);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::not_found || !store->can_list()) throw;
  }
  return object ? stamp_of_object(*object) : stamp_of_prefix(*store, name);
}

}  // namespace stoker::prepare
