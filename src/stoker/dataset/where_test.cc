#include "stoker/dataset/where.h"

#include <map>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/dataset/tree_test.h"

namespace stoker::dataset {
namespace {

using Row = std::map<std::string, std::string>;

bool matches(const std::string& expression, const Row& row) {
  const Where where(expression);
  return where.matches([&](std::size_t column) { return row.at(where.columns()[column]); });
}

std::string why_unread(const std::string& expression) {
  try {
    const Where where(expression);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

const Row kSlice = {{"rows", "512"}, {"slice_spacing", "2.5"}, {"modality", "CT"}, {"empty", ""}, {"cols", "0512"}};

TEST(Where, ComparesNumbersAndTexts) {
  for (const char* const yes :
       {"rows==512", "rows == 512.0", "rows=512", "slice_spacing<3", "3>slice_spacing", "slice_spacing<=2.5",
        "slice_spacing >= 2.5", "rows!=5e1", "modality==\"CT\"", "modality == 'CT'", "modality<'D'", "rows==cols",
        "2 < slice_spacing < 3", "`slice_spacing` > -1", "empty==''"}) {
    EXPECT_TRUE(matches(yes, kSlice)) << yes;
  }
  for (const char* const no : {"rows!=512", "rows<512", "slice_spacing>3", "modality=='MR'", "modality==''",
                               "2.5 < slice_spacing < 3", "rows=='0512'", "modality==cols"}) {
    EXPECT_FALSE(matches(no, kSlice)) << no;
  }
}

TEST(Where, JoinsWithAndOrNotAndParentheses) {
  for (const char* const yes :
       {"slice_spacing<3 and rows==512", "slice_spacing<3 AND rows==512", "rows==1 or rows==512", "not rows==1",
        "not (rows==1 or cols==1)", "rows==1 and rows==2 or rows==512", "rows==512 or rows==1 and rows==2",
        "!(rows==1) && modality=='CT'", "not not rows==512"}) {
    EXPECT_TRUE(matches(yes, kSlice)) << yes;
  }
  for (const char* const no :
       {"rows==512 and rows==1", "not rows==512", "rows==1 || rows==2", "(rows==512 or rows==1) and rows==2"}) {
    EXPECT_FALSE(matches(no, kSlice)) << no;
  }
}

TEST(Where, ACellWithoutANumberIsOnlyDifferent) {
  for (const char* const no : {"empty<3", "empty>3", "empty==3", "modality<3", "not empty!=3"})
    EXPECT_FALSE(matches(no, kSlice)) << no;
  EXPECT_TRUE(matches("empty!=3", kSlice));
}

TEST(Where, RefusesWhatItCannotReadNamingThePlace) {
  EXPECT_NE(why_unread("").find("at its end"), std::string::npos);
  EXPECT_NE(why_unread("rows").find("a comparison was expected"), std::string::npos);
  EXPECT_NE(why_unread("rows==").find("a column, a number or a text in quotes was expected"), std::string::npos);
  EXPECT_NE(why_unread("rows==512 cols==512").find("at `cols==512`: `and`, `or` or the end"), std::string::npos);
  EXPECT_NE(why_unread("(rows==512").find("a closing parenthesis is missing"), std::string::npos);
  EXPECT_NE(why_unread("modality=='CT").find("a quote is not closed"), std::string::npos);
  EXPECT_NE(why_unread("rows ~ 3").find("a comparison was expected"), std::string::npos);
  EXPECT_NE(why_unread(std::string(200, '(')).find("nested too deeply"), std::string::npos);
  EXPECT_NE(why_unread("rows==1e"), "");
}

class WhereCsv : public ::testing::Test {
 protected:
  WhereCsv() {
    for (const char* const name : {"a.png", "b.png", "c.png"}) tree_.write(name, "x");
    tree_.write("index.csv", "path,label,rows,modality\na.png,cat,512,CT\nb.png,dog,256,MR\nc.png,cat,512,MR\n");
    options_.use_cache = false;
  }
  std::vector<std::string> chosen(const std::string& expression) {
    options_.where = expression;
    const DatasetPtr data = open(tree_.at("index.csv"), options_);
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i < data->size(); ++i) names.push_back(data->name(i));
    return names;
  }
  std::string refused(const std::string& expression) {
    try {
      (void)chosen(expression);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  Tree tree_;
  OpenOptions options_;
};

TEST_F(WhereCsv, TakesTheRowsThatMatch) {
  EXPECT_EQ(chosen("rows==512"), (std::vector<std::string>{"a.png", "c.png"}));
  EXPECT_EQ(chosen("modality=='MR' and rows<300"), (std::vector<std::string>{"b.png"}));
  EXPECT_EQ(chosen("label=='cat'"), (std::vector<std::string>{"a.png", "c.png"}));
  EXPECT_EQ(chosen("path!='a.png'"), (std::vector<std::string>{"b.png", "c.png"}));
  EXPECT_EQ(chosen("Rows>0").size(), 3u) << "names of columns in any case";
}

TEST_F(WhereCsv, RefusesAnUnknownColumnWithTheList) {
  const std::string said = refused("rowz==512");
  EXPECT_NE(said.find("names the column `rowz`"), std::string::npos) << said;
  EXPECT_NE(said.find("`rows`, `modality`, `path`, `label`"), std::string::npos) << said;
  EXPECT_NE(refused("modality==CT").find("names the column `CT`"), std::string::npos);
}

TEST_F(WhereCsv, RefusesAnEmptyAnswer) {
  EXPECT_NE(refused("rows==7").find("matches none of the 3 samples"), std::string::npos);
}

TEST_F(WhereCsv, ChangesTheFingerprintAndKeepsIds) {
  options_.where.clear();
  const DatasetPtr all = open(tree_.at("index.csv"), options_);
  options_.where = "rows==512";
  const DatasetPtr some = open(tree_.at("index.csv"), options_);
  EXPECT_NE(all->facts().fingerprint, some->facts().fingerprint);
  EXPECT_EQ(all->id(2), some->id(1));
}

}  // namespace
}  // namespace stoker::dataset
