#include "stoker/dicom/manifest.h"

#include <gtest/gtest.h>

#include "stoker/os/file.h"
#include "stoker/os/read_file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::dicom {
namespace {

// A folder with one output of three bytes.
std::string make_series(const os::TempFolder& folder) {
  const std::string path = folder.path() + "/s";
  os::make_folders(path);
  Manifest manifest;
  manifest.plan = 7;
  manifest.inputs = {{"in", 10, -5}};
  manifest.outputs = {{"0.png", 3}};
  manifest.failed = {{"bad", "it is truncated"}};
  manifest.lines = {"s/0.png,\"a,b\""};
  os::write_file(path + "/0.png", "abc");
  os::write_file(path + "/" + kManifestName, manifest.to_text());
  return path;
}

TEST(DicomManifest, ReadsWhatItWrote) {
  const os::TempFolder folder;
  const auto manifest = Manifest::read(make_series(folder));
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->plan, 7u);
  EXPECT_EQ(manifest->inputs, (std::vector<Manifest::Input>{{"in", 10, -5}}));
  EXPECT_EQ(manifest->outputs[0].name, "0.png");
  EXPECT_EQ(manifest->failed[0].cause, "it is truncated");
  EXPECT_EQ(manifest->lines[0], "s/0.png,\"a,b\"");
}

TEST(DicomManifest, TellsWhatBecameOfAFolder) {
  const os::TempFolder folder;
  const std::string path = make_series(folder);
  const auto manifest = Manifest::read(path);
  EXPECT_EQ(state_of(path, manifest), FolderState::whole);
  EXPECT_EQ(state_of(path + "-2", std::nullopt), FolderState::missing);
  EXPECT_EQ(state_of(path, std::nullopt), FolderState::foreign);
  os::write_file(path + "/0.png", "ab");
  EXPECT_EQ(state_of(path, manifest), FolderState::damaged);
  os::write_file(path + "/mine.txt", "");
  EXPECT_EQ(state_of(path, manifest), FolderState::foreign);
}

TEST(DicomManifest, RemovesOnlyWhatItNames) {
  const os::TempFolder folder;
  const std::string path = make_series(folder);
  os::write_file(path + "/mine.txt", "");
  remove_series(path, *Manifest::read(path));
  EXPECT_TRUE(os::exists(path + "/mine.txt"));
  EXPECT_FALSE(os::exists(path + "/0.png"));
}

TEST(DicomManifest, DoesNotTrustNamesThatLeadElsewhere) {
  const os::TempFolder folder;
  const std::string path = make_series(folder);
  Manifest manifest;
  manifest.outputs = {{"../x", 1}};
  os::write_file(path + "/" + kManifestName, manifest.to_text());
  EXPECT_FALSE(Manifest::read(path));
  os::write_file(path + "/" + kManifestName, "{\"schema\": \"other\"}");
  EXPECT_FALSE(Manifest::read(path));
}

}  // namespace
}  // namespace stoker::dicom
