#include "stoker/codec/inflate.h"

#include <memory>

#include <libdeflate.h>

namespace stoker::codec {
namespace {
struct Freer {
  void operator()(libdeflate_decompressor* d) const noexcept { libdeflate_free_decompressor(d); }
};

libdeflate_decompressor* thread_decompressor() noexcept {
  thread_local std::unique_ptr<libdeflate_decompressor, Freer> decompressor;
  if (decompressor == nullptr) decompressor.reset(libdeflate_alloc_decompressor());
  return decompressor.get();
}
}  // namespace

Inflated inflate(Wrapper wrapper, Bytes stream, std::span<std::byte> into, std::size_t& written) noexcept {
  written = 0;
  libdeflate_decompressor* const decompressor = thread_decompressor();
  if (decompressor == nullptr) return Inflated::no_memory;
  const auto call = wrapper == Wrapper::zlib   ? libdeflate_zlib_decompress
                    : wrapper == Wrapper::gzip ? libdeflate_gzip_decompress
                                               : libdeflate_deflate_decompress;
  switch (call(decompressor, stream.data(), stream.size(), into.data(), into.size(), &written)) {
    case LIBDEFLATE_SUCCESS:
      return Inflated::ok;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      return Inflated::more_output;
    default:
      return Inflated::bad_data;
  }
}

std::uint32_t crc32(Bytes bytes, std::uint32_t before) noexcept {
  return bytes.empty() ? before : libdeflate_crc32(before, bytes.data(), bytes.size());
}

}  // namespace stoker::codec
