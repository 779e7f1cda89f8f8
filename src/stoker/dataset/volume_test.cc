// How volumes behave where files are damaged, missing, changed or made to mislead.
#include <filesystem>

#include "stoker/base/json.h"
#include "stoker/dataset/inflated_source.h"
#include "stoker/dataset/volume_tools_test.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::dataset {
namespace {

// A copy of a volume of tests/formats that a test may damage.
class DamagedVolume {
 public:
  DamagedVolume(const char* archive, const std::string& path) : path_(path) {
    for (const PackedFile& file : unpack_formats(archive)) {
      if (file.name == path || file.name.starts_with(path + "/")) tree_.write(file.name, file.content);
    }
  }
  std::string address() const { return tree_.at(path_); }
  void change(const std::string& name, const std::function<void(std::string&)>& how) const {
    const std::string path = name.empty() ? path_ : path_ + "/" + name;
    std::string content = contents_of(tree_.at(path));
    how(content);
    tree_.write(path, content);
  }
  void remove(const std::string& name) const { tree_.remove(path_ + "/" + name); }
  void make_folder(const std::string& name) const { tree_.make_folder(path_ + "/" + name); }

 private:
  Tree tree_;
  std::string path_;
};

std::optional<Error> error_of_opening(const std::string& address, const VolumeOptions& options = {}) {
  return error_of([&] { open_volume(address, options); });
}
std::optional<Error> error_of_reading(const std::string& address) {
  const auto volume = open_volume(address);
  return error_of([&] { read_all(*volume); });
}

TEST(Volume, AnAddressThatIsNotThereSaysWhatAVolumeIs) {
  const auto error = error_of_opening("/nowhere/scan.nii");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::not_found);
  EXPECT_NE(error->hint().find("a volume is"), std::string::npos);
}

TEST(Volume, AFileOfAnotherFormatIsRefused) {
  const Tree tree;
  EXPECT_TRUE(mentions(error_of_opening(tree.write("a.mha", "x")), "its name says another format"));
  EXPECT_TRUE(mentions(error_of_opening(tree.write("a.hdr", "x")), "pairs of .hdr and .img"));
  EXPECT_TRUE(mentions(error_of_opening("gopher://x/y.npy"), "gopher:// addresses"));
}

TEST(Volume, AFolderWithoutSlicesIsNotFound) {
  const Tree tree;
  tree.write("notes.txt", "x");
  const auto error = error_of_opening(tree.at());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::not_found);
  EXPECT_TRUE(mentions(error, "cannot find slices"));
}

TEST(Volume, ArraysOfOneAxisOrFiveAreRefusedWithTheirShape) {
  const Tree tree;
  const auto npy = [](std::string_view shape, std::size_t bytes) {
    std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': " + std::string(shape) + ", }";
    std::string file = std::string("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(header.size());
    file += '\0';
    return file + header + std::string(bytes, 'x');
  };
  EXPECT_TRUE(mentions(error_of_opening(tree.write("a.npy", npy("(4,)", 4))), "it has 1 axes (4)"));
  EXPECT_TRUE(mentions(error_of_opening(tree.write("b.npy", npy("(1, 2, 3, 4, 5)", 120))), "(1 x 2 x 3 x 4 x 5)"));
  EXPECT_TRUE(mentions(error_of_opening(tree.write("c.npy", npy("(0, 2, 3)", 0))), "it is empty"));
  EXPECT_TRUE(mentions(error_of_opening(tree.write("e.npy", npy("(2, 1, 1, 2000)", 4000))), "2000 channels"));
  EXPECT_TRUE(mentions(error_of_opening(tree.write("d.npy", npy("(9, 9, 9)", 100))), "fewer elements"));
}

TEST(Volume, AFirstAxisOfOneElementMayStandBeforeTheThree) {
  const Tree tree;
  const auto info_of = [&](std::string_view shape, std::size_t bytes) {
    const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': " + std::string(shape) + ", }";
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(header.size());
    file += '\0';
    return open_volume(tree.write("a.npy", file + header + std::string(bytes, 'x')))->info();
  };
  EXPECT_EQ(info_of("(1, 2, 3, 5)", 30).extents, (Extents{2, 3, 5}));
  EXPECT_EQ(info_of("(1, 2, 3, 4)", 24).extents, (Extents{1, 2, 3}));
  EXPECT_EQ(info_of("(1, 2, 3, 4)", 24).channels, 4u);
  EXPECT_EQ(info_of("(2, 2, 3, 5)", 60).channels, 5u);
}

// ---- zarr

TEST(ZarrVolume, ADamagedChunkIsNamed) {
  const DamagedVolume volume(kZarr2, "v2-blosc-zstd-1");
  volume.change("1.0.1", [](std::string& chunk) { chunk[chunk.size() / 2] ^= 0x55, chunk.resize(chunk.size() - 9); });
  const auto error = error_of_reading(volume.address());
  EXPECT_TRUE(mentions(error, "chunk 1.0.1 of `")) << (error ? error->message() : "none");
}

TEST(ZarrVolume, AChecksumThatDiffersNamesTheChunk) {
  const DamagedVolume volume(kZarr3, "v3-zstd-sum");
  volume.change("c/0/1/1", [](std::string& chunk) { chunk[5] ^= 1; });
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "chunk c/0/1/1 of `"));
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "the checksum (CRC32C) differs"));
}

