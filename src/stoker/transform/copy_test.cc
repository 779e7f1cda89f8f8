#include "stoker/transform/copy.h"

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace stoker::transform {
namespace {

TEST(CopyPastCache, CopiesEveryLengthAtEveryAlignmentAndNothingElse) {
  constexpr std::size_t kRoom = 1024;
  std::vector<std::byte> from(kRoom);
  for (std::size_t i = 0; i < kRoom; ++i) from[i] = static_cast<std::byte>(i * 31 + 7);
  for (std::size_t at = 0; at < 130; ++at) {
    for (std::size_t bytes = 0; bytes < 600; ++bytes) {
      std::vector<std::byte> to(kRoom, std::byte{0xEE}), expected = to;
      const std::size_t source = (at * 13) % 65;
      copy_past_cache(to.data() + at, from.data() + source, bytes);
      for (std::size_t i = 0; i < bytes; ++i) expected[at + i] = from[source + i];
      ASSERT_EQ(to, expected) << bytes << " bytes to offset " << at;
    }
  }
}

}  // namespace
}  // namespace stoker::transform
