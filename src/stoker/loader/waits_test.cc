// Every wait of the loader: what ends it is noticed, the caller may give up, and the watchdog names what it waits for.
#include <future>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "stoker/loader/held_data_test.h"
#include "stoker/os/fault.h"
#include "stoker/os/ring.h"

namespace stoker::loader {
namespace {

using transform::parse_ops;

LoaderOptions held_options(int workers) {
  LoaderOptions options = batches_of(2, workers);
  options.io_threads = 1;
  options.io_depth = 1;  // a read that waits keeps no other from being finished
  options.transform = parse_ops("pad:100");
  options.timeout = std::chrono::seconds(30);  // a hang becomes an error
  return options;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

class LoaderWaits : public testing::TestWithParam<int> {
 protected:
  std::shared_ptr<HeldData> data_ = held_sounds(20);
  LoaderOptions options_ = held_options(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Workers, LoaderWaits, testing::Values(0, 1, 2));

TEST_P(LoaderWaits, AReadThatEndsWhileTheNextEpochBeginsIsNoticed) {
  Loader loader(data_, options_);
  data_->reads.hold();
  loader.start_epoch(0);
  data_->reads.wait_until_somebody_waits();
  loader.start_epoch(1, 0, [&] {  // asked, so the loader waits by now
    data_->reads.let();
    return false;
  });
  EXPECT_EQ(drain(loader), epoch_of(data_, options_, 1));
}

TEST_P(LoaderWaits, GivingUpTheNextEpochLeavesTheLoaderWhereItStood) {
  const std::vector<Taken> right = epoch_of(data_, options_);
  for (const bool by_state : {false, true}) {
    Loader loader(data_, options_);
    data_->reads.let(4);
    std::vector<Taken> taken = drain(loader, 2);
    const State before = loader.state();
    const auto go_on = [&] {
      State other = before;
      other.epoch = 5;
      const Interrupted give_up = [] { return true; };
      by_state ? loader.load_state(other, give_up) : loader.start_epoch(5, 0, give_up);
    };
    data_->reads.wait_until_somebody_waits();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(message_of(go_on), "interrupted");
    EXPECT_EQ(loader.epoch(), 0u);
    EXPECT_EQ(loader.state().position, before.position);
    data_->reads.let();
    const BatchPtr next = loader.next();
    EXPECT_EQ(next->step(), 2u);
    taken.push_back(copy_out(*next));
    for (const Taken& batch : drain(loader)) taken.push_back(batch);
    EXPECT_EQ(taken, right);
    EXPECT_EQ(loader.state().epoch, 1u);
  }
}

TEST_P(LoaderWaits, GoingWhereTheLoaderStandsAlreadyWaitsForNothing) {
  Loader loader(data_, options_);
  State state = loader.state();
  state.epoch = 3;
  state.position = 5;
  data_->reads.hold();
  loader.load_state(state);
  data_->reads.wait_until_somebody_waits();
  loader.start_epoch(3, 5, [] { return true; });  // what was prefetched is kept
  data_->reads.let();
  EXPECT_EQ(indices_of(drain(loader)).front(), 5);
  EXPECT_EQ(loader.state().epoch, 4u);
}

TEST_P(LoaderWaits, ClosingEndsTheWaitForTheNextEpoch) {
  Loader loader(data_, options_);
  data_->reads.hold();
  loader.start_epoch(0);
  data_->reads.wait_until_somebody_waits();
  std::promise<void> waits;
  auto began = std::async(std::launch::async, [&] {
    return message_of([&] {
      loader.start_epoch(1, 0, [&, said = false]() mutable {
        if (!std::exchange(said, true)) waits.set_value();
        return false;
      });
    });
  });
  waits.get_future().wait();
  auto closed = std::async(std::launch::async, [&] { loader.close(); });
  EXPECT_EQ(began.get(), "the loader was closed while an epoch began");
  data_->reads.let();
  closed.get();
}

TEST_P(LoaderWaits, GivingUpCloseLeavesItToALaterOne) {
  Loader loader(data_, options_);
  data_->reads.hold();
  loader.start_epoch(0);
  data_->reads.wait_until_somebody_waits();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(message_of([&] { loader.close([] { return true; }); }), "interrupted");
  EXPECT_EQ(message_of([&] { loader.next(); }), "the loader is closed");
  EXPECT_EQ(loader.stats().slabs_held, 0u);
  data_->reads.let();
  loader.close();
  loader.close();
}

TEST_P(LoaderWaits, TheWatchdogNamesTheReadThatTheNextEpochAndTheEndWaitFor) {
  options_.timeout = std::chrono::milliseconds(80);
  Loader loader(data_, options_);
  data_->reads.hold();
  loader.start_epoch(0);
  data_->reads.wait_until_somebody_waits();
  const std::string begin = message_of([&] { loader.start_epoch(1); });
  EXPECT_NE(begin.find(": the next epoch waits for `held[0]` (sample 0) in stage fetch"), std::string::npos) << begin;
  const std::string next = message_of([&] { loader.next(); });  // waits for the same read first
  EXPECT_NE(next.find("`held[0]` (sample 0) in stage fetch"), std::string::npos) << next;
  const std::string close = message_of([&] { loader.close(); });
  EXPECT_NE(close.find(": close() waits for `held[0]` (sample 0) in stage fetch"), std::string::npos) << close;
  data_->reads.let();
  loader.close();
}

TEST_P(LoaderWaits, TheWatchdogNamesTheSampleThatIsStillDecoded) {
  if (GetParam() == 0) return;  // the calling thread decodes, and cannot wait for itself
  const auto data = std::make_shared<HeldData>(std::vector(20, image_with_16_bits()));
  options_.timeout = std::chrono::milliseconds(80);
  options_.transform = parse_ops("window");  // a worker asks for hu_offset, and waits there
  Loader loader(data, options_);
  data->decodes.hold();
  loader.start_epoch(0);
  data->decodes.wait_until_somebody_waits();
  for (const auto& call :
       {std::function<void()>([&] { loader.next(); }), std::function<void()>([&] { loader.start_epoch(1); }),
        std::function<void()>([&] { loader.close(); })}) {
    const std::string message = message_of(call);
    EXPECT_NE(message.find("waits for `held[0]` (sample 0) in stage prep"), std::string::npos) << message;
  }
  data->decodes.let();
  loader.close();
}

TEST_P(LoaderWaits, ALoaderWhoseStorageNeverAnswersCanBeDropped) {
  options_.timeout = std::chrono::milliseconds(80);
  auto loader = std::make_unique<Loader>(data_, options_);
  data_->reads.hold();
  loader->start_epoch(0);
  data_->reads.wait_until_somebody_waits();
  loader.reset();  // its threads and their memory stay
  data_->reads.let();
}

TEST_P(LoaderWaits, ClosingFromInsideTheQuestionEndsTheCall) {
  Loader loader(data_, options_);
  data_->reads.hold();
  EXPECT_EQ(message_of([&] {
              loader.next([&] {
                data_->reads.let();
                loader.close();
                return false;
              });
            }),
            "the loader was closed while a batch was awaited");
}

TEST_P(LoaderWaits, ClosingWhileTheThreadsStartJoinsThem) {
  for (int round = 0; round < 40; ++round) {
    Loader loader(data_, options_);
    std::promise<void> begun;
    std::thread consumer([&] {
      begun.set_value();
      EXPECT_THROW(
          while (true) {
            loader.start_epoch(0);
            drain(loader);
          },
          Error);
    });
    begun.get_future().wait();
    for (int i = 0; i < round; ++i) std::this_thread::yield();
    loader.close();
    consumer.join();
  }
}

TEST_P(LoaderWaits, AnIoThreadThatFailsEndsTheLoaderForGood) {
  int refused = 0;
  if (!os::Ring::try_make(1, refused)) GTEST_SKIP() << "io_uring is refused here: error " << refused;
  Folder folder;
  write_wavs(folder, 200);
  Loader loader(open_uncached(folder.path()), options_);
  loader.next();
  std::string why;
  {
    const os::InjectFault fails(os::Call::ring_enter, {.error_number = EIO, .times = 1'000'000});
    why = message_of([&] { drain(loader); });
  }
  EXPECT_NE(why.find("io_uring"), std::string::npos) << why;
  EXPECT_EQ(message_of([&] { loader.start_epoch(1); }), why);
  EXPECT_EQ(message_of([&] { loader.next(); }), why);
}

}  // namespace
}  // namespace stoker::loader
