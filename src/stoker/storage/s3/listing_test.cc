#include "stoker/storage/s3/listing.h"

#include <string>

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::storage::s3 {
namespace {

TEST(S3Listing, APageHasObjectsPrefixesAndTheTokenOfTheNext) {
  const ListPage page = parse_page(
      R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>bucket</Name><Prefix>a/</Prefix><KeyCount>2</KeyCount><IsTruncated>true</IsTruncated>
  <NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J</NextContinuationToken>
  <Contents><Key>a/my image.jpg</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>
    <ETag>"fba9dede5f27731c9771645a39863328"</ETag><Size>434234</Size><StorageClass>STANDARD</StorageClass></Contents>
  <Contents><Key>a/x&amp;y</Key><ETag>&quot;1-2&quot;</ETag><Size>0</Size></Contents>
  <CommonPrefixes><Prefix>a/b/</Prefix></CommonPrefixes>
</ListBucketResult>)",
      "s3://bucket/a/");
  ASSERT_EQ(page.objects.size(), 2u);
  EXPECT_EQ(page.objects[0].key, "a/my image.jpg");
  EXPECT_EQ(page.objects[0].bytes, 434234u);
  EXPECT_EQ(page.objects[0].version, "fba9dede5f27731c9771645a39863328");
  EXPECT_EQ(page.objects[1].key, "a/x&y");
  EXPECT_EQ(page.objects[1].version, "1-2");
  EXPECT_EQ(page.prefixes, std::vector<std::string>{"a/b/"});
  EXPECT_EQ(page.next, "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J");
}

TEST(S3Listing, KeysAreDecodedWhereTheStoreEncodesThem) {
  const ListPage page = parse_page(
      "<ListBucketResult><Contents><Key>a%2Bb+c%0A%E6%97%A5</Key><Size>1</Size></Contents>"
      "<EncodingType>url</EncodingType></ListBucketResult>",
      "x");
  EXPECT_EQ(page.objects.at(0).key, "a+b c\n日");
  EXPECT_EQ(page.objects[0].version, "");
  EXPECT_EQ(parse_page("<ListBucketResult><Contents><Key>a+b</Key><Size>1</Size></Contents></ListBucketResult>", "x")
                .objects.at(0)
                .key,
            "a+b");
}

TEST(S3Listing, TheQueryIsEncodedAndSorted) {
  EXPECT_EQ(page_query("a b/", "", "", 1000), "encoding-type=url&list-type=2&max-keys=1000&prefix=a%20b%2F");
  EXPECT_EQ(page_query("", "/", "t+/=", 10),
            "continuation-token=t%2B%2F%3D&delimiter=%2F&encoding-type=url&list-type=2&max-keys=10&prefix=");
}

TEST(S3Listing, WhatIsNoListingIsAnErrorThatNamesIt) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  const std::string billion =
      "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><ListBucketResult><Contents><Key>&b;</Key>"
      "</Contents></ListBucketResult>";
  for (const std::string& xml :
       {std::string(), std::string("<html>hello"), std::string("{}"), std::string(1000, '\0'), deep, billion,
        std::string("<Error><Code>AccessDenied</Code></Error>"),
        std::string("<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>"),
        std::string("<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>"),
        std::string("<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>"),
        std::string("<ListBucketResult><Contents><Key>a</Key><Size>99999999999999999999</Size></Contents>"
                    "</ListBucketResult>"),
        std::string("<ListBucketResult><Contents><Key>a%00b</Key><Size>1</Size></Contents>"
                    "<EncodingType>url</EncodingType></ListBucketResult>"),
        std::string("<ListBucketResult><Contents><Key>a</Key><Size>9223372036854775807</Size></Contents>"
                    "</ListBucketResult>"),
        std::string("<ListBucketResult><Contents><Key>a&#0;b</Key><Size>1</Size></Contents></ListBucketResult>"),
        std::string("<ListBucketResult><Contents><Key>a&#x00;</Key><Size>1</Size></Contents></ListBucketResult>"),
        std::string("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>")}) {
    try {
      parse_page(xml, "s3://bucket/a/");
      ADD_FAILURE() << "nothing was thrown for " << xml.substr(0, 80);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      EXPECT_NE(error.message().find("`s3://bucket/a/`"), std::string::npos);
    }
  }
}

TEST(S3Listing, AnErrorHasACodeAndAMessage) {
  const ErrorAnswer error = parse_error(
      "<?xml version=\"1.0\"?><Error><Code>AuthorizationHeaderMalformed</Code><Message>the region is wrong</Message>"
      "<Region>eu-west-1</Region></Error>");
  EXPECT_EQ(error.code, "AuthorizationHeaderMalformed");
  EXPECT_EQ(error.message, "the region is wrong");
  EXPECT_EQ(error.region, "eu-west-1");
  EXPECT_EQ(parse_error("").code, "");
  EXPECT_EQ(parse_error("<html><body>503").code, "");
}

TEST(S3Listing, ElementsAreFoundAtAnyDepth) {
  const std::string_view xml =
      "<AssumeRoleWithWebIdentityResponse xmlns=\"x\"><AssumeRoleWithWebIdentityResult><Credentials>"
      "<SessionToken>token</SessionToken></Credentials></AssumeRoleWithWebIdentityResult>"
      "</AssumeRoleWithWebIdentityResponse>";
  EXPECT_EQ(text_of_element(xml, "SessionToken"), "token");
  EXPECT_EQ(text_of_element(xml, "None"), "");
}

}  // namespace
}  // namespace stoker::storage::s3
