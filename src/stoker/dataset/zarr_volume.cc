// A zarr array as a volume: in a folder or a store, each chunk an object of its own or a part of a shard.
//
//   folder, chunks   the file of a chunk is looked up when the chunk is located; nothing is listed
//   folder, shards   each shard is opened, and its index is read, when the volume is opened
//   store, chunks    the objects are listed when the volume is opened, with sizes and versions
//   store, shards    the same, and the index of each shard is read
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/codec/swap_values.h"
#include "stoker/dataset/crew.h"
#include "stoker/dataset/files.h"
#include "stoker/dataset/volume_kinds.h"
#include "stoker/dataset/zarr_meta.h"
#include "stoker/os/fd.h"
#include "stoker/os/file_facts.h"
#include "stoker/os/file_limit.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/interruption.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 48;
constexpr std::uint64_t kMostShards = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostIndexBytes = std::uint64_t{1} << 28;  // of one shard
constexpr std::uint64_t kAbsent = ~std::uint64_t{0};               // offset and bytes of a chunk that no shard holds
constexpr int kReadsAtOnce = 16;
constexpr const char *kMetadata2 = ".zarray", *kMetadata3 = "zarr.json";

// An object that was listed: a chunk or a shard.
struct ZarrObject {
  std::uint64_t number = 0;  // in C order over the grid of objects
  std::uint64_t bytes = 0;
  std::size_t version_at = kNoVersion;  // in versions_
  static constexpr std::size_t kNoVersion = ~std::size_t{0};
};

struct ChunkRange {
  std::uint64_t offset = 0, bytes = 0;
};

// What is known of an array before its chunks are looked for.
struct FoundArray {
  std::string address;  // of the array itself
  ZarrArray array;
  std::vector<std::string> axes;
  std::vector<double> spacing_mm;
};

// The text of an object, or none where there is no such object.
std::optional<std::string> read_if_there(const std::string& address) {
  if (storage::store_of(address) == nullptr && !os::can_reach(address)) return std::nullopt;
  try {
    const std::vector<std::byte> bytes = storage::read_address(address, kMaxMetadataBytes);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::not_found) return std::nullopt;
    throw;
  }
}

std::string joined(std::string_view folder, std::string_view name) {
  return folder.ends_with('/') ? fmt::format("{}{}", folder, name) : fmt::format("{}/{}", folder, name);
}

// The array at `address`, or the level of the image that a group there describes. None: no metadata is there.
std::optional<FoundArray> find_array(const std::string& address, const VolumeOptions& options, bool is_level = false) {
  FoundArray found;
  found.address = address;
  const auto refuse_level = [&] {
    if (is_level || options.level == 0) return;
    throw Error(ErrorKind::usage,
                format_text("{} does not go with `{}`: it is one array, not an OME-Zarr image of several levels",
                            option("level", std::to_string(options.level)), address),
                "leave it out")
        .about("level");
  };
  Json attributes;
  std::string subject = joined(address, kMetadata3);
  if (const auto text = read_if_there(subject)) {
    const Json json = Json::parse(*text, subject);
    const Json& type = json["node_type"];
    if (!type.is_string() || type.text() != "group") {
      refuse_level();
      found.array = parse_zarr_array(json, 3, subject);
      found.axes = found.array.axes;
      return found;
    }
    attributes = json["attributes"];
  } else if (const auto old = read_if_there(joined(address, kMetadata2))) {
    subject = joined(address, kMetadata2);
    refuse_level();
    found.array = parse_zarr_array(Json::parse(*old, subject), 2, subject);
    return found;
  } else {
    subject = joined(address, ".zattrs");
    const auto group_attributes = read_if_there(subject);
    if (!group_attributes && !read_if_there(joined(address, ".zgroup"))) return std::nullopt;
    if (group_attributes) attributes = Json::parse(*group_attributes, subject);
  }
  const std::vector<OmeLevel> levels = parse_multiscales(attributes, subject);
  if (levels.empty() || is_level) {
    throw Error(ErrorKind::unsupported, fmt::format("cannot read `{}` as a volume: it is a zarr group", address),
                "name the array in it: the path of the array, or its member");
  }
  if (options.level >= levels.size()) {
    throw Error(ErrorKind::usage, fmt::format("cannot read level {} of `{}`: it has {} levels, from 0 on",
                                              options.level, address, levels.size()));
  }
  const OmeLevel& level = levels[options.level];
  std::optional<FoundArray> inside = find_array(joined(address, level.path), options, true);
  if (!inside) {
    throw Error(ErrorKind::not_found, fmt::format("cannot read level {} of `{}`: there is no array at `{}`",
                                                  options.level, address, level.path));
  }
  if (level.axes.size() == inside->array.shape.size()) {
    inside->axes = level.axes;
    inside->spacing_mm = level.spacing_mm;
  }
  return inside;
}

