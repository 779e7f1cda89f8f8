#include "stoker/prepare/shard_file.h"

#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/os/fault.h"
#include "stoker/os/read_file.h"

namespace stoker::prepare {
namespace {

std::string random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(count, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(ShardFile, HoldsWhatWasAppendedInPiecesOfAnySize) {
  const loader::Folder folder;
  const std::string bytes = random_bytes(10'000'000, 1);
  ShardFile file(folder.path("x"));
  std::mt19937 random(2);
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t count = std::min<std::size_t>(bytes.size() - at, random() % 300'000);
    file.append(as_bytes(std::string_view(bytes).substr(at, count)));
    at += count;
    if (random() % 8 == 0) {
      file.sync();
      ASSERT_EQ(std::filesystem::file_size(folder.path("x")), at);
    }
  }
  file.append_zeros(5000);
  file.sync();
  EXPECT_EQ(os::read_text(folder.path("x")), bytes + std::string(5000, '\0'));
}

TEST(ShardFile, IsContinuedAtAnyByte) {
  const loader::Folder folder;
  const std::string bytes = random_bytes(60'000, 3);
  for (const std::size_t keep : {1, 511, 4095, 4096, 4097, 50'000}) {
    {
      ShardFile file(folder.path("x"));
      file.append(as_bytes(bytes));
      file.sync();
    }
    ShardFile file(folder.path("x"), keep);
    file.append(as_bytes("and more"));
    file.sync();
    EXPECT_EQ(os::read_text(folder.path("x")), bytes.substr(0, keep) + "and more");
  }
}

TEST(ShardFile, ItsStartCanBeRewritten) {
  const loader::Folder folder;
  ShardFile file(folder.path("x"));
  file.append(as_bytes("head and the rest"));
  file.rewrite_start(as_bytes("HEAD"));
  EXPECT_EQ(os::read_text(folder.path("x")), "HEAD and the rest");
}

TEST(ShardFile, ShortWritesAreContinued) {
  const loader::Folder folder;
  const std::string bytes = random_bytes(9'000'000, 4);
  const os::InjectFault fault(os::Call::write, {.short_bytes = 10'000, .times = 100});
  ShardFile file(folder.path("x"));
  file.append(as_bytes(bytes));
  file.sync();
  EXPECT_EQ(os::read_text(folder.path("x")), bytes);
}

TEST(ShardFile, AnErrorOfTheWritingThreadIsThrownToWhoeverAppends) {
  const loader::Folder folder;
  const std::string bytes = random_bytes(ShardFile::kPiece, 5);
  const os::InjectFault fault(os::Call::write, {.error_number = EIO, .skip = 1, .times = 1'000'000});
  ShardFile file(folder.path("x"));
  try {
    for (int i = 0; i < 100; ++i) file.append(as_bytes(bytes));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("Input/output error"), std::string::npos);
  }
}

}  // namespace
}  // namespace stoker::prepare
