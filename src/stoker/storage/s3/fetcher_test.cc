// S3 against a server that fails in every way: each ends in the right bytes or in a failure that says why.
#include "stoker/storage/s3/fetcher.h"

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/temp_folder_test.h"
#include "stoker/storage/s3/store_test.h"

namespace stoker::storage {
namespace {

using std::chrono::milliseconds;

constexpr auto kEver = std::chrono::nanoseconds::max();

std::string made_of(std::size_t bytes, std::size_t seed = 0) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(((i + seed * 77) * 2654435761u) >> 13);
  return text;
}

class OnS3 : public ::testing::Test {
 protected:
  struct Came {
    Fetched fetched;
    std::string text;
  };
  Came fetch(const std::string& name, std::uint64_t bytes, const char* version = nullptr, std::uint64_t offset = 0) {
    return fetch(Location::in_store(store_.backend(), name.c_str(), version, offset, bytes));
  }
  Came fetch_whole(const std::string& name, std::uint64_t bytes) {
    return fetch(Location::whole_object(store_.backend(), name.c_str(), nullptr, bytes));
  }
  Came fetch(const Location& where) {
    const auto fetcher = store_.backend().make_fetcher({.depth = 4}, nullptr);
    return fetch(*fetcher, where);
  }
  static Came fetch(Fetcher& fetcher, const Location& where) {
    std::string into(where.bytes, '?');
    Fetch fetch;
    fetch.where = where;
    fetch.into = std::as_writable_bytes(std::span(into));
    fetcher.submit({&fetch, 1});
    Came came;
    while (fetcher.wait({&came.fetched, 1}, kEver) == 0) {
    }
    came.text = std::move(into);
    return came;
  }
  void expect_bytes(const Came& came, const std::string& text) {
    EXPECT_EQ(came.fetched.code, FetchCode::ok) << (came.fetched.failure ? came.fetched.failure->text : "");
    EXPECT_TRUE(came.text == text);
  }
  Failure failure_when(const std::string& name, std::uint64_t bytes, const char* version = nullptr) {
    const Came came = fetch(name, bytes, version);
    EXPECT_EQ(came.fetched.code, FetchCode::failed);
    const Failure failure = came.fetched.code == FetchCode::failed ? came.fetched.why() : Failure{};
    for (const std::string& text : {failure.text, failure.hint}) {
      EXPECT_EQ(text.find("test-secret"), std::string::npos) << text;
    }
    return failure;
  }
  // Many quick answers, by which the fetcher knows a slow one.
  void learn_what_is_usual(Fetcher& fetcher) {
    store_.put("bucket/usual", "x");
    std::array<std::byte, 1> into{};
    Fetch fetch;
    fetch.where = Location::in_store(store_.backend(), "bucket/usual", nullptr, 0, 1);
    fetch.into = into;
    const std::vector<Fetch> fetches(32, fetch);
    std::vector<Fetched> out(32);
    for (int i = 0; i < 10; ++i) {
      fetcher.submit(fetches);
      while (fetcher.in_flight() > 0) fetcher.wait(out, kEver);
    }
  }
  Error error_when(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return Error(ErrorKind::internal, "");
  }
  std::vector<std::string> list(const std::string& name) {
    std::vector<std::string> names;
    store_.backend().list(name, [&](const Backend::Object& object) {
      names.emplace_back(object.name);
      return true;
    });
    return names;
  }

