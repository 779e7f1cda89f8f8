// Rows of several parts: ranges of several sources or whole objects, drawn from (seed, epoch, id) before the read.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/loader/part_layout.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::loader {
namespace {

using dataset::RowKey;
using storage::Location;
using storage::Storage;

constexpr std::uint64_t kVolumes = 3, kVolumeBytes = 5000;

enum class Lie { in_sources, in_objects };

// Volumes of bytes that tell their place. A row is a header, the same for all, and runs of bytes from anywhere: a patch
// of 64 bytes in 2 to 9 parts, or a sound whose frames come from 1 to 40 parts.
class PartPatches : public dataset::Dataset {
 public:
  PartPatches(storage::MemoryStore& store, std::uint64_t size, Lie lie, bool are_sounds, const std::string& folder = {},
              Storage storage = Storage::buffered)
      : store_(store), size_(size), lie_(lie), are_sounds_(are_sounds) {
    for (std::uint64_t v = 0; v < kVolumes; ++v) {
      texts_.push_back(header());
      for (std::uint64_t i = 0; i < kVolumeBytes; ++i)
        texts_[v] += static_cast<char>((i * 31 + i / 256 + v * 101) % 251);
      const std::string object = fmt::format("bucket/volume-{}", v);
      store_.put(object, texts_[v]);
      sources_.push_back(folder.empty() ? store_.open(object, storage)
                                        : storage::open_source(fmt::format("{}/volume-{}", folder, v), storage));
      borrowed_.push_back(sources_.back().get());
    }
    facts_.kind = "patches";
    facts_.most_parts = are_sounds ? 41 : 9;
    facts_.largest_bytes = header().size() + body_bytes();
    facts_.total_bytes = size * facts_.largest_bytes;
    if (!are_sounds) {
      codec::ArrayInfo array;
      array.rank = 2;
      array.shape[0] = size;
      array.shape[1] = body_bytes();
      array.dtype = DType::u8;
      array.data_bytes = size * body_bytes();
      facts_.array = array;
    }
    backends_.push_back(folder.empty() ? &store_ : &storage::local_files());
  }

  // What a row is made of: (volume, offset, bytes).
  struct Run {
    std::uint64_t volume, offset, bytes;
  };
  std::vector<Run> runs(std::uint64_t index, const RowKey& key) const {
    Random random(key.seed, key.epoch, key.id);
    std::vector<Run> runs;
    if (are_sounds_) runs.push_back({index % kVolumes, 0, header().size()});
    const std::uint64_t most = are_sounds_ ? 40 : 9, least = are_sounds_ ? 1 : 2;
    const std::uint64_t count = least + random.below(static_cast<std::uint32_t>(most - least + 1));
    for (std::uint64_t i = 0, left = body_bytes(); i < count; ++i) {
      const std::uint64_t bytes = i + 1 == count ? left : std::min<std::uint64_t>(left, 1 + random.below(12));
      runs.push_back({random.below(kVolumes), header().size() + random.below(kVolumeBytes - 300), bytes});
      left -= bytes;
    }
    return runs;
  }
  std::string row(std::uint64_t index, const RowKey& key) const {
    std::string text;
    for (const Run& run : runs(index, key)) text += texts_[run.volume].substr(run.offset, run.bytes);
    return text;
  }

  const dataset::Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return size_; }
  std::uint64_t id(std::uint64_t index) const noexcept override { return 1000 + index; }
  Location locate(std::uint64_t index, std::span<char> text) const noexcept override {
    return locate_part(index, {0, 0, id(index)}, 0, text);
  }
  std::uint32_t parts(std::uint64_t index, const RowKey& key) const noexcept override {
    return static_cast<std::uint32_t>(runs(index, key).size());
  }
  Location locate_part(std::uint64_t index, const RowKey& key, std::uint32_t part,
                       std::span<char> text) const noexcept override {
    const Run run = runs(index, key)[part];
    if (lie_ == Lie::in_sources) return Location::in_source(borrowed_[run.volume], run.offset, run.bytes);
    if (!text.empty()) *fmt::format_to(text.data(), "bucket/volume-{}", run.volume) = '\0';
    return Location::in_store(store_, text.empty() ? nullptr : text.data(), nullptr, run.offset, run.bytes);
  }
  dataset::Label label(std::uint64_t) const noexcept override { return {}; }
  codec::Media media(std::uint64_t) const noexcept override { return codec::media_named("wav"); }
  std::string name(std::uint64_t index) const override { return fmt::format("patch[{}]", index); }
  double column(std::size_t, std::uint64_t) const noexcept override { return 0; }
  std::span<const storage::Source* const> sources() const noexcept override {
    if (lie_ == Lie::in_objects) return {};
    return borrowed_;
  }
  std::span<const storage::Backend* const> backends() const noexcept override { return backends_; }

 private:
  std::uint64_t body_bytes() const { return are_sounds_ ? 200 : 64; }
  const std::string& header() const { return header_; }

