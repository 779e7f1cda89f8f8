#include "stoker/dataset/volumes.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/dataset/crew.h"
#include "stoker/dataset/kinds.h"
#include "stoker/dataset/listing.h"
#include "stoker/os/file_limit.h"
#include "stoker/os/memory.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kMostNotes = 4;       // of single volumes
constexpr Extents kPlainCell = {64, 64, 64};  // of a volume without chunks: patches in one cell share most pages

constexpr std::uint32_t kMostNamed = 3;     // volumes that a saved state names
constexpr std::uint64_t kOtherFiles = 512;  // that the process may have open beside volumes

std::string extents_text(const Extents& extents) {
  return fmt::format("{}x{}x{}", extents[0], extents[1], extents[2]);
}

std::string last_component(std::string_view address) {
  while (address.size() > 1 && address.ends_with('/')) address.remove_suffix(1);
  const std::size_t slash = address.rfind('/');
  return std::string(slash == std::string_view::npos ? address : address.substr(slash + 1));
}

// What the page cache holds is mapped: rows of a patch are too many to be read one by one.
storage::Storage opened_as(storage::Storage storage) noexcept {
  return storage == storage::Storage::buffered ? storage::Storage::mmap : storage;
}

// `other` is of the same type as `first`.
void compare_types(const Volume& first, const Volume& other, std::string_view what) {
  const VolumeInfo &a = first.info(), &b = other.info();
  if (a.dtype != b.dtype) {
    throw Error(ErrorKind::usage,
                fmt::format("the {} `{}` is {} and `{}` is {}: all of a data set have one type", what, other.name(),
                            name(b.dtype), first.name(), name(a.dtype)),
                "convert them to one type, or load them by loaders of their own")
        .about("source");
  }
  if (a.channels != b.channels) {
    throw Error(ErrorKind::usage,
                fmt::format("the {} `{}` has {} channels and `{}` has {}: all of a data set have as many", what,
                            other.name(), b.channels, first.name(), a.channels),
                "load them by loaders of their own")
        .about("source");
  }
}

// Throws a better one where `error` says that too many files are open.
void explain_open_files(const Error& error, const std::vector<VolumeAddress>& addresses) {
  if (error.cause() != std::strerror(EMFILE)) return;
  std::uint64_t count = addresses.size();
  for (const VolumeAddress& address : addresses) count += address.mask.empty() ? 0 : 1;
  throw Error(error.kind(),
              format_text("{}: there are {} volumes and masks, and this process may open {} files", error.text(), count,
                          os::open_file_limit()),
              "raise the hard limit (`ulimit -Hn`), or store the volumes as plain .npy or .nii files, which are mapped "
              "and stay closed");
}

