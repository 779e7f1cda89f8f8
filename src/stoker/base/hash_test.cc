#include "stoker/base/hash.h"

#include <string>

#include <gtest/gtest.h>

namespace stoker {
namespace {

// Long runs are hashed by wider instructions where the machine has them.
TEST(Hash, OfBytesIsThatOfTheSameTextAtEveryLength) {
  std::string text;
  for (std::size_t i = 0; i < 5000; ++i) text.push_back(static_cast<char>(i * 131 + i / 256));
  for (std::size_t length = 0; length <= text.size(); length += length < 1100 ? 1 : 97) {
    const std::string_view part = std::string_view(text).substr(0, length);
    for (const std::uint64_t seed : {0, 1, 42}) {
      ASSERT_EQ(hash_bytes(std::as_bytes(std::span(part)), seed), hash_text(part, seed)) << length;
    }
  }
}

TEST(Hash, NeverChanges) {  // packs and caches on disk have these
  EXPECT_EQ(hash_text(""), 0x2d06800538d394c2u);
  EXPECT_EQ(hash_text("stoker", 1), hash_bytes(std::as_bytes(std::span("stoker", 6)), 1));
  const std::string zeros(100'000, '\0');
  EXPECT_EQ(hash_text(zeros), hash_bytes(std::as_bytes(std::span(zeros))));
}

}  // namespace
}  // namespace stoker
