#include "stoker/storage/s3/verdict.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stoker::storage::s3 {
namespace {

const Asked kAsked{"photos", "a/b.jpg", "https://photos.s3.us-east-1.amazonaws.com", "us-east-1", "profile `x`",
                   "v1",     false};

HttpReply answer(int status, const std::string& code = {}) {
  HttpReply reply;
  reply.status = status;
  if (!code.empty()) reply.body = fmt::format("<Error><Code>{}</Code><Message>why</Message></Error>", code);
  return reply;
}

TEST(S3Verdict, GoodAnswersAreAccepted) {
  EXPECT_EQ(judge(answer(200), kAsked).next, Next::accept);
  EXPECT_EQ(judge(answer(206), kAsked).next, Next::accept);
}

TEST(S3Verdict, WhatMayPassIsTriedAgain) {
  for (const int status : {408, 429, 500, 502, 503, 504}) {
    const Verdict verdict = judge(answer(status), kAsked);
    EXPECT_EQ(verdict.next, Next::retry) << status;
    EXPECT_TRUE(verdict.failure.may_retry);
    EXPECT_EQ(verdict.is_throttled, status == 429 || status == 503);
  }
  EXPECT_EQ(judge(answer(400, "RequestTimeout"), kAsked).next, Next::retry);
  EXPECT_EQ(judge(answer(503, "SlowDown"), kAsked).failure.text, "HTTP status 503 SlowDown (why)");
  HttpReply reset;
  reset.curl_code = 56;
  reset.broken = "Connection reset by peer";
  EXPECT_EQ(judge(reset, kAsked).next, Next::retry);
  reset.curl_code = 60;
  reset.broken = "certificate";
  EXPECT_EQ(judge(reset, kAsked).next, Next::fail);
  EXPECT_TRUE(judge(reset, kAsked).failure.ends_the_run);
}

TEST(S3Verdict, ExpiredKeysAreRefreshed) {
  for (const char* const code : {"ExpiredToken", "InvalidAccessKeyId", "TokenRefreshRequired"}) {
    for (const int status : {400, 403}) {
      const Verdict verdict = judge(answer(status, code), kAsked);
      EXPECT_EQ(verdict.next, Next::refresh) << code;
      EXPECT_TRUE(verdict.failure.ends_the_run);
      EXPECT_NE(verdict.failure.hint.find("profile `x`"), std::string::npos);
    }
  }
}

TEST(S3Verdict, AnotherRegionIsAskedWhereTheStoreNamesIt) {
  HttpReply moved = answer(301, "PermanentRedirect");
  EXPECT_EQ(judge(moved, kAsked).next, Next::fail);
  EXPECT_NE(judge(moved, kAsked).failure.hint.find("AWS_REGION"), std::string::npos);
  moved.bucket_region = "eu-west-1";
  EXPECT_EQ(judge(moved, kAsked).next, Next::ask_other_region);
  EXPECT_EQ(judge(moved, kAsked).region, "eu-west-1");
  HttpReply malformed = answer(400, "AuthorizationHeaderMalformed");
  malformed.body = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-2</Region></Error>";
  EXPECT_EQ(judge(malformed, kAsked).region, "eu-west-2");
  moved.bucket_region = "us-east-1";
  EXPECT_EQ(judge(moved, kAsked).next, Next::fail) << "it was asked there";
}

TEST(S3Verdict, RefusalsSayWhatToDo) {
  const Verdict denied = judge(answer(403, "AccessDenied"), kAsked);
  EXPECT_EQ(denied.failure.kind, ErrorKind::permission);
  EXPECT_FALSE(denied.failure.ends_the_run) << "other objects may be open";
  EXPECT_NE(denied.failure.hint.find("s3:GetObject"), std::string::npos);
  Asked listing = kAsked;
  listing.lists = true;
  EXPECT_NE(judge(answer(403, "AccessDenied"), listing).failure.hint.find("s3:ListBucket"), std::string::npos);
  Asked anonymous = kAsked;
  anonymous.keys_origin = "";
  EXPECT_NE(judge(answer(403, "AccessDenied"), anonymous).failure.hint.find("AWS_NO_SIGN_REQUEST"), std::string::npos);
  const Verdict wrong = judge(answer(403, "SignatureDoesNotMatch"), kAsked);
  EXPECT_TRUE(wrong.failure.ends_the_run);
  EXPECT_NE(wrong.failure.hint.find("secret key"), std::string::npos);
  HttpReply skewed = answer(403, "RequestTimeTooSkewed");
  skewed.date = "Tue, 17 Nov 2026 18:00:00 GMT";
  const Verdict clock = judge(skewed, kAsked);
  EXPECT_NE(clock.failure.text.find("the clock of this machine"), std::string::npos);
  EXPECT_NE(clock.failure.text.find(skewed.date), std::string::npos);
  EXPECT_TRUE(clock.failure.ends_the_run);
}

TEST(S3Verdict, WhatIsNotThereIsNotFound) {
  EXPECT_EQ(judge(answer(404, "NoSuchKey"), kAsked).failure.kind, ErrorKind::not_found);
  const Verdict bucket = judge(answer(404, "NoSuchBucket"), kAsked);
  EXPECT_TRUE(bucket.failure.ends_the_run);
  EXPECT_NE(bucket.failure.text.find("`photos`"), std::string::npos);
  EXPECT_EQ(judge(answer(412, "PreconditionFailed"), kAsked).failure.kind, ErrorKind::corrupt);
  EXPECT_NE(judge(answer(412), kAsked).failure.text.find("v1"), std::string::npos);
}

TEST(S3Verdict, HeadersAreReadWhateverTheirCase) {
  HttpReply reply;
  for (const char* const line :
       {"HTTP/1.1 100 Continue\r\n", "X-Amz-Bucket-Region: wrong\r\n", "\r\n", "HTTP/1.1 206 Partial Content\r\n",
        "ETAG: \"abc\"\r\n", "content-LENGTH:  10 \r\n", "Content-Range: bytes 5-14/100\r\n", "Retry-After: 7\r\n",
        "no colon\r\n", ": x\r\n"}) {
    reply.take_header(line);
  }
  EXPECT_EQ(reply.status, 206);
  EXPECT_EQ(reply.etag, "\"abc\"");
  EXPECT_EQ(reply.content_length, 10u);
  EXPECT_EQ(reply.range_first, 5u);
  EXPECT_EQ(reply.range_last, 14u);
  EXPECT_EQ(reply.total_bytes, 100u);
  EXPECT_EQ(reply.retry_after, std::chrono::seconds(7));
  EXPECT_EQ(reply.bucket_region, "");
  reply.clear();
  reply.take_header("Content-Range: bytes */77\r\n");
  EXPECT_EQ(reply.total_bytes, 77u);
  EXPECT_FALSE(reply.range_first);
  for (const char* const line :
       {"Content-Range: bytes x-y/z\r\n", "Content-Range: bytes -/\r\n", "Content-Range: 1\r\n",
        "Content-Length: -5\r\n", "Retry-After: soon\r\n", "HTTP/1.1\r\n", "HTTP/\r\n"}) {
    reply.clear();
    reply.take_header(line);
    EXPECT_FALSE(reply.total_bytes) << line;
    EXPECT_FALSE(reply.content_length) << line;
  }
}

TEST(S3Verdict, AnAnswerThatIsTooLongSaysSo) {
  HttpReply reply;
  reply.status = 200;
  reply.curl_code = 23;  // CURLE_WRITE_ERROR
  reply.broken = "Failure writing output to destination";
  reply.is_too_large = true;
  const Verdict verdict = judge(reply, kAsked);
  EXPECT_EQ(verdict.next, Next::fail);
  EXPECT_EQ(verdict.failure.text, "the answer is longer than 64.0 MiB");
  EXPECT_EQ(verdict.failure.hint, "is https://photos.s3.us-east-1.amazonaws.com the address of a store?");
}

}  // namespace
}  // namespace stoker::storage::s3
