#include "stoker/storage/s3/profile.h"

#include <gtest/gtest.h>

namespace stoker::storage::s3 {
namespace {

constexpr std::string_view kConfig = R"(
# of Amazon's tools
[default]
region = eu-west-1
output=json

[profile  train]
Region = eu-north-1   ; where the data is
endpoint_url = http://host:9000
s3 =
    addressing_style = path
    max_concurrent_requests = 20
services = local
no setting
aws_secret_access_key = a#b;c

[services local]
s3 =
  endpoint_url = http://other:9000
)";

TEST(S3Profile, SettingsAreFoundBySection) {
  const Sections sections = parse_sections(kConfig);
  EXPECT_EQ(sections.at("default").at("region"), "eu-west-1");
  EXPECT_EQ(sections.at("default").at("output"), "json");
  EXPECT_EQ(sections.at("profile train").at("region"), "eu-north-1");
  EXPECT_EQ(sections.at("profile train").at("s3.addressing_style"), "path");
  EXPECT_EQ(sections.at("profile train").at("services"), "local");
  EXPECT_EQ(sections.at("profile train").at("aws_secret_access_key"), "a#b;c");
  EXPECT_EQ(sections.at("services local").at("s3.endpoint_url"), "http://other:9000");
}

TEST(S3Profile, TheCredentialsFileWinsOverTheConfigFile) {
  const Sections config = parse_sections("[profile x]\nregion = a\naws_access_key_id = 1\n[default]\nregion = d\n");
  const Sections credentials = parse_sections("[x]\naws_access_key_id = 2\n[only]\naws_access_key_id = 3\n");
  EXPECT_EQ(profile_of(config, credentials, "x").at("aws_access_key_id"), "2");
  EXPECT_EQ(profile_of(config, credentials, "x").at("region"), "a");
  EXPECT_EQ(profile_of(config, credentials, "default").at("region"), "d");
  EXPECT_TRUE(profile_of(config, credentials, "none").empty());
  EXPECT_TRUE(has_profile(config, credentials, "only"));
  EXPECT_FALSE(has_profile(config, credentials, "none"));
}

TEST(S3Profile, AnyTextIsRead) {
  for (const std::string_view text :
       {std::string_view("["), std::string_view("]\n=\n[]\n=x\n  =y"), std::string_view("a=b"), std::string_view("[x"),
        std::string_view("\0\0[x]\0=\0", 8), std::string_view("  indented = 1\n[x]\n  y = 2\r\n")}) {
    (void)parse_sections(text);
  }
  EXPECT_EQ(parse_sections("[x]\r\ny = 2\r\n").at("x").at("y"), "2");
}

}  // namespace
}  // namespace stoker::storage::s3