class ZarrVolume final : public Volume {
 public:
  ZarrVolume(std::string name, FoundArray found, storage::Storage storage)
      : name_(std::move(name)), address_(std::move(found.address)), array_(std::move(found.array)) {
    choose_axes(found.axes, found.spacing_mm);
    info_.dtype = array_.dtype;
    info_.working_bytes = codec::working_bytes(array_.form);
    info_.format =
        fmt::format("zarr v{}, {}{}", array_.version, array_.packing, array_.shard.empty() ? "" : ", shards");
    grid_ = array_.grid();
    std::uint64_t chunks = 1;
    for (const std::uint64_t n : info_.grid()) {
      if (__builtin_mul_overflow(chunks, n, &chunks) || chunks > kMostChunks) {
        refuse_volume(address_, failed(Code::too_large, "more chunks than any store holds"));
      }
    }
    backend_ = storage::store_of(address_);
    if (backend_ != nullptr) {
      list_store();
      if (!array_.shard.empty()) read_stored_indexes();
    } else {
      folder_ = os::open_file(address_, O_RDONLY | O_DIRECTORY);
      if (!array_.shard.empty()) open_shards(storage);
    }
    for (const auto& shard : shards_) borrowed_.push_back(shard.get());
  }

  const VolumeInfo& info() const noexcept override { return info_; }
  std::string_view name() const noexcept override { return name_; }

  storage::Location locate_chunk(std::uint64_t chunk, std::span<char> text) const noexcept override {
    if (!array_.shard.empty()) return locate_in_shard(chunk, text);
    std::array<char, kKeyText> key;
    const std::string_view name = write_key(coordinates_of(chunk, info_.grid()), key);
    if (backend_ != nullptr) {
      const ZarrObject* const object = find_object(chunk);
      if (object == nullptr) return storage::Location::whole_object(*backend_, nullptr, nullptr, 0);
      return in_store(*object, name, text);
    }
    const os::FileFacts facts = os::facts_of(folder_.get(), key.data());
    // A file that is empty, or that cannot be looked up, is not an absent chunk: reading it fails, and says why.
    const std::uint64_t bytes =
        is_absent(facts, key.data()) ? 0 : std::max<std::uint64_t>(facts.is_found() ? facts.bytes : 1, 1);
    return in_folder(folder_.get(), text, join(text, name), bytes);
  }

  Result decode_chunk(std::uint64_t, codec::Bytes encoded, std::byte* into, Scratch& scratch) const noexcept override {
    if (!encoded.empty()) return codec::decode_packed(array_.form, encoded, into, scratch);
    const std::size_t size = array_.form.value_bytes;
    if (std::all_of(array_.fill.begin(), array_.fill.end(), [this](std::byte b) { return b == array_.fill[0]; }) ||
        size == 1) {
      std::memset(into, static_cast<int>(array_.fill[0]), array_.form.bytes);
      return {};
    }
    for (std::uint64_t at = 0; at < array_.form.bytes; at += size) std::memcpy(into + at, array_.fill.data(), size);
    return {};
  }

