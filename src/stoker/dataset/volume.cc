// The base of volumes, and the choice among their formats. A build without STOKER_VOLUMES has this file only.
#include "stoker/dataset/volume.h"

#include <utility>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#ifdef STOKER_HAS_VOLUMES
#include "stoker/codec/chunk_codec.h"
#endif
#include "stoker/dataset/volume_kinds.h"
#include "stoker/dataset/volume_pack.h"
#include "stoker/os/entry.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {

storage::Location Volume::locate_chunk(std::uint64_t, std::span<char>) const noexcept {
  return {};
}

Result Volume::find_planes(codec::Bytes, std::uint64_t, std::uint64_t, std::uint64_t,
                           codec::PackedRun&) const noexcept {
  return failed(Code::unsupported, "planes of its chunks cannot be had by themselves");
}
Result Volume::decode_planes(codec::Bytes, std::uint64_t, std::span<std::byte>) const noexcept {
  return failed(Code::unsupported, "planes of its chunks cannot be had by themselves");
}
Result Volume::decode_chunk(std::uint64_t, codec::Bytes, std::byte*, Scratch&) const noexcept {
  return failed(Code::unsupported, "a plain volume has no chunks");
}

std::string Volume::chunk_name(std::uint64_t chunk) const {
  return fmt::format("chunk {} of `{}`", chunk, name());
}

#ifdef STOKER_HAS_VOLUMES

namespace {

constexpr std::string_view kVolumes =
    "a volume is a .nii, .nii.gz, .tif, .npy or .npz file, a zarr folder, or a folder of .tif or .png slices";

bool ends_as(std::string_view address, std::string_view extension) {
  return address.size() > extension.size() && ends_with_any_case(address, extension);
}

void check_scheme(const std::string& address) {
  const std::string_view scheme = storage::split_address(address).scheme;
  if (scheme.empty() || storage::find_backend(scheme) != nullptr) return;
  const std::string_view option = storage::option_of(scheme);
  throw Error(ErrorKind::unsupported,
              fmt::format("cannot open `{}`: this version does not read {}:// addresses", address, scheme),
              option.empty()
                  ? "copy the data to a local folder first"
                  : fmt::format("build Stoker with -D{}=ON, or copy the data to a local folder first", option));
}

// Options of other formats: without this they would be ignored.
void refuse_options(const std::string& address, const VolumeOptions& options, bool has_members) {
  if (options.level != 0) {
    throw Error(ErrorKind::usage,
                format_text("{} does not go with `{}`: only OME-Zarr images have levels",
                            option("level", std::to_string(options.level)), address),
                "leave it out")
        .about("level");
  }
  if (!options.member.empty() && !has_members) {
    throw Error(ErrorKind::usage,
                format_text("{} does not go with `{}`: only .npz files and zarr groups hold several arrays",
                            option("member", options.member), address),
                "leave it out")
        .about("member");
  }
}

// An array of bricks in a pack of volumes; null: the folder is no such pack.
std::unique_ptr<Volume> open_packed(const std::string& folder, const std::string& file, const VolumeOptions& options) {
  const std::optional<VolumePack> pack = find_volume_pack(folder);
  if (!pack) return nullptr;
  for (const VolumePack::Entry& entry : pack->volumes) {
    if (entry.image.file == file) return open_bricks(folder, entry.image, options);
    if (entry.mask && entry.mask->file == file) return open_bricks(folder, *entry.mask, options);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Volume> open_volume(const std::string& given, const VolumeOptions& options) {
  std::string address = storage::without_file_scheme(given);
  while (address.size() > 1 && address.ends_with('/')) address.pop_back();
  check_scheme(address);
  const bool is_in_store = storage::store_of(address) != nullptr;
  const os::Entry entry = is_in_store ? os::Entry{} : os::look_up(address);
  if (entry.kind == os::Entry::Kind::unknown) throw system_error(entry.error_number, "open", address);
  if (!is_in_store && entry.kind == os::Entry::Kind::missing) {
    throw Error(ErrorKind::not_found, fmt::format("cannot open `{}`: there is no such file or folder", address),
                std::string(kVolumes));
  }
  if (!is_in_store && entry.kind == os::Entry::Kind::other) {
    throw Error(ErrorKind::unsupported,
                fmt::format("cannot open `{}` as a volume: it is neither a file nor a folder", address),
                std::string(kVolumes));
  }
  if (is_in_store || entry.kind == os::Entry::Kind::file) {
    using Open = std::unique_ptr<Volume> (*)(const std::string&, const VolumeOptions&);
    const std::pair<std::string_view, Open> formats[] = {{".npy", open_npy_volume},   {".npz", open_npz_volume},
                                                         {".nii", open_nifti_volume}, {".nii.gz", open_nifti_volume},
                                                         {".tif", open_tiff_volume},  {".tiff", open_tiff_volume}};
    if (!is_in_store && ends_as(address, ".npy")) {
      const std::size_t slash = address.rfind('/');
      const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : address.substr(0, slash);
      if (std::unique_ptr<Volume> volume = open_packed(folder, address.substr(slash + 1), options)) {
        refuse_options(address, options, false);
        return volume;
      }
    }
    for (const auto& [extension, open] : formats) {
      if (!ends_as(address, extension)) continue;
      refuse_options(address, options, extension == ".npz");
      return open(address, options);
    }
    for (const std::string_view pair : {".hdr", ".img", ".hdr.gz", ".img.gz"}) {
      if (!ends_as(address, pair)) continue;
      throw Error(ErrorKind::unsupported,
                  fmt::format("cannot open `{}`: pairs of .hdr and .img files are not read", address),
                  "convert it to one .nii file");
    }
  }
  if (!is_in_store && entry.kind != os::Entry::Kind::folder) {
    throw Error(ErrorKind::unsupported,
                fmt::format("cannot open `{}` as a volume: its name says another format", address),
                std::string(kVolumes));
  }
  if (std::unique_ptr<Volume> volume = open_zarr_volume(address, options)) return volume;
  refuse_options(address, options, false);
  return open_slices_volume(address);
}

std::string volume_formats() {
  return fmt::format("npy, npz, NIfTI, TIFF, zarr ({}), folders of slices", codec::packing_versions());
}

#else

std::string volume_formats() {
  return {};
}

std::unique_ptr<Volume> open_volume(const std::string& address, const VolumeOptions&) {
  throw Error(ErrorKind::unsupported, fmt::format("cannot open `{}`: this build does not read volumes", address),
              "install libblosc-dev, libzstd-dev and zlib1g-dev, and configure with -DSTOKER_VOLUMES=ON");
}

#endif

}  // namespace stoker::dataset
