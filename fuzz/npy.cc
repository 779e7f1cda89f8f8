#include <cstdint>
#include <cstdlib>
#include <vector>

#include "stoker/codec/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::codec;
  const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  ArrayInfo info;
  if (!probe_npy(bytes, size, info).ok()) return 0;
  if (info.data_offset > size || info.data_bytes > size - info.data_offset) std::abort();
  stoker::Scratch scratch;
  std::vector<std::byte> into(info.data_bytes);
  if (!decode_array(media_named("npy"), bytes, info, into.data(), scratch).ok()) std::abort();
  return 0;
}
