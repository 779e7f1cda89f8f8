// Packs that several machines make: the same bytes as from one machine, and what is refused when parts do not fit.
#include "stoker/prepare/pack_parts.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/dataset/packed.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/os/file_lock.h"
#include "stoker/prepare/contents_test.h"
#include "stoker/prepare/refusal_test.h"

namespace stoker::prepare {
namespace {

using loader::Folder;
namespace fs = std::filesystem;

void set_time_of(const Folder& folder, const std::string& name, std::int16_t value) {
  const timespec times[2] = {{1'700'000'000 + value, 0}, {1'700'000'000 + value, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, folder.path(name).c_str(), times, 0), 0);
}

// Sounds of 200 KB, so that a shard of 1 MiB holds five.
void add_sounds(const Folder& folder, std::int16_t count) {
  for (std::int16_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("data/{}/{:03}.wav", i % 3, i);
    folder.write(name, loader::wav(100'000, i));
    set_time_of(folder, name, i);
  }
}

PackOptions packing(const Folder& folder, const std::string& destination = "x.pack") {
  PackOptions options;
  options.source = folder.path("data");
  options.destination = folder.path(destination);
  options.shard_size = kMiB;
  options.cache_dir = folder.path("cache");
  return options;
}

PackOptions part_of(PackOptions options, std::uint64_t number, std::uint64_t of) {
  options.part = PartName{number, of};
  return options;
}

PackOptions joining(PackOptions options) {
  options.join = true;
  return options;
}

void make_parts(const PackOptions& options, std::uint64_t of) {
  for (std::uint64_t number = of; number >= 1; --number) make_pack(part_of(options, number, of));
}

TEST(PackParts, OwnEachItemOnce) {
  for (const std::uint64_t count : {0, 1, 3, 10, 1000}) {
    for (const std::uint64_t of : {1, 3, 4, 7}) {
      std::uint64_t next = 0;
      for (std::uint64_t number = 1; number <= of; ++number) {
        const PartName part{number, of};
        EXPECT_EQ(part.begin(count), next);
        EXPECT_LE(part.end(count) - part.begin(count), count / of + 1);
        next = part.end(count);
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(PackParts, AreReadAsTwoNumbers) {
  EXPECT_EQ(parse_part("2/4"), (PartName{2, 4}));
  for (const char* const text : {"", "2", "0/4", "5/4", "1/0", "a/4", "2/4/", "-1/4", "1/99999999999999999999"})
    EXPECT_THROW(parse_part(text), Error) << text;
}

TEST(PackParts, JoinToTheBytesOfAPackThatOneMachineMakes) {
  const Folder folder;
  add_sounds(folder, 23);
  for (const bool is_raw : {false, true}) {
    PackOptions one = packing(folder, "one.pack"), several = packing(folder);
    if (is_raw) one.samples = several.samples = 90'000;
    EXPECT_EQ(make_pack(one).shards, 5u);
    for (const std::uint64_t of : {1, 2, 4, 9}) {
      make_parts(several, of);

      const PackReport report = make_pack(joining(several));

      EXPECT_EQ(report.count, 23u);
      EXPECT_EQ(contents_of(several.destination), contents_of(one.destination)) << of;
      EXPECT_FALSE(fs::exists(folder.path(".x.pack.parts")));
      EXPECT_TRUE(make_pack(several).idle) << "the next run finds the pack up to date";
      fs::remove_all(several.destination);
    }
    fs::remove_all(one.destination);
  }
}

TEST(PackParts, OfMachinesWhoseClocksAreApartJoinToTheSameBytes) {
  const Folder folder;
  add_sounds(folder, 23);
  const PackOptions one = packing(folder, "one.pack"), several = packing(folder);
  make_pack(one);
  constexpr std::int64_t kDayNs = std::int64_t{86'400} * 1'000'000'000;
  for (const std::int64_t days : {-1, 0, 1}) {
    PackOptions part = part_of(several, static_cast<std::uint64_t>(days + 2), 3);
    part.now_ns = [days] { return std::chrono::system_clock::now().time_since_epoch().count() + days * kDayNs; };
    make_pack(part);
  }

  make_pack(joining(several));

  EXPECT_EQ(contents_of(several.destination), contents_of(one.destination));
  EXPECT_TRUE(make_pack(several).idle);
}

TEST(PackParts, ASkippedSampleShortensItsShardAndMovesNoBorder) {
  const Folder folder;
  add_sounds(folder, 23);
  PackOptions options = packing(folder, "one.pack");
  make_pack(options);
  const auto whole = dataset::open_packed(options.destination)->manifest().shards;
  fs::remove_all(options.destination);
  std::vector<std::string> names;  // in the order of the pack: the second shard is bad, and one sample of the third
  for (const auto& entry : fs::recursive_directory_iterator(folder.path("data")))
    if (entry.is_regular_file()) names.push_back(entry.path().string());
  std::ranges::sort(names);
  for (const std::size_t bad : {5, 6, 7, 8, 9, 12}) {
    std::fstream file(names[bad], std::ios::in | std::ios::out | std::ios::binary);
    file.write("junkjunkjunkjunk", 16);
  }
  options.samples = 90'000;  // decodes them
  options.on_error = loader::OnError::skip;
  PackOptions several = options;
  several.destination = folder.path("x.pack");

  const PackReport report = make_pack(options);
  make_parts(several, 3);
  make_pack(joining(several));

  const auto shards = dataset::open_packed(options.destination)->manifest().shards;
  EXPECT_EQ(report.skipped.size(), 6u);
  ASSERT_EQ(shards.size(), 4u) << "a shard without samples has no file";
  EXPECT_EQ(shards[0].count, 5u);
  EXPECT_EQ(shards[1].name, "data-00002.npy");
  EXPECT_EQ(shards[1].count, 4u);
  EXPECT_EQ(contents_of(several.destination), contents_of(options.destination));
}

TEST(PackParts, APartThatIsThereIsLeftAsItIsAndALostOneIsMadeAgain) {
  const Folder folder;
  add_sounds(folder, 12);
  const PackOptions options = packing(folder);
  make_parts(options, 2);
  EXPECT_TRUE(make_pack(part_of(options, 1, 2)).idle);
  for (const auto& entry : fs::directory_iterator(folder.path(".x.pack.parts/1-of-2")))
    if (entry.path().filename().string().starts_with("data-")) fs::remove(entry.path());

  const Error error = refusal([&] { make_pack(joining(options)); });
  EXPECT_NE(error.message().find("part 1/2 has lost its file"), std::string::npos) << error.message();

  EXPECT_FALSE(make_pack(part_of(options, 1, 2)).idle);
  EXPECT_EQ(make_pack(joining(options)).count, 12u);
}

TEST(PackParts, APartThatFailedGoesOnWhereItStopped) {
  const Folder folder;
  add_sounds(folder, 70);
  PackOptions options = packing(folder);
  options.shard_size = 100 * kMiB;
  make_parts(options, 1);
  const auto whole = contents_of(folder.path(".x.pack.parts/1-of-1"));
  fs::remove_all(folder.path(".x.pack.parts"));
  const std::string bad = "data/2/068.wav";
  folder.write(bad, std::string(fs::file_size(folder.path(bad)), 'x'));
  set_time_of(folder, bad, 68);
  const Error stopped = refusal([&] { make_pack(part_of(options, 1, 1)); });
  EXPECT_NE(stopped.message().find("2/068.wav"), std::string::npos) << stopped.message();
  EXPECT_NE(stopped.hint().find("it goes on where it stopped"), std::string::npos) << stopped.hint();
  const Error unfinished = refusal([&] { make_pack(joining(options)); });
  EXPECT_NE(unfinished.message().find("part 1/1 is not finished"), std::string::npos) << unfinished.message();

  folder.write(bad, loader::wav(100'000, 68));
  set_time_of(folder, bad, 68);

  const PackReport report = make_pack(part_of(options, 1, 1));

  EXPECT_GT(report.resumed, 60u);
  const auto found = contents_of(folder.path(".x.pack.parts/1-of-1"));
  EXPECT_EQ(found.at("data-00000.tar"), whole.at("data-00000.tar"));
}

TEST(PackParts, AJoinThatWasKilledBehindItsLastStepTidiesUp) {
  const Folder folder;
  add_sounds(folder, 12);
  const PackOptions options = packing(folder);
  make_parts(options, 2);
  fs::copy(folder.path(".x.pack.parts"), folder.path("saved"), fs::copy_options::recursive);
  make_pack(joining(options));
  const auto whole = contents_of(options.destination);
  fs::rename(folder.path("saved"), folder.path(".x.pack.parts"));

  EXPECT_TRUE(make_pack(joining(options)).idle);

  EXPECT_EQ(contents_of(options.destination), whole);
  EXPECT_FALSE(fs::exists(folder.path(".x.pack.parts")));
  EXPECT_FALSE(fs::exists(folder.path(".x.pack.part")));
}

TEST(PackParts, WhatDoesNotFitIsRefusedInOneSentence) {
  const Folder folder;
  add_sounds(folder, 12);
  const PackOptions options = packing(folder);
  const auto expect = [&](const PackOptions& wrong, const std::string& words) {
    const Error error = refusal([&] { make_pack(wrong); });
    EXPECT_NE(error.message().find(words), std::string::npos) << error.message();
    EXPECT_FALSE(error.hint().empty());
  };
  expect(joining(options), "there are none in");
  make_pack(part_of(options, 1, 3));
  make_pack(part_of(options, 3, 3));
  expect(joining(options), "part 2/3 is missing");
  expect(part_of(options, 1, 4), "has part 1/3, which overlaps it");
  make_pack(part_of(options, 2, 3));
  PackOptions other = joining(options);
  other.shard_size = 2 * kMiB;
  expect(other, "part 1/3 was made with a shard size of");
  other = joining(options);
  other.samples = 5;
  expect(other, "part 1/3 was made with other settings");
  fs::create_directories(folder.path(".x.pack.parts/1-of-2"));
  expect(joining(options), "which overlap");
  fs::remove(folder.path(".x.pack.parts/1-of-2"));
  folder.write("data/0/999.wav", loader::wav(10, 1));
  expect(joining(options), "part 1/3 was made from 12 samples of");
  fs::remove(folder.path("data/0/999.wav"));
  set_time_of(folder, "data/0/003.wav", 5);
  expect(joining(options), "part 1/3 was made from other files");
  other = joining(options);
  other.part = PartName{1, 3};
  expect(other, "do not go together");
  make_parts(options, 3);
  make_pack(joining(options));
  other = joining(options);
  other.samples = 5;
  expect(other, "it was made with other settings");
  folder.write("data/0/999.wav", loader::wav(10, 1));
  expect(part_of(options, 1, 3), "the pack is there already");
  expect(joining(options), "the pack is of other files or options");
}

TEST(PackParts, ARunThatComesLateFindsThePackJoined) {
  const Folder folder;
  add_sounds(folder, 12);
  const PackOptions options = packing(folder);
  make_parts(options, 2);
  make_pack(joining(options));
  const auto whole = contents_of(options.destination);

  const PackReport again = make_pack(joining(options)), late = make_pack(part_of(options, 2, 2));

  EXPECT_TRUE(again.idle && late.idle && late.was_there);
  EXPECT_EQ(again.kept, 12u);
  EXPECT_EQ(again.added, 0u);
  EXPECT_EQ(contents_of(options.destination), whole);
  EXPECT_FALSE(fs::exists(folder.path(".x.pack.parts")));
}

TEST(PackParts, APartOfOtherOptionsIsNotReplacedAndNotCounted) {
  const Folder folder;
  add_sounds(folder, 12);
  const PackOptions options = packing(folder);
  PackOptions other = options;
  other.shard_size = 2 * kMiB;
  make_pack(part_of(other, 2, 3));
  EXPECT_EQ(make_pack(part_of(options, 1, 3)).parts_whole, 1u);
  const Error error = refusal([&] { make_pack(part_of(options, 2, 3)); });
  EXPECT_NE(error.message().find("it is there, made with a shard size of"), std::string::npos) << error.message();
  PackOptions forced = part_of(options, 2, 3);
  forced.force = true;
  EXPECT_EQ(make_pack(forced).parts_whole, 2u);
}

TEST(PackParts, AShardThatWasCutShortIsNamedWithItsSize) {
  const Folder folder;
  add_sounds(folder, 12);
  const PackOptions options = packing(folder);
  make_parts(options, 2);
  const std::string part = folder.path(".x.pack.parts/1-of-2");
  for (const auto& entry : fs::directory_iterator(part))
    if (entry.path().filename().string().starts_with("data-")) fs::resize_file(entry.path(), 100);
  const Error error = refusal([&] { make_pack(joining(options)); });
  EXPECT_NE(error.message().find("has 100 of"), std::string::npos) << error.message();
}

TEST(PackParts, ASecondRunOfOnePartIsRefusedWhileTheFirstGoesOn) {
  const Folder folder;
  add_sounds(folder, 12);
  const PackOptions options = packing(folder);
  make_pack(part_of(options, 1, 2));
  int error_number = 0;
  const os::FileLock held = os::FileLock::try_take(folder.path(".x.pack.parts/1-of-2/.lock"), error_number);

  const Error error = refusal([&] { make_pack(part_of(options, 1, 2)); });

  EXPECT_NE(error.message().find("another program is making it"), std::string::npos) << error.message();
}

TEST(PackParts, ARunWhosePartAnotherOneTookOverStops) {  // where the file system has no locks
  const Folder folder;
  add_sounds(folder, 12);
  PackOptions options = part_of(packing(folder), 1, 1);
  options.progress = [&](const PackProgress& progress) {
    if (progress.phase == "packing") folder.write(".x.pack.parts/1-of-1/.owner", "another");
    return true;
  };

  const Error error = refusal([&] { make_pack(options); });

  EXPECT_NE(error.message().find("another program began to make it, too"), std::string::npos) << error.message();
  EXPECT_FALSE(fs::exists(folder.path(".x.pack.parts/1-of-1/part.json")));
}

}  // namespace
}  // namespace stoker::prepare
