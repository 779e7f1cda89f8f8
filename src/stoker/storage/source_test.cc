// One suite for every kind of source, and a few tests of what only one kind does.
#include "stoker/storage/source.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/arena.h"
#include "stoker/os/fault.h"
#include "stoker/os/ring.h"
#include "stoker/os/temp_folder_test.h"
#include "stoker/storage/any_store_test.h"

namespace stoker::storage {
namespace {

using os::Call;
using os::InjectFault;

constexpr std::size_t kSize = 1'000'003;  // no multiple of anything

std::string pattern(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i * 2654435761u) >> 13);
  return text;
}

std::string read_text(const Source& source, std::uint64_t offset, std::size_t bytes) {
  std::string text(bytes, '?');
  const Read read{offset, std::as_writable_bytes(std::span(text))};
  source.read({&read, 1});
  return text;
}

ErrorKind kind_of(const std::function<void()>& action, const std::string& named = "") {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(named), std::string::npos) << error.message();
    return error.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::internal;
}

enum class Kind { buffered, direct, mmap, mapped_file, memory, store, s3 };

class EverySource : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Source> open(const std::string& name, std::string text) {
    path_ = folder_.file(name, text);
    switch (GetParam()) {
      case Kind::buffered:
        return open_source(path_, Storage::buffered);
      case Kind::direct:
        return open_source(path_, Storage::direct);
      case Kind::mmap:
        return open_source(path_, Storage::mmap);
      case Kind::mapped_file:
        return open_mapped_file(path_);
      case Kind::memory:
        break;
      case Kind::store:
      case Kind::s3:
        store_.put("bucket/" + name, std::move(text));
        path_ = store_.address("bucket/" + name);
        return open_source(path_);
    }
    held_ = std::move(text);
    return memory_source(path_, std::as_bytes(std::span(held_)));
  }
  bool reads_with_calls() const { return GetParam() == Kind::buffered || GetParam() == Kind::direct; }

  bool is_file() const { return GetParam() != Kind::memory && !is_store(); }
  bool is_store() const { return GetParam() == Kind::store || GetParam() == Kind::s3; }

  AnyStore store_{GetParam() == Kind::s3 ? StoreKind::s3 : StoreKind::memory};
  os::TempFolder folder_;
  std::string path_;
  std::string held_;
};

TEST_P(EverySource, GivesExactBytesAtEveryKindOfOffsetLengthAndAlignment) {
  const std::string text = pattern(kSize);
  const auto source = open("f", text);
  EXPECT_EQ(source->name(), path_);
  ASSERT_EQ(source->size_bytes(), kSize);
  const os::Arena arena(2 * kSize);
  const std::uint64_t offsets[] = {0,       1,       511,     512,     4095,      4096, 4097,
                                   262'143, 262'144, 262'145, 999'424, kSize - 1, kSize};
  const std::size_t lengths[] = {0, 1, 512, 4095, 4096, 4097, 8192, 262'144, 300'001, kSize};
  for (const std::uint64_t offset : offsets) {
    for (const std::size_t length : lengths) {
      if (offset + length > kSize) continue;
      for (const std::size_t shift : {0, 1, 512}) {
        std::byte* const to = arena.data() + shift;
        std::memset(to, 0xee, length + 1);
        const Read read{offset, {to, length}};
        source->read({&read, 1});
        ASSERT_EQ(std::memcmp(to, text.data() + offset, length), 0) << offset << "+" << length << " shift " << shift;
        ASSERT_EQ(to[length], std::byte{0xee}) << offset << "+" << length;
      }
    }
  }
}

