#include "stoker/storage/s3/parallel_list.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::storage::s3 {
namespace {

// A store of keys alone, which lists in order, a hundred to a page.
class KeyStore {
 public:
  void add(const std::string& key) { keys_.insert(key); }
  std::size_t size() const { return keys_.size(); }
  std::uint64_t requests() const { return requests_; }
  void fail_at(const std::string& prefix_or_start) { bad_ = prefix_or_start; }

  ListPage answer(const PageQuestion& question) {
    ++requests_;
    if (!bad_.empty() && (question.start_after == bad_ || question.prefix == bad_)) {
      throw Error(ErrorKind::unavailable, "503 of the test");
    }
    ListPage page;
    std::size_t count = 0;
    std::string last;
    for (auto at = keys_.lower_bound(question.prefix); at != keys_.end() && at->starts_with(question.prefix); ++at) {
      if (*at <= question.token && !question.token.empty()) continue;
      if (*at <= question.start_after && !question.start_after.empty()) continue;
      const std::size_t slash = question.delimiter.empty() ? std::string::npos : at->find('/', question.prefix.size());
      const std::string folder = slash == std::string::npos ? "" : at->substr(0, slash + 1);
      if (!folder.empty() && !page.prefixes.empty() && page.prefixes.back() == folder) {
        last = *at;
        continue;
      }
      if (count == 100) {
        page.next = last;
        break;
      }
      ++count;
      last = *at;
      if (folder.empty()) {
        page.objects.push_back({*at, 1, "v"});
      } else {
        page.prefixes.push_back(folder);
      }
    }
    return page;
  }

  std::vector<std::string> listed(const std::string& prefix, bool is_sorted) {
    std::vector<std::string> keys;
    list_in_parallel([this](const PageQuestion& question) { return answer(question); }, prefix, is_sorted,
                     [&](ListPage& page) {
                       for (const ListedObject& object : page.objects) keys.push_back(object.key);
                       return true;
                     },
                     "s3://store");
    return keys;
  }
  std::vector<std::string> below(const std::string& prefix) const {
    std::vector<std::string> keys;
    for (const std::string& key : keys_) {
      if (key.starts_with(prefix)) keys.push_back(key);
    }
    return keys;
  }

 private:
  std::set<std::string> keys_;
  std::atomic<std::uint64_t> requests_{0};
  std::string bad_;
};

void add_classes(KeyStore& keys, int classes, int each, const std::string& root = "set/") {
  for (int c = 0; c < classes; ++c) {
    for (int i = 0; i < each; ++i) keys.add(fmt::format("{}class-{:04}/{:05}.jpg", root, c, i));
  }
}

TEST(ParallelList, GivesEveryObjectOnceInOrder) {
  KeyStore keys;
  add_classes(keys, 150, 30);
  for (const char* const odd : {"set/a.jpg", "set/class-0000.jpg", "set/class-0100-.jpg", "set/class-0100/",
                                "set/z/z/z", "set/class-0149", "other/1.jpg", "settee/1.jpg"}) {
    keys.add(odd);
  }
  EXPECT_EQ(keys.listed("set/", true), keys.below("set/"));
  EXPECT_LT(keys.requests(), 2 * keys.size() / 100 + 64) << "not a request for each folder";
}

TEST(ParallelList, OfAStoreThatListsInNoOrderGivesEveryObjectOnce) {
  KeyStore keys;
  add_classes(keys, 20, 400);
  keys.add("set/loose.jpg");
  std::vector<std::string> found = keys.listed("set/", false);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, keys.below("set/"));
}

TEST(ParallelList, ListsManySmallFoldersWithoutARequestForEach) {
  KeyStore keys;
  add_classes(keys, 1000, 2);
  EXPECT_EQ(keys.listed("set/", false), keys.below("set/"));
  EXPECT_LT(keys.requests(), 40u);
}

TEST(ParallelList, AskOnceForWhatFitsOnOnePage) {
  KeyStore keys;
  add_classes(keys, 10, 10);
  EXPECT_EQ(keys.listed("set/", true), keys.below("set/"));
  EXPECT_EQ(keys.requests(), 1u);
}

TEST(ParallelList, LooksForFoldersBelowFoldersThatStandAlone) {
  KeyStore keys;
  add_classes(keys, 50, 40, "a/b/c/");
  EXPECT_EQ(keys.listed("", true), keys.below(""));
  EXPECT_EQ(keys.listed("a/b/", true), keys.below("a/b/"));
}

TEST(ParallelList, OfAFlatFolderGoesPageByPage) {
  KeyStore keys;
  for (int i = 0; i < 5000; ++i) keys.add(fmt::format("set/{:05}.jpg", i));
  for (const bool is_sorted : {true, false}) EXPECT_EQ(keys.listed("set/", is_sorted), keys.below("set/"));
  EXPECT_EQ(keys.requests(), 2u * (50 + 1)) << "one page tells that there are no folders";
}

// Pages of a store that goes round in circles, with a new token each time.
void list_in_circles(std::size_t circle) {
  std::atomic<std::size_t> asked{0};
  const AskPage ask = [&](const PageQuestion& question) {
    const std::size_t number = asked++;
    if (number > 10'000) throw Error(ErrorKind::internal, "nobody noticed");
    ListPage page;
    page.next = fmt::format("token {}", number);
    if (circle == 0) return page;
    for (std::size_t i = 0; i < 10; ++i) {
      page.objects.push_back(
          {fmt::format("{}{:03}.jpg", question.prefix, 10 * (number % circle) + (i + number) % 10), 1, "v"});
    }
    return page;
  };
  list_in_parallel(
      ask, "set/", false, [](ListPage&) { return true; }, "s3://store/set/");
}

TEST(ParallelList, EndsWherePagesComeAgainUnderOtherTokens) {
  for (const std::size_t circle : {1, 2, 7, 0}) {  // 0: pages without keys, which end nowhere
    try {
      list_in_circles(circle);
      ADD_FAILURE() << "circle " << circle;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt) << error.message();
      EXPECT_NE(error.message().find("`s3://store/set/`"), std::string::npos) << error.message();
    }
  }
}

TEST(ParallelList, ThrowsWhatAPageThrewAndEndsEarlyWhereNobodyWantsMore) {
  KeyStore keys;
  add_classes(keys, 100, 200);
  keys.fail_at("set/class-0050/");
  EXPECT_THROW(keys.listed("set/", false), Error);
  keys.fail_at("");
  int pages = 0;
  list_in_parallel([&](const PageQuestion& question) { return keys.answer(question); }, "set/", true,
                   [&](ListPage&) { return ++pages < 3; }, "s3://store");
  EXPECT_EQ(pages, 3);
}

}  // namespace
}  // namespace stoker::storage::s3
