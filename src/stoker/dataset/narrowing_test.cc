// Which classes and samples are chosen: by name, by number and seed, and the same wherever the data lies.
#include "stoker/dataset/narrowing.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/random.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::dataset {
namespace {

DatasetPtr open_narrowed(const std::string& address, const Narrowing& narrowing) {
  OpenOptions options = without_cache();
  narrowing.put_into(options);
  return open(address, options);
}

TEST(Narrowing, TakesTheClassesOfAListInTheOrderOfTheirNames) {
  Tree tree;
  for (const char* const name : {"ant/1.wav", "bee/2.wav", "cat/3.wav", "cat/4.wav"}) tree.write(name, "x");
  const DatasetPtr data = open_narrowed(tree.at(), {.class_list = {"cat", "ant", "cat"}});
  EXPECT_EQ(data->facts().classes, (std::vector<std::string>{"ant", "cat"}));
  EXPECT_EQ(names_of(*data), (std::vector<std::string>{"ant/1.wav", "cat/3.wav", "cat/4.wav"}));
  EXPECT_EQ(labels_of(*data), (std::vector<std::int64_t>{0, 1, 1}));
  EXPECT_EQ(data->facts().kind, "folder, 2 classes");
  EXPECT_NE(data->facts().fingerprint, open_narrowed(tree.at(), {.class_list = {"bee", "ant"}})->facts().fingerprint);
}

TEST(Narrowing, AListOfAllClassesChangesNothing) {
  Tree tree;
  tree.write("a/1.wav", "x");
  tree.write("b/1.wav", "x");
  EXPECT_EQ(open_narrowed(tree.at(), {.class_list = {"b", "a"}})->facts().fingerprint,
            open(tree.at(), without_cache())->facts().fingerprint);
}

TEST(Narrowing, NamesAClassThatIsNotThereAndTheNearestOne) {
  Tree tree;
  tree.write("tabby/1.wav", "x");
  tree.write("tiger/1.wav", "x");
  const auto error = error_of([&] { open_narrowed(tree.at(), {.class_list = {"tabbi"}}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::not_found);
  EXPECT_TRUE(mentions(error, "cannot take the class `tabbi`"));
  EXPECT_EQ(error->hint(), "did you mean `tabby`?");
  Tree flat;
  flat.write("1.wav", "x");
  EXPECT_TRUE(mentions(error_of([&] { open_narrowed(flat.at(), {.class_list = {"a"}}); }), "it has no classes"));
}

TEST(Narrowing, DrawsFromTheClassesOfAList) {
  Tree tree;
  for (int c = 0; c < 9; ++c) tree.write(fmt::format("c{}/1.wav", c), "x");
  const DatasetPtr data = open_narrowed(tree.at(), {.class_list = {"c1", "c3", "c5", "c7"}, .class_subset = 2});
  ASSERT_EQ(data->facts().classes.size(), 2u);
  for (const std::string& name : data->facts().classes)
    EXPECT_NE(std::string("c1c3c5c7").find(name), std::string::npos);
}

// The drawn classes must never change: copies and packs that people have were drawn by this rule.
TEST(Narrowing, DrawsTheSameClassesInEveryVersion) {
  Tree tree;
  for (int c = 0; c < 20; ++c) tree.write(fmt::format("c{:02}/1.wav", c), "x");
  EXPECT_EQ(open_narrowed(tree.at(), {.class_subset = 5})->facts().classes,
            (std::vector<std::string>{"c03", "c04", "c06", "c07", "c19"}));
}

// A folder, a store and an index.csv of the same names, with names, sizes and seeds at random.
TEST(Narrowing, DrawsTheSameWhereverTheDataLies) {
  storage::MemoryStore store;
  for (std::uint64_t round = 0; round < 20; ++round) {
    Random random(7, round, 0);
    Tree tree;
    std::set<std::string> classes;
    std::string csv = "path,label\n";
    const std::uint32_t count = 2 + random.below(12);
    while (classes.size() < count) classes.insert(fmt::format("n{:03}", random.below(1000)));
    for (const std::string& name : classes) {
      for (std::uint32_t i = 0; i <= random.below(4); ++i) {
        const std::string path = fmt::format("{}/{}.wav", name, i);
        tree.write("d/" + path, path);
        store.put(fmt::format("b{}/d/{}", round, path), path);
        csv += fmt::format("d/{},{}\n", path, name);
      }
    }
    const Narrowing narrowing{.class_subset = 1 + random.below(count),
                              .class_subset_seed = random.next(),
                              .subset = random.below(2) == 0 ? 0 : 1 + random.below(3),
                              .subset_seed = random.next()};
    const DatasetPtr files = open_narrowed(tree.at("d"), narrowing);
    const DatasetPtr objects = open_narrowed(store.address(fmt::format("b{}/d", round)), narrowing);
    const DatasetPtr rows = open_narrowed(tree.write("index.csv", csv), narrowing);
    EXPECT_EQ(files->facts().classes.size(), narrowing.class_subset);
    EXPECT_TRUE(std::is_sorted(files->facts().classes.begin(), files->facts().classes.end()));
    EXPECT_EQ(objects->facts().classes, files->facts().classes);
    EXPECT_EQ(rows->facts().classes, files->facts().classes);
    EXPECT_EQ(names_of(*objects), names_of(*files));
    EXPECT_EQ(labels_of(*objects), labels_of(*files));
    EXPECT_EQ(objects->facts().fingerprint, files->facts().fingerprint);
    std::vector<std::string> below;
    for (const std::string& name : names_of(*files)) below.push_back("d/" + name);
    EXPECT_EQ(names_of(*rows), below);
    EXPECT_EQ(labels_of(*rows), labels_of(*files));
    for (std::uint64_t i = 0; i < files->size(); ++i) {
      const std::string name = files->name(i);
      EXPECT_EQ(files->facts().classes[static_cast<std::size_t>(files->label(i).integer)],
                name.substr(0, name.find('/')));
    }
  }
}

TEST(Narrowing, IsTheSameAfterJson) {
  const Narrowing all;
  EXPECT_TRUE(all.to_json().empty());
  const Narrowing narrowing{.class_list = {"a", "b"}, .class_subset = 1, .class_subset_seed = 9, .subset = 3};
  const Json json = Json::parse_or_null(narrowing.to_json().dump());
  EXPECT_EQ(Narrowing::from_json(json).to_json(), narrowing.to_json());
  EXPECT_TRUE(Narrowing::from_json(Json::parse_or_null("[1]")).to_json().empty());
}

TEST(ClassList, HasOneNameOnEachLine) {
  Tree tree;
  const std::string path = tree.write("classes.txt", "# ours\nn01\r\n\nn02 with space\nn01\n  \nlast");
  EXPECT_EQ(read_class_list(path), (std::vector<std::string>{"n01", "n02 with space", "last"}));
  EXPECT_EQ(read_class_list(tree.write("wide.txt", std::string("\xFF\xFEn\0"
                                                               "1\0\r\0\n\0n\0"
                                                               "2\0",
                                                               14))),
            (std::vector<std::string>{"n1", "n2"}))
      << "UTF-16, as Windows saves it";
  EXPECT_EQ(read_class_list(tree.write("marked.txt", "\xEF\xBB\xBFn1\n")), std::vector<std::string>{"n1"});
  EXPECT_TRUE(mentions(error_of([&] { read_class_list(tree.write("none.txt", "# nothing\n")); }), "it names none"));
  EXPECT_EQ(error_of([&] { read_class_list(tree.at("nowhere")); })->kind(), ErrorKind::not_found);
}

}  // namespace
}  // namespace stoker::dataset
