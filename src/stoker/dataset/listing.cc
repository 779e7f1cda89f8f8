// Layout, in the machine's byte order (a listing from another kind of machine fails its checksum):
//   magic, checksum of the rest
//   real path of the tree (u32 length, bytes)
//   folder: name (u16 length, bytes), stamp, trusted (u8), what was left out,
//           files (u64 count; each u64 size, u16 length, name), folders (u32 count, each a folder)
// The files of a folder that cannot be trusted are left out: it will be read again anyway.
#include "stoker/dataset/listing.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/os/file.h"
#include "stoker/storage/source.h"

namespace stoker::dataset {
namespace {

constexpr std::string_view kMagic = "STKLIST2";
constexpr std::uint64_t kMaxListing = std::uint64_t{1} << 36;
constexpr std::size_t kMaxName = 255;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 62;

class Writer {
 public:
  template <typename T>
  requires std::is_integral_v<T>
  void number(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out.append(bytes, sizeof value);
  }
  template <typename Length>
  void text(std::string_view text) {
    number(static_cast<Length>(text.size()));
    out.append(text);
  }

  std::string out;
};

// Reads past the end give zeros and make the reader bad; nothing is trusted before is_bad() was asked.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  bool is_bad() const noexcept { return bad_; }
  std::size_t left() const noexcept { return left_.size(); }

