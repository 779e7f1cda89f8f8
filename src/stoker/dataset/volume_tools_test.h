// Test tools: the volumes of tests/formats, unpacked, and whole volumes read through their interface.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include "stoker/base/error.h"
#include "stoker/codec/swap_values.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/dataset/volume.h"
#include "stoker/storage/read_whole.h"

namespace stoker::dataset {

// The archives that tests/formats/make_volumes.py made.
inline constexpr const char* kFiles = "volumes-files.tar.gz";
inline constexpr const char* kTiff = "volumes-tiff.tar.gz";
inline constexpr const char* kZarr2 = "volumes-zarr-2.tar.gz";
inline constexpr const char* kZarr3 = "volumes-zarr-3.tar.gz";

// The files of one of them.
struct PackedFile {
  std::string name, content;
};
inline std::vector<PackedFile> unpack_formats(const std::string& archive) {
  const std::string path = std::string(STOKER_FORMATS_FOLDER) + "/" + archive;
  std::string tar;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw Error(ErrorKind::not_found, "no such archive: " + path);
  std::vector<char> block(1 << 16);
  for (int count = 0; (count = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0;) {
    tar.append(block.data(), static_cast<std::size_t>(count));
  }
  gzclose(file);
  std::vector<PackedFile> files;
  for (std::size_t at = 0; at + 512 <= tar.size() && tar[at] != '\0';) {
    const std::size_t bytes = std::stoull(tar.substr(at + 124, 11), nullptr, 8);
    files.push_back({tar.c_str() + at, tar.substr(at + 512, bytes)});
    at += 512 + (bytes + 511) / 512 * 512;
  }
  return files;
}

// A folder with the files of an archive, there as long as the process.
inline const Tree& unpacked_formats(const std::string& archive) {
  static std::vector<std::pair<std::string, std::unique_ptr<Tree>>> all;
  for (const auto& [name, tree] : all) {
    if (name == archive) return *tree;
  }
  auto tree = std::make_unique<Tree>();
  for (const PackedFile& file : unpack_formats(archive)) tree->write(file.name, file.content);
  all.emplace_back(archive, std::move(tree));
  return *all.back().second;
}

inline std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// What locate_chunk and decode_chunk give for one chunk. Throws Error where the chunk cannot be had.
inline std::vector<std::byte> read_chunk(const Volume& volume, std::uint64_t chunk) {
  std::vector<char> text(storage::kLocationText);
  const storage::Location where = volume.locate_chunk(chunk, text);
  std::vector<std::byte> encoded, decoded(volume.info().chunk_bytes());
  codec::Bytes bytes;
  if (where.bytes != 0) {
    const storage::WholeRead read = storage::read_whole(where, encoded);
    if (!read.ok()) throw Error(read.failure.kind, volume.chunk_name(chunk) + ": " + read.failure.text);
    bytes = read.bytes;
    if (bytes.size() != where.bytes) throw Error(ErrorKind::corrupt, volume.chunk_name(chunk) + ": its size changed");
  }
  Budget budget(volume.info().working_bytes + (1 << 20));
  Scratch scratch(&budget);
  const Result result = volume.decode_chunk(chunk, bytes, decoded.data(), scratch);
  if (!result.ok()) throw Error(ErrorKind::corrupt, volume.chunk_name(chunk) + ": " + result.cause);
  return decoded;
}

// All elements in C order, in the machine's byte order.
inline std::vector<std::byte> read_all(const Volume& volume) {
  const VolumeInfo& info = volume.info();
  const std::uint64_t element = info.element_bytes();
  const Extents& n = info.extents;
  std::vector<std::byte> all(n[0] * n[1] * n[2] * element);
  const auto row_at = [&](std::uint64_t z, std::uint64_t y, std::uint64_t x) {
    return all.data() + ((z * n[1] + y) * n[2] + x) * element;
  };
  if (const auto plain = volume.plain()) {
    for (std::uint64_t z = 0; z < n[0]; ++z) {
      for (std::uint64_t y = 0; y < n[1]; ++y) {
        const std::uint64_t offset = plain->offset + z * plain->stride_bytes[0] + y * plain->stride_bytes[1];
        const storage::Read read{offset, {row_at(z, y, 0), n[2] * element}};
        plain->source->read({&read, 1});
      }
    }
    if (plain->swap_bytes) codec::swap_values(all.data(), all.size(), size_of(info.dtype));
    return all;
  }
  const Extents grid = info.grid();
  for (std::uint64_t chunk = 0; chunk < info.chunks(); ++chunk) {
    const std::vector<std::byte> decoded = read_chunk(volume, chunk);
    const Extents at{chunk / (grid[1] * grid[2]) * info.chunk[0], chunk / grid[2] % grid[1] * info.chunk[1],
                     chunk % grid[2] * info.chunk[2]};
    const std::uint64_t columns = std::min(info.chunk[2], n[2] - at[2]) * element;
    for (std::uint64_t z = 0; z < std::min(info.chunk[0], n[0] - at[0]); ++z) {
      for (std::uint64_t y = 0; y < std::min(info.chunk[1], n[1] - at[1]); ++y) {
        std::memcpy(row_at(at[0] + z, at[1] + y, at[2]),
                    decoded.data() + (z * info.chunk[1] + y) * info.chunk[2] * element, columns);
      }
    }
  }
  return all;
}

// The formula of make_volumes.py.
inline std::uint64_t formula(std::uint64_t z, std::uint64_t y, std::uint64_t x) {
  return (z * 1009 + y * 101 + x * 7 + 11) % 65521;
}

inline double value_at(const std::byte* at, DType dtype) {
  const auto read = [at](auto value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  };
  switch (dtype) {
    case DType::u8:
      return read(std::uint8_t{});
    case DType::u16:
      return read(std::uint16_t{});
    case DType::i16:
      return read(std::int16_t{});
    case DType::i32:
      return read(std::int32_t{});
    case DType::f32:
      return read(float{});
    case DType::f64:
      return read(double{});
    default:
      ADD_FAILURE() << "a type that no file of make_volumes.py has";
      return 0;
  }
}

inline double expected_value(DType dtype, std::uint64_t raw) {
  switch (dtype) {
    case DType::u8:
      return static_cast<double>(raw & 0xFF);
    case DType::i16:
      return static_cast<double>(static_cast<std::int16_t>(raw));
    case DType::f32:
    case DType::f64:
      return static_cast<double>(raw) / 8 - 100;
    default:
      return static_cast<double>(raw);
  }
}

// Every element of the volume is what the formula says; `step` of a coarser level.
inline void expect_formula(const Volume& volume, std::uint64_t step = 1) {
  const VolumeInfo& info = volume.info();
  const std::vector<std::byte> all = read_all(volume);
  const std::byte* at = all.data();
  std::uint64_t wrong = 0;
  for (std::uint64_t z = 0; z < info.extents[0]; ++z) {
    for (std::uint64_t y = 0; y < info.extents[1]; ++y) {
      for (std::uint64_t x = 0; x < info.extents[2]; ++x) {
        for (std::uint32_t c = 0; c < info.channels; ++c, at += size_of(info.dtype)) {
          const double wanted = expected_value(info.dtype, formula(z * step, y * step, x * step) + c);
          const double found = value_at(at, info.dtype);
          if (found == wanted) continue;
          if (++wrong == 1)
            ADD_FAILURE() << "at " << z << ", " << y << ", " << x << ": " << found << ", not " << wanted;
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0u) << volume.name();
}

}  // namespace stoker::dataset
