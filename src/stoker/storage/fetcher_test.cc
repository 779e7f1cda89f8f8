// One suite for every kind of fetcher.
#include "stoker/storage/fetcher.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/arena.h"
#include "stoker/os/fault.h"
#include "stoker/os/fd.h"
#include "stoker/os/temp_folder_test.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/memory_store_test.h"

namespace stoker::storage {
namespace {

using os::Call;
using os::InjectFault;
using std::chrono::milliseconds;

constexpr auto kForever = std::chrono::nanoseconds::max();

std::string pattern(std::size_t bytes, std::uint64_t seed = 0) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(((i + seed * 77) * 2654435761u) >> 13);
  return text;
}

enum class Place {
  files,
  store,
  files_of_two,  // a fetcher for files and a store; here the files
  store_of_two,
};

struct Kind {
  const char* name;
  Storage storage;
  bool allow_io_uring;
  Place place = Place::files;
};

void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}

constexpr Kind kKinds[] = {
    {"RingBuffered", Storage::buffered, true},
    {"RingDirect", Storage::direct, true},
    {"PlainBuffered", Storage::buffered, false},
    {"PlainDirect", Storage::direct, false},
    {"Mmap", Storage::mmap, true},
    {"Store", Storage::buffered, true, Place::store},
    {"FilesOfTwo", Storage::buffered, true, Place::files_of_two},
    {"PlainFilesOfTwo", Storage::buffered, false, Place::files_of_two},
    {"DirectFilesOfTwo", Storage::direct, true, Place::files_of_two},
    {"StoreOfTwo", Storage::buffered, true, Place::store_of_two},
};

// What came back, with the bytes copied out.
struct Answer {
  FetchCode code;
  int error_number;
  std::uint64_t actual_bytes;
  std::string text;
};

