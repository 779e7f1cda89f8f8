// seek.bin of a pack: the same pixels with it as from the files, in the first epoch too; kept, dropped and made anew
// with the samples it speaks of.
#include "stoker/prepare/seek_record.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/base/units.h"
#include "stoker/codec/made_jpeg_test.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/os/fault.h"
#include "stoker/os/read_file.h"
#include "stoker/prepare/check.h"
#include "stoker/prepare/pack.h"

namespace stoker::prepare {
namespace {

using codec::made::encode, codec::made::Scene;
using loader::Folder, loader::SeekFile;
namespace fs = std::filesystem;

std::string picture(std::uint32_t number, bool progressive = false) {
  const codec::File file =
      encode(180 + number, 150, number % 2 ? Scene::noise : Scene::smooth,
             {.h_sampling = 1 + static_cast<int>(number % 2), .quality = 95, .progressive = progressive});
  const codec::Bytes bytes = file;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> part_of(const std::string& file) {
  std::vector<std::byte> part;
  const codec::Bytes bytes = std::as_bytes(std::span(file));
  note_places(bytes, loader::identity_of(bytes), part);
  return part;
}

class PackSeek : public testing::Test {
 protected:
  void SetUp() override {
    if (!codec::can_seek()) GTEST_SKIP() << "this CPU has no AVX2: libjpeg-turbo decodes everything";
    for (std::uint32_t i = 0; i < 20; ++i) add(i);
  }
  void add(std::uint32_t number, std::uint32_t content = ~0u) const {
    const std::string name = fmt::format("data/{}/{:02}.jpg", number % 2 ? "cat" : "dog", number);
    folder_.write(name, picture(content == ~0u ? number : content, number % 10 == 9));
    const timespec times[2] = {{1'700'000'000 + content % 1000, 0}, {1'700'000'000 + content % 1000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, folder_.path(name).c_str(), times, 0), 0);
  }
  PackOptions options(const std::string& name = "x.pack") const {
    PackOptions options;
    options.source = folder_.path("data");
    options.destination = folder_.path(name);
    options.shard_size = kMiB;
    return options;
  }
  std::string seek_path() const { return folder_.path("x.pack/seek.bin"); }
  static std::string read(const std::string& path) { return os::read_text(path); }
  std::map<std::string, std::string> contents(const std::string& name = "x.pack") const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_.path(name)))
      files[entry.path().filename().string()] = read(entry.path());
    return files;
  }
  void flip(const std::string& path, std::uint64_t at) const {
    std::string bytes = read(path);
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  CheckReport checked(bool decode = false, bool repair = false) const {
    CheckOptions options;
    options.address = folder_.path("x.pack");
    options.decode = decode;
    options.repair = repair;
    return check(options);
  }
  // Two epochs of crops in a new loader that has no other index; `stats` gets its figures.
  std::vector<loader::Taken> crops(const std::string& name, loader::Stats* stats = nullptr,
                                   std::vector<std::string>* notes = nullptr,
                                   loader::UseSeekIndex use = loader::UseSeekIndex::memory) const {
    dataset::OpenOptions opening;
    opening.cache_dir = folder_.path("cache");
    loader::LoaderOptions loading = loader::batches_of(8);
    loading.shuffle = true;
    loading.transform = transform::parse_ops("rrc:32,flip");
    loading.seek_index = use;
    loader::Loader loader(dataset::open(folder_.path(name), opening), loading);
    std::vector<loader::Taken> all;
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      loader.start_epoch(epoch);
      for (loader::Taken& taken : drain(loader)) all.push_back(std::move(taken));
    }
    if (stats != nullptr) *stats = loader.stats();
    if (notes != nullptr) {
      notes->clear();
      for (const Text& note : loader.notes()) notes->push_back(note.in_python());
    }
    return all;
  }

  Folder folder_;
};

TEST_F(PackSeek, CropsOfAPackAreThoseOfItsFilesToTheBit) {
  make_pack(options());
  loader::Stats stats;
  EXPECT_EQ(crops("x.pack", &stats), crops("data"));
  EXPECT_EQ(stats.seek_files, 18u) << "all but the progressive ones";
  std::string why;
  const SeekFile file = SeekFile::open(seek_path(), why);
  EXPECT_EQ(why, "");
  ASSERT_EQ(file.rows().size(), 18u);
  for (const loader::SeekRow& row : file.rows()) EXPECT_EQ(file.places(row).size(), row.total) << "a whole index";
}

TEST_F(PackSeek, PlacesTakeASmallShareOfTheirFile) {
  for (std::uint32_t i = 0; i < 9; ++i) {
    const std::string file = picture(i);
    const std::vector<std::byte> part = part_of(file);
    ASSERT_FALSE(part.empty());
    EXPECT_EQ(part, part_of(file));
    EXPECT_LE(part.size() - sizeof(loader::SeekRow), file.size() / kSeekShare);
  }
}

