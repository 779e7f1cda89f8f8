// The metadata of an array, then a NUL, then a chunk of it: what the metadata says of the chunk is believed, so nothing
// in it may lead outside of the chunk.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/dataset/zarr_meta.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  constexpr std::uint64_t kMostBytes = 4 << 20;
  static Budget budget(64 << 20);
  static Scratch scratch(&budget);
  const void* const nul = size == 0 ? nullptr : std::memchr(data, 0, size);
  const std::size_t text_bytes =
      nul == nullptr ? size : static_cast<std::size_t>(static_cast<const std::uint8_t*>(nul) - data);
  const std::optional<Json> json = Json::try_parse({reinterpret_cast<const char*>(data), text_bytes});
  if (!json) return 0;
  try {
    for (const dataset::OmeLevel& level : dataset::parse_multiscales(*json, "fuzz")) {
      if (level.path.empty() || level.spacing_mm.size() != level.axes.size()) std::abort();
    }
  } catch (const Error&) {
  }
  dataset::ZarrArray array;
  try {
    array = dataset::parse_zarr_array(*json, (*json)["zarr_format"].as<int>() == 3 ? 3 : 2, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  std::uint64_t bytes = size_of(array.dtype);
  for (const std::uint64_t n : array.chunk) bytes *= n;
  if (bytes != array.form.bytes || bytes == 0 || bytes > codec::kMaxChunkBytes) std::abort();
  if (array.grid().size() != array.shape.size()) std::abort();
  if (!array.shard.empty() && array.chunks_per_shard() == 0) std::abort();
  if (bytes > kMostBytes) return 0;
  const std::size_t begin = std::min(size, text_bytes + 1);
  const codec::Bytes chunk(reinterpret_cast<const std::byte*>(data) + begin, size - begin);
  std::vector<std::byte> into(bytes);
  scratch.reset();
  (void)codec::decode_packed(array.form, chunk, into.data(), scratch);
  if (codec::pieces_of(array.form) == codec::Pieces::unpacked) {
    const std::size_t first = bytes / 3, count = bytes - first;
    codec::PackedRun run;
    const codec::Bytes head = chunk.first(std::min(codec::kPieceHead, chunk.size()));
    if (codec::find_piece(array.form, head, chunk.size(), first, count, run).ok() &&
        (run.first > chunk.size() || run.bytes > chunk.size() - run.first)) {
      std::abort();
    }
    (void)codec::decode_piece(array.form, chunk, first, std::span(into).first(count));
  }
  return 0;
}
