#include "stoker/codec/nifti.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::codec;
  NiftiInfo info;
  if (!probe_nifti({reinterpret_cast<const std::byte*>(data), size}, info).ok()) return 0;
  const std::uint64_t elements = info.extents[0] * info.extents[1] * info.extents[2];
  if (elements == 0 || info.channels == 0 || info.data_offset < 348) std::abort();
  if (info.data_bytes != elements * info.channels * stoker::size_of(info.dtype)) std::abort();
  for (const double spacing : info.spacing) {
    if (!(spacing >= 0)) std::abort();
  }
  return 0;
}