TEST_F(PackSeek, OfWhatIsNoWholeBaselineJpegNothingIsNoted) {
  EXPECT_TRUE(part_of("").empty());
  EXPECT_TRUE(part_of("no picture").empty());
  EXPECT_TRUE(part_of(picture(1, true)).empty());
  const std::string file = picture(1);
  EXPECT_TRUE(part_of(file.substr(0, file.size() / 2)).empty());
}

TEST_F(PackSeek, CanBeLeftOutAndIsAddedLaterWithoutTouchingTheShards) {
  PackOptions without = options();
  without.seek_index = false;
  make_pack(without);
  EXPECT_FALSE(fs::exists(seek_path()));
  EXPECT_TRUE(make_pack(without).idle);
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(folder_.path("x.pack/data-00000.tar").c_str(), &before), 0);

  const PackReport report = make_pack(options());

  EXPECT_FALSE(report.idle);
  EXPECT_EQ(report.kept, 20u);
  ASSERT_EQ(::stat(folder_.path("x.pack/data-00000.tar").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_TRUE(make_pack(options()).idle);
  make_pack(options("fresh.pack"));
  EXPECT_EQ(contents(), contents("fresh.pack"));
}

TEST_F(PackSeek, OfAnEarlierVersionIsReplacedByTheNextPacking) {
  make_pack(options());
  const auto whole = contents();
  std::string bytes = read(seek_path());
  bytes[8] = 2;
  folder_.write("x.pack/seek.bin", bytes);

  EXPECT_FALSE(make_pack(options()).idle);

  EXPECT_EQ(contents(), whole);
  EXPECT_TRUE(make_pack(options()).idle);
}

TEST_F(PackSeek, FollowsItsSamplesThroughRepacks) {
  PackOptions small = options();
  make_pack(small);
  add(30);
  add(3, 77);
  fs::remove(folder_.path("data/dog/08.jpg"));

  const PackReport report = make_pack(small);

  EXPECT_EQ(report.added + report.changed + report.removed, 3u);
  make_pack(options("fresh.pack"));
  EXPECT_EQ(read(seek_path()), read(folder_.path("fresh.pack/seek.bin"))) << "what is gone left nothing behind";
  EXPECT_EQ(crops("x.pack"), crops("data"));
  EXPECT_TRUE(checked(true, false).is_sound());
}

TEST_F(PackSeek, IsTheSameAfterAFullDisk) {
  PackOptions often = options();
  often.sync_bytes = 100'000;
  make_pack(often);
  const auto whole = contents();
  bool resumed = false;
  for (const std::uint32_t skip : {0, 1, 3, 5, 7}) {
    fs::remove_all(often.destination);
    {
      const os::InjectFault full(os::Call::write, {.error_number = ENOSPC, .skip = skip, .times = 1'000'000});
      EXPECT_THROW(make_pack(often), Error);
    }
    EXPECT_FALSE(fs::exists(often.destination));
    resumed |= make_pack(often).resumed > 0;
    EXPECT_EQ(contents(), whole);
  }
  EXPECT_TRUE(resumed);
}

TEST_F(PackSeek, DamageIsNamedLeavesThePixelsAndIsRepaired) {
  make_pack(options());
  const auto whole = contents();
  const auto right = crops("data");
  const std::uint64_t bytes = fs::file_size(seek_path());
  for (const std::uint64_t at :
       {std::uint64_t{3}, std::uint64_t{9}, std::uint64_t{17}, std::uint64_t{70}, bytes / 2, bytes - 1}) {
    flip(seek_path(), at);
    EXPECT_EQ(crops("x.pack"), right) << "byte " << at;
    const CheckReport found = checked();
    EXPECT_FALSE(found.is_sound()) << "byte " << at;
    ASSERT_EQ(found.broken.size(), 1u);
    EXPECT_NE(found.broken[0].find("seek.bin"), std::string::npos) << found.broken[0];

    EXPECT_TRUE(checked(false, true).is_sound());

    EXPECT_EQ(contents(), whole) << "byte " << at;
  }
  std::vector<std::string> notes;
  flip(seek_path(), 70);  // the table
  crops("x.pack", nullptr, &notes);
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("stoker check --repair") != std::string::npos;
  })) << testing::PrintToString(notes);
  fs::remove(seek_path());
  EXPECT_EQ(crops("x.pack"), right);
  EXPECT_TRUE(checked(false, true).is_sound());
  EXPECT_EQ(contents(), whole);
}