class EveryFetcher : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override { start(16, 4); }

  void start(std::size_t depth, std::size_t io_batch) {
    std::string reason;
    fetcher_ = make(depth, io_batch, &reason);
    if (!reason.empty()) GTEST_SKIP() << reason;
    directory_ = os::open_file(folder_.path(), O_RDONLY | O_DIRECTORY);
  }
  std::unique_ptr<Fetcher> make(std::size_t depth, std::size_t io_batch, std::string* reason = nullptr) {
    const FetcherOptions options{GetParam().storage, depth, io_batch, GetParam().allow_io_uring};
    const Backend* const both[] = {&local_files(), &store_};
    switch (GetParam().place) {
      case Place::files:
        return make_fetcher(options, reason);
      case Place::store:
        return make_fetcher(options, std::span(both).last(1), reason);
      case Place::files_of_two:
      case Place::store_of_two:
        return make_fetcher(options, both, reason);
    }
    return nullptr;
  }
  bool has_objects() const { return GetParam().place == Place::store || GetParam().place == Place::store_of_two; }
  bool is_store_alone() const { return GetParam().place == Place::store; }

  // A file or an object.
  void put(const std::string& name, const std::string& text) {
    if (has_objects()) {
      store_.put("bucket/" + name, text);
    } else {
      folder_.file(name, text);
    }
  }
  std::unique_ptr<Source> open(const std::string& name, const std::string& text) {
    put(name, text);
    return has_objects() ? store_.open("bucket/" + name, Storage::buffered)
                         : open_source(folder_.path() + "/" + name, GetParam().storage);
  }
  Location location(const std::string& name, std::uint64_t bytes) {
    if (!has_objects()) return Location::in_folder(directory_.get(), names_.emplace_back(name).c_str(), bytes);
    return Location::in_store(store_, names_.emplace_back("bucket/" + name).c_str(), nullptr, 0, bytes);
  }
  bool is_ring() const { return GetParam().allow_io_uring && GetParam().storage != Storage::mmap; }

  // A buffer that stays until the test ends, of exactly the size asked for.
  std::span<std::byte> buffer(std::uint64_t bytes) {
    const std::size_t need = fetcher_->buffer_bytes(bytes);
    arenas_.emplace_back(need + 1);
    return {arenas_.back().data(), need};
  }

  Fetch file(const std::string& name, std::uint64_t bytes, std::uint64_t tag = 0) {
    return {.where = location(name, bytes), .into = buffer(bytes), .tag = tag};
  }
  Fetch range(const Source& source, std::uint64_t offset, std::uint64_t bytes, std::uint64_t tag = 0) {
    return {.where = Location::in_source(&source, offset, bytes), .into = buffer(bytes), .tag = tag};
  }

  // Submits all of them, as there is room, and waits for all; by tag.
  std::map<std::uint64_t, Answer> fetch_all(const std::vector<Fetch>& fetches) {
    std::map<std::uint64_t, Answer> answers;
    std::size_t next = 0;
    std::vector<Fetched> out(7);
    while (answers.size() < fetches.size()) {
      const std::size_t count = std::min(fetcher_->room(), fetches.size() - next);
      fetcher_->submit(std::span(fetches).subspan(next, count));
      next += count;
      const std::size_t filled = fetcher_->wait(out, kForever);
      for (std::size_t i = 0; i < filled; ++i) {
        const Fetched& one = out[i];
        const bool added =
            answers
                .emplace(one.tag, Answer{one.code, one.error_number, one.actual_bytes,
                                         std::string(reinterpret_cast<const char*>(one.data.data()), one.data.size())})
                .second;
        EXPECT_TRUE(added) << "tag " << one.tag << " came twice";
      }
    }
    EXPECT_EQ(fetcher_->in_flight(), 0u);
    return answers;
  }
  Answer fetch_one(const Fetch& fetch) { return fetch_all({fetch}).at(fetch.tag); }

  void expect_ok(const Answer& answer, const std::string& text) {
    EXPECT_EQ(answer.code, FetchCode::ok) << "error " << answer.error_number << " actual " << answer.actual_bytes;
    EXPECT_TRUE(answer.text == text);
  }
  void expect_failed(const Answer& answer, int error_number) {
    EXPECT_EQ(answer.code, FetchCode::failed);
    EXPECT_EQ(answer.error_number, error_number) << std::strerror(answer.error_number);
  }

  MemoryStore store_;
  os::TempFolder folder_;
  os::Fd directory_;
  std::deque<std::string> names_;
  std::vector<os::Arena> arenas_;
  std::unique_ptr<Fetcher> fetcher_;
};

TEST_P(EveryFetcher, GivesTheExactBytesOfFilesOfEverySize) {
  std::vector<Fetch> fetches;
  std::vector<std::string> texts, names;
  for (const std::size_t bytes : {0, 1, 511, 512, 4095, 4096, 4097, 7000, 8192, 65'536, 300'001}) {
    names.push_back("deep/er/" + std::to_string(bytes));
    texts.push_back(pattern(bytes, bytes));
    put(names.back(), texts.back());
  }
  for (std::size_t i = 0; i < texts.size(); ++i) fetches.push_back(file(names[i], texts[i].size(), i));
  const auto answers = fetch_all(fetches);
  for (std::size_t i = 0; i < texts.size(); ++i) expect_ok(answers.at(i), texts[i]);
}

TEST_P(EveryFetcher, ReadsManyMoreFilesThanItIsDeep) {
  std::vector<Fetch> fetches;
  std::vector<std::string> texts, names;
  for (std::size_t i = 0; i < 500; ++i) {
    names.push_back(std::to_string(i));
    texts.push_back(pattern(i * 37 % 9000, i));
    put(names.back(), texts.back());
  }
  for (std::size_t i = 0; i < 500; ++i) fetches.push_back(file(names[i], texts[i].size(), i));
  for (int round = 0; round < 2; ++round) {
    const auto answers = fetch_all(fetches);
    for (std::size_t i = 0; i < 500; ++i) ASSERT_TRUE(answers.at(i).text == texts[i]) << i;
  }
}

