#include <array>
#include <string>

#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

File numbers(int first, int count) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }\n";
  File file;
  file.text("\x93NUMPY").bytes({1, 0}).little(static_cast<std::uint16_t>(header.size())).text(header);
  for (int i = 0; i < count; ++i) file.bytes({(first + i) & 255});
  return file;
}

struct Entry {
  std::string name;
  File content;
  bool deflated = false;
  bool zip64 = false;
};

File zip(const std::vector<Entry>& entries, std::string_view comment = {}) {
  File file, directory;
  for (const Entry& entry : entries) {
    const File stored = entry.deflated ? deflate_stored(entry.content, false) : entry.content;
    const std::uint32_t sum = crc32(entry.content);
    const auto offset = static_cast<std::uint32_t>(file.size());
    const auto method = static_cast<std::uint16_t>(entry.deflated ? 8 : 0);
    const auto name_bytes = static_cast<std::uint16_t>(entry.name.size());
    file.little(0x04034B50u).little(std::uint16_t{20}).little(std::uint16_t{0}).little(method).little(0u).little(sum);
    file.little(static_cast<std::uint32_t>(stored.size())).little(static_cast<std::uint32_t>(entry.content.size()));
    file.little(name_bytes).little(std::uint16_t{0}).text(entry.name).bytes(stored);

    File extra;
    if (entry.zip64) {
      extra.little(std::uint16_t{0x7075}).little(std::uint16_t{1}).bytes({0});  // a field that means nothing to us
      extra.little(std::uint16_t{1}).little(std::uint16_t{24}).little(std::uint64_t{entry.content.size()});
      extra.little(std::uint64_t{stored.size()}).little(std::uint64_t{offset});
    }
    const auto or_elsewhere = [&](std::size_t value) {
      return entry.zip64 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(value);
    };
    directory.little(0x02014B50u).little(0u).little(std::uint16_t{0}).little(method).little(0u).little(sum);
    directory.little(or_elsewhere(stored.size())).little(or_elsewhere(entry.content.size())).little(name_bytes);
    directory.little(static_cast<std::uint16_t>(extra.size())).little(std::uint16_t{0}).little(0u).little(0u);
    directory.little(or_elsewhere(offset)).text(entry.name).bytes(extra);
  }
  const auto begin = static_cast<std::uint32_t>(file.size());
  const auto count = static_cast<std::uint16_t>(entries.size());
  file.bytes(directory);
  file.little(0x06054B50u).little(0u).little(count).little(count).little(static_cast<std::uint32_t>(directory.size()));
  return file.little(begin).little(static_cast<std::uint16_t>(comment.size())).text(comment);
}

struct Array {
  Result result;
  std::vector<std::byte> bytes;
};

Array read(Bytes file, std::string_view member = {}) {
  Budget budget(8 << 20);
  Scratch scratch(&budget);
  Array array;
  ArrayInfo info;
  array.result = probe_npz(file, member, info, scratch);
  if (!array.result.ok() || info.data_bytes > (1 << 20)) return array;
  array.bytes.resize(info.data_bytes);
  array.result = decode_array(media_named("npz"), file, info, array.bytes.data(), scratch);
  return array;
}