  storage::MemoryStore& store_;
  std::uint64_t size_;
  Lie lie_;
  bool are_sounds_;
  std::string header_ = are_sounds_ ? wav(100, 0).substr(0, wav(100, 0).size() - 200) : std::string();
  std::vector<std::string> texts_;
  std::vector<std::unique_ptr<storage::Source>> sources_;
  std::vector<const storage::Source*> borrowed_;
  std::vector<const storage::Backend*> backends_;
  dataset::Facts facts_;
};

LoaderOptions shuffled(std::uint64_t batch_size, int workers, bool are_sounds) {
  LoaderOptions options = batches_of(batch_size, workers);
  options.shuffle.how = dataset::Shuffle::How::full;
  options.seed = 11;
  if (are_sounds) options.transform = transform::parse_ops("pad:100");
  return options;
}

// What the rows of a batch must hold.
std::string expected(const PartPatches& data, const LoaderOptions& options, std::uint64_t epoch, std::uint64_t index,
                     bool are_sounds) {
  const std::string row = data.row(index, {options.seed, epoch, data.id(index)});
  if (!are_sounds) return row;
  std::string frames;
  for (std::size_t at = row.size() - 200; at < row.size(); at += 2) {
    const auto low = static_cast<unsigned char>(row[at]), high = static_cast<unsigned char>(row[at + 1]);
    const float value = static_cast<float>(static_cast<std::int16_t>(low | high << 8)) / 32768.0f;
    frames.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return frames;
}

void expect_rows(const PartPatches& data, const LoaderOptions& options, std::uint64_t epoch, bool are_sounds,
                 const std::vector<Taken>& batches) {
  std::uint64_t rows = 0;
  for (const Taken& batch : batches) {
    for (std::size_t i = 0; i < batch.rows.size(); ++i, ++rows) {
      const auto index = static_cast<std::uint64_t>(batch.indices[i]);
      ASSERT_EQ(batch.rows[i], expected(data, options, epoch, index, are_sounds)) << "sample " << index;
    }
  }
  EXPECT_EQ(rows, data.size());
}

class ManyParts : public ::testing::TestWithParam<bool> {
 protected:
  bool are_sounds() const { return GetParam(); }
  std::shared_ptr<PartPatches> patches(std::uint64_t size, Lie lie = Lie::in_sources) {
    return std::make_shared<PartPatches>(store_, size, lie, are_sounds());
  }
  storage::MemoryStore store_;
};

TEST_P(ManyParts, EveryRowIsMadeOfThePartsThatItsKeyChose) {
  store_.set_latency(std::chrono::microseconds(50));
  for (const Lie lie : {Lie::in_sources, Lie::in_objects}) {
    const auto data = patches(50, lie);
    for (const int workers : {0, 1, 3}) {
      for (const std::uint64_t depth : {1, 4, 256}) {  // a row may have more parts than may be in flight
        LoaderOptions options = shuffled(8, workers, are_sounds());
        options.io_depth = depth;
        Loader loader(data, options);
        for (const std::uint64_t epoch : {0, 1}) {
          loader.start_epoch(epoch);
          expect_rows(*data, options, epoch, are_sounds(), drain(loader));
        }
      }
    }
  }
}

TEST_P(ManyParts, LocalSourcesOfEveryStorageGiveTheSame) {
  const Folder folder;
  {
    const auto data = patches(1);
    for (std::uint64_t v = 0; v < kVolumes; ++v) {
      std::string text(data->sources()[v]->size_bytes(), '\0');
      const storage::Read read{0, std::as_writable_bytes(std::span(text))};
      data->sources()[v]->read({&read, 1});
      folder.write(fmt::format("volume-{}", v), text);
    }
  }
  for (const Storage storage : {Storage::buffered, Storage::direct, Storage::mmap, Storage::ram}) {
    const auto data = std::make_shared<PartPatches>(store_, 50, Lie::in_sources, are_sounds(), folder.path(), storage);
    LoaderOptions options = shuffled(8, 2, are_sounds());
    options.storage = storage;
    Loader loader(data, options);
    for (const std::uint64_t epoch : {2, 3}) {
      loader.start_epoch(epoch);
      expect_rows(*data, options, epoch, are_sounds(), drain(loader));
    }
  }
}

TEST_P(ManyParts, AnEpochLooksDifferentFromTheOneBeforeAndCopiesFromEachOther) {
  const auto data = patches(20);
  const LoaderOptions options = shuffled(20, 2, are_sounds());
  std::map<std::int64_t, std::string> seen;
  const std::vector<Taken> batches = epoch_of(dataset::inflate(data, 2), options);
  std::uint64_t same = 0;
  for (const Taken& batch : batches) {
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
      const auto [at, is_new] = seen.try_emplace(batch.indices[i] % 20, batch.rows[i]);
      same += !is_new && at->second == batch.rows[i];
    }
  }
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_LT(same, 5u) << "copies have ids, and so parts, of their own";
}

