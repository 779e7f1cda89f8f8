// Places that somebody else noted, as seek.bin of a pack has them: a byte for the step, one for their count, the
// places, and a JPEG file. They may decode to wrong pixels, but in bounds; and what the decoder adds to them it can
// use.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "stoker/codec/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  if (size < 2) return 0;
  const std::uint32_t step = 1 + data[0] % 16, count = data[1];
  data += 2, size -= 2;
  std::vector<codec::Checkpoint> places(std::min<std::size_t>(count, size / sizeof(codec::Checkpoint)));
  const std::size_t bytes = places.size() * sizeof(codec::Checkpoint);
  if (bytes > 0) std::memcpy(places.data(), data, bytes);
  const codec::Bytes file{reinterpret_cast<const std::byte*>(data + bytes), size - bytes};
  codec::ImageInfo info;
  if (!codec::probe_image(codec::media_named("jpeg"), file, info).ok() ||
      std::uint64_t{info.width} * info.height > 1 << 18)
    return 0;
  static Scratch scratch;
  const auto known = static_cast<std::uint32_t>(places.size());
  places.resize(places.size() + 64);
  codec::SeekIndex index{.step = step, .places = places, .known = known};
  for (const std::uint32_t part : {3u, 2u, 1u}) {
    const Rect region{info.width / (part + 1), info.height / (part + 1), (info.width + part) / (part + 1),
                      (info.height + part) / (part + 1)};
    Pixels pixels{nullptr, std::size_t{region.width} * 3, region.width, region.height, 3, DType::u8};
    std::vector<std::byte> into(pixels.stride_bytes * region.height);
    pixels.data = into.data();
    scratch.reset();
    (void)codec::decode_image(codec::media_named("jpeg"), file, {}, region, pixels, scratch, &index);
    if (index.known > index.places.size()) std::abort();
  }
  return 0;
}