TEST(ZarrVolume, AnEmptyOrShortOrLongChunkIsNotAnAbsentOne) {
  const DamagedVolume volume(kZarr2, "v2-raw");
  volume.change("0.0.1", [](std::string& chunk) { chunk.clear(); });
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "chunk 0.0.1 of `"));
  volume.change("0.0.1", [](std::string& chunk) { chunk.assign(47, 'x'); });
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "the chunk has fewer bytes than its shape"));
  volume.change("0.0.1", [](std::string& chunk) { chunk.assign(49, 'x'); });
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "the chunk has more bytes than its shape"));
  volume.remove("0.0.1");
  EXPECT_FALSE(error_of_reading(volume.address()));
}

TEST(ZarrVolume, AChunkThatCannotBeLookedUpIsNotAnAbsentOne) {
  const DamagedVolume volume(kZarr2, "v2-raw");
  volume.remove("0.0.1");
  volume.make_folder("0.0.1");
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "chunk 0.0.1 of `"));
}

TEST(ZarrVolume, ALinkThatLeadsNowhereIsNotAnAbsentChunk) {
  const DamagedVolume volume(kZarr2, "v2-raw");
  volume.remove("0.0.1");
  EXPECT_FALSE(error_of_reading(volume.address()));
  std::filesystem::create_symlink("/nowhere/chunk", volume.address() + "/0.0.1");
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "chunk 0.0.1 of `"));
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "No such file"));
}

TEST(ZarrVolume, ALinkThatLeadsNowhereIsNotAnAbsentShard) {
  const DamagedVolume volume(kZarr3, "v3-shards");
  volume.remove("c/0/0/0");
  EXPECT_FALSE(error_of_reading(volume.address()));
  std::filesystem::create_symlink("/nowhere/shard", volume.address() + "/c/0/0/0");
  EXPECT_TRUE(mentions(error_of_opening(volume.address()), "c/0/0/0"));
  EXPECT_TRUE(mentions(error_of_opening(volume.address()), "No such file"));
}

TEST(ZarrVolume, ChunksOfAnArrayThatWasDeletedMeanwhileAreNotAbsent) {
  for (const auto& [archive, path] : {std::pair{kZarr2, "v2-raw"}, std::pair{kZarr3, "v3-raw"}}) {
    const DamagedVolume damaged(archive, path);
    const auto volume = open_volume(damaged.address());
    std::filesystem::remove_all(damaged.address());
    EXPECT_TRUE(mentions(error_of([&] { read_all(*volume); }), "No such file")) << path;
  }
}

TEST(ZarrVolume, AChunkOfBlosc2IsRefusedByName) {
  const DamagedVolume volume(kZarr2, "v2-blosc-lz4-1");
  volume.change("0.0.0", [](std::string& chunk) { chunk[0] = 5; });
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "blosc2"));
}

