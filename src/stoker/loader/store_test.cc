// The loader on a store with latency, failures and objects that never come. Whatever the store does, the batches are
// those that local files give.
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/loader/made_data_test.h"
#include "stoker/storage/any_store_test.h"

namespace stoker::loader {
namespace {

using std::chrono::milliseconds;
using storage::Failure;

class OnAStore : public ::testing::TestWithParam<storage::StoreKind> {
 protected:
  // The same sounds as objects and as files; the value of sample i is i.
  void put_sounds(int count, std::uint32_t frames = 100) {
    for (int i = 0; i < count; ++i) put(name(i), wav(frames, static_cast<std::int16_t>(i)));
    count_ = count;
  }
  void put(const std::string& name, const std::string& bytes) {
    store_.put("bucket/" + name, bytes);
    folder_.write(name, bytes);
  }
  static std::string name(int i) { return fmt::format("{}/{:06}.wav", i % 2 == 0 ? "even" : "odd", i); }
  static std::string object(int i) { return "bucket/" + name(i); }

  dataset::DatasetPtr objects() const { return open_uncached(store_.address("bucket")); }
  dataset::DatasetPtr files() const { return open_uncached(folder_.path()); }

  static LoaderOptions shuffled(std::uint64_t batch_size, int workers = 2) {
    LoaderOptions options = batches_of(batch_size, workers);
    options.shuffle.how = dataset::Shuffle::How::full;
    options.seed = 7;
    options.transform = transform::parse_ops("pad:100");
    return options;
  }
  template <typename Condition>
  static bool comes_true(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  storage::AnyStore store_{GetParam()};
  Folder folder_;
  int count_ = 0;
};

TEST_P(OnAStore, EveryEpochIsThatOfLocalFilesAndHasEachSampleOnce) {
  put_sounds(101);
  store_.set_latency(milliseconds(2));
  for (const int workers : {0, 1, 3}) {
    for (const std::uint64_t depth : {1, 7, 256}) {
      LoaderOptions options = shuffled(8, workers);
      options.io_depth = depth;
      const std::vector<Taken> epoch = epoch_of(objects(), options, 3);
      EXPECT_EQ(epoch, epoch_of(files(), options, 3));
      std::vector<std::int64_t> all = indices_of(epoch);
      std::sort(all.begin(), all.end());
      for (int i = 0; i < 101; ++i) ASSERT_EQ(all[static_cast<std::size_t>(i)], i);
    }
  }
}

TEST_P(OnAStore, SoundsOfAnyLengthAreThoseOfLocalFiles) {
  for (int i = 0; i < 60; ++i) put(name(i), wav(20 + static_cast<std::uint32_t>(i * 17 % 40), 3));
  store_.set_latency(milliseconds(2));
  LoaderOptions options = shuffled(8);
  options.transform = {};
  EXPECT_EQ(epoch_of(objects(), options), epoch_of(files(), options));
}

TEST_P(OnAStore, KeepsAsManyRequestsInFlightAsItMay) {
  put_sounds(1500);
  LoaderOptions options = shuffled(64);
  options.io_depth = 256;
  options.prefetch_factor = 8;
  Loader loader(objects(), options);
  if (store_.is_s3()) {  // its server answers the first before the last is asked for
    store_.set_latency(milliseconds(20));
  } else {
    store_.memory().await_in_flight(256);
  }
  loader.start_epoch(0);
  EXPECT_EQ(indices_of(drain(loader)).size(), 1500u);
  EXPECT_TRUE(store_.is_s3() || store_.most_in_flight() == 256u) << store_.most_in_flight();
}

TEST_P(OnAStore, ItsThreadsShareTheRequestsInFlight) {
  put_sounds(300);
  store_.set_latency(milliseconds(2));
  for (const std::uint64_t depth : {2, 8}) {
    LoaderOptions options = shuffled(16);
    options.io_threads = 3;
    options.io_depth = depth;
    EXPECT_EQ(epoch_of(objects(), options), epoch_of(files(), options));
    EXPECT_LE(store_.most_in_flight(), std::max<std::uint64_t>(depth, 3)) << "a thread has at least one";
  }
}

TEST_P(OnAStore, ResumesWhereItStood) {
  put_sounds(64);
  store_.set_latency(milliseconds(1));
  const LoaderOptions options = shuffled(5);
  const std::vector<Taken> whole = epoch_of(objects(), options);
  for (const std::uint64_t first : {1, 4, 12}) {
    Loader one(objects(), options);
    std::vector<Taken> got = drain(one, first);
    Loader two(objects(), options);
    two.load_state(one.state());
    for (Taken& batch : drain(two)) got.push_back(std::move(batch));
    EXPECT_EQ(got, whole);
  }
}

TEST_P(OnAStore, BadObjectsAreNamedWithTheTextOfTheStore) {
  if (store_.is_s3()) GTEST_SKIP() << "the texts are those of the store in memory";
  put_sounds(40);
  const dataset::DatasetPtr data = objects();
  store_.memory().fail(object(4), {ErrorKind::unavailable, "503 Slow Down (5 tries)", "", true, false});
  store_.memory().cut_short(object(9), 100);
  store_.put(object(17), wav(100, 99));                                  // another version than was listed
  const std::uint64_t fourth = 2, ninth = 20 + 4, seventeenth = 20 + 8;  // all even ones come first
  for (const OnError policy : {OnError::skip, OnError::zero, OnError::replace}) {
    std::vector<Taken> first;
    for (const int workers : {1, 3}) {
      LoaderOptions options = shuffled(8, workers);
      options.on_error = policy;
      Loader loader(data, options);
      loader.start_epoch(0);
      const std::vector<Taken> epoch = drain(loader);
      if (first.empty()) first = epoch;
      EXPECT_EQ(epoch, first) << "what stands in for a bad sample is always the same";
      std::map<std::uint64_t, std::string> causes;
      for (const SampleError& error : loader.errors()) causes[error.index] = error.cause.in_python();
      EXPECT_EQ(causes, (std::map<std::uint64_t, std::string>{
                            {fourth, "503 Slow Down (5 tries)"},
                            {ninth, "the body ended after 100 of 244 bytes"},
                            {seventeenth, "it changed since it was listed: version v18 then, v41 now"}}));
    }
  }
}

TEST_P(OnAStore, RefusedCredentialsEndTheRunWhateverThePolicy) {
  if (store_.is_s3()) GTEST_SKIP() << "the texts are those of the store in memory";
  put_sounds(20);
  const dataset::DatasetPtr data = objects();
  LoaderOptions options = shuffled(4);
  options.on_error = OnError::skip;
  Loader loader(data, options);
  const storage::Failure refused{ErrorKind::permission, "403 InvalidAccessKeyId", "set AWS_PROFILE", false, true};
  store_.memory().fail(object(6), refused);
  try {
    drain(loader);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::permission);
    EXPECT_EQ(error.hint(), "set AWS_PROFILE");
  }
  store_.memory().fail(object(0), refused);  // which a loader reads to learn what the data set holds
  const std::uint64_t before = store_.requests();
  try {
    Loader refused_at_once(data, options);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::permission);
    EXPECT_EQ(error.hint(), "set AWS_PROFILE");
  }
  EXPECT_EQ(store_.requests(), before + 1);
}

TEST_P(OnAStore, OneSlowObjectDoesNotHoldTheRoomOfThoseBehindIt) {
  put_sounds(200, 4000);
  LoaderOptions options = batches_of(8);
  options.transform = transform::parse_ops("pad:100");
  options.prefetch_factor = 16;
  options.read_ahead = 64 << 10;  // about eight samples
  const std::vector<Taken> expected = epoch_of(files(), options);
  const dataset::DatasetPtr data = objects();
  Loader loader(data, options);
  const std::uint64_t before = store_.answered();
  store_.hold(object(0));  // the first of the first batch
  loader.start_epoch(0);
  EXPECT_TRUE(comes_true([&] { return store_.answered() - before >= 100; }))
      << "only " << store_.answered() - before << " were read beside it";
  EXPECT_LE(loader.stats().memory_peak, options.memory_limit);
  store_.let_go();
  EXPECT_EQ(drain(loader), expected);
}

TEST_P(OnAStore, StaysBelowTheMemoryLimit) {
  put_sounds(300, 20'000);
  store_.set_latency(milliseconds(2));
  LoaderOptions options = shuffled(4);
  options.memory_limit = 12 << 20;
  options.prefetch_factor = 4;
  Loader loader(objects(), options);
  loader.start_epoch(0);
  EXPECT_EQ(indices_of(drain(loader)).size(), 300u);
  EXPECT_LE(loader.stats().memory_peak, options.memory_limit);
}

TEST_P(OnAStore, ASampleThatNeverComesIsNamedByTheWatchdogAndClosingDoesNotWaitForIt) {
  put_sounds(20);
  for (const Decode decode : {Decode::exact, Decode::none}) {  // none: several rows are read as one unit
    LoaderOptions options = batches_of(4);
    options.decode = decode;
    options.timeout = milliseconds(1000);  // longer than connecting takes on a busy machine
    const dataset::DatasetPtr data = objects();
    Loader loader(data, options);
    store_.hold(object(4));
    try {
      drain(loader);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("even/000004.wav"), std::string::npos) << error.message();
      EXPECT_NE(error.message().find("stage fetch"), std::string::npos) << error.message();
    }
    loader.close();
    store_.let_go();
  }
}

TEST_P(OnAStore, NothingIsRequestedBeyondTheLastEpoch) {
  put_sounds(40);
  LoaderOptions options = shuffled(4);
  options.epochs = 2;
  const dataset::DatasetPtr data = objects();
  const auto requests_of = [&](std::uint64_t first) {
    Loader loader(data, options);
    const std::uint64_t before = store_.requests();
    for (std::uint64_t epoch = first; epoch < 2; ++epoch) {
      loader.start_epoch(epoch);
      EXPECT_EQ(drain(loader), epoch_of(files(), options, epoch));
    }
    loader.close();
    return store_.requests() - before;
  };
  EXPECT_EQ(requests_of(0), 80u);
  EXPECT_EQ(requests_of(1), 40u) << "a run that resumes in the last epoch";
  // Whoever goes on gets its epochs all the same, without anything read ahead.
  Loader loader(data, options);
  const std::uint64_t before = store_.requests();
  for (std::uint64_t epoch = 1; epoch < 4; ++epoch) {
    loader.start_epoch(epoch);
    EXPECT_EQ(drain(loader), epoch_of(files(), options, epoch));
  }
  loader.close();
  EXPECT_EQ(store_.requests() - before, 120u);
}

TEST_P(OnAStore, NothingIsRequestedBeyondTheLastStepThatIsExpected) {
  put_sounds(40);
  const LoaderOptions options = shuffled(4);
  Loader loader(objects(), options);
  const std::uint64_t before = store_.requests();
  const auto take = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      if (loader.next()) continue;
      loader.start_epoch(loader.epoch() + 1);
      ASSERT_TRUE(loader.next());
    }
  };
  loader.expect_steps(3);
  take(3);
  EXPECT_EQ(store_.requests() - before, 12u);
  take(2);  // the limit is lifted
  loader.expect_steps(7);
  take(7);
  loader.close();
  EXPECT_GE(store_.requests() - before, 48u);
  EXPECT_EQ(loader.stats().samples, 48u);
}

