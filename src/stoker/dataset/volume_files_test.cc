// Every format, as other programs wrote it: tests/formats/make_volumes.py.
#include "stoker/dataset/volume_tools_test.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::dataset {
namespace {

constexpr Extents kSmallVolume{5, 6, 7}, kLargeVolume{3, 20, 36};

struct Known {
  const char* archive;
  const char* path;
  DType dtype;
  Extents extents;
  std::uint32_t channels;
  bool is_plain;
  const char* format;
};

const Known kKnown[] = {
    {kFiles, "u2.npy", DType::u16, kSmallVolume, 1, true, "npy"},
    {kFiles, "big-endian.npy", DType::i32, kSmallVolume, 1, true, "npy"},
    {kFiles, "channels.npy", DType::f32, kSmallVolume, 3, true, "npy"},
    {kFiles, "flat.npy", DType::u8, {1, 6, 7}, 1, true, "npy"},
    {kFiles, "u1.nii", DType::u8, kSmallVolume, 1, true, "NIfTI-1"},
    {kFiles, "i2.nii", DType::i16, kSmallVolume, 1, true, "NIfTI-1"},
    {kFiles, "f4.nii", DType::f32, kSmallVolume, 1, true, "NIfTI-1"},
    {kFiles, "u2-big-endian.nii", DType::u16, kSmallVolume, 1, true, "NIfTI-1"},
    {kFiles, "version-2.nii", DType::u16, kSmallVolume, 1, true, "NIfTI-2"},
    {kFiles, "scaled.nii.gz", DType::i16, kSmallVolume, 1, true, "NIfTI-1, gzip"},
    {kFiles, "one-time.nii", DType::i16, kSmallVolume, 1, true, "NIfTI-1"},
    {kTiff, "plain.tif", DType::u16, kSmallVolume, 1, true, "TIFF, 5 pages, uncompressed"},
    {kTiff, "plain-big-endian.tif", DType::u16, kSmallVolume, 1, true, "TIFF, 5 pages, uncompressed"},
    {kTiff, "plain-big.tif", DType::f32, kSmallVolume, 1, true, "TIFF, 5 pages, uncompressed"},
    {kTiff, "imagej.tif", DType::u16, kSmallVolume, 1, true, "TIFF, 5 pages, uncompressed"},
    {kTiff, "lzw.tif", DType::u16, kSmallVolume, 1, false, "TIFF, 5 pages, lzw"},
    {kTiff, "deflate.tif", DType::u16, kSmallVolume, 1, false, "TIFF, 5 pages, deflate"},
    {kTiff, "packbits.tif", DType::u16, kSmallVolume, 1, false, "TIFF, 5 pages, packbits"},
    {kTiff, "zstd.tif", DType::u16, kSmallVolume, 1, false, "TIFF, 5 pages, zstd"},
    {kTiff, "tiles.tif", DType::u16, kLargeVolume, 1, false, "TIFF, 3 pages, deflate, tiles"},
    {kTiff, "tiles-big-endian.tif", DType::u16, kLargeVolume, 1, false, "TIFF, 3 pages, deflate, tiles"},
    {kTiff, "tiles-raw.tif", DType::u16, kLargeVolume, 1, false, "TIFF, 3 pages, uncompressed, tiles"},
    {kTiff, "real.tif", DType::f32, kLargeVolume, 1, false, "TIFF, 3 pages, deflate"},
    {kTiff, "real-big-endian.tif", DType::f32, kLargeVolume, 1, false, "TIFF, 3 pages, lzw"},
    {kTiff, "color.tif", DType::u8, kSmallVolume, 3, false, "TIFF, 5 pages, deflate"},
    {kTiff, "pillow-lzw.tif", DType::u8, kLargeVolume, 1, false, "TIFF, 3 pages, lzw"},
    {kTiff, "tif-slices", DType::u16, {12, 6, 7}, 1, false, "12 TIFF files, uncompressed"},
    {kTiff, "png-slices", DType::u16, {12, 6, 7}, 1, false, "12 png files"},
    {kZarr2, "v2-raw", DType::u16, kSmallVolume, 1, false, "zarr v2, uncompressed"},
    {kZarr2, "v2-slashes", DType::u16, kSmallVolume, 1, false, "zarr v2, uncompressed"},
    {kZarr2, "v2-big-endian", DType::i32, kSmallVolume, 1, false, "zarr v2, uncompressed"},
    {kZarr2, "v2-fortran", DType::u16, kSmallVolume, 1, false, "zarr v2, uncompressed"},
    {kZarr2, "v2-zlib", DType::u16, kSmallVolume, 1, false, "zarr v2, zlib"},
    {kZarr2, "v2-gzip", DType::f32, kSmallVolume, 1, false, "zarr v2, gzip"},
    {kZarr2, "v2-zstd", DType::f64, kSmallVolume, 1, false, "zarr v2, zstd"},
    {kZarr2, "v2-blosc-lz4-0", DType::u16, kLargeVolume, 1, false, "zarr v2, blosc-lz4"},
    {kZarr2, "v2-blosc-lz4-1", DType::u16, kLargeVolume, 1, false, "zarr v2, blosc-lz4"},
    {kZarr2, "v2-blosc-lz4-2", DType::u16, kLargeVolume, 1, false, "zarr v2, blosc-lz4"},
    {kZarr2, "v2-blosc-zstd-1", DType::u16, kLargeVolume, 1, false, "zarr v2, blosc-zstd"},
    {kZarr2, "v2-blosc-zlib-1", DType::u16, kLargeVolume, 1, false, "zarr v2, blosc-zlib"},
    {kZarr2, "v2-blosc-blosclz-1", DType::u16, kLargeVolume, 1, false, "zarr v2, blosc-blosclz"},
    {kZarr2, "v2-channels", DType::u8, kSmallVolume, 3, false, "zarr v2, uncompressed"},
    {kZarr2, "v2-flat", DType::u16, {1, 6, 7}, 1, false, "zarr v2, uncompressed"},
    {kZarr3, "v3-raw", DType::u16, kSmallVolume, 1, false, "zarr v3, uncompressed"},
    {kZarr3, "v3-dots", DType::u16, kSmallVolume, 1, false, "zarr v3, uncompressed"},
    {kZarr3, "v3-keys-of-v2", DType::u16, kSmallVolume, 1, false, "zarr v3, uncompressed"},
    {kZarr3, "v3-big-endian", DType::u16, kSmallVolume, 1, false, "zarr v3, uncompressed"},
    {kZarr3, "v3-transposed", DType::u16, kSmallVolume, 1, false, "zarr v3, uncompressed"},
    {kZarr3, "v3-gzip", DType::u16, kSmallVolume, 1, false, "zarr v3, gzip"},
    {kZarr3, "v3-zstd-sum", DType::f32, kSmallVolume, 1, false, "zarr v3, zstd"},
    {kZarr3, "v3-sum-zstd", DType::u16, kSmallVolume, 1, false, "zarr v3, zstd"},
    {kZarr3, "v3-blosc-zstd", DType::u16, kLargeVolume, 1, false, "zarr v3, blosc-zstd"},
    {kZarr3, "v3-shards", DType::u16, kLargeVolume, 1, false, "zarr v3, blosc-lz4, shards"},
    {kZarr3, "v3-shards-start", DType::u16, kSmallVolume, 1, false, "zarr v3, zstd, shards"},
};

TEST(VolumeFiles, EveryFormatHasTheValuesThatItsOwnLibraryWrote) {
  for (const Known& known : kKnown) {
    SCOPED_TRACE(known.path);
    const auto volume = open_volume(unpacked_formats(known.archive).at(known.path));
    EXPECT_EQ(volume->info().dtype, known.dtype);
    EXPECT_EQ(volume->info().extents, known.extents);
    EXPECT_EQ(volume->info().channels, known.channels);
    EXPECT_EQ(volume->plain().has_value(), known.is_plain);
    EXPECT_EQ(volume->info().format, known.format);
    expect_formula(*volume);
  }
}

TEST(VolumeFiles, PlanesOfAChunkAreThoseOfTheWholeChunk) {
  std::vector<char> text(storage::kLocationText);
  std::size_t stored = 0, unpacked = 0;
  for (const Known& known : kKnown) {
    SCOPED_TRACE(known.path);
    const auto volume = open_volume(unpacked_formats(known.archive).at(known.path));
    if (volume->pieces() == codec::Pieces::none) continue;
    const VolumeInfo& info = volume->info();
    const std::uint64_t plane = info.chunk[1] * info.chunk[2] * info.element_bytes(), first = info.chunk[0] / 2;
    for (std::uint64_t chunk = 0; chunk < info.chunks(); ++chunk) {
      const std::vector<std::byte> whole = read_chunk(*volume, chunk);
      const storage::Location where = volume->locate_chunk(chunk, text);
      std::vector<std::byte> planes(info.chunk_bytes() - first * plane);
      if (volume->pieces() == codec::Pieces::stored) {
        ++stored;
        ASSERT_TRUE(storage::read_part(where, first * plane, planes).ok());
      } else {
        ++unpacked;
        std::vector<std::byte> encoded;
        ASSERT_TRUE(storage::read_whole(where, encoded).ok());
        ASSERT_TRUE(volume->decode_planes(encoded, first * plane, planes).ok());
        // The rest of the bytes does not matter.
        const std::size_t head = std::min(codec::kPieceHead, encoded.size());
        codec::PackedRun run;
        ASSERT_TRUE(
            volume->find_planes(codec::Bytes(encoded).first(head), encoded.size(), first * plane, planes.size(), run)
                .ok());
        for (std::size_t i = head; i < encoded.size(); ++i) {
          if (i < run.first || i >= run.first + run.bytes) encoded[i] = std::byte{0x55};
        }
        std::fill(planes.begin(), planes.end(), std::byte{0x55});
        ASSERT_TRUE(volume->decode_planes(encoded, first * plane, planes).ok());
        encoded.resize(encoded.size() - 1);
        std::vector<std::byte> unused(planes.size());
        EXPECT_EQ(volume->decode_planes(encoded, first * plane, unused).code, Code::truncated);
      }
      EXPECT_TRUE(std::equal(planes.begin(), planes.end(), whole.begin() + static_cast<std::ptrdiff_t>(first * plane)));
    }
  }
  EXPECT_GT(stored, 0u);
  EXPECT_GT(unpacked, 0u);
}

TEST(VolumeFiles, EveryStorageGivesTheSameValues) {
  for (const auto storage : {storage::Storage::buffered, storage::Storage::direct, storage::Storage::mmap}) {
    VolumeOptions options;
    options.storage = storage;
    for (const char* const path : {"u2.npy", "i2.nii"})
      expect_formula(*open_volume(unpacked_formats(kFiles).at(path), options));
    for (const char* const path : {"plain.tif", "tiles.tif"}) {
      expect_formula(*open_volume(unpacked_formats(kTiff).at(path), options));
    }
    expect_formula(*open_volume(unpacked_formats(kZarr3).at("v3-shards"), options));
  }
}

TEST(VolumeFiles, AStoreGivesTheSameValuesAsAFolder) {
  storage::MemoryStore store("vault");
  for (const char* const archive : {kFiles, kTiff, kZarr2, kZarr3}) {
    for (const PackedFile& file : unpack_formats(archive)) store.put("bucket/" + file.name, file.content);
  }
  for (const Known& known : kKnown) {
    SCOPED_TRACE(known.path);
    const auto volume = open_volume(store.address(std::string("bucket/") + known.path));
    EXPECT_EQ(volume->info().extents, known.extents);
    EXPECT_EQ(volume->info().format, known.format);
    if (!volume->info().format.ends_with("gzip") || !known.is_plain) {  // .nii.gz lies in memory
      ASSERT_EQ(volume->backends().size(), 1u);
      EXPECT_EQ(volume->backends()[0], &store);
    }
    expect_formula(*volume);
  }
}

TEST(VolumeFiles, LzwWithMoreCodesThanItsTableIsRead) {
  const auto volume = open_volume(unpacked_formats(kTiff).at("pillow-noise-lzw.tif"));
  ASSERT_EQ(volume->info().extents, (Extents{1, 80, 90}));
  const std::vector<std::byte> all = read_all(*volume);
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(static_cast<std::uint64_t>(all[i]), (i * 2654435761 >> 13) & 7) << i;
  }
}

