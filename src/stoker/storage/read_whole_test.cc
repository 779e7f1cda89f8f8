#include "stoker/storage/read_whole.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "stoker/os/fault.h"
#include "stoker/os/temp_folder_test.h"
#include "stoker/storage/source.h"

namespace stoker::storage {
namespace {

using ReadState = WholeRead::State;

std::string text_of(const WholeRead& read) {
  return {reinterpret_cast<const char*>(read.bytes.data()), read.bytes.size()};
}

TEST(ReadWhole, GivesAFileAsItIsNowAndARangeAsItIsAsked) {
  const os::TempFolder folder;
  const std::string path = folder.file("f", "0123456789");
  const auto source = open_source(path);
  Scratch scratch;
  std::vector<std::byte> bytes;
  const Location file = Location::in_folder(kWorkingFolder, path.c_str(), 3);  // it has grown since it was listed
  const Location range = Location::in_source(source.get(), 2, 5);
  EXPECT_EQ(text_of(read_whole(file, scratch)), "0123456789");
  EXPECT_EQ(text_of(read_whole(file, bytes)), "0123456789");
  EXPECT_EQ(text_of(read_whole(range, scratch)), "23456");
  EXPECT_EQ(text_of(read_whole(range, bytes)), "23456");
}

TEST(ReadWhole, LeavesWhatLiesInMemoryWhereItIs) {
  const std::string text = "in memory";
  const auto source = memory_source("memory", std::as_bytes(std::span(text)));
  Scratch scratch;
  EXPECT_EQ(read_whole(Location::in_source(source.get(), 3, 6), scratch).bytes.data(), source->view().data() + 3);
}

TEST(ReadWhole, SaysWhyThereIsNothing) {
  const os::TempFolder folder;
  const std::string path = folder.file("f", "0123456789"), pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Scratch scratch;
  const auto failure = [&](const char* name) {
    const WholeRead read = read_whole(Location::in_folder(kWorkingFolder, name, 10), scratch);
    EXPECT_EQ(read.state, ReadState::failed);
    EXPECT_TRUE(read.bytes.empty());
    return read.failure;
  };
  EXPECT_EQ(failure("/none").kind, ErrorKind::not_found);
  EXPECT_EQ(failure(nullptr).text, std::strerror(ENAMETOOLONG));
  EXPECT_EQ(failure(pipe.c_str()).text, "it is not a regular file");
  EXPECT_EQ(failure(folder.path().c_str()).text, std::strerror(EISDIR));
  {
    const os::InjectFault fault(os::Call::read, {.error_number = EIO});
    EXPECT_TRUE(failure(path.c_str()).may_retry);
  }
  const auto source = open_source(path);
  const WholeRead past = read_whole(Location::in_source(source.get(), 8, 5), scratch);
  EXPECT_EQ(past.failure.kind, ErrorKind::corrupt);
  EXPECT_NE(past.failure.text.find(path), std::string::npos) << past.failure.text;
}

TEST(ReadWhole, SaysThatThereIsNoMemory) {
  const os::TempFolder folder;
  const std::string path = folder.file("f", std::string(100'000, 'x'));
  Budget budget(1000);
  Scratch scratch(&budget);
  EXPECT_EQ(read_whole(Location::in_folder(kWorkingFolder, path.c_str(), 100'000), scratch).state, ReadState::no_room);
}

}  // namespace
}  // namespace stoker::storage
