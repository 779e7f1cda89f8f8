#include "stoker/prepare/pack_volumes.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/dataset/pack_format.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/dataset/volume_box.h"
#include "stoker/dataset/volume_pack.h"
#include "stoker/dataset/volumes.h"
#include "stoker/prepare/check_volumes.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::prepare {
namespace {

using dataset::Extents;
using dataset::Tree;

constexpr Extents kShape = {11, 23, 37};

std::uint16_t voxel(std::uint64_t volume, std::uint64_t z, std::uint64_t y, std::uint64_t x) {
  return static_cast<std::uint16_t>(volume * 7919 + z * 1000 + y * 37 + x);
}

class VolumePacks : public ::testing::Test {
 protected:
  VolumePacks() {
    for (std::uint64_t v = 0; v < 2; ++v) {
      std::string text = dataset::npy_header(DType::u16, kShape);
      for (std::uint64_t z = 0; z < kShape[0]; ++z)
        for (std::uint64_t y = 0; y < kShape[1]; ++y)
          for (std::uint64_t x = 0; x < kShape[2]; ++x) {
            const std::uint16_t value = voxel(v, z, y, x);
            text.append(reinterpret_cast<const char*>(&value), 2);
          }
      tree_.write(fmt::format("{}.npy", v), text);
    }
    tree_.write("volumes.csv", "image,mask,weight\n0.npy,1.npy,2\n");
    options_.source = tree_.at("volumes.csv");
    options_.destination = tree_.at("v.pack");
    options_.patch = {8, 16, 16};
  }
  Tree tree_;
  PackVolumesOptions options_;
};

TEST_F(VolumePacks, HoldEveryElement) {
  const PackVolumesReport report = pack_volumes(options_);
  EXPECT_EQ(report.volumes, 1u);
  EXPECT_EQ(report.masks, 1u);
  EXPECT_GT(report.read_before, report.read_after);
  const auto addresses = dataset::read_volumes_csv(dataset::volumes_csv_of(options_.destination));
  ASSERT_EQ(addresses.size(), 1u);
  EXPECT_EQ(addresses[0].weight, 2);
  for (std::uint64_t v = 0; v < 2; ++v) {
    const auto volume = dataset::open_volume(v == 0 ? addresses[0].image : addresses[0].mask);
    EXPECT_EQ(volume->info().extents, kShape);
    EXPECT_EQ(volume->info().chunk, report.brick);
    for (std::uint64_t z = 0; z < kShape[0]; ++z) {
      const std::vector<std::byte> plane = dataset::read_plane(*volume, z);
      for (std::uint64_t i = 0; i < kShape[1] * kShape[2]; ++i) {
        std::uint16_t value = 0;
        std::memcpy(&value, plane.data() + i * 2, 2);
        ASSERT_EQ(value, voxel(v, z, i / kShape[2], i % kShape[2]));
      }
    }
  }
}

TEST_F(VolumePacks, AreMadeAgainWhenAFileChangesInPlace) {
  (void)pack_volumes(options_);
  const auto written = std::filesystem::last_write_time(tree_.at("0.npy"));
  std::fstream file(tree_.at("0.npy"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-2, std::ios::end);
  file.write("\x2a\x00", 2);
  file.close();
  std::filesystem::last_write_time(tree_.at("0.npy"), written);  // as a copy that keeps times does
  EXPECT_FALSE(pack_volumes(options_).idle);
  const auto volume =
      dataset::open_volume(dataset::read_volumes_csv(dataset::volumes_csv_of(options_.destination))[0].image);
  const std::vector<std::byte> plane = dataset::read_plane(*volume, kShape[0] - 1);
  EXPECT_EQ(plane[plane.size() - 2], std::byte{0x2a});
  EXPECT_TRUE(pack_volumes(options_).idle);
}

TEST_F(VolumePacks, AreMadeAgainWhenAChunkChangesInPlace) {
  tree_.write("a.zarr/.zarray",
              R"({"zarr_format":2,"shape":[3,5,6],"chunks":[3,5,6],"dtype":"|u1","compressor":null,"fill_value":0,)"
              R"("order":"C","filters":null})");
  tree_.write("a.zarr/0.0.0", std::string(90, '\1'));
  tree_.write("volumes.csv", "image\na.zarr\n");
  (void)pack_volumes(options_);
  EXPECT_TRUE(pack_volumes(options_).idle);
  std::fstream file(tree_.at("a.zarr/0.0.0"), std::ios::in | std::ios::out | std::ios::binary);
  file.write("\2", 1);
  file.close();
  EXPECT_FALSE(pack_volumes(options_).idle);
}

std::string npy_of(DType dtype, char fill) {
  return dataset::npy_header(dtype, kShape) + std::string(kShape[0] * kShape[1] * kShape[2], fill);
}

TEST_F(VolumePacks, AreMadeAgainWhenAnObjectOfAStoreChanges) {
  for (const bool tells_versions : {true, false}) {
    SCOPED_TRACE(tells_versions ? "a store with ETags" : "a store without");
    storage::MemoryStore store;
    if (!tells_versions) store.tell_no_versions();
    store.put("bucket/image.npy", npy_of(DType::u8, '\1'));
    store.put("bucket/mask.npy", npy_of(DType::u8, '\1'));
    tree_.write("volumes.csv", "image,mask\nmemory://bucket/image.npy,memory://bucket/mask.npy\n");
    options_.destination = tree_.at(tells_versions ? "a.pack" : "b.pack");
    EXPECT_FALSE(pack_volumes(options_).idle);
    EXPECT_TRUE(pack_volumes(options_).idle);
    store.put("bucket/mask.npy", npy_of(DType::u8, '\2'));  // of the same size
    EXPECT_FALSE(pack_volumes(options_).idle);
    const auto addresses = dataset::read_volumes_csv(dataset::volumes_csv_of(options_.destination));
    EXPECT_EQ(dataset::read_plane(*dataset::open_volume(addresses[0].mask), 0)[0], std::byte{2});
    EXPECT_TRUE(pack_volumes(options_).idle);
  }
}

TEST_F(VolumePacks, AreMadeAgainWhenAChunkInAStoreChanges) {
  storage::MemoryStore store;
  store.put("bucket/a.zarr/.zarray",
            R"({"zarr_format":2,"shape":[3,5,6],"chunks":[3,5,3],"dtype":"|u1","compressor":null,"fill_value":0,)"
            R"("order":"C","filters":null})");
  store.put("bucket/a.zarr/0.0.0", std::string(45, '\1'));
  options_.source = "memory://bucket/a.zarr/";
  EXPECT_FALSE(pack_volumes(options_).idle);
  EXPECT_TRUE(pack_volumes(options_).idle);
  store.put("bucket/a.zarr/0.0.0", std::string(45, '\2'));
  EXPECT_FALSE(pack_volumes(options_).idle);
  EXPECT_TRUE(pack_volumes(options_).idle);
  store.put("bucket/a.zarr/0.0.1", std::string(45, '\3'));  // was absent
  EXPECT_FALSE(pack_volumes(options_).idle);
}

TEST_F(VolumePacks, NameAnObjectThatTheStoreDoesNotHave) {
  const storage::MemoryStore store;
  tree_.write("volumes.csv", "image\nmemory://bucket/image.npy\n");
  try {
    (void)pack_volumes(options_);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "cannot open `memory://bucket/image.npy`: no such object");
  }
}

TEST_F(VolumePacks, AreUpToDateTheSecondTimeAndRefuseOtherSettings) {
  (void)pack_volumes(options_);
  EXPECT_TRUE(pack_volumes(options_).idle);
  options_.brick = {4, 4, 4};
  EXPECT_THROW((void)pack_volumes(options_), Error);
  options_.force = true;
  EXPECT_FALSE(pack_volumes(options_).idle);
  EXPECT_TRUE(pack_volumes(options_).idle);
}

TEST_F(VolumePacks, AreUpToDateUnderEverySpellingOfTheirSource) {
  const std::string whole = options_.source;
  options_.source = std::filesystem::relative(whole).string();
  (void)pack_volumes(options_);
  EXPECT_EQ(dataset::find_volume_pack(options_.destination)->source, std::filesystem::canonical(whole).string())
      << "check --repair finds it from any folder";
  for (const std::string& spelling : {whole, "file://" + whole, tree_.at("./volumes.csv")}) {
    options_.source = spelling;
    EXPECT_TRUE(pack_volumes(options_).idle) << spelling;
  }
}

TEST_F(VolumePacks, ContinueWhatWasInterrupted) {
  std::uint64_t calls = 0;
  options_.progress = [&](const PackProgress&) { return ++calls < 2; };
  const std::string part = tree_.at(".v.pack.part");
  try {
    for (int i = 0; i < 50; ++i) (void)pack_volumes(options_);  // the first call tells at once, later ones every 100 ms
  } catch (const Error&) {
  }
  options_.progress = {};
  (void)pack_volumes(options_);
  EXPECT_FALSE(std::filesystem::exists(part));
  EXPECT_TRUE(dataset::find_volume_pack(options_.destination).has_value());
}

TEST_F(VolumePacks, NameADamagedBrick) {
  (void)pack_volumes(options_);
  const auto pack = dataset::find_volume_pack(options_.destination);
  ASSERT_TRUE(pack.has_value());
  EXPECT_TRUE(check_volume_pack(options_.destination, *pack, {}).is_sound());
  const std::string path = options_.destination + "/image-00000.npy";
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(pack->volumes[0].image.offset(0)));
    file.put('\x55');
  }
  const CheckReport report = check_volume_pack(options_.destination, *pack, {});
  ASSERT_EQ(report.damaged.size(), 1u);
  EXPECT_EQ(report.damaged[0].name, fmt::format("brick 0 of `{}`", path));
  EXPECT_THROW((void)dataset::read_plane(*dataset::open_volume(path), 0, 0), Error);
}

