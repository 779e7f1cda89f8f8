// What a cached object is known by: a hash of the store, its name, its version and the range of bytes. Another version
// of an object is another key. The file of an object is named by its key, its length and the XXH3-64 of its bytes, so
// that the name tells all that is needed to check the file, and a lost table can be made again from names.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stoker/storage/location.h"

namespace stoker::storage {

struct CacheKey {
  std::uint64_t high = 0, low = 0;

  friend bool operator==(const CacheKey&, const CacheKey&) = default;
  friend auto operator<=>(const CacheKey&, const CacheKey&) = default;
};

// Of an object of a store, or of a range of one; `store` is the identity of its backend. None: it has no version, so
// that nobody could tell old bytes from new ones, or a weak one, which other bytes may share; or it has no bytes, or
// lies in no store.
std::optional<CacheKey> cache_key(const Location& where, std::string_view store);

struct CachedFile {
  CacheKey key;
  std::uint64_t bytes = 0, checksum = 0;
};

std::string file_name(const CachedFile& file);  // below the folder of objects: "3f/3f09...-0a...-1b3e5"
std::string folder_name(unsigned number);       // of the kFolders that the files are spread over: "3f"
std::optional<CachedFile> parse_file_name(std::string_view folder, std::string_view name);  // none: not one of ours

inline constexpr unsigned kFolders = 256;

}  // namespace stoker::storage
