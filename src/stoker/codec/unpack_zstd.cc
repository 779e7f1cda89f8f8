#include "stoker/codec/unpack_zstd.h"

#include <memory>

#include <zstd.h>
#include <zstd_errors.h>

namespace stoker::codec {
namespace {

struct ZstdFreer {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

ZSTD_DCtx* thread_zstd() noexcept {
  thread_local std::unique_ptr<ZSTD_DCtx, ZstdFreer> context;
  if (context == nullptr) context.reset(ZSTD_createDCtx());
  return context.get();
}

}  // namespace

Result unpack_zstd(Bytes packed, std::span<std::byte> into, std::size_t& written) noexcept {
  written = 0;
  ZSTD_DCtx* const context = thread_zstd();
  if (context == nullptr) return failed(Code::no_memory, "no room for a zstd decompressor");
  const std::size_t result = ZSTD_decompressDCtx(context, into.data(), into.size(), packed.data(), packed.size());
  if (ZSTD_isError(result) == 0) {
    written = result;
    return {};
  }
  switch (ZSTD_getErrorCode(result)) {
    case ZSTD_error_dstSize_tooSmall:
      return failed(Code::corrupt, "the zstd data unpacks to more bytes than the shape has");
    case ZSTD_error_memory_allocation:
      return failed(Code::no_memory, "no room for a zstd decompressor");
    case ZSTD_error_prefix_unknown:
      return failed(Code::corrupt, "no zstd frame", 0);
    case ZSTD_error_srcSize_wrong:
      return failed(Code::truncated, "the zstd data ends early", packed.size());
    default:
      return failed(Code::corrupt, "damaged zstd data");
  }
}

}  // namespace stoker::codec