TEST(VolumeFiles, AbsentChunksHaveTheFillValue) {
  for (const char* const path : {"v3-absent", "v3-absent-shards"}) {
    SCOPED_TRACE(path);
    const auto volume = open_volume(unpacked_formats(kZarr3).at(path));
    std::vector<char> text(storage::kLocationText);
    EXPECT_NE(volume->locate_chunk(0, text).bytes, 0u);
    EXPECT_EQ(volume->locate_chunk(1, text).bytes, 0u);
    const std::vector<std::byte> all = read_all(*volume);
    EXPECT_EQ(value_at(all.data(), DType::f32), expected_value(DType::f32, formula(0, 0, 0)));
    EXPECT_EQ(value_at(all.data() + 6 * 4, DType::f32), 2.5);
    EXPECT_EQ(value_at(all.data() + (all.size() - 4), DType::f32), 2.5);
  }
}

TEST(VolumeFiles, LevelsOfOmeZarrHaveTheirOwnSpacing) {
  for (const char* const path : {"ome-0.4", "ome-0.5"}) {
    SCOPED_TRACE(path);
    VolumeOptions options;
    const std::string address = unpacked_formats(kZarr3).at(path);
    const auto finest = open_volume(address, options);
    EXPECT_EQ(finest->info().extents, kSmallVolume);
    EXPECT_EQ(finest->info().spacing, (std::array<double, 3>{0.002, 0.0005, 0.00025}));
    expect_formula(*finest);
    options.level = 1;
    const auto coarser = open_volume(address, options);
    EXPECT_EQ(coarser->info().extents, (Extents{3, 3, 4}));
    EXPECT_EQ(coarser->info().spacing, (std::array<double, 3>{0.004, 0.001, 0.0005}));
    expect_formula(*coarser, 2);
    options.level = 2;
    EXPECT_TRUE(mentions(error_of([&] { open_volume(address, options); }), "it has 2 levels"));
    options.level = 0;
    options.member = "1";
    EXPECT_EQ(open_volume(address, options)->info().extents, (Extents{3, 3, 4}));
  }
}

