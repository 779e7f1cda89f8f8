#include "stoker/base/json.h"

#include <cmath>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker {
namespace {

std::string refusal_of(std::string_view text) {
  try {
    return "read as " + Json::parse(text, "x.json").dump();
  } catch (const Error& error) {
    return error.message();
  }
}

std::string again(std::string_view text) {
  return Json::parse(text, "x.json").dump();
}

TEST(Json, KeepsTheOrderOfKeysAndTheKindOfNumbers) {
  const Json json = {
      {"z", 1}, {"a", {{"deep", true}}}, {"list", {1, 2.5, "three", nullptr}}, {"pair", Json::array({"k", 1})}};
  EXPECT_EQ(json.dump(), R"({"z":1,"a":{"deep":true},"list":[1,2.5,"three",null],"pair":["k",1]})");
  EXPECT_EQ(json.dump(2),
            "{\n  \"z\": 1,\n  \"a\": {\n    \"deep\": true\n  },\n  \"list\": [\n    1,\n    2.5,\n    "
            "\"three\",\n    null\n  ],\n  \"pair\": [\n    \"k\",\n    1\n  ]\n}");
  EXPECT_EQ(Json::object().dump(2), "{}");
  EXPECT_EQ(Json::array().dump(2), "[]");
}

TEST(Json, WritesNumbersThatReadBackTheSame) {
  for (const double value :
       {0.0, -0.0, 1.0, 0.1, 1.5e-4, 1e-5, 123456789.125, 1e15, 1e14, 5e-324, 1.7976931348623157e308})
    EXPECT_EQ(Json::parse(Json(value).dump(), "x").get<double>(), value) << Json(value).dump();
  EXPECT_EQ(Json(1.0).dump(), "1.0");
  EXPECT_EQ(Json(100000.0).dump(), "100000.0");
  EXPECT_EQ(Json(0.0001).dump(), "0.0001");
  EXPECT_EQ(Json(0.00001).dump(), "1e-05");
  EXPECT_EQ(Json(1e22).dump(), "1e+22");
  EXPECT_EQ(Json(-2.5).dump(), "-2.5");
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  EXPECT_EQ(Json(~std::uint64_t{0}).dump(), "18446744073709551615");
  EXPECT_EQ(again("-9223372036854775808"), "-9223372036854775808");
  EXPECT_TRUE(Json::parse("18446744073709551616", "x").is_number());
  EXPECT_EQ(Json::parse("1e-999", "x").get<double>(), 0.0);
}

TEST(Json, ReadsWhatTheStandardAllows) {
  EXPECT_EQ(again(" [ ] "), "[]");
  EXPECT_EQ(again("\xEF\xBB\xBF{\"a\" : [1 ,2]}\r\n"), R"({"a":[1,2]})");
  EXPECT_EQ(again(R"("\"\\\/\b\f\n\r\t\u00e9\ud83d\udd25")"), "\"\\\"\\\\/\\b\\f\\n\\r\\t\xC3\xA9\xF0\x9F\x94\xA5\"");
  EXPECT_EQ(again(R"("\u0000\u001f")"), R"("\u0000\u001f")");
  EXPECT_EQ(again("[1E+2, -0, 0.5e-1]"), "[100.0,0,0.05]");
  EXPECT_EQ(again(R"({"a":1,"b":2,"a":3})"), R"({"b":2,"a":3})") << "the last value of a key counts";
}

TEST(Json, NamesLineAndColumnOfWhatItCannotRead) {
  EXPECT_EQ(refusal_of("{\n\"a\": }\n"), "cannot read `x.json`, line 2, column 6: expected a value");
  for (const char* text :
       {"",       "[1,]", "{\"a\":1,}", "{a:1}",       "[1 2]",       "01",    "1.",         ".5",       "+1",
        "1e",     "nul",  "\"\\x\"",    "\"\\ud800\"", "\"\\udc7f\"", "\"a",   "\"\n\"",     "\"\x80\"", "[",
        "{\"a\"", "1 2",  "NaN",        "1e999",       "'a'",         "//\n1", "\"\\u12g4\""}) {
    EXPECT_FALSE(Json::try_parse(text)) << text;
    EXPECT_TRUE(refusal_of(text).starts_with("cannot read `x.json`, line ")) << refusal_of(text);
  }
}

TEST(Json, RefusesNestingThatWouldExhaustTheStack) {
  EXPECT_FALSE(Json::try_parse(std::string(1'000'000, '[')));
  EXPECT_TRUE(Json::try_parse(std::string(300, '[') + std::string(300, ']')));
}

TEST(Json, BringsBytesThatAreNotTextBackUnchanged) {
  const std::string name = "caf\xE9\x80.png \xC3\xA9 \xED\xA0\x80";
  EXPECT_EQ(Json("\x7F\xC2\x9B\xE2\x80\xAE").dump(), "\"\\u007f\\u009b\\u202e\"") << "no command to a terminal";
  EXPECT_EQ(Json(name).dump(), "\"caf\\udce9\\udc80.png \xC3\xA9 \\udced\\udca0\\udc80\"");
  EXPECT_EQ(Json::parse(Json(name).dump(), "x").text(), name);

  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 20, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    ASSERT_EQ(Json::parse(Json(bytes).dump(), "x").text(), bytes);
  }
}

TEST(Json, GivesValuesOfTheRightKindOnly) {
  const Json json =
      Json::parse(R"({"n": 300, "r": 2.0, "f": 2.5, "t": "x", "l": [1, 2], "neg": -1, "big": 1e300})", "x");
  EXPECT_EQ(json.at("n").get<int>(), 300);
  EXPECT_EQ(json.at("r").get<int>(), 2);
  EXPECT_EQ(json.at("l").get<std::vector<int>>(), (std::vector<int>{1, 2}));
  EXPECT_EQ(json.value("t", ""), "x");
  EXPECT_EQ(json.value("missing", 7), 7);
  EXPECT_TRUE(json["missing"].is_null());
  EXPECT_THROW((void)json.at("missing"), Error);
  EXPECT_THROW((void)json.at("n").get<std::uint8_t>(), Error);
  EXPECT_THROW((void)json.at("neg").get<std::uint64_t>(), Error);
  EXPECT_THROW((void)json.at("big").get<std::int64_t>(), Error);
  EXPECT_THROW((void)json.at("f").get<int>(), Error);
  EXPECT_THROW((void)json.at("t").get<double>(), Error);
  EXPECT_THROW((void)json.at("l").at(std::size_t{2}), Error);
  EXPECT_THROW((void)json.value("t", 1), Error);
}

TEST(Json, ComparesNumbersByValueAndObjectsInAnyOrder) {
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_EQ(Json(1), Json(1u));
  EXPECT_NE(Json(-1), Json(~std::uint64_t{0}));
  EXPECT_EQ(Json::parse(R"({"a":1,"b":[2]})", "x"), Json::parse(R"({"b":[2],"a":1})", "x"));
  EXPECT_NE(Json::parse(R"({"a":1})", "x"), Json::parse(R"({"a":1,"b":2})", "x"));
  EXPECT_NE(Json(true), Json(1));
}

TEST(Json, ChangesInPlace) {
  Json json;
  json["a"]["b"] = 1;
  json["list"].push_back("x");
  json.update({{"a", 2}, {"c", 3}});
  json.erase("list");
  json.erase("list");
  EXPECT_EQ(json.dump(), R"({"a":2,"c":3})");
}

}  // namespace
}  // namespace stoker
