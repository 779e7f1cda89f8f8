#include "image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stoker::fuzz::decode_image(stoker::codec::media_named("webp"), {reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
