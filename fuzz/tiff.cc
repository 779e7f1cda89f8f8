// Reads the directories of arbitrary bytes as a TIFF, and decodes its pages into memory of exactly the size needed.
#include "stoker/codec/tiff.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::codec;
  constexpr std::uint64_t kMostBytes = 4 << 20;
  static stoker::Budget budget(64 << 20);
  static stoker::Scratch scratch(&budget);
  const Bytes file(reinterpret_cast<const std::byte*>(data), size);
  TiffBytes input(file);
  TiffHeader header;
  if (!read_tiff_header(input, header).ok()) return 0;
  std::uint64_t next = header.first;
  for (int number = 0; number < 8 && next != 0; ++number) {
    scratch.reset();
    TiffPage page;
    if (!read_tiff_page(input, header, next, page, scratch).ok()) return 0;
    next = page.next;
    const TiffForm form = page.form;
    if (form.width == 0 || form.height == 0 || page.offsets.size() != form.segments()) std::abort();
    if (page.bytes.size() != page.offsets.size()) std::abort();
    if (form.segment_bytes() > kMostBytes || form.segments() > 4096) continue;
    std::vector<std::byte> segment(form.segment_bytes());
    for (std::size_t i = 0; i < page.offsets.size(); ++i) {
      if (page.offsets[i] > size || page.bytes[i] > size - page.offsets[i]) std::abort();
      const auto rows = std::min(form.segment_height, form.height);
      (void)decode_segment(form, rows, file.subspan(page.offsets[i], page.bytes[i]), segment.data(), scratch);
    }
    if (number > 0 || form.page_bytes() > kMostBytes) continue;
    std::vector<std::byte> whole(form.page_bytes());
    scratch.reset();
    (void)decode_page(form, file, whole.data(), scratch);
  }
  return 0;
}
