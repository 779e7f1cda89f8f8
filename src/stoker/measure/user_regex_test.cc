#include "stoker/measure/user_regex.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::measure {
namespace {

std::string refusal(const std::string& text) {
  try {
    const UserRegex refused(text, "log_pattern");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.option(), "log_pattern");
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(UserRegex, FindsNamedAndNumberedGroups) {
  const UserRegex regex(R"(TS\((?<step>\d+)\) ([a-z]+)? ?(?P<s>[\d.]+))", "log_pattern");
  EXPECT_EQ(regex.group_count(), 3u);
  EXPECT_EQ(regex.names(), (std::vector<std::pair<std::string, std::size_t>>{{"step", 1}, {"s", 3}}));
  const auto found = regex.search("[rank0] TS(12) 0.25");
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0], "TS(12) 0.25");
  EXPECT_EQ(found[1], "12");
  EXPECT_EQ(found[2], std::nullopt);
  EXPECT_EQ(found[3], "0.25");
  EXPECT_TRUE(regex.search("nothing").empty());
}

TEST(UserRegex, GroupsAreNoneInsideClassesAndBehindBackslashes) {
  EXPECT_EQ(UserRegex(R"([(]?<(?<a>\d)\(?<x>[])(?<b>][[:digit:])(?<c>])", "log_pattern").names().size(), 1u);
  EXPECT_EQ(UserRegex("[^](?<a>]+(?<b>x)", "log_pattern").names().front().first, "b");
}

TEST(UserRegex, NoExpressionTakesMoreThanLinearTime) {
  const UserRegex regex("(?<s>(a+)+)$", "log_pattern");
  EXPECT_TRUE(regex.search(std::string(2000, 'a') + "b").empty());
  EXPECT_TRUE(
      has(refusal(std::string(100'000, '(') + "a" + std::string(100'000, ')')), "characters; the most are 4096"));
  EXPECT_TRUE(has(refusal(std::string(1000, '(') + "a" + std::string(1000, ')')), "1000 groups; the most are 64"));
  EXPECT_TRUE(has(refusal("(?<s>((a{1000}){1000}){1000})"), "is no regular expression"));
  std::string nested = "(?<s>a)";
  for (int i = 0; i < 1000; ++i) nested = "(?:" + nested + ")";
  EXPECT_EQ(UserRegex(nested, "log_pattern").search("bab").size(), 2u);
}

TEST(UserRegex, WhatTheEngineLacksIsNamed) {
  EXPECT_TRUE(has(refusal("(?<=step )(?<step>[0-9]+)"), "has `(?<=` (look-behind), which the engine lacks"));
  EXPECT_TRUE(has(refusal("(?<!x)(?<step>[0-9]+)"), "look-behind"));
  EXPECT_TRUE(has(refusal("(?<step>[0-9]+)(?!x)"), "has `(?!` (look-ahead)"));
  EXPECT_TRUE(has(refusal(R"((?<step>[0-9]+)\1)"), R"(has `\1` (back-reference))"));
}

TEST(UserRegex, NamesOfGroupsAreWordsEachOnce) {
  EXPECT_TRUE(has(refusal("(?<step s>[0-9]+)"), "a group named `step s`: letters, digits and _ make a name"));
  EXPECT_TRUE(has(refusal("(?<>[0-9]+)"), "a group named ``"));
  EXPECT_TRUE(has(refusal("(?<a>x)(?<a>y)"), "two groups named `a`"));
  EXPECT_TRUE(has(refusal("(?<a"), "a group whose name does not end"));
  EXPECT_TRUE(has(refusal("(?<a>["), "is no regular expression"));
  EXPECT_LT(refusal(std::string(50'000, '(')).size(), 700u);
}

}  // namespace
}  // namespace stoker::measure
