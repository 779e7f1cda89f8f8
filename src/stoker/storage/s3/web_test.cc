// Files of a web server: the test server of S3, asked without signatures.
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/storage/read_whole.h"
#include "stoker/storage/s3/store_test.h"
#include "stoker/storage/s3/web_backend.h"

namespace stoker::storage {
namespace {

class OnTheWeb : public ::testing::Test {
 protected:
  // "127.0.0.1:8080/site/name"
  std::string name_of(const std::string& path) const {
    return fmt::format("{}/{}", std::string(std::getenv("AWS_ENDPOINT_URL_S3")).substr(7), path);
  }
  struct Came {
    FetchCode code = FetchCode::ok;
    Failure failure = {};
    std::string text = {};
  };
  Came fetch(const std::string& path, std::uint64_t bytes, const char* version = nullptr, std::uint64_t offset = 0) {
    const std::string name = name_of(path);
    Came came;
    came.text.assign(bytes, '?');
    const auto fetcher = web_.make_fetcher({.depth = 4}, nullptr);
    Fetch fetch;
    fetch.where = Location::in_store(web_, name.c_str(), version, offset, bytes);
    fetch.into = std::as_writable_bytes(std::span(came.text));
    fetcher->submit({&fetch, 1});
    Fetched fetched;
    while (fetcher->wait({&fetched, 1}, std::chrono::nanoseconds::max()) == 0) {
    }
    came.code = fetched.code;
    if (fetched.code == FetchCode::failed) came.failure = fetched.why();
    return came;
  }
  Error error_when(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return Error(ErrorKind::internal, "");
  }

  S3Store server_;
  const Backend& web_ = s3::http_files();
};

TEST_F(OnTheWeb, FilesAreReadInRangesWithoutASignature) {
  server_.put("site/a b.bin", "0123456789");
  const auto source = web_.open(name_of("site/a b.bin"), Storage::automatic);
  EXPECT_EQ(source->size_bytes(), 10u);
  EXPECT_EQ(source->version(), "v1");
  EXPECT_EQ(source->name(), "http://" + name_of("site/a b.bin"));
  EXPECT_EQ(fetch("site/a b.bin", 4, "v1", 3).text, "3456");
  EXPECT_EQ(fetch("site/a%20b.bin", 4, nullptr, 3).text, "3456");  // encoded already
  for (const S3Store::Seen& seen : server_.seen()) EXPECT_EQ(seen.authorization, "");
}

TEST_F(OnTheWeb, ABrokenBodyIsContinuedAndABusyServerIsAskedAgain) {
  const std::string text(200'000, 'x');
  server_.put("site/f", text);
  server_.fail("site/f", {.cut = 100'000});
  server_.fail("site/f", {.status = 503, .code = "SlowDown"});
  EXPECT_EQ(fetch("site/f", text.size()).text, text);
  EXPECT_EQ(server_.requests(), 3u);
}

TEST_F(OnTheWeb, AFileThatChangedIsAFailureAndNotOtherBytes) {
  server_.put("site/f", "first");
  server_.put("site/f", "other");
  const Came came = fetch("site/f", 5, "v1");
  EXPECT_EQ(came.code, FetchCode::failed);
  EXPECT_NE(came.failure.text.find("it changed since"), std::string::npos) << came.failure.text;
}

TEST_F(OnTheWeb, AServerWithoutRangesGivesWholeFiles) {
  server_.put("site/f", "whole file");
  server_.fail("site/f", {.ignores_range = true});
  EXPECT_EQ(fetch("site/f", 10).text, "whole file");
  server_.fail("site/f", {.ignores_range = true});
  EXPECT_NE(fetch("site/f", 4, nullptr, 3).failure.text.find("does not answer requests for a range"),
            std::string::npos);
}

TEST_F(OnTheWeb, AServerThatRefusesHeadIsAskedForTheFirstByte) {
  server_.put("site/f", "whole file");
  server_.fail("site/f", {.status = 405, .code = "MethodNotAllowed"});
  EXPECT_EQ(web_.open(name_of("site/f"), Storage::automatic)->size_bytes(), 10u);
  EXPECT_EQ(server_.seen().back().range, "bytes=0-0");
}

TEST_F(OnTheWeb, ARedirectIsFollowed) {
  server_.put("site/there", "moved");
  server_.fail("site/here", {.status = 302, .code = "Found", .headers = "Location: /site/there\r\n"});
  EXPECT_EQ(fetch("site/here", 5).text, "moved");
}

TEST_F(OnTheWeb, WhatFailsSaysWhyWithoutWordsOfS3) {
  server_.put("site/f", "x");
  server_.fail("site/f", {.status = 403, .code = "AccessDenied"});
  const Failure refused = fetch("site/f", 1).failure;
  EXPECT_EQ(refused.kind, ErrorKind::permission);
  EXPECT_EQ(refused.hint, "the server wants credentials, and Stoker sends none over http");
  EXPECT_EQ(fetch("site/none", 1).failure.text, "there is no such object");
  const Error missing = error_when([&] { (void)web_.open(name_of("site/none"), Storage::automatic); });
  EXPECT_EQ(missing.kind(), ErrorKind::not_found);
  EXPECT_NE(missing.message().find("cannot open `http://127.0.0.1:"), std::string::npos) << missing.message();
}

TEST_F(OnTheWeb, AListingIsRefusedWithTheRemedy) {
  EXPECT_FALSE(web_.can_list());
  const Error error = error_when([&] { web_.list("host/train", [](const Backend::Object&) { return true; }); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_NE(error.message().find("cannot list `http://host/train`"), std::string::npos);
  EXPECT_NE(error.hint().find(".csv with a column `path`"), std::string::npos);
}

TEST_F(OnTheWeb, APasswordInAnAddressIsRefusedAndNotRepeated) {
  for (const char* const name : {"user:secret@host/a.jpg", "/a.jpg", ""}) {
    const Error error = error_when([&] { (void)web_.open(name, Storage::automatic); });
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.message().find("secret"), std::string::npos);
  }
}

TEST_F(OnTheWeb, ADirectoryIsNotAFile) {
  EXPECT_NE(error_when([&] { (void)web_.open("host", Storage::automatic); }).message().find("names a server"),
            std::string::npos);
}

TEST(WebPath, KeepsWhatIsEncodedAndEncodesTheRest) {
  EXPECT_EQ(s3::encode_web_path("a b/c%20d.jpg"), "a%20b/c%20d.jpg");
  EXPECT_EQ(s3::encode_web_path("100%.jpg"), "100%25.jpg");
  EXPECT_EQ(s3::encode_web_path("x.jpg?sig=a%2Fb&t=1"), "x.jpg?sig=a%2Fb&t=1");
  EXPECT_EQ(s3::encode_web_path("\xC3\xA9#1.jpg"), "%C3%A9%231.jpg");
}

}  // namespace
}  // namespace stoker::storage
