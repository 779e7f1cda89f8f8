#include "stoker/codec/chunk_codec.h"

#include <functional>
#include <string>
#include <vector>

#include <blosc.h>
#include <gtest/gtest.h>
#include <libdeflate.h>
#include <zstd.h>

#include "stoker/codec/crc32c.h"
#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

// 6 x 8 x 10 values of 16 bits.
std::vector<std::byte> elements() {
  std::vector<std::byte> bytes(960);
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    const auto value = static_cast<std::uint16_t>(i * 3 + i / 20);
    std::memcpy(&bytes[i], &value, 2);
  }
  return bytes;
}

ChunkForm form_of(Packing packing) {
  ChunkForm form;
  form.bytes = 960;
  form.value_bytes = 2;
  form.packing = packing;
  return form;
}

File packed_by(Packing packing, Bytes content) {
  std::vector<std::byte> out(content.size() * 2 + 4096);
  std::size_t size = 0;
  libdeflate_compressor* const deflate = libdeflate_alloc_compressor(6);
  switch (packing) {
    case Packing::none:
      std::copy(content.begin(), content.end(), out.begin());
      size = content.size();
      break;
    case Packing::gzip:
      size = libdeflate_gzip_compress(deflate, content.data(), content.size(), out.data(), out.size());
      break;
    case Packing::zlib:
      size = libdeflate_zlib_compress(deflate, content.data(), content.size(), out.data(), out.size());
      break;
    case Packing::zstd:
      size = ZSTD_compress(out.data(), out.size(), content.data(), content.size(), 3);
      break;
    case Packing::blosc:
      size = static_cast<std::size_t>(
          blosc_compress_ctx(5, BLOSC_SHUFFLE, 2, content.size(), content.data(), out.data(), out.size(), "lz4", 0, 1));
      break;
  }
  libdeflate_free_compressor(deflate);
  return File().bytes(Bytes(out).first(size));
}

Result decode_into(const ChunkForm& form, Bytes encoded, std::vector<std::byte>& into) {
  Budget budget(1 << 20);
  Scratch scratch(&budget);
  into.assign(form.bytes, std::byte{0xAB});
  return decode_packed(form, encoded, into.data(), scratch);
}

constexpr Packing kEveryPacking[] = {Packing::none, Packing::gzip, Packing::zlib, Packing::zstd, Packing::blosc};

TEST(ChunkCodec, UnpacksWhatWasPacked) {
  for (const Packing packing : kEveryPacking) {
    std::vector<std::byte> into;
    ASSERT_TRUE(decode_into(form_of(packing), packed_by(packing, elements()), into).ok());
    EXPECT_EQ(into, elements());
  }
}

TEST(ChunkCodec, SumsAreCheckedOutsideAndInside) {
  const auto summed = [](const File& content) { return File().bytes(Bytes(content)).little(crc32c(content)); };
  for (const Packing packing : kEveryPacking) {
    ChunkForm form = form_of(packing);
    form.inner_sums = packing == Packing::none ? 0 : 1;
    form.outer_sums = 2;
    const File inside = packing == Packing::none ? File().bytes(elements()) : summed(File().bytes(elements()));
    File whole = summed(summed(packed_by(packing, inside)));
    std::vector<std::byte> into;
    ASSERT_TRUE(decode_into(form, whole, into).ok());
    EXPECT_EQ(into, elements());
    whole[whole.size() - 1] ^= std::byte{1};
    EXPECT_EQ(decode_into(form, whole, into).code, Code::corrupt);
    EXPECT_EQ(decode_into(form, File().zeros(3), into).code, Code::truncated);
  }
}

TEST(ChunkCodec, ValuesOfTheOtherByteOrderAreTurned) {
  for (const Packing packing : kEveryPacking) {
    ChunkForm form = form_of(packing);
    form.swap_bytes = true;
    std::vector<std::byte> into;
    ASSERT_TRUE(decode_into(form, packed_by(packing, elements()), into).ok());
    EXPECT_EQ(into[2], elements()[3]);
    EXPECT_EQ(into[3], elements()[2]);
  }
}

TEST(ChunkCodec, AxesInAnotherOrderAreReordered) {
  // Stored as x, z, y of a chunk of 2 x 3 x 4 values.
  ChunkForm form;
  form.value_bytes = 1;
  form.bytes = 24;
  form.rank = 3;
  form.stored = {4, 2, 3};
  form.step_bytes = {1, 12, 4};
  File stored;
  for (int x = 0; x < 4; ++x) {
    for (int z = 0; z < 2; ++z) {
      for (int y = 0; y < 3; ++y) stored.bytes({z * 12 + y * 4 + x});
    }
  }
  std::vector<std::byte> into;
  ASSERT_TRUE(decode_into(form, stored, into).ok());
  for (int i = 0; i < 24; ++i) EXPECT_EQ(static_cast<int>(into[static_cast<std::size_t>(i)]), i);
}

TEST(ChunkCodec, OtherSizesThanTheShapeAreDamage) {
  for (const Packing packing : kEveryPacking) {
    std::vector<std::byte> into;
    std::vector<std::byte> content = elements();
    content.resize(958);
    EXPECT_FALSE(decode_into(form_of(packing), packed_by(packing, content), into).ok());
    content.resize(962);
    EXPECT_FALSE(decode_into(form_of(packing), packed_by(packing, content), into).ok());
  }
}

