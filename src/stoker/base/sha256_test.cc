#include "stoker/base/sha256.h"

#include <string>

#include <gtest/gtest.h>

namespace stoker {
namespace {

std::string digits_of(const Digest& digest) {
  std::string text(64, ' ');
  write_hex(digest, text.data());
  return text;
}

TEST(Sha256, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(digits_of(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digits_of(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digits_of(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digits_of(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameInPiecesOfAnySize) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (std::size_t size = 0; size < text.size(); ++size) {
    for (const std::size_t cut : {std::size_t{0}, size / 3, size / 2, size}) {
      Sha256 hash;
      hash.add(std::string_view(text).substr(0, cut));
      hash.add(std::string_view(text).substr(cut, size - cut));
      EXPECT_EQ(hash.digest(), sha256(std::string_view(text).substr(0, size))) << size << " cut at " << cut;
    }
  }
}

TEST(Sha256, HmacGivesTheDigestsOfRfc4231) {
  EXPECT_EQ(digits_of(HmacKey("Jefe").sign("what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(digits_of(HmacKey(std::string(131, '\xaa')).sign("Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace stoker
