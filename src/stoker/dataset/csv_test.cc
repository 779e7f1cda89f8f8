#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/dataset/tree_test.h"

namespace stoker::dataset {
namespace {

using Names = std::vector<std::string>;
using Labels = std::vector<std::int64_t>;

// A folder with a.png (1 byte), b.png (2), `c, "d".png` (3), and an index.csv of the given text.
class Index {
 public:
  explicit Index(std::string_view text, std::string_view csv = "index.csv") : csv_(tree.at(csv)) {
    tree.write("a.png", "1");
    tree.write("b.png", "12");
    tree.write("c, \"d\".png", "123");
    tree.write(csv, text);
  }
  DatasetPtr open(std::string label = "") const {
    OpenOptions options;
    options.label = std::move(label);
    return dataset::open(csv_, options);
  }
  std::optional<Error> error(std::string label = "") const {
    return error_of([&] { open(std::move(label)); });
  }
  Tree tree;

 private:
  std::string csv_;
};

TEST(Csv, RefusesTwoColumnsOfOneNameWhereOneIsNeeded) {
  EXPECT_TRUE(mentions(Index("path,label,x,label\na.png,1,2,3\n").error(), "columns 2 and 4 are both named `label`"));
  EXPECT_TRUE(
      mentions(Index("path,score,score\na.png,1,2\n").error("score"), "columns 2 and 3 are both named `score`"));
  EXPECT_TRUE(mentions(Index("path,label,Path\na.png,1,b.png\n").error(), "columns 1 and 3 are both named `Path`"));
  EXPECT_EQ(Index("path,,\na.png,1,2\n").open()->facts().columns, (Names{"", ""})) << "nobody asks for them";
}

TEST(Csv, SeveralLabelColumnsAreOneRowOfNumbers) {
  const Index index("path,left,who,right,score\na.png,1,x,2,0.5\nb.png,3,y,4,1\n");
  const auto open = [&](Names columns) {
    OpenOptions options;
    options.label_columns = std::move(columns);
    return dataset::open(index.tree.at("index.csv"), options);
  };
  const DatasetPtr both = open({"right", "left"});
  EXPECT_EQ(both->facts().label_columns, (Names{"right", "left"}));
  EXPECT_EQ(both->facts().columns, (Names{"who", "score"}));
  EXPECT_EQ(both->facts().label_kind, LabelKind::integer);
  EXPECT_EQ(both->label_at(0, 0).integer, 2);
  EXPECT_EQ(both->label_at(0, 1).integer, 1);
  EXPECT_EQ(take_indices(both, {1})->label_at(0, 0).integer, 4) << "also through a view";
  EXPECT_NE(both->facts().fingerprint, open({"left", "right"})->facts().fingerprint);

  const DatasetPtr mixed = open({"left", "score"});
  EXPECT_EQ(mixed->facts().label_kind, LabelKind::real);
  EXPECT_EQ(mixed->label_at(1, 0).real, 3.0F);
  EXPECT_EQ(mixed->label_at(0, 1).real, 0.5F);

  const DatasetPtr one = open({"left"});
  EXPECT_TRUE(one->facts().label_columns.empty());
  EXPECT_EQ(one->facts().fingerprint, index.open("left")->facts().fingerprint);
}

TEST(Csv, RefusesLabelColumnsThatAreNotNumbersOrThere) {
  const Index index("path,left,who,right\na.png,1,x,2\nb.png,3,y,\n");
  const auto error = [&](Names columns) {
    OpenOptions options;
    options.label_columns = std::move(columns);
    return error_of([&] { dataset::open(index.tree.at("index.csv"), options); });
  };
  EXPECT_TRUE(mentions(error({"left", "who"}), "line 2: the label (`who`) is not a number"));
  EXPECT_TRUE(mentions(error({"left", "right"}), "line 3: the label (`right`) is empty"));
  EXPECT_TRUE(mentions(error({"left", "rihgt"}), "cannot find the label column `rihgt`"));
  EXPECT_TRUE(mentions(error({"left", "left"}), "the label column `left` is given twice"));
  EXPECT_TRUE(mentions(error({"left", ""}), "a label column has no name"));
}

TEST(Csv, NamesWhatIsNotAFileAndNeverOpensIt) {
  const Index index("path\npipe.png\n");
  ASSERT_EQ(::mkfifo(index.tree.at("pipe.png").c_str(), 0600), 0);
  EXPECT_TRUE(mentions(index.error(), "index.csv line 2: `pipe.png` is a pipe, not a file"));
  EXPECT_TRUE(mentions(Index("path\n/dev/null\n").error(), "`/dev/null` is a device, not a file"));
  EXPECT_TRUE(mentions(Index("path\n.\n").error(), "`.` is a folder, not a file"));
}

TEST(List, NamesWhatIsNotAFileAndNeverOpensIt) {
  const Tree tree;
  ASSERT_EQ(::mkfifo(tree.at("pipe.png").c_str(), 0600), 0);
  const auto error = error_of([&] { from_list({{tree.at("pipe.png"), {}}}, LabelKind::none); });
  EXPECT_TRUE(mentions(error, "cannot find sample 0 of the list: `" + tree.at("pipe.png") + "` is a pipe, not a file"));
}

TEST(Csv, ReadsPathsLabelsAndFurtherColumns) {
  const Index index("hu_offset,path,label,series\n32768,a.png,cat,x\n-1.5e3,b.png,ant,\n,\"c, \"\"d\"\".png\",cat,7\n");
  const DatasetPtr data = index.open();
  EXPECT_EQ(names_of(*data), (Names{"a.png", "b.png", "c, \"d\".png"}));
  EXPECT_EQ(labels_of(*data), (Labels{1, 0, 1}));
  EXPECT_EQ(sizes_of(*data), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(data->facts().classes, (Names{"ant", "cat"}));
  EXPECT_EQ(data->facts().columns, (Names{"hu_offset", "series"}));
  EXPECT_EQ(data->facts().kind, "index.csv");
  EXPECT_EQ(data->facts().total_bytes, 6u);
  EXPECT_EQ(data->facts().largest_bytes, 3u);
  EXPECT_EQ(data->column(0, 0), 32768);
  EXPECT_EQ(data->column(0, 1), -1500);
  EXPECT_TRUE(std::isnan(data->column(0, 2)));
  EXPECT_TRUE(std::isnan(data->column(1, 0)));
  EXPECT_EQ(data->column(1, 2), 7);
  EXPECT_TRUE(std::isnan(data->column(2, 0)));
  EXPECT_EQ(data->media(2), codec::media_named("png"));
  char path[4096];
  const storage::Location file = data->locate(2, path);
  EXPECT_EQ(::faccessat(file.directory, file.name, R_OK, 0), 0);
}

TEST(Csv, ReadsWhatSpreadsheetsWrite) {
  const Index index("\xEF\xBB\xBFPath,Size\r\n\"a.png\",1\r\n\r\nb.png,2");
  const DatasetPtr data = index.open();
  EXPECT_EQ(names_of(*data), (Names{"a.png", "b.png"}));
  EXPECT_EQ(data->column(0, 1), 2);
  EXPECT_EQ(data->facts().label_kind, LabelKind::none);
  EXPECT_EQ(labels_of(*data), (Labels{-1, -1}));
}

TEST(Csv, TakesWholeNumbersAsTheyAreAndRealsAsFloats) {
  const Index index("file,y,z,label\na.png,7,1,3\nb.png,-2,0.5,900000000000\n");
  EXPECT_EQ(labels_of(*index.open("y")), (Labels{7, -2}));
  EXPECT_TRUE(index.open("y")->facts().classes.empty());
  EXPECT_EQ(labels_of(*index.open()), (Labels{3, 900000000000}));
  const DatasetPtr real = index.open("z");
  EXPECT_EQ(real->facts().label_kind, LabelKind::real);
  EXPECT_EQ(real->label(1).real, 0.5f);
  EXPECT_EQ(real->facts().columns, (Names{"y", "label"}));
}

TEST(Csv, SortsClassesByTheirTextWhateverTheirQuotes) {
  const Index index("path,label\na.png,\"b\"\nb.png,b\n\"c, \"\"d\"\".png\",\"a \"\"x\"\"\"\n");
  const DatasetPtr data = index.open();
  EXPECT_EQ(data->facts().classes, (Names{"a \"x\"", "b"}));
  EXPECT_EQ(labels_of(*data), (Labels{1, 1, 0}));
}

TEST(Csv, FindsThePathColumnByItsFirstValueWhereNoNameFits) {
  const Index index("what,where\n1,a.png\n2,b.png\n");
  const DatasetPtr data = index.open();
  EXPECT_EQ(names_of(*data), (Names{"a.png", "b.png"}));
  EXPECT_EQ(data->facts().columns, (Names{"what"}));
  EXPECT_TRUE(has_note(*data, "`where`"));
}

TEST(Csv, PrefersTheUsualNamesForThePathColumn) {
  const Index index("image,png_path,id\nx,y,a.png\n");
  EXPECT_TRUE(mentions(index.error(), "no such file: `x`"));
  const Index usual("id,png_path\n1,a.png\n");
  EXPECT_EQ(names_of(*usual.open()), (Names{"a.png"}));
}

TEST(Csv, LooksInTheFolderAboveOneNamedIndex) {
  const Index index("png_path\nseries/1.png\nlocal.png\n", "processed/_index/index.csv");
  index.tree.write("processed/series/1.png", "12345");
  index.tree.write("processed/_index/local.png", "1234567");
  const DatasetPtr data = index.open();
  EXPECT_EQ(sizes_of(*data), (std::vector<std::uint64_t>{5, 7}));
  EXPECT_EQ(names_of(*data), (Names{"series/1.png", "local.png"}));
  char path[4096];
  for (std::uint64_t i = 0; i < 2; ++i) {
    const storage::Location file = data->locate(i, path);
    EXPECT_EQ(::faccessat(file.directory, file.name, R_OK, 0), 0) << path;
  }
  const Index elsewhere("png_path\nseries/1.png\n", "processed/index/index.csv");
  elsewhere.tree.write("processed/series/1.png", "12345");
  EXPECT_TRUE(mentions(elsewhere.error(), "no such file"));
}

TEST(Csv, TakesAbsolutePathsAsTheyAre) {
  Tree elsewhere;
  const std::string path = elsewhere.write("x.png", "1234");
  const Index index("path\n" + path + "\n", "_index/index.csv");
  const DatasetPtr data = index.open();
  char out[4096];
  const storage::Location file = data->locate(0, out);
  EXPECT_EQ(file.bytes, 4u);
  EXPECT_EQ(file.name, path);
}

TEST(Csv, GivesRepeatedPathsIdsOfTheirOwn) {
  const Index index("path\na.png\nb.png\na.png\na.png\n");
  const DatasetPtr data = index.open();
  const std::vector<std::uint64_t> ids = ids_of(*data);
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 4u);
  EXPECT_EQ(ids[0], Index("path\na.png\n").open()->id(0));
  for (const std::uint64_t id : ids) EXPECT_LT(id, std::uint64_t{1} << 63);
}

TEST(Csv, NamesTheLineOfEveryProblem) {
  EXPECT_TRUE(
      mentions(Index("path,label\na.png,1\nb.png\n").error(), "index.csv line 3: 1 field where the header names 2"));
  EXPECT_TRUE(mentions(Index("path\na.png\n\n\"b.png\n").error(), "index.csv line 4: a quote is opened"));
  EXPECT_TRUE(mentions(Index("path\n\"a\"x\n").error(), "index.csv line 2: there is text"));
  EXPECT_TRUE(mentions(Index("path,label\na.png,1\n,2\n").error(), "index.csv line 3: `path` is empty"));
  EXPECT_TRUE(mentions(Index("path,label\n\"a.png\",\"x\ny\"\nb.png,\n").error(),
                       "index.csv line 4: the label (`label`) is empty"));
  EXPECT_TRUE(mentions(Index(std::string_view("path\na\0.png\n", 12)).error(), "index.csv line 2: the path has a NUL"));
  EXPECT_TRUE(
      mentions(Index("path\n" + std::string(5000, 'x') + "\n").error(), "index.csv line 2: the path is longer"));
}

TEST(Csv, NamesTheFirstMissingFileAndCountsTheRest) {
  const auto one = Index("path\na.png\nx.png\n").error();
  ASSERT_TRUE(one);
  EXPECT_EQ(one->kind(), ErrorKind::not_found);
  EXPECT_EQ(one->message(), "index.csv line 3: no such file: `x.png`");
  EXPECT_TRUE(mentions(Index("path\nx.png\na.png\ny.png\n").error(),
                       "line 2: no such file: `x.png`, and 1 more of 3 are missing"));
  const Index folder("path\nfolder\n");
  folder.tree.make_folder("folder");
  EXPECT_TRUE(mentions(folder.error(), "`folder` is a folder, not a file"));
}

TEST(Csv, KeepsTheRowOfAMissingFileWhereLossesAreSkipped) {
  const std::string rows = "path,label\na.png,1\nx.png,2\nb.png,3\ny.png,4\n";
  const Index index(rows), whole(rows);
  whole.tree.write("x.png", "1");
  whole.tree.write("y.png", "1");
  OpenOptions options;
  options.skip_losses = true;
  const DatasetPtr data = open(index.tree.at("index.csv"), options);
  EXPECT_EQ(names_of(*data), (Names{"a.png", "x.png", "b.png", "y.png"}));
  EXPECT_EQ(labels_of(*data), (Labels{1, 2, 3, 4}));
  EXPECT_EQ(sizes_of(*data), (std::vector<std::uint64_t>{1, 0, 2, 0}));
  EXPECT_EQ(ids_of(*data), ids_of(*whole.open()));
  EXPECT_TRUE(has_note(*data, "2 of 4 files are missing; the first: no such file: `x.png`"));
  EXPECT_TRUE(data->facts().losses.empty()) << "the samples that cannot be read are named as such";
}

TEST(Csv, OfWhichNoFileExistsOrOneIsAPipeIsRefusedThoughLossesAreSkipped) {
  OpenOptions options;
  options.skip_losses = true;
  const auto refusal = [&](const Index& index) { return error_of([&] { open(index.tree.at("index.csv"), options); }); };
  const auto none = refusal(Index("path\nx.png\ny.png\n"));
  EXPECT_TRUE(mentions(none, "index.csv line 2: no such file: `x.png`, and 1 more of 2 are missing"));
  EXPECT_EQ(none->kind(), ErrorKind::not_found);
  const Index folder("path\na.png\nx.png\nfolder\n");
  folder.tree.make_folder("folder");
  EXPECT_TRUE(mentions(refusal(folder), "index.csv line 4: `folder` is a folder, not a file"));
}

TEST(Csv, ListsTheColumnsWhenTheLabelIsNotAmongThem) {
  const auto error = Index("path,malignancy,age\na.png,1,2\n").error("malignacy");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::not_found);
  EXPECT_TRUE(mentions(error, "`path`, `malignancy`, `age`"));
  EXPECT_EQ(error->hint(), "did you mean `malignancy`?");
}

TEST(Csv, RefusesWhatHasNoHeaderNoRowsOrNoPaths) {
  EXPECT_TRUE(mentions(Index("").error(), "it is empty"));
  EXPECT_TRUE(mentions(Index("\n\n").error(), "it is empty"));
  EXPECT_TRUE(mentions(Index("path,label\n").error(), "no rows"));
  EXPECT_TRUE(mentions(Index("x,y\n1,2\n").error(), "cannot find the path column"));
  EXPECT_TRUE(mentions(Index("path;label\na.png;1\n").error(), "not separated by commas"));
  EXPECT_TRUE(mentions(Index("\xFF\xFEp").error(), "UTF-16"));
}

TEST(Csv, NamesLineEndsOfCarriageReturnsAlone) {
  for (const char* const text : {"path,label\ra.png,1\rb.png,2\r", "path\ra.png\rb.png",
                                 "\"path\",\"label\"\r\"a.png\",\"1\"\r", "\xEF\xBB\xBFpath,label\ra.png,1\r"}) {
    const auto error = Index(text).error();
    ASSERT_TRUE(error) << text;
    EXPECT_TRUE(mentions(error, "its lines end with a carriage return (CR) alone")) << error->message();
    EXPECT_EQ(error->hint(), "save it with LF or CRLF line ends");
  }
  EXPECT_EQ(names_of(*Index("path,label\r\na.png,1\r\n").open()), Names{"a.png"});
}

TEST(Csv, RefusesAnIntegerLabelBeyond64BitsByName) {
  const auto one = Index("path,label\na.png,7\nb.png,9223372036854775808\n").error();
  EXPECT_TRUE(mentions(one, "index.csv line 3: the label (`label`) 9223372036854775808 is beyond"));
  EXPECT_TRUE(mentions(Index("path,label\na.png,-9223372036854775809\nb.png,1\n").error(), "line 2: the label"));
  EXPECT_EQ(labels_of(*Index("path,label\na.png,9223372036854775807\nb.png,-9223372036854775808\n").open()),
            (Labels{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}));

  const Index several("path,x,y\na.png,1,2\nb.png,3,99999999999999999999\n");
  OpenOptions options;
  options.label_columns = {"x", "y"};
  EXPECT_TRUE(mentions(error_of([&] { open(several.tree.at("index.csv"), options); }), "line 3: the label (`y`) 9999"));

  const DatasetPtr real = Index("path,label\na.png,0.5\nb.png,9223372036854775808\n").open();
  EXPECT_EQ(real->facts().label_kind, LabelKind::real) << "a column of reals may hold one";
  const DatasetPtr texts = Index("path,label\na.png,x\nb.png,9223372036854775808\n").open();
  EXPECT_EQ(texts->facts().classes, (Names{"9223372036854775808", "x"})) << "and so may names of classes";
}

TEST(Csv, FindsTheLabelColumnInAnyCase) {
  const Index index("Path,LABEL\na.png,1\nb.png,2\n");
  EXPECT_EQ(labels_of(*index.open()), (Labels{1, 2}));
  EXPECT_EQ(labels_of(*index.open("Label")), (Labels{1, 2}));
  EXPECT_EQ(labels_of(*Index("path,Label,label\na.png,1,3\nb.png,2,4\n").open()), (Labels{3, 4}));
  EXPECT_TRUE(mentions(Index("path,Label,LABEL\na.png,1,3\n").error(), "columns 2 and 3 are both named"));
}

TEST(Csv, WithoutAHeaderLosesNoSample) {
  for (const char* const text : {"a.png,1\nb.png,2\n", "1,a.png\n2,b.png\n", "a.png,image\nb.png,image\n"}) {
    const auto error = Index(text).error();
    ASSERT_TRUE(error) << text;
    EXPECT_TRUE(mentions(error, "it has no header line; `a.png` in its first line is a file")) << error->message();
    EXPECT_NE(error->hint().find("`path,label`"), std::string::npos);
  }
  const Index odd("path,label\na.png,1\n");
  odd.tree.write("label", "a file of that name");
  EXPECT_EQ(odd.open()->size(), 1u);
}

TEST(Csv, WithoutALabelColumnNamesTheOthers) {
  const DatasetPtr data = Index("path,diagnosis,age\na.png,1,2\n").open();
  EXPECT_TRUE(has_note(*data,
                       "no column is named `label`, so the samples have no labels; the label may be one of "
                       "`diagnosis`, `age`"));
  EXPECT_TRUE(Index("path\na.png\n").open()->facts().notes.empty());
}

TEST(Csv, WithAnEmptyLabelColumnHasNoLabelsAndSaysSo) {
  const Index index("path,label\na.png,\nb.png,\n");
  EXPECT_EQ(index.open()->facts().label_kind, LabelKind::none);
  EXPECT_TRUE(has_note(*index.open(), "column `label` is empty"));
}

TEST(Csv, IsTheSameForAnyNumberOfThreads) {
  std::string text = "path,label\n";
  const Index index("");
  for (int i = 0; i < 3000; ++i) {
    text += fmt::format("{}/{}.png,{}\n", i % 7, i, i % 5);
    index.tree.write(fmt::format("{}/{}.png", i % 7, i), std::string(static_cast<std::size_t>(i % 11), 'x'));
  }
  const std::string csv = index.tree.write("index.csv", text);
  OpenOptions options;
  options.threads = 1;
  const DatasetPtr one = open(csv, options);
  options.threads = 6;
  const DatasetPtr six = open(csv, options);
  EXPECT_EQ(one->size(), 3000u);
  EXPECT_EQ(sizes_of(*one), sizes_of(*six));
  EXPECT_EQ(one->facts().fingerprint, six->facts().fingerprint);
}

TEST(Csv, StaysAsItWasReadWhenTheFileIsRewritten) {
  const Index index("path,label\na.png,1\nb.png,2\n");
  const DatasetPtr data = index.open();
  index.tree.write("index.csv", "");
  EXPECT_EQ(names_of(*data), (Names{"a.png", "b.png"}));
}

}  // namespace
}  // namespace stoker::dataset