TEST_P(OnAStore, ObjectsAreKeptInMemoryAfterTheFirstEpoch) {
  put_sounds(50);
  LoaderOptions options = shuffled(8);
  options.storage = storage::Storage::ram;
  const dataset::DatasetPtr data = objects();
  std::uint64_t all = 0;
  for (std::uint64_t i = 0; i < data->size(); ++i) all += data->location(i).bytes;
  Loader loader(data, options);
  loader.start_epoch(0);
  drain(loader);
  ASSERT_TRUE(comes_true([&] { return loader.stats().ram_bytes >= all; })) << "the rest is read beside the epochs";
  loader.start_epoch(5);
  EXPECT_EQ(drain(loader), epoch_of(files(), shuffled(8), 5));
  const std::uint64_t before = store_.requests();
  loader.start_epoch(9);
  EXPECT_EQ(drain(loader), epoch_of(files(), shuffled(8), 9));
  EXPECT_EQ(store_.requests(), before) << "nothing is asked for twice";
}

TEST_P(OnAStore, RowsOfAnArrayAreReadStraightIntoTheBatch) {
  put("x.npy", npy(500, 64));
  store_.set_latency(milliseconds(1));
  for (const storage::Storage storage : {storage::Storage::buffered, storage::Storage::ram}) {
    LoaderOptions options = shuffled(16);
    options.transform = {};
    options.storage = storage;
    EXPECT_EQ(epoch_of(open_uncached(store_.address("bucket/x.npy")), options),
              epoch_of(open_uncached(folder_.path("x.npy")), options));
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, OnAStore, ::testing::ValuesIn(storage::kStores),
                         [](const auto& kind) { return storage::name_of(kind.param); });

#ifdef STOKER_HAS_S3
class OnS3Alone : public OnAStore {};

TEST_P(OnS3Alone, AnEpochOverAFailingServerIsThatOfLocalFiles) {
  put_sounds(120);
  const LoaderOptions options = shuffled(8);
  const std::vector<Taken> expected = epoch_of(files(), options);
  const dataset::DatasetPtr data = objects();
  for (int i = 0; i < 120; ++i) {
    if (i % 4 == 0) store_.s3().fail(object(i), {.status = 503, .code = "SlowDown"});
    if (i % 5 == 0) store_.s3().fail(object(i), {.cut = 100});
    if (i % 7 == 0) store_.s3().fail(object(i), {.reset = true});
  }
  EXPECT_EQ(epoch_of(data, options), expected);
}

TEST_P(OnS3Alone, AnObjectThatChangedIsABadSampleAndRefusedKeysEndTheRun) {
  put_sounds(20);
  const dataset::DatasetPtr data = objects();
  store_.s3().put(object(6), wav(100, 99));
  LoaderOptions options = shuffled(4);
  options.on_error = OnError::skip;
  {
    Loader loader(data, options);
    EXPECT_EQ(indices_of(drain(loader)).size(), 19u);
    ASSERT_EQ(loader.errors().size(), 1u);
    EXPECT_NE(loader.errors()[0].cause.in_python().find("it changed since it was listed"), std::string::npos);
  }
  Loader loader(data, options);
  store_.s3().refuse_key("test-key", "InvalidAccessKeyId");
  try {
    drain(loader);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::permission);
    EXPECT_NE(error.hint().find("the environment"), std::string::npos) << error.hint();
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, OnS3Alone, ::testing::Values(storage::StoreKind::s3),
                         [](const auto& kind) { return storage::name_of(kind.param); });
#endif

}  // namespace
}  // namespace stoker::loader