  codec::Pieces pieces() const noexcept override { return codec::pieces_of(array_.form); }
  Result find_planes(codec::Bytes head, std::uint64_t encoded, std::uint64_t first_byte, std::uint64_t bytes,
                     codec::PackedRun& run) const noexcept override {
    return codec::find_piece(array_.form, head, encoded, first_byte, bytes, run);
  }
  Result decode_planes(codec::Bytes encoded, std::uint64_t first_byte,
                       std::span<std::byte> into) const noexcept override {
    return codec::decode_piece(array_.form, encoded, first_byte, into);
  }

  std::string chunk_name(std::uint64_t chunk) const override {
    std::array<char, kKeyText> key;
    if (array_.shard.empty()) {
      return fmt::format("chunk {} of `{}`", write_key(coordinates_of(chunk, info_.grid()), key), name_);
    }
    const Extents at = coordinates_of(chunk, info_.grid());
    return fmt::format("chunk {}, {}, {} of `{}`, in its shard {}", at[0], at[1], at[2], name_,
                       write_key(shard_coordinates(at), key));
  }

  std::span<const storage::Source* const> sources() const noexcept override { return borrowed_; }
  std::span<const storage::Backend* const> backends() const noexcept override {
    return {&backend_, backend_ != nullptr ? 1u : 0u};
  }
  std::uint64_t memory_bytes() const noexcept override {
    return held_bytes(objects_) + held_bytes(versions_) + held_bytes(ranges_);
  }

 private:
  static constexpr std::size_t kKeyText = 192;  // a prefix, and kMaxAxes numbers of up to 20 digits

  // An absent chunk has the fill value. A link that leads nowhere stands for a chunk that was not fetched, and an array
  // whose metadata are gone was deleted meanwhile: reading fails there.
  bool is_absent(const os::FileFacts& facts, const char* key) const noexcept {
    if (facts.error_number != ENOENT && facts.error_number != ENOTDIR) return false;
    return !os::has_entry(folder_.get(), key) &&
           os::has_entry(folder_.get(), array_.version == 3 ? kMetadata3 : kMetadata2);
  }

  // ---- axes

  // z, y and x are the last three axes that are not channels. Axes before them must have one element.
  void choose_axes(const std::vector<std::string>& names, const std::vector<double>& spacing) {
    const std::size_t axes = array_.shape.size();
    std::size_t end = axes;
    const bool is_named = names.size() == axes && std::ranges::find(names, "x") != names.end();
    if (is_named ? names.back() == "c" : ends_in_channels(array_.shape)) {
      --end;
      info_.channels = static_cast<std::uint32_t>(std::min<std::uint64_t>(array_.shape[end], ~std::uint32_t{0}));
      if (array_.chunk[end] != array_.shape[end] || info_.channels > 1024) {
        refuse_axes("its last axis counts channels, and a chunk does not hold all of them");
      }
    }
    const std::size_t begin = end > 3 ? end - 3 : 0;
    for (std::size_t i = 0; i < begin; ++i) {
      if (array_.shape[i] != 1) refuse_axes("an axis before z, y, x has more than one element");
      if (array_.chunk[i] != 1) refuse_axes("a chunk has more than one element along an axis before z, y, x");
    }
    if (end - begin < 2) refuse_axes("a volume has at least the axes y and x");
    first_axis_ = begin;
    missing_axes_ = 3 - (end - begin);
    for (std::size_t i = 0; i < 3; ++i) {
      const bool is_there = i >= missing_axes_;
      const std::size_t axis = begin + i - missing_axes_;
      info_.extents[i] = is_there ? array_.shape[axis] : 1;
      info_.chunk[i] = is_there ? array_.chunk[axis] : 1;
      info_.spacing[i] = is_there && axis < spacing.size() ? spacing[axis] : 0;
      chunks_per_shard_[i] = is_there && !array_.shard.empty() ? array_.shard[axis] / array_.chunk[axis] : 1;
    }
    for (std::size_t i = 0; i < array_.shard.size(); ++i) {
      const bool is_of_volume = i >= begin && i < end;
      if (!is_of_volume && array_.shard[i] != array_.chunk[i]) refuse_axes("a shard holds several channels or times");
    }
  }

