#include "stoker/codec/jpeg_memory.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include <jerror.h>

#include "stoker/base/round.h"

// Arrays that libjpeg calls virtual, because they may lie on disk. Here they never do. libjpeg declares the types and
// leaves them to the memory manager.
struct jvirt_sarray_control {
  JSAMPARRAY rows;
};
struct jvirt_barray_control {
  JBLOCKARRAY rows;
  std::size_t row_bytes;
  JDIMENSION undefined_from;  // rows from here on were never accessed: they are zeroed when they are
};

namespace stoker::codec {
namespace {

constexpr std::size_t kRowAlign = 64;  // libjpeg-turbo's SIMD code reads and writes whole pieces of two registers

std::byte* take(j_common_ptr jpeg, std::size_t bytes) noexcept {
  std::byte* const at = reinterpret_cast<JpegMemory*>(jpeg->mem)->scratch->take(bytes).data();
  if (at == nullptr) ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
  return at;
}

void* take_object(j_common_ptr jpeg, int, std::size_t bytes) noexcept {
  return take(jpeg, bytes);
}

template <typename Row>
Row* take_rows(j_common_ptr jpeg, std::size_t row_bytes, JDIMENSION count) noexcept {
  if (count != 0 && row_bytes > std::numeric_limits<std::size_t>::max() / 2 / count) {
    ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
  }
  auto* const rows = reinterpret_cast<Row*>(take(jpeg, sizeof(Row) * count));
  std::byte* const first = take(jpeg, row_bytes * count);
  for (JDIMENSION i = 0; i < count; ++i) rows[i] = reinterpret_cast<Row>(first + i * row_bytes);
  return rows;
}

JSAMPARRAY take_samples(j_common_ptr jpeg, int, JDIMENSION samples, JDIMENSION rows) noexcept {
  // Newer versions read samples of 12 and 16 bits with the same functions.
  const std::size_t sample_bytes = reinterpret_cast<j_decompress_ptr>(jpeg)->data_precision > 8 ? 2 : sizeof(JSAMPLE);
  const std::size_t row_bytes = round_up(samples * sample_bytes, kRowAlign);
  return take_rows<JSAMPROW>(jpeg, row_bytes, rows);
}

JBLOCKARRAY take_blocks(j_common_ptr jpeg, int, JDIMENSION blocks, JDIMENSION rows) noexcept {
  return take_rows<JBLOCKROW>(jpeg, std::size_t{blocks} * sizeof(JBLOCK), rows);
}

jvirt_sarray_ptr request_samples(j_common_ptr jpeg, int pool, boolean, JDIMENSION samples, JDIMENSION rows,
                                 JDIMENSION) noexcept {
  return new (take(jpeg, sizeof(jvirt_sarray_control))) jvirt_sarray_control{take_samples(jpeg, pool, samples, rows)};
}

jvirt_barray_ptr request_blocks(j_common_ptr jpeg, int pool, boolean zeroed, JDIMENSION blocks, JDIMENSION rows,
                                JDIMENSION) noexcept {
  return new (take(jpeg, sizeof(jvirt_barray_control)))
      jvirt_barray_control{take_blocks(jpeg, pool, blocks, rows), std::size_t{blocks} * sizeof(JBLOCK),
                           zeroed != FALSE ? 0 : std::numeric_limits<JDIMENSION>::max()};
}

void realize(j_common_ptr) noexcept {}  // they were, when they were requested

JSAMPARRAY access_samples(j_common_ptr, jvirt_sarray_ptr array, JDIMENSION first, JDIMENSION, boolean) noexcept {
  return array->rows + first;
}

JBLOCKARRAY access_blocks(j_common_ptr, jvirt_barray_ptr array, JDIMENSION first, JDIMENSION count, boolean) noexcept {
  for (; array->undefined_from < first + count; ++array->undefined_from) {
    std::memset(array->rows[array->undefined_from], 0, array->row_bytes);
  }
  return array->rows + first;
}

void keep(j_common_ptr, int) noexcept {}

}  // namespace

void take_from_scratch(jpeg_decompress_struct& jpeg, JpegMemory& memory, Scratch& scratch) noexcept {
  memory.own = jpeg.mem;
  memory.scratch = &scratch;
  memory.pub = *jpeg.mem;
  memory.pub.alloc_small = take_object;
  memory.pub.alloc_large = take_object;
  memory.pub.alloc_sarray = take_samples;
  memory.pub.alloc_barray = take_blocks;
  memory.pub.request_virt_sarray = request_samples;
  memory.pub.request_virt_barray = request_blocks;
  memory.pub.realize_virt_arrays = realize;
  memory.pub.access_virt_sarray = access_samples;
  memory.pub.access_virt_barray = access_blocks;
  memory.pub.free_pool = keep;
  jpeg.mem = &memory.pub;
}

void give_back_own_memory(jpeg_decompress_struct& jpeg, const JpegMemory& memory) noexcept {
  if (memory.own != nullptr) jpeg.mem = memory.own;
}

}  // namespace stoker::codec
