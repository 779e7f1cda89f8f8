// Bytes that begin as a PNG are taken as they are, with the sums of their chunks put right (the fuzzer cannot guess
// them). Others become one: five bytes of header, the rest the rows behind the zlib layer, which it could not guess
// either.
#include <algorithm>
#include <cstring>
#include <vector>

#include <libdeflate.h>

#include "image.h"

namespace {

using Buffer = std::vector<std::uint8_t>;

void put_big32(Buffer& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(value >> shift));
}

void put_chunk(Buffer& out, const char* name, const Buffer& data) {
  put_big32(out, static_cast<std::uint32_t>(data.size()));
  const std::size_t begin = out.size();
  out.insert(out.end(), name, name + 4);
  out.insert(out.end(), data.begin(), data.end());
  put_big32(out, libdeflate_crc32(0, out.data() + begin, out.size() - begin));
}

void repair_sums(Buffer& png) {
  for (std::size_t at = 8; png.size() - at >= 12;) {
    const std::size_t length = std::size_t{png[at]} << 24 | png[at + 1] << 16 | png[at + 2] << 8 | png[at + 3];
    if (png.size() - at - 12 < length) return;
    Buffer sum;
    put_big32(sum, libdeflate_crc32(0, png.data() + at + 4, length + 4));
    std::copy(sum.begin(), sum.end(), png.begin() + static_cast<std::ptrdiff_t>(at + 8 + length));
    at += 12 + length;
  }
}

Buffer build(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint8_t kDepths[] = {1, 2, 4, 8, 16}, kColors[] = {0, 2, 3, 4, 6};
  Buffer header, palette, out{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  put_big32(header, data[0] % 70 + 1);
  put_big32(header, data[1] % 70 + 1);
  header.insert(header.end(),
                {kDepths[data[2] % 5], kColors[data[3] % 5], 0, 0, static_cast<std::uint8_t>(data[4] & 1)});
  put_chunk(out, "IHDR", header);
  for (int i = 0; i < (data[4] >> 2) * 3; ++i) palette.push_back(static_cast<std::uint8_t>(i * 37));
  if (data[3] % 5 == 2) {
    put_chunk(out, "PLTE", palette);
    if ((data[4] & 2) != 0) put_chunk(out, "tRNS", {1, 2, 3});
  }
  Buffer rows(data + 5, data + size);
  rows.resize(std::max<std::size_t>(rows.size(), 40000));  // enough for 70 x 70 x 8 bytes: what is missing is zero
  static libdeflate_compressor* const compressor = libdeflate_alloc_compressor(1);
  Buffer stream(libdeflate_zlib_compress_bound(compressor, rows.size()));
  stream.resize(libdeflate_zlib_compress(compressor, rows.data(), rows.size(), stream.data(), stream.size()));
  put_chunk(out, "IDAT", stream);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 8) return 0;
  Buffer png;
  if (data[0] == 0x89) {
    png.assign(data, data + size);
    repair_sums(png);
  } else {
    png = build(data, size);
    png.resize(png.size() + size % 97);  // bytes behind the end choose the options
  }
  stoker::fuzz::decode_image(stoker::codec::media_named("png"),
                             {reinterpret_cast<const std::byte*>(png.data()), png.size()});
  return 0;
}
