// What only the fetcher of io_uring does, and what takes its place where the kernel refuses one.
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"
#include "stoker/os/fd.h"
#include "stoker/os/temp_folder_test.h"
#include "stoker/storage/fetcher.h"

namespace stoker::storage {
namespace {

using os::Call;
using os::InjectFault;
using std::chrono::milliseconds;

constexpr auto kForever = std::chrono::nanoseconds::max();

class RefusedRing : public ::testing::TestWithParam<int> {};

TEST_P(RefusedRing, FallsBackToPlainCallsAndSaysWhyOnce) {
  const os::TempFolder folder;
  const std::string path = folder.file("f", "abc");
  const InjectFault fault(Call::ring_setup, {.error_number = GetParam(), .times = 100});
  std::string reason = "old";
  const auto fetcher = make_fetcher({}, &reason);
  EXPECT_EQ(reason, "io_uring is not available (" + std::string(std::strerror(GetParam())) +
                        "): files are read with plain system calls, one after another");
  std::string buffer(fetcher->buffer_bytes(3), '?');
  const Fetch fetch{.where = Location::in_folder(kWorkingFolder, path.c_str(), 3),
                    .into = std::as_writable_bytes(std::span(buffer))};
  fetcher->submit({&fetch, 1});
  Fetched fetched;
  ASSERT_EQ(fetcher->wait({&fetched, 1}, kForever), 1u);
  EXPECT_EQ(fetched.code, FetchCode::ok);
  EXPECT_EQ(buffer.substr(0, 3), "abc");
}

INSTANTIATE_TEST_SUITE_P(Refusals, RefusedRing, ::testing::Values(EPERM, ENOSYS, EINVAL, ENOMEM));

TEST(MakeFetcher, GivesNoReasonWhereNothingWasRefused) {
  std::string reason = "old";
  make_fetcher({.allow_io_uring = false}, &reason);
  EXPECT_EQ(reason, "");
  make_fetcher({.storage = Storage::mmap}, &reason);
  EXPECT_EQ(reason, "");
}

class RingFetcher : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    fetcher_ = make_fetcher({.depth = 4, .io_batch = 1}, &reason);
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  // A read that does not end by itself: of a pipe nobody writes to.
  class PipeSource final : public Source {
   public:
    PipeSource() {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
      out_ = os::Fd(ends[0]);
      in_ = os::Fd(ends[1]);
    }
    std::string_view name() const noexcept override { return "pipe"; }
    std::uint64_t size_bytes() const noexcept override { return 1 << 20; }
    void read(std::span<const Read>) const override {}
    int descriptor() const noexcept override { return out_.get(); }
    void write(std::string_view text) const {
      ASSERT_EQ(::write(in_.get(), text.data(), text.size()), ssize_t(text.size()));
    }

   private:
    os::Fd out_, in_;
  };
  void submit_endless_read() {
    const Fetch fetch{
        .where = Location::in_source(&pipe_, 0, 4), .into = std::as_writable_bytes(std::span(buffer_)), .tag = 9};
    fetcher_->submit({&fetch, 1});
  }

  PipeSource pipe_;
  std::string buffer_ = "........";
  std::unique_ptr<Fetcher> fetcher_;
  Fetched out_;
};

TEST_F(RingFetcher, WaitsNoLongerThanTheTimeout) {
  submit_endless_read();
  EXPECT_EQ(fetcher_->wait({&out_, 1}, milliseconds(2)), 0u);
  EXPECT_EQ(fetcher_->wait({&out_, 1}, milliseconds(0)), 0u);
  EXPECT_EQ(fetcher_->wait({&out_, 1}, milliseconds(-1)), 0u);
  EXPECT_EQ(fetcher_->in_flight(), 1u);
  pipe_.write("data");
  ASSERT_EQ(fetcher_->wait({&out_, 1}, kForever), 1u);
  EXPECT_EQ(out_.tag, 9u);
  EXPECT_EQ(buffer_, "data....");
}

TEST_F(RingFetcher, AWaitThatWouldLastForeverIsWokenFromAnotherThread) {
  submit_endless_read();
  for (int round = 0; round < 20; ++round) {
    std::jthread waker([this] { fetcher_->wake(); });
    EXPECT_EQ(fetcher_->wait({&out_, 1}, kForever), 0u);
  }
  EXPECT_EQ(fetcher_->in_flight(), 1u);
}

TEST_F(RingFetcher, EndsThoughAReadNeverDoes) {
  submit_endless_read();
  EXPECT_EQ(fetcher_->wait({&out_, 1}, milliseconds(0)), 0u);
  fetcher_.reset();
  pipe_.write("late");
  EXPECT_EQ(buffer_, "........");
}

// A cancellation may come just before the kernel begins to wait for the pipe's writer.
TEST_F(RingFetcher, EndsWhileAPipeIsBeingOpened) {
  const os::TempFolder folder;
  const std::string path = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  for (int round = 0; round < 60; ++round) {
    fetcher_ = make_fetcher({.depth = 4, .io_batch = 1});
    for (std::uint64_t tag = 0; tag < 4; ++tag) {
      const Fetch fetch{.where = Location::in_folder(kWorkingFolder, path.c_str(), 4),
                        .into = std::as_writable_bytes(std::span(buffer_)),
                        .tag = tag};
      fetcher_->submit({&fetch, 1});
    }
    if (round % 2 == 0) (void)fetcher_->wait({&out_, 1}, std::chrono::microseconds(10 * round));
    fetcher_.reset();
  }
}

TEST_F(RingFetcher, ARingThatFailsIsAnErrorAndStillEnds) {
  submit_endless_read();
  {
    const InjectFault fault(Call::ring_enter, {.error_number = EIO});
    EXPECT_THROW(fetcher_->wait({&out_, 1}, kForever), Error);
  }
  {
    const InjectFault fault(Call::ring_enter, {.error_number = EBUSY, .times = 10});
    EXPECT_EQ(fetcher_->wait({&out_, 1}, milliseconds(1)), 0u);
  }
  {
    const InjectFault fault(Call::ring_enter, {.error_number = EAGAIN, .times = 1'000'000});
    EXPECT_THROW(fetcher_->wait({&out_, 1}, kForever), Error);
  }
}

TEST_F(RingFetcher, AForkedChildLetsGoWithoutWaitingForTheParentsReads) {
  submit_endless_read();
  EXPECT_EQ(fetcher_->wait({&out_, 1}, milliseconds(0)), 0u);
  const pid_t child = ::fork();
  if (child == 0) {
    fetcher_.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  pipe_.write("data");
  ASSERT_EQ(fetcher_->wait({&out_, 1}, kForever), 1u);
  EXPECT_EQ(buffer_, "data....");
}

}  // namespace
}  // namespace stoker::storage
