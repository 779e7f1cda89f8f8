#include "stoker/codec/wav.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "stoker/codec/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::codec;
  const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  AudioInfo info;
  if (!probe_wav(bytes, info).ok()) return 0;
  if (info.channels == 0 || info.frames > size || info.data_offset > size) std::abort();
  stoker::Scratch scratch;
  // Every frame that the probe promises can be read.
  const std::uint64_t first = info.frames / 3;
  std::vector<float> into(info.channels * (info.frames - first));
  if (!decode_wav(bytes, info, first, info.frames - first, into.data(), info.frames - first, scratch).ok())
    std::abort();
  if (decode_wav(bytes, info, 1, info.frames, into.data(), info.frames, scratch).ok()) std::abort();
  return 0;
}
