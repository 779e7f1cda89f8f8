// Reading a volume box by box on the calling thread, for tools and for what is done once when a data set is opened.
// The stream of batches does not use this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "stoker/dataset/volume.h"

namespace stoker::dataset {

// A box of a volume: `row_bytes` and `plane_bytes` are the distances of its rows and planes. Borrowed for the call.
using TakeBox = std::function<void(const Extents& corner, const Extents& extents, const std::byte* box,
                                   std::uint64_t row_bytes, std::uint64_t plane_bytes)>;

// Hands over the whole volume, each element once: planes of a plain volume, chunks of another. Bytes of a plain volume
// are in the order of its file. Throws Error, naming the chunk.
void read_boxes(const Volume& volume, const TakeBox& take);

// The same of the planes [first, end); boxes may reach beyond them.
void read_planes(const Volume& volume, std::uint64_t first, std::uint64_t end, const TakeBox& take);

// One plane of channel `channel` in C order, as it is stored but in the machine's byte order. Throws Error.
std::vector<std::byte> read_plane(const Volume& volume, std::uint64_t z, std::uint32_t channel = 0);

}  // namespace stoker::dataset