  S3Store store_;
};

TEST_F(OnS3, ABodyThatBreaksIsContinuedWhereItStopped) {
  const std::string text = made_of(300'000);
  store_.put("bucket/f", text);
  store_.fail("bucket/f", {.cut = 100'000});
  store_.fail("bucket/f", {.cut = 50'000, .reset = true});
  expect_bytes(fetch("bucket/f", text.size()), text);
  const auto seen = store_.seen();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].range, "bytes=0-299999");
  EXPECT_EQ(seen[1].range, "bytes=100000-299999");
  EXPECT_EQ(seen[1].if_match, "\"v1\"") << "the rest must be of the same object";
}

TEST_F(OnS3, AnObjectThatChangesBetweenTwoTriesIsNotMixed) {
  store_.put("bucket/f", made_of(300'000));
  store_.fail("bucket/f", {.cut = 100'000, .hold = true});
  std::string into(300'000, '?');
  const auto fetcher = store_.backend().make_fetcher({.depth = 1}, nullptr);
  Fetch fetch;
  fetch.where = Location::in_store(store_.backend(), "bucket/f", nullptr, 0, into.size());
  fetch.into = std::as_writable_bytes(std::span(into));
  fetcher->submit({&fetch, 1});
  Fetched fetched;
  while (into[0] == '?') fetcher->wait({&fetched, 1}, milliseconds(1));  // the first bytes are there
  store_.put("bucket/f", made_of(300'000, 7));
  store_.let_go();
  while (fetcher->wait({&fetched, 1}, kEver) == 0) {
  }
  ASSERT_EQ(fetched.code, FetchCode::failed);
  EXPECT_EQ(fetched.why().kind, ErrorKind::corrupt);
  EXPECT_NE(fetched.why().text.find("it changed since it was listed"), std::string::npos);
}

TEST_F(OnS3, ABusyServerIsAskedAgain) {
  store_.put("bucket/f", "0123456789");
  for (const int status : {429, 500, 503}) store_.fail("bucket/f", {.status = status, .code = "SlowDown"});
  expect_bytes(fetch("bucket/f", 10), "0123456789");
  EXPECT_EQ(store_.requests(), 4u);
}

TEST_F(OnS3, AServerThatStaysBusyIsAFailureThatCountsTheTries) {
  store_.set("AWS_MAX_ATTEMPTS", "3");
  store_.put("bucket/f", "0123456789");
  store_.fail("bucket/f", {.status = 503, .code = "SlowDown"}, 100);
  const Failure failure = failure_when("bucket/f", 10);
  EXPECT_EQ(failure.text, "HTTP status 503 SlowDown (as told by the test) (3 tries)");
  EXPECT_TRUE(failure.may_retry);
  EXPECT_FALSE(failure.ends_the_run);
  EXPECT_EQ(store_.requests(), 3u);
}

TEST_F(OnS3, AStormOfRefusalsLosesAndRepeatsNothing) {
  std::map<std::string, std::string> texts;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::string name = fmt::format("bucket/{}", i);
    texts[name] = made_of(1000 + i * 37, i);
    store_.put(name, texts[name]);
    if (i % 3 == 0) store_.fail(name, {.status = 503, .code = "SlowDown"});
    if (i % 5 == 0) store_.fail(name, {.cut = 400});
    if (i % 7 == 0) store_.fail(name, {.reset = true});
  }
  const auto fetcher = store_.backend().make_fetcher({.depth = 32}, nullptr);
  std::vector<std::string> names, into;
  for (const auto& [name, text] : texts) {
    names.push_back(name);
    into.emplace_back(text.size(), '?');
  }
  std::size_t next = 0, done = 0;
  std::vector<int> times(names.size(), 0);
  std::vector<Fetched> out(16);
  while (done < names.size()) {
    while (next < names.size() && fetcher->room() > 0) {
      Fetch fetch;
      fetch.where = Location::in_store(store_.backend(), names[next].c_str(), nullptr, 0, into[next].size());
      fetch.into = std::as_writable_bytes(std::span(into[next]));
      fetch.tag = next++;
      fetcher->submit({&fetch, 1});
    }
    const std::size_t filled = fetcher->wait(out, kEver);
    for (std::size_t i = 0; i < filled; ++i) {
      EXPECT_EQ(out[i].code, FetchCode::ok);
      ++times[out[i].tag];
    }
    done += filled;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(times[i], 1);
    EXPECT_TRUE(into[i] == texts[names[i]]) << names[i];
  }
}

TEST_F(OnS3, AServerThatIsStartedAgainIsFoundAgain) {
  const std::string text = made_of(5000);
  store_.put("bucket/f", text);
  expect_bytes(fetch("bucket/f", 5000), text);
  store_.stop();
  const auto fetcher = store_.backend().make_fetcher({.depth = 1}, nullptr);
  std::string into(5000, '?');
  Fetch fetch;
  fetch.where = Location::in_store(store_.backend(), "bucket/f", nullptr, 0, into.size());
  fetch.into = std::as_writable_bytes(std::span(into));
  fetcher->submit({&fetch, 1});
  Fetched fetched;
  EXPECT_EQ(fetcher->wait({&fetched, 1}, milliseconds(20)), 0u) << "it waits for the server";
  store_.start();
  while (fetcher->wait({&fetched, 1}, kEver) == 0) {
  }
  EXPECT_EQ(fetched.code, FetchCode::ok);
  EXPECT_TRUE(into == text);
}

TEST_F(OnS3, AServerThatIsNotThereIsNamed) {
  store_.set("AWS_MAX_ATTEMPTS", "2");
  store_.put("bucket/f", "x");
  store_.stop();
  const Failure failure = failure_when("bucket/f", 1);
  EXPECT_EQ(failure.kind, ErrorKind::unavailable);
  EXPECT_NE(failure.hint.find("http://127.0.0.1:"), std::string::npos) << failure.hint;
  const Error error = error_when([&] { list("bucket"); });
  EXPECT_EQ(error.kind(), ErrorKind::unavailable);
}

TEST_F(OnS3, AnObjectThatIsNotTheListedOneIsAFailure) {
  store_.put("bucket/f", "0123456789");
  expect_bytes(fetch("bucket/f", 10, "v1"), "0123456789");
  EXPECT_EQ(failure_when("bucket/f", 10, "v0").text, "it changed since it was listed: version v0 then, v1 now");
  EXPECT_EQ(failure_when("bucket/f", 20, "v0").text, "it changed since it was listed: version v0 then, v1 now");
  store_.fail("bucket/f", {.etag = "v9"});  // a server that does not know If-Match
  EXPECT_EQ(failure_when("bucket/f", 10, "v1").text, "it changed since it was listed: version v1 then, v9 now");
}

TEST_F(OnS3, AnObjectThatIsNotTheListedOneAndShorterIsAFailure) {
  store_.put("bucket/f", "0123456789");
  const Location beyond = Location::in_store(store_.backend(), "bucket/f", "v0", 10, 5);
  EXPECT_EQ(fetch(beyond).fetched.why().text, "it changed since it was listed: version v0 is gone");
}

TEST_F(OnS3, AnObjectOfAnotherSizeIsTold) {
  store_.put("bucket/f", "0123456789");
  store_.put("bucket/empty", "");
  for (const std::uint64_t bytes : {11, 12, 1000}) {
    const Came came = fetch("bucket/f", bytes);
    EXPECT_EQ(came.fetched.code, FetchCode::size_changed);
    EXPECT_EQ(came.fetched.actual_bytes, 10u);
  }
  EXPECT_EQ(fetch("bucket/f", 5, nullptr, 10).fetched.actual_bytes, 10u);
  EXPECT_EQ(fetch("bucket/f", 0).fetched.actual_bytes, 10u);
  EXPECT_EQ(fetch("bucket/empty", 3).fetched.code, FetchCode::size_changed);
  expect_bytes(fetch("bucket/empty", 0), "");
}

TEST_F(OnS3, AnObjectThatIsLongerThanListedIsAChange) {
  store_.put("bucket/f", "0123456789");
  for (const bool ignores_range : {false, true}) {
    store_.fail("bucket/f", {.ignores_range = ignores_range});
    const Came came = fetch_whole("bucket/f", 9);
    EXPECT_EQ(came.fetched.code, FetchCode::size_changed);
    EXPECT_EQ(came.fetched.actual_bytes, 10u);
  }
  expect_bytes(fetch_whole("bucket/f", 10), "0123456789");
  expect_bytes(fetch("bucket/f", 9), "012345678");  // a part of one whose size nobody said
}

TEST_F(OnS3, ARangeThatIsAnsweredInPartIsNotAChange) {
  store_.put("bucket/f", "0123456789");
  store_.fail("bucket/f", {.range_bytes = 4});
  EXPECT_EQ(failure_when("bucket/f", 10).text,
            "the store answered with bytes 0 to 3 of the 0 to 9 that were asked for");
}

TEST_F(OnS3, ABrokenBodyStartsAgainWhereTheRestIsAnsweredWithTheWholeObject) {
  const std::string text = made_of(100'000);
  store_.put("bucket/f", text);
  store_.fail("bucket/f", {.cut = 70'000});
  store_.fail("bucket/f", {.ignores_range = true});
  expect_bytes(fetch_whole("bucket/f", text.size()), text);
}

TEST_F(OnS3, AServerThatAlwaysBreaksOffAndSendsAllAgainIsGivenUp) {
  const std::string text = made_of(1'000'000);
  store_.put("bucket/f", text);
  store_.set("AWS_MAX_ATTEMPTS", "3");
  store_.fail("bucket/f", {.cut = 700'000, .ignores_range = true}, 20);
  const Came came = fetch_whole("bucket/f", text.size());
  ASSERT_EQ(came.fetched.code, FetchCode::failed);
  EXPECT_LE(store_.requests(), 5u);
}

TEST_F(OnS3, WeakAndStrongTagsOfOneContentAreTheSame) {
  store_.put("bucket/f", "0123456789");
  store_.fail("bucket/f", {.etag = "W/v1"});
  expect_bytes(fetch("bucket/f", 10, "v1"), "0123456789");
  expect_bytes(fetch("bucket/f", 10, "W/\"v1\""), "0123456789");
  EXPECT_EQ(failure_when("bucket/f", 10, "W/\"v2\"").text,
            "it changed since it was listed: version W/\"v2\" then, v1 now");
}

TEST_F(OnS3, AServerWhoseOwnTagsAreWeakIsAskedWithoutIfMatch) {
  store_.put("bucket/f", "0123456789");
  store_.fail("bucket/f", {.etag = "W/v1"}, 5);
  const auto fetcher = store_.backend().make_fetcher({.depth = 1}, nullptr);
  const Location where = Location::in_store(store_.backend(), "bucket/f", "v1", 0, 10);
  for (int i = 0; i < 3; ++i) expect_bytes(fetch(*fetcher, where), "0123456789");
  EXPECT_EQ(store_.requests(), 4u) << "one 412, after which the fetcher compares the tags of answers";
}

TEST_F(OnS3, AServerThatKnowsNoRangesIsToldApart) {
  store_.put("bucket/f", "0123456789");
  store_.fail("bucket/f", {.ignores_range = true}, 2);
  expect_bytes(fetch("bucket/f", 10), "0123456789");
  const Came came = fetch("bucket/f", 4, nullptr, 3);
  ASSERT_EQ(came.fetched.code, FetchCode::failed);
  EXPECT_EQ(came.fetched.why().text, "the store does not answer requests for a range");
}

TEST_F(OnS3, MissingObjectsAndBucketsAreNamed) {
  store_.put("bucket/f", "x");
  EXPECT_EQ(failure_when("bucket/none", 1).text, "there is no such object");
  const Failure failure = failure_when("bukket/f", 1);
  EXPECT_EQ(failure.kind, ErrorKind::not_found);
  EXPECT_NE(failure.text.find("there is no bucket `bukket`"), std::string::npos);
  EXPECT_TRUE(failure.ends_the_run);
  EXPECT_EQ(failure_when("b/f", 1).kind, ErrorKind::usage);
}

TEST_F(OnS3, KeysThatExpireAreRefreshedInBetween) {
  const os::TempFolder folder;
  const auto write = [&](const std::string& key) {
    folder.file("credentials", fmt::format("[default]\naws_access_key_id = {}\naws_secret_access_key = s\n", key));
  };
  write("old");
  store_.set("AWS_ACCESS_KEY_ID", "");
  store_.set("AWS_SECRET_ACCESS_KEY", "");
  store_.set("AWS_SHARED_CREDENTIALS_FILE", folder.path() + "/credentials");
  store_.put("bucket/f", "0123456789");
  expect_bytes(fetch("bucket/f", 10), "0123456789");
  write("new");
  store_.refuse_key("old", "ExpiredToken");
  expect_bytes(fetch("bucket/f", 10), "0123456789");
  EXPECT_NE(store_.seen().back().authorization.find("Credential=new/"), std::string::npos);
  store_.refuse_key("new", "ExpiredToken");
  const Failure failure = failure_when("bucket/f", 10);
  EXPECT_EQ(failure.kind, ErrorKind::permission);
  EXPECT_TRUE(failure.ends_the_run);
  EXPECT_NE(failure.hint.find("profile `default`"), std::string::npos) << failure.hint;
}

TEST_F(OnS3, SessionTokensAndWhoPaysAreSentAndAnonymousRequestsAreNotSigned) {
  store_.put("bucket/f", "x");
  store_.set("AWS_SESSION_TOKEN", "session");
  store_.set("AWS_REQUEST_PAYER", "requester");
  expect_bytes(fetch("bucket/f", 1), "x");
  EXPECT_EQ(store_.seen().back().token, "session");
  EXPECT_EQ(store_.seen().back().payer, "requester");
  EXPECT_TRUE(store_.seen().back().authorization.starts_with("AWS4-HMAC-SHA256 Credential=test-key/"));
  EXPECT_NE(store_.seen().back().authorization.find(";x-amz-content-sha256;"), std::string::npos) << "Amazon wants it";
  EXPECT_TRUE(store_.seen().back().body_hash.starts_with("e3b0c442"));
  store_.set("AWS_NO_SIGN_REQUEST", "yes");
  expect_bytes(fetch("bucket/f", 1), "x");
  EXPECT_EQ(store_.seen().back().authorization, "");
  EXPECT_EQ(store_.seen().back().token, "");
}

TEST_F(OnS3, TheRegionOfABucketIsLearnedFromTheAnswer) {
  store_.put("bucket/f", "x");
  store_.set_region("eu-north-1");
  expect_bytes(fetch("bucket/f", 1), "x");
  EXPECT_EQ(store_.requests(), 2u);
  expect_bytes(fetch("bucket/f", 1), "x");
  EXPECT_EQ(store_.requests(), 3u) << "and kept";
  EXPECT_EQ(list("bucket").size(), 1u);
}

TEST_F(OnS3, ListingsHaveManyPagesAndNoMarksOfFolders) {
  store_.set_page(7);
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back(fmt::format("bucket/set/{:03} +%'=&ü.jpg", i));
    store_.put(expected.back(), "x");
  }
  store_.put("bucket/set/", "");
  store_.put("bucket/set/empty/", "");
  store_.put("bucket/settings", "x");
  EXPECT_EQ(list("bucket/set"), expected);
  EXPECT_EQ(list("bucket/set/"), expected);
  EXPECT_EQ(store_.seen()[1].query.find("delimiter="), 0u) << "it looks for folders to list at once";
  EXPECT_EQ(store_.seen()[2].query.find("continuation-token="), 0u);
  expect_bytes(fetch(expected[5], 1), "x");
}

TEST_F(OnS3, AListingGoesOnAfterFailuresInTheMiddle) {
  store_.set_page(3);
  for (int i = 0; i < 10; ++i) store_.put(fmt::format("bucket/{}", i), "x");
  store_.fail("bucket/", {.status = 500, .code = "InternalError"});
  EXPECT_EQ(list("bucket").size(), 10u);
  store_.fail("bucket/", {.cut = 40});
  EXPECT_EQ(list("bucket").size(), 10u);
}

TEST_F(OnS3, APrefixWithoutObjectsSaysWhatIsNearIt) {
  store_.put("bucket/data/train/1.jpg", "x");
  store_.put("bucket/data/val/1.jpg", "x");
  const Error near = error_when([&] { list("bucket/data/trian"); });
  EXPECT_EQ(near.kind(), ErrorKind::not_found);
  EXPECT_EQ(near.message(), "cannot list `s3://bucket/data/trian/`: no key begins with `data/trian/`");
  EXPECT_EQ(near.hint(), "did you mean `s3://bucket/data/train`?");
  EXPECT_NE(error_when([&] { list("bucket/data/train/1.jpg"); }).hint().find("is one object"), std::string::npos);
  EXPECT_NE(error_when([&] { list("bukket"); }).message().find("there is no bucket `bukket`"), std::string::npos);
  EXPECT_EQ(error_when([&] { list(""); }).kind(), ErrorKind::usage);
}

TEST_F(OnS3, RefusedListingsNameThePermission) {
  store_.put("bucket/f", "x");
  store_.fail("bucket/", {.status = 403, .code = "AccessDenied"});
  const Error error = error_when([&] { list("bucket"); });
  EXPECT_EQ(error.kind(), ErrorKind::permission);
  EXPECT_NE(error.hint().find("s3:ListBucket"), std::string::npos);
}

TEST_F(OnS3, AsManyRequestsAreOnTheWireAsTheFetcherIsDeep) {
  constexpr std::size_t kDepth = 64;
  const auto fetcher = store_.backend().make_fetcher({.depth = kDepth}, nullptr);
  std::vector<std::string> names, into(kDepth, "?");
  for (std::size_t i = 0; i < kDepth; ++i) {
    names.push_back(fmt::format("bucket/{}", i));
    store_.put(names[i], "x");
    store_.hold(names[i]);
  }
  for (std::size_t i = 0; i < kDepth; ++i) {
    Fetch fetch;
    fetch.where = Location::in_store(store_.backend(), names[i].c_str(), nullptr, 0, 1);
    fetch.into = std::as_writable_bytes(std::span(into[i]));
    fetcher->submit({&fetch, 1});
  }
  std::vector<Fetched> out(kDepth);
  while (store_.most_in_flight() < kDepth) EXPECT_EQ(fetcher->wait(out, milliseconds(1)), 0u);
  store_.let_go();
  while (fetcher->in_flight() > 0) fetcher->wait(out, kEver);
  EXPECT_EQ(into, std::vector<std::string>(kDepth, "x"));
}

TEST_F(OnS3, ConnectionsAreUsedAgainAlsoByTheNextFetcher) {
  store_.put("bucket/f", made_of(1000));
  for (int i = 0; i < 50; ++i) expect_bytes(fetch("bucket/f", 1000), made_of(1000));
  EXPECT_EQ(store_.connections(), 1u);
}

TEST_F(OnS3, ARequestThatWaitsMuchLongerThanTheOthersIsAskedForAgain) {
  store_.put("bucket/slow", "abcdefghij");
  const auto fetcher = store_.backend().make_fetcher({.depth = 32}, nullptr);
  std::string into(10, '?');
  Fetched fetched;
  learn_what_is_usual(*fetcher);
  store_.fail("bucket/slow", {.cut = 0, .hold = true});  // its first byte never comes; the second request is answered
  Fetch fetch;
  fetch.where = Location::in_store(store_.backend(), "bucket/slow", nullptr, 0, 10);
  fetch.into = std::as_writable_bytes(std::span(into));
  fetcher->submit({&fetch, 1});
  while (fetcher->wait({&fetched, 1}, kEver) == 0) {
  }
  EXPECT_EQ(fetched.code, FetchCode::ok);
  EXPECT_EQ(into, "abcdefghij");
  store_.let_go();
  EXPECT_GE(fetcher->figures().doubled, 1u);
}

TEST_F(OnS3, AHedgeThatAnswersFirstAndBreaksIsContinued) {
  const std::string text = made_of(200'000);
  store_.put("bucket/slow", text);
  const auto fetcher = store_.backend().make_fetcher({.depth = 32}, nullptr);
  std::string into(text.size(), '?');
  Fetched fetched;
  learn_what_is_usual(*fetcher);
  store_.fail("bucket/slow", {.cut = 0, .hold = true});  // the first request gets no byte
  store_.fail("bucket/slow", {.cut = 70'000});           // the second one breaks off
  Fetch fetch;
  fetch.where = Location::in_store(store_.backend(), "bucket/slow", nullptr, 0, text.size());
  fetch.into = std::as_writable_bytes(std::span(into));
  fetcher->submit({&fetch, 1});
  while (fetcher->wait({&fetched, 1}, kEver) == 0) {
  }
  EXPECT_EQ(fetched.code, FetchCode::ok);
  EXPECT_TRUE(into == text);
  store_.let_go();
}

TEST_F(OnS3, ABodyThatStallsIsGivenUpAndContinued) {
  store_.set("STOKER_S3_STALL_TIMEOUT", "200ms");
  const std::string text = made_of(300'000);
  store_.put("bucket/f", text);
  store_.fail("bucket/f", {.cut = 100'000, .hold = true});
  expect_bytes(fetch("bucket/f", text.size()), text);
  store_.let_go();
}

TEST_F(OnS3, AForkedChildIsRefusedAndDoesNotDisturbItsParent) {
  const std::string text = made_of(1000);
  store_.put("bucket/f", text);
  expect_bytes(fetch("bucket/f", 1000), text);
  auto fetcher = store_.backend().make_fetcher({.depth = 2}, nullptr);
  std::string into(1000, '?');
  Fetch fetch;
  fetch.where = Location::in_store(store_.backend(), "bucket/f", nullptr, 0, into.size());
  fetch.into = std::as_writable_bytes(std::span(into));
  fetcher->submit({&fetch, 1});
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 1;
    try {
      Fetched none;
      fetcher->wait({&none, 1}, milliseconds(0));
    } catch (const Error& error) {
      status = error.kind() == ErrorKind::usage ? 0 : 2;
    }
    fetcher.reset();
    ::_exit(status);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  Fetched fetched;
  while (fetcher->wait({&fetched, 1}, kEver) == 0) {
  }
  EXPECT_EQ(fetched.code, FetchCode::ok);
  EXPECT_TRUE(into == text);
}

TEST_F(OnS3, ASourceReadsLargeRangesInPieces) {
  const std::string text = made_of(20'000'000);
  store_.put("bucket/f", text);
  const auto source = store_.backend().open("bucket/f", Storage::buffered);
  std::string into(text.size() - 5, '?');
  const Read read{5, std::as_writable_bytes(std::span(into))};
  source->read({&read, 1});
  EXPECT_TRUE(into == text.substr(5));
  store_.put("bucket/f", text);
  const Error error = error_when([&] { source->read({&read, 1}); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_NE(error.message().find("`s3://bucket/f` at byte "), std::string::npos) << error.message();
}

}  // namespace
}  // namespace stoker::storage