class VolumesDataset final : public Dataset {
 public:
  VolumesDataset(std::vector<OpenedVolume> volumes, const VolumesOptions& options, const OpenOptions& opening,
                 const std::string& address)
      : set_(std::make_shared<VolumeSet>(std::move(volumes), options, opening)) {
    facts_.address = address;
    if (address.empty()) {
      facts_.address = std::string(set_->image(0).name());
      if (set_->count() > 1) facts_.address += fmt::format(" and {} more", set_->count() - 1);
    }
    facts_.kind = "volumes";
    facts_.label_kind = LabelKind::integer;
    facts_.volumes = set_;
    facts_.most_parts = 2;  // rows are made of parts, though of none where volumes are mapped
    const PatchOptions& patches = options.patches;
    std::uint64_t print = mix(patches.samples, static_cast<std::uint64_t>(patches.sampling));
    for (std::size_t axis = 0; axis < 3; ++axis)
      print = mix(mix(mix(print, patches.patch[axis]), patches.overlap[axis]), patches.flip[axis] ? 1 : 0);
    print = mix(mix(print, std::bit_cast<std::uint64_t>(patches.foreground)), patches.turn ? 1 : 0);
    std::uint64_t unlabelled = 0, thinned = 0, noted = 0;
    for (std::uint32_t v = 0; v < set_->count(); ++v) {
      const VolumeInfo& info = set_->image(v).info();
      names_.push_back(last_component(set_->image(v).name()));
      facts_.total_bytes += info.stored_bytes;
      facts_.largest_bytes = std::max(facts_.largest_bytes, set_->parts_bytes(v));
      facts_.most_parts = std::max(facts_.most_parts, set_->parts(v));
      print = mix(hash_text(names_.back(), print), static_cast<std::uint64_t>(info.dtype));
      for (const std::uint64_t extent : info.extents) print = mix(print, extent);
      print = mix(print, std::bit_cast<std::uint64_t>(set_->plan().volumes()[v].weight));
      add(set_->image(v));
      if (const Volume* const mask = set_->mask(v)) add(*mask);
      const Foreground* const foreground = set_->plan().volumes()[v].foreground.get();
      if (foreground != nullptr && foreground->elements() == 0) ++unlabelled;
      if (foreground != nullptr && foreground->is_thinned()) ++thinned;
    }
    // Planes of local files are read by a fetcher beside that of the store.
    if (reads_local_planes() && !backends_.empty()) backends_.push_back(nullptr);
    facts_.fingerprint = print;
    describe(options.patches);
    for (std::uint32_t v = 0; v < set_->count(); ++v) {
      for (const Volume* const volume : {&set_->image(v), set_->mask(v)}) {
        if (volume == nullptr || volume->info().note.empty()) continue;
        if (++noted > kMostNotes) continue;
        facts_.notes.push_back(volume->info().note);
      }
    }
    if (noted > kMostNotes) facts_.notes.push_back(fmt::format("so have {} more volumes", noted - kMostNotes));
    if (unlabelled > 0) {
      facts_.notes.push_back(fmt::format("{} of {} masks have no label: their patches are drawn from the whole volume",
                                         unlabelled, set_->count()));
    }
    if (thinned > 0) {
      facts_.notes.push_back(
          fmt::format("{} of {} masks have more than {} runs of label: patches are drawn around a random part of them",
                      thinned, set_->count(), Foreground::kMostRuns));
    }
    if (options.normalize.how == Normalize::How::none) {
      for (std::uint32_t v = 0; v < set_->count(); ++v) {
        const VolumeInfo& info = set_->image(v).info();
        if (info.slope == 1 && info.intercept == 0) continue;
        facts_.notes.push_back(
            fmt::format("`{}` says that a value is {} * element + {}: without normalize, elements "
                        "leave as they are stored; normalize=(\"scale\", 1, 0) gives the values",
                        set_->image(v).name(), info.slope, info.intercept));
        break;
      }
    }
  }

  const Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return set_->plan().size(); }
  std::uint64_t id(std::uint64_t index) const noexcept override { return index; }
  storage::Location locate(std::uint64_t index, std::span<char>) const noexcept override {
    const std::uint32_t volume = set_->plan().volume_of(index);
    const auto layout = set_->image(volume).plain();
    return storage::Location::in_source(layout ? layout->source : nullptr, 0, set_->parts_bytes(volume));
  }
  std::uint32_t parts(std::uint64_t index, const RowKey&) const noexcept override {
    return set_->parts(set_->plan().volume_of(index));
  }
  storage::Location locate_part(std::uint64_t index, const RowKey& key, std::uint32_t part,
                                std::span<char>) const noexcept override {
    return set_->part(set_->plan().place(index, key), part);
  }
  Label label(std::uint64_t index) const noexcept override {
    Label label;
    label.integer = set_->plan().volume_of(index);
    return label;
  }
  codec::Media media(std::uint64_t) const noexcept override { return {}; }
  std::string name(std::uint64_t index) const override {
    return fmt::format("{}[{}]", names_[set_->plan().volume_of(index)], index);
  }
  double column(std::size_t, std::uint64_t) const noexcept override { return std::numeric_limits<double>::quiet_NaN(); }
  std::span<const storage::Source* const> sources() const noexcept override { return sources_; }
  std::span<const storage::Backend* const> backends() const noexcept override { return backends_; }
  std::uint64_t memory_bytes() const noexcept override {
    std::uint64_t bytes = set_->memory_bytes();
    for (const std::string& text : names_) bytes += sizeof(std::string) + text.capacity();
    return bytes;
  }

 private:
  // What the fingerprint is made of, in words. A long list of volumes is named by its first ones and a hash.
  void describe(const PatchOptions& patches) {
    std::string flipped, volumes, weights;
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (patches.flip[axis]) flipped += "zyx"[axis];
    std::uint64_t hash = 0;
    for (std::uint32_t v = 0; v < set_->count(); ++v) {
      const VolumeInfo& info = set_->image(v).info();
      const std::string one = fmt::format("{} {} {}", names_[v], extents_text(info.extents), stoker::name(info.dtype));
      const std::string weight = fmt::format("{}", set_->plan().volumes()[v].weight);
      hash = hash_text(weight, hash_text(one, hash));
      if (v >= kMostNamed) continue;
      volumes += fmt::format("{}{}", v == 0 ? "" : ", ", one);
      weights += fmt::format("{}{}", v == 0 ? "" : ", ", weight);
    }
    if (set_->count() > kMostNamed) {
      const std::string rest = fmt::format(" and {} more ({:08x})", set_->count() - kMostNamed, hash >> 32);
      volumes += rest;
      weights += rest;
    }
    facts_.settings = {{"patch", extents_text(patches.patch)},
                       {"overlap", extents_text(patches.overlap)},
                       {"sampling", patches.sampling == Sampling::grid ? "grid" : "uniform"},
                       {"samples", std::to_string(size())},
                       {"foreground", fmt::format("{}", patches.foreground)},
                       {"flip", flipped.empty() ? "no axis" : flipped},
                       {"turn", patches.turn ? "yes" : "no"},
                       {"volumes", volumes},
                       {"weights", weights}};
  }

  bool reads_local_planes() const noexcept {
    return std::any_of(sources_.begin(), sources_.end(), [](const storage::Source* source) {
      return source->backend() == nullptr && source->view().empty();
    });
  }

  void add(const Volume& volume) {
    for (const storage::Source* const source : volume.sources()) {
      if (std::find(sources_.begin(), sources_.end(), source) == sources_.end()) sources_.push_back(source);
    }
    for (const storage::Backend* const backend : volume.backends()) {
      if (std::find(backends_.begin(), backends_.end(), backend) == backends_.end()) backends_.push_back(backend);
    }
  }

  std::shared_ptr<const VolumeSet> set_;
  Facts facts_;
  std::vector<std::string> names_;
  std::vector<const storage::Source*> sources_;
  std::vector<const storage::Backend*> backends_;
};

}  // namespace