TEST(ZarrVolume, ADamagedIndexOfAShardNamesTheShard) {
  const DamagedVolume volume(kZarr3, "v3-shards");
  volume.change("c/0/1/0", [](std::string& shard) { shard[shard.size() - 20] ^= 1; });
  const auto error = error_of_opening(volume.address());
  EXPECT_TRUE(mentions(error, "the shard c/0/1/0 of `")) << (error ? error->message() : "none");
  EXPECT_TRUE(mentions(error, "the checksum of its index differs"));
  volume.change("c/0/1/0", [](std::string& shard) { shard.resize(10); });
  EXPECT_TRUE(mentions(error_of_opening(volume.address()), "it is shorter than its index"));
  volume.remove("c/0/1/0");
  EXPECT_FALSE(error_of_opening(volume.address()));
}

TEST(ZarrVolume, ADamagedChunkOfAShardIsNamed) {
  const DamagedVolume volume(kZarr3, "v3-shards");
  const auto opened = open_volume(volume.address());
  std::vector<char> text(storage::kLocationText);
  const storage::Location where = opened->locate_chunk(1, text);
  volume.change("c/0/0/0", [&](std::string& shard) {
    std::fill_n(shard.begin() + static_cast<std::ptrdiff_t>(where.offset), 8, '\7');
  });
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "chunk 0, 0, 1 of `"));
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "in its shard c/0/0/0"));
}

TEST(ZarrVolume, AGroupWithoutAnImageAsksForAnArray) {
  const DamagedVolume volume(kZarr3, "ome-0.4");
  volume.change(".zattrs", [](std::string& text) { text = "{}"; });
  const auto error = error_of_opening(volume.address());
  EXPECT_TRUE(mentions(error, "it is a zarr group"));
  VolumeOptions options;
  options.member = "0";
  EXPECT_FALSE(error_of_opening(volume.address(), options));
  options.member = "nothing";
  EXPECT_TRUE(mentions(error_of_opening(volume.address(), options), "cannot find the array `nothing`"));
}

TEST(ZarrVolume, SeveralChannelsBeforeTheAxesAreRefused) {
  const DamagedVolume volume(kZarr3, "ome-0.4");
  volume.change("0/.zarray", [](std::string& text) {
    Json changed = Json::parse(text, "test");
    changed["shape"] = Json::array({1, 2, 5, 6, 7});
    text = changed.dump();
  });
  EXPECT_TRUE(mentions(error_of_opening(volume.address()), "an axis before z, y, x has more than one element"));
}

TEST(ZarrVolume, AStoreThatDoesNotListIsRefused) {
  storage::MemoryStore store("vault");
  for (const PackedFile& file : unpack_formats(kZarr2)) store.put("bucket/" + file.name, file.content);
  store.refuse_listings();
  EXPECT_TRUE(mentions(error_of_opening(store.address("bucket/v2-raw")), "does not list its objects"));
}

TEST(ZarrVolume, AnObjectThatChangedSinceItWasListedIsAnError) {
  storage::MemoryStore store("vault");
  for (const PackedFile& file : unpack_formats(kZarr2)) store.put("bucket/" + file.name, file.content);
  const auto volume = open_volume(store.address("bucket/v2-raw"));
  store.put("bucket/v2-raw/0.0.0", std::string(48, 'x'));
  EXPECT_TRUE(mentions(error_of([&] { read_all(*volume); }), "it changed since it was listed"));
}

// ---- NIfTI and archives

