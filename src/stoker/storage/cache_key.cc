#include "stoker/storage/cache_key.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include <fmt/format.h>

#include "stoker/base/hash.h"
#include "stoker/storage/backend.h"

namespace stoker::storage {
namespace {

constexpr int kWord = 16;  // hexadecimal digits

// Lower-case digits only: another spelling of the same number would be another file.
bool parse_hex(std::string_view text, std::uint64_t& number) noexcept {
  if (text.empty() || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return error == std::errc() && end == text.data() + text.size();
}

void append_hex(std::string& text, std::uint64_t number, int digits) {
  while (digits-- > 0) text.push_back("0123456789abcdef"[number >> (4 * digits) & 15]);
}

}  // namespace

std::optional<CacheKey> cache_key(const Location& where, std::string_view store) {
  const bool is_range = where.source != nullptr;
  const Backend* const backend = is_range ? where.source->backend() : where.backend;
  if (backend == nullptr || where.bytes == 0) return std::nullopt;
  std::string_view name, version;
  if (is_range) {
    name = split_address(where.source->name()).name;
    version = where.source->version();
  } else if (where.name != nullptr && where.version != nullptr) {
    name = where.name;
    version = where.version;
  }
  if (name.empty() || version.empty() || version.starts_with("W/")) return std::nullopt;
  const std::string text = fmt::format("{} {} {} {} {} {}{}{}", store.size(), name.size(), version.size(), where.offset,
                                       where.bytes, store, name, version);
  return CacheKey{hash_text(text, 1), hash_text(text, 2)};
}

std::string folder_name(unsigned number) {
  return fmt::format("{:02x}", number);
}

std::string file_name(const CachedFile& file) {
  std::string name;
  name.reserve(3 * kWord + 24);
  append_hex(name, file.key.high >> 56, 2);
  name.push_back('/');
  append_hex(name, file.key.high, kWord);
  append_hex(name, file.key.low, kWord);
  name.push_back('-');
  append_hex(name, file.checksum, kWord);
  name.push_back('-');
  append_hex(name, file.bytes, std::max(1, (static_cast<int>(std::bit_width(file.bytes)) + 3) / 4));
  return name;
}

std::optional<CachedFile> parse_file_name(std::string_view folder, std::string_view name) {
  constexpr std::size_t kLength = 3 * kWord + 2;  // what stands before the number of bytes
  if (name.size() <= kLength || name[2 * kWord] != '-' || name[kLength - 1] != '-') return std::nullopt;
  CachedFile file;
  const bool is_ours =
      parse_hex(name.substr(0, kWord), file.key.high) && parse_hex(name.substr(kWord, kWord), file.key.low) &&
      parse_hex(name.substr(2 * kWord + 1, kWord), file.checksum) && parse_hex(name.substr(kLength), file.bytes);
  if (!is_ours || file_name(file) != fmt::format("{}/{}", folder, name)) return std::nullopt;
  return file;
}

}  // namespace stoker::storage