VolumeSet::VolumeSet(std::vector<OpenedVolume> volumes, const VolumesOptions& options, const OpenOptions& opening)
    : normalize_(options.normalize), volumes_(std::move(volumes)) {
  if (volumes_.empty())
    throw Error(ErrorKind::usage, "cannot open volumes: the list is empty", "name at least one").about("source");
  compare();
  make_plan(options, opening);
}

void VolumeSet::compare() const {
  const bool any_mask =
      std::any_of(volumes_.begin(), volumes_.end(), [](const OpenedVolume& volume) { return volume.mask != nullptr; });
  for (const OpenedVolume& volume : volumes_) {
    compare_types(*volumes_.front().image, *volume.image, "volume");
    if (!any_mask) continue;
    if (volume.mask == nullptr) {
      throw Error(ErrorKind::usage, fmt::format("`{}` has no mask, and others have one", volume.image->name()),
                  "give every volume a mask, or none")
          .about("source");
    }
    if (volumes_.front().mask != nullptr) compare_types(*volumes_.front().mask, *volume.mask, "mask");
    if (volume.image->info().extents == volume.mask->info().extents) continue;
    throw Error(ErrorKind::usage,
                fmt::format("the mask `{}` is {}, and its volume `{}` is {}: both have one shape", volume.mask->name(),
                            extents_text(volume.mask->info().extents), volume.image->name(),
                            extents_text(volume.image->info().extents)),
                "pair each volume with its own mask")
        .about("source");
  }
}

void VolumeSet::make_plan(const VolumesOptions& options, const OpenOptions& opening) {
  const Normalize& normalize = options.normalize;
  if (normalize.how == Normalize::How::window && !(normalize.first < normalize.second)) {
    throw Error(ErrorKind::usage, format_text("the window of {} goes from {} to {}: its end is not above its start",
                                              option("normalize"), normalize.first, normalize.second))
        .about("normalize");
  }
  if (options.patches.foreground > 0 && !has_masks()) {
    throw Error(ErrorKind::usage, format_text("{} needs masks: it asks for patches with label", option("foreground")),
                "pair each volume with its mask")
        .about("foreground");
  }
  std::vector<PatchedVolume> planned(volumes_.size());
  for (std::size_t v = 0; v < planned.size(); ++v) {
    const Volume& image = *volumes_[v].image;
    planned[v].name = std::string(image.name());
    planned[v].extents = image.info().extents;
    planned[v].cell = image.plain() ? kPlainCell : image.info().chunk;
    planned[v].weight = volumes_[v].weight;
  }
  plan_ = std::make_unique<PatchPlan>(options.patches, planned);  // refuses bad options before masks are read
  if (options.patches.foreground == 0) return;
  Crew crew(opening.threads, opening.progress);
  crew.run_in_parts(planned.size(), 1, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t v = begin; v < end; ++v) {
      planned[v].foreground = std::make_shared<Foreground>(find_foreground(*volumes_[v].mask, [&] { crew.count(1); }));
    }
  });
  plan_ = std::make_unique<PatchPlan>(options.patches, std::move(planned));
}