  template <typename T>
  T number() {
    T value{};
    if (left_.size() < sizeof value) {
      fail();
      return T{};
    }
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  template <typename Length>
  std::string_view text() {
    const auto length = number<Length>();
    if (left_.size() < length) {
      fail();
      return {};
    }
    const std::string_view text = left_.substr(0, length);
    left_.remove_prefix(length);
    return text;
  }
  void fail() {
    bad_ = true;
    left_ = {};
  }

 private:
  std::string_view left_;
  bool bad_ = false;
};

bool is_sound_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name.front() != '.' &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

// Not read, and to be looked at again by the next scan.
bool is_odd(const ScannedFolder& folder) {
  return folder.is_loop || folder.is_missing || folder.is_unreadable();
}

void write_folder(Writer& writer, const ScannedFolder& folder) {
  const bool holds_odd_folders =
      std::any_of(folder.folders.begin(), folder.folders.end(), [](const auto& child) { return is_odd(*child); });
  const bool trusted = folder.can_be_trusted && !holds_odd_folders;
  writer.text<std::uint16_t>(folder.name);
  writer.number(folder.stamp.device);
  writer.number(folder.stamp.inode);
  writer.number(folder.stamp.modified_ns);
  writer.number(folder.stamp.changed_ns);
  writer.number(static_cast<std::uint8_t>(trusted));
  writer.number(folder.left_out.hidden);
  writer.number(folder.left_out.unknown);
  writer.number(folder.left_out.too_long);
  writer.number(static_cast<std::uint8_t>(folder.left_out.extensions.size()));
  for (const auto& [extension, count] : folder.left_out.extensions) {
    writer.text<std::uint8_t>(extension);
    writer.number(count);
  }
  writer.number(std::uint64_t{trusted ? folder.files.size() : 0});
  if (trusted) {
    for (const ScannedFile& file : folder.files) {
      writer.number(file.bytes);
      writer.text<std::uint16_t>(folder.name_of(file));
    }
  }
  std::uint32_t children = 0;
  for (const auto& child : folder.folders) children += !is_odd(*child);
  writer.number(children);
  for (const auto& child : folder.folders) {
    if (!is_odd(*child)) write_folder(writer, *child);
  }
}

// Recursion ends: every level makes the path longer, and paths are at most kMaxPath.
void read_folder(Reader& reader, ScannedFolder& folder) {
  const std::string_view name = reader.text<std::uint16_t>();
  const bool is_root = folder.parent == nullptr;
  if (is_root ? !name.empty() : !is_sound_name(name)) return reader.fail();
  if (!is_root) {
    folder.name = name;
    folder.path = fmt::format("{}{}/", folder.parent->path, name);
    if (folder.path.size() > kMaxPath) return reader.fail();
  }
  folder.stamp.device = reader.number<std::uint64_t>();
  folder.stamp.inode = reader.number<std::uint64_t>();
  folder.stamp.modified_ns = reader.number<std::int64_t>();
  folder.stamp.changed_ns = reader.number<std::int64_t>();
  folder.can_be_trusted = reader.number<std::uint8_t>() == 1;
  folder.left_out.hidden = reader.number<std::uint64_t>();
  folder.left_out.unknown = reader.number<std::uint64_t>();
  folder.left_out.too_long = reader.number<std::uint64_t>();
  for (auto left = reader.number<std::uint8_t>(); left > 0; --left) {
    const std::string_view extension = reader.text<std::uint8_t>();
    const auto count = reader.number<std::uint64_t>();
    if (extension.empty()) return reader.fail();
    folder.left_out.extensions.emplace_back(extension, count);
  }

  const auto file_count = reader.number<std::uint64_t>();
  constexpr std::size_t kLeastPerFile = sizeof(std::uint64_t) + sizeof(std::uint16_t) + 1;
  if (file_count > reader.left() / kLeastPerFile) return reader.fail();
  folder.files.reserve(file_count);
  std::string_view before;
  for (std::uint64_t i = 0; i < file_count; ++i) {
    const auto bytes = reader.number<std::uint64_t>();
    const std::string_view file_name = reader.text<std::uint16_t>();
    const codec::Media media = codec::media_of_name(file_name);
    if (!is_sound_name(file_name) || bytes > kMaxFileBytes || !media.is_known() || file_name <= before ||
        folder.path.size() + file_name.size() > kMaxPath || folder.names.size() > UINT32_MAX - kMaxName - 1) {
      return reader.fail();
    }
    before = file_name;
    folder.files.push_back(
        {bytes, static_cast<std::uint32_t>(folder.names.size()), static_cast<std::uint16_t>(file_name.size()), media});
    folder.names.append(file_name).push_back('\0');
  }

  for (auto left = reader.number<std::uint32_t>(); left > 0 && !reader.is_bad(); --left) {
    auto child = std::make_unique<ScannedFolder>();
    child->parent = &folder;
    read_folder(reader, *child);
    if (!folder.folders.empty() && child->path <= folder.folders.back()->path) return reader.fail();
    folder.folders.push_back(std::move(child));
  }
}

std::uint64_t checksum(std::string_view payload) {
  return hash_text(payload, 0x6C697374);
}

}  // namespace

std::string listing_folder(const std::string& cache_dir) {
  if (!cache_dir.empty()) return cache_dir;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::string(cache) + "/stoker";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.cache/stoker";
  return {};
}

std::string listing_path(const std::string& folder, std::string_view real_path) {
  return fmt::format("{}/listing-{:016x}.bin", folder, hash_text(real_path));
}

std::string seek_path(const OpenOptions& options, std::string_view identity) {
  const std::string folder = options.use_cache ? listing_folder(options.cache_dir) : std::string();
  return folder.empty() || identity.empty() ? "" : fmt::format("{}/seek-{:016x}.bin", folder, hash_text(identity));
}

std::string real_path_of(const std::string& address) {
  const std::unique_ptr<char, decltype(&std::free)> path(::realpath(address.c_str(), nullptr), &std::free);
  return path ? std::string(path.get()) : std::string();
}

std::string to_listing(const ScannedFolder& tree, std::string_view real_path) {
  Writer writer;
  writer.out.append(kMagic);
  writer.number(std::uint64_t{0});
  writer.text<std::uint32_t>(real_path);
  write_folder(writer, tree);
  const std::size_t head = kMagic.size() + sizeof(std::uint64_t);
  const std::uint64_t sum = checksum(std::string_view(writer.out).substr(head));
  std::memcpy(writer.out.data() + kMagic.size(), &sum, sizeof sum);
  return std::move(writer.out);
}

std::unique_ptr<ScannedFolder> from_listing(std::string_view bytes, std::string_view real_path) {
  if (!bytes.starts_with(kMagic)) return nullptr;
  Reader head(bytes.substr(kMagic.size()));
  const auto sum = head.number<std::uint64_t>();
  if (head.is_bad()) return nullptr;
  const std::string_view payload = bytes.substr(kMagic.size() + sizeof sum);
  if (checksum(payload) != sum) return nullptr;

  Reader reader(payload);
  if (reader.text<std::uint32_t>() != real_path) return nullptr;
  auto tree = std::make_unique<ScannedFolder>();
  read_folder(reader, *tree);
  return reader.is_bad() || reader.left() != 0 ? nullptr : std::move(tree);
}

std::unique_ptr<ScannedFolder> load_listing(const std::string& path, std::string_view real_path) {
  try {
    const std::vector<std::byte> bytes = storage::read_file(path, kMaxListing);
    return from_listing({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, real_path);
  } catch (const Error&) {
    return nullptr;
  }
}

void save_listing(const std::string& path, std::string_view listing) {
  os::make_folders(path.substr(0, path.rfind('/')));
  os::write_file(path, listing);
}

}  // namespace stoker::dataset