TEST(InflatedVolume, ALargeOneIsInflatedOnceIntoTheCacheFolder) {
  const Tree tree, cache;
  // 5 x 6 x 7 elements, and bytes behind them. There is no room for it in memory.
  std::string nifti = contents_of(unpacked_formats(kFiles).at("i2.nii"));
  nifti.resize(kHeldInflated + 4096, '\0');
  const std::string path = tree.at("scan.nii.gz");
  const auto compress = [&](const std::string& content) {
    gzFile file = gzopen(path.c_str(), "wb1");
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
  };
  compress(nifti);
  VolumeOptions options;
  options.cache_dir = cache.at("made");
  InflatedRoom none(0);
  options.room = &none;
  const auto files = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(options.cache_dir)) {
      if (entry.path().extension() == ".bin") names.push_back(entry.path());
    }
    return names;
  };
  const auto volume = open_volume(path, options);
  expect_formula(*volume);
  EXPECT_EQ(volume->memory_bytes(), 0u);
  ASSERT_EQ(files().size(), 1u);
  const auto written = std::filesystem::last_write_time(files()[0]);
  expect_formula(*open_volume(path, options));
  EXPECT_EQ(std::filesystem::last_write_time(files()[0]), written);

  // Damage at the end is found, and the file is made again.
  std::filesystem::resize_file(files()[0], 1000);
  expect_formula(*open_volume(path, options));
  EXPECT_GT(std::filesystem::file_size(files()[0]), kHeldInflated);

  // Another content is another file.
  nifti[400] ^= 1;
  compress(nifti);
  const std::vector<std::byte> changed = read_all(*open_volume(path, options));
  EXPECT_EQ(files().size(), 2u);
  EXPECT_NE(changed, read_all(*volume));

  // Without a folder it stays in memory.
  options.cache_dir.clear();
  EXPECT_TRUE(mentions(error_of_opening(path, options), "are left to all volumes of memory_limit"));
  options.room = nullptr;
  EXPECT_EQ(open_volume(path, options)->memory_bytes(), 352u + 5 * 6 * 7 * 2);
}

TEST(InflatedVolume, DamagedOrShortDataNamesTheByte) {
  const DamagedVolume volume(kFiles, "scaled.nii.gz");
  volume.change("", [](std::string& file) { file.resize(file.size() - 9); });
  EXPECT_TRUE(mentions(error_of_opening(volume.address()), "it ends early"));
  volume.change("", [](std::string& file) { file.resize(40); });
  EXPECT_TRUE(mentions(error_of_opening(volume.address()), "at byte 40: it ends early"));
  volume.change("", [](std::string& file) { file[0] = 'x'; });
  EXPECT_TRUE(mentions(error_of_opening(volume.address()), "cannot inflate `"));
  volume.change("", [](std::string& file) { file.clear(); });
  EXPECT_TRUE(error_of_opening(volume.address()));
  const DamagedVolume archive(kFiles, "deflated.npz");
  archive.change("", [](std::string& file) { file[60] ^= 0x10; });
  VolumeOptions options;
  options.member = "image";
  EXPECT_TRUE(error_of_opening(archive.address(), options));
}

TEST(NiftiVolume, AHeaderThatPromisesMoreThanTheFileIsRefused) {
  const DamagedVolume volume(kFiles, "i2.nii");
  volume.change("", [](std::string& file) { file.resize(file.size() - 1); });
  EXPECT_TRUE(mentions(error_of_opening(volume.address()), "it ends early"));
  volume.change("", [](std::string& file) { file.resize(100); });
  EXPECT_TRUE(mentions(error_of_opening(volume.address()), "shorter than a NIfTI header"));
}

// ---- TIFF and slices

TEST(TiffVolume, ATruncatedFileIsAnErrorAtEveryLength) {
  for (const char* const path : {"lzw.tif", "plain-big.tif"}) {
    const std::string whole = contents_of(unpacked_formats(kTiff).at(path));
    const Tree tree;
    for (std::size_t size = 0; size < whole.size(); size += 7) {
      const std::string cut = tree.write("cut.tif", whole.substr(0, size));
      const auto error = error_of([&] {
        const auto volume = open_volume(cut);
        // A directory before the end leaves nothing to miss.
        if (volume->info().extents != Extents{5, 6, 7}) throw Error(ErrorKind::corrupt, "fewer pages");
        read_all(*volume);
      });
      if (!error) {
        EXPECT_GE(size, whole.size() - 16) << path << " " << size;
      }
    }
  }
}

TEST(TiffVolume, DirectoriesInACircleEnd) {
  const DamagedVolume volume(kTiff, "two-sizes.tif");
  volume.change("", [](std::string& file) {
    // The last directory leads back to the first one.
    std::uint32_t first = 0, at = 0;
    std::memcpy(&first, file.data() + 4, 4);
    for (std::uint32_t next = first; next != 0;) {
      std::uint16_t tags = 0;
      std::memcpy(&tags, file.data() + next, 2);
      at = next + 2 + tags * 12u;
      std::memcpy(&next, file.data() + at, 4);
      if (at > 0 && next != 0) {
        std::memcpy(file.data() + at, &first, 4);  // the second page is left out
        break;
      }
    }
  });
  EXPECT_TRUE(mentions(error_of_opening(volume.address()), "lead back to an earlier page"));
}

