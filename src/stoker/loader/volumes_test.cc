// Patches of volumes through the whole loader, compared with the elements that they were cut from.
#include "stoker/dataset/volumes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/hash.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::loader {
namespace {

using dataset::DatasetPtr;
using dataset::Extents;
using dataset::Normalize;
using dataset::OpenedVolume;
using dataset::Volume;
using dataset::VolumeInfo;
using dataset::VolumesOptions;
using storage::Storage;

constexpr Extents kExtents = {20, 33, 47};

std::uint8_t element(std::uint64_t volume, std::uint64_t z, std::uint64_t y, std::uint64_t x) {
  return static_cast<std::uint8_t>(mix(volume, (z * 1000 + y) * 1000 + x));
}

std::string elements_of(std::uint64_t volume, const Extents& extents = kExtents) {
  std::string text;
  for (std::uint64_t z = 0; z < extents[0]; ++z)
    for (std::uint64_t y = 0; y < extents[1]; ++y)
      for (std::uint64_t x = 0; x < extents[2]; ++x) text += static_cast<char>(element(volume, z, y, x));
  return text;
}

std::string npy_of(const std::string& elements, const Extents& extents = kExtents) {
  std::string header = fmt::format("{{'descr': '|u1', 'fortran_order': False, 'shape': ({}, {}, {}), }}", extents[0],
                                   extents[1], extents[2]);
  header.resize((10 + header.size() + 64) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + little(header.size(), 2) + header + elements;
}

// A volume of chunks whose encoded form is the elements plus one each. One chunk may be damaged, and one absent.
class Chunked final : public Volume {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  explicit Chunked(std::uint64_t number, const Extents& chunk = {8, 16, 10}, std::uint64_t damaged = kNone,
                   std::uint64_t absent = kNone)
      : damaged_(damaged), absent_(absent) {
    info_.extents = kExtents;
    info_.chunk = chunk;
    info_.format = "made up";
    const Extents grid = info_.grid();
    for (std::uint64_t c = 0; c < info_.chunks(); ++c) {
      const Extents at = {c / (grid[1] * grid[2]), c / grid[2] % grid[1], c % grid[2]};
      std::string text;
      for (std::uint64_t z = 0; z < chunk[0]; ++z)
        for (std::uint64_t y = 0; y < chunk[1]; ++y)
          for (std::uint64_t x = 0; x < chunk[2]; ++x)
            text += static_cast<char>(
                element(number, at[0] * chunk[0] + z, at[1] * chunk[1] + y, at[2] * chunk[2] + x) + 1);
      bytes_ += text;
    }
    source_ = storage::memory_source("chunks", std::as_bytes(std::span(bytes_)));
  }

  const VolumeInfo& info() const noexcept override { return info_; }
  std::string_view name() const noexcept override { return "made.zarr"; }
  storage::Location locate_chunk(std::uint64_t chunk, std::span<char>) const noexcept override {
    if (chunk == absent_) return {};
    return storage::Location::in_source(source_.get(), chunk * info_.chunk_bytes(), info_.chunk_bytes());
  }
  Result decode_chunk(std::uint64_t chunk, codec::Bytes encoded, std::byte* into, Scratch&) const noexcept override {
    if (chunk == damaged_) return failed(Code::corrupt, "the checksum differs");
    if (encoded.empty()) {
      std::memset(into, 7, info_.chunk_bytes());
      return {};
    }
    for (std::size_t i = 0; i < encoded.size(); ++i)
      into[i] = static_cast<std::byte>(static_cast<std::uint8_t>(encoded[i]) - 1);
    return {};
  }
  std::string chunk_name(std::uint64_t chunk) const override { return fmt::format("chunk {} of made.zarr", chunk); }

 private:
  VolumeInfo info_;
  std::uint64_t damaged_, absent_;
  std::string bytes_;
  std::unique_ptr<storage::Source> source_;
};

VolumesOptions patches_of(const Extents& patch, std::uint64_t samples, Normalize::How how = Normalize::How::none) {
  VolumesOptions options;
  options.patches.patch = patch;
  options.patches.samples = samples;
  options.normalize.how = how;
  return options;
}

enum class From { mapped, direct, ram, chunks };

class Patches : public ::testing::TestWithParam<From> {
 protected:
  DatasetPtr two_volumes(const VolumesOptions& options) {
    dataset::OpenOptions opening;
    opening.use_cache = false;
    opening.storage = storage();
    if (GetParam() == From::chunks) {
      std::vector<OpenedVolume> volumes(2);
      for (std::uint64_t v = 0; v < 2; ++v) {
        volumes[v].image = std::make_unique<Chunked>(v);
        volumes[v].mask = std::make_unique<Chunked>(v + 2, Extents{5, 33, 47});
      }
      return dataset::from_volumes(std::move(volumes), options, opening);
    }
    for (std::uint64_t v = 0; v < 4; ++v) folder_.write(fmt::format("{}.npy", v), npy_of(elements_of(v)));
    return dataset::open_volumes(
        {{folder_.path("0.npy"), folder_.path("2.npy"), 1}, {folder_.path("1.npy"), folder_.path("3.npy"), 1}}, options,
        opening);
  }
  Storage storage() const {
    return GetParam() == From::direct ? Storage::direct : GetParam() == From::ram ? Storage::ram : Storage::buffered;
  }
  LoaderOptions shuffled(std::uint64_t batch_size, int workers) const {
    LoaderOptions options = batches_of(batch_size, workers);
    options.shuffle.how = dataset::Shuffle::How::full;
    options.seed = 5;
    options.storage = storage();
    return options;
  }
  Folder folder_;
};

std::string word_of(const ::testing::TestParamInfo<From>& from) {
  constexpr const char* kWords[] = {"mapped", "direct", "ram", "chunks"};
  return kWords[static_cast<int>(from.param)];
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Patches, ::testing::Values(From::mapped, From::direct, From::ram, From::chunks),
                         word_of);

Extents corner_of(const Batch& batch, std::uint64_t row) {
  Extents corner;
  const auto* const values = reinterpret_cast<const std::int64_t*>(batch.coords()->data);
  for (std::size_t axis = 0; axis < 3; ++axis) corner[axis] = static_cast<std::uint64_t>(values[row * 3 + axis]);
  return corner;
}

TEST_P(Patches, HoldTheElementsAtTheirCoords) {
  const Extents patch = {6, 9, 17};
  const std::uint64_t elements = patch[0] * patch[1] * patch[2];
  const DatasetPtr data = two_volumes(patches_of(patch, 40));
  for (const int workers : {0, 1, 3}) {
    Loader loader(data, shuffled(8, workers));
    for (const std::uint64_t epoch : {0, 1}) {
      loader.start_epoch(epoch);
      std::uint64_t rows = 0;
      while (const BatchPtr batch = loader.next()) {
        ASSERT_EQ(batch->tensors().size(), 2u);
        ASSERT_EQ(batch->tensor("image")->shape, (std::vector<std::int64_t>{8, 6, 9, 17}));
        ASSERT_EQ(batch->coords()->shape, (std::vector<std::int64_t>{8, 3}));
        for (std::uint64_t row = 0; row < batch->size(); ++row, ++rows) {
          const Extents corner = corner_of(*batch, row);
          const auto volume = static_cast<std::uint64_t>(batch->labels()[row]);
          const std::byte* image = batch->tensor("image")->data + row * elements;
          const std::byte* mask = batch->tensor("mask")->data + row * elements;
          for (std::uint64_t z = 0; z < patch[0]; ++z)
            for (std::uint64_t y = 0; y < patch[1]; ++y)
              for (std::uint64_t x = 0; x < patch[2]; ++x, ++image, ++mask) {
                ASSERT_EQ(static_cast<std::uint8_t>(*image),
                          element(volume, corner[0] + z, corner[1] + y, corner[2] + x));
                ASSERT_EQ(static_cast<std::uint8_t>(*mask),
                          element(volume + 2, corner[0] + z, corner[1] + y, corner[2] + x));
              }
        }
      }
      EXPECT_EQ(rows, 40u);
    }
  }
}

TEST(MixedVolumes, ReadAMaskPastThePageCacheBesideAnImageOfChunks) {
  Folder folder;
  folder.write("mask.npy", npy_of(elements_of(2)));
  dataset::OpenOptions opening;
  opening.use_cache = false;
  dataset::VolumeOptions direct;
  direct.storage = Storage::direct;
  std::vector<OpenedVolume> volumes(1);
  volumes[0].image = std::make_unique<Chunked>(0);
  volumes[0].mask = dataset::open_volume(folder.path("mask.npy"), direct);
  const Extents patch = {3, 2, 17};
  const DatasetPtr data = dataset::from_volumes(std::move(volumes), patches_of(patch, 12), opening);
  LoaderOptions options = batches_of(4, 2);
  options.storage = Storage::direct;
  Loader loader(data, options);
  loader.start_epoch(0);
  std::uint64_t rows = 0;
  while (const BatchPtr batch = loader.next()) {
    for (std::uint64_t row = 0; row < batch->size(); ++row, ++rows) {
      const Extents corner = corner_of(*batch, row);
      EXPECT_EQ(static_cast<std::uint8_t>(batch->tensor("image")->data[row * 3 * 2 * 17]),
                element(0, corner[0], corner[1], corner[2]));
      EXPECT_EQ(static_cast<std::uint8_t>(batch->tensor("mask")->data[row * 3 * 2 * 17]),
                element(2, corner[0], corner[1], corner[2]));
    }
  }
  EXPECT_EQ(rows, 12u);
}

TEST_P(Patches, AreTheSameForAnyNumberOfWorkersAndAfterAResume) {
  VolumesOptions options = patches_of({4, 8, 8}, 37, Normalize::How::zscore);
  options.patches.flip = {true, true, true};
  options.patches.turn = true;
  const DatasetPtr data = two_volumes(options);
  const std::vector<Taken> all = epoch_of(data, shuffled(5, 1), 3);
  EXPECT_EQ(epoch_of(data, shuffled(5, 3), 3), all);
  Loader loader(data, shuffled(5, 2));
  loader.start_epoch(3);
  std::vector<Taken> resumed = drain(loader, 3);
  Loader second(data, shuffled(5, 1));
  second.load_state(loader.state());
  for (Taken& batch : drain(second)) resumed.push_back(std::move(batch));
  EXPECT_EQ(resumed, all);
}

TEST_P(Patches, OfAGridCoverEachVolumeOnceOverAllRanks) {
  VolumesOptions options = patches_of({7, 11, 13}, 0);
  options.patches.sampling = dataset::Sampling::grid;
  options.patches.overlap = {2, 0, 5};
  const DatasetPtr data = two_volumes(options);
  std::map<std::pair<std::int64_t, Extents>, int> corners;
  std::set<std::pair<std::int64_t, Extents>> covered;
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    LoaderOptions loading = shuffled(4, 2);
    loading.rank = rank;
    loading.world_size = 3;
    Loader loader(data, loading);
    loader.start_epoch(0);
    while (const BatchPtr batch = loader.next()) {
      for (std::uint64_t row = 0; row < batch->size(); ++row) {
        if (batch->valid()[row] == 0) continue;
        const Extents corner = corner_of(*batch, row);
        const std::int64_t volume = batch->labels()[row];
        ++corners[{volume, corner}];
        for (std::uint64_t z = 0; z < 7; ++z)
          for (std::uint64_t y = 0; y < 11; ++y)
            for (std::uint64_t x = 0; x < 13; ++x)
              covered.insert({volume, {corner[0] + z, corner[1] + y, corner[2] + x}});
      }
    }
  }
  EXPECT_EQ(corners.size(), data->size());
  for (const auto& [corner, count] : corners) EXPECT_EQ(count, 1);
  EXPECT_EQ(covered.size(), 2 * kExtents[0] * kExtents[1] * kExtents[2]);
}

TEST_P(Patches, AreZScoredEachByItself) {
  const Extents patch = {5, 16, 24};
  const std::uint64_t elements = patch[0] * patch[1] * patch[2];
  const DatasetPtr data = two_volumes(patches_of(patch, 6, Normalize::How::zscore));
  Loader loader(data, shuffled(3, 2));
  loader.start_epoch(0);
  while (const BatchPtr batch = loader.next()) {
    ASSERT_EQ(batch->tensor("image")->dtype, DType::f32);
    for (std::uint64_t row = 0; row < batch->size(); ++row) {
      const Extents corner = corner_of(*batch, row);
      const auto volume = static_cast<std::uint64_t>(batch->labels()[row]);
      std::vector<double> values;
      for (std::uint64_t z = 0; z < patch[0]; ++z)
        for (std::uint64_t y = 0; y < patch[1]; ++y)
          for (std::uint64_t x = 0; x < patch[2]; ++x)
            values.push_back(element(volume, corner[0] + z, corner[1] + y, corner[2] + x));
      double mean = 0, squares = 0;
      for (const double value : values) mean += value / static_cast<double>(elements);
      for (const double value : values) squares += (value - mean) * (value - mean);
      const double deviation = std::sqrt(squares / static_cast<double>(elements));
      const auto* const image = reinterpret_cast<const float*>(batch->tensor("image")->data) + row * elements;
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(image[i], (values[i] - mean) / deviation, 1e-5);
    }
  }
}

TEST_P(Patches, LargerThanTheVolumeEndInZeros) {
  VolumesOptions options = patches_of({24, 8, 50}, 4);
  options.patches.pad = true;
  const DatasetPtr data = two_volumes(options);
  Loader loader(data, shuffled(4, 2));
  loader.start_epoch(0);
  const BatchPtr batch = loader.next();
  for (std::uint64_t row = 0; row < 4; ++row) {
    const Extents corner = corner_of(*batch, row);
    EXPECT_EQ(corner[0], 0u);
    const std::byte* image = batch->tensor("image")->data + row * 24 * 8 * 50;
    for (std::uint64_t z = 0; z < 24; ++z)
      for (std::uint64_t y = 0; y < 8; ++y)
        for (std::uint64_t x = 0; x < 50; ++x, ++image) {
          const bool is_inside = z < 20 && x < 47;
          ASSERT_EQ(static_cast<std::uint8_t>(*image),
                    is_inside ? element(static_cast<std::uint64_t>(batch->labels()[row]), z, corner[1] + y, x) : 0);
        }
  }
}

TEST_P(Patches, OfASubsetOrOfCopiesComeFromTheSameVolumes) {
  const Extents patch = {2, 3, 4};
  const DatasetPtr data = two_volumes(patches_of(patch, 30));
  for (const DatasetPtr& narrowed : {dataset::take_subset(data, 7, 1), dataset::inflate(data, 3)}) {
    Loader loader(narrowed, shuffled(4, 2));
    loader.start_epoch(0);
    std::uint64_t rows = 0;
    while (const BatchPtr batch = loader.next()) {
      for (std::uint64_t row = 0; row < batch->size(); ++row, ++rows) {
        const Extents corner = corner_of(*batch, row);
        const std::byte first = batch->tensor("image")->data[row * 24];
        EXPECT_EQ(static_cast<std::uint8_t>(first),
                  element(static_cast<std::uint64_t>(batch->labels()[row]), corner[0], corner[1], corner[2]));
      }
    }
    EXPECT_EQ(rows, narrowed->size());
  }
}

TEST(ChunkedPatches, DecodeAChunkOnceWhereAllOfThemFit) {
  std::vector<OpenedVolume> volumes(1);
  volumes[0].image = std::make_unique<Chunked>(0);
  const std::uint64_t chunks = volumes[0].image->info().chunks();
  const DatasetPtr data = dataset::from_volumes(std::move(volumes), patches_of({6, 9, 17}, 200));
  Loader loader(data, batches_of(8, 3));
  loader.start_epoch(0);
  EXPECT_EQ(drain(loader).size(), 25u);
  EXPECT_LE(loader.stats().chunk_misses, chunks);
  EXPECT_GT(loader.stats().chunk_hits, 200u);
}

TEST(ChunkedPatches, OfAnAbsentChunkHaveTheFillValueAndOfADamagedOneAnErrorThatNamesIt) {
  const auto open = [](std::uint64_t damaged, std::uint64_t absent) {
    std::vector<OpenedVolume> volumes(1);
    volumes[0].image = std::make_unique<Chunked>(0, Extents{20, 33, 47}, damaged, absent);
    return dataset::from_volumes(std::move(volumes), patches_of({2, 2, 2}, 4));
  };
  for (const Taken& batch : epoch_of(open(Chunked::kNone, 0), batches_of(2)))
    for (const std::string& row : batch.rows) EXPECT_EQ(row, std::string(8, 7));
  try {
    (void)epoch_of(open(0, Chunked::kNone), batches_of(2));
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("chunk 0 of made.zarr: the checksum differs"), std::string::npos) << error.message();
  }
}