  [[noreturn]] void refuse_axes(std::string_view cause) const {
    std::string shape;
    for (const std::uint64_t n : array_.shape) shape += fmt::format("{}{}", shape.empty() ? "" : " x ", n);
    throw Error(ErrorKind::unsupported,
                fmt::format("cannot read `{}` as a volume of shape {}: {}", address_, shape, cause));
  }

  static Extents coordinates_of(std::uint64_t number, const Extents& grid) noexcept {
    return {number / (grid[1] * grid[2]), number / grid[2] % grid[1], number % grid[2]};
  }
  Extents shard_coordinates(const Extents& chunk) const noexcept {
    return {chunk[0] / chunks_per_shard_[0], chunk[1] / chunks_per_shard_[1], chunk[2] / chunks_per_shard_[2]};
  }
  Extents object_grid() const noexcept {  // along z, y, x
    Extents grid{1, 1, 1};
    for (std::size_t i = missing_axes_; i < 3; ++i) grid[i] = grid_[first_axis_ + i - missing_axes_];
    return grid;
  }
  std::uint64_t object_count() const noexcept {
    const Extents grid = object_grid();
    return grid[0] * grid[1] * grid[2];
  }

  // ---- keys

  // The key of an object, and a NUL behind it.
  std::string_view write_key(const Extents& at, std::span<char, kKeyText> out) const noexcept {
    char* end = std::copy(array_.prefix.begin(), array_.prefix.end(), out.data());
    for (std::size_t axis = 0; axis < array_.shape.size(); ++axis) {
      if (axis > 0) *end++ = array_.separator;
      const bool is_of_volume = axis >= first_axis_ && axis < first_axis_ + 3 - missing_axes_;
      const std::uint64_t number = is_of_volume ? at[axis - first_axis_ + missing_axes_] : 0;
      end = std::to_chars(end, out.data() + out.size() - 1, number).ptr;
    }
    *end = '\0';
    return {out.data(), static_cast<std::size_t>(end - out.data())};
  }