void expect_numbers(const Array& array, int first, int count) {
  ASSERT_TRUE(array.result.ok()) << array.result.cause;
  ASSERT_EQ(array.bytes.size(), static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    ASSERT_EQ(array.bytes[static_cast<std::size_t>(i)], static_cast<std::byte>(first + i));
}

TEST(Npz, FindsAMemberByNameOrTakesTheFirst) {
  const File file = zip({{"readme.txt", File().text("hello")}, {"a.npy", numbers(1, 9)}, {"b.npy", numbers(50, 7)}});
  expect_numbers(read(file), 1, 9);
  expect_numbers(read(file, "a"), 1, 9);
  expect_numbers(read(file, "b"), 50, 7);
  expect_numbers(read(file, "b.npy"), 50, 7);
  EXPECT_EQ(read(file, "c").result.code, Code::mismatch);
  EXPECT_EQ(read(file, "readme.txt").result.code, Code::mismatch);
}

TEST(Npz, TakesTheLastOfMembersWithOneNameAsNumpyDoes) {
  const File file = zip({{"a.npy", numbers(1, 9)}, {"b.npy", numbers(50, 7)}, {"a.npy", numbers(20, 5), true}});
  expect_numbers(read(file), 20, 5);
  expect_numbers(read(file, "a"), 20, 5);
  expect_numbers(read(file, "b"), 50, 7);
  std::array<std::string_view, 4> names;
  EXPECT_EQ(list_arrays(sniff(file), file, names), 2u) << "names, not members";
}

TEST(Npz, InflatesSmallAndLargeMembers) {
  expect_numbers(read(zip({{"a.npy", numbers(3, 20), true}})), 3, 20);
  expect_numbers(read(zip({{"a.npy", numbers(3, 200000), true}})), 3, 200000);
}

TEST(Npz, ReadsZip64EntriesAndComments) {
  expect_numbers(read(zip({{"a.npy", numbers(1, 5)}, {"b.npy", numbers(9, 6), true, true}}), "b"), 9, 6);
  expect_numbers(read(zip({{"a.npy", numbers(1, 5)}}, "made by hand, PK\x05\x06 and all")), 1, 5);
}

TEST(Npz, FollowsTheZip64EndOfDirectory) {
  File file = zip({{"a.npy", numbers(1, 5)}});
  const File plain = file;
  std::uint32_t size, begin;
  std::memcpy(&size, &file[file.size() - 10], 4);
  std::memcpy(&begin, &file[file.size() - 6], 4);
  const auto end64 = static_cast<std::uint64_t>(file.size() - 22);
  file.cut(file.size() - 22);
  file.little(0x06064B50u).little(std::uint64_t{44}).little(0u).little(0u).little(0u).little(std::uint64_t{1});
  file.little(std::uint64_t{1}).little(std::uint64_t{size}).little(std::uint64_t{begin});
  file.little(0x07064B50u).little(0u).little(end64).little(1u);
  file.little(0x06054B50u)
      .little(0u)
      .little(0xFFFFFFFFu)
      .little(0xFFFFFFFFu)
      .little(0xFFFFFFFFu)
      .little(std::uint16_t{0});
  expect_numbers(read(file), 1, 5);
}

TEST(Npz, ChecksTheSumOfStoredAndDeflatedMembers) {
  for (const bool deflated : {false, true}) {
    File file = zip({{"a.npy", numbers(1, 90), deflated}});
    const std::size_t element = 30 + 5 + (deflated ? 5 : 0) + numbers(1, 90).size() - 4;
    file[element] ^= std::byte{1};
    const Result result = read(file).result;
    EXPECT_EQ(result.code, Code::corrupt);
    EXPECT_STREQ(result.cause, "the member's CRC differs");
  }
}

TEST(Npz, RefusesABombBeforeMemoryIsTouched) {
  File file = zip({{"a.npy", numbers(1, 90), true}});
  const std::size_t entry = file.size() - 22 - 46 - 5;
  const std::uint32_t huge = 0x7FFFFFFF;
  std::memcpy(&file[entry + 24], &huge, 4);
  EXPECT_EQ(read(file).result.code, Code::corrupt);
}

TEST(Npz, RefusesMembersThatDoNotFitTheBudget) {
  const File file = zip({{"a.npy", numbers(1, 2000000), true}});
  Budget budget(1 << 20);
  Scratch scratch(&budget);
  ArrayInfo info;
  ASSERT_TRUE(probe_npz(file, {}, info, scratch).ok());
  std::vector<std::byte> into(info.data_bytes);
  EXPECT_EQ(decode_array(media_named("npz"), file, info, into.data(), scratch).code, Code::no_memory);
}

TEST(Npz, ProbesInLittleMemoryWhateverTheMemberClaims) {
  File shorter = numbers(1, 4000000);
  shorter.cut(shorter.size() / 2);
  Budget budget(1 << 20);
  for (const auto& [content, code] : {std::pair{numbers(1, 4000000), Code::ok}, std::pair{shorter, Code::truncated}}) {
    Scratch scratch(&budget);
    ArrayInfo info;
    EXPECT_EQ(probe_npz(zip({{"a.npy", content, true}}), {}, info, scratch).code, code);
  }
}

TEST(Npz, FindsALongHeaderInADeflatedMember) {
  for (const std::size_t padding : {5000u, 60000u, 900000u}) {
    File header;
    header.text("{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }").text(std::string(padding, ' ')).text("\n");
    File content;
    content.text("\x93NUMPY").bytes({2, 0}).little(static_cast<std::uint32_t>(header.size())).bytes(header);
    content.bytes({5, 6, 7, 8, 9, 10, 11});
    expect_numbers(read(zip({{"a.npy", content, true}})), 5, 7);
    content.zeros(2 << 20);  // the member is longer than its array, which numpy allows
    expect_numbers(read(zip({{"a.npy", content, true}})), 5, 7);
  }
}

TEST(Npz, SurvivesEveryTruncationAndFlippedBit) {
  for (const bool deflated : {false, true}) {
    const File file = zip({{"a.npy", numbers(1, 20), deflated}, {"b.npy", numbers(2, 3), deflated, true}});
    ASSERT_TRUE(read(file, "b").result.ok());
    at_every_truncation(file, [](Bytes part) { EXPECT_FALSE(read(part, "b").result.ok()) << part.size(); });
    at_every_flipped_bit(file, [](Bytes damaged) {
      const Array a = read(damaged, "a");
      if (a.result.ok()) expect_numbers(a, 1, 20);
      (void)read(damaged, "b");
    });
  }
}

TEST(Npz, ListsItsArraysInOrder) {
  const File file = zip({{"b.npy", numbers(1, 2)}, {"readme.txt", numbers(1, 2)}, {"a.npy", numbers(1, 2), true}});
  std::array<std::string_view, 4> names;
  EXPECT_EQ(list_arrays(sniff(file), file, names), 2u);
  EXPECT_EQ(names[0], "b");
  EXPECT_EQ(names[1], "a");
  EXPECT_EQ(list_arrays(sniff(file), file, std::span(names).first(1)), 2u) << "also of those that do not fit";
  EXPECT_EQ(list_arrays(sniff(file), zip({}), names), 0u);
  EXPECT_EQ(list_arrays(sniff(file), Bytes(file).first(file.size() - 1), names), 0u);
}

}  // namespace
}  // namespace stoker::codec
