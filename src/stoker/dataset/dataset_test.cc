// What holds for every kind of data set and every view of one, then the kinds that are too small for a file of their
// own.
#include "stoker/dataset/dataset.h"

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stoker/base/json.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/os/fault.h"
#include "stoker/os/fd.h"
#include "stoker/os/read_file.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {
namespace {

using Names = std::vector<std::string>;
using Labels = std::vector<std::int64_t>;

std::string npy(std::string_view descr, std::string_view shape, std::size_t data_bytes, bool fortran = false) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran ? "True" : "False", shape);
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  for (std::size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

// Ten files in five classes, as a folder, an index.csv, a list and an array.
void fill(const Tree& tree) {
  std::string csv = "path,label\n";
  for (int i = 0; i < 10; ++i) {
    const std::string path = fmt::format("class{}/{}.jpg", i / 2, i);
    tree.write("files/" + path, std::string(static_cast<std::size_t>(i + 1), 'x'));
    csv += fmt::format("{},class{}\n", path, i / 2);
  }
  tree.write("files/index.csv", csv);
  tree.write("x.npy", npy("<u2", "(10, 3)", 60));
}

DatasetPtr open_kind(const Tree& tree, std::string_view kind) {
  if (kind == "folder") return open(tree.at("files"), without_cache());
  if (kind == "csv") return open(tree.at("files/index.csv"));
  if (kind == "npy") return open(tree.at("x.npy"));
  std::vector<std::pair<std::string, Label>> samples;
  for (int i = 0; i < 10; ++i) samples.push_back({tree.at(fmt::format("files/class{}/{}.jpg", i / 2, i)), {i, 0}});
  return from_list(samples, LabelKind::integer);
}

class EveryDataset : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  EveryDataset() { fill(tree_); }
  DatasetPtr make() const {
    const auto [kind, view] = GetParam();
    DatasetPtr data = open_kind(tree_, kind);
    if (view == std::string_view("subset")) return take_subset(data, 4, 1);
    if (view == std::string_view("inflated")) return inflate(data, 3);
    if (view == std::string_view("subset inflated")) return inflate(take_subset(data, 4, 1), 3);
    return data;
  }
  Tree tree_;
};

TEST_P(EveryDataset, GivesIdsThatDifferAndStayBelowTwoToThe63) {
  const DatasetPtr data = make();
  const auto all = ids_of(*data);
  ASSERT_FALSE(all.empty());
  std::set<std::uint64_t> ids;
  for (const std::uint64_t id : all) {
    EXPECT_LT(id, std::uint64_t{1} << 63);
    EXPECT_TRUE(ids.insert(id).second);
  }
}

TEST_P(EveryDataset, LeadsToBytesOfTheSizeItNames) {
  const DatasetPtr data = make();
  std::uint64_t largest = 0;
  for (std::uint64_t i = 0; i < data->size(); ++i) {
    char text[storage::kLocationText];
    const storage::Location at = data->locate(i, text);
    EXPECT_EQ(data->location(i).bytes, at.bytes);
    EXPECT_EQ(data->location(i).name, nullptr) << "nobody asked for it";
    largest = std::max(largest, at.bytes);
    if (at.source != nullptr) {
      EXPECT_EQ(at.name, nullptr);
      EXPECT_LE(at.offset + at.bytes, at.source->size_bytes());
      continue;
    }
    ASSERT_NE(at.name, nullptr);
    EXPECT_TRUE(data->name(i).ends_with(at.name))
        << at.name;  // a list names whole paths, and reaches files from a folder
    struct stat facts {};
    ASSERT_EQ(::fstatat(at.directory, at.name, &facts, 0), 0);
    EXPECT_EQ(static_cast<std::uint64_t>(facts.st_size), at.bytes);
    EXPECT_EQ(at.offset, 0u);
  }
  EXPECT_EQ(data->facts().largest_bytes, largest);
}

