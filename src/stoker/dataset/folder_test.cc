#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/dataset/scan.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/os/fault.h"

namespace stoker::dataset {
namespace {

// Look-ups before the first one of a file: the address, its pack.json, the root and the first folder in it.
constexpr std::uint32_t kBeforeTheFiles = 4;

using Names = std::vector<std::string>;
using Labels = std::vector<std::int64_t>;

// Faults count calls: nothing else, such as looking up the number of cores, may make any.
OpenOptions on_one_thread() {
  OpenOptions options = without_cache();
  options.threads = 1;
  return options;
}

TEST(Folder, TakesClassesFromItsSubFoldersAsImageFolderDoes) {
  Tree tree;
  tree.write("dog/1.jpg", "12");
  tree.write("cat/deep/er/2.PNG", "123");
  tree.write("cat/1.jpeg", "1");

  const DatasetPtr data = open(tree.at(), without_cache());

  EXPECT_EQ(names_of(*data), (Names{"cat/1.jpeg", "cat/deep/er/2.PNG", "dog/1.jpg"}));
  EXPECT_EQ(labels_of(*data), (Labels{0, 0, 1}));
  EXPECT_EQ(sizes_of(*data), (std::vector<std::uint64_t>{1, 3, 2}));
  EXPECT_EQ(data->facts().classes, (Names{"cat", "dog"}));
  EXPECT_EQ(data->facts().label_kind, LabelKind::integer);
  EXPECT_EQ(data->facts().kind, "folder");
  EXPECT_EQ(data->facts().total_bytes, 6u);
  EXPECT_EQ(data->facts().largest_bytes, 3u);
  EXPECT_EQ(data->media(0), codec::media_named("jpeg"));
  EXPECT_EQ(data->media(1), codec::media_named("png"));
  EXPECT_TRUE(data->facts().notes.empty());
  EXPECT_FALSE(data->facts().sizes_may_be_stale);
}

TEST(Folder, WithoutSubFoldersHasNoLabels) {
  Tree tree;
  tree.write("b.wav", "");
  tree.write("a.wav", "1");
  const DatasetPtr data = open(tree.at() + "//", without_cache());
  EXPECT_EQ(names_of(*data), (Names{"a.wav", "b.wav"}));
  EXPECT_EQ(labels_of(*data), (Labels{-1, -1}));
  EXPECT_EQ(data->facts().label_kind, LabelKind::none);
}

TEST(Folder, SaysThatAnIndexInItIsNotReadAndRefusesALabelColumn) {
  Tree tree;
  tree.write("a.wav", "1");
  tree.write("index.csv", "path,label\na.wav,3\n");
  const auto notes = open(tree.at(), without_cache())->facts().notes;
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("index.csv is not read") != std::string::npos;
  }));
  OpenOptions options = without_cache();
  options.label = "label";
  EXPECT_THROW(open(tree.at(), options), Error);
}

TEST(Folder, OrdersSamplesByTheBytesOfTheirPaths) {
  Tree tree;
  // `-` and `.` come before the slash, digits and letters after it; bytes above 127 come last.
  const Names paths = {"x/a-b/1.jpg",    "x/a.jpg",       "x/a/1.jpg",       "x/a/b/1.jpg",       "x/a0.jpg",
                       "x/ab/1.jpg",     "x/B.jpg",       "x/a\xC3\xA9.jpg", "x/a\xC3\xA9/1.jpg", "x/sample_10.jpg",
                       "x/sample_9.jpg", "x/sample_.jpg", "x/sample_1.jpg"};
  for (const std::string& path : paths) tree.write(path, "1");
  Names sorted = paths;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(names_of(*open(tree.at(), without_cache())), sorted);
}

TEST(Folder, NumbersClassesByNameEvenWherePathsSortOtherwise) {
  Tree tree;
  tree.write("a/1.jpg", "");
  tree.write("a-b/1.jpg", "");
  const DatasetPtr data = open(tree.at(), without_cache());
  EXPECT_EQ(data->facts().classes, (Names{"a", "a-b"}));
  EXPECT_EQ(names_of(*data), (Names{"a-b/1.jpg", "a/1.jpg"}));
  EXPECT_EQ(labels_of(*data), (Labels{1, 0}));
}

