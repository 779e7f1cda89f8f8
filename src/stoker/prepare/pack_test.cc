// Packs from folders, csv files, arrays, tars and packs: what they hold, what a second run changes, what an
// interruption leaves.
#include "stoker/prepare/pack.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/dataset/packed.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/loader/loader.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/os/fault.h"
#include "stoker/prepare/contents_test.h"
#include "stoker/prepare/journal.h"
#include "stoker/prepare/pack_folder.h"
#include "stoker/prepare/payloads.h"
#include "stoker/prepare/refusal_test.h"
#include "stoker/prepare/tar_names.h"

namespace stoker::prepare {
namespace {

using dataset::PackKind;
using loader::Folder;
namespace fs = std::filesystem;

// Sets the time of last change: tests do not wait for clocks.
void set_time(const std::string& path, std::int64_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

void add_sound(const Folder& folder, const std::string& name, std::int16_t value, std::uint32_t frames = 100) {
  folder.write("data/" + name, loader::wav(frames, value));
  set_time(folder.path("data/" + name), 1'700'000'000 + value);
}

// Ten sounds in two classes, value = number.
void make_sounds(const Folder& folder) {
  for (std::int16_t i = 0; i < 10; ++i)
    add_sound(folder, fmt::format("{}/{:02}.wav", i < 5 ? "cat" : "dog", i), i, static_cast<std::uint32_t>(90 + i));
}

PackOptions raw(const Folder& folder) {
  PackOptions options;
  options.source = folder.path("data");
  options.destination = folder.path("x.pack");
  options.samples = 100;
  options.shard_size = kMiB;
  return options;
}

PackOptions encoded(const Folder& folder) {
  PackOptions options = raw(folder);
  options.samples = 0;
  return options;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

struct Seen {
  std::vector<std::int64_t> labels, ids;
  std::vector<std::string> names;
  std::vector<double> first;  // value of the first element of each row
};

Seen drain(const std::string& address, loader::LoaderOptions options = {}) {
  dataset::OpenOptions opening;
  opening.use_cache = false;
  opening.storage = options.storage;
  options.batch_size = 3;
  loader::Loader loader(dataset::open(address, opening), options);
  Seen seen;
  while (const loader::BatchPtr batch = loader.next()) {
    const loader::Tensor& tensor = batch->tensors().front();
    for (std::uint64_t i = 0; i < batch->size(); ++i) {
      seen.labels.push_back(batch->labels()[i]);
      seen.ids.push_back(batch->ids()[i]);
      seen.names.push_back(batch->name_of(i));
      const std::byte* const at =
          tensor.data + i * static_cast<std::uint64_t>(tensor.strides[0]) * size_of(tensor.dtype);
      if (tensor.dtype == DType::i16) {
        std::int16_t value;
        std::memcpy(&value, at, 2);
        seen.first.push_back(value);
      } else {
        float value;
        std::memcpy(&value, at, 4);
        seen.first.push_back(value * 32768);
      }
    }
  }
  return seen;
}

TEST(PackRaw, SoundsBecomeRowsOfOneArrayWithLabelsNamesAndIds) {
  const Folder folder;
  make_sounds(folder);

  const PackReport report = make_pack(raw(folder));

  EXPECT_EQ(report.count, 10u);
  EXPECT_EQ(report.content, "int16 [100]");
  EXPECT_EQ(names_in(folder.path("x.pack")),
            (std::vector<std::string>{"data-00000.npy", "index.npy", "names.txt", "pack.json"}));
  loader::LoaderOptions padded;
  padded.transform = transform::parse_ops("pad:100");
  const Seen from_folder = drain(folder.path("data"), padded);
  for (const storage::Storage storage :
       {storage::Storage::buffered, storage::Storage::direct, storage::Storage::mmap}) {
    loader::LoaderOptions options;
    options.storage = storage;
    const Seen seen = drain(folder.path("x.pack"), options);
    EXPECT_EQ(seen.first, (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(seen.labels, from_folder.labels);
    EXPECT_EQ(seen.ids, from_folder.ids);
    EXPECT_EQ(seen.names, from_folder.names);
  }
  const auto pack = dataset::open_packed(folder.path("x.pack"));
  EXPECT_EQ(pack->row(3).frames, 93u);
  EXPECT_EQ(pack->manifest().rate_hz, 8000u);
}

TEST(PackRaw, IntegersAreScaledBackByToFloat) {
  const Folder folder;
  make_sounds(folder);
  make_pack(raw(folder));
  loader::LoaderOptions options;
  options.transform = transform::parse_ops("tofloat");
  EXPECT_EQ(drain(folder.path("x.pack"), options).first, (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(PackRaw, SoundsOfDifferentLengthsNeedSamples) {
  const Folder folder;
  make_sounds(folder);
  PackOptions options = raw(folder);
  options.samples = 0;
  options.kind = PackKind::raw;
  EXPECT_NE(refusal([&] { make_pack(options); }).hint().find("samples=16000"), std::string::npos);
}

TEST(PackRaw, WhatIsRandomIsRefused) {
  const Folder folder;
  make_sounds(folder);
  PackOptions options = raw(folder);
  options.transform = transform::parse_ops("flip");
  EXPECT_NE(refusal([&] { make_pack(options); }).message().find("a pack keeps what is the same in every epoch"),
            std::string::npos);
}

TEST(PackRaw, RowsOfAnArrayAndOfAPackCanBePackedAgain) {
  const Folder folder;
  make_sounds(folder);
  make_pack(raw(folder));
  PackOptions again;
  again.source = folder.path("x.pack");
  again.destination = folder.path("y.pack");
  again.dtype = DType::f32;

  EXPECT_EQ(make_pack(again).content, "float32 [100]");

  const auto first = dataset::open_packed(folder.path("x.pack")), second = dataset::open_packed(folder.path("y.pack"));
  ASSERT_EQ(second->size(), 10u);
  EXPECT_EQ(second->id(7), first->id(7));
  EXPECT_EQ(second->label(7).integer, 1);
  EXPECT_EQ(second->name(7), "dog/07.wav");
}

TEST(PackEncoded, GivesTheBatchesThatTheFolderGives) {
  const Folder folder;
  make_sounds(folder);
  make_pack(encoded(folder));
  for (const storage::Storage storage :
       {storage::Storage::buffered, storage::Storage::direct, storage::Storage::mmap}) {
    loader::LoaderOptions options;
    options.storage = storage;
    options.shuffle = true;
    options.seed = 7;
    const Seen from_pack = drain(folder.path("x.pack"), options), from_folder = drain(folder.path("data"), options);
    EXPECT_EQ(from_pack.ids, from_folder.ids);
    EXPECT_EQ(from_pack.first, from_folder.first);
    EXPECT_EQ(from_pack.labels, from_folder.labels);
    EXPECT_EQ(from_pack.names, from_folder.names);
  }
  dataset::OpenOptions fresh;
  fresh.use_cache = false;
  EXPECT_EQ(dataset::open(folder.path("x.pack"))->facts().fingerprint,
            dataset::open(folder.path("data"), fresh)->facts().fingerprint)
      << "a run may go on with the pack of its data";
}

TEST(PackEncoded, ShardsArePlainTarsWithTheSameSamples) {
  const Folder folder;
  make_sounds(folder);
  make_pack(encoded(folder));
  const Seen seen = drain(folder.path("x.pack/data-{00000..00000}.tar"));
  EXPECT_EQ(seen.names.front(), "cat/00.wav");
  EXPECT_EQ(seen.labels, (std::vector<std::int64_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(seen.first, (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(PackEncoded, NoTwoSamplesShareAKey) {
  const Folder folder;
  for (const char* name : {"a/x.wav", "a/x.1.wav", "a/x_1.wav", "a/y.WAV", "a/x.jpg"}) add_sound(folder, name, 1);
  make_pack(encoded(folder));

  const auto tar = dataset::open(folder.path("x.pack/data-00000.tar"));
  EXPECT_EQ(tar->size(), 5u);
  EXPECT_EQ(tar->name(4), "a/y.wav");
}

TEST(MemberName, IsWhatWebDatasetGroupsBy) {
  EXPECT_EQ(member_name("n01/a.JPEG", 0, false), "n01/a.jpeg");
  EXPECT_EQ(member_name("n.01/a.b.jpg", 0, false), "n.01/a_b.jpg");
  EXPECT_EQ(member_name("/abs//x.png", 0, false), "abs/x.png");
  EXPECT_EQ(member_name("../x.png", 0, false), "__/x.png");
  EXPECT_EQ(member_name("__x.png", 0, false), "sample__x.png");
  EXPECT_EQ(member_name("a.jpg", 255, true), "a-00000000000000ff.jpg");
}

TEST(PackEncoded, CutsShardsAtTheSizeAsked) {
  const Folder folder;
  for (std::int16_t i = 0; i < 40; ++i) add_sound(folder, fmt::format("a/{:02}.wav", i), i, 50'000);
  const PackReport report = make_pack(encoded(folder));
  EXPECT_EQ(report.shards, 4u);  // 100 KB each, 10 in a MiB
  for (const auto& [name, bytes] : contents_of(folder.path("x.pack"))) EXPECT_LE(bytes.size(), kMiB) << name;
  EXPECT_EQ(drain(folder.path("x.pack")).first.size(), 40u);
}

TEST(PackColumns, OfAnIndexTravelAlong) {
  const Folder folder;
  make_sounds(folder);
  folder.write("index.csv", "path,label,hu_offset,who\ndata/dog/07.wav,0.5,12,\"a, b\"\ndata/cat/01.wav,1.5,,c\n");
  PackOptions options = encoded(folder);
  options.source = folder.path("index.csv");
  make_pack(options);

  const auto pack = dataset::open_packed(folder.path("x.pack"));

  EXPECT_EQ(pack->name(0), "data/dog/07.wav");
  EXPECT_EQ(pack->label(0).real, 0.5F);
  EXPECT_EQ(pack->facts().columns, (std::vector<std::string>{"hu_offset", "who"}));
  EXPECT_EQ(pack->column(0, 0), 12);
  EXPECT_EQ(pack->column_text(1, 0), "a, b");
  EXPECT_EQ(dataset::open(folder.path("x.pack/data-00000.tar"))->label(1).real, 1.5F) << "in the tar too";
}

TEST(Repack, WithNothingNewWritesNothing) {
  const Folder folder;
  make_sounds(folder);
  for (const PackOptions& options : {raw(folder), encoded(folder)}) {
    fs::remove_all(options.destination);
    make_pack(options);
    const auto before = fs::last_write_time(folder.path("x.pack/pack.json"));
    const PackReport report = make_pack(options);
    EXPECT_TRUE(report.idle);
    EXPECT_EQ(report.kept, 10u);
    EXPECT_EQ(report.count, 10u);
    EXPECT_EQ(fs::last_write_time(folder.path("x.pack/pack.json")), before);
  }
}

// Whatever was done before, the samples are those of the source, in its order.
void expect_equal_to_source(const Folder& folder, const PackOptions& options) {
  loader::LoaderOptions loading;
  if (options.samples != 0) loading.transform = transform::parse_ops("pad:100");
  const Seen source = drain(folder.path("data"), loading), pack = drain(options.destination);
  EXPECT_EQ(pack.names, source.names);
  EXPECT_EQ(pack.ids, source.ids);
  EXPECT_EQ(pack.labels, source.labels);
  EXPECT_EQ(pack.first, source.first);
  const auto packed = dataset::open_packed(options.destination);
  std::uint64_t in_shards = 0;
  for (const dataset::PackShard& shard : packed->manifest().shards) in_shards += shard.count;
  EXPECT_EQ(in_shards, packed->size()) << "shards hold what the index names, and nothing else";
}

TEST(Repack, AddsChangesAndRemovesOnlyWhatIsNewChangedOrGone) {
  for (const bool is_raw : {true, false}) {
    const Folder folder;
    make_sounds(folder);
    const PackOptions options = is_raw ? raw(folder) : encoded(folder);
    make_pack(options);
    add_sound(folder, "ant/50.wav", 50);   // a new class before the others: every label moves
    add_sound(folder, "cat/02.wav", 200);  // changed
    fs::remove(folder.path("data/dog/09.wav"));

    const PackReport report = make_pack(options);

    EXPECT_EQ(report.added, 1u);
    EXPECT_EQ(report.changed, 1u);
    EXPECT_EQ(report.removed, 1u);
    EXPECT_EQ(report.kept, 8u);
    EXPECT_EQ(report.relabelled, 8u);
    expect_equal_to_source(folder, options);
    EXPECT_TRUE(make_pack(options).idle);
  }
}

TEST(Repack, ShardsInWhichNothingChangedAreTheSameFiles) {
  const Folder folder;
  for (std::int16_t i = 0; i < 40; ++i) add_sound(folder, fmt::format("a/{:02}.wav", i), i, 50'000);
  const PackOptions options = encoded(folder);
  make_pack(options);
  const auto inode = [&](const std::string& name) {
    struct stat facts {};
    return ::stat(folder.path("x.pack/" + name).c_str(), &facts) == 0 ? facts.st_ino : 0;
  };
  const auto first = inode("data-00001.tar");
  add_sound(folder, "a/00.wav", 99, 50'000);

  make_pack(options);

  EXPECT_EQ(inode("data-00001.tar"), first);
  EXPECT_EQ(inode("data-00000.tar"), 0u) << "its shard was written anew, under a new name";
  expect_equal_to_source(folder, options);
}

TEST(Repack, ManySmallAdditionsDoNotLeaveManyShards) {
  const Folder folder;
  add_sound(folder, "a/0000.wav", 0, 5'000);
  const PackOptions options = encoded(folder);
  make_pack(options);
  for (std::int16_t i = 1; i < 40; ++i) {
    add_sound(folder, fmt::format("a/{:04}.wav", i), i, 5'000);
    make_pack(options);
  }
  EXPECT_LE(dataset::open_packed(options.destination)->manifest().shards.size(), 7u);
  expect_equal_to_source(folder, options);
}

TEST(Repack, OfAnotherSourceOrWithOtherSettingsNeedsForce) {
  const Folder folder;
  make_sounds(folder);
  make_pack(raw(folder));
  PackOptions other = encoded(folder);
  EXPECT_NE(refusal([&] { make_pack(other); }).message().find("it was made with other settings"), std::string::npos);
  other.force = true;
  EXPECT_EQ(make_pack(other).added, 10u);
  expect_equal_to_source(folder, encoded(folder));

  fs::create_directories(folder.path("other"));
  fs::copy(folder.path("data"), folder.path("other/data"), fs::copy_options::recursive);
  PackOptions moved = encoded(folder);
  moved.source = folder.path("other/data");
  EXPECT_NE(refusal([&] { make_pack(moved); }).message().find("it was made from another source"), std::string::npos);
}

TEST(Repack, TakesEverySpellingOfItsSource) {
  const Folder folder;
  make_sounds(folder);
  make_pack(raw(folder));
  PackOptions again = raw(folder);
  again.source = "file://" + again.source;
  EXPECT_TRUE(make_pack(again).idle);
}

TEST(Pack, NeverReplacesWhatIsNotAPack) {
  const Folder folder;
  make_sounds(folder);
  folder.write("x.pack/precious.txt", "mine");
  PackOptions options = raw(folder);
  options.force = true;
  EXPECT_NE(refusal([&] { make_pack(options); }).message().find("a folder that is not a pack"), std::string::npos);
  EXPECT_EQ(contents_of(folder.path("x.pack")).at("precious.txt"), "mine");
}

TEST(PackRaw, BadSamplesAreAnErrorOrLeftOutByName) {
  const Folder folder;
  make_sounds(folder);
  folder.write("data/cat/03.wav", "RIFF....WAVE broken");
  PackOptions options = raw(folder);
  EXPECT_NE(refusal([&] { make_pack(options); }).message().find("cat/03.wav"), std::string::npos);
  EXPECT_FALSE(fs::exists(options.destination));
  options.on_error = loader::OnError::skip;

  const PackReport report = make_pack(options);

  EXPECT_EQ(report.count, 9u);
  ASSERT_EQ(report.skipped.size(), 1u);
  EXPECT_EQ(report.skipped[0].name, "cat/03.wav");
  EXPECT_EQ(drain(options.destination).first, (std::vector<double>{0, 1, 2, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(make_pack(options).added, 1u) << "it is tried again";
  add_sound(folder, "cat/03.wav", 3);
  EXPECT_EQ(make_pack(options).count, 10u);
  EXPECT_EQ(drain(options.destination).first, (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(PackRaw, TheHintOfABadSampleNamesOnlyWhatAPackCanDo) {
  const Folder folder;
  make_sounds(folder);
  folder.write("data/cat/03.wav", "RIFF....WAVE broken");
  EXPECT_EQ(refusal([&] { make_pack(raw(folder)); }).hint().find(skip_hint().in_python()), 0u);
}

TEST(PackEncoded, FilesThatNobodyCanDecodeAreBadSamplesToo) {
  const Folder folder;
  make_sounds(folder);
  folder.write("data/cat/02.wav", "");
  folder.write("data/cat/03.wav", "a text that somebody gave the wrong name");
  PackOptions options = encoded(folder);
  const Error error = refusal([&] { make_pack(options); });
  EXPECT_NE(error.message().find("cat/02.wav"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("the file is empty"), std::string::npos) << error.message();
  EXPECT_EQ(error.hint().find(skip_hint().in_python()), 0u) << error.hint();
  options.on_error = loader::OnError::skip;

  const PackReport report = make_pack(options);

  EXPECT_EQ(report.count, 8u);
  ASSERT_EQ(report.skipped.size(), 2u);
  EXPECT_EQ(report.skipped[1].name, "cat/03.wav");
  EXPECT_EQ(drain(options.destination).first, (std::vector<double>{0, 1, 4, 5, 6, 7, 8, 9}));
}

TEST(Pack, ASecondPackerIsRefusedWhileTheFirstWorks) {
  const Folder folder;
  make_sounds(folder);
  const PackFolder first(folder.path("x.pack"));
  const Error error = refusal([&] { make_pack(raw(folder)); });
  EXPECT_EQ(error.kind(), ErrorKind::unavailable);
  EXPECT_NE(error.message().find("another program is making this pack"), std::string::npos);
}

TEST(Pack, ADryRunWritesNothing) {
  const Folder folder;
  make_sounds(folder);
  PackOptions options = raw(folder);
  options.dry_run = true;
  const PackReport report = make_pack(options);
  EXPECT_EQ(report.added, 10u);
  EXPECT_EQ(report.measured_samples, 10u);
  EXPECT_GT(report.seconds, 0);
  EXPECT_GT(report.bytes, 2000u);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"data"});
}

// A disk that is full at the n-th write: one sentence, nothing under the name, and a later run makes the same pack.
TEST(PackInterrupted, AFullDiskLeavesNothingHalfMadeAndALaterRunGoesOn) {
  for (const bool is_raw : {true, false}) {
    const Folder folder;
    for (std::int16_t i = 0; i < 60; ++i) add_sound(folder, fmt::format("a/{:02}.wav", i), i, 50'000);
    PackOptions options = is_raw ? raw(folder) : encoded(folder);
    if (is_raw) options.samples = 50'000;
    options.sync_bytes = 300'000;
    make_pack(options);
    const auto whole = contents_of(options.destination);
    for (const std::uint32_t skip : {0, 1, 3, 4, 7, 12}) {
      fs::remove_all(options.destination);
      {
        const os::InjectFault full(os::Call::write, {.error_number = ENOSPC, .skip = skip, .times = 1'000'000});
        const Error error = refusal([&] { make_pack(options); });
        ASSERT_GT(full.hits(), 0u);
        EXPECT_EQ(error.kind(), ErrorKind::unavailable);
        EXPECT_NE(error.message().find("No space left on device"), std::string::npos) << error.message();
        EXPECT_NE(error.hint().find("run the same command again"), std::string::npos) << error.hint();
      }
      EXPECT_FALSE(fs::exists(options.destination));

      const PackReport report = make_pack(options);

      EXPECT_TRUE(skip < 4 || report.resumed > 0);  // the journal gets its first record in the fourth write
      EXPECT_EQ(contents_of(options.destination), whole);
      EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"data", "x.pack"}));
    }
  }
}

TEST(PackInterrupted, ByTheCallerItGoesOnWhereItStopped) {
  const Folder folder;
  for (std::int16_t i = 0; i < 200; ++i) add_sound(folder, fmt::format("a/{:03}.wav", i), i, 100);
  PackOptions options = encoded(folder);
  make_pack(options);
  const auto whole = contents_of(options.destination);
  fs::remove_all(options.destination);
  int asked = 0;
  options.progress = [&](const PackProgress& progress) { return progress.phase != "packing" || ++asked < 1; };

  EXPECT_EQ(refusal([&] { make_pack(options); }).message(), "interrupted");

  EXPECT_FALSE(fs::exists(options.destination));
  options.progress = {};
  EXPECT_GT(make_pack(options).resumed, 0u);
  EXPECT_EQ(contents_of(options.destination), whole);
}

TEST(PackInterrupted, AJournalThatEndsInTheMiddleOfARecordIsUsedUpToThere) {
  const Folder folder;
  fs::create_directories(folder.path("j"));
  {
    Journal journal(folder.path("j"), 42, false);
    for (std::uint64_t i = 1; i <= 3; ++i)
      journal.add({.cursor = i, .shard = 0, .shard_bytes = 10 * i, .rows = {JournalRow{i, {}}}, .text = "[]"});
  }
  const std::string path = folder.path("j/.journal");
  const auto size = fs::file_size(path);
  EXPECT_EQ(read_journal(folder.path("j"), 42).size(), 3u);
  EXPECT_EQ(read_journal(folder.path("j"), 43).size(), 0u) << "of another plan";
  for (std::uintmax_t cut = size - 1; cut > size - 20; --cut) {
    fs::resize_file(path, cut);
    EXPECT_EQ(read_journal(folder.path("j"), 42).size(), 2u);
  }
  Journal(folder.path("j"), 42, true).add({.cursor = 9, .rows = {}, .text = {}});
  const auto records = read_journal(folder.path("j"), 42);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[2].cursor, 9u);
}

}  // namespace
}  // namespace stoker::prepare
