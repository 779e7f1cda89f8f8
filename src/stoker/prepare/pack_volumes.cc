#include "stoker/prepare/pack_volumes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/base/version.h"
#include "stoker/codec/swap_values.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/dataset/page_cache.h"
#include "stoker/dataset/volume_box.h"
#include "stoker/dataset/volume_pack.h"
#include "stoker/dataset/volumes.h"
#include "stoker/loader/loader.h"
#include "stoker/os/file.h"
#include "stoker/os/file_facts.h"
#include "stoker/os/read_file.h"
#include "stoker/prepare/pack_folder.h"
#include "stoker/prepare/pack_source.h"
#include "stoker/prepare/volume_stamp.h"
#include "stoker/storage/source.h"

namespace stoker::prepare {
namespace {

using dataset::Extents;
using dataset::PackedBricks;
using dataset::Volume;
using dataset::VolumeInfo;

constexpr Extents kUsualPatch = {64, 64, 64};
constexpr std::uint64_t kBricksOfAPatch = 4;  // along each axis: a patch then reads about twice its own bytes
constexpr std::uint64_t kLeastBrick = 4096;   // elements: a smaller one costs a page all the same
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMeasuredPatches = 64, kLeastMeasured = 4;
constexpr double kMeasuredSeconds = 2;  // of the source, and of the pack

// The average number of elements along an axis that pieces of `piece` hold, of which a run of `wanted` touches some.
double touched(std::uint64_t wanted, std::uint64_t piece) {
  return (static_cast<double>(wanted - 1) / static_cast<double>(piece) + 1) * static_cast<double>(piece);
}

double bytes_in_chunks(const VolumeInfo& info, const Extents& patch, const Extents& chunk) {
  double bytes = static_cast<double>(info.element_bytes());
  for (std::size_t axis = 0; axis < 3; ++axis) {
    bytes *= std::min(touched(std::min(patch[axis], info.extents[axis]), chunk[axis]),
                      std::ceil(static_cast<double>(info.extents[axis]) / static_cast<double>(chunk[axis])) *
                          static_cast<double>(chunk[axis]));
  }
  return bytes;
}

// Of a volume without chunks: the pages of each row, or of whole planes where rows are shorter than pages.
double bytes_in_pages(const VolumeInfo& info, const Extents& patch) {
  Extents inside;
  for (std::size_t axis = 0; axis < 3; ++axis) inside[axis] = std::min(patch[axis], info.extents[axis]);
  const std::uint64_t row = info.extents[2] * info.element_bytes();
  const double of_row = touched(inside[2] * info.element_bytes(), kPage);
  const double of_plane =
      std::min(of_row * static_cast<double>(inside[1]), static_cast<double>(inside[1] * row + kPage));
  return of_plane * static_cast<double>(inside[0]);
}

class VolumePacking {
 public:
  explicit VolumePacking(const PackVolumesOptions& options)
      : options_(options), source_(absolute_address(options.source)), progress_(options.progress) {
    while (options_.destination.size() > 1 && options_.destination.ends_with('/')) options_.destination.pop_back();
  }

  PackVolumesReport run() {
    report_.source = options_.source;
    report_.destination = options_.destination;
    report_.dry_run = options_.dry_run;
    list();
    choose_brick();
    pack_.stoker_version = kVersion;
    pack_.source = source_;
    pack_.settings = settings_text();
    look_at_volumes();
    if (options_.dry_run || is_there()) {
      report_.seconds = progress_.seconds();
      return std::move(report_);
    }
    write();
    report_.seconds = progress_.seconds();
    if (options_.measure && options_.patch != Extents{}) measure();
    return std::move(report_);
  }

 private:
  void list() {
    const std::string csv = dataset::volumes_csv_of(source_);
    if (csv.empty()) {
      addresses_.push_back({source_, "", 1});
    } else {
      addresses_ = dataset::read_volumes_csv(csv);
    }
  }