TEST_P(ManyParts, ResumesWhereItStood) {
  const auto data = patches(60);
  const LoaderOptions options = shuffled(7, 2, are_sounds());
  const std::vector<Taken> whole = epoch_of(data, options);
  Loader one(data, options);
  std::vector<Taken> got = drain(one, 4);
  Loader two(data, options);
  two.load_state(one.state());
  for (Taken& batch : drain(two)) got.push_back(std::move(batch));
  EXPECT_EQ(got, whole);
}

TEST_P(ManyParts, ABadPartMakesItsRowBadAndIsNamed) {
  const auto data = patches(60, Lie::in_objects);
  const LoaderOptions usual = shuffled(8, 2, are_sounds());
  Loader first_look(data, usual);  // before the volume fails
  std::vector<std::uint64_t> bad;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto runs = data->runs(i, {usual.seed, 0, data->id(i)});
    if (std::any_of(runs.begin(), runs.end(), [](const PartPatches::Run& run) { return run.volume == 2; }))
      bad.push_back(i);
  }
  ASSERT_FALSE(bad.empty());
  for (const OnError policy : {OnError::skip, OnError::zero, OnError::replace}) {
    std::vector<Taken> first;
    for (const int workers : {1, 3}) {
      LoaderOptions options = shuffled(8, workers, are_sounds());
      options.on_error = policy;
      Loader loader(data, options);
      store_.fail("bucket/volume-2", {ErrorKind::unavailable, "503 Slow Down", "", true, false});
      loader.start_epoch(0);
      const std::vector<Taken> batches = drain(loader);
      if (first.empty()) first = batches;
      EXPECT_EQ(batches, first);
      std::vector<std::uint64_t> named;
      for (const SampleError& error : loader.errors()) {
        named.push_back(error.index);
        const auto runs = data->runs(error.index, {options.seed, 0, data->id(error.index)});
        const auto broken =
            std::find_if(runs.begin(), runs.end(), [](const PartPatches::Run& run) { return run.volume == 2; });
        EXPECT_EQ(error.cause, fmt::format("part {}: 503 Slow Down", broken - runs.begin() + 1));
      }
      std::sort(named.begin(), named.end());
      EXPECT_EQ(named, bad);
      store_.forgive();
    }
  }
}

TEST_P(ManyParts, PartsOfARowAreInFlightTogetherAndMemoryStaysBelowTheLimit) {
  const auto data = patches(300);
  LoaderOptions options = shuffled(16, 2, are_sounds());
  options.io_depth = 200;
  options.prefetch_factor = 8;
  options.memory_limit = 16 << 20;
  Loader loader(data, options);
  store_.await_in_flight(200);
  loader.start_epoch(0);
  expect_rows(*data, options, 0, are_sounds(), drain(loader));
  EXPECT_EQ(store_.most_in_flight(), 200u);
  EXPECT_LE(loader.stats().memory_peak, options.memory_limit);
}

TEST_P(ManyParts, AnEpochCanBeLeftWhilePartsAreInFlight) {
  store_.set_latency(std::chrono::milliseconds(2));
  const auto data = patches(200);
  LoaderOptions options = shuffled(4, 2, are_sounds());
  options.io_depth = 8;
  Loader loader(data, options);
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    loader.start_epoch(epoch);
    drain(loader, 2);
  }
  loader.start_epoch(9);
  expect_rows(*data, options, 9, are_sounds(), drain(loader));
}

INSTANTIATE_TEST_SUITE_P(Kinds, ManyParts, ::testing::Values(false, true),
                         [](const auto& kind) { return kind.param ? "Sounds" : "Arrays"; });

TEST(PartLayout, PutsPartsWithoutSlackSideBySideAndAlignsTheOthers) {
  const Folder folder;
  folder.write("x", std::string(50'000, 'x'));
  const auto buffered = storage::open_source(folder.path("x"));
  const auto fetcher = storage::make_fetcher({.storage = Storage::buffered});
  PartLayout layout(*fetcher, 64);
  EXPECT_EQ(layout.add(Location::in_source(buffered.get(), 7, 10)).at, 0u);
  EXPECT_EQ(layout.add(Location::in_source(buffered.get(), 90, 5)).at, 10u);
  const PartLayout::Place file = layout.add(Location::in_folder(storage::kWorkingFolder, "x", 100));
  EXPECT_EQ(file.at, 64u);
  EXPECT_GT(file.bytes, 100u) << "one byte shows that it grew";
  EXPECT_EQ(layout.total(), file.at + file.bytes);
}

TEST(Parts, AreToldByTheirPlaceAndLength) {
  storage::MemoryStore store;
  const PartPatches data(store, 4, Lie::in_sources, false);
  const RowKey key{1, 2, 3};
  std::vector<Location> parts(5);
  dataset::locate_parts(data, 3, key, parts);
  const std::vector<PartPatches::Run> runs = data.runs(3, key);
  ASSERT_EQ(parts.size(), runs.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].offset, runs[i].offset);
    EXPECT_EQ(parts[i].bytes, runs[i].bytes);
    EXPECT_NE(parts[i].source, nullptr);
  }
}

}  // namespace
}  // namespace stoker::loader