TEST_P(EverySource, FillsManyBuffersInOneCall) {
  const std::string text = pattern(kSize);
  const auto source = open("f", text);
  std::mt19937 random(1);
  std::vector<std::string> buffers(200);
  std::vector<Read> reads;
  for (std::string& buffer : buffers) {
    const std::uint64_t offset = random() % kSize;
    buffer.resize(random() % std::min<std::uint64_t>(20'000, kSize - offset + 1));
    reads.push_back({offset, std::as_writable_bytes(std::span(buffer))});
  }
  source->read(reads);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    ASSERT_EQ(buffers[i], text.substr(reads[i].offset, buffers[i].size())) << i;
  }
  source->read({});
}

TEST_P(EverySource, MayBeEmpty) {
  const auto source = open("f", "");
  EXPECT_EQ(source->size_bytes(), 0u);
  EXPECT_EQ(read_text(*source, 0, 0), "");
  EXPECT_EQ(kind_of([&] { read_text(*source, 0, 1); }), ErrorKind::corrupt);
}

TEST_P(EverySource, ReadingPastTheEndIsCorruptAndNeverShort) {
  const auto source = open("f", "0123456789");
  EXPECT_EQ(read_text(*source, 10, 0), "");
  EXPECT_EQ(kind_of([&] { read_text(*source, 9, 2); }, path_), ErrorKind::corrupt);
  EXPECT_EQ(kind_of([&] { read_text(*source, 11, 0); }, path_), ErrorKind::corrupt);
  EXPECT_EQ(kind_of([&] { read_text(*source, ~std::uint64_t{0}, 2); }, path_), ErrorKind::corrupt);
}

TEST_P(EverySource, CanBeReadFromManyThreads) {
  const std::string text = pattern(kSize);
  const auto source = open("f", text);
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (unsigned seed = 0; seed < 8; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 50; ++i) {
        const std::uint64_t offset = random() % kSize;
        const std::size_t bytes = random() % std::min<std::uint64_t>(70'000, kSize - offset + 1);
        if (read_text(*source, offset, bytes) != text.substr(offset, bytes)) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_P(EverySource, ViewAndDescriptorAreWhatTheHeaderSays) {
  const std::string text = pattern(5000);
  const auto source = open("f", text);
  EXPECT_EQ(source->backend(), is_store() ? &store_.backend() : nullptr);
  EXPECT_EQ(source->advice().join, source->is_direct() || GetParam() == Kind::s3) << "each request has a price";
  if (reads_with_calls()) {
    EXPECT_TRUE(source->view().empty());
    EXPECT_GE(source->descriptor(), 0);
  } else if (is_store()) {
    EXPECT_TRUE(source->view().empty());
    EXPECT_EQ(source->descriptor(), -1);
  } else {
    ASSERT_EQ(source->view().size(), text.size());
    EXPECT_EQ(std::memcmp(source->view().data(), text.data(), text.size()), 0);
  }
  if (GetParam() == Kind::memory || GetParam() == Kind::mapped_file) {
    EXPECT_EQ(source->descriptor(), -1);
  }
  EXPECT_EQ(source->is_direct(), source->descriptor() >= 0 && (::fcntl(source->descriptor(), F_GETFL) & O_DIRECT) != 0);
}

TEST_P(EverySource, ShortAndInterruptedReadsAreContinued) {
  if (!reads_with_calls()) GTEST_SKIP() << "reads without system calls";
  const std::string text = pattern(kSize);
  const auto source = open("f", text);
  for (const std::int64_t bytes : {1, 4096, 5000}) {
    const InjectFault fault(Call::read, {.short_bytes = bytes, .times = 3});
    EXPECT_EQ(read_text(*source, 17, 30'000), text.substr(17, 30'000)) << bytes;
    EXPECT_EQ(fault.hits(), 3u);
  }
  const InjectFault fault(Call::read, {.error_number = EINTR, .times = 5});
  EXPECT_EQ(read_text(*source, 4096, 600'000), text.substr(4096, 600'000));
  EXPECT_EQ(fault.hits(), 5u);
}

TEST_P(EverySource, AFailingReadIsNamedAndTheNextOneWorks) {
  if (!reads_with_calls()) GTEST_SKIP() << "reads without system calls";
  const std::string text = pattern(kSize);
  const auto source = open("f", text);
  for (const std::uint32_t skip : {0u, 2u}) {
    const InjectFault fault(Call::read, {.error_number = EIO, .skip = skip});
    const auto action = [&] {
      for (int i = 0; i < 3; ++i) read_text(*source, 1, kSize - 1);
    };
    EXPECT_EQ(kind_of(action, path_), ErrorKind::unavailable);
  }
  EXPECT_EQ(read_text(*source, 0, kSize), text);
}

TEST_P(EverySource, AFileCutShortAfterOpeningIsCorrupt) {
  if (!is_file()) GTEST_SKIP() << "no file";
  const auto source = open("f", pattern(100'000));
  ASSERT_EQ(::truncate(path_.c_str(), 50'000), 0);
  EXPECT_EQ(kind_of([&] { read_text(*source, 49'000, 40'000); }, path_), ErrorKind::corrupt);
  EXPECT_EQ(read_text(*source, 40'000, 10'000), pattern(100'000).substr(40'000, 10'000));
}

TEST_P(EverySource, OpeningWhatIsNoReadableFileIsAnErrorThatNamesIt) {
  if (!is_file()) GTEST_SKIP() << "no file";
  const std::string good = folder_.file("good", "x");
  const auto opening = [&](const std::string& path) {
    return kind_of(
        [&] {
          GetParam() == Kind::mapped_file ? open_mapped_file(path)
                                          : open_source(path, parse_storage(GetParam() == Kind::buffered ? "buffered"
                                                                            : GetParam() == Kind::direct ? "direct"
                                                                                                         : "mmap"));
        },
        path);
  };
  EXPECT_EQ(opening(folder_.path() + "/none"), ErrorKind::not_found);
  EXPECT_EQ(opening(good + "/below"), ErrorKind::not_found);
  EXPECT_EQ(opening(folder_.path()), ErrorKind::usage);
  const std::string pipe = folder_.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(opening(pipe), ErrorKind::unsupported);
  for (const int error_number : {EMFILE, EIO}) {
    const InjectFault fault(Call::open, {.error_number = error_number});
    EXPECT_EQ(opening(good), ErrorKind::unavailable);
  }
  {
    const InjectFault fault(Call::open, {.error_number = EACCES});
    EXPECT_EQ(opening(good), ErrorKind::permission);
  }
  const InjectFault fault(Call::stat, {.error_number = EIO});
  EXPECT_EQ(opening(good), ErrorKind::unavailable);
}

std::string name_of(const ::testing::TestParamInfo<Kind>& kind) {
  switch (kind.param) {
    case Kind::buffered:
      return "Buffered";
    case Kind::direct:
      return "Direct";
    case Kind::mmap:
      return "Mmap";
    case Kind::mapped_file:
      return "MappedFile";
    case Kind::memory:
      return "Memory";
    case Kind::store:
      return "Store";
    case Kind::s3:
      return "S3";
  }
  return "";
}

constexpr Kind kKinds[] = {
    Kind::buffered, Kind::direct, Kind::mmap, Kind::mapped_file, Kind::memory, Kind::store,
#ifdef STOKER_HAS_S3
    Kind::s3,
#endif
};

INSTANTIATE_TEST_SUITE_P(Sources, EverySource, ::testing::ValuesIn(kKinds), name_of);

class DirectSource : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!open_source(path_, Storage::direct)->is_direct()) GTEST_SKIP() << "this file system refuses O_DIRECT";
  }
  os::TempFolder folder_;
  std::string text_ = pattern(kSize);
  std::string path_ = folder_.file("f", text_);
};

TEST_F(DirectSource, FallsBackToTheCacheWhereTheFlagIsRefusedAtOpening) {
  const InjectFault fault(Call::open, {.error_number = EINVAL});
  const auto source = open_source(path_, Storage::direct);
  EXPECT_FALSE(source->is_direct());
  EXPECT_EQ(read_text(*source, 5, 9000), text_.substr(5, 9000));
}

TEST_F(DirectSource, FallsBackToTheCacheWhereTheFirstReadIsRefused) {
  const InjectFault fault(Call::read, {.error_number = EINVAL});
  const auto source = open_source(path_, Storage::direct);
  EXPECT_FALSE(source->is_direct());
  EXPECT_EQ(read_text(*source, 5, 9000), text_.substr(5, 9000));
}

TEST_F(DirectSource, ReadsWithPlainCallsWhereIoUringIsRefused) {
  const auto source = open_source(path_, Storage::direct);
  const pid_t child = ::fork();  // rings are kept between calls, but never over a fork
  if (child == 0) {
    int status = 1;
    {
      const InjectFault refused(Call::ring_setup, {.error_number = EPERM});
      const InjectFault short_read(Call::read, {.short_bytes = 100, .times = 2});
      const bool same = read_text(*source, 3, kSize - 3) == text_.substr(3);
      status = same && refused.hits() == 1 && short_read.hits() == 2 ? 0 : 1;
    }
    ::_exit(status);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(DirectSource, AFailingRingIsAnErrorAndAnInterruptedOneIsNot) {
  int error_number = 0;
  if (!os::Ring::try_make(1, error_number)) GTEST_SKIP() << "io_uring is refused here: error " << error_number;
  const auto source = open_source(path_, Storage::direct);
  read_text(*source, 0, 10);
  {
    const InjectFault fault(Call::ring_enter, {.error_number = EINTR, .times = 3});
    EXPECT_EQ(read_text(*source, 3, kSize - 3), text_.substr(3));
  }
  {
    const InjectFault fault(Call::ring_enter, {.error_number = EIO});
    EXPECT_EQ(kind_of([&] { read_text(*source, 0, kSize); }, path_), ErrorKind::unavailable);
  }
  EXPECT_EQ(read_text(*source, 3, kSize - 3), text_.substr(3));
}

TEST(MappedFile, IsNotCutShortByASmallerFileThatTakesItsName) {
  os::TempFolder folder;
  const std::string path = folder.file("f", pattern(100'000));
  const auto source = open_mapped_file(path);
  EXPECT_FALSE(is_cut_short(*source));
  ASSERT_EQ(::rename(folder.file("small", "x").c_str(), path.c_str()), 0);
  EXPECT_FALSE(is_cut_short(*source));
  EXPECT_EQ(read_text(*source, 0, 100'000), pattern(100'000));
  ASSERT_EQ(::unlink(path.c_str()), 0);
  EXPECT_FALSE(is_cut_short(*source));
}

TEST(MappedFile, IsCutShortWhereTheFileItselfIs) {
  os::TempFolder folder;
  const std::string path = folder.file("f", pattern(100'000));
  for (const bool keeps_descriptor : {false, true}) {
    ASSERT_EQ(::truncate(path.c_str(), 100'000), 0);
    const auto source = keeps_descriptor ? open_source(path, Storage::mmap) : open_mapped_file(path);
    EXPECT_FALSE(is_cut_short(*source));
    ASSERT_EQ(::truncate(path.c_str(), 50'000), 0);
    EXPECT_TRUE(is_cut_short(*source));
  }
}

TEST(MmapSource, AMapThatIsRefusedIsAnError) {
  const os::TempFolder folder;
  const std::string path = folder.file("f", "x");
  const InjectFault fault(Call::mmap, {.error_number = ENOMEM});
  EXPECT_EQ(kind_of([&] { open_source(path, Storage::mmap); }, path), ErrorKind::unavailable);
}

TEST(StorageNames, GoThereAndBackAndOfferTheNearest) {
  for (const Storage storage : {Storage::buffered, Storage::direct, Storage::mmap}) {
    EXPECT_EQ(parse_storage(name(storage)), storage);
  }
  try {
    parse_storage("bufered");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(error.hint().find("`buffered`"), std::string::npos);
  }
}

TEST(ReadFile, GivesTheWholeFileUpToALimit) {
  const os::TempFolder folder;
  const std::string text = pattern(10'000);
  const std::string path = folder.file("f", text);
  const std::vector<std::byte> bytes = read_file(path, 10'000);
  ASSERT_EQ(bytes.size(), text.size());
  EXPECT_EQ(std::memcmp(bytes.data(), text.data(), text.size()), 0);
  EXPECT_EQ(kind_of([&] { read_file(path, 9'999); }, path), ErrorKind::unavailable);
  EXPECT_TRUE(read_file(folder.file("empty", ""), 0).empty());
  EXPECT_EQ(kind_of([&] { read_file(folder.path()); }, folder.path()), ErrorKind::usage);
}

TEST(ReadFile, ReadsFilesThatSayTheyAreEmptyAndAreNot) {
  EXPECT_GT(read_file("/proc/self/status").size(), 100u);
  EXPECT_EQ(kind_of([] { read_file("/proc/self/status", 10); }), ErrorKind::unavailable);
}

}  // namespace
}  // namespace stoker::storage
