// Questions to a store whose answers somebody waits for: listings, and the size of an object.
#include "stoker/storage/s3/session.h"

#include <atomic>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/storage/interruption.h"
#include "stoker/storage/s3/store_test.h"

namespace stoker::storage {
namespace {

std::vector<std::string> names_below(const S3Store& store, const std::string& folder) {
  std::vector<std::string> names;
  store.backend().list(folder, [&](const Backend::Object& object) {
    names.emplace_back(object.name);
    return true;
  });
  return names;
}

template <typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.hint().empty() ? error.message() : fmt::format("{} | {}", error.message(), error.hint());
  }
  return "nothing was thrown";
}

// Interrupts as soon as the store has `requests` requests.
class AfterRequests {
 public:
  AfterRequests(const S3Store& store, std::uint64_t requests)
      : interruption_([&store, requests] { return store.requests() >= requests; }), scope_(&interruption_) {}

 private:
  Interruption interruption_;
  InterruptionScope scope_;
};

TEST(S3Session, ACtrlCEndsAListingThatWaitsForItsFirstPage) {
  S3Store store;
  store.put("bucket/set/a.jpg", "a");
  store.hold("bucket/");  // never answers
  const AfterRequests interrupted(store, 1);
  EXPECT_EQ(message_of([&] { names_below(store, "bucket/set"); }), "interrupted");
}

TEST(S3Session, ACtrlCEndsTheThreadsThatListInParallel) {
  S3Store store;
  for (int c = 0; c < 4; ++c) {
    for (int i = 0; i < 400; ++i) store.put(fmt::format("bucket/set/{}/{:03}.jpg", c, i), "a");
  }
  // The first page, and that of the folders; then every thread waits for a folder of its own.
  store.hold_after(2);
  const AfterRequests interrupted(store, 4);
  EXPECT_EQ(message_of([&] { names_below(store, "bucket/set"); }), "interrupted");
}

TEST(S3Session, ACtrlCEndsTheWaitForAnObjectAndForItsBytes) {
  S3Store store;
  store.put("bucket/a.npy", std::string(1000, 'a'));
  const std::unique_ptr<Source> source = store.backend().open("bucket/a.npy", Storage::buffered);
  store.hold("bucket/a.npy");
  {
    const AfterRequests interrupted(store, store.requests() + 1);
    EXPECT_EQ(message_of([&] { (void)store.backend().open("bucket/a.npy", Storage::buffered); }), "interrupted");
  }
  const AfterRequests interrupted(store, store.requests() + 1);
  std::string bytes(1000, '\0');
  const Read read{0, std::as_writable_bytes(std::span(bytes))};
  EXPECT_EQ(message_of([&] { source->read({&read, 1}); }), "interrupted");
}

TEST(S3Session, ACtrlCEndsThePauseBeforeAnotherTry) {
  S3Store store;
  store.put("bucket/set/a.jpg", "a");
  store.fail("bucket/", {.status = 503, .code = "SlowDown", .headers = "Retry-After: 3600\r\n"}, 100);
  const AfterRequests interrupted(store, 1);
  EXPECT_EQ(message_of([&] { names_below(store, "bucket/set"); }), "interrupted");
}

TEST(S3Session, AListingThatDoesNotMoveOnIsAnErrorThatNamesTheStore) {
  S3Store store;
  for (int i = 0; i < 20; ++i) store.put(fmt::format("bucket/set/{:02}.jpg", i), "a");
  store.set_page(10);
  store.repeat_pages();
  EXPECT_EQ(message_of([&] { names_below(store, "bucket/set"); }),
            "cannot list `s3://bucket/set/`: the store gives the same keys on several pages");
}

TEST(S3Session, AKeyThatIsListedTwiceIsRefusedByName) {
  S3Store store;
  for (int i = 0; i < 20; ++i) store.put(fmt::format("bucket/set/{:02}.jpg", i), "a");
  store.repeat_keys();
  EXPECT_EQ(message_of([&] { names_below(store, "bucket/set"); }),
            "cannot list `s3://bucket/set/`: the store lists the key `set/00.jpg` twice");
}

TEST(S3Session, APrefixThatIsNotThereIsNamedWithWhatIs) {
  S3Store store;
  for (const char* const name : {"photos/a.jpg", "scans/b.jpg", "top.jpg"})
    store.put(fmt::format("bucket/{}", name), "a");
  EXPECT_EQ(message_of([&] { names_below(store, "bucket/photo"); }),
            "cannot list `s3://bucket/photo/`: no key begins with `photo/` | did you mean `s3://bucket/photos`?");
  EXPECT_EQ(message_of([&] { names_below(store, "bucket/elsewhere"); }),
            "cannot list `s3://bucket/elsewhere/`: no key begins with `elsewhere/` | `s3://bucket/` has the prefixes "
            "`photos/`, `scans/`");
  EXPECT_EQ(
      message_of([&] { names_below(store, "bucket//photos"); }),
      "cannot list `s3://bucket//photos/`: no key begins with `/photos/` | the address has a double slash, which is "
      "part of the key: did you mean `s3://bucket/photos`?");
}

}  // namespace
}  // namespace stoker::storage
