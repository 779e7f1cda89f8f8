// A pack whose pack.json is damaged or gone: `check` with repair makes it again from the rest, and says what is lost.
// A pack whose index or names are damaged or gone: `check` with repair makes it again from its source.
#include "stoker/prepare/manifest_repair.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/spell_text.h"
#include "stoker/base/units.h"
#include "stoker/dataset/packed.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/os/read_file.h"
#include "stoker/prepare/check.h"

namespace stoker::prepare {
namespace {

using dataset::PackManifest;
using loader::Folder;
namespace fs = std::filesystem;

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Twenty sounds in two classes; raw packs take 100,000 frames of each; both kinds have several shards.
PackOptions sounds(const Folder& folder, dataset::PackKind kind) {
  for (std::int16_t i = 0; i < 20; ++i) {
    folder.write(fmt::format("data/{}/{:02}.wav", i < 12 ? "cat" : "dog", i), loader::wav(90'000, i));
  }
  PackOptions options;
  options.source = folder.path("data");
  options.destination = folder.path("x.pack");
  options.kind = kind;
  if (kind == dataset::PackKind::raw) options.samples = 100'000;
  options.shard_size = kMiB;
  return options;
}

CheckReport repair(const Folder& folder) {
  CheckOptions options;
  options.address = folder.path("x.pack");
  options.repair = true;
  return check(options);
}

bool mentions(const std::vector<std::string>& texts, std::string_view part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

bool mentions(const std::vector<Text>& texts, std::string_view part) {
  return mentions(spell_all(texts, &Text::in_python), part);
}

void expect_same(const PackManifest& a, const PackManifest& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.fingerprint, b.fingerprint);
  EXPECT_EQ(a.content, b.content);
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.label_kind, b.label_kind);
  EXPECT_EQ(a.classes, b.classes);
  EXPECT_EQ(a.columns, b.columns);
  ASSERT_EQ(a.shards.size(), b.shards.size());
  for (std::size_t i = 0; i < a.shards.size(); ++i) {
    EXPECT_EQ(a.shards[i].name, b.shards[i].name);
    EXPECT_EQ(a.shards[i].bytes, b.shards[i].bytes);
    EXPECT_EQ(a.shards[i].count, b.shards[i].count);
  }
  ASSERT_EQ(a.files.size(), b.files.size());
  for (const dataset::PackFile& file : a.files) {
    ASSERT_NE(b.file(file.name), nullptr);
    EXPECT_EQ(b.file(file.name)->xxh3, file.xxh3);
  }
}

class ManifestRepair : public testing::TestWithParam<dataset::PackKind> {};

TEST_P(ManifestRepair, MakesTheSameAgainFromTheRest) {
  const Folder folder;
  make_pack(sounds(folder, GetParam()));
  const PackManifest before = dataset::open_packed(folder.path("x.pack"))->manifest();
  ASSERT_GT(before.shards.size(), 1u);
  const std::string path = folder.path("x.pack/pack.json"), sound = os::read_text(path);
  for (const std::string& damaged : {std::string(), std::string("{"), std::string(5000, '\0'), sound.substr(0, 200)}) {
    write(path, damaged);
    const CheckReport report = repair(folder);
    EXPECT_TRUE(report.is_sound());
    EXPECT_TRUE(report.damaged.empty());
    EXPECT_EQ(report.count, 20u);
    EXPECT_TRUE(mentions(report.notes, "pack.json was made again from the index and the shards"));
    EXPECT_TRUE(mentions(report.notes, "what the pack was made from, or how, is lost"));
    expect_same(dataset::open_packed(folder.path("x.pack"))->manifest(), before);
    if (!damaged.empty()) {
      EXPECT_EQ(os::read_text(path + ".damaged"), damaged);
    }
    fs::remove(path + ".damaged");
  }
  fs::remove(path);
  EXPECT_TRUE(repair(folder).is_sound());
  expect_same(dataset::open_packed(folder.path("x.pack"))->manifest(), before);
}

TEST_P(ManifestRepair, TakesWhatIsLeftOfTheDamagedText) {
  const Folder folder;
  const PackOptions options = sounds(folder, GetParam());
  make_pack(options);
  const PackManifest before = dataset::open_packed(folder.path("x.pack"))->manifest();
  const std::string path = folder.path("x.pack/pack.json");
  std::string text = os::read_text(path);
  text[text.find("\"shards\"") + 3] = '"';
  write(path, text);
  const CheckReport report = repair(folder);
  EXPECT_TRUE(report.is_sound());
  EXPECT_FALSE(mentions(report.notes, "is lost"));
  const PackManifest after = dataset::open_packed(folder.path("x.pack"))->manifest();
  expect_same(after, before);
  EXPECT_EQ(after.source, before.source);
  EXPECT_EQ(after.settings, before.settings);
  EXPECT_EQ(after.rate_hz, before.rate_hz);
  EXPECT_TRUE(make_pack(options).idle) << "the next run knows it again";
}

TEST_P(ManifestRepair, APackJsonThatContradictsTheRestIsMadeAgain) {
  const Folder folder;
  make_pack(sounds(folder, GetParam()));
  const std::string path = folder.path("x.pack/pack.json"), sound = os::read_text(path);
  std::string text = sound;
  text.replace(text.find("\"count\": 20"), 11, "\"count\": 21");
  write(path, text);
  EXPECT_TRUE(repair(folder).is_sound());
  EXPECT_EQ(dataset::open_packed(folder.path("x.pack"))->size(), 20u);
}

TEST_P(ManifestRepair, WithoutRepairItOnlySaysSo) {
  const Folder folder;
  make_pack(sounds(folder, GetParam()));
  write(folder.path("x.pack/pack.json"), "{");
  CheckOptions options;
  options.address = folder.path("x.pack");
  const CheckReport report = check(options);
  EXPECT_FALSE(report.is_sound());
  EXPECT_TRUE(mentions(report.broken, "pack.json"));
  EXPECT_EQ(os::read_text(folder.path("x.pack/pack.json")), "{");
}

TEST_P(ManifestRepair, NothingIsMadeFromAnIndexNamesOrShardsThatAreNotWhole) {
  const Folder folder;
  make_pack(sounds(folder, GetParam()));
  const bool raw = GetParam() == dataset::PackKind::raw;
  const std::string shard = raw ? "data-00000.npy" : "data-00000.tar";
  const auto refusal = [&] {
    try {
      (void)remake_manifest(folder.path("x.pack"), "");
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_EQ(refusal(), "");
  for (const std::string& name : {std::string("index.npy"), std::string("names.txt"), shard}) {
    const std::string path = folder.path("x.pack/" + name), sound = os::read_text(path);
    write(path, sound.substr(0, sound.size() / 3));
    EXPECT_NE(refusal(), "") << name << " cut short";
    write(path, std::string(sound.size(), '\0'));
    EXPECT_NE(refusal(), "") << name << " of zeros";
    fs::remove(path);
    EXPECT_NE(refusal(), "") << name << " gone";
    write(path, sound);
  }
  EXPECT_EQ(refusal(), "");
}

TEST_P(ManifestRepair, AnIndexOrNamesThatAreGoneOrEmptyAreMadeAgainFromTheSource) {
  const Folder folder;
  make_pack(sounds(folder, GetParam()));
  const std::uint64_t before = dataset::open_packed(folder.path("x.pack"))->manifest().fingerprint;
  for (const std::string name : {"index.npy", "names.txt"}) {
    for (const bool is_gone : {true, false}) {
      const std::string path = folder.path("x.pack/" + name);
      is_gone ? static_cast<void>(fs::remove(path)) : write(path, "");
      const CheckReport report = repair(folder);
      EXPECT_TRUE(report.is_sound()) << name;
      EXPECT_EQ(report.count, 20u);
      EXPECT_TRUE(mentions(report.notes, "the whole pack was rebuilt from its source")) << name;
      const auto pack = dataset::open_packed(folder.path("x.pack"));
      EXPECT_EQ(pack->manifest().fingerprint, before);
      EXPECT_EQ(pack->facts().classes, (std::vector<std::string>{"cat", "dog"}));
    }
  }
}

TEST_P(ManifestRepair, APackThatLeftABadSampleOutIsMadeAgainWithoutIt) {
  const Folder folder;
  PackOptions options = sounds(folder, GetParam());
  folder.write("data/cat/05.wav", "bad");
  options.on_error = loader::OnError::skip;
  make_pack(options);
  fs::remove(folder.path("x.pack/index.npy"));
  EXPECT_TRUE(repair(folder).is_sound());
  const auto pack = dataset::open_packed(folder.path("x.pack"));
  EXPECT_EQ(pack->size(), 19u);
  ASSERT_EQ(pack->manifest().skipped.size(), 1u);
  EXPECT_EQ(pack->manifest().skipped[0].name, "cat/05.wav");
}

TEST_P(ManifestRepair, WithoutPackJsonAMissingIndexIsNamedAsWhatCannotBeMadeAgain) {
  const Folder folder;
  make_pack(sounds(folder, GetParam()));
  write(folder.path("x.pack/pack.json"), "{");
  fs::remove(folder.path("x.pack/index.npy"));
  try {
    (void)repair(folder);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("index.npy is missing"), std::string::npos) << error.message();
    EXPECT_EQ(error.hint(), "make the pack again from its source");
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ManifestRepair, testing::Values(dataset::PackKind::raw, dataset::PackKind::encoded),
                         [](const auto& kind) { return std::string(dataset::name(kind.param)); });

TEST(ManifestRepairOfAnIndex, LabelsStayNumbersWhereTheirNamesAreLost) {
  const Folder folder;
  for (std::int16_t i = 0; i < 4; ++i) folder.write(fmt::format("data/{}.wav", i), loader::wav(90, i));
  const std::string rows = "path,label,more\n0.wav,dog,1\n1.wav,cat,\"2,\"\n2.wav,dog,3\n3.wav,cat,4\n";
  folder.write("data/index.csv", rows);
  PackOptions options;
  options.source = folder.path("data/index.csv");
  options.destination = folder.path("x.pack");
  make_pack(options);
  write(folder.path("x.pack/pack.json"), "");
  const CheckReport report = repair(folder);
  EXPECT_TRUE(report.is_sound());
  EXPECT_TRUE(mentions(report.notes, "the names of the classes are lost"));
  const auto pack = dataset::open_packed(folder.path("x.pack"));
  EXPECT_TRUE(pack->facts().classes.empty());
  EXPECT_EQ(pack->label(0).integer, 1);
  EXPECT_EQ(pack->facts().columns, std::vector<std::string>{"more"});
  EXPECT_EQ(pack->column_text(0, 1), "2,");
}

// A pack.json made from the rest would describe a pack without columns.
TEST(ManifestRepairOfAnIndex, ColumnsThatAreGoneOrChangedAreMadeAgainFromTheSource) {
  const Folder folder;
  for (std::int16_t i = 0; i < 2; ++i) folder.write(fmt::format("data/{}.wav", i), loader::wav(90, i));
  folder.write("data/index.csv", "path,label,more\n0.wav,1,7\n1.wav,2,8\n");
  PackOptions options;
  options.source = folder.path("data/index.csv");
  options.destination = folder.path("x.pack");
  make_pack(options);
  for (const bool is_gone : {true, false}) {
    const std::string path = folder.path("x.pack/columns.csv");
    is_gone ? static_cast<void>(fs::remove(path)) : write(path, "more\n7\n9\n");
    EXPECT_TRUE(repair(folder).is_sound());
    const auto pack = dataset::open_packed(folder.path("x.pack"));
    EXPECT_EQ(pack->facts().columns, std::vector<std::string>{"more"});
    EXPECT_EQ(pack->column_text(0, 1), "8");
  }
}

}  // namespace
}  // namespace stoker::prepare
