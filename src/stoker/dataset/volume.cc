// The base of volumes, and the choice among their formats. A build without STOKER_VOLUMES has this file only.
#include "stoker/dataset/volume.h"

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#ifdef STOKER_HAS_VOLUMES
#include "stoker/codec/chunk_codec.h"
#endif
#include "stoker/dataset/volume_kinds.h"
#include "stoker/os/entry.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {

storage::Location Volume::locate_chunk(std::uint64_t, std::span<char>) const noexcept {
  return {};
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

}  // namespace

std::unique_ptr<Volume> open_volume(const std::string& given, const VolumeOptions& options) {
  std::string address = given;
  while (address.size() > 1 && address.ends_with('/')) address.pop_back();
  check_scheme(address);
  const bool is_in_store = storage::store_of(address) != nullptr;
  const os::Entry entry = is_in_store ? os::Entry{} : os::look_up(address);
  if (entry.kind == os::Entry::Kind::unknown) throw system_error(entry.error_number, "open", address);
  if (!is_in_store && entry.kind == os::Entry::Kind::missing) {
    throw Error(ErrorKind::not_found, fmt::format("cannot open `{}`: there is no such file or folder", address),
                std::string(kVolumes));
  }
  if (is_in_store || entry.kind == os::Entry::Kind::file) {
    if (ends_as(address, ".npy")) return open_npy_volume(address, options);
    if (ends_as(address, ".npz")) return open_npz_volume(address, options);
    if (ends_as(address, ".nii") || ends_as(address, ".nii.gz")) return open_nifti_volume(address, options);
    if (ends_as(address, ".tif") || ends_as(address, ".tiff")) return open_tiff_volume(address, options);
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