TEST(ChunkedPatches, AreTheSameWhereTheStoreHoldsFewOfThem) {
  const auto open = [] {
    std::vector<OpenedVolume> volumes(1);
    volumes[0].image = std::make_unique<Chunked>(0);
    return dataset::from_volumes(std::move(volumes), patches_of({6, 9, 17}, 60));
  };
  LoaderOptions options = batches_of(4, 3);
  const std::vector<Taken> all = epoch_of(open(), options);
  options.memory_limit = 12 << 20;
  EXPECT_EQ(epoch_of(open(), options), all);
}

// ---- chunks of stores

// A zarr volume of 24 x 24 x 24 in 27 chunks, and a mask beside it.
class StoredChunks : public ::testing::Test {
 protected:
  static constexpr Extents kWhole = {24, 24, 24};
  static constexpr std::uint64_t kEdge = 8, kChunks = 27;

  StoredChunks() {
    for (const std::uint64_t volume : {0, 1}) {
      store_.put(
          fmt::format("bucket/{}.zarr/zarr.json", volume),
          R"({"zarr_format": 3, "node_type": "array", "shape": [24, 24, 24], "data_type": "uint8", "fill_value": 9,
                     "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 8, 8]}},
                     "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                     "codecs": [{"name": "bytes"}]})");
      for (std::uint64_t c = 0; c < kChunks; ++c) {
        const Extents corner = {c / 9 * kEdge, c / 3 % 3 * kEdge, c % 3 * kEdge};
        std::string bytes;
        for (std::uint64_t z = 0; z < kEdge; ++z)
          for (std::uint64_t y = 0; y < kEdge; ++y)
            for (std::uint64_t x = 0; x < kEdge; ++x)
              bytes += static_cast<char>(element(volume, corner[0] + z, corner[1] + y, corner[2] + x));
        store_.put(key_of(volume, c), bytes);
      }
    }
  }

