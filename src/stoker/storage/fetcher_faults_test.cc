// One suite for every kind of fetcher: what goes wrong, and what is said about it.
#include "stoker/storage/every_fetcher_test.h"

namespace stoker::storage {
namespace {

class FetcherFaults : public EveryFetcher {};

// A source without a descriptor whose reads fail, as a store's may.
class RefusingSource final : public Source {
 public:
  std::string_view name() const noexcept override { return "store://refused"; }
  std::uint64_t size_bytes() const noexcept override { return 100; }
  void read(std::span<const Read>) const override {
    throw Error(ErrorKind::permission, "cannot read `store://refused`: 403 Forbidden", "look at the credentials");
  }
};

TEST_P(FetcherFaults, AFailureWithoutAnErrorNumberKeepsItsKindItsTextAndItsHint) {
  if (is_store_alone()) GTEST_SKIP() << "a store reads its own objects only";
  const RefusingSource source;
  const Fetch fetch = range(source, 10, 20);
  fetcher_->submit({&fetch, 1});
  Fetched out;
  ASSERT_EQ(fetcher_->wait({&out, 1}, kForever), 1u);
  EXPECT_EQ(out.code, FetchCode::failed);
  const Failure failure = out.why();
  EXPECT_EQ(failure.kind, ErrorKind::permission);
  EXPECT_EQ(failure.text, "cannot read `store://refused`: 403 Forbidden");
  EXPECT_EQ(failure.hint, "look at the credentials");
  EXPECT_FALSE(failure.may_retry);
}

TEST_P(FetcherFaults, SaysWhetherARetryMayHelp) {
  if (has_objects()) GTEST_SKIP() << "about files";
  folder_.file("f", "abc");
  const auto failing = [&](int error_number) {
    const Fetch fetch = file("f", 3);
    const InjectFault fault(Call::read, {.error_number = error_number});
    fetcher_->submit({&fetch, 1});
    Fetched out;
    EXPECT_EQ(fetcher_->wait({&out, 1}, kForever), 1u);
    return out.why();
  };
  EXPECT_TRUE(failing(EIO).may_retry);
  EXPECT_FALSE(failing(EIO).ends_the_run);
  EXPECT_FALSE(failing(EACCES).may_retry);
  EXPECT_TRUE(failing(ENOMEM).ends_the_run);
}

TEST_P(FetcherFaults, RangesPastTheEndAreTold) {
  const auto source = open("f", "0123456789");
  for (const auto& [offset, bytes] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{9, 2}, {11, 0}, {~0ull, 2}}) {
    const Answer answer = fetch_one(range(*source, offset, bytes));
    EXPECT_EQ(answer.code, FetchCode::size_changed);
    EXPECT_EQ(answer.actual_bytes, 10u);
  }
}

TEST_P(FetcherFaults, ASourceCutShortAfterOpeningIsTold) {
  if (has_objects()) GTEST_SKIP() << "about files";
  if (GetParam().storage == Storage::mmap) GTEST_SKIP() << "answers out of the view without looking";
  const std::string path = folder_.file("f", pattern(50'000));
  const auto source = open_source(path, GetParam().storage);
  ASSERT_EQ(::truncate(path.c_str(), 20'000), 0);
  const Answer answer = fetch_one(range(*source, 10'000, 30'000));
  EXPECT_EQ(answer.code, FetchCode::size_changed);
  EXPECT_EQ(answer.actual_bytes, 20'000u);
}

TEST_P(FetcherFaults, FilesThatChangedSizeAreTold) {
  if (has_objects()) GTEST_SKIP() << "about files";
  folder_.file("f", pattern(5000));
  for (const std::uint64_t expected : {0, 1, 4096, 4999, 5001, 8192, 20'000}) {
    const Answer answer = fetch_one(file("f", expected));
    EXPECT_EQ(answer.code, FetchCode::size_changed) << expected;
    EXPECT_EQ(answer.actual_bytes, 5000u) << expected;
  }
  folder_.file("f", "");
  EXPECT_EQ(fetch_one(file("f", 10)).code, FetchCode::size_changed);
  expect_ok(fetch_one(file("f", 0)), "");
}

TEST_P(FetcherFaults, BadFilesAreAnswersAndTheOthersCome) {
  if (has_objects()) GTEST_SKIP() << "about files";
  folder_.file("good", "good");
  std::filesystem::create_directory(folder_.path() + "/folder");
  std::filesystem::create_symlink("loop", folder_.path() + "/loop");
  const std::string gone = folder_.file("gone", "gone");
  std::filesystem::remove(gone);
  const std::string long_name(300, 'x');
  const auto answers =
      fetch_all({file("good", 4, 0), file("none", 4, 1), file("folder", 4, 2), file("loop", 4, 3), file("gone", 4, 4),
                 file("good/x", 4, 5), file(long_name, 4, 6), file("", 4, 7), file("good", 4, 8)});
  expect_ok(answers.at(0), "good");
  expect_failed(answers.at(1), ENOENT);
  expect_failed(answers.at(2), EISDIR);
  expect_failed(answers.at(3), ELOOP);
  expect_failed(answers.at(4), ENOENT);
  expect_failed(answers.at(5), ENOTDIR);
  expect_failed(answers.at(6), ENAMETOOLONG);
  expect_failed(answers.at(7), ENOENT);
  expect_ok(answers.at(8), "good");
}

TEST_P(FetcherFaults, APipeInPlaceOfAFileIsAnAnswerAndHoldsUpNothingElse) {
  if (has_objects()) GTEST_SKIP() << "about files";
  ASSERT_EQ(::mkfifo((folder_.path() + "/pipe").c_str(), 0600), 0);
  folder_.file("good", "good");
  const auto answers = fetch_all({file("pipe", 4, 1), file("good", 4, 2), file("pipe", 0, 3)});
  EXPECT_NE(answers.at(1).code, FetchCode::ok);
  expect_ok(answers.at(2), "good");
}

TEST_P(FetcherFaults, UnreadableFilesFailWithTheirReason) {
  if (has_objects()) GTEST_SKIP() << "about files";
  const std::string path = folder_.file("secret", "secret");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  if (::geteuid() != 0) return expect_failed(fetch_one(file("secret", 6)), EACCES);
  // Root may read everything: ask as nobody, in a process of its own.
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    fetcher_.release();  // the parent's: not ours to end
    fetcher_ = make_fetcher({GetParam().storage, 4, 4, GetParam().allow_io_uring});
    const Answer answer = fetch_one(file("secret", 6));
    ::_exit(answer.code == FetchCode::failed && answer.error_number == EACCES ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_P(FetcherFaults, InterruptionsAreRepeated) {
  if (has_objects()) GTEST_SKIP() << "about files";
  const std::string text = pattern(9000);
  folder_.file("f", text);
  for (const Call call : {Call::open, Call::read, Call::mmap, Call::stat, Call::ring_enter}) {
    const InjectFault fault(call, {.error_number = EINTR, .times = 5});
    expect_ok(fetch_one(file("f", 9000)), text);
  }
  const InjectFault fault(Call::read, {.error_number = EAGAIN, .times = 5});
  expect_ok(fetch_one(file("f", 9000)), text);
}

TEST_P(FetcherFaults, ShortReadsAreContinued) {
  if (has_objects()) GTEST_SKIP() << "about files";
  const std::string text = pattern(30'000);
  const auto source = open_source(folder_.file("f", text), GetParam().storage);
  for (const std::int64_t bytes : {1, 4095, 4096, 8192}) {
    {
      const InjectFault fault(Call::read, {.short_bytes = bytes, .times = 3});
      expect_ok(fetch_one(file("f", 30'000)), text);
      EXPECT_EQ(fault.hits(), 3u);
    }
    const InjectFault fault(Call::read, {.short_bytes = bytes, .times = 3});
    expect_ok(fetch_one(range(*source, 77, 29'000)), text.substr(77, 29'000));
  }
}

TEST_P(FetcherFaults, FailingCallsAreAnswersWithTheirErrorNumber) {
  if (has_objects()) GTEST_SKIP() << "about files";
  folder_.file("f", "abc");
  for (const int error_number : {EIO, EMFILE, ENFILE, ENOSPC, ENOMEM, EACCES, ESTALE}) {
    for (const Call call : {Call::open, Call::read}) {
      const Fetch fetch = file("f", 3);
      const InjectFault fault(call, {.error_number = error_number});
      expect_failed(fetch_one(fetch), error_number);
      EXPECT_EQ(fault.hits(), 1u);
    }
    const InjectFault fault(Call::close, {.error_number = error_number, .times = 100});
    expect_ok(fetch_one(file("f", 3)), "abc");
  }
}

TEST_P(FetcherFaults, OneFailingFileAmongManyIsTheOnlyOne) {
  if (has_objects()) GTEST_SKIP() << "about files";
  folder_.file("f", "abc");
  std::vector<Fetch> fetches;
  for (std::uint64_t i = 0; i < 40; ++i) fetches.push_back(file("f", 3, i));
  const InjectFault fault(Call::open, {.error_number = EIO, .skip = 17});
  int bad = 0;
  for (const auto& [tag, answer] : fetch_all(fetches)) bad += answer.code != FetchCode::ok;
  EXPECT_EQ(bad, 1);
}

TEST_P(FetcherFaults, WhereTheFlagForDirectReadsIsRefusedFilesComeThroughTheCache) {
  if (has_objects()) GTEST_SKIP() << "about files";
  if (GetParam().storage != Storage::direct) GTEST_SKIP() << "not asked for";
  const std::string text = pattern(9000);
  folder_.file("f", text);
  expect_ok(fetch_one(file("f", 9000)), text);
  if (fetcher_->direct_refused()) GTEST_SKIP() << "this file system refuses O_DIRECT";
  for (const Call call : {Call::open, Call::read}) {
    start(16, 4);
    EXPECT_FALSE(fetcher_->direct_refused());
    const InjectFault fault(call, {.error_number = EINVAL});
    expect_ok(fetch_one(file("f", 9000)), text);
    EXPECT_TRUE(fetcher_->direct_refused());
    expect_ok(fetch_one(file("f", 9000)), text);
  }
}

TEST_P(FetcherFaults, OutOfDescriptorsIsAnAnswer) {
  if (has_objects()) GTEST_SKIP() << "about files";
  folder_.file("f", "abc");
  Fetch fetch = file("f", 3);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  rlimit low = old;
  low.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const Answer answer = fetch_one(fetch);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  // A ring with a table of its own needs none of the process.
  if (answer.code != FetchCode::ok) expect_failed(answer, EMFILE);
  if (!is_ring()) {
    EXPECT_EQ(answer.code, FetchCode::failed);
  }
  expect_ok(fetch_one(fetch), "abc");
}

TEST_P(FetcherFaults, ObjectsThatFailSayWhyAndTheOthersCome) {
  if (!has_objects() || is_warm()) GTEST_SKIP() << "about objects that are fetched";
  if (is_s3()) GTEST_SKIP() << "s3/fetcher_test.cc has what its server can do";
  for (const char* const name : {"good", "denied", "cut", "changed"}) put(name, "0123456789");
  store_.memory().fail("bucket/denied",
                       {ErrorKind::permission, "403 Forbidden", "look at the credentials", false, true});
  store_.memory().cut_short("bucket/cut", 4);
  std::vector<Fetch> fetches;
  for (const char* const name : {"good", "denied", "cut", "changed", "none"}) {
    fetches.push_back(file(name, 10, fetches.size()));
  }
  fetches[3].where.version = "another";
  fetcher_->submit(fetches);
  std::map<std::uint64_t, Failure> failures;
  std::vector<Fetched> out(3);
  while (fetcher_->in_flight() > 0) {
    const std::size_t filled = fetcher_->wait(out, kForever);
    for (std::size_t i = 0; i < filled; ++i) {
      EXPECT_EQ(out[i].code == FetchCode::ok, out[i].tag == 0);
      if (out[i].code == FetchCode::failed) failures[out[i].tag] = out[i].why();
    }
  }
  EXPECT_EQ(failures[1].text, "403 Forbidden");
  EXPECT_TRUE(failures[1].ends_the_run);
  EXPECT_EQ(failures[2].text, "the body ended after 4 of 10 bytes");
  EXPECT_TRUE(failures[2].may_retry);
  EXPECT_EQ(failures[3].kind, ErrorKind::corrupt);
  EXPECT_EQ(failures[4].kind, ErrorKind::not_found);
}

INSTANTIATE_TEST_SUITE_P(Fetchers, FetcherFaults, ::testing::ValuesIn(kKinds), name_of_kind);

}  // namespace
}  // namespace stoker::storage
