// Data sets that lie in a store: the same samples as in local files, at other locations.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/dataset/dataset.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/dataset/tree_test.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::dataset {
namespace {

std::string text_of(const Dataset& data, std::uint64_t index) {
  std::vector<std::byte> bytes;
  const storage::WholeRead read = read_sample(data, index, bytes);
  EXPECT_TRUE(read.ok()) << read.failure.text;
  return {reinterpret_cast<const char*>(read.bytes.data()), read.bytes.size()};
}

TEST(Objects, AreTheSamplesThatAFolderOfTheSameNamesHas) {
  Tree tree;
  storage::MemoryStore store;
  for (const char* const name : {"cat/2.wav", "cat/1.wav", "dog/deep/3.png", "dog-/4.jpg", "cat/notes.txt",
                                 ".git/x.png", "cat/.hidden.png", "stray.png", "empty/readme.md"}) {
    tree.write(name, std::string("bytes of ") + name);
    store.put(std::string("bucket/train/") + name, std::string("bytes of ") + name);
  }
  store.put("bucket/train/empty/", "");         // the mark of a folder
  store.put("bucket/trainee/cat/9.wav", "no");  // the prefix ends at a slash
  const DatasetPtr files = open(tree.at(), without_cache());
  for (const char* const address : {"memory://bucket/train", "memory://bucket/train/"}) {
    const DatasetPtr objects = open(address, without_cache());
    EXPECT_EQ(names_of(*objects), names_of(*files));
    EXPECT_EQ(sizes_of(*objects), sizes_of(*files));
    EXPECT_EQ(objects->facts().classes, files->facts().classes);
    EXPECT_EQ(objects->facts().fingerprint, files->facts().fingerprint);
    EXPECT_EQ(objects->facts().notes, files->facts().notes);
    EXPECT_EQ(objects->facts().largest_bytes, files->facts().largest_bytes);
    ASSERT_EQ(objects->backends().size(), 1u);
    EXPECT_EQ(objects->backends()[0], &store);
    for (std::uint64_t i = 0; i < files->size(); ++i) {
      EXPECT_EQ(objects->id(i), files->id(i));
      EXPECT_EQ(objects->label(i).integer, files->label(i).integer);
      EXPECT_EQ(text_of(*objects, i), text_of(*files, i));
    }
  }
}

TEST(Objects, SayTheirVersionSoThatAChangeIsSeen) {
  storage::MemoryStore store;
  store.put("bucket/a.wav", "first");
  const DatasetPtr data = open("memory://bucket", without_cache());
  char text[storage::kLocationText];
  const storage::Location at = data->locate(0, text);
  EXPECT_EQ(at.backend, &store);
  EXPECT_STREQ(at.name, "bucket/a.wav");
  EXPECT_STREQ(at.version, "v1");
  EXPECT_FALSE(at.is_file());
  EXPECT_EQ(data->location(0).name, nullptr);
  char small[8];
  EXPECT_EQ(data->locate(0, small).name, nullptr);

  store.put("bucket/a.wav", "other");
  std::vector<std::byte> bytes;
  const storage::WholeRead read = read_sample(*data, 0, bytes);
  EXPECT_EQ(read.failure.text, "it changed since it was listed: version v1 then, v2 now");
}

TEST(Objects, SubsetsAndCopiesKeepTheirLocation) {
  storage::MemoryStore store;
  for (const char* const name : {"a", "b", "c"}) store.put(std::string("bucket/") + name + ".wav", name);
  OpenOptions options = without_cache();
  options.subset = 2;
  options.inflate = 3;
  const DatasetPtr data = open("memory://bucket", options);
  ASSERT_EQ(data->size(), 6u);
  EXPECT_EQ(data->backends().size(), 1u);
  EXPECT_EQ(text_of(*data, 5), text_of(*data, 1));
}

TEST(Objects, AnAddressWithoutSamplesIsNamed) {
  storage::MemoryStore store;
  store.put("bucket/readme.txt", "x");
  EXPECT_TRUE(mentions(error_of([] { open("memory://bucket"); }), "`memory://bucket`"));
  EXPECT_TRUE(mentions(error_of([] { open("memory://bucket"); }), ".txt 1"));
  EXPECT_TRUE(mentions(error_of([] { open("memory://other"); }), "it is empty"));
  EXPECT_TRUE(mentions(error_of([] { open("memory://bucket/x.pack"); }), "`memory://bucket/x.pack/pack.json`"));
  EXPECT_TRUE(mentions(error_of([] { open("memory://bucket/x.csv"); }), "`memory://bucket/x.csv`"));
  EXPECT_TRUE(mentions(error_of([] { open("unknown://bucket"); }), "does not read unknown:// addresses"));
  OpenOptions options;
  options.label = "class";
  EXPECT_TRUE(mentions(error_of([&] { open("memory://bucket", options); }), "not an index.csv"));
}

TEST(Objects, ArraysAndTarShardsOfAStoreAreDataSetsToo) {
  storage::MemoryStore store;
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 6), }";
  header.resize(117, ' ');
  header += '\n';
  store.put("bucket/x.npy",
            std::string("\x93NUMPY\x01\x00", 8) + std::string("\x76\x00", 2) + header + "aaaaaabbbbbbccccccdddddd");
  const DatasetPtr array = open("memory://bucket/x.npy", without_cache());
  ASSERT_EQ(array->size(), 4u);
  EXPECT_EQ(text_of(*array, 2), "cccccc");
  ASSERT_EQ(array->backends().size(), 1u);
  EXPECT_EQ(array->backends()[0], &store);

  for (const char* const name : {"bucket/x-0.tar", "bucket/x-1.tar"}) {
    std::string tar = tar_header("one.wav", 5, 0) + "12345";
    tar.resize(tar_padded(tar.size()), '\0');
    tar.append(2 * kTarBlock, '\0');
    store.put(name, tar);
  }
  const DatasetPtr shards = open("memory://bucket/x-{0..1}.tar", without_cache());
  ASSERT_EQ(shards->size(), 2u);
  EXPECT_EQ(text_of(*shards, 1), "12345");
  EXPECT_EQ(shards->backends().size(), 1u);
}