// A blosc chunk of several blocks, and the form of it.
std::vector<std::byte> many_blocks(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i / 7 % 11);
  return bytes;
}
File in_blocks(const std::vector<std::byte>& content) {
  std::vector<std::byte> out(content.size() + BLOSC_MAX_OVERHEAD);
  const int size = blosc_compress_ctx(5, BLOSC_SHUFFLE, 2, content.size(), content.data(), out.data(), out.size(),
                                      "zstd", content.size() / 16, 1);
  return File().bytes(Bytes(out).first(static_cast<std::size_t>(size)));
}

TEST(ChunkCodec, APieceNeedsItsOwnBlocksOnly) {
  const std::vector<std::byte> content = many_blocks(60'000);
  ChunkForm form = form_of(Packing::blosc);
  form.bytes = content.size();
  const File file = in_blocks(content);
  const Bytes packed = file;
  const Bytes head = packed.first(std::min(kPieceHead, packed.size()));
  for (std::size_t first = 0; first < content.size(); first += 5000) {
    const std::size_t count = std::min<std::size_t>(7000, content.size() - first);
    PackedRun run;
    ASSERT_TRUE(find_piece(form, head, packed.size(), first, count, run).ok());
    EXPECT_LT(run.bytes, packed.size() / 2);
    std::vector<std::byte> sparse(packed.size(), std::byte{0x55}), piece(count);
    std::copy(head.begin(), head.end(), sparse.begin());
    const Bytes needed = packed.subspan(run.first, run.bytes);
    std::copy(needed.begin(), needed.end(), sparse.begin() + static_cast<std::ptrdiff_t>(run.first));
    ASSERT_TRUE(decode_piece(form, sparse, first, piece).ok());
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), content.begin() + static_cast<std::ptrdiff_t>(first)));
  }
}

TEST(ChunkCodec, APieceOfADamagedChunkStaysInside) {
  ChunkForm form = form_of(Packing::blosc);
  form.bytes = many_blocks(6000).size();
  const File file = in_blocks(many_blocks(6000));
  const auto look = [&](Bytes bytes) {
    PackedRun run;
    std::vector<std::byte> piece(1000);
    if (find_piece(form, bytes.first(std::min(kPieceHead, bytes.size())), bytes.size(), 2000, 1000, run).ok()) {
      EXPECT_LE(run.first, bytes.size());
      EXPECT_LE(run.bytes, bytes.size() - run.first);
    }
    (void)decode_piece(form, bytes, 2000, piece);
  };
  at_every_truncation(file, look);
  at_every_flipped_bit(file, look);
}

TEST(ChunkCodec, EveryTruncationFails) {
  for (const Packing packing : kEveryPacking) {
    const File file = packed_by(packing, elements());
    at_every_truncation(file, [packing](Bytes part) {
      std::vector<std::byte> into;
      EXPECT_FALSE(decode_into(form_of(packing), part, into).ok()) << part.size();
    });
  }
}

TEST(ChunkCodec, EveryFlippedBitStaysInsideTheChunk) {
  for (const Packing packing : kEveryPacking) {
    at_every_flipped_bit(packed_by(packing, elements()), [packing](Bytes bytes) {
      std::vector<std::byte> into;
      (void)decode_into(form_of(packing), bytes, into);
    });
  }
}

TEST(ChunkCodec, TakesNoMoreMemoryThanItSays) {
  ChunkForm form = form_of(Packing::zstd);
  form.rank = 1;
  form.stored = {480};
  form.step_bytes = {2};
  EXPECT_GE(working_bytes(form), 960u);
  std::vector<std::byte> room(working_bytes(form) + 4096), into(960);
  Scratch scratch;
  scratch.work_in(std::span(room).first(100));
  EXPECT_EQ(decode_packed(form, packed_by(Packing::zstd, elements()), into.data(), scratch).code, Code::no_memory);
  scratch.work_in(room);
  EXPECT_TRUE(decode_packed(form, packed_by(Packing::zstd, elements()), into.data(), scratch).ok());
  EXPECT_EQ(into, elements());
}

TEST(ChunkCodec, AHeaderOfBloscThatLiesIsRefusedBeforeMemoryIsTouched) {
  const File good = packed_by(Packing::blosc, elements());
  const auto with = [&](std::size_t at, std::uint32_t value) {
    File file = good;
    std::memcpy(&file[at], &value, 4);
    std::vector<std::byte> into;
    return decode_into(form_of(Packing::blosc), file, into);
  };
  EXPECT_EQ(with(4, 0x7FFFFFFF).code, Code::corrupt);  // nbytes
  EXPECT_EQ(with(8, 0x7FFFFFFF).code, Code::corrupt);  // blocksize
  EXPECT_EQ(with(12, 5).code, Code::corrupt);          // cbytes
  EXPECT_EQ(with(12, 0x7FFFFFFF).code, Code::truncated);
  File other = good;
  other[0] = std::byte{5};
  std::vector<std::byte> into;
  EXPECT_EQ(decode_into(form_of(Packing::blosc), other, into).code, Code::unsupported);
}

}  // namespace
}  // namespace stoker::codec
