#include "stoker/storage/s3/address.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::storage::s3 {
namespace {

Error error_when(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::internal, "");
}

TEST(S3Address, HasABucketAndAKey) {
  EXPECT_EQ(parse_place("bucket/a/b c").bucket, "bucket");
  EXPECT_EQ(parse_place("bucket/a/b c").key, "a/b c");
  EXPECT_EQ(parse_place("bucket").key, "");
  EXPECT_EQ(parse_place("bucket/").key, "");
  EXPECT_EQ(parse_place("bucket//a").key, "/a");
  EXPECT_EQ(parse_place("bucket/" + std::string(1024, 'k')).key.size(), 1024u);
}

TEST(S3Address, WithoutABucketIsRefused) {
  for (const char* const name : {"", "/", "/key", "ab/key", "b c/key", "bücket/key", "a@b/key"}) {
    EXPECT_EQ(error_when([&] { parse_place(name); }).kind(), ErrorKind::usage) << name;
  }
  EXPECT_EQ(error_when([] { parse_place("bucket/" + std::string(1025, 'k')); }).kind(), ErrorKind::usage);
}

TEST(S3Address, EveryByteThatASignatureNeedsEncodedIs) {
  EXPECT_EQ(encode_path("a-b_c.d~e/F9"), "a-b_c.d~e/F9");
  EXPECT_EQ(encode_path(" +%'=&?#\"\n"), "%20%2B%25%27%3D%26%3F%23%22%0A");
  EXPECT_EQ(encode_path("ü日"), "%C3%BC%E6%97%A5");
  EXPECT_EQ(encode_path("*!(),;:@$"), "%2A%21%28%29%2C%3B%3A%40%24");
  EXPECT_EQ(encode_query("a/b c"), "a%2Fb%20c");
}

TEST(S3Address, DecodingUndoesWhatListingsEncode) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(decode_key(encode_path(all)), all);
  EXPECT_EQ(decode_key("a+b%2Bc"), "a b+c");
  EXPECT_EQ(decode_key("100%"), "100%");
  EXPECT_EQ(decode_key("%4"), "%4");
  EXPECT_EQ(decode_key("%zz%41"), "%zzA");
}

TEST(S3Address, AmazonIsReachedByTheNameOfTheBucket) {
  const Endpoint endpoint = make_endpoint("", "eu-west-1", "photos", Style::automatic);
  EXPECT_EQ(endpoint.url("a b"), "https://photos.s3.eu-west-1.amazonaws.com/a%20b");
  EXPECT_EQ(endpoint.url(""), "https://photos.s3.eu-west-1.amazonaws.com/");
  EXPECT_TRUE(endpoint.lists_in_order);
  EXPECT_EQ(make_endpoint("", "cn-north-1", "photos", Style::automatic).origin,
            "https://photos.s3.cn-north-1.amazonaws.com.cn");
}

TEST(S3Address, ABucketWithDotsIsInThePathWhereNoCertificateWouldFit) {
  EXPECT_EQ(make_endpoint("", "us-east-1", "my.photos", Style::automatic).url("k"),
            "https://s3.us-east-1.amazonaws.com/my.photos/k");
  EXPECT_EQ(make_endpoint("", "us-east-1", "photos", Style::path).url("k"),
            "https://s3.us-east-1.amazonaws.com/photos/k");
}

TEST(S3Address, AnotherEndpointHasTheBucketInThePath) {
  EXPECT_EQ(make_endpoint("http://127.0.0.1:9000/", "r", "photos", Style::automatic).url("k"),
            "http://127.0.0.1:9000/photos/k");
  EXPECT_EQ(make_endpoint("https://host/below", "r", "photos", Style::automatic).url("k"),
            "https://host/below/photos/k");
  EXPECT_EQ(make_endpoint("https://host:1", "r", "photos", Style::virtual_host).url("k"), "https://photos.host:1/k");
  EXPECT_FALSE(make_endpoint("https://host:1", "r", "photos", Style::automatic).lists_in_order);
}

TEST(S3Address, AnEndpointThatIsNoAddressIsRefusedWithoutRepeatingIt) {
  for (const char* const url :
       {"host:9000", "ftp://host", "http://", "https://user:secret@host", "http://host?x=secret"}) {
    const Error error = error_when([&] { make_endpoint(url, "r", "photos", Style::automatic); });
    EXPECT_EQ(error.kind(), ErrorKind::usage) << url;
    EXPECT_EQ(error.message().find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace stoker::storage::s3