TEST(Objects, AnIndexOfAStoreIsThatOfAFolder) {
  Tree tree;
  storage::MemoryStore store;
  const auto put = [&](const std::string& name, const std::string& text) {
    tree.write(name, text);
    store.put("bucket/set/" + name, text);
  };
  put("a/1.wav", "one");
  put("a/2 \"x\".wav", "two!");
  put("_index/3.wav", "three");
  put("index.csv", "path,label,age\na/1.wav,cat,3\n\"a/2 \"\"x\"\".wav\",dog,4\n./a/1.wav,cat,5\n");
  put("_index/index.csv", "path\na/1.wav\n3.wav\n");
  for (const char* const index : {"index.csv", "_index/index.csv"}) {
    const DatasetPtr files = open(tree.at(index), without_cache());
    const DatasetPtr objects = open(std::string("memory://bucket/set/") + index, without_cache());
    EXPECT_EQ(names_of(*objects), names_of(*files));
    EXPECT_EQ(sizes_of(*objects), sizes_of(*files));
    EXPECT_EQ(objects->facts().classes, files->facts().classes);
    EXPECT_EQ(objects->facts().columns, files->facts().columns);
    EXPECT_EQ(objects->facts().fingerprint, files->facts().fingerprint);
    ASSERT_EQ(objects->backends().size(), 1u);
    for (std::uint64_t i = 0; i < files->size(); ++i) {
      EXPECT_EQ(objects->id(i), files->id(i));
      EXPECT_EQ(objects->label(i).integer, files->label(i).integer);
      EXPECT_EQ(text_of(*objects, i), text_of(*files, i));
    }
  }
  char text[storage::kLocationText];
  const DatasetPtr data = open("memory://bucket/set/index.csv", without_cache());
  EXPECT_STREQ(data->locate(0, text).name, "bucket/set/a/1.wav");
  EXPECT_STREQ(data->locate(0, text).version, "v1");
  EXPECT_STREQ(data->locate(2, text).name, "bucket/set/a/1.wav");
}

