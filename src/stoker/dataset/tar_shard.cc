#include "stoker/dataset/tar_shard.h"

#include <cstring>
#include <exception>
#include <type_traits>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/dataset/listing.h"
#include "stoker/os/file.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {
namespace {

constexpr std::string_view kMembersMagic = "STKTARM1";
constexpr std::uint64_t kMaxRecord = std::uint64_t{1} << 34;
constexpr std::size_t kHead = 2 * sizeof(std::uint64_t);  // magic and checksum

// Writes fields one after another, or reads them back: one function, so that both have the same fields.
class Record {
 public:
  std::string out;
  std::string_view in;
  bool is_reading = false, is_bad = false;

  template <typename T>
  requires std::is_arithmetic_v<T>
  void field(T& value) {
    char bytes[sizeof value];
    if (!is_reading) {
      std::memcpy(bytes, &value, sizeof value);
      out.append(bytes, sizeof value);
    } else if (in.size() < sizeof value) {
      fail();
    } else {
      std::memcpy(&value, in.data(), sizeof value);
      in.remove_prefix(sizeof value);
    }
  }
  void field(std::string& text) {
    std::uint64_t length = text.size();
    field(length);
    if (!is_reading) {
      out += text;
    } else if (in.size() < length) {
      fail();
    } else {
      text = in.substr(0, length);
      in.remove_prefix(length);
    }
  }
  void field(UnusedMembers& members) {
    field(members.count);
    field(members.first);
  }
  void field(TarSample& sample) {
    field(sample.offset);
    field(sample.bytes);
    field(sample.name_at);
    field(sample.name_bytes);
  }
  void field(FoundLabel& label) {
    auto kind = static_cast<std::uint8_t>(label.kind);
    field(kind);
    if (kind > static_cast<std::uint8_t>(FoundLabel::Kind::text)) return fail();
    label.kind = static_cast<FoundLabel::Kind>(kind);
    if (label.kind == FoundLabel::Kind::none) return;
    field(label.integer);
    field(label.real);
    field(label.text);
  }
  template <typename T>
  void list(std::vector<T>& values) {
    std::uint64_t count = values.size();
    field(count);
    if (is_reading && count > in.size()) return fail();  // each takes a byte at least
    values.resize(count);
    for (T& value : values) field(value);
  }
  void fail() {
    is_bad = true;
    in = {};
  }
};

void visit_fields(Record& record, ScannedShard& shard) {
  record.field(shard.names);
  record.list(shard.samples);
  record.list(shard.labels);
  std::uint8_t lacks_end = shard.lacks_end;
  record.field(lacks_end);
  shard.lacks_end = lacks_end != 0;
  record.field(shard.without_data);
  for (UnusedMembers* const members : {&shard.links, &shard.bad_labels, &shard.labels_apart, &shard.labels_alone}) {
    record.field(*members);
  }
  std::vector<std::string> extensions;
  for (const auto& [extension, count] : shard.left_out) extensions.push_back(extension);
  record.list(extensions);
  for (const std::string& extension : extensions) record.field(shard.left_out[extension]);
}

// Names and contents lie inside what they are taken from.
bool is_sound(const ScannedShard& shard, std::uint64_t source_bytes) {
  if (shard.labels.size() != shard.samples.size()) return false;
  for (const TarSample& sample : shard.samples) {
    if (sample.name_at > shard.names.size() || sample.name_bytes > shard.names.size() - sample.name_at) return false;
    if (sample.offset > source_bytes || sample.bytes > source_bytes - sample.offset) return false;
  }
  return true;
}

std::string key_of(const storage::Source& source) {
  if (source.backend() == nullptr || source.version().empty() || source.version().starts_with("W/")) return {};
  return fmt::format("{} {} {} {}", source.backend()->identity(), source.name(), source.version(), source.size_bytes());
}

// Empty: nowhere.
std::string path_of(const std::string& key, const OpenOptions& options) {
  const std::string folder = options.use_cache && !key.empty() ? listing_folder(options.cache_dir) : std::string();
  return folder.empty() ? "" : fmt::format("{}/members-{:016x}.bin", folder, hash_text(key));
}

}  // namespace

std::string to_record(const ScannedShard& shard, std::string_view key) {
  Record written;
  std::string text(key);
  written.field(text);
  visit_fields(written, const_cast<ScannedShard&>(shard));  // writing changes nothing
  const std::uint64_t sum = hash_text(written.out, 0x6D656D62);
  std::string bytes(kMembersMagic);
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return bytes += written.out;
}

bool from_record(std::string_view bytes, std::string_view key, ScannedShard& shard) {
  if (bytes.size() < kHead || !bytes.starts_with(kMembersMagic)) return false;
  std::uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + kMembersMagic.size(), sizeof sum);
  Record kept;
  kept.is_reading = true;
  kept.in = bytes.substr(kHead);
  if (hash_text(kept.in, 0x6D656D62) != sum) return false;
  std::string text;
  kept.field(text);
  if (text != key) return false;
  visit_fields(kept, shard);
  return !kept.is_bad && kept.in.empty();
}

bool load_shard(const storage::Source& source, std::uint32_t number, const OpenOptions& options, ScannedShard& shard) {
  try {
    const std::string key = key_of(source), path = path_of(key, options);
    if (path.empty()) return false;
    const std::vector<std::byte> bytes = storage::read_file(path, kMaxRecord);
    ScannedShard kept;
    if (!from_record({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, key, kept) ||
        !is_sound(kept, source.size_bytes())) {
      return false;
    }
    for (TarSample& sample : kept.samples) sample.shard = number;
    shard = std::move(kept);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void save_shard(const storage::Source& source, const OpenOptions& options, const ScannedShard& shard) noexcept {
  if (!shard.gaps.empty() || !shard.beside_gaps.empty()) return;  // damage is looked at each time
  try {
    const std::string key = key_of(source), path = path_of(key, options);
    if (path.empty()) return;
    os::make_folders(path.substr(0, path.rfind('/')));
    // Not synced: a disk that is slow would hold up every start. A damaged record is noticed by its checksum.
    (void)os::write_unsynced_file(path, to_record(shard, key));
  } catch (const std::exception&) {  // the next start reads the shard again
  }
}

}  // namespace stoker::dataset
