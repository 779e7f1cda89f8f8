// One suite for every backend, and the table they are found in.
#include "stoker/storage/backend.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/os/temp_folder_test.h"
#include "stoker/storage/any_store_test.h"
#include "stoker/storage/read_whole.h"

namespace stoker::storage {
namespace {

enum class Where { files, memory, s3 };

class EveryBackend : public ::testing::TestWithParam<Where> {
 protected:
  bool is_store() const { return GetParam() != Where::files; }
  const Backend& backend() const { return is_store() ? store_.backend() : local_files(); }
  std::string root() const { return is_store() ? "bucket" : folder_.path(); }
  void put(const std::string& name, const std::string& text) {
    if (is_store()) {
      store_.put("bucket/" + name, text);
    } else {
      folder_.file(name, text);
    }
  }
  std::vector<std::string> names(std::size_t most = 100) const {
    std::vector<std::string> names;
    backend().list(root(), [&](const Backend::Object& object) {
      names.emplace_back(object.name.substr(root().size() + 1));
      return names.size() < most;
    });
    return names;
  }

  AnyStore store_{GetParam() == Where::s3 ? StoreKind::s3 : StoreKind::memory};
  os::TempFolder folder_;
};

TEST_P(EveryBackend, IsFoundByItsScheme) {
  EXPECT_EQ(find_backend(backend().scheme()), &backend());
}

TEST_P(EveryBackend, ListsWhatLiesBelowInTheOrderOfNames) {
  for (const char* const name : {"b/2.wav", "a.wav", "b/1.wav", "b-/x.wav", "b/c/3.wav"}) put(name, "text");
  EXPECT_EQ(names(), (std::vector<std::string>{"a.wav", "b-/x.wav", "b/1.wav", "b/2.wav", "b/c/3.wav"}));
  EXPECT_EQ(names(2).size(), 2u) << "a false ends the listing";
  backend().list(root(), [](const Backend::Object& object) {
    EXPECT_EQ(object.bytes, 4u);
    return true;
  });
}

TEST_P(EveryBackend, OpensWhatItLists) {
  put("f", "0123456789");
  const auto source = backend().open(root() + "/f", Storage::buffered);
  EXPECT_EQ(source->size_bytes(), 10u);
  std::string text(4, '?');
  const Read read{3, std::as_writable_bytes(std::span(text))};
  source->read({&read, 1});
  EXPECT_EQ(text, "3456");
  EXPECT_THROW((void)backend().open(root() + "/none", Storage::buffered), Error);
}

TEST_P(EveryBackend, OneObjectCanBeReadWhole) {
  put("f", "0123456789");
  const std::string name = root() + "/f", none = root() + "/none";
  const auto at = [&](const std::string& which) {
    return is_store() ? Location::in_store(store_, which.c_str(), nullptr, 0, 10)
                      : Location::in_folder(kWorkingFolder, which.c_str(), 10);
  };
  std::vector<std::byte> bytes;
  const WholeRead read = read_whole(at(name), bytes);
  ASSERT_TRUE(read.ok()) << read.failure.text;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(read.bytes.data()), read.bytes.size()), "0123456789");
  EXPECT_EQ(read_whole(at(none), bytes).failure.kind, ErrorKind::not_found);
}

constexpr Where kEverywhere[] = {
    Where::files,
    Where::memory,
#ifdef STOKER_HAS_S3
    Where::s3,
#endif
};

INSTANTIATE_TEST_SUITE_P(Backends, EveryBackend, ::testing::ValuesIn(kEverywhere), [](const auto& kind) {
  return kind.param == Where::files ? "Files" : kind.param == Where::memory ? "Memory" : "S3";
});

TEST(Backends, AddressesAreSplitAtTheScheme) {
  EXPECT_EQ(split_address("s3://bucket/key").scheme, "s3");
  EXPECT_EQ(split_address("s3://bucket/key").name, "bucket/key");
  EXPECT_EQ(split_address("/data/x").scheme, "");
  EXPECT_EQ(split_address("/data/x").name, "/data/x");
  EXPECT_EQ(split_address("://x").scheme, "");
  EXPECT_EQ(split_address("").name, "");
  EXPECT_EQ(find_backend("none"), nullptr);
  EXPECT_EQ(find_backend(""), &local_files());
  {
    const MemoryStore store("here");
    EXPECT_EQ(find_backend("here"), &store);
    EXPECT_EQ(store_of("here://x/y"), &store);
    EXPECT_EQ(store_of("file:///x"), nullptr);
    EXPECT_EQ(store_of("none://x"), nullptr);
    EXPECT_EQ(store_of("/here"), nullptr);
  }
  EXPECT_EQ(find_backend("here"), nullptr);
}

}  // namespace
}  // namespace stoker::storage
