#include "stoker/codec/flac.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "stoker/codec/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::codec;
  const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  AudioInfo info;
  if (!probe_flac(bytes, info).ok()) return 0;
  if (info.channels == 0 || info.channels > 8 || info.working_bytes > (4 << 20)) std::abort();
  // Whole, from the middle, and beyond the end, in memory of exactly the size that is needed. More only costs time.
  const std::uint64_t frames = info.frames < 10'000 ? info.frames : 10'000;
  stoker::Scratch scratch;
  std::vector<float> into(info.channels * frames);
  const bool is_whole = decode_flac(bytes, info, 0, frames, into.data(), frames, scratch).ok();
  const std::uint64_t first = info.frames / 3,
                      rest = frames - frames / 3 < info.frames - first ? frames - frames / 3 : 0;
  std::vector<float> part(info.channels * rest);
  const bool is_part = decode_flac(bytes, info, first, rest, part.data(), rest, scratch).ok();
  if (is_whole && !is_part && first + rest <= frames) std::abort();
  if (decode_flac(bytes, info, 1, info.frames, into.data(), frames, scratch).ok()) std::abort();
  if (info.frames <= frames) (void)verify_flac(bytes, info, scratch).ok();
  return 0;
}