TEST(Objects, AnIndexOfAStoreMayNameWholeAddressesAndNamesWhatIsMissing) {
  storage::MemoryStore store;
  store.put("bucket/set/1.wav", "one");
  store.put("bucket/set/whole.csv", "path\nmemory://bucket/set/1.wav\n");
  EXPECT_EQ(text_of(*open("memory://bucket/set/whole.csv", without_cache()), 0), "one");
  store.put("bucket/set/missing.csv", "path\n1.wav\n2.wav\n");
  EXPECT_TRUE(
      mentions(error_of([] { open("memory://bucket/set/missing.csv"); }), "line 3: there is no object `2.wav` below"));
}

TEST(Objects, OfAStoreThatDoesNotListAreThoseThatAnIndexNames) {
  storage::MemoryStore store;
  store.refuse_listings();
  store.put("host/set/a/1.wav", "one");
  store.put("host/set/b/2.wav", "two!");
  store.put("other/3.wav", "three");
  store.put("host/set/list.csv",
            "path,label\na/1.wav,x\n./b/2.wav,y\nmemory://other/3.wav,x\nmemory://host/set/a/1.wav,y\n");
  const DatasetPtr data = open("memory://host/set/list.csv", without_cache());
  EXPECT_EQ(sizes_of(*data), (std::vector<std::uint64_t>{3, 4, 5, 3}));
  EXPECT_EQ(text_of(*data, 0), "one");
  EXPECT_EQ(text_of(*data, 1), "two!");
  EXPECT_EQ(text_of(*data, 2), "three");
  EXPECT_EQ(text_of(*data, 3), "one");
  char text[storage::kLocationText];
  EXPECT_STREQ(data->locate(1, text).version, "v2");
  EXPECT_STREQ(data->locate(2, text).name, "other/3.wav");
  store.put("host/set/missing.csv", "path\na/1.wav\n9.wav\n");
  EXPECT_TRUE(
      mentions(error_of([] { open("memory://host/set/missing.csv"); }), "line 3: there is no object `9.wav` below"));
  EXPECT_TRUE(mentions(error_of([] { open("memory://host/set"); }), "does not list"));
  std::vector<std::pair<std::string, Label>> list = {{"memory://host/set/b/2.wav", {}}, {"memory://other/3.wav", {}}};
  EXPECT_EQ(text_of(*from_list(std::move(list), LabelKind::none, without_cache()), 1), "three");
}

DatasetPtr list_of(const std::vector<std::string>& addresses, const OpenOptions& options = without_cache()) {
  std::vector<std::pair<std::string, Label>> samples;
  for (const std::string& address : addresses) samples.emplace_back(address, Label{});
  return from_list(std::move(samples), LabelKind::none, options);
}

TEST(Objects, AnIndexIsReadWithKeysThatMayNotList) {
  storage::MemoryStore store;
  store.put("bucket/set/index.csv", "path,label\na/1.wav,0\n2.wav,1\n");
  store.put("bucket/set/a/1.wav", "one");
  store.put("bucket/set/2.wav", "two");
  const DatasetPtr listed = open("memory://bucket/set/index.csv", without_cache());
  store.forbid_listings();
  const DatasetPtr asked = open("memory://bucket/set/index.csv", without_cache());
  EXPECT_EQ(names_of(*asked), names_of(*listed));
  EXPECT_EQ(sizes_of(*asked), sizes_of(*listed));
  EXPECT_EQ(asked->id(0), listed->id(0));
  EXPECT_EQ(text_of(*asked, 1), "two");
  EXPECT_EQ(asked->facts().notes.size(), 1u) << "each object was asked for";
}

TEST(Objects, AnIndexWhosePathsLeadUpwardsIsRefusedByLine) {
  storage::MemoryStore store;
  store.put("bucket/set/index.csv", "path\n1.wav\na/../../2.wav\n");
  store.put("bucket/set/1.wav", "one");
  store.put("bucket/2.wav", "two");
  OpenOptions options = without_cache();
  options.skip_losses = true;
  try {
    (void)open("memory://bucket/set/index.csv", options);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "index.csv line 3: `a/../../2.wav` leads upwards, which keys of a store cannot");
  }
  EXPECT_EQ(store.requests(), 0u) << "no object was asked for";
  store.put("bucket/dots/index.csv", "path\na..b/..c.wav\n");
  store.put("bucket/dots/a..b/..c.wav", "dots");
  EXPECT_EQ(open("memory://bucket/dots/index.csv", without_cache())->size(), 1u);
}

