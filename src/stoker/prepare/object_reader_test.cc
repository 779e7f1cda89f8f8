#include "stoker/prepare/object_reader.h"

#include <map>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/os/fault.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::prepare {
namespace {

using dataset::DatasetPtr;
using dataset::Tree;
using std::chrono::milliseconds;

struct ReadBack {
  std::map<std::string, std::string> texts;  // of items that came whole
  std::map<std::string, std::string> causes;
  bool is_done = false;
};

std::string patterned(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

storage::Failure failing(std::string text, bool ends_the_run) {
  storage::Failure failure;
  failure.text = std::move(text);
  failure.ends_the_run = ends_the_run;
  return failure;
}

ReadBack read_all(
    const dataset::Dataset& data, const ReaderOptions& options = {},
    const std::function<bool()>& keep_going = [] { return true; }) {
  std::vector<ReadItem> items;
  for (std::uint64_t i = 0; i < data.size(); ++i) items.push_back({&data, i, data.location(i).bytes});
  ReadBack back;
  std::map<std::size_t, std::string> parts;
  const ReadHandlers handlers{
      .take =
          [&](std::size_t item, std::uint64_t offset, std::span<const std::byte> bytes, bool is_last) {
            std::string& text = parts[item];
            text.resize(items[item].bytes);
            std::copy_n(reinterpret_cast<const char*>(bytes.data()), bytes.size(),
                        text.begin() + static_cast<std::ptrdiff_t>(offset));
            if (is_last) back.texts[data.name(item)] = text;
          },
      .fail = [&](std::size_t item, const storage::Failure& why) { back.causes[data.name(item)] = why.text; },
      .keep_going = keep_going};
  back.is_done = read_objects(items, data.backends(), options, handlers);
  return back;
}

TEST(Pace, LetsARequestGoAndThenAsksForItsTime) {
  Pace pace(1'000'000);
  const Pace::Time start = Pace::Time(std::chrono::hours(1));
  EXPECT_LE(pace.wait(start).count(), 0);
  pace.count(500'000, start);
  EXPECT_NEAR(static_cast<double>(pace.wait(start).count()), 0.4e9, 1e6);  // a tenth of a second is credit
  EXPECT_LE(pace.wait(start + milliseconds(400)).count(), 0);
  pace.count(500'000, start + milliseconds(400));
  EXPECT_NEAR(static_cast<double>(pace.wait(start + milliseconds(400)).count()), 0.5e9, 1e6);
}

TEST(Pace, KeepsTheRateOverALongTime) {
  Pace pace(1'000'000);
  Pace::Time now = Pace::Time(std::chrono::hours(1));
  const Pace::Time start = now;
  std::uint64_t bytes = 0;
  for (int i = 0; i < 1000; ++i) {
    now += std::max(std::chrono::nanoseconds(0), pace.wait(now));
    pace.count(7919, now);
    bytes += 7919;
  }
  const double seconds = std::chrono::duration<double>(now - start).count();
  EXPECT_NEAR(static_cast<double>(bytes) / seconds, 1e6, 0.02e6);
}

TEST(Pace, WithoutALimitNothingWaits) {
  Pace pace(0);
  pace.count(std::uint64_t{1} << 60, {});
  EXPECT_EQ(pace.wait({}).count(), 0);
}

TEST(ObjectReader, ReadsObjectsAndLocalFilesOfEverySize) {
  Tree tree;
  storage::MemoryStore store;
  std::map<std::string, std::string> wanted;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, std::size_t{kPieceBytes},
                                  std::size_t{kPieceBytes + 1}, std::size_t{2 * kPieceBytes + 77}}) {
    const std::string name = fmt::format("{}.wav", bytes);
    wanted[name] = patterned(bytes);
    tree.write(name, wanted[name]);
    store.put("bucket/" + name, wanted[name]);
  }
  for (const std::string& address : {tree.at(), store.address("bucket")}) {
    const ReadBack back = read_all(*dataset::open(address, dataset::without_cache()));
    EXPECT_TRUE(back.is_done);
    EXPECT_TRUE(back.texts == wanted) << address;
    EXPECT_TRUE(back.causes.empty());
  }
}

TEST(ObjectReader, HasManyRequestsInFlightButNotMoreThanItsMemoryHolds) {
  storage::MemoryStore store;
  for (int i = 0; i < 200; ++i) store.put(fmt::format("bucket/{:03}.wav", i), patterned(1000));
  store.set_latency(std::chrono::milliseconds(2));
  const DatasetPtr data = dataset::open(store.address("bucket"), dataset::without_cache());
  EXPECT_EQ(read_all(*data).texts.size(), 200u);
  EXPECT_GT(store.most_in_flight(), 50u);
  storage::MemoryStore small("small");
  for (int i = 0; i < 50; ++i) small.put(fmt::format("bucket/{:03}.wav", i), patterned(1000));
  const DatasetPtr few = dataset::open(small.address("bucket"), dataset::without_cache());
  EXPECT_EQ(read_all(*few, {.memory_bytes = 5000}).texts.size(), 50u);
  EXPECT_LE(small.most_in_flight(), 5u);
  EXPECT_EQ(read_all(*few, {.memory_bytes = 1}).texts.size(), 50u);
}

TEST(ObjectReader, NamesWhatCannotBeReadAndReadsTheOthers) {
  storage::MemoryStore store;
  for (const char* const name : {"a", "b", "c"}) store.put(fmt::format("bucket/{}.wav", name), patterned(100));
  store.put("bucket/large.wav", patterned(3 * kPieceBytes));
  const DatasetPtr data = dataset::open(store.address("bucket"), dataset::without_cache());
  store.put("bucket/b.wav", "another version");
  store.fail("bucket/large.wav", failing("the server is on fire", false));
  const ReadBack back = read_all(*data);
  EXPECT_EQ(back.texts.size(), 2u);
  ASSERT_EQ(back.causes.size(), 2u);
  EXPECT_NE(back.causes.at("b.wav").find("it changed since it was listed"), std::string::npos);
  EXPECT_EQ(back.causes.at("large.wav"), "the server is on fire");
}

TEST(ObjectReader, NamesLocalFilesThatChangedOrWentAway) {
  Tree tree;
  tree.write("gone.wav", "x");
  tree.write("long.wav", "x");
  tree.write("stays.wav", "x");
  const DatasetPtr data = dataset::open(tree.at(), dataset::without_cache());
  tree.remove("gone.wav");
  tree.write("long.wav", "xyz");
  const ReadBack back = read_all(*data);
  EXPECT_EQ(back.texts.size(), 1u);
  EXPECT_EQ(back.causes.at("gone.wav"), "No such file or directory");
  EXPECT_NE(back.causes.at("long.wav").find("1 bytes long"), std::string::npos);
}

TEST(ObjectReader, EndsWhereAllObjectsAreConcerned) {
  storage::MemoryStore store;
  store.put("bucket/a.wav", "x");
  const DatasetPtr data = dataset::open(store.address("bucket"), dataset::without_cache());
  store.fail("bucket/a.wav", failing("the keys expired", true));
  const auto error = dataset::error_of([&] { read_all(*data); });
  EXPECT_TRUE(dataset::mentions(error, "cannot read `a.wav`: the keys expired"));
}

TEST(ObjectReader, StopsWhenItIsAskedToWhileRequestsAreInFlight) {
  storage::MemoryStore store;
  for (int i = 0; i < 20; ++i) store.put(fmt::format("bucket/{}.wav", i), "x");
  store.hold("bucket/7.wav");
  const DatasetPtr data = dataset::open(store.address("bucket"), dataset::without_cache());
  const ReadBack back = read_all(*data, {}, [&] { return store.answered() < 19; });
  EXPECT_FALSE(back.is_done);
  EXPECT_EQ(back.texts.size(), 19u);
}

}  // namespace
}  // namespace stoker::prepare
