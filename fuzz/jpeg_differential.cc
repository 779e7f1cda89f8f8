// Our own JPEG decoder against libjpeg-turbo, exact and fast at every scale: where it takes a whole file, libjpeg-turbo
// must take it too, without a warning, and give the same pixels. Of a part it may know more, because libjpeg-turbo
// reads on behind it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "stoker/codec/codec.h"
#include "stoker/codec/image.h"
#include "stoker/codec/jpeg/baseline.h"

namespace {

using namespace stoker;
using namespace stoker::codec;

constexpr std::uint64_t kMaxBytes = 1 << 20;  // of output: larger images only cost time

void compare(Bytes bytes, const ImageInfo& info, const ImageOptions& options, const Rect& region, bool whole) {
  static Scratch scratch;
  const Rect decoded_part = decoded_region(media_named("jpeg"), options, region);
  Pixels into{nullptr, 0, decoded_part.width, decoded_part.height, output_channels(info, options), DType::u8};
  into.stride_bytes = into.row_bytes();
  std::vector<std::byte> ours(into.stride_bytes * into.height, std::byte{1}), theirs(ours.size(), std::byte{2});
  into.data = ours.data();
  scratch.reset();
  if (!jpeg::decode_baseline(bytes, options, region, into, scratch)) return;
  into.data = theirs.data();
  scratch.reset();
  const bool decoded = decode_by_libjpeg(bytes, options, region, into, scratch).ok();
  if (decoded ? ours != theirs : whole) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes{reinterpret_cast<const std::byte*>(data), size};
  ImageInfo info;
  if (!probe_jpeg(bytes, info).ok() || std::uint64_t{info.width} * info.height * 3 > kMaxBytes) return 0;
  const auto choice = static_cast<std::uint32_t>(size);
  ImageOptions options;
  options.color = static_cast<Color>(choice % 3);
  const std::uint32_t x = choice * 7 % info.width, y = choice * 5 % info.height;
  const Rect part{x, y, 1 + choice % (info.width - x), 1 + choice % (info.height - y)};
  for (const std::uint32_t scale : {0u, 1u << choice % 4}) {
    options.fast = scale != 0;
    options.scale = scale != 0 ? scale : 1;
    options.strict = true;
    compare(bytes, info, options, {0, 0, info.width, info.height}, true);
    options.strict = false;
    compare(bytes, info, options, part, false);
  }
  return 0;
}
