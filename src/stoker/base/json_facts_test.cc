#include "stoker/base/json_facts.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(JsonFacts, ANumberIsFoundByItsPathOrNotAtAll) {
  const Json json = {{"host", {{"memory", {{"limit_bytes", 4096}}}}}, {"name", "a"}};
  EXPECT_EQ(number_at(json, {"host", "memory", "limit_bytes"}), 4096.0);
  EXPECT_EQ(number_at(json, {"host", "disk", "read"}), std::nullopt);
  EXPECT_EQ(number_at(json, {"name"}), std::nullopt) << "a text is no number";
  EXPECT_EQ(number_at(Json(), {"host"}), std::nullopt);
}

TEST(JsonFacts, TextsOfAnotherShapeAreEmpty) {
  const Json json = {{"name", "a"}, {"count", 3}, {"words", Json::array({"x", 1, "y"})}};
  EXPECT_EQ(text_at(json, "name"), "a");
  EXPECT_EQ(text_at(json, "count"), "");
  EXPECT_EQ(text_at(Json(7), "name"), "");
  EXPECT_EQ(strings_at(json, "words"), (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(strings_at(json, "name").empty());
}

TEST(JsonFacts, ValuesReadAsPeopleWriteThem) {
  EXPECT_EQ(value_text("", Json::array({1, 2.5, true, "x"})), "1, 2.5, yes, x");
  EXPECT_EQ(value_text("limit_bytes", 4096), "4.0 KiB");
  EXPECT_EQ(value_text("", {{"a", 1}, {"b", nullptr}}), "a 1, b ");
}

TEST(JsonFacts, NamesTheMembersOfAnObjectWithoutTheirUnit) {
  const std::vector<Fact> facts = facts_of({{"memory_bytes", 4096}, {"grid", 1}, {"note", nullptr}}, {"grid"});
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].name, "memory");
  EXPECT_EQ(facts[0].value, "4.0 KiB");
  EXPECT_TRUE(facts_of(Json("x")).empty());
}

}  // namespace
}  // namespace stoker
