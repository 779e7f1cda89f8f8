// NIfTI files: a header, and elements in the order z, y, x. A compressed file is inflated once.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/codec/nifti.h"
#include "stoker/dataset/inflated_source.h"
#include "stoker/dataset/volume_kinds.h"

namespace stoker::dataset {

std::unique_ptr<Volume> open_nifti_volume(const std::string& address, const VolumeOptions& options) {
  PlainParts parts;
  parts.name = address;
  const bool is_compressed = ends_with_any_case(address, ".gz");
  std::uint64_t bytes = 0;
  if (is_compressed) {
    const std::unique_ptr<storage::Source> file = storage::open_source(address, storage::Storage::buffered);
    parts.info.stored_bytes = file->size_bytes();
    Compressed compressed{.source = file.get(), .offset = 0, .bytes = file->size_bytes()};
    codec::NiftiInfo claimed;
    const std::vector<std::byte> start = inflate_start(compressed, codec::kNiftiHeaderBytes);
    const Result result = codec::probe_nifti(start, claimed);
    const bool is_short = start.size() < codec::kNiftiHeaderBytes;  // then inflating it all tells what is wrong
    if (!result.ok() && !is_short) refuse_volume(address, result);
    compressed.inflated_bytes = result.ok() ? claimed.data_offset + claimed.data_bytes : codec::kNiftiHeaderBytes;
    InflatedFile inflated = inflate_once(compressed, options);
    parts.held = std::move(inflated.held);
    parts.source = std::move(inflated.source);
    bytes = inflated.bytes;
  } else {
    parts.source = open_plain_source(address, options.storage);
    bytes = parts.info.stored_bytes = parts.source->size_bytes();
  }
  std::vector<std::byte> head(std::min<std::uint64_t>(codec::kNiftiHeaderBytes, bytes));
  const storage::Read read{0, head};
  parts.source->read({&read, 1});
  codec::NiftiInfo nifti;
  if (const Result result = codec::probe_nifti(head, nifti); !result.ok()) refuse_volume(address, result);
  if (nifti.data_offset > bytes || nifti.data_bytes > bytes - nifti.data_offset) {
    throw Error(ErrorKind::corrupt,
                fmt::format("cannot read `{}`: it ends early: its header says {} bytes, and it has {}", address,
                            nifti.data_offset + nifti.data_bytes, bytes));
  }
  VolumeInfo& info = parts.info;
  info.dtype = nifti.dtype;
  info.extents = nifti.extents;
  info.channels = nifti.channels;
  info.spacing = nifti.spacing;
  info.slope = nifti.slope;
  info.intercept = nifti.intercept;
  info.format = fmt::format("NIfTI-{}{}", nifti.version, is_compressed ? ", gzip" : "");
  parts.offset = nifti.data_offset;
  parts.swap_bytes = nifti.swap_bytes;
  return make_plain_volume(std::move(parts));
}

}  // namespace stoker::dataset
