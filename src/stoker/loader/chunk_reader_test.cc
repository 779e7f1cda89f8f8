#include "stoker/loader/chunk_reader.h"

#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/storage/memory_store_test.h"

namespace stoker::loader {
namespace {

using TakenState = ChunkReader::Taken::State;

constexpr std::uint64_t kLimit = 4 << 20;

// Each chunk is an object of its own; chunk 9 is absent.
class Stored final : public dataset::Volume {
 public:
  Stored(storage::MemoryStore& store, std::uint64_t bytes) : backend_(&store), bytes_(bytes) {
    info_.extents = {10, 1, 1};
    info_.chunk = {1, 1, 1};
    for (std::uint64_t c = 0; c < 9; ++c) store.put(fmt::format("v/{}", c), content(c));
  }
  std::string content(std::uint64_t chunk) const { return std::string(bytes_, static_cast<char>('a' + chunk)); }

  const dataset::VolumeInfo& info() const noexcept override { return info_; }
  std::string_view name() const noexcept override { return "stored"; }
  storage::Location locate_chunk(std::uint64_t chunk, std::span<char> text) const noexcept override {
    if (chunk == 9) return {};
    *fmt::format_to_n(text.data(), text.size() - 1, "v/{}", chunk).out = '\0';
    return storage::Location::in_store(*backend_, text.data(), nullptr, 0, bytes_);
  }
  std::span<const storage::Backend* const> backends() const noexcept override { return {&backend_, 1}; }

 private:
  dataset::VolumeInfo info_;
  const storage::Backend* backend_;
  std::uint64_t bytes_;
};

struct Reading {
  explicit Reading(std::uint64_t bytes, std::uint64_t rows_ahead = 100)
      : volume(store, bytes), reader(store.make_fetcher({.depth = 16}, nullptr), kLimit, rows_ahead) {}

  void ask(std::uint64_t chunk) {
    const ChunkReader::Wanted wanted{&volume, {0, chunk}};
    reader.ask({&wanted, 1});
  }
  // Takes it once it is no longer on its way.
  ChunkReader::Taken take(std::uint64_t chunk) { return reader.take({0, chunk}); }
  // Until `count` reads have ended.
  void settle(std::uint64_t count) const {
    while (store.answered() < count) std::this_thread::yield();
  }

  storage::MemoryStore store;
  Stored volume;
  ChunkReader reader;
};

std::string text_of(const ChunkReader::Taken& taken) {
  return std::string(reinterpret_cast<const char*>(taken.bytes().data()), taken.bytes().size());
}

TEST(ChunkReader, ReadsWhatWasAskedForOnce) {
  Reading reading(100);
  reading.ask(3);
  reading.ask(3);
  reading.settle(1);
  const ChunkReader::Taken taken = reading.take(3);
  EXPECT_EQ(taken.state(), TakenState::read);
  EXPECT_EQ(text_of(taken), reading.volume.content(3));
  EXPECT_EQ(reading.take(3).state(), TakenState::missing) << "it was taken";
  EXPECT_EQ(reading.take(4).state(), TakenState::missing) << "nobody asked for it";
  EXPECT_EQ(reading.store.requests(), 1u);
}

TEST(ChunkReader, TellsAbsentChunksAndFailures) {
  Reading reading(100);
  storage::Failure failure;
  failure.text = "the store is tired";
  reading.store.fail("v/2", failure);
  reading.store.put("v/5", "short");
  for (const std::uint64_t chunk : {9, 2, 5, 1}) reading.ask(chunk);
  reading.settle(3);
  EXPECT_EQ(reading.take(1).state(), TakenState::read);
  EXPECT_EQ(reading.take(9).state(), TakenState::absent);
  EXPECT_EQ(reading.take(2).failure().text, "the store is tired");
  EXPECT_EQ(reading.take(5).failure().text, "it was 100 bytes long when it was listed and is 5 now");
}

TEST(ChunkReader, LeavesToTheWorkerWhatHasNoRoom) {
  Reading large(kLimit);
  large.ask(0);
  large.ask(9);
  while (large.take(9).state() != TakenState::absent) large.ask(9);  // the thread has looked at both
  EXPECT_EQ(large.take(0).state(), TakenState::missing);
  EXPECT_EQ(large.store.requests(), 0u);

  Reading reading(1 << 20);
  for (std::uint64_t chunk = 0; chunk < 9; ++chunk) reading.ask(chunk);
  reading.settle(2);
  EXPECT_EQ(reading.take(8).state(), TakenState::missing) << "waiting might mean waiting for later patches";
  for (std::uint64_t chunk = 0; chunk < 2; ++chunk) EXPECT_EQ(reading.take(chunk).state(), TakenState::read);
}

TEST(ChunkReader, GivesUpWhatNobodyTakes) {
  Reading reading(1 << 20, 1);
  const std::uint64_t fit = [&] {
    std::uint64_t count = 0;
    for (; count < 9; ++count) reading.ask(count);
    reading.settle(2);
    return reading.store.requests();
  }();
  EXPECT_LT(fit, 9u);
  for (int i = 0; i < 1000; ++i) reading.reader.ask({});  // patches go by
  reading.ask(8);
  while (reading.store.requests() < 9) std::this_thread::yield();  // the old ones made room
  EXPECT_EQ(text_of(reading.take(8)), reading.volume.content(8));
}

TEST(ChunkReader, ForgetsWhatIsReadAndWhatIsOnItsWay) {
  Reading reading(100);
  reading.store.hold("v/1");
  reading.ask(0);
  reading.ask(1);
  reading.settle(1);
  reading.reader.forget();
  EXPECT_EQ(reading.take(0).state(), TakenState::missing);
  reading.store.let_go();
  reading.settle(2);
  reading.ask(0);
  reading.settle(3);
  EXPECT_EQ(reading.take(0).state(), TakenState::read);
}

TEST(ChunkReader, EndsWaitsWhenItStops) {
  Reading reading(100);
  reading.store.hold("v/1");
  reading.ask(1);
  while (reading.store.requests() == 0) std::this_thread::yield();
  std::thread stopping([&] { reading.reader.stop_waiting(); });
  EXPECT_EQ(reading.take(1).state(), TakenState::stopped);
  stopping.join();
}

}  // namespace
}  // namespace stoker::loader