  // The number of the object that has this key; none: it belongs to something else.
  std::optional<std::uint64_t> read_key(std::string_view key) const noexcept {
    if (!key.starts_with(array_.prefix)) return std::nullopt;
    key.remove_prefix(array_.prefix.size());
    std::uint64_t number = 0;
    for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
      if (axis > 0) {
        if (!key.starts_with(array_.separator)) return std::nullopt;
        key.remove_prefix(1);
      }
      std::uint64_t value = 0;
      const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), value);
      if (problem != std::errc() || value >= grid_[axis] || (key[0] == '0' && end != key.data() + 1)) {
        return std::nullopt;
      }
      key.remove_prefix(static_cast<std::size_t>(end - key.data()));
      number = number * grid_[axis] + value;
    }
    return key.empty() ? std::optional(number) : std::nullopt;
  }

  // ---- objects of a store

  void list_store() {
    base_ = storage::split_address(address_).name;
    if (!base_.ends_with('/')) base_ += '/';
    if (!backend_->can_list()) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("cannot read `{}`: the store does not list its objects, and absent chunks are not known",
                              address_),
                  "copy it to a local folder, or to a store that lists");
    }
    backend_->list(base_, [this](const storage::Backend::Object& object) {
      if (!object.name.starts_with(base_)) return true;
      const std::optional<std::uint64_t> number = read_key(object.name.substr(base_.size()));
      if (!number) return true;
      ZarrObject found{*number, object.bytes};
      if (!object.version.empty()) {
        found.version_at = versions_.size();
        versions_.append(object.version).push_back('\0');
      }
      objects_.push_back(found);
      info_.stored_bytes += object.bytes;
      return true;
    });
    std::sort(objects_.begin(), objects_.end(),
              [](const ZarrObject& a, const ZarrObject& b) { return a.number < b.number; });
  }

  const ZarrObject* find_object(std::uint64_t number) const noexcept {
    const auto found = std::lower_bound(objects_.begin(), objects_.end(), number,
                                        [](const ZarrObject& object, std::uint64_t n) { return object.number < n; });
    return found != objects_.end() && found->number == number ? &*found : nullptr;
  }

  storage::Location in_store(const ZarrObject& object, std::string_view key, std::span<char> text) const noexcept {
    const std::size_t length = join(text, base_, key);
    const char* const version =
        object.version_at == ZarrObject::kNoVersion ? nullptr : versions_.data() + object.version_at;
    return storage::Location::whole_object(*backend_, length == 0 ? nullptr : text.data(), version,
                                           std::max<std::uint64_t>(object.bytes, 1));
  }

  // ---- shards

  std::uint64_t index_bytes() const noexcept {
    return array_.chunks_per_shard() * sizeof(ChunkRange) + (array_.index_has_sum ? 4 : 0);
  }

  void check_index_size() const {
    if (array_.chunks_per_shard() > kMostIndexBytes / sizeof(ChunkRange)) {
      refuse_volume(address_, failed(Code::too_large, "a shard of more than 16 million chunks"));
    }
  }

  // Reads the index of the shard `source` into its ranges. `shard` names it in messages.
  void read_index(const storage::Source& source, std::span<ChunkRange> ranges, std::string_view shard) const {
    const auto damaged = [&](std::string_view cause) {
      throw Error(ErrorKind::corrupt, fmt::format("cannot read the shard {} of `{}`: {}", shard, name_, cause));
    };
    const std::uint64_t size = source.size_bytes(), index = index_bytes();
    if (size < index) damaged("it is shorter than its index");
    std::vector<std::byte> raw(index);
    const storage::Read read{array_.index_at_start ? 0 : size - index, raw};
    source.read({&read, 1});
    codec::Bytes bytes = raw;
    if (array_.index_has_sum) {
      if (const Result result = codec::check_sum(bytes); !result.ok()) damaged("the checksum of its index differs");
    }
    std::byte* const into = reinterpret_cast<std::byte*>(ranges.data());
    std::memcpy(into, bytes.data(), bytes.size());
    if (array_.index_is_swapped) codec::swap_values(into, bytes.size(), sizeof(std::uint64_t));
    for (const ChunkRange& range : ranges) {
      if (range.offset == kAbsent && range.bytes == kAbsent) continue;
      if (range.bytes == 0 || range.offset > size || range.bytes > size - range.offset) {
        damaged("its index points beyond its end");
      }
    }
  }

  // The ranges of the shard with this number; empty: there is no such shard.
  std::span<const ChunkRange> ranges_of(std::uint64_t position) const noexcept {
    const std::uint64_t per_shard = array_.chunks_per_shard();
    return std::span(ranges_).subspan(position * per_shard, per_shard);
  }

  void open_shards(storage::Storage storage) {
    check_index_size();
    const std::uint64_t count = object_count();
    if (count > kMostShards) refuse_volume(address_, failed(Code::too_large, "more than a million shards"));
    const Extents grid = object_grid();
    std::vector<std::string> keys;
    std::array<char, kKeyText> key;
    std::uint64_t total = 0;
    for (std::uint64_t number = 0; number < count; ++number) {
      if (number % 1024 == 0) storage::check_interruption();
      const std::string_view name = write_key(coordinates_of(number, grid), key);
      const os::FileFacts facts = os::facts_of(folder_.get(), key.data());
      if (is_absent(facts, key.data())) continue;
      if (!facts.is_found()) (void)os::open_file(joined(address_, name), O_RDONLY);  // throws, and says why
      objects_.push_back({number, facts.bytes});
      keys.emplace_back(name);
      total += facts.bytes;
    }
    info_.stored_bytes = total;
    // Every shard stays open, and other volumes have shards too.
    if (objects_.size() > os::open_file_limit() / 8) (void)os::raise_open_file_limit(kMostShards);
    if (objects_.size() > os::open_file_limit() / 2) {
      throw Error(ErrorKind::unavailable,
                  fmt::format("cannot open `{}`: it has {} shards, and a process may open {} files", name_,
                              objects_.size(), os::open_file_limit()),
                  "raise the hard limit of open files (`ulimit -Hn`), or write larger shards");
    }
    const storage::Storage settled = storage::settle(storage, total);
    shards_.resize(objects_.size());
    ranges_.resize(check_ranges());
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      shards_[i] = storage::open_source(joined(address_, keys[i]), settled);
      read_index(*shards_[i], writable_ranges(i), keys[i]);
    }
  }

  void read_stored_indexes() {
    check_index_size();
    ranges_.resize(check_ranges());
    const Extents grid = object_grid();
    const Progress none;
    Crew crew(static_cast<int>(std::clamp<std::size_t>(objects_.size(), 1, kReadsAtOnce)), none);
    crew.run_in_parts(objects_.size(), 1, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) {
        std::array<char, kKeyText> key;
        const std::string_view name = write_key(coordinates_of(objects_[i].number, grid), key);
        const auto source = backend_->open(fmt::format("{}{}", base_, name), storage::Storage::buffered);
        read_index(*source, writable_ranges(i), name);
        crew.count(1);
      }
    });
  }

  // How many ranges all shards have. Each of them lies in a shard, so that their files bound the memory.
  std::uint64_t check_ranges() const {
    for (const ZarrObject& object : objects_) {
      if (object.bytes >= index_bytes()) continue;
      const Extents grid = object_grid();
      std::array<char, kKeyText> key;
      throw Error(ErrorKind::corrupt, fmt::format("cannot read the shard {} of `{}`: it is shorter than its index",
                                                  write_key(coordinates_of(object.number, grid), key), name_));
    }
    return objects_.size() * array_.chunks_per_shard();
  }

  std::span<ChunkRange> writable_ranges(std::uint64_t position) noexcept {
    const std::uint64_t per_shard = array_.chunks_per_shard();
    return std::span(ranges_).subspan(position * per_shard, per_shard);
  }

  storage::Location locate_in_shard(std::uint64_t chunk, std::span<char> text) const noexcept {
    const Extents at = coordinates_of(chunk, info_.grid()), shard = shard_coordinates(at), grid = object_grid();
    const ZarrObject* const object = find_object((shard[0] * grid[1] + shard[1]) * grid[2] + shard[2]);
    if (object == nullptr) return {};
    const auto position = static_cast<std::uint64_t>(object - objects_.data());
    const std::uint64_t inside =
        (at[0] % chunks_per_shard_[0] * chunks_per_shard_[1] + at[1] % chunks_per_shard_[1]) * chunks_per_shard_[2] +
        at[2] % chunks_per_shard_[2];
    const ChunkRange range = ranges_of(position)[inside];
    if (range.offset == kAbsent) return {};
    if (backend_ == nullptr) return storage::Location::in_source(shards_[position].get(), range.offset, range.bytes);
    std::array<char, kKeyText> key;
    storage::Location location = in_store(*object, write_key(shard, key), text);
    location.offset = range.offset;
    location.bytes = range.bytes;
    return location;
  }

  std::string name_, address_, base_;
  ZarrArray array_;
  VolumeInfo info_;
  std::vector<std::uint64_t> grid_;  // objects along each axis of the array
  std::size_t first_axis_ = 0;       // of z, y, x in the array
  std::size_t missing_axes_ = 0;     // 1: it has no z
  Extents chunks_per_shard_{1, 1, 1};
  const storage::Backend* backend_ = nullptr;
  os::Fd folder_;
  std::vector<ZarrObject> objects_;  // sorted by number; of a folder: only its shards
  std::string versions_;
  std::vector<std::unique_ptr<storage::Source>> shards_;  // of a folder
  std::vector<const storage::Source*> borrowed_;
  std::vector<ChunkRange> ranges_;  // of the shards, in the order of objects_
};

}  // namespace

std::unique_ptr<Volume> open_zarr_volume(const std::string& address, const VolumeOptions& options) {
  const std::string where = options.member.empty() ? address : joined(address, options.member);
  std::optional<FoundArray> found = find_array(where, options);
  if (!found && !options.member.empty()) {
    throw Error(ErrorKind::not_found, fmt::format("cannot find the array `{}` in `{}`", options.member, address));
  }
  if (!found) return nullptr;
  return std::make_unique<ZarrVolume>(where, std::move(*found), options.storage);
}

}  // namespace stoker::dataset
