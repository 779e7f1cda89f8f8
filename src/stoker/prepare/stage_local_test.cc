// Copies of local folders: what is written, kept, removed and refused, and what a fault leaves.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/base/random.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/os/fault.h"
#include "stoker/prepare/contents_test.h"
#include "stoker/prepare/object_reader.h"
#include "stoker/prepare/stage.h"

namespace stoker::prepare {
namespace {

namespace fs = std::filesystem;
using dataset::error_of;
using dataset::mentions;
using dataset::Tree;

// Three classes of sounds at src/, and what a copy of them holds.
struct Local {
  Local() {
    for (const char* const name : {"a/1.wav", "a/2.wav", "b/3.wav", "c/4.wav"}) put(name, fmt::format("of {}", name));
  }
  void put(const std::string& name, const std::string& bytes) {
    tree.write("src/" + name, bytes);
    wanted[name] = bytes;
  }
  StageOptions options() const {
    StageOptions options;
    options.source = tree.at("src");
    options.destination = tree.at("copy");
    options.cache_dir = tree.at("cache");
    return options;
  }
  Contents copied() const { return contents_of(tree.at("copy")); }

  Tree tree;
  Contents wanted;
};

TEST(StageLocal, CopiesAFolderAndSeesWhatChanged) {
  Local local;
  local.put("a/large.wav", std::string(kPieceBytes + 99, 'x'));
  stage(local.options());
  EXPECT_EQ(local.copied(), local.wanted);
  EXPECT_TRUE(stage(local.options()).idle);
  local.put("b/3.wav", "longer than before");
  const StageReport report = stage(local.options());
  EXPECT_EQ(report.fetched, 1u);
  EXPECT_EQ(report.requests, 0u);
  EXPECT_EQ(local.copied(), local.wanted);
}

TEST(StageLocal, WritesOverNothingThatItDidNotWrite) {
  Local local;
  local.tree.write("copy/mine.txt", "a letter");
  EXPECT_TRUE(mentions(error_of([&] { stage(local.options()); }), "the folder holds files that stage did not write"));
  EXPECT_EQ(local.copied(), (Contents{{"mine.txt", "a letter"}}));
  StageOptions forced = local.options();
  forced.force = true;
  stage(forced);
  local.wanted["mine.txt"] = "a letter";
  EXPECT_EQ(local.copied(), local.wanted);

  local.tree.write("copy/a/1.wav", "edited by hand");
  local.put("a/1.wav", "newer in the source");
  const auto error = error_of([&] { stage(local.options()); });
  EXPECT_TRUE(mentions(error, "1 file there was changed since it was copied, such as `a/1.wav`"));
  EXPECT_EQ(local.copied()["a/1.wav"], "edited by hand");
  stage(forced);
  EXPECT_EQ(local.copied(), local.wanted);
}

TEST(StageLocal, RefusesAFileInTheWayThatAppearedSince) {
  Local local;
  stage(local.options());
  local.put("c/new.wav", "from the source");
  local.tree.write("copy/c/new.wav", "from somebody else");
  EXPECT_TRUE(mentions(error_of([&] { stage(local.options()); }), "would be replaced that stage did not write"));
}

TEST(StageLocal, RemovesOnlyWhatItWroteAndOnlyWhenAsked) {
  Local local;
  stage(local.options());
  local.tree.write("copy/c/mine.txt", "keep");
  StageOptions fewer = local.options();
  fewer.narrowing.class_list = {"a"};
  EXPECT_TRUE(mentions(error_of([&] { stage(fewer); }), "2 files of an earlier choice, such as `b/3.wav`"));
  EXPECT_EQ(local.copied().size(), 5u);
  fewer.prune = true;
  const StageReport report = stage(fewer);
  EXPECT_EQ(report.pruned, 2u);
  EXPECT_EQ(local.copied(), (Contents{{"a/1.wav", "of a/1.wav"}, {"a/2.wav", "of a/2.wav"}, {"c/mine.txt", "keep"}}));
  EXPECT_FALSE(fs::exists(local.tree.at("copy/b")));
}

TEST(StageLocal, KeepsWhatTheSourceLostAndSaysSo) {
  Local local;
  stage(local.options());
  local.tree.remove("src/b/3.wav");
  const StageReport report = stage(local.options());
  EXPECT_EQ(local.copied(), local.wanted);
  ASSERT_FALSE(report.notes.empty());
  EXPECT_NE(report.notes.back().in_python().find("no longer in the source: kept"), std::string::npos);
}

TEST(StageLocal, RefusesAnotherSourceAndItself) {
  Local local;
  stage(local.options());
  local.tree.write("other/x/1.wav", "x");
  StageOptions other = local.options();
  other.source = local.tree.at("other");
  EXPECT_TRUE(mentions(error_of([&] { stage(other); }), "it holds a copy of another source"));
  StageOptions itself = local.options();
  itself.destination = local.tree.at("src/below");
  EXPECT_TRUE(mentions(error_of([&] { stage(itself); }), "into itself"));
}

TEST(StageLocal, TakesTheSameClassesOfEverySplit) {
  Tree tree;
  for (int c = 0; c < 10; ++c) {
    for (int i = 0; i < 8; ++i) {
      tree.write(fmt::format("src/train/c{}/{}.wav", c, i), "t");
      if (c != 4) tree.write(fmt::format("src/val/c{}/{}.wav", c, i), "v");
    }
  }
  StageOptions options;
  options.source = tree.at("src");
  options.destination = tree.at("copy");
  options.narrowing.class_subset = 9;
  options.splits = parse_splits("train=20,val=5");
  const StageReport report = stage(options);
  ASSERT_EQ(report.splits.size(), 2u);
  EXPECT_EQ(report.splits[0].files, 20u);
  EXPECT_EQ(report.splits[1].files, 5u);
  EXPECT_EQ(report.classes.size(), 9u);
  std::set<std::string> classes;
  std::map<char, int> counts;
  for (const auto& [name, bytes] : contents_of(tree.at("copy"))) {
    classes.insert(name.substr(name.find('/') + 1, 2));
    ++counts[bytes[0]];
    EXPECT_EQ(bytes, name.starts_with("train/") ? "t" : "v");
  }
  EXPECT_EQ(counts, (std::map<char, int>{{'t', 20}, {'v', 5}}));
  for (const std::string& name : classes)
    EXPECT_TRUE(std::find(report.classes.begin(), report.classes.end(), name) != report.classes.end());
}

// The labels of `c9` in each split, and in the source narrowed to the same classes.
TEST(StageLocal, LabelsAgreeBetweenTheSplitsAndWithTheSource) {
  Tree tree;
  for (int c = 0; c < 10; ++c) {
    for (int i = 0; i < 4; ++i) {
      tree.write(fmt::format("src/train/c{}/{}.wav", c, i), "t");
      if (c != 4) tree.write(fmt::format("src/val/c{}/{}.wav", c, i), "v");
    }
  }
  StageOptions options;
  options.source = tree.at("src");
  options.destination = tree.at("copy");
  options.narrowing.class_list = {"c2", "c4", "c7", "c9"};
  options.splits = parse_splits("train=3,val=3");
  const StageReport report = stage(options);
  EXPECT_EQ(report.source_kind, "folder");
  for (const char* const split : {"train", "val"}) {
    const dataset::DatasetPtr copy = dataset::open(tree.at(fmt::format("copy/{}", split)), dataset::without_cache());
    EXPECT_EQ(copy->facts().classes, options.narrowing.class_list) << split;
    for (std::uint64_t i = 0; i < copy->size(); ++i) {
      const std::string name = copy->name(i).substr(0, 2);
      EXPECT_EQ(options.narrowing.class_list.at(static_cast<std::size_t>(copy->label(i).integer)), name);
    }
  }
  options.splits = parse_splits("train=3,test=3");
  const auto error = error_of([&] { stage(options); });
  EXPECT_TRUE(mentions(error, "has no folder `test` with samples"));
  EXPECT_EQ(error->hint(), "it has train, val");
}

TEST(StageLocal, SharesSamplesOutWhereTheSourceHasNoSplits) {
  Local local;
  StageOptions options = local.options();
  options.splits = parse_splits("train=3,val");
  stage(options);
  std::set<std::string> names;
  for (const auto& [name, bytes] : local.copied()) names.insert(name.substr(name.find('/') + 1));
  EXPECT_EQ(names.size(), 4u);
  EXPECT_EQ(local.copied().size(), 4u);
  options.splits = parse_splits("train=3,val=2");
  EXPECT_TRUE(mentions(error_of([&] { stage(options); }), "the splits take more than that"));
}

TEST(StageLocal, WritesTheIndexOfTheRowsThatWereChosen) {
  Tree tree;
  std::string csv = "path,label,age\n";
  for (int i = 0; i < 9; ++i) {
    tree.write(fmt::format("src/im, {}.wav", i), fmt::format("{}", i));
    csv += fmt::format("\"im, {}.wav\",{},{}\n", i, "abc"[i % 3], i * 10);
  }
  tree.write("src/index.csv", csv);
  StageOptions options;
  options.source = tree.at("src/index.csv");
  options.destination = tree.at("copy");
  options.narrowing.class_list = {"a", "c"};
  stage(options);
  const dataset::DatasetPtr copy = dataset::open(tree.at("copy/index.csv"), dataset::without_cache());
  dataset::OpenOptions opening = dataset::without_cache();
  options.narrowing.put_into(opening);
  const dataset::DatasetPtr original = dataset::open(options.source, opening);
  EXPECT_EQ(dataset::names_of(*copy), dataset::names_of(*original));
  EXPECT_EQ(dataset::labels_of(*copy), dataset::labels_of(*original));
  EXPECT_EQ(copy->facts().classes, original->facts().classes);
  EXPECT_EQ(copy->facts().columns, original->facts().columns);
  EXPECT_EQ(copy->column_text(0, 3), original->column_text(0, 3));
  EXPECT_TRUE(stage(options).idle);
}

TEST(StageLocal, AnIndexKeepsTheLabelsWhereClassesHaveNoRowLeft) {
  Tree tree;
  std::string csv = "path,label\n";
  for (int i = 0; i < 8; ++i) {
    tree.write(fmt::format("src/{}.wav", i), "x");
    csv += fmt::format("{}.wav,{}\n", i, "abcdefgh"[i]);
  }
  tree.write("src/index.csv", csv);
  StageOptions options;
  options.source = tree.at("src/index.csv");
  options.destination = tree.at("copy");
  options.narrowing.subset = 3;
  const StageReport report = stage(options);
  const dataset::DatasetPtr copy = dataset::open(tree.at("copy/index.csv"), dataset::without_cache());
  dataset::OpenOptions opening = dataset::without_cache();
  options.narrowing.put_into(opening);
  EXPECT_EQ(dataset::labels_of(*copy), dataset::labels_of(*dataset::open(options.source, opening)));
  ASSERT_FALSE(report.notes.empty());
  EXPECT_EQ(report.notes.back(), "index.csv: 5 of 8 classes have no sample here, so labels are written as numbers");
}

TEST(StageLocal, RefusesNamesThatItNeedsForItsOwnFiles) {
  for (const char* const name : {".stage.jsonl", "index.csv", ".stage-0.part"}) {
    Tree tree;
    tree.write("src/in.wav", "x");
    tree.write(fmt::format("src/{}", name), "y");
    tree.write("src/list.csv", fmt::format("path,label\nin.wav,a\n{},b\n", name));
    StageOptions options;
    options.source = tree.at("src/list.csv");
    options.destination = tree.at("copy");
    EXPECT_TRUE(mentions(error_of([&] { stage(options); }),
                         fmt::format("cannot copy `{}`: stage writes a file of its own under this name", name)));
    options.on_error = loader::OnError::skip;
    EXPECT_EQ(stage(options).bad.size(), 1u);
    EXPECT_EQ(os::read_text(tree.at("copy/in.wav")), "x");
  }
}

TEST(StageLocal, WritesThroughNoLink) {
  Local local;
  local.tree.write("elsewhere/1.wav", "mine");
  local.tree.write("copy/x.txt", "");
  fs::create_directory_symlink(local.tree.at("elsewhere"), local.tree.at("copy/a"));
  StageOptions forced = local.options();
  forced.force = true;
  EXPECT_TRUE(mentions(error_of([&] { stage(forced); }), "is a symbolic link"));
  EXPECT_EQ(os::read_text(local.tree.at("elsewhere/1.wav")), "mine");
}

TEST(StageLocal, NamesThatLeaveTheFolderAreBad) {
  Tree tree;
  tree.write("outside.wav", "x");
  tree.write("src/in.wav", "x");
  tree.write("src/index.csv", "path,label\n../outside.wav,a\nin.wav,b\n");
  StageOptions options;
  options.source = tree.at("src/index.csv");
  options.destination = tree.at("copy");
  EXPECT_TRUE(mentions(error_of([&] { stage(options); }), "not a path below the folder of the copy"));
  options.on_error = loader::OnError::skip;
  const StageReport report = stage(options);
  ASSERT_EQ(report.bad.size(), 1u);
  EXPECT_EQ(os::read_text(tree.at("copy/index.csv")), "path,label\nin.wav,1\n") << "b is the second class";
}

TEST(StageLocal, AFullDiskIsSaidAndWhatIsWholeStays) {
  Local local;
  {
    const os::InjectFault fault(os::Call::write, {.error_number = ENOSPC, .skip = 3, .times = 100});
    const auto error = error_of([&] { stage(local.options()); });
    ASSERT_TRUE(error);
    EXPECT_TRUE(mentions(error, "No space left on device"));
    EXPECT_NE(error->hint().find("run the same command again"), std::string::npos);
  }
  for (const auto& [name, bytes] : local.copied()) EXPECT_EQ(bytes, local.wanted.at(name));
  stage(local.options());
  EXPECT_EQ(local.copied(), local.wanted);
}

// A write of a file fails, then none; or the manifest has no room either, until a whole file has given some up.
TEST(StageLocal, AFullDiskKeepsWhatIsWholeAndTheNextRunGoesOn) {
  for (const std::uint32_t times : {1, 2}) {
    Local local;
    std::optional<Error> error;
    {
      const os::InjectFault fault(os::Call::write, {.error_number = ENOSPC, .skip = 4, .times = times});
      error = error_of([&] { stage(local.options()); });
    }
    EXPECT_TRUE(mentions(error, "No space left on device"));
    const std::size_t kept = local.copied().size();
    EXPECT_GE(kept, 1u) << times;
    EXPECT_LT(kept, 4u) << times;
    EXPECT_EQ(stage(local.options()).kept, kept);
    EXPECT_EQ(local.copied(), local.wanted);
  }
}

// Whatever call fails, and whenever: no half file, and the next run completes the copy.
TEST(StageLocal, AFaultAnywhereLeavesWholeFilesOnly) {
  for (const os::Call call : {os::Call::write, os::Call::fsync, os::Call::rename, os::Call::open}) {
    for (const std::uint32_t skip : {0, 1, 2, 4, 7}) {
      Local local;
      {
        const os::InjectFault fault(call, {.error_number = EIO, .skip = skip});
        (void)error_of([&] { stage(local.options()); });
      }
      for (const auto& [name, bytes] : local.copied()) {
        ASSERT_TRUE(local.wanted.contains(name)) << name;
        ASSERT_EQ(bytes, local.wanted.at(name));
      }
      stage(local.options());
      ASSERT_EQ(local.copied(), local.wanted);
    }
  }
}

TEST(StageLocal, RefusesASecondRunIntoTheSameFolder) {
  Local local;
  StageOptions outer = local.options();
  std::optional<Error> inner;
  outer.progress = [&](const StageProgress& progress) {
    if (progress.phase == "copying" && !inner) inner = error_of([&] { stage(local.options()); });
    return true;
  };
  stage(outer);
  EXPECT_TRUE(mentions(inner, "another program is copying to this folder"));
}

TEST(StageLocal, RefusesSamplesInsideLargerFiles) {
  Local local;
  for (const char* const name : {"a/1.wav", "b/2.wav"}) local.tree.write(std::string("s/") + name, loader::wav(50, 1));
  StageOptions packing = local.options();
  packing.source = local.tree.at("s");
  packing.destination = local.tree.at("s.pack");
  stage(packing);
  StageOptions unpacking = local.options();
  unpacking.source = local.tree.at("s.pack");
  const auto error = error_of([&] { stage(unpacking); });
  EXPECT_TRUE(mentions(error, "its samples lie inside larger files"));
  EXPECT_NE(error->hint().find(".pack"), std::string::npos);
}

TEST(Splits, AreNamesWithNumbers) {
  const auto splits = parse_splits("train=50000,val=1000,rest");
  ASSERT_EQ(splits.size(), 3u);
  EXPECT_EQ(splits[0].name, "train");
  EXPECT_EQ(splits[0].count, 50000u);
  EXPECT_EQ(splits[2].count, 0u);
  for (const char* const wrong : {"", "=3", "a=", "a=x", "a=0", "a=1,a=2", "../x=1", "a/b=1", "a=1,", ".a=1"})
    EXPECT_TRUE(error_of([&] { parse_splits(wrong); })) << wrong;
}

}  // namespace
}  // namespace stoker::prepare