TEST_F(PackSeek, IsKeptWhenADamagedSampleIsMadeAnew) {
  make_pack(options());
  const std::string seek = read(seek_path());
  flip(folder_.path("x.pack/data-00000.tar"), 20'000);
  EXPECT_FALSE(checked().is_sound());
  EXPECT_TRUE(checked(false, true).is_sound());
  EXPECT_EQ(read(seek_path()), seek);
}

// The bytes of one payload are other ones, valid or not, while the index and seek.bin still speak of the old ones.
TEST_F(PackSeek, AShardThatIsChangedUnderThePackGivesItsNewPixelsAndCheckNamesTheSample) {
  make_pack(options());
  const auto pack = dataset::open_packed(folder_.path("x.pack"));
  const std::string shard = folder_.path("x.pack/data-00000.tar");
  for (const std::uint64_t sample : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{12}}) {
    const dataset::PackRow row = pack->row(sample);
    for (const std::uint64_t tenth : {3, 6, 9}) flip(shard, row.offset + row.bytes * tenth / 10);
  }

  EXPECT_EQ(crops("x.pack"), crops("x.pack", nullptr, nullptr, loader::UseSeekIndex::off));
  const CheckReport found = checked();
  ASSERT_EQ(found.damaged.size(), 3u);
  EXPECT_EQ(found.damaged[1].name, pack->name(7));
  EXPECT_EQ(found.damaged[1].cause, "its bytes are not those that were packed (the checksum differs)");
  EXPECT_TRUE(found.broken.empty()) << found.broken[0];
  EXPECT_TRUE(checked(false, true).is_sound());
  EXPECT_EQ(crops("x.pack"), crops("data"));
}

// A pack of the version that knew JPEG files by some of their bytes only.
TEST(EarlierSeekPack, IsReadWithoutItsPlacesUntilItIsPackedOrRepaired) {
  if (!codec::can_seek()) GTEST_SKIP() << "this CPU has no AVX2: libjpeg-turbo decodes everything";
  const Folder folder;
  const std::string path = folder.path("seek.pack");
  fs::copy(std::string(STOKER_FORMATS_FOLDER) + "/seek.pack", path);
  loader::LoaderOptions loading = loader::batches_of(1);
  loading.transform = transform::parse_ops("rrc:32");
  const auto notes_of = [&] {
    loader::Loader loader(loader::open_uncached(path), loading);
    loader.start_epoch(0);
    EXPECT_EQ(drain(loader).size(), 1u);
    std::string notes;
    for (const Text& note : loader.notes()) notes += note.in_python() + "\n";
    return notes;
  };
  EXPECT_NE(notes_of().find("seek.bin` is not used: an earlier version of Stoker wrote it"), std::string::npos);
  CheckOptions options;
  options.address = path;
  const CheckReport found = check(options);
  EXPECT_TRUE(found.is_sound());
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].in_python().find("earlier version"), std::string::npos);

  options.repair = true;
  EXPECT_TRUE(check(options).is_sound());

  EXPECT_EQ(notes_of().find("earlier version"), std::string::npos);
  EXPECT_FALSE(SeekFile::is_outdated(path + "/seek.bin"));
  options.repair = false, options.decode = true;
  const CheckReport after = check(options);
  EXPECT_TRUE(after.is_sound());
  EXPECT_TRUE(after.notes.empty());
}

TEST(KeptSeekPack, IsReadAsItWas) {
  if (!codec::can_seek()) GTEST_SKIP() << "this CPU has no AVX2: libjpeg-turbo decodes everything";
  CheckOptions options;
  options.address = std::string(STOKER_FORMATS_FOLDER) + "/seek-3.pack";
  options.decode = true;
  EXPECT_TRUE(check(options).is_sound()) << "the places are those that are noted today";
  std::string why;
  const SeekFile file = SeekFile::open(options.address + "/seek.bin", why);
  EXPECT_EQ(why, "");
  ASSERT_EQ(file.rows().size(), 1u);
  EXPECT_EQ(file.rows()[0].sample, 0u);
  EXPECT_EQ(file.places(file.rows()[0]).size(), file.rows()[0].total);
}

// Places of another file, with every checksum right: the content decides whose they are.
TEST_F(PackSeek, PlacesOfOtherFilesAreNotUsedAndFound) {
  make_pack(options());
  make_pack([&] {
    PackOptions other = options("other.pack");
    for (std::uint32_t i = 0; i < 20; ++i) add(i, i + 40);
    return other;
  }());
  for (std::uint32_t i = 0; i < 20; ++i) add(i);
  fs::copy_file(folder_.path("other.pack/seek.bin"), seek_path(), fs::copy_options::overwrite_existing);
  const std::string bytes = read(seek_path()), json = folder_.path("x.pack/pack.json");
  dataset::PackManifest pack = dataset::parse_manifest(read(json), "x.pack");
  for (dataset::PackFile& file : pack.files) {
    if (file.name == "seek.bin") file.bytes = bytes.size(), file.xxh3 = hash_text(bytes);
  }
  folder_.write("x.pack/pack.json", dataset::to_json(pack));

  EXPECT_EQ(crops("x.pack"), crops("data"));
  const CheckReport found = checked();
  ASSERT_EQ(found.broken.size(), 1u);
  EXPECT_EQ(found.broken[0], "seek.bin has places of other files than these");
  EXPECT_TRUE(checked(false, true).is_sound());
  EXPECT_TRUE(checked(true).is_sound());
}

}  // namespace
}  // namespace stoker::prepare
