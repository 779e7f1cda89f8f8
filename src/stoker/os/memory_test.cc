#include "stoker/os/memory.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/arena.h"
#include "stoker/os/fault.h"
#include "stoker/os/fd.h"
#include "stoker/os/fork.h"
#include "stoker/os/mapping.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::os {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

bool aligned(const void* at, std::size_t unit) {
  return reinterpret_cast<std::uintptr_t>(at) % unit == 0;
}

TEST(Arena, RoundsToPagesAndToHugePagesFromTwoMegabytesOn) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(Arena::rounded(1), page);
  EXPECT_EQ(Arena::rounded(2 * kMiB), 2 * kMiB);
  EXPECT_EQ(Arena::rounded(2 * kMiB + 1), 4 * kMiB);
  EXPECT_EQ(Arena::within(page + 1), page);
  EXPECT_EQ(Arena::within(page - 1), 0u);
  EXPECT_EQ(Arena::within(6 * kMiB - 1), 4 * kMiB);
  const Arena small(1), large(5 * kMiB);
  EXPECT_EQ(small.size(), Arena::rounded(1));
  EXPECT_TRUE(aligned(small.data(), page));
  EXPECT_EQ(large.size(), 6 * kMiB);
  EXPECT_TRUE(aligned(large.data(), 2 * kMiB));
}

TEST(Arena, IsZeroWritableAndMoves) {
  Arena a(3 * kMiB);
  EXPECT_EQ(a.data()[a.size() - 1], std::byte{0});
  std::memset(a.data(), 7, a.size());
  const std::byte* const at = a.data();
  Arena b = std::move(a);
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(b.data(), at);
  b.touch();
  EXPECT_EQ(b.data()[b.size() - 1], std::byte{7});  // touching keeps what is there
  b = Arena();
  Arena().touch();
  Arena().populate(0, 100);
  EXPECT_EQ(Arena(0).size(), 0u);
}

TEST(Arena, TouchMakesEveryPageResident) {
  Arena arena(8 * kMiB);
  const std::uint64_t before = process_memory().anonymous_bytes;
  arena.touch();
  EXPECT_GE(process_memory().anonymous_bytes, before + 7 * kMiB);
}

TEST(Arena, PopulateKeepsWhatIsThereAndTakesAnyRange) {
  Arena arena(5 * kMiB);
  arena.data()[3 * kMiB] = std::byte{7};
  arena.populate(3 * kMiB - 1, kMiB);
  arena.populate(4 * kMiB, SIZE_MAX);
  arena.populate(100 * kMiB, 1);
  EXPECT_EQ(arena.data()[3 * kMiB], std::byte{7});
  EXPECT_EQ(arena.data()[2 * kMiB], std::byte{0});
}

TEST(Arena, RefusedMemoryIsAnError) {
  EXPECT_THROW(Arena(SIZE_MAX), Error);
  EXPECT_THROW(Arena(std::size_t{1} << 60), Error);
  const InjectFault fault(Call::mmap, {.error_number = ENOMEM});
  try {
    const Arena arena(kMiB);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_EQ(error.message(), "cannot allocate `1.0 MiB of memory`: Cannot allocate memory");
  }
}

TEST(Mapping, ShowsTheBytesOfAFileAfterItIsClosed) {
  const TempFolder folder;
  const std::string path = folder.file("f", "mapped");
  Mapping mapping(open_file(path, O_RDONLY).get(), 6, path);
  mapping.advise(Advice::will_need);
  EXPECT_TRUE(mapping.populate());
  const Mapping moved = std::move(mapping);
  EXPECT_TRUE(mapping.bytes().empty());
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "mapped", 6), 0);
}

TEST(Mapping, AnEmptyFileMapsNothing) {
  const TempFolder folder;
  const std::string path = folder.file("f", "");
  const Mapping mapping(open_file(path, O_RDONLY).get(), 0, path);
  EXPECT_TRUE(mapping.bytes().empty());
  EXPECT_TRUE(mapping.populate());
}

TEST(Mapping, PopulateTellsOfATruncatedFileInsteadOfDying) {
  const TempFolder folder;
  const std::string path = folder.file("f", std::string(100'000, 'x'));
  const Mapping mapping(open_file(path, O_RDONLY).get(), 100'000, path);
  ASSERT_EQ(::truncate(path.c_str(), 10), 0);
  const Arena probe(1);
  constexpr int kPopulateRead = 22;
  if (::madvise(probe.data(), probe.size(), kPopulateRead) != 0) GTEST_SKIP() << "not on this kernel (before 5.14)";
  EXPECT_FALSE(mapping.populate());
}

TEST(Mapping, FailuresAreNamed) {
  const TempFolder folder;
  const std::string path = folder.file("f", "mapped");
  const Fd fd = open_file(path, O_RDONLY);
  const InjectFault fault(Call::mmap, {.error_number = ENOMEM});
  try {
    const Mapping mapping(fd.get(), 6, path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_NE(error.message().find(path), std::string::npos);
  }
}

TEST(ForkGeneration, ChangesInTheChildAndItsChildAndNotInTheParent) {
  const std::uint64_t mine = fork_generation();
  const pid_t child = ::fork();
  if (child == 0) {
    const std::uint64_t first = fork_generation();
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::_exit(fork_generation() != first && fork_generation() != mine ? 0 : 1);
    int status = 0;
    ::waitpid(grandchild, &status, 0);
    ::_exit(first != mine && status == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fork_generation(), mine);
}

}  // namespace
}  // namespace stoker::os