TEST_P(EveryDataset, IsTheSameWhenOpenedAgain) {
  const DatasetPtr a = make(), b = make();
  EXPECT_EQ(a->facts().fingerprint, b->facts().fingerprint);
  EXPECT_EQ(names_of(*a), names_of(*b));
  EXPECT_EQ(ids_of(*a), ids_of(*b));
  EXPECT_EQ(labels_of(*a), labels_of(*b));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryDataset,
                         testing::Combine(testing::Values("folder", "csv", "npy", "list"),
                                          testing::Values("whole", "subset", "inflated", "subset inflated")),
                         [](const auto& kind) {
                           std::string name = fmt::format("{}_{}", std::get<0>(kind.param), std::get<1>(kind.param));
                           for (char& c : name) c = c == ' ' ? '_' : c;
                           return name;
                         });

TEST(Npy, GivesEachRowOfTheFirstDimension) {
  Tree tree;
  for (const storage::Storage how : {storage::Storage::buffered, storage::Storage::mmap}) {
    OpenOptions options;
    options.storage = how;
    const DatasetPtr data = open(tree.write("x.npy", npy("<f4", "(5, 2, 3)", 120)), options);
    EXPECT_EQ(data->size(), 5u);
    EXPECT_EQ(data->name(3), "x.npy[3]");
    EXPECT_EQ(data->id(3), 3u);
    EXPECT_EQ(data->facts().kind, "npy");
    EXPECT_EQ(data->facts().total_bytes, 120u);
    ASSERT_TRUE(data->facts().array);
    EXPECT_EQ(data->facts().array->dtype, DType::f32);
    const storage::Location at = data->location(3);
    EXPECT_EQ(at.bytes, 24u);
    std::vector<std::byte> row(24);
    const storage::Read read{at.offset, row};
    at.source->read({&read, 1});
    EXPECT_EQ(row[0], std::byte{72});
  }
}

TEST(Npy, RefusesWhatHasNoRowsInOneSentence) {
  Tree tree;
  const auto refusal = [&](const std::string& file) {
    const auto error = error_of([&] { open(tree.write("x.npy", file)); });
    return error ? error->message() : "";
  };
  EXPECT_NE(refusal(npy("<f4", "()", 4)).find("single number"), std::string::npos);
  EXPECT_NE(refusal(npy("<f4", "(0, 3)", 0)).find("empty"), std::string::npos);
  EXPECT_NE(refusal(npy("<f4", "(3, 0)", 0)).find("empty"), std::string::npos);
  EXPECT_NE(refusal(npy("<f4", "(3, 2)", 24, true)).find("Fortran"), std::string::npos);
  EXPECT_NE(refusal(npy("<f4", "(3, 2)", 20)).find("x.npy"), std::string::npos);
  EXPECT_NE(refusal("").find("x.npy"), std::string::npos);
  EXPECT_NE(refusal("garbage, not an array").find("x.npy"), std::string::npos);
}

TEST(List, KeepsLabelsAndOrder) {
  Tree tree;
  const std::string a = tree.write("a.jpg", "1"), b = tree.write("b", "12");
  const DatasetPtr whole = from_list({{b, {5, 0}}, {a, {-3, 0}}}, LabelKind::integer);
  EXPECT_EQ(names_of(*whole), (Names{b, a}));
  EXPECT_EQ(labels_of(*whole), (Labels{5, -3}));
  EXPECT_EQ(whole->media(0), codec::Media{});
  EXPECT_EQ(whole->media(1), codec::media_named("jpeg"));
  const DatasetPtr real = from_list({{a, {7, 0.5f}}}, LabelKind::real);
  EXPECT_EQ(real->label(0).real, 0.5f);
  EXPECT_EQ(real->label(0).integer, -1);
  EXPECT_EQ(from_list({{a, {7, 0}}}, LabelKind::none)->label(0).integer, -1);
}

TEST(List, NamesWhatIsMissingAndRefusesNothing) {
  Tree tree;
  const std::string a = tree.write("a.jpg", "1");
  const auto missing = error_of([&] { from_list({{a, {}}, {tree.at("x"), {}}, {tree.at("y"), {}}}, LabelKind::none); });
  EXPECT_TRUE(mentions(missing, "sample 1 of the list: no such file: `" + tree.at("x") + "`, and 1 more of 3"));
  EXPECT_TRUE(mentions(error_of([] { from_list({}, LabelKind::none); }), "empty list"));
  EXPECT_TRUE(mentions(error_of([] { from_list({{"", {}}}, LabelKind::none); }), "path is empty"));
}

