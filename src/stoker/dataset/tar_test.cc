// Tar shards: what tar_header writes, TarReader reads; what WebDataset calls a sample is one; damage is named.
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/dataset/tar_format.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/os/fault.h"

namespace stoker::dataset {
namespace {

struct Part {
  std::string name, content;
};

std::string tar(const std::vector<Part>& parts, bool closed = true) {
  std::string out;
  for (const Part& part : parts) {
    out += tar_header(part.name, part.content.size(), 1'700'000'000);
    out += part.content;
    out.resize(tar_padded(out.size()), '\0');
  }
  if (closed) out.append(2 * kTarBlock, '\0');
  return out;
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<Part> read_back(const std::string& bytes) {
  const auto source = storage::memory_source("x.tar", as_bytes(bytes));
  TarReader reader(*source);
  TarMember member;
  std::vector<Part> parts;
  while (reader.next(member)) {
    parts.push_back({member.name, bytes.substr(member.offset, member.bytes)});
    EXPECT_EQ(member.offset % kTarBlock, 0u);
  }
  return parts;
}

struct Recovered {
  std::vector<std::string> names;
  std::vector<TarGap> gaps;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places() const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
    for (const TarGap& gap : gaps) out.emplace_back(gap.offset, gap.bytes);
    return out;
  }
};

Recovered recover(const std::string& bytes) {
  const auto source = storage::memory_source("x.tar", as_bytes(bytes));
  Recovered found;
  TarReader reader(*source, &found.gaps);
  TarMember member;
  while (reader.next(member)) found.names.push_back(member.name);
  return found;
}

using Names = std::vector<std::string>;
using Places = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

std::string member_text(const Dataset& dataset, std::uint64_t index) {
  const storage::Location at = dataset.location(index);
  std::string bytes(at.bytes, '\0');
  const storage::Read read{at.offset, std::as_writable_bytes(std::span(bytes.data(), bytes.size()))};
  at.source->read({&read, 1});
  return bytes;
}

TEST(Tar, NamesOfEveryLengthComeBack) {
  for (const std::size_t length : {1, 99, 100, 101, 155, 156, 200, 255, 256, 257, 1000, 4000}) {
    for (const bool slashes : {false, true}) {
      std::string name(length, 'x');
      if (slashes) {
        for (std::size_t i = 50; i + 1 < name.size(); i += 60) name[i] = '/';
      }
      const auto parts = read_back(tar({{name, "content"}, {"after", "more"}}));
      ASSERT_EQ(parts.size(), 2u) << length;
      EXPECT_EQ(parts[0].name, name);
      EXPECT_EQ(parts[0].content, "content");
      EXPECT_EQ(parts[1].name, "after");
    }
  }
}

TEST(Tar, TheSameArgumentsGiveTheSameBytes) {
  EXPECT_EQ(tar_header("a/b.jpg", 123, 5), tar_header("a/b.jpg", 123, 5));
  EXPECT_EQ(tar_header("a/b.jpg", 123, 5).size(), kTarBlock);
}

TEST(Tar, SizesAbove8GiBAreInAPaxHeader) {
  const std::string header = tar_header("big.npy", std::uint64_t{10} << 30, 0);
  EXPECT_NE(header.find("size=10737418240\n"), std::string::npos);
}

TEST(Tar, AnArchiveWithoutClosingBlocksIsTakenAsItIs) {
  EXPECT_EQ(read_back(tar({{"a", "1"}}, false)).size(), 1u);
}

TEST(Tar, DamageIsNamedWithItsByte) {
  const std::string sound = tar({{"a.jpg", std::string(700, 'a')}, {"b.jpg", "b"}});
  std::string bytes = sound;
  bytes[1536 + 5] ^= 1;  // in the name of b.jpg: the checksum no longer fits
  EXPECT_TRUE(
      mentions(error_of([&] { read_back(bytes); }), "cannot read `x.tar` at byte 1536: a header's checksum is wrong"));
  EXPECT_TRUE(mentions(error_of([&] { read_back(sound.substr(0, 1000)); }), "the archive ends inside a member"));
  EXPECT_TRUE(
      mentions(error_of([&] { read_back("no tar at all" + std::string(1000, ' ')); }), "it is not a tar archive"));
  EXPECT_TRUE(mentions(error_of([&] { read_back(sound.substr(0, 100)); }), "the archive ends inside a header"));
}

TEST(TarGaps, MembersBeforeAndBehindABadHeaderAreFound) {
  const std::string sound = tar({{"a", std::string(700, 'a')}, {"b", std::string(600, 'b')}, {"c", "c"}});
  std::string bytes = sound;
  bytes[1536] ^= 1;  // the name of b
  const Recovered found = recover(bytes);
  EXPECT_EQ(found.names, (Names{"a", "c"}));
  EXPECT_EQ(found.places(), (Places{{1536, 1536}}));
  EXPECT_EQ(found.gaps[0].cause, "a header's checksum is wrong");
  EXPECT_EQ(recover(sound).names, (Names{"a", "b", "c"}));
  EXPECT_TRUE(recover(sound).gaps.empty());
}

TEST(TarGaps, ZerosWhereAHeaderShouldBeAreNotTakenForTheEnd) {
  const std::string sound = tar({{"a", "a"}, {"b", std::string(9000, 'b')}, {"c", "c"}});
  for (const std::size_t zeros : {512, 1024, 4096}) {
    std::string bytes = sound;
    std::fill_n(bytes.begin() + 1024, zeros, '\0');
    const Recovered found = recover(bytes);
    EXPECT_EQ(found.names, (Names{"a", "c"})) << zeros;
    EXPECT_EQ(found.places(), (Places{{1024, 512 + 9216}})) << zeros;
    EXPECT_TRUE(
        mentions(error_of([&] { read_back(bytes); }), "at byte 1024: there are zeros where a header should be"));
  }
}

TEST(TarGaps, ACutArchiveHasItsWholeMembers) {
  const std::string sound = tar({{"a", "a"}, {"b", std::string(9000, 'b')}});
  for (const std::size_t size : {1025, 1535, 1536, 1537, 5000}) {
    const Recovered found = recover(sound.substr(0, size));
    EXPECT_EQ(found.names, Names{"a"}) << size;
    EXPECT_EQ(found.places(), (Places{{1024, size - 1024}})) << size;
  }
}

TEST(TarGaps, AMemberThatMayHaveLostItsLongNameIsLostToo) {
  const std::string name = std::string(300, 'n') + ".jpg";
  const std::string sound = tar({{"a.jpg", "a"}, {name, "long"}, {"c.jpg", "c"}});
  ASSERT_EQ(sound.substr(1024 + 512, 10), "314 path=n");
  // In the header of the pax header, in its records, in the header behind it.
  for (const std::size_t at : {1024 + 3, 1024 + 512, 1024 + 512 + 512 + 3}) {
    std::string bytes = sound;
    bytes[at] ^= 1;
    const Recovered found = recover(bytes);
    EXPECT_EQ(found.names, (Names{"a.jpg", "c.jpg"})) << at;
    EXPECT_EQ(found.places(), (Places{{1024, 2048}})) << at;
  }
}

TEST(TarGaps, JoinedArchivesAreReadAsOne) {
  const std::string joined = tar({{"a", "a"}}) + tar({{"b", "b"}});
  EXPECT_EQ(recover(joined).names, (Names{"a", "b"}));
  EXPECT_TRUE(recover(joined).gaps.empty());
  EXPECT_EQ(read_back(joined).size(), 2u);
}

TEST(TarGaps, OneDamagedByteLosesOneMember) {
  const std::string sound = tar({{"a", "1"}, {"b", std::string(1000, '2')}, {"c", ""}, {"d", "4"}});
  for (std::size_t at = 0; at < sound.size() - 1024; ++at) {
    std::string bytes = sound;
    bytes[at] ^= 0x10;
    const Recovered found = recover(bytes);
    EXPECT_GE(found.names.size(), 3u) << at;
    EXPECT_EQ(found.names.size() + found.gaps.size(), 4u) << at;
    for (const std::string& name : found.names) EXPECT_NE(std::string("abcd").find(name), std::string::npos) << at;
  }
}

TEST(Tar, NoDamageCrashesTheReader) {
  const std::string sound =
      tar({{std::string(300, 'n') + ".jpg", "1"}, {"b.cls", "7"}, {"c/d.wav", std::string(600, 'c')}});
  std::mt19937 random(42);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = sound;
    for (int i = 0; i < 1 + round % 4; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    (void)error_of([&] { read_back(bytes); });
    const Recovered found = recover(bytes);
    std::uint64_t end = 0;
    for (const TarGap& gap : found.gaps) {
      EXPECT_GE(gap.offset, end);
      EXPECT_GT(gap.bytes, 0u);
      end = gap.offset + gap.bytes;
      EXPECT_LE(end, bytes.size());
    }
  }
}

TEST(Tar, MembersWithTheSameKeyAreOneSample) {
  const Tree tree;
  tree.write("s-0.tar",
             tar({{"a/0.jpg", "zero"}, {"a/0.cls", "3\n"}, {"a/1.cls", "4"}, {"a/1.x.png", "one"}, {"readme", "?"}}));
  tree.write("s-1.tar", tar({{"b/2.json", "{\"label\": 5, \"other\": 1}"},
                             {"b/2.wav", "two"},
                             {"__meta__.jpg", "no"},
                             {"b/3.txt", "no"}}));

  const DatasetPtr data = open(tree.at("s-{0..1}.tar"));

  EXPECT_EQ(data->facts().kind, "tar");
  EXPECT_EQ(names_of(*data), (std::vector<std::string>{"a/0.jpg", "a/1.x.png", "b/2.wav"}));
  EXPECT_EQ(labels_of(*data), (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_EQ(member_text(*data, 0), "zero");
  EXPECT_EQ(member_text(*data, 2), "two");
  EXPECT_EQ(data->media(1), codec::media_named("png"));
  EXPECT_TRUE(has_note(*data, "left out 1 sample of unknown kind"));
  EXPECT_FALSE(has_note(*data, "members left out"));
}

TEST(Tar, FurtherImagesOfASampleAreNamedAsLeftOut) {
  const Tree tree;
  tree.write("s-0.tar", tar({{"0.jpg", "zero"}, {"0.mask.png", "mask"}, {"1.jpg", "one"}, {"1.mask.png", "mask"}}));
  tree.write("s-1.tar", tar({{"2.jpg", "two"}, {"2.mask.png", "mask"}, {"2.npy", "more"}, {"2.txt", "caption"}}));
  const DatasetPtr data = open(tree.at("s-{0..1}.tar"));
  EXPECT_EQ(data->size(), 3u);
  EXPECT_TRUE(has_note(*data, "members left out: `.mask.png` (3), `.npy` (1)"));
}

std::string with_checksum(std::string header) {
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  return header.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
}

// The header of a member that has no content of its own.
std::string linked(const std::string& name, char type, const std::string& link) {
  std::string header = tar_header(name, 0, 0);
  header[156] = type;
  return with_checksum(header.replace(157, link.size(), link));
}

TEST(Tar, LinksLeadToTheBytesOfTheirMember) {
  const Tree tree;
  const std::string files = tar({{"d/a.jpg", "first"}, {"d/a.cls", "5"}}, false);
  const std::string behind = tar({{"d/z.jpg", "last"}, {"d/z.cls", "7"}});
  tree.write("l.tar", files + linked("d/b.jpg", '1', "d/a.jpg") + linked("d/b.cls", '1', "d/a.cls") +
                          linked("d/c.jpg", '2', "./../d/z.jpg") + linked("d/c.cls", '2', "z.cls") +
                          linked("d/d.jpg", '2', "c.jpg") + linked("d/e.jpg", '2', "/etc/passwd") +
                          linked("d/f.jpg", '2', "f.jpg") + linked("d/g.txt", '2', "nowhere") + behind);
  const DatasetPtr data = open(tree.at("l.tar"));
  EXPECT_EQ(names_of(*data), (Names{"d/a.jpg", "d/b.jpg", "d/c.jpg", "d/d.jpg", "d/z.jpg"}));
  EXPECT_EQ(labels_of(*data), (std::vector<std::int64_t>{5, 5, 7, -1, 7}));
  for (const auto& [index, text] :
       std::vector<std::pair<std::uint64_t, std::string>>{{1, "first"}, {2, "last"}, {3, "last"}})
    EXPECT_EQ(member_text(*data, index), text);
  EXPECT_TRUE(has_note(
      *data, "2 links of the tar lead to no file in it, `d/e.jpg` leads to `/etc/passwd` for one: they are left out"));
}

TEST(Tar, LabelsThatLieApartFromTheirDataAreJoinedByName) {
  const Tree tree;
  tree.write("a.tar", tar({{"d/0.jpg", "a"},
                           {"d/1.jpg", "b"},
                           {"2.jpg", "c"},
                           {"2.cls", "9"},
                           {"d/0.cls", "3"},
                           {"d/1.json", R"({"label": 4})"},
                           {"x.cls", "5"}}));
  tree.write("b.tar", tar({{"0.cls", "3"}, {"1.cls", "4"}, {"0.jpg", "a"}, {"1.jpg", "b"}}));
  // Which of two labels, or which of two samples of one name, cannot be told.
  tree.write("c.tar", tar({{"0.jpg", "a"},
                           {"1.jpg", "b"},
                           {"0.jpg", "c"},
                           {"1.cls", "1"},
                           {"0.cls", "2"},
                           {"1.cls", "3"},
                           {"2.jpg", "d"},
                           {"2.cls", "4"}}));

  const DatasetPtr images_first = open(tree.at("a.tar"));
  EXPECT_EQ(labels_of(*images_first), (std::vector<std::int64_t>{3, 4, 9}));
  EXPECT_TRUE(has_note(*images_first, "2 labels lie apart from their data, `d/0.jpg` for one: they are joined"));
  EXPECT_TRUE(has_note(*images_first, "1 label has no data, `x` for one"));
  EXPECT_FALSE(has_note(*images_first, "of unknown kind"));
  EXPECT_EQ(labels_of(*open(tree.at("b.tar"))), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(labels_of(*open(tree.at("c.tar"))), (std::vector<std::int64_t>{-1, -1, -1, 4}));
  EXPECT_TRUE(has_note(*open(tree.at("c.tar")), "3 labels have no data"));
}

TEST(Tar, LabelsThatCannotBeReadAreCounted) {
  const Tree tree;
  tree.write("t.tar", tar({{"0.jpg", "a"},
                           {"0.cls", " \n"},
                           {"1.jpg", "b"},
                           {"1.json", "{\"label\": 3"},
                           {"2.jpg", "c"},
                           {"2.json", "{\"caption\": \"x\"}"},
                           {"3.jpg", "d"},
                           {"3.cls", "5"},
                           {"4.jpg", "e"},
                           {"4.cls", std::string(5000, '7')}}));
  const DatasetPtr data = open(tree.at("t.tar"));
  EXPECT_EQ(labels_of(*data), (std::vector<std::int64_t>{-1, -1, -1, 5, -1}));
  EXPECT_TRUE(has_note(*data, "3 labels cannot be read, `0.cls` is empty for one"));
}

TEST(Tar, NumbersAmongTextsStayTheTextThatTheyAre) {
  const Tree tree;
  tree.write("t.tar", tar({{"0.jpg", "a"},
                           {"0.cls", "99999999999999999999"},
                           {"1.jpg", "b"},
                           {"1.cls", "007"},
                           {"2.jpg", "c"},
                           {"2.cls", "cat"}}));
  EXPECT_EQ(open(tree.at("t.tar"))->facts().classes, (Names{"007", "99999999999999999999", "cat"}));
}

TEST(Tar, EveryStorageReadsTheSame) {
  const Tree tree;
  tree.write("s.tar", tar({{"0.jpg", std::string(5000, 'x')}, {"1.jpg", "one"}}));
  for (const storage::Storage storage :
       {storage::Storage::buffered, storage::Storage::direct, storage::Storage::mmap}) {
    OpenOptions options;
    options.storage = storage;
    const DatasetPtr data = open(tree.at("s.tar"), options);
    EXPECT_EQ(member_text(*data, 0), std::string(5000, 'x'));
    EXPECT_EQ(member_text(*data, 1), "one");
  }
}

TEST(Tar, KeysThatRepeatInOtherShardsHaveIdsOfTheirOwn) {
  const Tree tree;
  tree.write("s-0.tar", tar({{"000.jpg", "a"}}));
  tree.write("s-1.tar", tar({{"000.jpg", "b"}}));
  const auto one = ids_of(*open(tree.at("s-0.tar")));
  const auto both = ids_of(*open(tree.at("s-{0..1}.tar")));
  EXPECT_EQ(both[0], one[0]);
  EXPECT_NE(both[1], both[0]);
}

TEST(Tar, TextLabelsBecomeSortedClassesAndRealOnesStayReal) {
  const Tree tree;
  tree.write(
      "t.tar",
      tar({{"0.jpg", "a"}, {"0.json", R"({"label": "dog"})"}, {"1.jpg", "b"}, {"1.json", R"({"label": "cat"})"}}));
  tree.write("r.tar", tar({{"0.jpg", "a"}, {"0.json", R"({"label": 0.5})"}, {"1.jpg", "b"}, {"1.cls", "2"}}));
  tree.write("n.tar", tar({{"0.jpg", "a"}, {"0.cls", "1"}, {"1.jpg", "b"}}));

  const DatasetPtr text = open(tree.at("t.tar")), real = open(tree.at("r.tar")), none = open(tree.at("n.tar"));

  EXPECT_EQ(text->facts().classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(labels_of(*text), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(real->facts().label_kind, LabelKind::real);
  EXPECT_EQ(real->label(0).real, 0.5F);
  EXPECT_EQ(real->label(1).real, 2.0F);
  EXPECT_EQ(labels_of(*none), (std::vector<std::int64_t>{1, -1}));
  EXPECT_TRUE(has_note(*none, "1 of 2 samples have no label"));
}

TEST(Tar, ClassesMayBeChosenWhereSomeSamplesHaveNoLabel) {
  const Tree tree;
  tree.write("t.tar", tar({{"0.jpg", "a"},
                           {"0.json", R"({"label": "dog"})"},
                           {"1.jpg", "b"},
                           {"2.jpg", "c"},
                           {"2.json", R"({"label": "cat"})"}}));
  OpenOptions options;
  options.class_subset = 1;
  EXPECT_EQ(open(tree.at("t.tar"), options)->size(), 1u);
}

// Three shards of `count` labelled samples each: s-0.tar, s-1.tar, s-2.tar.
std::string write_shards(const Tree& tree, int count = 4) {
  for (int shard = 0; shard < 3; ++shard) {
    std::vector<Part> parts;
    for (int i = 0; i < count; ++i) {
      parts.push_back({fmt::format("{}{}.jpg", shard, i), std::string(700, 'x')});
      parts.push_back({fmt::format("{}{}.cls", shard, i), fmt::format("{}", i)});
    }
    tree.write(fmt::format("s-{}.tar", shard), tar(parts));
  }
  return tree.at("s-{0..2}.tar");
}
constexpr std::size_t kSampleBytes = 512 + 1024 + 1024;  // in such a shard

void flip(const Tree& tree, std::string_view path, std::size_t at) {
  std::fstream file(tree.at(path), std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

OpenOptions skipping_losses() {
  OpenOptions options;
  options.skip_losses = true;
  return options;
}

TEST(TarLosses, OneBadHeaderLosesOneSampleAndIsNamed) {
  const Tree tree;
  const std::string address = write_shards(tree);
  flip(tree, "s-1.tar", kSampleBytes);  // the header of 11.jpg
  EXPECT_TRUE(mentions(error_of([&] { open(address); }),
                       fmt::format("cannot read `{}` at byte 2560: a header's checksum is wrong", tree.at("s-1.tar"))));

  const DatasetPtr data = open(address, skipping_losses());

  EXPECT_EQ(names_of(*data), (std::vector<std::string>{"00.jpg", "01.jpg", "02.jpg", "03.jpg", "10.jpg", "12.jpg",
                                                       "13.jpg", "20.jpg", "21.jpg", "22.jpg", "23.jpg"}));
  EXPECT_EQ(labels_of(*data), (std::vector<std::int64_t>{0, 1, 2, 3, 0, 2, 3, 0, 1, 2, 3}));
  ASSERT_EQ(data->facts().losses.size(), 1u);
  EXPECT_EQ(data->facts().losses[0].message(),
            fmt::format("cannot list `{}` at byte 2560: a header's checksum is wrong; 1,536 bytes are lost",
                        tree.at("s-1.tar")));
}

TEST(TarLosses, ASampleThatLostItsLabelIsLostToo) {
  const Tree tree;
  const std::string address = write_shards(tree);
  flip(tree, "s-0.tar", 512 + 1024);  // the header of 00.cls
  const DatasetPtr data = open(address, skipping_losses());
  EXPECT_EQ(data->size(), 11u);
  EXPECT_EQ(data->name(0), "01.jpg");
  ASSERT_EQ(data->facts().losses.size(), 2u);
  EXPECT_TRUE(data->facts().losses[1].message().find("`00.jpg` lost its label") != std::string::npos);
  EXPECT_FALSE(has_note(*data, "no label"));
}

TEST(TarLosses, TheSameSamplesAreFoundWhateverTheThreads) {
  const Tree tree;
  const std::string address = write_shards(tree, 40);
  for (const std::size_t at : {0, 5, 17, 33}) {
    flip(tree, "s-0.tar", at * kSampleBytes);
    flip(tree, "s-2.tar", (at + 3) * kSampleBytes + 512 + 1024);
  }
  OpenOptions one = skipping_losses(), many = skipping_losses();
  one.threads = 1, many.threads = 8;
  const DatasetPtr first = open(address, one);
  EXPECT_EQ(first->size(), 120u - 8);
  for (int round = 0; round < 10; ++round) {
    const DatasetPtr again = open(address, many);
    EXPECT_EQ(names_of(*again), names_of(*first));
    EXPECT_EQ(again->facts().fingerprint, first->facts().fingerprint);
    EXPECT_EQ(again->facts().losses.size(), first->facts().losses.size());
  }
}

// Shards of two labelled samples, as write_shards() makes them, cut to `bytes`.
DatasetPtr open_cut(const Tree& tree, std::size_t bytes, const OpenOptions& options) {
  const std::string sound =
      tar({{"0.jpg", std::string(700, 'x')}, {"0.cls", "7"}, {"1.jpg", std::string(700, 'y')}, {"1.cls", "8"}});
  tree.write("cut.tar", sound.substr(0, bytes));
  return open(tree.at("cut.tar"), options);
}
constexpr std::size_t kWholeBytes = 2 * kSampleBytes;

TEST(TarLosses, ACutShardNeverLosesASampleOrALabelInSilence) {
  const Tree tree;
  for (std::size_t bytes = 640; bytes < kWholeBytes + 2 * kTarBlock; bytes += bytes % 64 == 0 ? 9 : 55) {
    const auto error = error_of([&] { open_cut(tree, bytes, {}); });
    // Whole samples, and no sign that more followed. The first one is whole as long as no label is seen.
    const bool may_be_whole = bytes == kSampleBytes - 1024 || bytes == kSampleBytes || bytes == kWholeBytes;
    ASSERT_EQ(error.has_value(), bytes < kWholeBytes && !may_be_whole) << bytes;
    if (may_be_whole) {
      EXPECT_TRUE(has_note(*open_cut(tree, bytes, {}), "without the end-of-archive marker")) << bytes;
    }
    if (bytes <= kSampleBytes) continue;  // nothing of it may be left
    const DatasetPtr data = open_cut(tree, bytes, skipping_losses());
    EXPECT_EQ(data->facts().losses.empty(), !error) << bytes;
    EXPECT_EQ(data->label(0).integer, 7) << bytes;
  }
}

TEST(TarLosses, ACutInThePaddingNamesTheMember) {
  const Tree tree;
  const DatasetPtr data = open_cut(tree, kWholeBytes - 100, skipping_losses());
  EXPECT_EQ(labels_of(*data), (std::vector<std::int64_t>{7, 8}));
  ASSERT_EQ(data->facts().losses.size(), 1u);
  EXPECT_EQ(
      data->facts().losses[0].message(),
      fmt::format("cannot list `{}`: it ends at byte {}, inside the padding of `1.cls`: what followed was cut off",
                  tree.at("cut.tar"), kWholeBytes - 100));
}

TEST(TarLosses, ACutBetweenImageAndLabelLosesTheSample) {
  const Tree tree;
  const DatasetPtr data = open_cut(tree, kWholeBytes - 1024, skipping_losses());
  EXPECT_EQ(names_of(*data), Names{"0.jpg"});
  ASSERT_EQ(data->facts().losses.size(), 1u);
  EXPECT_TRUE(data->facts().losses[0].message().find("`1.jpg` lost its label") != std::string::npos);

  tree.write("first.tar", tar({{"0.cls", "7"}, {"0.jpg", "x"}, {"1.cls", "8"}}, false));
  const DatasetPtr label_first = open(tree.at("first.tar"), skipping_losses());
  ASSERT_EQ(label_first->facts().losses.size(), 1u);
  EXPECT_TRUE(label_first->facts().losses[0].message().find("it ends behind `1.cls`") != std::string::npos);
}

TEST(TarLosses, ACutShardWhoseLabelsLieApartIsNamed) {
  const Tree tree;
  tree.write("i.tar", tar({{"0.jpg", "a"}, {"1.jpg", "b"}, {"0.cls", "3"}}, false));
  tree.write("l.tar", tar({{"0.cls", "3"}, {"1.cls", "4"}, {"0.jpg", "a"}}, false));
  for (const char* const name : {"i.tar", "l.tar"}) {
    EXPECT_TRUE(mentions(error_of([&] { open(tree.at(name)); }), "members of 1 sample were cut off")) << name;
    const DatasetPtr data = open(tree.at(name), skipping_losses());
    EXPECT_EQ(data->label(0).integer, 3);
    EXPECT_EQ(data->facts().losses.size(), 1u);
  }
}

TEST(TarLosses, AShardWithoutTheMarkerAmongShardsThatHaveItIsCut) {
  const Tree tree;
  const std::string address = write_shards(tree);
  std::filesystem::resize_file(tree.at("s-1.tar"), 3 * kSampleBytes);
  EXPECT_TRUE(mentions(error_of([&] { open(address); }), "s-1.tar`: it ends at byte 7680 without the end-of-archive"));
  const DatasetPtr data = open(address, skipping_losses());
  EXPECT_EQ(data->size(), 11u);
  EXPECT_EQ(data->facts().losses.size(), 1u);

  for (const int shard : {0, 1, 2})
    std::filesystem::resize_file(tree.at(fmt::format("s-{}.tar", shard)), 3 * kSampleBytes);
  EXPECT_EQ(open(address)->size(), 9u);
  EXPECT_TRUE(has_note(*open(address), "3 tar shards end without the end-of-archive marker"));
}

TEST(TarLosses, SparseFilesAreNamed) {
  const Tree tree;
  const std::string sound = tar({{"a.jpg", "first"}, {"a.cls", "5"}}, false),
                    end = tar({{"z.jpg", "last"}, {"z.cls", "7"}});
  const std::string map(kTarBlock, '\0');  // of which the header says that it is there
  for (const bool is_mapped : {false, true}) {
    std::string header = linked("s.jpg", 'S', "");
    header[482] = is_mapped;
    header = with_checksum(header);
    tree.write("s.tar", sound + header + (is_mapped ? map : std::string()) + end);
    EXPECT_TRUE(mentions(error_of([&] { open(tree.at("s.tar")); }), "`s.jpg` is a sparse file"));
    const DatasetPtr data = open(tree.at("s.tar"), skipping_losses());
    EXPECT_EQ(names_of(*data), (Names{"a.jpg", "z.jpg"}));
    ASSERT_EQ(data->facts().losses.size(), 1u);
  }
}

TEST(TarLosses, AnEmptyShardIsNamed) {
  const Tree tree;
  const std::string address = write_shards(tree);
  tree.write("s-1.tar", "");
  EXPECT_TRUE(mentions(error_of([&] { open(address); }), "s-1.tar`: the file is empty"));
  const DatasetPtr data = open(address, skipping_losses());
  EXPECT_EQ(data->size(), 8u);
  ASSERT_EQ(data->facts().losses.size(), 1u);
  EXPECT_EQ(data->facts().losses[0].message(), fmt::format("cannot list `{}`: the file is empty", tree.at("s-1.tar")));
}

TEST(TarLosses, AShardThatMayNotBeReadIsNamed) {
  const Tree tree;
  const std::string address = write_shards(tree);
  const os::InjectFault fault(os::Call::open, {.error_number = EACCES, .skip = 1});
  const DatasetPtr data = open(address, skipping_losses());
  EXPECT_EQ(data->size(), 8u);
  EXPECT_EQ(data->name(4), "20.jpg");
  ASSERT_EQ(data->facts().losses.size(), 1u);
  EXPECT_EQ(data->facts().losses[0].message(), fmt::format("cannot list `{}`: Permission denied", tree.at("s-1.tar")));
}

TEST(TarLosses, AFileThatIsNoTarAtAllIsAnErrorWhateverThePolicy) {
  const Tree tree;
  tree.write("x.tar", std::string(5000, 'x'));
  EXPECT_TRUE(mentions(error_of([&] { open(tree.at("x.tar"), skipping_losses()); }), "it is not a tar archive"));
}

TEST(Tar, AMissingShardOfAPatternIsNamed) {
  const Tree tree;
  tree.write("s-0.tar", tar({{"0.jpg", "a"}}));
  EXPECT_TRUE(mentions(error_of([&] { open(tree.at("s-{0..2}.tar")); }), "s-1.tar"));
}

TEST(Braces, RangesAndChoicesAreExpandedInOrder) {
  EXPECT_EQ(expand_braces("a.tar"), Names{"a.tar"});
  EXPECT_EQ(expand_braces("a-{008..010}.tar"), (Names{"a-008.tar", "a-009.tar", "a-010.tar"}));
  EXPECT_EQ(expand_braces("{8..10}"), (Names{"8", "9", "10"}));
  EXPECT_EQ(expand_braces("{a,b}{0..1}"), (Names{"a0", "a1", "b0", "b1"}));
  for (const char* wrong : {"{1..", "{2..1}", "{a..b}", "{0..99999999}", "{{0..1}}", "{0..9999}{0..9999}"}) {
    EXPECT_TRUE(error_of([&] { expand_braces(wrong); })) << wrong;
  }
}

}  // namespace
}  // namespace stoker::dataset
