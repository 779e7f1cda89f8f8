#include <cstdint>
#include <cstdlib>
#include <vector>

#include "stoker/codec/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::codec;
  static stoker::Budget budget(64 << 20);
  static stoker::Scratch scratch(&budget);
  const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  for (const char* member : {"", "b"}) {
    scratch.reset();
    ArrayInfo info;
    if (!probe_npz(bytes, member, info, scratch).ok()) continue;
    if (info.data_offset > size || info.stored_bytes > size - info.data_offset) std::abort();
    if (info.data_bytes > info.member_bytes) std::abort();
    if (info.data_bytes > (16 << 20)) continue;
    std::vector<std::byte> into(info.data_bytes);
    (void)decode_array(media_named("npz"), bytes, info, into.data(), scratch);
  }
  return 0;
}