  static std::string key_of(std::uint64_t volume, std::uint64_t chunk) {
    return fmt::format("bucket/{}.zarr/c/{}/{}/{}", volume, chunk / 9, chunk / 3 % 3, chunk % 3);
  }

  DatasetPtr open(const Extents& patch, std::uint64_t samples, std::string mask = "") const {
    dataset::OpenOptions opening;
    opening.use_cache = false;
    opening.storage = Storage::direct;
    return dataset::open_volumes({{store_.address("bucket/0.zarr"), std::move(mask), 1}}, patches_of(patch, samples),
                                 opening);
  }

  static void expect_elements(const Batch& batch, std::size_t tensor, std::uint64_t volume, const Extents& patch) {
    const std::uint64_t row_bytes = patch[0] * patch[1] * patch[2];
    for (std::uint64_t row = 0; row < batch.size(); ++row) {
      const Extents corner = corner_of(batch, row);
      const auto* at = reinterpret_cast<const std::uint8_t*>(batch.tensors()[tensor].data) + row * row_bytes;
      for (std::uint64_t z = 0; z < patch[0]; ++z)
        for (std::uint64_t y = 0; y < patch[1]; ++y)
          for (std::uint64_t x = 0; x < patch[2]; ++x)
            ASSERT_EQ(*at++, element(volume, corner[0] + z, corner[1] + y, corner[2] + x));
    }
  }

