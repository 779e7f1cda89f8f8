#include "stoker/dataset/volume_box.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/storage/read_whole.h"

namespace stoker::dataset {
namespace {

void read_planes(const VolumeInfo& info, const PlainLayout& layout, const TakeBox& take) {
  const std::uint64_t row = info.extents[2] * info.element_bytes();
  const std::uint64_t plane = (info.extents[1] - 1) * layout.stride_bytes[1] + row;
  const std::span<const std::byte> view = layout.source->view();
  std::vector<std::byte> held(view.empty() ? plane : 0);
  for (std::uint64_t z = 0; z < info.extents[0]; ++z) {
    const std::uint64_t offset = layout.offset + z * layout.stride_bytes[0];
    if (view.empty()) {
      const storage::Read read{offset, held};
      layout.source->read({&read, 1});
    }
    take({z, 0, 0}, {1, info.extents[1], info.extents[2]}, view.empty() ? held.data() : view.data() + offset,
         layout.stride_bytes[1], layout.stride_bytes[0]);
  }
}

void read_chunks(const Volume& volume, const TakeBox& take) {
  const VolumeInfo& info = volume.info();
  const Extents grid = info.grid();
  std::vector<std::byte> chunk(info.chunk_bytes()), encoded;
  std::vector<char> text(storage::kLocationText);
  Scratch scratch;
  for (std::uint64_t number = 0; number < info.chunks(); ++number) {
    const storage::Location where = volume.locate_chunk(number, text);
    storage::WholeRead read;
    if (where.bytes > 0) read = storage::read_whole(where, encoded);
    if (!read.ok()) {
      throw Error(read.failure.kind, fmt::format("cannot read {}: {}", volume.chunk_name(number), read.failure.text),
                  read.failure.hint);
    }
    if (where.bytes > 0 && read.bytes.empty())
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot read {}: its file has become empty", volume.chunk_name(number)));
    scratch.reset();
    const Result result = volume.decode_chunk(number, read.bytes, chunk.data(), scratch);
    if (!result.ok()) {
      throw Error(ErrorKind::corrupt, fmt::format("cannot decode {}: {}", volume.chunk_name(number), result.cause));
    }
    const Extents at = {number / (grid[1] * grid[2]), number / grid[2] % grid[1], number % grid[2]};
    Extents corner, extents;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      corner[axis] = at[axis] * info.chunk[axis];
      extents[axis] = std::min(info.chunk[axis], info.extents[axis] - corner[axis]);
    }
    const std::uint64_t row = info.chunk[2] * info.element_bytes();
    take(corner, extents, chunk.data(), row, info.chunk[1] * row);
  }
}

}  // namespace

void read_boxes(const Volume& volume, const TakeBox& take) {
  if (const auto layout = volume.plain()) {
    read_planes(volume.info(), *layout, take);
  } else {
    read_chunks(volume, take);
  }
}

}  // namespace stoker::dataset
