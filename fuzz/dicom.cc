// Headers of DICOM files, whole and cut, and the values of native pixels. GDCM is not fuzzed: it runs in processes that
// may end.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "stoker/dicom/file.h"
#include "stoker/dicom/header.h"
#include "stoker/dicom/values.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::dicom;
  const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  (void)looks_like_dicom(bytes.first(size < kSniffedBytes ? size : kSniffedBytes));
  Header header;
  std::vector<std::byte> inflated;
  (void)read_header(bytes, false, header, inflated);
  if (!read_header(bytes, true, header, inflated).ok()) return 0;
  if (judge(header, size, true).found != Found::image || header.syntax.packing != Packing::native) return 0;
  // What is judged an image has its pixels.
  const Bytes all = header.syntax.is_deflated ? Bytes(inflated) : bytes;
  if (header.pixels_at > all.size() || header.frame_bytes() * header.frames > all.size() - header.pixels_at)
    std::abort();
  std::vector<std::uint16_t> out(std::size_t{header.rows} * header.columns);
  const FrameFacts& facts = header.facts_of(0);
  (void)rescale(all.subspan(header.pixels_at, header.frame_bytes()), stored_as(header), facts.slope.value_or(1),
                facts.intercept.value_or(0), out.data(), out.size());
  return 0;
}
