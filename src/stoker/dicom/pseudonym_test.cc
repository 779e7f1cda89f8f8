#include "stoker/dicom/pseudonym.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/file.h"
#include "stoker/os/temp_folder_test.h"

namespace stoker::dicom {
namespace {

TEST(Pseudonyms, DifferByKeyKindAndValue) {
  const Pseudonyms one("a key of some length"), other("another key of length");
  EXPECT_EQ(one.of("patient", "17"), one.of("patient", "17"));
  EXPECT_EQ(one.of("patient", "17").size(), 16u);
  EXPECT_NE(one.of("patient", "17"), other.of("patient", "17"));
  EXPECT_NE(one.of("patient", "17"), one.of("study", "17"));
  EXPECT_NE(one.of("patient", "17"), one.of("patient", "18"));
}

TEST(Pseudonyms, AKeyIsMadeOnceAndClosedToOthers) {
  const os::TempFolder folder;
  const std::string path = folder.path() + "/a/b/key";
  const std::string key = read_or_make_key(path);
  EXPECT_EQ(key.size(), 64u);
  EXPECT_EQ(read_or_make_key(path), key);
  EXPECT_FALSE(os::others_may_read(path));
  EXPECT_NE(read_or_make_key(folder.path() + "/other"), key);
}

TEST(Pseudonyms, AShortKeyIsRefused) {
  const os::TempFolder folder;
  os::write_file(folder.path() + "/key", "abc\n");
  EXPECT_THROW(read_or_make_key(folder.path() + "/key"), Error);
}

}  // namespace
}  // namespace stoker::dicom
