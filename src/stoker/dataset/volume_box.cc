#include "stoker/dataset/volume_box.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/storage/interruption.h"
#include "stoker/storage/read_whole.h"

namespace stoker::dataset {
namespace {

struct PlaneRange {
  std::uint64_t first = 0, end = 0;
};

void read_plain(const VolumeInfo& info, const PlainLayout& layout, const PlaneRange& range, const TakeBox& take) {
  const std::uint64_t row = info.extents[2] * info.element_bytes();
  const std::uint64_t plane = (info.extents[1] - 1) * layout.stride_bytes[1] + row;
  const std::span<const std::byte> view = layout.source->view();
  std::vector<std::byte> held(view.empty() ? plane : 0);
  for (std::uint64_t z = range.first; z < range.end; ++z) {
    storage::check_interruption();
    const std::uint64_t offset = layout.offset + z * layout.stride_bytes[0];
    if (view.empty()) {
      const storage::Read read{offset, held};
      layout.source->read({&read, 1});
    } else if (storage::is_cut_short(*layout.source)) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot read `{}`: its file became shorter since it was opened", layout.source->name()));
    }
    take({z, 0, 0}, {1, info.extents[1], info.extents[2]}, view.empty() ? held.data() : view.data() + offset,
         layout.stride_bytes[1], layout.stride_bytes[0]);
  }
}

void read_chunks(const Volume& volume, const PlaneRange& range, const TakeBox& take) {
  const VolumeInfo& info = volume.info();
  const Extents grid = info.grid();
  std::vector<std::byte> chunk(info.chunk_bytes()), encoded;
  std::vector<char> text(storage::kLocationText);
  Scratch scratch;
  const std::uint64_t layer = grid[1] * grid[2];
  const std::uint64_t last = ((range.end - 1) / info.chunk[0] + 1) * layer;
  for (std::uint64_t number = range.first / info.chunk[0] * layer; number < last; ++number) {
    storage::check_interruption();
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
  read_planes(volume, 0, volume.info().extents[0], take);
}

void read_planes(const Volume& volume, std::uint64_t first, std::uint64_t end, const TakeBox& take) {
  if (const auto layout = volume.plain()) {
    read_plain(volume.info(), *layout, {first, end}, take);
  } else {
    read_chunks(volume, {first, end}, take);
  }
}

std::vector<std::byte> read_plane(const Volume& volume, std::uint64_t z, std::uint32_t channel) {
  const VolumeInfo& info = volume.info();
  const std::uint64_t value = size_of(info.dtype), width = info.extents[2];
  std::vector<std::byte> plane(info.extents[1] * width * value);
  const TakeBox take = [&](const Extents& corner, const Extents& extents, const std::byte* box, std::uint64_t row_bytes,
                           std::uint64_t plane_bytes) {
    if (z < corner[0] || z >= corner[0] + extents[0]) return;
    for (std::uint64_t y = 0; y < extents[1]; ++y) {
      const std::byte* from = box + (z - corner[0]) * plane_bytes + y * row_bytes + channel * value;
      std::byte* to = plane.data() + ((corner[1] + y) * width + corner[2]) * value;
      for (std::uint64_t x = 0; x < extents[2]; ++x, from += info.element_bytes(), to += value)
        std::memcpy(to, from, value);
    }
  };
  read_planes(volume, z, z + 1, take);
  const auto layout = volume.plain();
  for (std::size_t at = 0; layout && layout->swap_bytes && at < plane.size(); at += value)
    std::reverse(plane.begin() + static_cast<std::ptrdiff_t>(at),
                 plane.begin() + static_cast<std::ptrdiff_t>(at + value));
  return plane;
}

}  // namespace stoker::dataset