TEST_P(EveryFetcher, ThePathIsBorrowedOnlyUntilSubmitReturns) {
  const std::string text = pattern(3000);
  put("name", text);
  std::string name = "name";
  Fetch fetch = file("name", 3000);
  if (!has_objects()) fetch.where.name = name.c_str();
  fetcher_->submit({&fetch, 1});
  name = "else";
  Fetched fetched;
  ASSERT_EQ(fetcher_->wait({&fetched, 1}, kForever), 1u);
  EXPECT_EQ(fetched.code, FetchCode::ok);
}

TEST_P(EveryFetcher, AnAbsolutePathNeedsNoDirectory) {
  if (has_objects()) GTEST_SKIP() << "about files";
  const std::string path = folder_.file("f", "abc");
  Fetch fetch = file(path, 3);
  fetch.where.directory = AT_FDCWD;
  expect_ok(fetch_one(fetch), "abc");
}

TEST_P(EveryFetcher, AViewIsCopiedIntoTheBufferThatIsGivenAndAnsweredInPlaceWithoutOne) {
  if (is_store_alone()) GTEST_SKIP() << "a store reads its own objects only";
  const std::string text = "all of it lies in memory";
  const auto source = memory_source("memory", std::as_bytes(std::span(text)));
  std::array<std::byte, 9> into{};
  const auto answer = [&](std::span<std::byte> buffer) {
    const Fetch fetch{.where = Location::in_source(source.get(), 7, 9), .into = buffer};
    fetcher_->submit({&fetch, 1});
    Fetched out;
    EXPECT_EQ(fetcher_->wait({&out, 1}, kForever), 1u);
    return out.data;
  };

  EXPECT_EQ(answer({}).data(), source->view().data() + 7);
  EXPECT_EQ(answer(into).data(), into.data());
  EXPECT_EQ(std::memcmp(into.data(), text.data() + 7, 9), 0);
}

