// What the tests of the object cache share: a folder for one, objects with known bytes, and damage done on purpose.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/hash.h"
#include "stoker/os/temp_folder_test.h"
#include "stoker/storage/object_cache.h"

namespace stoker::storage {

using Found = ObjectCache::Found;

inline CacheKey key_number(std::uint64_t number) {
  return {mix(number, 1), mix(number, 2)};
}

// The bytes of an object: each has its own, and its own length.
inline std::string bytes_number(std::uint64_t number, std::uint64_t most = 20'000) {
  std::string bytes(1 + mix(number, 3) % most, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(mix(number, i / 8) >> (i % 8 * 8));
  return bytes;
}

inline std::span<const std::byte> as_span(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class CacheFolder {
 public:
  const std::string& path() const { return folder_.path(); }
  std::string objects() const { return folder_.path() + "/objects"; }

  // The files of objects that are there, whole or being written.
  std::vector<std::filesystem::path> files(bool with_parts = true) const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(objects())) {
      const std::string folder = entry.path().parent_path().filename();
      const bool is_object = parse_file_name(folder, entry.path().filename().string()).has_value();
      if (entry.is_regular_file() && (is_object || (with_parts && folder == "parts"))) files.push_back(entry.path());
    }
    return files;
  }
  std::uint64_t bytes_on_disk() const {
    std::uint64_t sum = 0;
    for (const auto& file : files()) sum += CacheTable::charge(std::filesystem::file_size(file));
    return sum;
  }

 private:
  os::TempFolder folder_;
};

inline ObjectCache::Lookup look(ObjectCache& cache, std::uint64_t number, const NextUse& use = {},
                                std::uint64_t bytes = 0) {
  ObjectCache::Lookup lookup{.key = key_number(number), .bytes = bytes, .use = use};
  if (bytes == 0) lookup.bytes = bytes_number(number).size();
  cache.look({&lookup, 1});
  return lookup;
}

inline bool store(ObjectCache& cache, std::uint64_t number, const NextUse& use = {}) {
  const std::string bytes = bytes_number(number);
  return cache.store(key_number(number), as_span(bytes), use);
}

// The bytes of a hit as its file has them, if they are what the cache says.
inline std::optional<std::string> read_hit(const ObjectCache& cache, const ObjectCache::Lookup& lookup) {
  std::ifstream in(cache.path_of({lookup.key, lookup.bytes, lookup.checksum}), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in || bytes.size() != lookup.bytes || hash_bytes(as_span(bytes)) != lookup.checksum) return std::nullopt;
  return bytes;
}

}  // namespace stoker::storage