TEST(Folder, CountsWhatItLeavesOut) {
  Tree tree;
  tree.write("cat/1.jpg", "1");
  tree.write("cat/.hidden.jpg", "1");
  tree.write(".git/x.jpg", "1");
  tree.write("lost+found/x.jpg", "1");
  tree.write("cat/readme.TXT", "1");
  tree.write("cat/notes.txt", "1");
  tree.write("cat/Makefile", "1");
  ASSERT_EQ(::mkfifo(tree.at("cat/pipe.jpg").c_str(), 0600), 0);

  const DatasetPtr data = open(tree.at(), without_cache());

  EXPECT_EQ(names_of(*data), (Names{"cat/1.jpg"}));
  EXPECT_TRUE(has_note(*data, "3 hidden"));
  EXPECT_TRUE(has_note(*data, "3 files of unknown kind (.txt 2, no extension 1)"));
  EXPECT_TRUE(has_note(*data, "left out 1 special file (pipes, sockets, devices): `cat/pipe.jpg`"));
}

TEST(Folder, LeavesOutStrayFilesBesideTheClassFoldersAndSaysSo) {
  Tree tree;
  tree.write("cat/1.jpg", "1");
  tree.write("dog/1.jpg", "1");
  tree.write("preview.jpg", "1");
  const DatasetPtr data = open(tree.at(), without_cache());
  EXPECT_EQ(names_of(*data), (Names{"cat/1.jpg", "dog/1.jpg"}));
  EXPECT_EQ(labels_of(*data), (Labels{0, 1}));
  EXPECT_TRUE(has_note(*data, "left out 1 file beside the class folders"));
}

TEST(Folder, TakesAllFilesWithoutLabelsWhereMostLieBesideTheSubFolders) {
  Tree tree;
  tree.write("a.jpg", "1");
  tree.write("c.jpg", "1");
  tree.write("b/1.jpg", "1");
  const DatasetPtr data = open(tree.at(), without_cache());
  EXPECT_EQ(names_of(*data), (Names{"a.jpg", "b/1.jpg", "c.jpg"}));
  EXPECT_EQ(labels_of(*data), (Labels{-1, -1, -1}));
  EXPECT_TRUE(has_note(*data, "2 of 3"));
}

TEST(Folder, KeepsAClassWithoutSamplesSoThatNumbersStayTheSame) {
  Tree tree;
  tree.write("a/1.jpg", "1");
  tree.make_folder("b");
  tree.write("c/1.jpg", "1");
  const DatasetPtr data = open(tree.at(), without_cache());
  EXPECT_EQ(labels_of(*data), (Labels{0, 2}));
  EXPECT_TRUE(has_note(*data, "`b`"));
}

TEST(Folder, FollowsLinksAndNamesLoopsAndBrokenOnes) {
  Tree tree, elsewhere;
  elsewhere.write("real.jpg", "1234");
  tree.write("cat/1.jpg", "1");
  tree.link("cat/linked.jpg", elsewhere.at("real.jpg"));
  tree.link("dog", elsewhere.at());
  tree.link("cat/up", "..");
  tree.link("cat/self", "self");
  tree.link("cat/nowhere.jpg", "missing.jpg");

  const DatasetPtr data = open(tree.at(), without_cache());

  EXPECT_EQ(names_of(*data), (Names{"cat/1.jpg", "cat/linked.jpg", "dog/real.jpg"}));
  EXPECT_EQ(sizes_of(*data), (std::vector<std::uint64_t>{1, 4, 4}));
  EXPECT_TRUE(has_note(*data, "1 link leading back to a folder above: `cat/up`"));
  EXPECT_TRUE(has_note(*data, "2 links leading nowhere"));
  EXPECT_TRUE(has_note(*data, "`cat/nowhere.jpg`"));
}

TEST(Folder, ThatIsALinkIsRead) {
  Tree tree, links;
  tree.write("a/1.jpg", "1");
  links.link("data", tree.at());
  EXPECT_EQ(open(links.at("data"), without_cache())->size(), 1u);
}