TEST_P(EveryFetcher, ReadsRangesOfEverySourceAtEveryOffset) {
  constexpr std::size_t kSize = 100'003;
  const std::string text = pattern(kSize);
  const std::string path = folder_.file("f", text);
  std::vector<std::unique_ptr<Source>> sources;
  if (has_objects()) sources.push_back(open("f", text));
  if (!is_store_alone()) {
    sources.push_back(open_source(path, Storage::buffered));
    sources.push_back(open_source(path, Storage::mmap));
    sources.push_back(memory_source("memory", std::as_bytes(std::span(text))));
  }
  // A direct source needs the buffers that only a direct fetcher asks for.
  if (GetParam().storage == Storage::direct) sources.push_back(open_source(path, Storage::direct));
  for (const auto& source : sources) {
    EXPECT_EQ(fetcher_->reads_in_place(*source), !source->is_direct());
    std::vector<Fetch> fetches;
    for (const std::uint64_t offset : {0, 1, 4095, 4096, 4097, 99'999, 100'003}) {
      for (const std::uint64_t bytes : {0, 1, 4, 4096, 4097, 50'000}) {
        if (offset + bytes <= kSize) fetches.push_back(range(*source, offset, bytes, fetches.size()));
      }
    }
    const auto answers = fetch_all(fetches);
    for (const Fetch& fetch : fetches)
      expect_ok(answers.at(fetch.tag), text.substr(fetch.where.offset, fetch.where.bytes));
  }
}

TEST_P(EveryFetcher, RangesThatAreReadInPlaceNeedNoSlackAndTouchNothingBeyond) {
  const std::string text = pattern(5000);
  const auto source = has_objects() ? open("f", text) : open_source(folder_.file("f", text), Storage::buffered);
  std::string slot(1002, '#');
  Fetch fetch{.where = Location::in_source(source.get(), 123, 1000), .into = {}};
  fetch.into = std::as_writable_bytes(std::span(slot)).subspan(1, 1000);
  expect_ok(fetch_one(fetch), text.substr(123, 1000));
  EXPECT_EQ(slot, "#" + text.substr(123, 1000) + "#");
}

// A source without a descriptor whose reads fail, as a store's may.
class RefusingSource final : public Source {
 public:
  std::string_view name() const noexcept override { return "store://refused"; }
  std::uint64_t size_bytes() const noexcept override { return 100; }
  void read(std::span<const Read>) const override {
    throw Error(ErrorKind::permission, "cannot read `store://refused`: 403 Forbidden", "look at the credentials");
  }
};

TEST_P(EveryFetcher, AFailureWithoutAnErrorNumberKeepsItsKindItsTextAndItsHint) {
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

TEST_P(EveryFetcher, SaysWhetherARetryMayHelp) {
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

TEST_P(EveryFetcher, RangesPastTheEndAreTold) {
  const auto source = open("f", "0123456789");
  for (const auto& [offset, bytes] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{9, 2}, {11, 0}, {~0ull, 2}}) {
    const Answer answer = fetch_one(range(*source, offset, bytes));
    EXPECT_EQ(answer.code, FetchCode::size_changed);
    EXPECT_EQ(answer.actual_bytes, 10u);
  }
}

TEST_P(EveryFetcher, ASourceCutShortAfterOpeningIsTold) {
  if (has_objects()) GTEST_SKIP() << "about files";
  if (GetParam().storage == Storage::mmap) GTEST_SKIP() << "answers out of the view without looking";
  const std::string path = folder_.file("f", pattern(50'000));
  const auto source = open_source(path, GetParam().storage);
  ASSERT_EQ(::truncate(path.c_str(), 20'000), 0);
  const Answer answer = fetch_one(range(*source, 10'000, 30'000));
  EXPECT_EQ(answer.code, FetchCode::size_changed);
  EXPECT_EQ(answer.actual_bytes, 20'000u);
}

TEST_P(EveryFetcher, FilesThatChangedSizeAreTold) {
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

TEST_P(EveryFetcher, BadFilesAreAnswersAndTheOthersCome) {
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

TEST_P(EveryFetcher, APipeInPlaceOfAFileIsAnAnswerAndHoldsUpNothingElse) {
  if (has_objects()) GTEST_SKIP() << "about files";
  ASSERT_EQ(::mkfifo((folder_.path() + "/pipe").c_str(), 0600), 0);
  folder_.file("good", "good");
  const auto answers = fetch_all({file("pipe", 4, 1), file("good", 4, 2), file("pipe", 0, 3)});
  EXPECT_NE(answers.at(1).code, FetchCode::ok);
  expect_ok(answers.at(2), "good");
}

TEST_P(EveryFetcher, UnreadableFilesFailWithTheirReason) {
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

TEST_P(EveryFetcher, KeepsToItsDepth) {
  start(3, 2);
  put("f", "abc");
  EXPECT_EQ(fetcher_->room(), 3u);
  std::vector<Fetch> fetches = {file("f", 3, 0), file("f", 3, 1), file("f", 3, 2), file("f", 3, 3)};
  EXPECT_THROW(fetcher_->submit(fetches), Error);
  EXPECT_EQ(fetcher_->in_flight(), 0u);
  fetcher_->submit(std::span(fetches).first(3));
  EXPECT_EQ(fetcher_->room(), 0u);
  EXPECT_EQ(fetcher_->in_flight(), 3u);
  Fetched one;
  ASSERT_EQ(fetcher_->wait({&one, 1}, kForever), 1u);
  EXPECT_EQ(fetcher_->room(), 1u);
  fetcher_->submit(std::span(fetches).last(1));
  std::vector<Fetched> out(4);
  for (std::size_t got = 0; got < 3;) got += fetcher_->wait(out, kForever);
  EXPECT_EQ(fetcher_->room(), 3u);
}

TEST_P(EveryFetcher, RefusesABufferThatIsTooSmall) {
  put("f", pattern(5000));
  Fetch fetch = file("f", 5000);
  fetch.into = fetch.into.first(4999);
  EXPECT_THROW(fetcher_->submit({&fetch, 1}), Error);
  EXPECT_EQ(fetcher_->in_flight(), 0u);
}

TEST_P(EveryFetcher, WaitingWithNothingInFlightReturnsAtOnce) {
  Fetched one;
  EXPECT_EQ(fetcher_->wait({&one, 1}, kForever), 0u);
  EXPECT_EQ(fetcher_->wait({}, kForever), 0u);
}

TEST_P(EveryFetcher, AWakeThatCameBeforeEndsTheNextWaitAndNothingIsLost) {
  put("f", "abc");
  for (int round = 0; round < 3; ++round) {
    fetcher_->wake();
    fetcher_->wake();
    expect_ok(fetch_one(file("f", 3)), "abc");
  }
}

TEST_P(EveryFetcher, StaysUsableWhileAnotherThreadWakesIt) {
  put("f", "abc");
  std::vector<Fetch> fetches;
  for (std::uint64_t i = 0; i < 300; ++i) fetches.push_back(file("f", 3, i));
  std::atomic<bool> stop{false};
  std::jthread waker([&] {
    while (!stop) fetcher_->wake();
  });
  EXPECT_EQ(fetch_all(fetches).size(), 300u);
  stop = true;
}

TEST_P(EveryFetcher, ManyThreadsEachWithOneOfTheirOwn) {
  const std::string text = pattern(7000);
  put("f", text);
  const Location where = location("f", 7000);
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto mine = make(8, 4);
      const std::size_t each = (mine->buffer_bytes(7000) + 4095) / 4096 * 4096;
      const os::Arena arena(8 * each);
      std::vector<Fetched> out(8);
      for (int round = 0; round < 50; ++round) {
        std::vector<Fetch> fetches;
        for (std::size_t i = 0; i < 8; ++i) {
          fetches.push_back({.where = where, .into = {}});
          fetches.back().into = arena.bytes().subspan(i * each, each);
        }
        mine->submit(fetches);
        while (mine->in_flight() > 0) {
          const std::size_t filled = mine->wait(out, kForever);
          for (std::size_t i = 0; i < filled; ++i) {
            if (out[i].code != FetchCode::ok || std::memcmp(out[i].data.data(), text.data(), 7000) != 0) ++wrong;
          }
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_P(EveryFetcher, MayBeMadeUsedAndEndedInDifferentThreads) {
  put("f", "abc");
  std::jthread([this] { expect_ok(fetch_one(file("f", 3)), "abc"); }).join();
  std::jthread([this] {
    const Fetch fetch = file("f", 3);
    fetcher_->submit({&fetch, 1});
  }).join();
  fetcher_.reset();
}

TEST_P(EveryFetcher, EndingItWhileReadsAreInFlightWritesNothingAfterwards) {
  if (has_objects()) GTEST_SKIP() << "about files";
  const std::string text = pattern(300'000);
  const std::string path = folder_.file("f", text);
  for (int round = 0; round < 20; ++round) {
    const os::Fd fd = os::open_file(path, O_RDONLY);
    (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
    const std::size_t each = (fetcher_->buffer_bytes(300'000) + 4095) / 4096 * 4096;
    std::vector<Fetch> fetches;
    {
      os::Arena arena(16 * each);
      for (std::size_t i = 0; i < 16; ++i) {
        fetches.push_back({.where = Location::in_folder(directory_.get(), "f", 300'000), .into = {}});
        fetches.back().into = arena.bytes().subspan(i * each, each);
      }
      fetcher_->submit(fetches);
      Fetched one;
      if (round % 2 == 0) fetcher_->wait({&one, 1}, milliseconds(0));
      fetcher_.reset();
      std::memset(arena.data(), 0x5a, arena.size());
      for (const std::byte byte : arena.bytes()) {
        if (byte != std::byte{0x5a}) {
          ADD_FAILURE() << "written after the end";
          break;
        }
      }
    }
    start(16, 4);
  }
}

TEST_P(EveryFetcher, LeavesNoFileOpen) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  put("f", "abc");
  fetch_all({file("f", 3, 0), file("f", 4, 1), file("none", 1, 2)});
  const auto before = open_files();
  std::vector<Fetch> fetches;
  for (std::uint64_t i = 0; i < 100; ++i) fetches.push_back(file(i % 2 == 0 ? "f" : "none", i % 5, i));
  fetch_all(fetches);
  fetch_all(fetches);
  EXPECT_EQ(open_files(), before);
}

TEST_P(EveryFetcher, InterruptionsAreRepeated) {
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

TEST_P(EveryFetcher, ShortReadsAreContinued) {
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

TEST_P(EveryFetcher, FailingCallsAreAnswersWithTheirErrorNumber) {
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

TEST_P(EveryFetcher, OneFailingFileAmongManyIsTheOnlyOne) {
  if (has_objects()) GTEST_SKIP() << "about files";
  folder_.file("f", "abc");
  std::vector<Fetch> fetches;
  for (std::uint64_t i = 0; i < 40; ++i) fetches.push_back(file("f", 3, i));
  const InjectFault fault(Call::open, {.error_number = EIO, .skip = 17});
  int bad = 0;
  for (const auto& [tag, answer] : fetch_all(fetches)) bad += answer.code != FetchCode::ok;
  EXPECT_EQ(bad, 1);
}

TEST_P(EveryFetcher, WhereTheFlagForDirectReadsIsRefusedFilesComeThroughTheCache) {
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

TEST_P(EveryFetcher, OutOfDescriptorsIsAnAnswer) {
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

TEST_P(EveryFetcher, ObjectsThatFailSayWhyAndTheOthersCome) {
  if (!has_objects()) GTEST_SKIP() << "about objects";
  for (const char* const name : {"good", "denied", "cut", "changed"}) put(name, "0123456789");
  store_.fail("bucket/denied", {ErrorKind::permission, "403 Forbidden", "look at the credentials", false, true});
  store_.cut_short("bucket/cut", 4);
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

TEST_P(EveryFetcher, HasAsManyRequestsInFlightAsItIsDeep) {
  if (!has_objects()) GTEST_SKIP() << "about objects";
  start(256, 32);
  store_.set_latency(milliseconds(20));
  std::vector<Fetch> fetches;
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    texts.push_back(pattern(100 + i, i));
    put(std::to_string(i), texts.back());
    fetches.push_back(file(std::to_string(i), texts[i].size(), i));
  }
  const auto answers = fetch_all(fetches);
  for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(answers.at(i).text == texts[i]) << i;
  EXPECT_EQ(store_.most_in_flight(), 256u);
}

TEST_P(EveryFetcher, AWakeEndsAWaitForWhatDoesNotCome) {
  if (!has_objects()) GTEST_SKIP() << "about objects";
  put("f", "abc");
  store_.hold("bucket/f");
  const Fetch fetch = file("f", 3);
  fetcher_->submit({&fetch, 1});
  std::jthread waker([&] { fetcher_->wake(); });
  Fetched one;
  EXPECT_EQ(fetcher_->wait({&one, 1}, kForever), 0u);
  EXPECT_EQ(fetcher_->wait({&one, 1}, milliseconds(1)), 0u);
  store_.let_go();
  while (fetcher_->wait({&one, 1}, kForever) == 0) {
  }
  EXPECT_EQ(one.code, FetchCode::ok);
}

TEST_P(EveryFetcher, FilesComeWhileObjectsAreAwaited) {
  if (GetParam().place != Place::files_of_two) GTEST_SKIP() << "about two at once";
  put("hit", "abc");
  store_.put("bucket/miss", "defg");
  store_.hold("bucket/miss");
  const Fetch miss{.where = Location::in_store(store_, "bucket/miss", nullptr, 0, 4), .into = buffer(4), .tag = 1};
  fetcher_->submit({&miss, 1});
  for (int round = 0; round < 20; ++round) {
    const Fetch hit = file("hit", 3, 2);
    fetcher_->submit({&hit, 1});
    Fetched one;
    while (fetcher_->wait({&one, 1}, kForever) == 0) {
    }
    EXPECT_EQ(one.tag, 2u);
  }
  EXPECT_EQ(fetcher_->in_flight(), 1u);
  std::jthread later([&] { store_.let_go(); });
  Fetched one;
  while (fetcher_->wait({&one, 1}, kForever) == 0) {
  }
  EXPECT_EQ(one.tag, 1u);
  EXPECT_EQ(one.data.size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(Fetchers, EveryFetcher, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace stoker::storage
