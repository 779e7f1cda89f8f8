#include "stoker/loader/seek_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/base/units.h"
#include "stoker/os/fd.h"
#include "stoker/os/file.h"

static_assert(std::endian::native == std::endian::little);

namespace stoker::loader {
namespace {

using codec::Checkpoint;

struct Header {
  std::array<char, 8> magic{};
  std::uint64_t version = 0, rows = 0, file_bytes = 0;
  std::uint64_t table_check = 0;
  std::array<std::uint64_t, 3> unused{};
};
static_assert(sizeof(Header) == 64);

constexpr std::array<char, 8> kMagic = {'S', 'T', 'K', 'S', 'E', 'E', 'K', '\0'};
constexpr std::uint64_t kVersion = 3;  // up to 2, a JPEG file was known by its length and some of its bytes
constexpr std::size_t kMuch = 256 * kMiB;

std::span<const std::byte> bytes_of(const Checkpoint* places, std::size_t count) noexcept {
  return std::as_bytes(std::span(places, count));
}

// Covers everything that the row says, so that a row and another row's places do not go together.
std::uint32_t check_of(const SeekRow& row, const Checkpoint* places) noexcept {
  const std::uint64_t seed = mix(row.identity, mix(row.known, mix(row.total, row.step)));
  return static_cast<std::uint32_t>(hash_bytes(bytes_of(places, row.known), seed));
}

}  // namespace

std::uint64_t identity_of(codec::Bytes file) noexcept {
  return hash_bytes(file);
}

SeekFile SeekFile::open(const std::string& path, std::string& why) {
  why.clear();
  SeekFile file;
  int error_number = 0;
  const os::Fd fd = os::try_open(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK, error_number);
  if (!fd) {
    if (error_number != ENOENT) why = std::strerror(error_number);
    return file;
  }
  const std::int64_t size = os::file_size(fd.get());
  if (size < static_cast<std::int64_t>(sizeof(Header))) {
    why = "it is too short";
    return file;
  }
  file.mapping_ = os::Mapping::try_map(fd.get(), static_cast<std::size_t>(size), error_number);
  const std::span<const std::byte> bytes = file.mapping_.bytes();
  if (bytes.empty()) {
    why = std::strerror(error_number);
    return file;
  }
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto refuse = [&](const char* reason) {
    why = reason;
    return SeekFile();
  };
  if (header.magic != kMagic) return refuse("it is not a file of seek places");
  if (header.version < kVersion) return refuse("an earlier version of Stoker wrote it");
  if (header.version != kVersion) return refuse("a later version of Stoker wrote it");
  if (header.file_bytes != bytes.size()) return refuse("it was cut short");
  if (header.rows > (bytes.size() - sizeof header) / sizeof(SeekRow)) return refuse("its table is longer than itself");
  const std::span<const std::byte> table = bytes.subspan(sizeof header, header.rows * sizeof(SeekRow));
  if (hash_bytes(table, header.rows) != header.table_check) return refuse("its table is damaged");
  // The mapping is page-aligned and the header a multiple of 8 bytes.
  file.rows_ = {reinterpret_cast<const SeekRow*>(table.data()), header.rows};
  return file;
}

bool SeekFile::is_outdated(const std::string& path) noexcept {
  int error_number = 0;
  const os::Fd fd = os::try_open(AT_FDCWD, path.c_str(), O_RDONLY, error_number);
  Header header;
  if (!fd || os::read_some(fd.get(), std::as_writable_bytes(std::span(&header, 1)), 0) != sizeof header) return false;
  return header.magic == kMagic && header.version < kVersion;
}

const SeekRow* SeekFile::find(std::uint64_t identity) const noexcept {
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), identity,
                                   [](const SeekRow& row, std::uint64_t wanted) { return row.identity < wanted; });
  return at != rows_.end() && at->identity == identity ? &*at : nullptr;
}

void SeekFile::read_ahead() const noexcept {
  if (mapping_.bytes().size() <= kMuch) mapping_.advise(os::Advice::will_need);
}

std::span<const Checkpoint> SeekFile::places(const SeekRow& row) const noexcept {
  const std::span<const std::byte> bytes = mapping_.bytes();
  if (row.known == 0 || row.known > row.total || row.step == 0 || row.offset % alignof(Checkpoint) != 0) return {};
  if (row.offset > bytes.size() || row.known > (bytes.size() - row.offset) / sizeof(Checkpoint)) return {};
  const auto* const places = reinterpret_cast<const Checkpoint*>(bytes.data() + row.offset);
  if (check_of(row, places) != row.check) return {};
  return {places, row.known};
}

void write_seek_file(const std::string& path, std::span<SeekRecord> records) {
  std::vector<SeekRow> table;
  table.reserve(records.size());
  std::uint64_t at = sizeof(Header) + records.size() * sizeof(SeekRow);
  for (SeekRecord& record : records) {
    record.row.offset = at;
    record.row.check = check_of(record.row, record.places);
    table.push_back(record.row);
    at += record.row.known * sizeof(Checkpoint);
  }
  std::sort(table.begin(), table.end(), [](const SeekRow& a, const SeekRow& b) {
    return a.identity != b.identity ? a.identity < b.identity : a.sample < b.sample;
  });
  const std::span<const std::byte> rows = std::as_bytes(std::span(table));
  const Header header{.magic = kMagic,
                      .version = kVersion,
                      .rows = table.size(),
                      .file_bytes = at,
                      .table_check = hash_bytes(rows, table.size())};
  os::NewFile file(path);
  file.write(std::as_bytes(std::span(&header, 1)));
  file.write(rows);
  std::vector<std::byte> block;  // few large writes
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  block.reserve(kBlock + 65536);
  for (const SeekRecord& record : records) {
    const auto bytes = bytes_of(record.places, record.row.known);
    block.insert(block.end(), bytes.begin(), bytes.end());
    if (block.size() < kBlock) continue;
    file.write(block);
    block.clear();
  }
  file.write(block);
  file.commit();
}

}  // namespace stoker::loader
