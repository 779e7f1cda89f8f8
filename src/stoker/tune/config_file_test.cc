#include "stoker/tune/config_file.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::tune {
namespace {

std::string set(const std::string& text, const std::string& name, const Point& point) {
  std::vector<std::string> keys;
  for (const auto& [key, word] : point) keys.push_back(key);
  return ConfigFile(text, name).with(point, keys);
}

std::string refusal(const std::string& text, const std::string& name, const std::string& key) {
  try {
    ConfigFile(text, name).check(key);
  } catch (const Error& error) {
    return error.message() + " / " + error.hint();
  }
  return "";
}

TEST(ConfigFile, KeepsCommentsOrderAndQuotingOfYaml) {
  const std::string text =
      "# of the team\n"
      "training:\n"
      "  workers: 1   # too few?\n"
      "  amp: 'off'\n"
      "  \"batch\": \"32\"\n"
      "  stages: [ {lr: 0.1, on: true}, {lr: 0.2} ]\n"
      "model: ViT-L\n"
      "note: |\n  two\n  lines\n";
  EXPECT_EQ(set(text, "c.yaml",
                {{"training.workers", "16"},
                 {"training.amp", "bf16"},
                 {"training.batch", "64"},
                 {"training.stages.1.lr", "0.5"},
                 {"training.stages.0.on", "false"},
                 {"model", "ViT-G"}}),
            "# of the team\n"
            "training:\n"
            "  workers: 16   # too few?\n"
            "  amp: 'bf16'\n"
            "  \"batch\": \"64\"\n"
            "  stages: [ {lr: 0.1, on: false}, {lr: 0.5} ]\n"
            "model: ViT-G\n"
            "note: |\n  two\n  lines\n");
  EXPECT_EQ(set("a: b\n", "c.yml", {{"a", "x: y"}}), "a: \"x: y\"\n");
}

TEST(ConfigFile, FindsItsPlacesBehindLettersOfSeveralBytes) {
  EXPECT_EQ(set("\xEF\xBB\xBFname: \"M\xC3\xBCller\"\nworkers: 1\n", "c.yaml", {{"workers", "4"}}),
            "\xEF\xBB\xBFname: \"M\xC3\xBCller\"\nworkers: 4\n");
  EXPECT_EQ(set("name: x\r\nworkers: 1\r\n", "c.yaml", {{"workers", "4"}}), "name: x\r\nworkers: 4\r\n");
}

TEST(ConfigFile, EditsJsonInPlace) {
  const std::string text =
      "{\n\t\"training\": {\"workers\": 1, \"name\": \"a\\\"b\", \"resume\": null},\n\t\"sizes\": [1, 2]\n}\n";
  EXPECT_EQ(set(text, "c.json",
                {{"training.workers", "4"}, {"training.name", "c"}, {"training.resume", "last"}, {"sizes.1", "3"}}),
            "{\n\t\"training\": {\"workers\": 4, \"name\": \"c\", \"resume\": \"last\"},\n\t\"sizes\": [1, 3]\n}\n");
}

TEST(ConfigFile, EditsTomlInPlace) {
  const std::string text =
      "title = \"x\" # 1\n"
      "[training]\n"
      "workers = 1 # few\n"
      "opt.lr = 1e-3\n"
      "list = [1, # = [\n  2]\n"
      "text = \"\"\"\nworkers = 7\n\"\"\"\n"
      "[[stage]]\nbatch = 8\n"
      "[[stage]]\nbatch = 16\namp = 'off'\n";
  EXPECT_EQ(set(text, "c.toml",
                {{"title", "y"},
                 {"training.workers", "4"},
                 {"training.opt.lr", "0.1"},
                 {"stage.1.batch", "32"},
                 {"stage.1.amp", "on"}}),
            "title = \"y\" # 1\n"
            "[training]\n"
            "workers = 4 # few\n"
            "opt.lr = 0.1\n"
            "list = [1, # = [\n  2]\n"
            "text = \"\"\"\nworkers = 7\n\"\"\"\n"
            "[[stage]]\nbatch = 8\n"
            "[[stage]]\nbatch = 32\namp = 'on'\n");
}

TEST(ConfigFile, EditsInlineTablesListsAndTextBehindOtherLettersOfToml) {
  const std::string text =
      "\xEF\xBB\xBFloader = { workers = 1, \"prefetch factor\" = 2, queue = { depth = 4 } } # inline\n"
      "\"gr\xC3\xB6\xC3\x9F"
      "e\" = \"\xC3\xA9\\\"\" # a name\n"
      "sizes = [ 1,\n  2, # two\n  3 ]\r\n"
      "day = 1979-05-27 07:32:00 # with a space\n";
  EXPECT_EQ(set(text, "c.toml",
                {{"loader.workers", "8"},
                 {"loader.prefetch factor", "16"},
                 {"loader.queue.depth", "32"},
                 {"gr\xC3\xB6\xC3\x9F"
                  "e",
                  "x"},
                 {"sizes.1", "20"},
                 {"sizes.2", "30"},
                 {"day", "1"}}),
            "\xEF\xBB\xBFloader = { workers = 8, \"prefetch factor\" = 16, queue = { depth = 32 } } # inline\n"
            "\"gr\xC3\xB6\xC3\x9F"
            "e\" = \"x\" # a name\n"
            "sizes = [ 1,\n  20, # two\n  30 ]\r\n"
            "day = 1 # with a space\n");
  EXPECT_NE(refusal(text, "c.toml", "loader").find("not a single value"), std::string::npos);
  EXPECT_NE(refusal("a = 1\na = 2\n", "c.toml", "a").find("cannot read `c.toml`, line 2"), std::string::npos);
}

TEST(ConfigFile, KeepsTomlValidAndItsTypes) {
  const std::string text = "a = 'x'\nd = 2020-01-01T00:00:00Z\nt = 07:30:00\nh = 0x10\n";
  EXPECT_EQ(set(text, "c.toml", {{"a", "it's"}}), "a = \"it's\"\nd = 2020-01-01T00:00:00Z\nt = 07:30:00\nh = 0x10\n");
  EXPECT_EQ(set(text, "c.toml", {{"d", "2021-01-01T00:00:00Z"}, {"t", "08:00:00"}, {"h", "0x20"}}),
            "a = 'x'\nd = 2021-01-01T00:00:00Z\nt = 08:00:00\nh = 0x20\n");
}

TEST(ConfigFile, RefusesKeysThatAreNotThereAndOffersTheNearest) {
  const std::string yaml = "training:\n  num_workers: 1\nloader:\n  depth: 2\n";
  EXPECT_NE(refusal(yaml, "c.yaml", "training.num_wokers").find("did you mean `training.num_workers`?"),
            std::string::npos);
  EXPECT_NE(refusal(yaml, "c.yaml", "depth").find("did you mean `loader.depth`?"), std::string::npos);
  EXPECT_NE(refusal(yaml, "c.yaml", "training").find("not a single value"), std::string::npos);
  EXPECT_NE(refusal("a: |\n  x\n", "c.yaml", "a").find("not a single value"), std::string::npos);
  EXPECT_NE(refusal("a: &x 1\nb: *x\n", "c.yaml", "b").find("alias of `a`"), std::string::npos);
  EXPECT_EQ(refusal("a: &x 1\nb: *x\n", "c.yaml", "a"), "");
}

TEST(ConfigFile, NamesTheLineThatItCannotRead) {
  EXPECT_NE(refusal("a: 1\nb: [1\n", "c.yaml", "a").find("cannot read `c.yaml`, line"), std::string::npos);
  EXPECT_NE(refusal("{\n\"a\": }\n", "c.json", "a").find("cannot read `c.json`, line 2"), std::string::npos);
  EXPECT_NE(refusal("a = 1\nb\n", "c.toml", "a").find("cannot read `c.toml`, line 2"), std::string::npos);
  EXPECT_NE(refusal("a", "c.ini", "a").find("not `c.ini`"), std::string::npos);
}

TEST(GridFile, GivesKnobsInTheOrderOfTheFile) {
  Grid grid;
  add_grid_file(grid, "num_workers: [0, 4]\nbatch_size: [32, 64]\namp: bf16\n", "g.yaml");
  ASSERT_EQ(grid.size(), 4u);
  EXPECT_EQ(grid.knobs()[0].name, "num_workers");
  EXPECT_EQ(text(grid.point(1)), "amp=bf16 batch_size=64 num_workers=0");
  EXPECT_THROW(add_grid_file(grid, "- 1\n", "g.yaml"), Error);
  EXPECT_THROW(add_grid_file(grid, "lr: {a: 1}\n", "g.yaml"), Error);
}

}  // namespace
}  // namespace stoker::tune