TEST(VolumeFiles, NiftiHasItsSpacingInMillimetresAndItsScale) {
  const auto plain = open_volume(unpacked_formats(kFiles).at("i2.nii"));
  EXPECT_EQ(plain->info().spacing, (std::array<double, 3>{3, 0.75, 0.5}));
  EXPECT_EQ(plain->info().slope, 1);
  const auto scaled = open_volume(unpacked_formats(kFiles).at("scaled.nii.gz"));
  EXPECT_EQ(scaled->info().slope, 2);
  EXPECT_EQ(scaled->info().intercept, -1024);
  EXPECT_GT(scaled->memory_bytes(), 0u);
}

TEST(VolumeFiles, AnArchiveOfArraysNeedsTheNameOfOne) {
  for (const char* const path : {"stored.npz", "deflated.npz"}) {
    SCOPED_TRACE(path);
    const std::string address = unpacked_formats(kFiles).at(path);
    EXPECT_TRUE(mentions(error_of([&] { open_volume(address); }), "it holds `image`, `mask`"));
    VolumeOptions options;
    options.member = "mask";
    const auto mask = open_volume(address, options);
    EXPECT_EQ(mask->info().dtype, DType::u8);
    expect_formula(*mask);
    options.member = "image";
    expect_formula(*open_volume(address, options));
    options.member = "label";
    EXPECT_TRUE(mentions(error_of([&] { open_volume(address, options); }), "cannot find the array `label`"));
  }
}

TEST(VolumeFiles, WhatIsNotReadIsRefusedByName) {
  const std::tuple<const char*, const char*, const char*> refused[] = {
      {kFiles, "fortran.npy", "Fortran order"},
      {kFiles, "over-time.nii", "a series over time"},
      {kTiff, "two-sizes.tif", "page 1 is 6 x 7 uint16, and page 2 is 4 x 7 uint16"},
      {kTiff, "jpeg.tif", "JPEG compression in a TIFF"},
      {kZarr2, "v2-lzma", "chunks compressed by `lzma`"},
      {kZarr2, "v2-delta", "the filter `delta`"}};
  for (const auto& [archive, path, words] : refused) {
    const std::string address = unpacked_formats(archive).at(path);
    const auto error = error_of([&] { open_volume(address); });
    ASSERT_TRUE(error) << path;
    EXPECT_EQ(error->kind(), ErrorKind::unsupported) << path;
    EXPECT_TRUE(mentions(error, words)) << error->message();
    EXPECT_TRUE(mentions(error, path)) << error->message();
  }
}

}  // namespace
}  // namespace stoker::dataset