TEST(List, KeepsAMissingFileWhereLossesAreSkipped) {
  Tree tree;
  const std::string a = tree.write("a.jpg", "1"), x = tree.at("x"), b = tree.write("b.jpg", "12");
  OpenOptions options;
  options.skip_losses = true;
  const DatasetPtr data = from_list({{a, {1, 0}}, {x, {2, 0}}, {b, {3, 0}}}, LabelKind::integer, options);
  EXPECT_EQ(names_of(*data), (Names{a, x, b}));
  EXPECT_EQ(labels_of(*data), (Labels{1, 2, 3}));
  EXPECT_EQ(sizes_of(*data), (std::vector<std::uint64_t>{1, 0, 2}));
  EXPECT_TRUE(has_note(*data, "1 of 3 files is missing; the first: no such file: `" + x + "`"));
  const auto none = error_of([&] { from_list({{x, {}}, {tree.at("y"), {}}}, LabelKind::none, options); });
  EXPECT_TRUE(mentions(none, "sample 0 of the list: no such file: `" + x + "`, and 1 more of 2 are missing"));
}

TEST(List, GivesRepeatedFilesIdsOfTheirOwn) {
  Tree tree;
  const std::string a = tree.write("a.jpg", "1");
  const DatasetPtr data = from_list({{a, {}}, {a, {}}}, LabelKind::none);
  EXPECT_NE(data->id(0), data->id(1));
}

TEST(List, KnowsItsSamplesByTheirPlacesWhereAsked) {
  Tree tree;
  const std::string a = tree.write("a.jpg", "1"), b = tree.write("in/b.jpg", "2");
  const DatasetPtr data = from_list({{b, {}}, {a, {}}, {b, {}}}, LabelKind::none, {}, {}, true);
  EXPECT_EQ(data->id(0), 0u);
  EXPECT_EQ(data->id(1), 1u);
  EXPECT_EQ(data->id(2), 2u);
}

TEST(List, ReachesFilesFromTheFolderThatAllOfThemLieIn) {
  const Tree tree;
  const std::string a = tree.write("in/ab/a.jpg", "1"), b = tree.write("in/abc/b.jpg", "22"),
                    c = tree.write("c.jpg", "3");
  const auto below_folder = [](const Dataset& data, std::uint64_t i) {
    char path[4096];
    const storage::Location file = data.locate(i, path);
    int error_number = 0;
    EXPECT_TRUE(os::try_open(file.directory, file.name, O_RDONLY, error_number)) << path;
    return std::string(file.name);
  };
  const DatasetPtr near = from_list({{a, {}}, {b, {}}}, LabelKind::none);
  EXPECT_EQ(below_folder(*near, 0), "ab/a.jpg");
  EXPECT_EQ(below_folder(*near, 1), "abc/b.jpg");
  EXPECT_EQ(near->name(0), a) << "names and ids are those of the whole path";
  EXPECT_EQ(near->id(0), from_list({{a, {}}, {c, {}}}, LabelKind::none)->id(0));
  EXPECT_EQ(below_folder(*from_list({{c, {}}}, LabelKind::none), 0), "c.jpg");
}

TEST(List, OutlivesAChangeOfWorkingFolder) {
  Tree tree;
  tree.write("a.jpg", "1");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(tree.at());
  const DatasetPtr data = from_list({{"a.jpg", {}}}, LabelKind::none);
  std::filesystem::current_path(before);
  char path[4096];
  const storage::Location file = data->locate(0, path);
  EXPECT_EQ(::faccessat(file.directory, file.name, R_OK, 0), 0);
}

TEST(Subset, IsSeededUniqueSortedAndRightInItsFacts) {
  Tree tree;
  fill(tree);
  const DatasetPtr whole = open_kind(tree, "folder");
  const DatasetPtr a = take_subset(whole, 4, 42), again = take_subset(whole, 4, 42), other = take_subset(whole, 4, 43);
  EXPECT_EQ(a->size(), 4u);
  EXPECT_EQ(names_of(*a), names_of(*again));
  EXPECT_NE(names_of(*a), names_of(*other));
  Names names = names_of(*a), sorted = names;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(names, sorted);
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), 4u);
  EXPECT_EQ(a->facts().kind, "folder, subset 4");
  std::uint64_t total = 0;
  for (const std::uint64_t bytes : sizes_of(*a)) total += bytes;
  EXPECT_EQ(a->facts().total_bytes, total);
  EXPECT_EQ(a->facts().fingerprint, again->facts().fingerprint);
  EXPECT_NE(a->facts().fingerprint, other->facts().fingerprint);
  EXPECT_NE(a->facts().fingerprint, whole->facts().fingerprint);
}