  storage::MemoryStore store_{"vault"};
};

TEST_F(StoredChunks, OfImageAndMaskGoOutTogether) {
  store_.await_in_flight(2 * kChunks);  // nothing is answered before all of the patch was asked for
  Loader loader(open(kWhole, 1, store_.address("bucket/1.zarr")), batches_of(1, 1));
  loader.start_epoch(0);
  const BatchPtr batch = loader.next();
  ASSERT_TRUE(batch);
  expect_elements(*batch, 0, 0, kWhole);
  expect_elements(*batch, 1, 1, kWhole);
  EXPECT_EQ(store_.most_in_flight(), 2 * kChunks);
}

TEST_F(StoredChunks, AreReadOnceForAllPatchesWhereAllOfThemFit) {
  const Extents patch = {12, 12, 12};
  const DatasetPtr data = open(patch, 100);
  const std::uint64_t before = store_.requests();
  Loader loader(data, batches_of(4, 3));
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start_epoch(epoch);
    while (const BatchPtr batch = loader.next()) expect_elements(*batch, 0, 0, patch);
  }
  EXPECT_LT(store_.requests() - before, 2 * kChunks);
  EXPECT_GE(loader.stats().fetch.bytes, kChunks * kEdge * kEdge * kEdge);
}

TEST_F(StoredChunks, AreTheSameWhereMemoryHoldsFewOfThem) {
  const Extents patch = {12, 12, 12};
  const std::vector<Taken> all = epoch_of(open(patch, 60), batches_of(4, 3));
  LoaderOptions options = batches_of(4, 3);
  options.memory_limit = 12 << 20;
  EXPECT_EQ(epoch_of(open(patch, 60), options), all);
}

