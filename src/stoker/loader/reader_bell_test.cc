#include "stoker/loader/reader_bell.h"

#include <gtest/gtest.h>

namespace stoker::loader {
namespace {

// Counts how often it is woken.
class WokenFetcher final : public storage::Fetcher {
 public:
  int wakes = 0;

  std::size_t alignment() const noexcept override { return 1; }
  std::size_t buffer_bytes(std::uint64_t bytes) const noexcept override { return bytes; }
  bool reads_in_place(const storage::Source&) const noexcept override { return true; }
  std::size_t room() const noexcept override { return 0; }
  std::size_t in_flight() const noexcept override { return 0; }
  void submit(std::span<const storage::Fetch>) override {}
  std::size_t wait(std::span<storage::Fetched>, std::chrono::nanoseconds) override { return 0; }
  void when_ready(storage::Readiness&) const noexcept override {}
  void wake() noexcept override { ++wakes; }
};

TEST(ReaderBell, EndsTheWaitOfAFetcherWhoseThreadWasRefusedAndOnlyOnce) {
  Signals signals;
  ReaderBell bell(signals);
  WokenFetcher refused, busy;
  ReaderBell::Reader first{&refused}, second{&busy};
  bell.add(first);
  bell.add(second);
  first.refused = true;
  bell.ring();
  bell.ring();
  EXPECT_EQ(refused.wakes, 1);
  EXPECT_EQ(busy.wakes, 0) << "a thread that found room has no use for it";
}

TEST(ReaderBell, IsHeardByAThreadThatLookedBeforeItWasRung) {
  Signals signals;
  ReaderBell bell(signals);
  const std::uint64_t before = bell.rings_locked();
  bell.ring();
  bell.wait(before, std::chrono::hours(1));  // a hang is the failure
  EXPECT_NE(bell.rings_locked(), before);
}

TEST(ReaderBell, LetsGoOfThoseWhoWaitWhenTheEngineStops) {
  Signals signals;
  ReaderBell bell(signals);
  signals.stopping = true;
  bell.wait(bell.rings_locked(), std::chrono::hours(1));  // a hang is the failure
}

}  // namespace
}  // namespace stoker::loader
