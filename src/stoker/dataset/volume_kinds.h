// The formats that open_volume tells apart, one function each, and what they share. Private to this folder. All throw
// Error.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/result.h"
#include "stoker/dataset/volume.h"
#include "stoker/storage/source.h"

namespace stoker::dataset {

std::unique_ptr<Volume> open_npy_volume(const std::string& address, const VolumeOptions& options);
std::unique_ptr<Volume> open_npz_volume(const std::string& address, const VolumeOptions& options);
std::unique_ptr<Volume> open_nifti_volume(const std::string& address, const VolumeOptions& options);
std::unique_ptr<Volume> open_tiff_volume(const std::string& address, const VolumeOptions& options);
// None: there is no zarr metadata at this address.
std::unique_ptr<Volume> open_zarr_volume(const std::string& address, const VolumeOptions& options);
// A folder of images, one slice each, in the order of the numbers in their names.
std::unique_ptr<Volume> open_slices_volume(const std::string& address);

// "cannot read `<subject>`: <cause>", with the kind of error that fits.
[[noreturn]] void refuse_volume(std::string_view subject, const Result& result);

// A file that is read as it lies there: mapped where Storage::automatic leaves it open and memory can hold it. A mapped
// one holds no descriptor, so that a data set may have more volumes than a process may have files open.
std::unique_ptr<storage::Source> open_plain_source(const std::string& address, storage::Storage storage);

// What a plain volume is made of.
struct PlainParts {
  std::string name;
  VolumeInfo info;              // chunk is filled in
  std::vector<std::byte> held;  // what `source` borrows, if anything
  std::unique_ptr<storage::Source> source;
  std::uint64_t offset = 0;
  std::uint64_t page_stride_bytes = 0;  // from one z to the next; 0: pages lie without gaps
  bool swap_bytes = false;
};
std::unique_ptr<Volume> make_plain_volume(PlainParts parts);

// Whether the last of four axes counts channels. Not so if the first has one element and the last too many: that is a
// volume behind an axis of channels or of time.
inline bool ends_in_channels(std::span<const std::uint64_t> shape) noexcept {
  return shape.size() == 4 && (shape[0] != 1 || shape[3] <= 4);
}
// The axes of an array as z, y, x and channels: two to four axes. `subject` is for the message.
void set_extents(VolumeInfo& info, std::span<const std::uint64_t> shape, std::string_view subject);

// What `stoker prepare dicom` noted of the series in `folder`: spacing, and the offset of the values. Nothing changes
// where there is no such note.
void add_series_facts(const std::string& folder, VolumeInfo& info);

}  // namespace stoker::dataset