TEST_F(StoredChunks, ThatAreAbsentHaveTheFillValueAndThatFailAreNamed) {
  store_.remove(key_of(0, 4));
  const Extents patch = kWhole;
  const std::vector<Taken> filled = epoch_of(open(patch, 1), batches_of(1));
  EXPECT_EQ(filled.at(0).rows.at(0)[(0 * 24 + 8) * 24 + 8], 9);

  const auto refusal = [&] {
    try {
      (void)epoch_of(open(patch, 1), batches_of(1));
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("it was taken");
  };
  storage::Failure failure;
  failure.text = "the store is tired";
  store_.fail(key_of(0, 7), failure);
  EXPECT_NE(refusal().find("chunk c/0/2/1 of `vault://bucket/0.zarr`: the store is tired"), std::string::npos)
      << refusal();
  store_.forgive();
  const DatasetPtr listed = open(patch, 1);
  store_.put(key_of(0, 7), std::string(512, 'x'));
  try {
    (void)epoch_of(listed, batches_of(1));
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("it changed since it was listed"), std::string::npos) << error.message();
  }
}

TEST_F(StoredChunks, ThatAreLateCountAsFetching) {
  store_.set_latency(std::chrono::milliseconds(200));
  Loader loader(open(kWhole, 1), batches_of(1, 1));
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next());
  const Stats stats = loader.stats();
  EXPECT_GT(stats.wait.fetch_ns, stats.wait.prep_ns);
  EXPECT_GT(stats.prep.input_wait_s, stats.prep.busy_s);
}

