// What the suites of fetchers share: every kind of fetcher, of files, of a store, and of both at once.
#pragma once

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
#include "stoker/storage/any_store_test.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/object_cache.h"

namespace stoker::storage {

using os::Call;
using os::InjectFault;
using std::chrono::milliseconds;

inline constexpr auto kForever = std::chrono::nanoseconds::max();

inline std::string pattern(std::size_t bytes, std::uint64_t seed = 0) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(((i + seed * 77) * 2654435761u) >> 13);
  return text;
}

enum class Place {
  files,
  store,
  files_of_two,  // a fetcher for files and a store; here the files
  store_of_two,
  cached,         // a store behind a disk cache
  cached_of_two,  // the same, of a fetcher for files too
  warm,           // a disk cache that has all objects already
};

struct Kind {
  const char* name;
  Storage storage;
  bool allow_io_uring;
  Place place = Place::files;
  StoreKind store = StoreKind::memory;
};

inline void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}

inline constexpr Kind kKinds[] = {
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
#ifdef STOKER_HAS_S3
    {"S3", Storage::buffered, true, Place::store, StoreKind::s3},
    {"FilesBesideS3", Storage::buffered, true, Place::files_of_two, StoreKind::s3},
    {"S3OfTwo", Storage::buffered, true, Place::store_of_two, StoreKind::s3},
#endif
#ifdef STOKER_HAS_S3
    {"CachedS3", Storage::buffered, true, Place::cached, StoreKind::s3},
    {"WarmS3", Storage::buffered, true, Place::warm, StoreKind::s3},
#endif
    {"Cached", Storage::buffered, true, Place::cached},
    {"CachedOfTwo", Storage::buffered, true, Place::cached_of_two},
    {"Warm", Storage::buffered, true, Place::warm},
    {"PlainWarm", Storage::buffered, false, Place::warm},
    {"DirectWarm", Storage::direct, true, Place::warm},
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
    FetcherOptions options{GetParam().storage, depth, io_batch, GetParam().allow_io_uring};
    if (is_cached()) options.cache = cache_;
    const Backend* const both[] = {&local_files(), &store_.backend()};
    switch (GetParam().place) {
      case Place::files:
        return make_fetcher(options, reason);
      case Place::store:
      case Place::cached:
      case Place::warm:
        return make_fetcher(options, std::span(both).last(1), reason);
      case Place::files_of_two:
      case Place::store_of_two:
      case Place::cached_of_two:
        return make_fetcher(options, both, reason);
    }
    return nullptr;
  }
  bool has_objects() const { return GetParam().place != Place::files && GetParam().place != Place::files_of_two; }
  bool is_store_alone() const {
    return GetParam().place == Place::store || GetParam().place == Place::cached || is_warm();
  }
  bool is_cached() const {
    return GetParam().place == Place::cached || GetParam().place == Place::cached_of_two || is_warm();
  }
  bool is_warm() const { return GetParam().place == Place::warm; }
  bool is_s3() const { return has_objects() && store_.is_s3(); }

  // A file or an object.
  void put(const std::string& name, const std::string& text) {
    if (has_objects()) {
      store_.put("bucket/" + name, text);
      if (is_warm()) warm(location(name, text.size()), text);
    } else {
      folder_.file(name, text);
    }
  }
  std::unique_ptr<Source> open(const std::string& name, const std::string& text) {
    put(name, text);
    return has_objects() ? store_.open("bucket/" + name) : open_source(folder_.path() + "/" + name, GetParam().storage);
  }
  Location location(const std::string& name, std::uint64_t bytes) {
    if (!has_objects()) return Location::in_folder(directory_.get(), names_.emplace_back(name).c_str(), bytes);
    const std::string& object = names_.emplace_back("bucket/" + name);
    const std::string version = is_cached() ? store_.version(object) : std::string();
    const char* const listed = version.empty() ? nullptr : names_.emplace_back(version).c_str();
    return Location::in_store(store_, object.c_str(), listed, 0, bytes);
  }
  void warm(const Location& where, const std::string& text) {
    const auto key = cache_key(where, store_.backend().identity());
    if (!key) return;
    ObjectCache::Lookup lookup{.key = *key, .bytes = text.size(), .use = {}};
    cache_->look({&lookup, 1});
    ASSERT_EQ(lookup.found, ObjectCache::Found::claimed);
    ASSERT_TRUE(cache_->store(*key, std::as_bytes(std::span(text))));
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

  AnyStore store_{GetParam().store};
  os::TempFolder folder_;
  os::TempFolder cache_folder_;
  std::shared_ptr<ObjectCache> cache_ =
      is_cached() ? std::make_shared<ObjectCache>(cache_folder_.path(), std::uint64_t{1} << 30) : nullptr;
  os::Fd directory_;
  std::deque<std::string> names_;
  std::vector<os::Arena> arenas_;
  std::unique_ptr<Fetcher> fetcher_;
};

inline std::string name_of_kind(const ::testing::TestParamInfo<Kind>& kind) {
  return kind.param.name;
}

}  // namespace stoker::storage
