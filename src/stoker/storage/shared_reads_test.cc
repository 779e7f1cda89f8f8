#include "stoker/storage/shared_reads.h"

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/os/fault.h"
#include "stoker/storage/interruption.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::storage {
namespace {

std::string letters(std::size_t bytes, std::uint64_t seed) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + mix(seed, i / 4096) % 26);
  return text;
}

std::string read(SharedReads& reads, const Source& source, std::uint64_t offset, std::size_t bytes) {
  std::string text(bytes, '?');
  reads.read(source, offset, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string message_of(SharedReads& reads, const Source& source, std::size_t bytes) {
  try {
    read(reads, source, 0, bytes);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

template <typename Condition>
bool becomes_true(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(SharedReads, OfManyThreadsHaveTheirBytes) {
  MemoryStore store;
  store.set_latency(std::chrono::milliseconds(1));
  for (int i = 0; i < 8; ++i) store.put(fmt::format("bucket/{}", i), letters(100'000, static_cast<std::uint64_t>(i)));
  SharedReads reads(store, 3);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto source = store.open(fmt::format("bucket/{}", i), Storage::buffered);
      const std::string expected = letters(100'000, static_cast<std::uint64_t>(i));
      for (std::size_t at = 0; at < 100'000; at += 10'000) {
        EXPECT_EQ(read(reads, *source, at, 10'000), expected.substr(at, 10'000));
      }
      EXPECT_EQ(read(reads, *source, 100'000, 0), "");
    });
  }
  threads.clear();
  EXPECT_LE(store.most_in_flight(), 3u);
  EXPECT_EQ(store.requests(), 80u);
}

TEST(SharedReads, ALongReadIsSeveralRequestsAtOnce) {
  MemoryStore store;
  const std::string expected = letters(3 * SharedReads::kPiece + 5, 7);
  store.put("bucket/x", expected);
  store.hold("bucket/x");
  SharedReads reads(store, 64);
  std::jthread releases([&] {
    EXPECT_TRUE(becomes_true([&] { return store.most_in_flight() == 4; }));
    store.let_go();
  });
  const auto source = store.open("bucket/x", Storage::buffered);
  EXPECT_TRUE(read(reads, *source, 0, expected.size()) == expected);
}

TEST(SharedReads, NameWhatCannotBeReadAndGoOn) {
  MemoryStore store;
  store.put("bucket/bad", letters(1000, 1));
  store.put("bucket/changed", letters(1000, 1));
  store.put("bucket/good", letters(1000, 2));
  SharedReads reads(store, 4);
  const auto bad = store.open("bucket/bad", Storage::buffered),
             changed = store.open("bucket/changed", Storage::buffered),
             good = store.open("bucket/good", Storage::buffered);
  store.fail("bucket/bad", {ErrorKind::unavailable, "503 Slow Down", "", true, false});
  EXPECT_EQ(message_of(reads, *bad, 10), "cannot read `memory://bucket/bad` at byte 0: 503 Slow Down");
  store.put("bucket/changed", letters(900, 3));
  EXPECT_NE(message_of(reads, *changed, 10).find("it changed since it was listed"), std::string::npos);
  EXPECT_NE(message_of(reads, *good, 1001), "") << "past its end";
  EXPECT_EQ(read(reads, *good, 0, 1000), letters(1000, 2));
}

TEST(SharedReads, OfAStoreThatNeverAnswersEndWithTheInterruptionOfOneThread) {
  MemoryStore store;
  store.put("bucket/x", letters(1000, 1));
  store.hold("bucket/x");
  const auto source = store.open("bucket/x", Storage::buffered);
  SharedReads reads(store, 4);
  std::jthread other([&] { EXPECT_EQ(message_of(reads, *source, 500), "interrupted"); });
  Interruption interruption([&] { return store.requests() == 2; });
  const InterruptionScope scope(&interruption);
  EXPECT_EQ(message_of(reads, *source, 1000), "interrupted");
  EXPECT_EQ(message_of(reads, *source, 1000), "interrupted") << "for good";
}

TEST(SharedReads, WithoutAThreadAreRefused) {
  MemoryStore store;
  store.put("bucket/x", "content");
  const auto source = store.open("bucket/x", Storage::buffered);
  SharedReads reads(store, 4);
  {
    const os::InjectFault fault(os::Call::thread, {.error_number = EAGAIN});
    EXPECT_THROW(read(reads, *source, 0, 7), Error);
  }
  EXPECT_EQ(read(reads, *source, 0, 7), "content");
}

}  // namespace
}  // namespace stoker::storage