  void choose_brick() {
    Extents brick = options_.brick;
    if (brick == Extents{}) {
      const Extents patch = options_.patch == Extents{} ? kUsualPatch : options_.patch;
      for (std::size_t axis = 0; axis < 3; ++axis) brick[axis] = (patch[axis] - 1) / kBricksOfAPatch + 1;
      for (const std::size_t axis : {2u, 1u, 0u}) {
        while (brick[0] * brick[1] * brick[2] < kLeastBrick && brick[axis] < patch[axis]) ++brick[axis];
      }
    }
    for (const std::uint64_t edge : brick) {
      if (edge != 0 && edge <= 4096) continue;
      throw Error(ErrorKind::usage, format_text("a brick of {}x{}x{} is not one: each axis has 1 to 4096 elements",
                                                brick[0], brick[1], brick[2]))
          .about("brick");
    }
    report_.brick = brick;
  }

  std::string settings_text() const {
    Json json = {{"brick", fmt::format("{}x{}x{}", report_.brick[0], report_.brick[1], report_.brick[2])}};
    json["volumes"] = Json::array();
    for (const dataset::VolumeAddress& address : addresses_) {
      for (const std::string& path : {address.image, address.mask}) {
        json["volumes"].push_back(Json::array({path, path.empty() ? "" : stamp_of_volume(path)}));
      }
      json["volumes"].push_back(address.weight);
    }
    return json.dump();
  }

  static std::unique_ptr<Volume> open(const std::string& path) {
    dataset::VolumeOptions options;
    options.cache_dir = dataset::listing_folder("");
    return dataset::open_volume(path, options);
  }

  PackedBricks bricks_of(const Volume& volume, std::string_view word, std::size_t number) const {
    PackedBricks bricks;
    bricks.file = fmt::format("{}-{:05}.npy", word, number);
    bricks.sums = fmt::format("{}-{:05}.sums.npy", word, number);
    bricks.info = volume.info();
    bricks.info.chunk = report_.brick;
    bricks.info.note.clear();
    return bricks;
  }

  // Headers only: shapes, sizes, and what a patch would read.
  void look_at_volumes() {
    double before = 0, after = 0, wanted = 0;
    for (std::size_t v = 0; v < addresses_.size(); ++v) {
      tell("looking");
      dataset::VolumePack::Entry& entry = pack_.volumes.emplace_back();
      entry.name = addresses_[v].image;
      entry.weight = addresses_[v].weight;
      const std::unique_ptr<Volume> image = open(addresses_[v].image);
      entry.image = bricks_of(*image, "image", v);
      total_planes_ += image->info().extents[0];
      report_.bytes += entry.image.file_bytes();
      report_.source_bytes += image->info().stored_bytes;
      if (options_.patch != Extents{}) {
        const VolumeInfo& info = image->info();
        before +=
            image->plain() ? bytes_in_pages(info, options_.patch) : bytes_in_chunks(info, options_.patch, info.chunk);
        after += bytes_in_chunks(info, options_.patch, report_.brick);
        double bytes = static_cast<double>(info.element_bytes());
        for (std::size_t axis = 0; axis < 3; ++axis)
          bytes *= static_cast<double>(std::min(options_.patch[axis], info.extents[axis]));
        wanted += bytes;
      }
      ++report_.volumes;
      if (addresses_[v].mask.empty()) continue;
      const std::unique_ptr<Volume> mask = open(addresses_[v].mask);
      entry.mask = bricks_of(*mask, "mask", v);
      total_planes_ += mask->info().extents[0];
      report_.bytes += entry.mask->file_bytes();
      report_.source_bytes += mask->info().stored_bytes;
      ++report_.masks;
    }
    const auto count = static_cast<double>(report_.volumes);
    report_.patch_bytes = wanted / count;
    report_.read_before = before / count;
    report_.read_after = after / count;
  }

  // The same patches of both, with nothing of them in memory before.
  void measure() {
    report_.patch_s_before = seconds_per_patch(addresses_);
    report_.patch_s_after = seconds_per_patch(dataset::read_volumes_csv(dataset::volumes_csv_of(options_.destination)));
  }

