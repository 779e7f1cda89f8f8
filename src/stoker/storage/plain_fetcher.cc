#include "stoker/storage/plain_fetcher.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>

#include "stoker/os/fault.h"
#include "stoker/os/fd.h"
#include "stoker/storage/fetcher_rules.h"
#include "stoker/storage/prefault.h"
#include "stoker/storage/progress.h"

namespace stoker::storage {
namespace {

using Clock = std::chrono::steady_clock;

class PlainFetcher final : public Fetcher {
 public:
  explicit PlainFetcher(const FetcherOptions& options)
      : rules_(options.storage), requests_(std::clamp<std::size_t>(options.depth, 1, kMaxDepth)) {}

  std::size_t alignment() const noexcept override { return rules_.alignment(); }
  std::size_t buffer_bytes(std::uint64_t bytes) const noexcept override { return rules_.buffer_bytes(bytes); }
  bool reads_in_place(const Source& source) const noexcept override { return !source.is_direct(); }
  bool direct_refused() const noexcept override { return direct_refused_; }
  bool reads_one_by_one() const noexcept override { return rules_.storage() != Storage::mmap; }

  std::size_t room() const noexcept override { return requests_.size() - count_; }
  std::size_t in_flight() const noexcept override { return count_; }

  void submit(std::span<const Fetch> fetches) override {
    rules_.check(fetches, room());
    for (const Fetch& fetch : fetches) {
      Request& request = requests_[(first_ + count_) % requests_.size()];
      request.fetch = fetch;
      request.asked = prefault_.ask(mapped(fetch));
      if (fetch.where.name != nullptr) request.path.assign(fetch.where.name);
      ++count_;
    }
  }

  std::size_t wait(std::span<Fetched> out, std::chrono::nanoseconds timeout) override {
    const bool bounded = timeout < std::chrono::hours(24 * 365);
    const Clock::time_point deadline = bounded ? Clock::now() + timeout : Clock::time_point::max();
    std::size_t filled = 0;
    bool all_asked = true;
    if (rules_.storage() == Storage::mmap) prefault_.begin();
    while (count_ > 0 && filled < out.size()) {
      if (wake_.load(std::memory_order_relaxed) && wake_.exchange(false, std::memory_order_acq_rel)) break;
      const Request& request = requests_[first_];
      all_asked = all_asked && request.asked;
      out[filled++] = request.fetch.where.name != nullptr ? fetch_file(request) : fetch_range(request.fetch);
      if (request.fetch.into.empty()) prefault_.settle(mapped(request.fetch), request.asked);
      first_ = (first_ + 1) % requests_.size();
      --count_;
      if (bounded && Clock::now() >= deadline) break;
    }
    if (rules_.storage() == Storage::mmap && filled > 0) prefault_.end(all_asked);
    return filled;
  }

  void when_ready(Readiness& ready) const noexcept override {
    if (count_ > 0) ready.add(std::chrono::nanoseconds::zero());  // it reads inside wait()
  }

  void wake() noexcept override { wake_.store(true, std::memory_order_release); }

 private:
  struct Request {
    Fetch fetch;
    std::string path;
    bool asked = false;  // the disk, for its pages
  };

  // What the read finds in a mapping; empty: it is read otherwise, or not there.
  std::span<const std::byte> mapped(const Fetch& fetch) const noexcept {
    if (fetch.where.source == nullptr || rules_.storage() != Storage::mmap) return {};
    const std::span<const std::byte> view = fetch.where.source->view();
    if (fetch.where.offset > view.size() || fetch.where.bytes > view.size() - fetch.where.offset) return {};
    return view.subspan(fetch.where.offset, fetch.where.bytes);
  }

  // 0, or a negated error number; `progress` has the rest.
  static std::int64_t read_on(int fd, std::byte* buffer, Progress& progress) noexcept {
    int tries_left = 100;
    for (;;) {
      const std::uint64_t at = progress.resume();
      os::Fault fault;
      std::int64_t got = 0;
      if (os::fault_now(os::Call::read, fault) && fault.error_number != 0) {
        got = -fault.error_number;
      } else {
        got = os::read_once(fd, {buffer + at, progress.remaining()}, progress.start + at);
      }
      if (got == -EINTR || (got == -EAGAIN && --tries_left > 0)) continue;
      if (got < 0) return got;
      const std::uint64_t bytes = progress.shortened(static_cast<std::uint64_t>(got), fault.short_bytes);
      if (progress.advance(bytes) != Progress::Next::more) return 0;
    }
  }

  // A whole file is read, not mapped, by every storage: its bytes are copied once either way, and mapping a small file
  // costs several reads of it.
  Fetched fetch_file(const Request& request) noexcept {
    const Fetch& fetch = request.fetch;
    // O_NONBLOCK: opening a pipe must not wait for a writer. Regular files do not care.
    constexpr int kFlags = O_RDONLY | O_NOCTTY | O_NONBLOCK;
    bool direct = rules_.storage() == Storage::direct && !direct_refused_;
    int error_number = 0;
    os::Fd fd =
        os::try_open(fetch.where.directory, request.path.c_str(), kFlags | (direct ? O_DIRECT : 0), error_number);
    Progress progress;
    std::int64_t result = -error_number;
    if (fd) {
      progress = Progress::whole_file(fetch.where.bytes, direct);
      result = read_on(fd.get(), fetch.into.data(), progress);
    }
    if (direct && refuses_direct(static_cast<int>(-result))) {
      fd = os::try_open(fetch.where.directory, request.path.c_str(), kFlags, error_number);
      if (!fd) return failed_fetch(fetch, error_number);
      progress = Progress::whole_file(fetch.where.bytes, false);
      result = read_on(fd.get(), fetch.into.data(), progress);
      direct_refused_ = result == 0;
    }
    if (result < 0) return failed_fetch(fetch, static_cast<int>(-result));
    if (progress.done == fetch.where.bytes) return whole_fetch(fetch, fetch.into.first(fetch.where.bytes));
    return size_changed_fetch(fetch, os::file_size(fd.get()));
  }

  static Fetched fetch_range(const Fetch& fetch) noexcept {
    Fetched fetched;
    if (fetch_without_descriptor(fetch, fetched)) return fetched;
    const int fd = fetch.where.source->descriptor();
    Progress progress = Progress::range(fetch.where.offset, fetch.where.bytes, fetch.where.source->is_direct());
    const std::int64_t result = read_on(fd, fetch.into.data(), progress);
    if (result < 0) return failed_fetch(fetch, static_cast<int>(-result));
    if (progress.done < progress.need) return size_changed_fetch(fetch, os::file_size(fd));
    return whole_fetch(fetch, fetch.into.subspan(progress.head, fetch.where.bytes));
  }

  FetcherRules rules_;
  Prefault prefault_;
  std::vector<Request> requests_;  // a circle: `count_` of them from `first_` on
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  bool direct_refused_ = false;
  std::atomic<bool> wake_{false};
};

}  // namespace

std::unique_ptr<Fetcher> make_plain_fetcher(const FetcherOptions& options) {
  return std::make_unique<PlainFetcher>(options);
}

}  // namespace stoker::storage
