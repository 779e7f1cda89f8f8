#include "stoker/os/shared_region.h"

#include <memory>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "stoker/os/arena.h"

namespace stoker::os {
namespace {

std::int64_t blocks_of(const SharedRegion& memory) {
  struct stat facts {};
  EXPECT_EQ(::fstat(memory.fd(), &facts), 0);
  return facts.st_blocks;
}

TEST(SharedRegion, ShowsThroughItsDescriptorWhatAnArenaHolds) {
  const auto memory = std::make_shared<SharedRegion>();
  const Arena first(5000, memory), second(5000, memory);
  second.data()[4999] = std::byte{42};
  void* const seen =
      ::mmap(nullptr, second.size(), PROT_READ, MAP_SHARED, memory->fd(), static_cast<off_t>(second.shared_offset()));
  ASSERT_NE(seen, MAP_FAILED);
  EXPECT_EQ(static_cast<std::byte*>(seen)[4999], std::byte{42});
  ::munmap(seen, second.size());
}

TEST(SharedRegion, GivesTheMemoryOfAnArenaBackAndItsOffsetToNobody) {
  const auto memory = std::make_shared<SharedRegion>();
  std::uint64_t offset = 0;
  {
    Arena arena(1 << 20, memory);
    arena.touch();
    offset = arena.shared_offset();
    EXPECT_GT(blocks_of(*memory), 0);
  }
  EXPECT_EQ(blocks_of(*memory), 0);
  EXPECT_GT(Arena(4096, memory).shared_offset(), offset);
}

}  // namespace
}  // namespace stoker::os