  double seconds_per_patch(std::vector<dataset::VolumeAddress> addresses) {
    for (dataset::VolumeAddress& address : addresses) address.mask.clear();
    dataset::VolumesOptions options;
    options.patches.patch = options_.patch;
    options.patches.samples = kMeasuredPatches;
    options.patches.pad = true;
    const dataset::DatasetPtr patches = dataset::open_volumes(addresses, options);
    dataset::drop_from_page_cache(*patches, [&](std::uint64_t) {
      tell("measuring");
      return true;
    });
    loader::LoaderOptions loading;
    loading.batch_size = 1;
    loading.shuffle.how = dataset::Shuffle::How::full;
    loader::Loader loader(patches, loading);
    const auto began = std::chrono::steady_clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
    loader.start_epoch(0);
    std::uint64_t count = 0;
    while ((count < kLeastMeasured || passed() < kMeasuredSeconds) && loader.next()) {
      ++count;
      tell("measuring");
    }
    return passed() / static_cast<double>(std::max<std::uint64_t>(count, 1));
  }

  bool is_there() {
    if (!os::exists(options_.destination)) return false;
    std::optional<dataset::VolumePack> old;
    try {
      old = dataset::find_volume_pack(options_.destination);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::corrupt) throw;
      if (options_.force || options_.rebuild) return false;
      throw Error(
          ErrorKind::usage,
          fmt::format("cannot write `{}`: it is a damaged pack of volumes: {}", options_.destination, error.message()),
          format_text("{} replaces it", option("force")));
    }
    if (old && options_.rebuild) return false;
    if (old && old->settings == pack_.settings) return report_.idle = true;
    if (old && (options_.force || is_older(*old))) return false;
    throw Error(ErrorKind::usage,
                old ? fmt::format("cannot write `{}`: it is a pack of another source, or with another brick",
                                  options_.destination)
                    : fmt::format("cannot write `{}`: something else is there", options_.destination),
                old ? format_text("{} replaces it", option("force")) : Text("name a new folder"));
  }

  // The same source, with the same brick: what it holds has changed since.
  bool is_older(const dataset::VolumePack& old) const {
    const Json then = Json::parse_or_null(old.settings), now = Json::parse_or_null(pack_.settings);
    return absolute_address(old.source) == source_ && then["brick"].dump() == now["brick"].dump();
  }

  void tell(std::string_view phase) {
    if (!progress_(phase, done_planes_, total_planes_, written_)) throw Error(ErrorKind::unavailable, "interrupted");
  }

  void write() {
    PackFolder folder(options_.destination);
    const std::string settings_path = folder.part() + "/settings.json";
    if (folder.has_part() && (!os::exists(settings_path) || os::read_text(settings_path) != pack_.settings))
      folder.empty_part();
    folder.make_part();
    os::write_file(settings_path, pack_.settings);
    dataset::PackManifest names;  // what stays in the folder
    for (std::size_t v = 0; v < addresses_.size(); ++v) {
      dataset::VolumePack::Entry& entry = pack_.volumes[v];
      write_one(folder.part(), addresses_[v].image, entry.image);
      names.files.push_back({entry.image.file, 0, 0});
      names.files.push_back({entry.image.sums, 0, 0});
      if (!entry.mask) continue;
      write_one(folder.part(), addresses_[v].mask, *entry.mask);
      names.files.push_back({entry.mask->file, 0, 0});
      names.files.push_back({entry.mask->sums, 0, 0});
    }
    os::write_file(fmt::format("{}/{}", folder.part(), dataset::kPackJson), dataset::to_json(pack_));
    folder.commit(names);
  }

