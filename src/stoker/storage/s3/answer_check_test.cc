#include "stoker/storage/s3/answer_check.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace stoker::storage::s3 {
namespace {

using Promise = AnswerCheck::Promise;

HttpReply reply_of(std::initializer_list<std::string_view> lines) {
  HttpReply reply;
  for (const std::string_view line : lines) reply.take_header(line);
  return reply;
}

// Bytes 100 to 149 of an object of 1,000.
AnswerCheck check(std::initializer_list<std::string_view> lines, std::uint64_t received = 0,
                  bool must_tell_version = false, const std::string& version = "v1") {
  return check_answer(reply_of(lines), {.version = version,
                                        .must_tell_version = must_tell_version,
                                        .offset = 100,
                                        .received = received,
                                        .bytes = 50,
                                        .object_bytes = 1000});
}

// The whole of an object of 50 bytes.
AnswerCheck check_whole(std::initializer_list<std::string_view> lines, std::uint64_t received = 0) {
  const std::string version;
  return check_answer(reply_of(lines), {.version = version, .received = received, .bytes = 50, .object_bytes = 50});
}

TEST(AnswerCheck, ARangeMustBeTheOneThatWasAskedFor) {
  EXPECT_EQ(check({"HTTP/1.1 206", "ETag: \"v1\"", "Content-Range: bytes 100-149/1000"}).promise, Promise::as_asked);
  EXPECT_EQ(check({"HTTP/1.1 200", "Content-Range: bytes 100-149/1000"}).promise, Promise::as_asked) << "rclone";
  EXPECT_EQ(check({"HTTP/1.1 206", "Content-Range: bytes 120-149/1000"}, 20).promise, Promise::as_asked);
  EXPECT_EQ(check({"HTTP/1.1 206", "Content-Range: bytes 100-149/1000"}, 20).promise, Promise::unusable);
  EXPECT_EQ(check({"HTTP/1.1 206", "Content-Range: bytes 100-150/1000"}).promise, Promise::unusable);
  EXPECT_EQ(check({"HTTP/1.1 206", "Content-Range: bytes 100-120/1000"}).promise, Promise::unusable);
  EXPECT_EQ(check({"HTTP/1.1 206", "Content-Length: 50"}).promise, Promise::unusable) << "it does not say which";
}

TEST(AnswerCheck, AnObjectOfAnotherSizeHasChanged) {
  const AnswerCheck longer = check({"HTTP/1.1 206", "Content-Range: bytes 100-149/1001"});
  EXPECT_EQ(longer.promise, Promise::other_size);
  EXPECT_EQ(longer.actual_bytes, 1001u);
  EXPECT_EQ(check({"HTTP/1.1 206", "Content-Range: bytes 100-119/120"}).actual_bytes, 120u);
  EXPECT_EQ(check_whole({"HTTP/1.1 200", "Content-Length: 49"}).promise, Promise::other_size);
}

TEST(AnswerCheck, AWholeObjectServesOnlyWhoWantsAllOfIt) {
  EXPECT_EQ(check_whole({"HTTP/1.1 200", "Content-Length: 50"}, 20).promise, Promise::from_the_start);
  EXPECT_EQ(check({"HTTP/1.1 200", "Content-Length: 1000"}).promise, Promise::unusable);
}

TEST(AnswerCheck, AnotherVersionIsNoAnswer) {
  const AnswerCheck other = check({"HTTP/1.1 206", "ETag: \"v2\"", "Content-Range: bytes 100-149/1000"});
  EXPECT_EQ(other.promise, Promise::other_version);
  EXPECT_NE(other.failure.text.find("it changed since"), std::string::npos) << other.failure.text;
  const auto without_tag = {std::string_view("HTTP/1.1 206"), std::string_view("Content-Range: bytes 100-149/1000")};
  EXPECT_EQ(check(without_tag).promise, Promise::as_asked);
  EXPECT_EQ(check(without_tag, 0, true).promise, Promise::other_version) << "the store would not compare it";
}

TEST(AnswerCheck, OfAnEmptyObjectNothingMayCome) {
  const std::string any;
  const WantedBytes nothing{.version = any};
  EXPECT_EQ(check_answer(reply_of({"HTTP/1.1 200", "Content-Length: 0"}), nothing).promise, Promise::as_asked);
  EXPECT_EQ(check_answer(reply_of({"HTTP/1.1 200", "Content-Length: 7"}), nothing).actual_bytes, 7u);
}

}  // namespace
}  // namespace stoker::storage::s3
