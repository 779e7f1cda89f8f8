#include "stoker/dataset/volume_pack.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/base/shell.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/os/read_file.h"
#include "stoker/storage/source.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kLongestPackJson = std::uint64_t{1} << 30;

template <typename Values>
Json list_of(const Values& values) {
  Json list = Json::array();
  for (const auto value : values) list.push_back(value);
  return list;
}

Json bricks_to_json(const PackedBricks& bricks) {
  const VolumeInfo& info = bricks.info;
  Json json = {{"file", bricks.file},
               {"sums", bricks.sums},
               {"sums_xxh3", fmt::format("{:016x}", bricks.sums_xxh3)},
               {"dtype", std::string(name(info.dtype))},
               {"channels", info.channels},
               {"slope", info.slope},
               {"intercept", info.intercept}};
  json["shape"] = list_of(info.extents);
  json["brick"] = list_of(info.chunk);
  json["spacing"] = list_of(info.spacing);
  return json;
}

[[noreturn]] void refuse_pack_json(const std::string& folder, std::string_view why) {
  throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}/{}`: {}", folder, kPackJson, why),
              fmt::format("`stoker check {} --repair --source SOURCE` packs the volumes again from their source",
                          shell_word(folder)));
}

// The file has a sum of itself, taken with zeros in its place. It says more than the bricks do: shapes, slopes,
// weights.
constexpr std::string_view kOwnSum = "\"xxh3\": \"";
constexpr std::string_view kNoSum = "0000000000000000";

std::string with_own_sum(std::string text) {
  const std::size_t at = text.find(kOwnSum) + kOwnSum.size();
  return text.replace(at, kNoSum.size(), fmt::format("{:016x}", hash_text(text)));
}

// Packs of earlier versions have no sum.
bool is_as_written(const std::string& text, const Json& json) {
  if (!json.contains("xxh3")) return true;
  const std::size_t at = text.find(kOwnSum);
  if (!json["xxh3"].is_string() || json["xxh3"].text().size() != kNoSum.size() || at == std::string::npos) return false;
  std::string without = text;
  without.replace(at + kOwnSum.size(), kNoSum.size(), kNoSum);
  return with_own_sum(std::move(without)) == text;
}

// Whether the folder holds bricks, whatever its pack.json says. A pack of samples has an index.
bool holds_bricks(const std::string& folder) {
  return os::exists(fmt::format("{}/image-00000.npy", folder)) &&
         os::exists(fmt::format("{}/image-00000.sums.npy", folder)) &&
         !os::exists(fmt::format("{}/{}", folder, kPackIndex));
}

class PackReader {
 public:
  PackReader(const Json& json, const std::string& folder) : json_(json), folder_(folder) {}

  VolumePack read() {
    VolumePack pack;
    pack.stoker_version = text(json_, "stoker_version");
    pack.source = text(json_, "source");
    pack.settings = text(json_, "settings");
    if (!json_["volumes"].is_array() || json_["volumes"].empty()) refuse("volumes");
    for (const Json& one : json_["volumes"]) {
      VolumePack::Entry& entry = pack.volumes.emplace_back();
      entry.name = text(one, "name");
      if (!one["weight"].is_number()) refuse("weight");
      entry.weight = one["weight"].get<double>();
      entry.image = bricks(one["image"]);
      if (one.contains("mask")) entry.mask = bricks(one["mask"]);
    }
    return pack;
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    refuse_pack_json(folder_, fmt::format("its `{}` is missing or wrong", what));
  }
  std::string text(const Json& json, std::string_view key) const {
    if (!json[key].is_string()) refuse(key);
    return json[key].text();
  }
  std::string file_name(const Json& json, std::string_view key) const {
    std::string name = text(json, key);
    if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos) refuse(key);
    return name;
  }
  Extents extents(const Json& json, std::string_view key) const {
    Extents extents;
    if (!json[key].is_array() || json[key].size() != 3) refuse(key);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (!json[key].at(axis).is_natural()) refuse(key);
      extents[axis] = json[key].at(axis).get<std::uint64_t>();
      if (extents[axis] == 0 || extents[axis] > (std::uint64_t{1} << 31)) refuse(key);
    }
    return extents;
  }
  PackedBricks bricks(const Json& json) const {
    PackedBricks bricks;
    bricks.file = file_name(json, "file");
    bricks.sums = file_name(json, "sums");
    const std::string sum = text(json, "sums_xxh3");
    if (sum.size() != 16 || sum.find_first_not_of("0123456789abcdef") != std::string::npos) refuse("sums_xxh3");
    bricks.sums_xxh3 = std::stoull(sum, nullptr, 16);
    VolumeInfo& info = bricks.info;
    info.extents = extents(json, "shape");
    info.chunk = extents(json, "brick");
    const std::optional<DType> dtype = parse_dtype(text(json, "dtype"));
    if (!dtype) refuse("dtype");
    info.dtype = *dtype;
    if (!json["channels"].is_natural()) refuse("channels");
    const std::uint64_t channels = json["channels"].get<std::uint64_t>();
    if (channels == 0 || channels > 1024) refuse("channels");
    info.channels = static_cast<std::uint32_t>(channels);
    if (!json["slope"].is_number() || !json["intercept"].is_number()) refuse("slope");
    info.slope = json["slope"].get<double>();
    info.intercept = json["intercept"].get<double>();
    if (!json["spacing"].is_array() || json["spacing"].size() != 3) refuse("spacing");
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (!json["spacing"].at(axis).is_number()) refuse("spacing");
      info.spacing[axis] = json["spacing"].at(axis).get<double>();
    }
    if (info.chunk_bytes() > (std::uint64_t{1} << 30)) refuse("brick");
    return bricks;
  }

  const Json& json_;
  const std::string& folder_;
};

class BrickVolume final : public Volume {
 public:
  BrickVolume(const std::string& folder, PackedBricks bricks, const VolumeOptions& options)
      : name_(fmt::format("{}/{}", folder, bricks.file)), bricks_(std::move(bricks)) {
    // Bricks are read one by one, so a mapping would bring nothing.
    const storage::Storage storage =
        options.storage == storage::Storage::mmap ? storage::Storage::buffered : options.storage;
    source_ = storage::open_source(name_, storage);
    borrowed_ = source_.get();
    VolumeInfo& info = bricks_.info;
    info.stored_bytes = source_->size_bytes();
    info.format = fmt::format("pack, bricks of {}x{}x{}", info.chunk[0], info.chunk[1], info.chunk[2]);
    if (source_->size_bytes() != bricks_.file_bytes()) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot read `{}`: it has {} bytes, and pack.json says {}", name_, source_->size_bytes(),
                              bricks_.file_bytes()),
                  "`stoker check` looks at the whole pack");
    }
    std::string head(kPackDataOffset, '\0');
    const storage::Read read{0, std::as_writable_bytes(std::span(head))};
    source_->read({&read, 1});
    if (head != brick_header(info)) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot read `{}`: its header has another type or shape than pack.json says", name_),
                  "`stoker check` looks at the whole pack");
    }
    const std::string path = fmt::format("{}/{}", folder, bricks_.sums);
    const std::vector<std::byte> sums = storage::read_file(path);
    if (hash_bytes(sums) != bricks_.sums_xxh3 || sums.size() < kPackDataOffset + info.chunks() * 8) {
      throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: its own sum differs", path),
                  "`stoker check` looks at the whole pack");
    }
    sums_.resize(info.chunks());
    std::memcpy(sums_.data(), sums.data() + kPackDataOffset, sums_.size() * sizeof sums_[0]);
  }

  const VolumeInfo& info() const noexcept override { return bricks_.info; }
  std::string_view name() const noexcept override { return name_; }
  storage::Location locate_chunk(std::uint64_t chunk, std::span<char>) const noexcept override {
    return storage::Location::in_source(borrowed_, bricks_.offset(chunk), bricks_.info.chunk_bytes());
  }
  Result decode_chunk(std::uint64_t chunk, codec::Bytes encoded, std::byte* into, Scratch&) const noexcept override {
    if (encoded.size() != bricks_.info.chunk_bytes()) return failed(Code::truncated, "the file ends inside this brick");
    if (hash_bytes(encoded) != sums_[chunk]) return failed(Code::corrupt, "its sum differs");
    std::memcpy(into, encoded.data(), encoded.size());
    return {};
  }
  std::string chunk_name(std::uint64_t chunk) const override { return fmt::format("brick {} of `{}`", chunk, name_); }
  std::span<const storage::Source* const> sources() const noexcept override { return {&borrowed_, 1}; }
  std::uint64_t memory_bytes() const noexcept override { return sums_.capacity() * sizeof sums_[0]; }

 private:
  std::string name_;
  PackedBricks bricks_;
  std::unique_ptr<storage::Source> source_;
  const storage::Source* borrowed_ = nullptr;
  std::vector<std::uint64_t> sums_;
};

}  // namespace

std::uint64_t PackedBricks::offset(std::uint64_t brick) const noexcept {
  return kPackDataOffset + brick * info.chunk_bytes();
}

std::uint64_t PackedBricks::file_bytes() const noexcept {
  return offset(info.chunks());
}

std::string brick_header(const VolumeInfo& info) {
  const Extents grid = info.grid();
  std::vector<std::uint64_t> shape = {grid[0], grid[1], grid[2], info.chunk[0], info.chunk[1], info.chunk[2]};
  if (info.channels > 1) shape.push_back(info.channels);
  return npy_header(info.dtype, shape);
}

std::string to_json(const VolumePack& pack) {
  Json json = {{"xxh3", std::string(kNoSum)},
               {"schema", std::string(kPackSchema)},
               {"version", kPackVersion},
               {"stoker_version", pack.stoker_version},
               {"kind", std::string(kVolumePackKind)},
               {"source", pack.source},
               {"settings", pack.settings}};
  json["volumes"] = Json::array();
  for (const VolumePack::Entry& entry : pack.volumes) {
    Json one = {{"name", entry.name}, {"weight", entry.weight}};
    one["image"] = bricks_to_json(entry.image);
    if (entry.mask) one["mask"] = bricks_to_json(*entry.mask);
    json["volumes"].push_back(std::move(one));
  }
  return with_own_sum(json.dump(2) + "\n");
}

std::optional<VolumePack> find_volume_pack(const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, kPackJson);
  if (!os::exists(path)) {
    if (holds_bricks(folder)) refuse_pack_json(folder, "it is missing, and the bricks of volumes are there");
    return std::nullopt;
  }
  const std::string text = os::read_text(path, kLongestPackJson);
  const Json json = Json::parse_or_null(text);
  if (!json.is_object() || !json["kind"].is_string()) {
    if (holds_bricks(folder))
      refuse_pack_json(folder, json.is_object() ? "its `kind` is missing or wrong" : "it is damaged: it is not JSON");
    return std::nullopt;
  }
  if (json["kind"] != Json(std::string(kVolumePackKind))) return std::nullopt;
  if (!json["version"].is_natural()) refuse_pack_json(folder, "its `version` is missing or wrong");
  if (json["version"].get<std::uint64_t>() > kPackVersion) {
    throw Error(ErrorKind::unsupported, fmt::format("cannot read `{}`: a later version of Stoker wrote it", path),
                "update stoker");
  }
  VolumePack pack = PackReader(json, folder).read();
  if (!is_as_written(text, json)) refuse_pack_json(folder, "it was changed since it was written: its own sum differs");
  return pack;
}

std::unique_ptr<Volume> open_bricks(const std::string& folder, const PackedBricks& bricks,
                                    const VolumeOptions& options) {
  return std::make_unique<BrickVolume>(folder, bricks, options);
}

}  // namespace stoker::dataset