TEST_F(StoredChunks, ThatNeverComeDoNotHoldUpClosing) {
  store_.hold(key_of(0, 13));
  Loader loader(open(kWhole, 8), batches_of(1, 2));
  loader.start_epoch(0);
  while (store_.answered() < kChunks - 1) std::this_thread::yield();
  loader.close();
  EXPECT_EQ(loader.stats().errors, 0u);
}

TEST_F(StoredChunks, OfAnEpochThatWasLeftDoNotStandInTheWay) {
  const Extents patch = {12, 12, 12};
  const DatasetPtr data = open(patch, 60);
  Loader loader(data, batches_of(2, 2));
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
    loader.start_epoch(epoch);
    ASSERT_TRUE(loader.next());
  }
  loader.start_epoch(9);
  std::uint64_t rows = 0;
  while (const BatchPtr batch = loader.next()) {
    expect_elements(*batch, 0, 0, patch);
    rows += batch->size();
  }
  EXPECT_EQ(rows, 60u);
}

TEST_F(StoredChunks, StandBesideAMaskThatIsReadPastThePageCache) {
  const Folder folder;
  folder.write("mask.npy", npy_of(elements_of(1, kWhole), kWhole));
  const Extents patch = {12, 12, 12};
  LoaderOptions options = batches_of(4, 2);
  options.storage = Storage::direct;
  Loader loader(open(patch, 20, folder.path("mask.npy")), options);
  loader.start_epoch(0);
  while (const BatchPtr batch = loader.next()) {
    expect_elements(*batch, 0, 0, patch);
    expect_elements(*batch, 1, 1, patch);
  }
}

TEST(VolumeOptionsOfALoader, ThatDoNotGoWithVolumesAreRefused) {
  const auto refusal = [](const LoaderOptions& options) -> std::string {
    std::vector<OpenedVolume> volumes(1);
    volumes[0].image = std::make_unique<Chunked>(0);
    try {
      Loader(dataset::from_volumes(std::move(volumes), patches_of({2, 2, 2}, 4)), options);
    } catch (const Error& error) {
      return error.message();
    }
    return "taken";
  };
  LoaderOptions options = batches_of(1);
  options.output.dtype = DType::f32;
  EXPECT_EQ(refusal(options), "dtype does not go with volumes");
  options = batches_of(1);
  options.transform = transform::parse_ops("pad:100");
  EXPECT_EQ(refusal(options), "cannot use transform `PadOrTrim`: patches of volumes do not take it");
}

}  // namespace
}  // namespace stoker::loader