TEST(Subset, TakesEverySampleEquallyOften) {
  Tree tree;
  fill(tree);
  const DatasetPtr whole = open_kind(tree, "folder");
  std::map<std::string, int> taken;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    for (const std::string& name : names_of(*take_subset(whole, 3, seed))) ++taken[name];
  }
  ASSERT_EQ(taken.size(), 10u);
  for (const auto& [name, count] : taken) EXPECT_NEAR(count, 600, 125) << name;  // six standard deviations
}

TEST(Subset, LargerThanTheSetIsAllOfItWithANote) {
  Tree tree;
  fill(tree);
  const DatasetPtr all = take_subset(open_kind(tree, "folder"), 11, 1);
  EXPECT_EQ(all->size(), 10u);
  EXPECT_TRUE(has_note(*all, "11"));
  EXPECT_TRUE(take_subset(open_kind(tree, "folder"), 10, 1)->facts().notes.size() < all->facts().notes.size());
  EXPECT_TRUE(error_of([&] { take_subset(all, 0, 1); }));
}

TEST(ClassSubset, KeepsWholeClassesAndNumbersThemAnew) {
  Tree tree;
  fill(tree);
  const DatasetPtr data = take_classes(open_kind(tree, "folder"), 3, 42);
  EXPECT_EQ(data->size(), 6u);
  EXPECT_EQ(labels_of(*data), (Labels{0, 0, 1, 1, 2, 2}));
  ASSERT_EQ(data->facts().classes.size(), 3u);
  for (std::uint64_t i = 0; i < data->size(); ++i) {
    const std::string& name = data->facts().classes[static_cast<std::size_t>(data->label(i).integer)];
    EXPECT_TRUE(data->name(i).starts_with(name + "/"));
  }
  EXPECT_EQ(data->facts().kind, "folder, 3 classes");
  EXPECT_EQ(data->facts().classes, take_classes(open_kind(tree, "csv"), 3, 42)->facts().classes);
  std::set<Names> choices;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    choices.insert(take_classes(open_kind(tree, "folder"), 3, seed)->facts().classes);
  EXPECT_EQ(choices.size(), 10u);  // all of them
}

TEST(ClassSubset, NeedsClasses) {
  Tree tree;
  fill(tree);
  EXPECT_TRUE(mentions(error_of([&] { take_classes(open_kind(tree, "npy"), 1, 1); }), "has no classes"));
  EXPECT_TRUE(mentions(error_of([&] { take_classes(open_kind(tree, "list"), 1, 1); }), "has no classes"));
  EXPECT_TRUE(has_note(*take_classes(open_kind(tree, "folder"), 6, 1), "all are taken"));
  EXPECT_TRUE(error_of([&] { take_classes(open_kind(tree, "folder"), 0, 1); }));
}

TEST(Inflate, RepeatsWithoutCopyingAndKeepsTheIdsOfTheFirstCopy) {
  Tree tree;
  fill(tree);
  const DatasetPtr once = open_kind(tree, "folder");
  const DatasetPtr data = inflate(once, 1'000'000);
  EXPECT_EQ(data->size(), 10'000'000u);
  EXPECT_EQ(data->id(3), once->id(3));
  EXPECT_NE(data->id(13), once->id(3));
  EXPECT_NE(data->id(13), data->id(23));
  EXPECT_EQ(data->name(9'999'993), once->name(3));
  EXPECT_EQ(data->label(9'999'993).integer, once->label(3).integer);
  EXPECT_EQ(data->location(13).bytes, once->location(3).bytes);
  EXPECT_EQ(data->facts().total_bytes, once->facts().total_bytes);
  EXPECT_EQ(data->facts().kind, "folder, inflated 1000000x");
  EXPECT_NE(data->facts().fingerprint, inflate(once, 2)->facts().fingerprint);
  EXPECT_EQ(inflate(once, 1), once);
  EXPECT_TRUE(error_of([&] { inflate(once, 0); }));
  EXPECT_TRUE(error_of([&] { inflate(once, std::uint64_t{1} << 60); }));
}

