// Against the examples of Amazon's documentation, "Authenticating Requests: Using the Authorization Header".
#include "stoker/storage/s3/signature.h"

#include <gtest/gtest.h>

namespace stoker::storage::s3 {
namespace {

constexpr std::string_view kHost = "https://examplebucket.s3.amazonaws.com";
const WallTime kDay = parse_iso_time("2013-05-24T00:00:00Z").value();

Credentials example_keys() {
  Credentials keys;
  keys.access_key = "AKIAIOSFODNN7EXAMPLE";
  keys.secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  return keys;
}

std::string signature_in(const std::string& authorization) {
  return authorization.substr(authorization.rfind('=') + 1);
}

std::string signature_of(Signer& signer, const std::string& path, std::string_view range = {}) {
  const std::string url = std::string(kHost) + path;
  return signature_in(signer.sign({.url = url, .range = range}, example_keys(), "us-east-1", kDay).authorization);
}

TEST(S3Signature, IsThatOfTheDocumentation) {
  Signer signer;
  EXPECT_EQ(signature_of(signer, "/test.txt", "bytes=0-9"),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(signature_of(signer, "/?lifecycle="), "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(signature_of(signer, "?max-keys=2&prefix=J"),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(S3Signature, ComesWithTheHeadersThatItCovers) {
  Signer signer;
  Credentials keys = example_keys();
  keys.session_token = "token";
  const Signer::Headers& headers =
      signer.sign({.url = "http://host:9000/b/k", .requester_pays = true}, keys, "eu", kDay);
  EXPECT_EQ(headers.date, "x-amz-date: 20130524T000000Z");
  EXPECT_EQ(headers.body_hash,
            "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(headers.token, "x-amz-security-token: token");
  EXPECT_EQ(headers.payer, "x-amz-request-payer: requester");
  EXPECT_TRUE(headers.authorization.starts_with(
      "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/eu/s3/aws4_request,SignedHeaders=host;"
      "x-amz-content-sha256;x-amz-date;x-amz-request-payer;x-amz-security-token,Signature="))
      << headers.authorization;
}

TEST(S3Signature, CoversTheBody) {
  Signer signer;
  const auto sign = [&](std::string_view method, std::string_view body) {
    return signer.sign({.method = method, .url = "http://host/k", .body = body}, example_keys(), "us-east-1", kDay);
  };
  const std::string put = signature_in(sign("PUT", "abc").authorization);
  EXPECT_EQ(sign("PUT", "abc").body_hash,
            "x-amz-content-sha256: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_NE(signature_in(sign("PUT", "abd").authorization), put);
  EXPECT_NE(signature_in(sign("POST", "abc").authorization), put);
}

TEST(S3Signature, ChangesWithKeyRegionDayAndHost) {
  Signer signer;
  const auto sign = [&](const Credentials& keys, std::string_view region, WallTime now, std::string_view url) {
    return signature_in(signer.sign({.url = url}, keys, region, now).authorization);
  };
  Credentials other = example_keys();
  other.secret_key = "another";
  const std::string first = sign(example_keys(), "us-east-1", kDay, "http://host/k");
  EXPECT_NE(sign(other, "us-east-1", kDay, "http://host/k"), first);
  EXPECT_NE(sign(example_keys(), "eu-west-1", kDay, "http://host/k"), first);
  EXPECT_NE(sign(example_keys(), "us-east-1", kDay + std::chrono::hours(24), "http://host/k"), first);
  EXPECT_NE(sign(example_keys(), "us-east-1", kDay + std::chrono::seconds(1), "http://host/k"), first);
  EXPECT_NE(sign(example_keys(), "us-east-1", kDay, "http://host:81/k"), first);
  EXPECT_EQ(sign(example_keys(), "us-east-1", kDay, "http://host:80/k"), first) << "Host has no usual port";
  EXPECT_EQ(sign(example_keys(), "us-east-1", kDay, "http://host/k"), first) << "nothing is left of the others";
}

}  // namespace
}  // namespace stoker::storage::s3