VolumeSet::Ranges VolumeSet::ranges(const Volume& volume, std::uint32_t number) const noexcept {
  const auto layout = volume.plain();
  if (!layout || !layout->source->view().empty()) return {};
  const Extents inside = plan_->inside(number);
  return {static_cast<std::uint32_t>(inside[0]),
          (inside[1] - 1) * layout->stride_bytes[1] + inside[2] * volume.info().element_bytes()};
}

std::uint32_t VolumeSet::parts(std::uint32_t number) const noexcept {
  return ranges(image(number), number).count + (has_masks() ? ranges(*mask(number), number).count : 0);
}

std::uint64_t VolumeSet::parts_bytes(std::uint32_t number) const noexcept {
  const Ranges of_image = ranges(image(number), number);
  const Ranges of_mask = has_masks() ? ranges(*mask(number), number) : Ranges{};
  return of_image.count * of_image.plane_bytes + of_mask.count * of_mask.plane_bytes;
}

storage::Location VolumeSet::part(const Placement& placement, std::uint32_t part) const noexcept {
  const Volume* volume = &image(placement.volume);
  Ranges range = ranges(*volume, placement.volume);
  if (part >= range.count) {
    part -= range.count;
    volume = mask(placement.volume);
    range = ranges(*volume, placement.volume);
  }
  const PlainLayout layout = *volume->plain();
  const std::uint64_t offset = layout.offset + (placement.corner[0] + part) * layout.stride_bytes[0] +
                               placement.corner[1] * layout.stride_bytes[1] +
                               placement.corner[2] * layout.stride_bytes[2];
  return storage::Location::in_source(layout.source, offset, range.plane_bytes);
}

std::uint64_t VolumeSet::memory_bytes() const noexcept {
  std::uint64_t bytes = plan_->memory_bytes();
  for (const OpenedVolume& volume : volumes_) {
    bytes += sizeof volume + volume.image->memory_bytes() + (volume.mask ? volume.mask->memory_bytes() : 0);
  }
  return bytes;
}

DatasetPtr from_volumes(std::vector<OpenedVolume> volumes, const VolumesOptions& options, const OpenOptions& opening,
                        const std::string& address) {
  return narrow_and_widen(std::make_shared<VolumesDataset>(std::move(volumes), options, opening, address), opening);
}

DatasetPtr open_volumes(const std::vector<VolumeAddress>& addresses, const VolumesOptions& options,
                        const OpenOptions& opening, const std::string& address) {
  if (!opening.where.empty()) {
    throw Error(
        ErrorKind::usage,
        format_text("{} does not go with volumes that are named one by one: it selects rows of a volumes.csv",
                    option("where")),
        "leave it out, and name the volumes that you want; in Python stoker.Volumes(\"volumes.csv\", where=...) "
        "selects rows")
        .about("where");
  }
  return open_interruptibly(opening, [&](const OpenOptions& asking) {
    std::vector<OpenedVolume> volumes(addresses.size());
    VolumeOptions own;
    own.storage = opened_as(opening.storage);
    own.level = options.level;
    if (opening.use_cache) own.cache_dir = listing_folder(opening.cache_dir);
    // The rest is for batches.
    InflatedRoom room((opening.memory_limit != 0 ? opening.memory_limit : os::memory_limit().bytes / 4) / 4 * 3);
    own.room = &room;
    // A volume that is not mapped keeps its file or folder open, and so does its mask.
    (void)os::raise_open_file_limit(2 * addresses.size() + kOtherFiles);
    Crew crew(asking.threads, asking.progress);
    crew.run_in_parts(addresses.size(), 1, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t v = begin; v < end; ++v) {
        VolumeOptions image = own, mask = own;
        image.member = options.member;
        mask.member = options.mask_member;
        try {
          volumes[v].image = open_volume(addresses[v].image, image);
          if (!addresses[v].mask.empty()) volumes[v].mask = open_volume(addresses[v].mask, mask);
        } catch (const Error& error) {
          explain_open_files(error, addresses);
          throw;
        }
        volumes[v].weight = addresses[v].weight;
        crew.count(1);
      }
    });
    return from_volumes(std::move(volumes), options, asking, address);
  });
}

}  // namespace stoker::dataset
