#include "stoker/codec/chunk_codec.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include <blosc.h>
#include <zstd.h>

#include "stoker/codec/byte_order.h"
#include "stoker/codec/crc32c.h"
#include "stoker/codec/inflate.h"
#include "stoker/codec/swap_values.h"
#include "stoker/codec/unpack_zstd.h"

namespace stoker::codec {
namespace {

constexpr std::size_t kSumBytes = 4;

Result check_length(std::size_t written, std::size_t wanted) noexcept {
  if (written == wanted) return {};
  return failed(Code::corrupt, "the chunk unpacks to fewer bytes than its shape has");
}

Result unpack_deflate(Wrapper wrapper, Bytes packed, std::span<std::byte> into) noexcept {
  std::size_t written = 0;
  switch (inflate(wrapper, packed, into, written)) {
    case Inflated::ok:
      break;
    case Inflated::bad_data:
      return failed(Code::corrupt, wrapper == Wrapper::gzip ? "damaged gzip data" : "damaged zlib data");
    case Inflated::more_output:
      return failed(Code::corrupt, "the chunk unpacks to more bytes than its shape has");
    case Inflated::no_memory:
      return failed(Code::no_memory, "no room to inflate the chunk");
  }
  return check_length(written, into.size());
}

// libblosc reads sizes from the 16 bytes of the header: nothing is handed to it before they agree with the chunk of
// `bytes` bytes.
Result check_blosc(Bytes packed, std::uint64_t size, std::uint64_t bytes) noexcept {
  if (packed.size() < BLOSC_MIN_HEADER_LENGTH) return failed(Code::truncated, "shorter than a blosc header", 0);
  if (static_cast<std::uint8_t>(packed[0]) > BLOSC_VERSION_FORMAT) {
    return failed(Code::unsupported, "a chunk of blosc2, which this version does not read", 0);
  }
  if (little32(&packed[12]) > size) return failed(Code::truncated, "shorter than its blosc header says", size);
  std::size_t unpacked = 0;
  if (little32(&packed[12]) != size || blosc_cbuffer_validate(packed.data(), size, &unpacked) != 0) {
    return failed(Code::corrupt, "the blosc header contradicts itself", 0);
  }
  if (unpacked != bytes) {
    return failed(Code::corrupt,
                  unpacked > bytes ? "the chunk unpacks to more bytes than its shape has"
                                   : "the chunk unpacks to fewer bytes than its shape has",
                  4);
  }
  return {};
}

Result unpack_blosc(Bytes packed, std::span<std::byte> into) noexcept {
  if (const Result result = check_blosc(packed, packed.size(), into.size()); !result.ok()) return result;
  const int written = blosc_decompress_ctx(packed.data(), into.data(), into.size(), /*numinternalthreads=*/1);
  if (written == -5) return failed(Code::unsupported, "packed by a compressor that this libblosc was built without", 2);
  if (written < 0 || static_cast<std::size_t>(written) != into.size()) {
    return failed(Code::corrupt, "damaged blosc data");
  }
  return {};
}

Result unpack(Packing packing, Bytes packed, std::span<std::byte> into) noexcept {
  switch (packing) {
    case Packing::none:
      if (packed.size() != into.size()) {
        return failed(packed.size() < into.size() ? Code::truncated : Code::corrupt,
                      packed.size() < into.size() ? "the chunk has fewer bytes than its shape"
                                                  : "the chunk has more bytes than its shape",
                      packed.size());
      }
      if (!into.empty()) std::memcpy(into.data(), packed.data(), into.size());
      return {};
    case Packing::gzip:
      return unpack_deflate(Wrapper::gzip, packed, into);
    case Packing::zlib:
      return unpack_deflate(Wrapper::zlib, packed, into);
    case Packing::zstd: {
      std::size_t written = 0;
      if (const Result result = unpack_zstd(packed, into, written); !result.ok()) return result;
      return check_length(written, into.size());
    }
    case Packing::blosc:
      return unpack_blosc(packed, into);
  }
  return failed(Code::unsupported, "a packing that this version does not read");
}

template <typename T>
void spread(const ChunkForm& form, const std::byte* from, std::byte* into) noexcept {
  std::array<std::uint64_t, kMaxAxes> at{};
  const std::size_t last = form.rank - 1u;
  const std::uint64_t step = form.step_bytes[last];
  std::byte* row = into;
  for (;;) {
    std::byte* out = row;
    for (std::uint64_t i = 0; i < form.stored[last]; ++i, out += step, from += sizeof(T)) {
      std::memcpy(out, from, sizeof(T));
    }
    std::size_t axis = last;
    for (;;) {
      if (axis == 0) return;
      --axis;
      row += form.step_bytes[axis];
      if (++at[axis] < form.stored[axis]) break;
      row -= form.step_bytes[axis] * form.stored[axis];
      at[axis] = 0;
    }
  }
}

void reorder(const ChunkForm& form, const std::byte* from, std::byte* into) noexcept {
  switch (form.value_bytes) {
    case 1:
      return spread<std::uint8_t>(form, from, into);
    case 2:
      return spread<std::uint16_t>(form, from, into);
    case 4:
      return spread<std::uint32_t>(form, from, into);
    default:
      return spread<std::uint64_t>(form, from, into);
  }
}

}  // namespace

Result check_sum(Bytes& bytes) noexcept {
  if (bytes.size() < kSumBytes) return failed(Code::truncated, "shorter than its checksum", bytes.size());
  const Bytes content = bytes.first(bytes.size() - kSumBytes);
  if (crc32c(content) != little32(bytes.data() + content.size())) {
    return failed(Code::corrupt, "the checksum (CRC32C) differs", content.size());
  }
  bytes = content;
  return {};
}

Pieces pieces_of(const ChunkForm& form) noexcept {
  if (form.rank != 0 || form.inner_sums != 0 || form.outer_sums != 0) return Pieces::none;
  if (form.packing == Packing::none && !form.swap_bytes) return Pieces::stored;
  return form.packing == Packing::blosc ? Pieces::unpacked : Pieces::none;
}

// Behind the header stands where each block begins. Blocks lie in any order, one behind another.
Result find_piece(const ChunkForm& form, Bytes head, std::uint64_t packed, std::uint64_t first, std::uint64_t count,
                  PackedRun& run) noexcept {
  if (const Result result = check_blosc(head, packed, form.bytes); !result.ok()) return result;
  run = {0, packed};
  const std::uint64_t block = little32(&head[8]);
  const bool is_copied = (static_cast<unsigned>(head[2]) & BLOSC_MEMCPYED) != 0;
  if (is_copied || block == 0 || count == 0 || first + count > form.bytes) return {};
  const std::uint64_t blocks = (form.bytes - 1) / block + 1, table = BLOSC_MIN_HEADER_LENGTH + 4 * blocks;
  if (table > head.size()) return {};
  const auto begin_of = [&](std::uint64_t i) {
    return std::uint64_t{little32(&head[BLOSC_MIN_HEADER_LENGTH + 4 * i])};
  };
  std::uint64_t begin = packed, end = 0;
  for (std::uint64_t i = first / block; i <= (first + count - 1) / block; ++i) {
    const std::uint64_t at = begin_of(i);
    if (at < table || at >= packed) return failed(Code::corrupt, "a block begins outside of the chunk", table);
    std::uint64_t next = packed;
    for (std::uint64_t other = 0; other < blocks; ++other) {
      if (begin_of(other) > at) next = std::min(next, begin_of(other));
    }
    begin = std::min(begin, at);
    end = std::max(end, next);
  }
  run = {begin, end - begin};
  return {};
}

Result decode_piece(const ChunkForm& form, Bytes encoded, std::uint64_t first, std::span<std::byte> into) noexcept {
  if (const Result result = check_blosc(encoded, encoded.size(), form.bytes); !result.ok()) return result;
  const auto type_bytes = static_cast<std::uint64_t>(encoded[3]);
  if (type_bytes == 0 || first % type_bytes != 0 || into.size() % type_bytes != 0 ||
      into.size() / type_bytes > INT_MAX || first / type_bytes > INT_MAX) {
    return failed(Code::corrupt, "the blosc header names a type of another size", 3);
  }
  const int written = blosc_getitem(encoded.data(), static_cast<int>(first / type_bytes),
                                    static_cast<int>(into.size() / type_bytes), into.data());
  if (written == -5) return failed(Code::unsupported, "packed by a compressor that this libblosc was built without", 2);
  if (written < 0 || static_cast<std::size_t>(written) != into.size()) {
    return failed(Code::corrupt, "damaged blosc data");
  }
  if (form.swap_bytes) swap_values(into.data(), into.size(), form.value_bytes);
  return {};
}

std::uint64_t working_bytes(const ChunkForm& form) noexcept {
  if (form.rank == 0 && form.inner_sums == 0) return 0;
  return Scratch::rounded(form.bytes + kSumBytes * form.inner_sums);
}

Result decode_packed(const ChunkForm& form, Bytes encoded, std::byte* into, Scratch& scratch) noexcept {
  for (int i = 0; i < form.outer_sums; ++i) {
    if (const Result result = check_sum(encoded); !result.ok()) return result;
  }
  if (form.rank == 0 && form.inner_sums == 0) {
    if (form.packing == Packing::none && form.swap_bytes && encoded.size() == form.bytes) {
      swap_values(encoded.data(), into, form.bytes, form.value_bytes);
      return {};
    }
    if (const Result result = unpack(form.packing, encoded, {into, form.bytes}); !result.ok()) return result;
    if (form.swap_bytes) swap_values(into, form.bytes, form.value_bytes);
    return {};
  }
  const std::span<std::byte> room = scratch.take(form.bytes + kSumBytes * form.inner_sums);
  if (room.data() == nullptr) return failed(Code::no_memory, "no room to unpack the chunk");
  if (const Result result = unpack(form.packing, encoded, room); !result.ok()) return result;
  Bytes elements = room;
  for (int i = 0; i < form.inner_sums; ++i) {
    if (const Result result = check_sum(elements); !result.ok()) return result;
  }
  if (form.rank == 0) {
    std::memcpy(into, elements.data(), form.bytes);
  } else {
    reorder(form, elements.data(), into);
  }
  if (form.swap_bytes) swap_values(into, form.bytes, form.value_bytes);
  return {};
}

std::string packing_versions() {
  return std::string("blosc ") + blosc_get_version_string() + ", zstd " + ZSTD_versionString();
}

}  // namespace stoker::codec
