#include "stoker/prepare/source_times.h"

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/dataset/listing.h"
#include "stoker/os/file.h"
#include "stoker/storage/source.h"

namespace stoker::prepare {
namespace {

struct Header {
  std::array<char, 8> magic{};
  std::uint64_t version = 0, key = 0, count = 0, check = 0;
};

constexpr std::array<char, 8> kTimesMagic = {'S', 'T', 'K', 'T', 'I', 'M', 'E', '\0'};
constexpr std::uint64_t kVersion = 1;

std::uint64_t with_row(std::uint64_t key, const dataset::PackRow& row) noexcept {
  return mix(mix(key, static_cast<std::uint64_t>(row.id)), row.xxh3);
}

}  // namespace

std::uint64_t content_key(const dataset::Packed& pack) noexcept {
  std::uint64_t key = pack.size();
  for (std::uint64_t i = 0; i < pack.size(); ++i) key = with_row(key, pack.row(i));
  return key;
}

std::uint64_t content_key(std::span<const JournalRow> rows) noexcept {
  std::uint64_t key = rows.size();
  for (const JournalRow& row : rows) key = with_row(key, row.row);
  return key;
}

std::string times_path(const std::string& cache_dir, const std::string& destination) {
  const std::string folder = dataset::listing_folder(cache_dir), path = dataset::real_path_of(destination);
  return folder.empty() || path.empty() ? "" : fmt::format("{}/packed-{:016x}.bin", folder, hash_text(path));
}

std::vector<std::int64_t> load_times(const std::string& path, std::uint64_t key, std::uint64_t count) {
  if (path.empty()) return {};
  std::vector<std::byte> bytes;
  try {
    bytes = storage::read_file(path, sizeof(Header) + count * sizeof(std::int64_t));
  } catch (const Error&) {
    return {};
  }
  Header header;
  if (bytes.size() != sizeof header + count * sizeof(std::int64_t)) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::span<const std::byte> values = std::span<const std::byte>(bytes).subspan(sizeof header);
  if (header.magic != kTimesMagic || header.version != kVersion || header.key != key || header.count != count ||
      header.check != hash_bytes(values, key))
    return {};
  std::vector<std::int64_t> times(count);
  std::memcpy(times.data(), values.data(), values.size());
  return times;
}

void save_times(const std::string& path, std::uint64_t key, std::span<const std::int64_t> times) {
  const std::span<const std::byte> values = std::as_bytes(times);
  const Header header{
      .magic = kTimesMagic, .version = kVersion, .key = key, .count = times.size(), .check = hash_bytes(values, key)};
  os::make_folders(path.substr(0, path.rfind('/')));
  os::NewFile file(path);
  file.write(std::as_bytes(std::span(&header, 1)));
  file.write(values);
  file.commit();
}

}  // namespace stoker::prepare