TEST(Objects, TheSchemeOfAnAddressMayBeInAnyCaseAndOneSlashIsNamed) {
  storage::MemoryStore store;
  store.put("bucket/1.wav", "one");
  EXPECT_EQ(open("Memory://bucket", without_cache())->size(), 1u);
  try {
    (void)open("s3:/bucket/set", without_cache());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "cannot open `s3:/bucket/set`: it has one slash behind `s3:`");
    EXPECT_EQ(error.hint(), "did you mean `s3://bucket/set`?");
  }
}

TEST(Objects, AListMayNameThem) {
  storage::MemoryStore store;
  store.put("bucket/set/a/1.wav", "one");
  store.put("bucket/set/b/2.wav", "two!");
  store.put("bucket/set/b/9.wav", "not wanted");
  store.put("other/3.wav", "three");
  const DatasetPtr near =
      list_of({"memory://bucket/set/b/2.wav", "memory://bucket/set/a/1.wav", "memory://bucket/set/b/2.wav"});
  EXPECT_EQ(sizes_of(*near), (std::vector<std::uint64_t>{4, 3, 4}));
  EXPECT_EQ(text_of(*near, 0), "two!");
  EXPECT_EQ(text_of(*near, 1), "one");
  EXPECT_NE(near->id(0), near->id(2));
  EXPECT_EQ(near->name(1), "memory://bucket/set/a/1.wav");
  ASSERT_EQ(near->backends().size(), 1u);
  char text[storage::kLocationText];
  EXPECT_STREQ(near->locate(1, text).name, "bucket/set/a/1.wav");
  EXPECT_STREQ(near->locate(1, text).version, "v1");

  const DatasetPtr apart = list_of({"memory://other/3.wav", "memory://bucket/set/a/1.wav"});  // no folder has both
  EXPECT_EQ(text_of(*apart, 0), "three");
  EXPECT_EQ(text_of(*apart, 1), "one");
  EXPECT_STREQ(apart->locate(0, text).version, "v4");
}

TEST(Objects, AListAsksForThemWhereTheFolderAroundThemIsLarge) {
  storage::MemoryStore store;
  for (int i = 0; i < 6'000; ++i) store.put("bucket/" + std::to_string(i) + ".wav", "x");
  store.put("bucket/wanted.wav", "found");  // after all others
  EXPECT_EQ(text_of(*list_of({"memory://bucket/wanted.wav"}), 0), "found");
}

TEST(Objects, AListNamesWhatIsMissingOrElsewhere) {
  Tree tree;
  tree.write("1.wav", "one");
  storage::MemoryStore store;
  store.put("bucket/1.wav", "one");
  const auto refused = [&](const std::string& other, const char* why) {
    return mentions(error_of([&] { list_of({"memory://bucket/1.wav", other}); }), why);
  };
  EXPECT_TRUE(refused("memory://bucket/2.wav", "sample 1 of the list: no such object: `memory://bucket/2.wav`"));
  EXPECT_TRUE(refused("memory://nowhere/2.wav", "no such object: `memory://nowhere/2.wav`"));
  EXPECT_TRUE(refused(tree.at("1.wav"), "lies in another store than `memory://bucket/1.wav`"));
  OpenOptions options = without_cache();
  options.skip_losses = true;
  const DatasetPtr data = list_of({"memory://bucket/1.wav", "memory://bucket/2.wav"}, options);
  EXPECT_EQ(text_of(*data, 0), "one");
  EXPECT_EQ(data->facts().notes.size(), 1u);
}

TEST(Objects, FileAddressesAreLocalPaths) {
  Tree tree;
  tree.write("a/1.wav", "one");
  const DatasetPtr data = open("file://" + tree.at(), without_cache());
  EXPECT_EQ(names_of(*data), names_of(*open(tree.at(), without_cache())));
  EXPECT_TRUE(data->backends().empty());
}

}  // namespace
}  // namespace stoker::dataset