  void write_one(const std::string& folder, const std::string& path, PackedBricks& bricks) {
    const std::string file = folder + "/" + bricks.file, sums_path = folder + "/" + bricks.sums;
    const VolumeInfo& info = bricks.info;
    if (os::facts_of(file).bytes == bricks.file_bytes() && os::exists(sums_path)) {  // from a run that was killed
      bricks.sums_xxh3 = hash_bytes(storage::read_file(sums_path));
      ++report_.resumed;
      done_planes_ += info.extents[0];
      return;
    }
    const std::unique_ptr<Volume> volume = open(path);
    if (volume->info().extents != info.extents)
      throw Error(ErrorKind::unavailable, fmt::format("cannot pack `{}`: it changed while it was packed", path));
    os::NewFile out(file);
    const std::string header = dataset::brick_header(info);
    out.write(std::as_bytes(std::span(header)));
    std::vector<std::uint64_t> sums;
    std::vector<std::byte> brick(info.chunk_bytes());
    const Extents grid = info.grid();
    const std::uint64_t element = info.element_bytes(), row = info.extents[2] * element, plane = info.extents[1] * row;
    std::vector<std::byte> layer(std::min(info.chunk[0], info.extents[0]) * plane);
    for (std::uint64_t z = 0; z < grid[0]; ++z) {
      const std::uint64_t first = z * info.chunk[0], end = std::min(first + info.chunk[0], info.extents[0]);
      fill(*volume, first, end, layer, row, plane);
      for (std::uint64_t y = 0; y < grid[1]; ++y) {
        for (std::uint64_t x = 0; x < grid[2]; ++x) {
          cut(info, layer, end - first, y * info.chunk[1], x * info.chunk[2], brick);
          sums.push_back(hash_bytes(brick));
          out.write(brick);
          written_ += brick.size();
        }
      }
      done_planes_ += end - first;
      tell("packing");
    }
    std::string text = dataset::npy_header(DType::u64, grid);
    text.append(reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof sums[0]);
    bricks.sums_xxh3 = hash_text(text);
    out.commit();
    os::write_file(sums_path, text);  // last: with it, the volume is whole
  }

  // The planes [first, end), in the machine's byte order.
  void fill(const Volume& volume, std::uint64_t first, std::uint64_t end, std::vector<std::byte>& layer,
            std::uint64_t row, std::uint64_t plane) {
    const VolumeInfo& info = volume.info();
    dataset::read_planes(
        volume, first, end,
        [&](const Extents& corner, const Extents& extents, const std::byte* box, std::uint64_t row_bytes,
            std::uint64_t plane_bytes) {
          for (std::uint64_t z = std::max(first, corner[0]); z < std::min(end, corner[0] + extents[0]); ++z) {
            for (std::uint64_t y = 0; y < extents[1]; ++y) {
              std::memcpy(layer.data() + (z - first) * plane + (corner[1] + y) * row + corner[2] * info.element_bytes(),
                          box + (z - corner[0]) * plane_bytes + y * row_bytes, extents[2] * info.element_bytes());
            }
          }
          tell("packing");
        });
    const auto layout = volume.plain();
    if (layout && layout->swap_bytes) codec::swap_values(layer.data(), (end - first) * plane, size_of(info.dtype));
  }

  static void cut(const VolumeInfo& info, const std::vector<std::byte>& layer, std::uint64_t planes, std::uint64_t at_y,
                  std::uint64_t at_x, std::vector<std::byte>& brick) {
    std::fill(brick.begin(), brick.end(), std::byte{0});
    const std::uint64_t element = info.element_bytes();
    const std::uint64_t rows = std::min(info.chunk[1], info.extents[1] - at_y);
    const std::uint64_t bytes = std::min(info.chunk[2], info.extents[2] - at_x) * element;
    for (std::uint64_t z = 0; z < planes; ++z) {
      for (std::uint64_t y = 0; y < rows; ++y) {
        std::memcpy(brick.data() + (z * info.chunk[1] + y) * info.chunk[2] * element,
                    layer.data() + ((z * info.extents[1] + at_y + y) * info.extents[2] + at_x) * element, bytes);
      }
    }
  }

  PackVolumesOptions options_;
  const std::string source_;  // as in pack.json
  ProgressTeller progress_;
  std::vector<dataset::VolumeAddress> addresses_;
  dataset::VolumePack pack_;
  PackVolumesReport report_;
  std::uint64_t done_planes_ = 0, total_planes_ = 0, written_ = 0;
};

}  // namespace

PackVolumesReport pack_volumes(const PackVolumesOptions& options) {
  return VolumePacking(options).run();
}

}  // namespace stoker::prepare