TEST_F(VolumePacks, RefuseAPackJsonThatWasChanged) {
  (void)pack_volumes(options_);
  const std::string path = options_.destination + "/pack.json";
  const std::string written = os::read_text(path, 1 << 20);
  const auto change = [&](const std::string& from, const std::string& to) {
    std::string text = written;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(path) << text.replace(at, from.size(), to);
    try {
      (void)dataset::find_volume_pack(options_.destination);
      FAIL() << from << " became " << to;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("its own sum differs"), std::string::npos) << error.message();
    }
  };
  change("\"slope\": 1", "\"slope\": 2");
  change("\"weight\": ", "\"weight\": 1");
  change("\"schema\": \"", "\"schema\": \"x");
  std::ofstream(path) << written;
  EXPECT_TRUE(dataset::find_volume_pack(options_.destination).has_value());
}

TEST_F(VolumePacks, OfAnEarlierVersionAreComparedWithTheHeadersOfTheirFiles) {
  (void)pack_volumes(options_);
  auto pack = dataset::find_volume_pack(options_.destination);
  ASSERT_TRUE(pack.has_value());
  dataset::PackedBricks& bricks = pack->volumes[0].image;
  EXPECT_NO_THROW((void)dataset::open_bricks(options_.destination, bricks, {}));
  bricks.info.dtype = bricks.info.dtype == DType::u16 ? DType::i16 : DType::u16;
  EXPECT_THROW((void)dataset::open_bricks(options_.destination, bricks, {}), Error);
}

TEST_F(VolumePacks, AreNotDataSetsOfSamples) {
  (void)pack_volumes(options_);
  EXPECT_THROW((void)dataset::open(options_.destination), Error);
}

}  // namespace
}  // namespace stoker::prepare