TEST(Folder, GivesPathsThatOpenTheFileBelowItsDirectory) {
  Tree tree;
  tree.write("a/b c/1.jpg", "hello");
  const DatasetPtr data = open(tree.at(), without_cache());
  char path[4096];
  const storage::Location file = data->locate(0, path);
  ASSERT_STREQ(file.name, "a/b c/1.jpg");
  const int fd = ::openat(file.directory, file.name, O_RDONLY);
  ASSERT_GE(fd, 0);
  char text[8] = {};
  EXPECT_EQ(::read(fd, text, sizeof text), 5);
  ::close(fd);
  char small[5];
  EXPECT_EQ(data->locate(0, small).name, nullptr);
  char one_short[11];
  EXPECT_EQ(data->locate(0, one_short).name, nullptr);
}

TEST(Folder, KeepsIdsWhenFilesAreAddedAndFingerprintsWhenNothingChanged) {
  Tree tree;
  tree.write("a/1.jpg", "1");
  tree.write("a/3.jpg", "1");
  const DatasetPtr before = open(tree.at(), without_cache());
  const DatasetPtr again = open(tree.at(), without_cache());
  tree.write("a/2.jpg", "1");
  const DatasetPtr after = open(tree.at(), without_cache());

  EXPECT_EQ(before->facts().fingerprint, again->facts().fingerprint);
  EXPECT_NE(before->facts().fingerprint, after->facts().fingerprint);
  EXPECT_EQ(before->id(0), after->id(0));
  EXPECT_EQ(before->id(1), after->id(2));
  EXPECT_NE(after->id(0), after->id(1));
}

TEST(Folder, FingerprintsNamesSizesAndLabels) {
  const auto fingerprint = [](const std::vector<std::pair<std::string, std::string>>& files) {
    Tree tree;
    for (const auto& [path, text] : files) tree.write(path, text);
    return open(tree.at(), without_cache())->facts().fingerprint;
  };
  const std::uint64_t base = fingerprint({{"a/1.jpg", "1"}, {"b/1.jpg", "1"}});
  EXPECT_EQ(base, fingerprint({{"a/1.jpg", "2"}, {"b/1.jpg", "3"}}));
  EXPECT_NE(base, fingerprint({{"a/1.jpg", "1"}, {"b/1.jpg", "12"}}));
  EXPECT_NE(base, fingerprint({{"a/1.jpg", "1"}, {"b/2.jpg", "1"}}));
  EXPECT_NE(base, fingerprint({{"a/1.jpg", "1"}, {"aa/.x", ""}, {"b/1.jpg", "1"}}));  // b is class 2 now
}

TEST(Folder, IsTheSameForAnyNumberOfThreads) {
  Tree tree;
  for (int i = 0; i < 5000; ++i)
    tree.write(fmt::format("big/{}.wav", i * 7919 % 5000), std::string(static_cast<std::size_t>(i % 13), 'x'));
  for (int c = 0; c < 40; ++c) {
    for (int i = 0; i < 5; ++i)
      tree.write(fmt::format("{}/{}/{}.wav", c, i % 2, i), std::string(static_cast<std::size_t>(c), 'x'));
  }
  OpenOptions options = without_cache();
  options.threads = 1;
  const DatasetPtr one = open(tree.at(), options);
  options.threads = 7;
  const DatasetPtr seven = open(tree.at(), options);
  EXPECT_EQ(one->size(), 5200u);
  EXPECT_EQ(names_of(*one), names_of(*seven));
  EXPECT_EQ(sizes_of(*one), sizes_of(*seven));
  EXPECT_EQ(one->facts().fingerprint, seven->facts().fingerprint);
  Names sorted = names_of(*one);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(names_of(*one), sorted);
}