TEST(TiffVolume, AStackOfImageJWithOneDirectoryHasAllItsImages) {
  const DamagedVolume volume(kTiff, "imagej.tif");
  volume.change("", [](std::string& file) {  // ImageJ writes stacks above 4 GiB so
    std::uint32_t directory = 0, next = 0;
    std::uint16_t tags = 0;
    std::memcpy(&directory, file.data() + 4, 4);
    std::memcpy(&tags, file.data() + directory, 2);
    const std::size_t at = directory + 2 + tags * std::size_t{12};
    std::memcpy(&next, file.data() + at, 4);
    ASSERT_NE(next, 0u);
    file.replace(at, 4, 4, '\0');
  });
  const auto opened = open_volume(volume.address());
  EXPECT_EQ(opened->info().extents, (Extents{5, 6, 7}));
  EXPECT_TRUE(opened->plain());
  expect_formula(*opened);
}

TEST(TiffVolume, ADamagedTileNamesItsPage) {
  const DamagedVolume volume(kTiff, "tiles.tif");
  const auto opened = open_volume(volume.address());
  std::vector<char> text(storage::kLocationText);
  const storage::Location where = opened->locate_chunk(opened->info().chunks() - 1, text);
  volume.change("", [&](std::string& file) {
    std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(where.offset), where.bytes, '\0');
  });
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "of page 3 of `"));
}

TEST(SlicesVolume, SlicesFollowTheNumbersInTheirNames) {
  const auto volume = open_volume(unpacked_formats(kTiff).at("tif-slices"));
  EXPECT_EQ(volume->chunk_name(2).substr(0, 19), "slice `slice-2.tif`");
  EXPECT_EQ(volume->chunk_name(10).substr(0, 20), "slice `slice-10.tif`");
}

TEST(SlicesVolume, ASliceOfAnotherSizeIsNamedWithTheFirst) {
  const DamagedVolume volume(kTiff, "tif-slices");
  volume.change("slice-5.tif",
                [&](std::string& file) { file = contents_of(unpacked_formats(kTiff).at("pillow-noise-lzw.tif")); });
  EXPECT_TRUE(mentions(error_of_opening(volume.address()),
                       "`slice-0.tif` is 6 x 7 uint16, and `slice-5.tif` is 80 x 90 uint8"));
}

TEST(SlicesVolume, APngSliceThatDiffersFailsWhenItIsDecoded) {
  const DamagedVolume volume(kTiff, "png-slices");
  volume.change("00003.png",
                [](std::string& file) { file = contents_of(std::string(STOKER_FORMATS_FOLDER) + "/gray16.png"); });
  EXPECT_TRUE(mentions(error_of_reading(volume.address()), "slice `00003.png` of `"));
}

TEST(SlicesVolume, ASeriesOfPreparedDicomHasItsSpacingAndItsOffset) {
  const DamagedVolume volume(kTiff, "png-slices");
  Tree tree;
  Json json = {{"schema", "stoker.dicom_series/1"}};
  json["lines"] = Json::array({"s/00000.png,p,,,,,3,0,2.5,0.7,0.8,32768,512,256,,,1,-1024,,0,x"});
  volume.change(".series.json", [&](std::string& text) { text = json.dump(); });
  const auto opened = open_volume(volume.address());
  EXPECT_EQ(opened->info().spacing, (std::array<double, 3>{2.5, 0.7, 0.8}));
  EXPECT_EQ(opened->info().intercept, -32768);
  expect_formula(*opened);
  // The array of a series lies in such a folder, too.
  tree.write("s/.series.json", json.dump());
  tree.write("s/slices.npy", contents_of(unpacked_formats(kFiles).at("u2.npy")));
  EXPECT_EQ(open_volume(tree.at("s/slices.npy"))->info().intercept, -32768);
  volume.change(".series.json", [&](std::string& text) { text = "{"; });
  EXPECT_EQ(open_volume(volume.address())->info().intercept, 0);
}

}  // namespace
}  // namespace stoker::dataset
