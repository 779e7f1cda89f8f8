#include "stoker/prepare/stage_manifest.h"

#include <fstream>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/read_file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::prepare {
namespace {

constexpr const char* kManifestName = ".stage.jsonl";

os::Entry file_of(std::uint64_t bytes, std::int64_t modified_ns) {
  return {.kind = os::Entry::Kind::file, .bytes = bytes, .modified_ns = modified_ns};
}

TEST(StageManifest, KnowsEveryFileAfterAKill) {
  const os::TempFolder folder;
  {
    StageManifest manifest(folder.path());
    EXPECT_FALSE(manifest.was_there());
    manifest.begin("s3://bucket/x", {{"class_subset", 3}});
    manifest.add("cat/1.jpg", {10, "v1", 111});
    manifest.add("odd \"name\"\n\xff.jpg", {0, "", 222});
    manifest.flush();
    manifest.add("never flushed", {1, "", 1});
  }
  std::ofstream(folder.path() + "/" + kManifestName, std::ios::app) << "[\"cut off by a ki";
  StageManifest manifest(folder.path());
  EXPECT_TRUE(manifest.was_there());
  EXPECT_EQ(manifest.source(), "s3://bucket/x");
  EXPECT_EQ(manifest.settings(), (Json{{"class_subset", 3}}));
  ASSERT_EQ(manifest.files().size(), 2u);
  EXPECT_TRUE(manifest.find("cat/1.jpg")->wrote(file_of(10, 111)));
  EXPECT_FALSE(manifest.find("cat/1.jpg")->wrote(file_of(10, 112)));
  EXPECT_FALSE(manifest.find("cat/1.jpg")->wrote(file_of(11, 111)));
  EXPECT_TRUE(manifest.find("odd \"name\"\n\xff.jpg")->wrote(file_of(0, 222)));
  EXPECT_EQ(manifest.find("dog/1.jpg"), nullptr);
}

TEST(StageManifest, KnowsTheOldFileUntilTheNewOneHasItsName) {
  const os::TempFolder folder;
  StageManifest manifest(folder.path());
  manifest.begin("x", {});
  manifest.add("a", {1, "v1", 100});
  manifest.add("a", {2, "v2", 200});
  manifest.flush();
  StageManifest again(folder.path());
  EXPECT_TRUE(again.find("a")->wrote(file_of(1, 100)));
  EXPECT_FALSE(again.find("a")->now.is(file_of(1, 100)));
  EXPECT_TRUE(again.find("a")->now.is(file_of(2, 200)));
  again.begin("x", {});
  EXPECT_TRUE(StageManifest(folder.path()).find("a")->wrote(file_of(1, 100)));
  again.finish();
  EXPECT_FALSE(StageManifest(folder.path()).find("a")->wrote(file_of(1, 100)));
}

TEST(StageManifest, RefusesAFileThatIsNoManifest) {
  const os::TempFolder folder;
  folder.file(kManifestName, "a diary\n");
  try {
    StageManifest manifest(folder.path());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  }
}

}  // namespace
}  // namespace stoker::prepare