TEST(Folder, ThatIsEmptySaysWhatWasLookedForAndWhatWasSeen) {
  Tree tree;
  EXPECT_TRUE(mentions(error_of([&] { open(tree.at(), without_cache()); }), "it is empty"));
  tree.write("a/x.txt", "");
  tree.write("a/.y.jpg", "");
  const auto error = error_of([&] { open(tree.at(), without_cache()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::not_found);
  EXPECT_TRUE(mentions(error, "looked for " + codec::extensions("and")));
  EXPECT_TRUE(mentions(error, "1 folder, 1 hidden and 1 file of other kinds (.txt 1)"));
}

TEST(Folder, NamesASubFolderThatMayNotBeRead) {
  Tree tree;
  tree.write("a/1.jpg", "");
  tree.write("b/1.jpg", "");
  const os::InjectFault fault(os::Call::open,
                              {.error_number = EACCES, .skip = 2});  // the address, the root, then a or b
  const auto error = error_of([&] { open(tree.at(), on_one_thread()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::permission);
  EXPECT_TRUE(mentions(error, tree.at("a`")) || mentions(error, tree.at("b`"))) << error->message();
}

// The Loss list as text.
Names losses_of(const Dataset& data) {
  Names texts;
  for (const Loss& loss : data.facts().losses) texts.push_back(loss.message());
  return texts;
}

OpenOptions skipping() {
  OpenOptions options = on_one_thread();
  options.skip_losses = true;
  return options;
}

TEST(FolderLosses, ASubFolderThatMayNotBeReadIsNamedAndTheRestIsTaken) {
  Tree tree;
  for (const char* name : {"a/1.jpg", "b/1.jpg", "c/1.jpg"}) tree.write(name, "");
  const os::InjectFault fault(os::Call::open, {.error_number = EACCES, .skip = 2});  // one of them: the last is first
  const DatasetPtr data = open(tree.at(), skipping());
  EXPECT_EQ(names_of(*data), (Names{"a/1.jpg", "b/1.jpg"}));
  EXPECT_EQ(data->facts().classes, (Names{"a", "b", "c"})) << "labels are those of the whole folder";
  EXPECT_EQ(losses_of(*data), Names{"cannot list `c`: the folder cannot be read: Permission denied"});
  EXPECT_FALSE(has_note(*data, "without samples"));
}

TEST(FolderLosses, AFolderThatFailsHalfWayIsLeftOutWhole) {
  Tree tree;
  for (const char* name : {"a/1.jpg", "b/1.jpg"}) tree.write(name, "");
  const os::InjectFault fault(os::Call::read, {.error_number = EIO, .skip = 3});  // the second read of one of them
  const DatasetPtr data = open(tree.at(), skipping());
  EXPECT_EQ(data->size(), 1u);
  EXPECT_EQ(losses_of(*data), Names{"cannot list `b`: the folder cannot be read: Input/output error"});
}

TEST(FolderLosses, FilesThatCannotBeLookedUpAreCountedPerFolder) {
  Tree tree;
  for (const char* name : {"a/1.jpg", "b/1.jpg", "b/2.jpg"}) tree.write(name, "");
  const os::InjectFault fault(os::Call::stat, {.error_number = EACCES, .skip = kBeforeTheFiles, .times = 2});
  const DatasetPtr data = open(tree.at(), skipping());
  EXPECT_EQ(names_of(*data), Names{"a/1.jpg"});
  EXPECT_EQ(losses_of(*data),
            Names{"cannot list `b`: 2 files cannot be looked up, `1.jpg` the first: Permission denied"});
}

TEST(FolderLosses, WhatWasLostIsLookedAtAgainThoughTheListingIsCached) {
  Tree tree, cache;
  for (const char* name : {"a/1.jpg", "b/1.jpg", "b/deep/1.jpg"}) tree.write(name, "");
  OpenOptions options = with_cache(cache);
  options.skip_losses = true;
  options.threads = 1;
  {
    const os::InjectFault fault(os::Call::open, {.error_number = EACCES, .skip = 3, .times = 1});
    EXPECT_EQ(open(tree.at(), options)->facts().losses.size(), 1u);
  }
  const DatasetPtr again = open(tree.at(), options);
  EXPECT_EQ(again->size(), 3u);
  EXPECT_TRUE(again->facts().losses.empty());
}

TEST(FolderLosses, AMachineOutOfDescriptorsIsAnErrorWhateverThePolicy) {
  Tree tree;
  tree.write("a/1.jpg", "");
  const os::InjectFault fault(os::Call::open, {.error_number = EMFILE, .skip = 2});
  EXPECT_TRUE(mentions(error_of([&] { open(tree.at(), skipping()); }), "Too many open files"));
}

TEST(FolderLosses, AFolderOfNothingButLossesIsAnError) {
  Tree tree;
  tree.write("a/1.jpg", "");
  const os::InjectFault fault(os::Call::open, {.error_number = EACCES, .skip = 2});
  const auto error = error_of([&] { open(tree.at(), skipping()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::permission);
  EXPECT_TRUE(mentions(error, "cannot list `a`: the folder cannot be read: Permission denied"));
}

TEST(Folder, NamesASubFolderWhosePermissionsForbidReading) {
  Tree tree;
  tree.write("a/1.jpg", "");
  tree.write("b/1.jpg", "");
  ::chmod(tree.at().c_str(), 0755);
  ::chmod(tree.at("b").c_str(), 0000);
  const std::string expected = tree.at("b");
  // In a child, as somebody who is not root.
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(3);
    const auto error = error_of([&] { open(tree.at(), on_one_thread()); });
    ::_exit(error && error->kind() == ErrorKind::permission && mentions(error, expected) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ::chmod(tree.at("b").c_str(), 0755);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Folder, TurnsAFailingSystemCallIntoANamedError) {
  Tree tree;
  tree.write("a/1.jpg", "");
  {
    const os::InjectFault fault(os::Call::stat, {.error_number = EIO, .skip = kBeforeTheFiles});
    EXPECT_TRUE(mentions(error_of([&] { open(tree.at(), on_one_thread()); }), "a/1.jpg`: Input/output error"));
  }
  {
    const os::InjectFault fault(os::Call::read, {.error_number = EIO});
    EXPECT_TRUE(mentions(error_of([&] { open(tree.at(), on_one_thread()); }), tree.at()));
  }
  {
    const os::InjectFault fault(os::Call::open, {.error_number = EMFILE, .skip = 1});
    const auto error = error_of([&] { open(tree.at(), on_one_thread()); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::unavailable);
    EXPECT_NE(error->hint().find("ulimit"), std::string::npos);
  }
  EXPECT_EQ(open(tree.at(), on_one_thread())->size(), 1u);
}

TEST(Folder, DropsAFileThatGoesAwayBetweenListingAndLookUp) {
  Tree tree;
  tree.write("a/1.jpg", "");
  tree.write("a/2.jpg", "");
  const os::InjectFault fault(os::Call::stat, {.error_number = ENOENT, .skip = kBeforeTheFiles});
  EXPECT_EQ(open(tree.at(), without_cache())->size(), 1u);
}

TEST(Folder, DoesNotTrustTheTimesOfFoldersThatProgramsMakeUp) {
  EXPECT_TRUE(shows_changes(0xEF53));       // ext4
  EXPECT_TRUE(shows_changes(0x6969));       // nfs
  EXPECT_FALSE(shows_changes(0x65735546));  // fuse: object stores
  EXPECT_FALSE(shows_changes(0x01021997));  // 9p
}

TEST(Folder, CopesWithPathsLongerThanTheSystemAllows) {
  Tree tree;
  tree.write("a/1.jpg", "");
  // 20 levels of 250 bytes: the deepest cannot be named in one call, so they are made step by step.
  int at = ::open(tree.at("a").c_str(), O_RDONLY | O_DIRECTORY);
  const std::string name(250, 'd');
  for (int level = 0; level < 20; ++level) {
    ASSERT_EQ(::mkdirat(at, name.c_str(), 0755), 0);
    const int next = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY);
    ::close(at);
    at = next;
    ::close(::openat(at, "x.jpg", O_CREAT | O_WRONLY, 0644));
  }
  ::close(at);
  const DatasetPtr data = open(tree.at(), without_cache());
  EXPECT_EQ(data->size(), 1u + 16u);
  EXPECT_TRUE(has_note(*data, "longer than 4095 bytes"));
  // std::filesystem cannot remove what it cannot name.
  for (int level = 0; level < 20; ++level) {
    std::filesystem::rename(tree.at("a/" + name), tree.at("b"));
    std::error_code none;
    if (std::filesystem::exists(tree.at("b/" + name), none))
      std::filesystem::rename(tree.at("b/" + name), tree.at("a/" + name));
    std::filesystem::remove_all(tree.at("b"));
    if (!std::filesystem::exists(tree.at("a/" + name), none)) break;
  }
}

}  // namespace
}  // namespace stoker::dataset