TEST(Open, AppliesClassesThenSamplesThenCopies) {
  Tree tree;
  fill(tree);
  OpenOptions options = without_cache();
  options.class_subset = 3;
  options.subset = 5;
  options.inflate = 2;
  const DatasetPtr data = open(tree.at("files"), options);
  EXPECT_EQ(data->size(), 10u);
  EXPECT_EQ(data->facts().classes.size(), 3u);
  EXPECT_EQ(data->facts().kind, "folder, 3 classes, subset 5, inflated 2x");
}

TEST(Open, OffersTheNearestNameForWhatIsMissing) {
  Tree tree;
  tree.write("train/a/1.jpg", "");
  const auto error = error_of([&] { open(tree.at("trian")); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::not_found);
  EXPECT_TRUE(mentions(error, "`" + tree.at("trian") + "`: No such file or directory"));
  EXPECT_EQ(error->hint(), "did you mean `" + tree.at("train") + "`?");
}

TEST(Open, SaysWhatItDoesNotReadAndWhatItDoes) {
  Tree tree;
  const auto refused = [](const std::string& address, std::string_view part) {
    const auto error = error_of([&] { open(address); });
    return error && error->kind() == ErrorKind::unsupported && mentions(error, part);
  };
  EXPECT_TRUE(refused("gs://bucket/prefix", "does not read gs:// addresses"));
  if (storage::find_backend("s3") == nullptr) {
    EXPECT_TRUE(refused("s3://bucket/prefix", "does not read s3:// addresses"));
    EXPECT_NE(error_of([] { open("s3://bucket/prefix"); })->hint().find("-DSTOKER_S3=ON"), std::string::npos);
  }
  EXPECT_TRUE(refused(tree.write("x.tar.gz", ""), "does not read .tar.gz archives"));
  EXPECT_TRUE(
      refused(tree.write("x.txt", ""), "a folder of files, an index .csv, a .npy array, a .pack or .tar shards"));
  EXPECT_TRUE(
      refused(tree.write("x.jpg", ""), "a folder of files, an index .csv, a .npy array, a .pack or .tar shards"));
  EXPECT_TRUE(refused("/dev/null", "it is not a file"));
  EXPECT_EQ(error_of([] { open(""); })->kind(), ErrorKind::usage);
  EXPECT_EQ(error_of([&] { open(tree.at("x.txt/below")); })->kind(), ErrorKind::not_found);
}

TEST(SubsetJson, HoldsSeedCountIdsAndPaths) {
  Tree tree;
  tree.write("data/quote\"back\\slash\n\xC3\xA9.jpg", "");
  tree.write("data/plain.jpg", "");
  const DatasetPtr data = open(tree.at("data"), without_cache());
  write_subset_json(*data, 42, tree.at("subset.json"));
  const Json json = Json::parse_or_null(os::read_text(tree.at("subset.json")));
  EXPECT_EQ(json["seed"], 42);
  EXPECT_EQ(json["count"], 2);
  EXPECT_EQ(json["ids"].get<std::vector<std::uint64_t>>(), ids_of(*data));
  EXPECT_EQ(json["paths"].get<Names>(), names_of(*data));
}

TEST(SubsetJson, WritesNamesThatAreNotUtf8AsPythonDoes) {
  Tree tree;
  tree.write("data/\xFF\xC3.jpg", "");
  write_subset_json(*open(tree.at("data"), without_cache()), 1, tree.at("subset.json"));
  EXPECT_NE(os::read_text(tree.at("subset.json")).find("\"\\udcff\\udcc3.jpg\""), std::string::npos);
}

TEST(SubsetJson, IsWrittenWholeOrNotAtAll) {
  Tree tree;
  fill(tree);
  const DatasetPtr data = open_kind(tree, "folder");
  tree.write("out/subset.json", "old");
  {
    const os::InjectFault disk_full(os::Call::write, {.error_number = ENOSPC, .times = 100});
    EXPECT_TRUE(mentions(error_of([&] { write_subset_json(*data, 1, tree.at("out/subset.json")); }), "No space left"));
  }
  EXPECT_EQ(os::read_text(tree.at("out/subset.json")), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(tree.at("out")), {}), 1);
}

}  // namespace
}  // namespace stoker::dataset
