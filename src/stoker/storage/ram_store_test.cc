#include "stoker/storage/ram_store.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::storage {
namespace {

std::string text_of(std::size_t bytes, unsigned seed) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i * 31 + i / 251 + seed) % 256);
  return text;
}

void wait_until_all_is_there(const RamStore& store) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const auto is_there = [&] { return store.figures().held_bytes >= store.figures().room_bytes; };
  while (!is_there() && store.problem().empty() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(is_there() || !store.problem().empty()) << "only " << store.figures().held_bytes << " bytes came";
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Keeping : public testing::Test {
 protected:
  std::unique_ptr<Source> source(const std::string& name, const std::string& text) {
    return open_source(folder_.file(name, text));
  }
  os::TempFolder folder_;
};

TEST_F(Keeping, SourcesAreThereOnceTheyWereReadAhead) {
  const std::string one = text_of((20 << 20) + 12'345, 1), two = text_of(100, 2);
  const auto first = source("one", one), second = source("two", two);
  RamStore store(64 << 20);
  store.add(*first);
  store.add(*second);
  EXPECT_TRUE(store.find(*first, 0, 10).empty());
  store.start();
  wait_until_all_is_there(store);
  EXPECT_TRUE(store.problem().empty());
  EXPECT_EQ(as_text(store.find(*first, 0, one.size())), one);
  EXPECT_EQ(as_text(store.find(*first, 12'000'000, 5)), one.substr(12'000'000, 5));
  EXPECT_EQ(as_text(store.find(*second, 50, 50)), two.substr(50));
  EXPECT_TRUE(store.find(*second, 50, 51).empty());
  EXPECT_TRUE(store.find(*second, ~std::uint64_t{0}, 2).empty());
}

TEST_F(Keeping, WhatDoesNotFitIsAFixedShareAndMemoryStaysBelowTheLimit) {
  const std::string text = text_of(10 << 20, 3);
  const auto first = source("one", text), second = source("two", text);
  RamStore store(15 << 20);
  store.add(*first);
  store.add(*second);
  store.start();
  wait_until_all_is_there(store);
  const RamStore::Figures figures = store.figures();
  EXPECT_LE(figures.memory_bytes, 15u << 20);
  EXPECT_GE(figures.room_bytes, 12u << 20);
  EXPECT_EQ(figures.wanted_bytes, 20u << 20);
  EXPECT_EQ(as_text(store.find(*second, 0, 1000)), text.substr(0, 1000));
  EXPECT_TRUE(store.find(*second, (10 << 20) - 10, 10).empty());
}

TEST_F(Keeping, AFailingDiskEndsTheReadingAheadAndSaysSo) {
  const auto first = source("one", text_of(5 << 20, 1));
  RamStore store(64 << 20);
  store.add(*first);
  folder_.file("one", "short now");
  store.start();
  wait_until_all_is_there(store);
  EXPECT_NE(store.problem().in_python().find("changed since it was opened"), std::string::npos)
      << store.problem().in_python();
  EXPECT_TRUE(store.find(*first, 0, 10).empty());
}

// Bytes behind read() alone, as in a store; its name is no path.
class FarSource final : public Source {
 public:
  explicit FarSource(std::string text, std::uint64_t fails_at = ~std::uint64_t{0})
      : text_(std::move(text)), fails_at_(fails_at) {}
  std::string_view name() const noexcept override { return "store://far"; }
  std::uint64_t size_bytes() const noexcept override { return text_.size(); }
  void read(std::span<const Read> reads) const override {
    for (const Read& read : reads) {
      if (read.offset >= fails_at_) throw Error(ErrorKind::unavailable, "cannot read `store://far`: reset by peer");
      std::memcpy(read.into.data(), text_.data() + read.offset, read.into.size());
    }
  }

 private:
  std::string text_;
  std::uint64_t fails_at_;
};

TEST_F(Keeping, ASourceWithoutADescriptorIsCopiedWithinTheLimit) {
  const std::string text = text_of((5 << 20) + 77, 4);
  const FarSource far(text);
  RamStore store(64 << 20);
  store.add(far);
  store.start();
  wait_until_all_is_there(store);
  EXPECT_TRUE(store.problem().empty());
  EXPECT_EQ(as_text(store.find(far, 0, text.size())), text);
  EXPECT_EQ(as_text(store.find(far, 5 << 20, 77)), text.substr(5 << 20));

  RamStore small(4 << 20);
  small.add(far);
  small.start();
  wait_until_all_is_there(small);
  EXPECT_LE(small.figures().memory_bytes, 4u << 20);
  EXPECT_EQ(as_text(small.find(far, 0, 1000)), text.substr(0, 1000));
  EXPECT_TRUE(small.find(far, 5 << 20, 77).empty());
}

TEST_F(Keeping, ASourceThatIsInMemoryAlreadyIsTakenOver) {
  const std::string text = text_of(5 << 20, 4);
  const FarSource far(text, 0), too_large(text, 0);  // reading them fails
  os::Arena first(text.size()), second(text.size());
  std::memcpy(first.data(), text.data(), text.size());
  RamStore store(7 << 20);
  store.add(far, std::move(first));
  store.add(too_large, std::move(second));
  store.start();
  EXPECT_EQ(as_text(store.find(far, 1000, 4 << 20)), text.substr(1000, 4 << 20));
  EXPECT_TRUE(store.find(too_large, 0, 10).empty());
  EXPECT_LE(store.figures().memory_bytes, 7u << 20);
}

TEST_F(Keeping, WhatWasCopiedBeforeAFailureStaysAndTheTextOfTheFailureIsSaid) {
  const std::string text = text_of(5 << 20, 4);
  const FarSource far(text, 2 << 20);
  RamStore store(64 << 20);
  store.add(far);
  store.start();
  wait_until_all_is_there(store);
  EXPECT_NE(store.problem().in_python().find("reset by peer"), std::string::npos) << store.problem().in_python();
  EXPECT_EQ(as_text(store.find(far, 1 << 20, 1000)), text.substr(1 << 20, 1000));
  EXPECT_TRUE(store.find(far, 3 << 20, 10).empty());
}

TEST_F(Keeping, AFileThatWasRenamedSinceItWasOpenedIsStillTheOneThatIsRead) {
  const std::string text = text_of(3 << 20, 5);
  const auto opened = source("one", text);
  std::filesystem::rename(folder_.path() + "/one", folder_.path() + "/elsewhere");
  folder_.file("one", text_of(3 << 20, 6));
  RamStore store(64 << 20);
  store.add(*opened);
  store.start();
  wait_until_all_is_there(store);
  EXPECT_EQ(as_text(store.find(*opened, 0, text.size())), text);
}

TEST_F(Keeping, WithoutAThreadNothingIsReadAheadAndThatIsSaid) {
  const auto first = source("one", text_of(1000, 1));
  RamStore store(64 << 20);
  store.add(*first);
  const os::InjectFault none_left(os::Call::thread, {.error_number = EAGAIN});
  store.start();
  EXPECT_NE(store.problem().in_python().find("cannot start a thread"), std::string::npos)
      << store.problem().in_python();
  EXPECT_TRUE(store.find(*first, 0, 10).empty());
}

TEST_F(Keeping, AStoreThatIsStoppedWhileItReadsAheadReadsNoFurther) {
  // One hole: it takes no room on the disk, and far longer to read than a busy machine takes to call stop.
  const std::string path = folder_.file("one", "");
  std::filesystem::resize_file(path, std::uint64_t{64} << 30);
  const auto huge = open_source(path);
  RamStore store(std::uint64_t{128} << 30);
  store.add(*huge);
  store.start();
  while (store.figures().held_bytes == 0 && store.problem().empty()) std::this_thread::yield();
  store.stop();
  EXPECT_TRUE(store.problem().empty());
  EXPECT_GT(store.figures().held_bytes, 0u);
  EXPECT_LT(store.figures().held_bytes, store.figures().room_bytes);
}

TEST(KeepingFiles, AreThereAfterTheyWereReadOnceIfTheyFitAndDidNotChange) {
  std::vector<std::string> files;
  for (unsigned i = 0; i < 100; ++i) files.push_back(text_of(1000 + i, i));
  RamStore store(64 << 10);
  store.add_files(files.size(), [&](std::uint64_t i) { return files[i].size(); });
  const RamStore::Figures figures = store.figures();
  EXPECT_LE(figures.memory_bytes, 64u << 10);
  EXPECT_GT(figures.room_bytes, 40u << 10);
  EXPECT_LT(figures.room_bytes, figures.wanted_bytes);

  EXPECT_TRUE(store.find_file(3, files[3].size()).empty());
  store.keep_file(3, std::as_bytes(std::span(files[4])));  // another size than it had
  EXPECT_TRUE(store.find_file(3, files[3].size()).empty());
  for (unsigned i = 0; i < files.size(); ++i) store.keep_file(i, std::as_bytes(std::span(files[i])));
  EXPECT_EQ(store.figures().held_bytes, figures.room_bytes);
  EXPECT_EQ(as_text(store.find_file(3, files[3].size())), files[3]);
  EXPECT_TRUE(store.find_file(3, files[3].size() + 1).empty());
  EXPECT_TRUE(store.find_file(99, files[99].size()).empty()) << "does not fit";
}

TEST(KeepingFiles, ProcessesOfOneJobHoldThemOnceAndEachCountsItsShare) {
  const os::TempFolder folder;
  const std::string text = text_of(100'000, 1);
  const RamStore::Sharing sharing{7, 2, folder.path()};
  const auto bytes_of = [&](std::uint64_t) { return text.size(); };
  RamStore one(1 << 20), other(1 << 20);
  one.add_files(15, bytes_of, sharing);
  other.add_files(15, bytes_of, sharing);
  EXPECT_TRUE(one.note().empty() && other.note().empty());

  one.keep_file(14, std::as_bytes(std::span(text)));

  EXPECT_EQ(as_text(other.find_file(14, text.size())), text);
  EXPECT_NE(other.find_file(14, text.size()).data(), one.find_file(14, text.size()).data());
  EXPECT_EQ(other.figures().held_bytes, text.size());
  EXPECT_EQ(other.figures().room_bytes, 15 * text.size()) << "more than the limit of one, less than those of both";
  EXPECT_LE(other.figures().memory_bytes, 1u << 20);
}

TEST(KeepingFiles, AProcessWritesNoMoreThanItsOwnLimitAndTheOthersWriteTheRest) {
  const os::TempFolder folder;
  const std::string text = text_of(100'000, 1);
  const RamStore::Sharing sharing{7, 2, folder.path()};
  const auto bytes_of = [&](std::uint64_t) { return text.size(); };
  RamStore one(350'000), other(350'000);
  one.add_files(6, bytes_of, sharing);
  other.add_files(6, bytes_of, sharing);

  for (std::uint64_t number = 0; number < 6; ++number) one.keep_file(number, std::as_bytes(std::span(text)));

  EXPECT_EQ(one.figures().room_bytes, 6 * text.size());
  EXPECT_EQ(one.figures().held_bytes, 3 * text.size()) << "the others may never come";
  EXPECT_LE(one.figures().memory_bytes, 350'000u);
  other.keep_file(5, std::as_bytes(std::span(text)));
  EXPECT_EQ(as_text(one.find_file(5, text.size())), text);
}

TEST(KeepingFiles, ProcessesThatPlaceThemDifferentlyDoNotShare) {
  const os::TempFolder folder;
  const std::string text = text_of(1000, 1);
  const RamStore::Sharing sharing{7, 2, folder.path()};
  RamStore even(1 << 20), odd(1 << 20);
  even.add_files(
      4, [](std::uint64_t number) { return number % 2 == 0 ? 1000u : 0u; }, sharing);
  odd.add_files(
      4, [](std::uint64_t number) { return number % 2 == 1 ? 1000u : 0u; }, sharing);

  even.keep_file(0, std::as_bytes(std::span(text)));

  EXPECT_EQ(as_text(even.find_file(0, 1000)), text);
  EXPECT_EQ(odd.figures().held_bytes, 0u);
}

TEST(KeepingFiles, AreHeldByEachProcessWhereTheyCannotBeShared) {
  const std::string text = text_of(100'000, 1);
  RamStore store(1 << 20);
  store.add_files(
      5, [&](std::uint64_t) { return text.size(); }, RamStore::Sharing{7, 2, "/nowhere"});
  EXPECT_NE(store.note().in_python().find("holds a copy of its own"), std::string::npos) << store.note().in_python();

  store.keep_file(3, std::as_bytes(std::span(text)));

  EXPECT_EQ(as_text(store.find_file(3, text.size())), text);
}

TEST(KeepingFiles, ManyThreadsMayKeepAndFindTheSame) {
  const std::string text = text_of(4000, 1);
  RamStore store(16 << 20);
  store.add_files(500, [&](std::uint64_t) { return text.size(); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (unsigned i = 0; i < 500; ++i) {
        store.keep_file(i, std::as_bytes(std::span(text)));
        const auto found = store.find_file(i, text.size());
        EXPECT_TRUE(found.empty() || std::memcmp(found.data(), text.data(), text.size()) == 0);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store.figures().held_bytes, 500u * 4000u);
}

}  // namespace
}  // namespace stoker::storage
