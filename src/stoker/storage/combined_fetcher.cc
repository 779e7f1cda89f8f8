// Shares reads out among the fetchers of several backends, and waits for all of them in one place: first each is asked
// without waiting, then the thread sleeps until one of their descriptors can be read, the earliest of their times has
// come, or wake() was called.
#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/os/event.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/cached_fetcher.h"

namespace stoker::storage {
namespace {

using Clock = std::chrono::steady_clock;

const Backend* backend_of(const Location& where) noexcept {
  if (where.source == nullptr) return where.backend;
  return where.source->view().empty() ? where.source->backend() : nullptr;
}

class CombinedFetcher final : public Fetcher {
 public:
  struct Member {
    const Backend* backend = nullptr;  // null: local files
    std::unique_ptr<Fetcher> fetcher;
  };

  CombinedFetcher(std::vector<Member> members, std::size_t depth) : members_(std::move(members)), depth_(depth) {
    for (const Member& member : members_) alignment_ = std::max(alignment_, member.fetcher->alignment());
  }

  std::size_t alignment() const noexcept override { return alignment_; }
  std::size_t buffer_bytes(std::uint64_t bytes) const noexcept override {
    std::size_t most = 0;
    for (const Member& member : members_) most = std::max(most, member.fetcher->buffer_bytes(bytes));
    return most;
  }
  bool reads_in_place(const Source& source) const noexcept override {
    for (const Member& member : members_) {
      if (member.backend == source.backend()) return member.fetcher->reads_in_place(source);
    }
    return false;
  }
  bool reads_one_by_one() const noexcept override {
    return std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.fetcher->reads_one_by_one(); });
  }
  bool direct_refused() const noexcept override {
    return std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.fetcher->direct_refused(); });
  }

  // Each member has as much room as all of them together.
  std::size_t room() const noexcept override { return depth_ - in_flight(); }
  std::size_t in_flight() const noexcept override {
    std::size_t sum = 0;
    for (const Member& member : members_) sum += member.fetcher->in_flight();
    return sum;
  }

  void submit(std::span<const Fetch> fetches) override {
    if (fetches.size() > room()) {
      throw Error(ErrorKind::internal,
                  fmt::format("cannot submit {} reads: there is room for {}", fetches.size(), room()));
    }
    while (!fetches.empty()) {
      const Backend* const backend = backend_of(fetches.front().where);
      std::size_t count = 1;
      while (count < fetches.size() && backend_of(fetches[count].where) == backend) ++count;
      member_of(backend).submit(fetches.first(count));
      fetches = fetches.subspan(count);
    }
  }

  std::size_t wait(std::span<Fetched> out, std::chrono::nanoseconds timeout) override {
    const bool bounded = timeout < std::chrono::hours(24 * 365);
    const Clock::time_point deadline = bounded ? Clock::now() + timeout : Clock::time_point::max();
    for (;;) {
      // Whoever is asked first is not always the same, so that a busy member does not fill `out` alone.
      std::size_t filled = 0;
      for (std::size_t i = 0; i < members_.size() && filled < out.size(); ++i) {
        Fetcher& fetcher = *members_[(first_ + i) % members_.size()].fetcher;
        if (fetcher.in_flight() > 0) filled += fetcher.wait(out.subspan(filled), std::chrono::nanoseconds::zero());
      }
      first_ = (first_ + 1) % members_.size();
      const bool woken = woken_.load(std::memory_order_relaxed) && woken_.exchange(false, std::memory_order_acq_rel);
      if (woken) event_.take();
      if (filled > 0 || woken || out.empty() || in_flight() == 0) return filled;
      const std::chrono::nanoseconds left = bounded ? deadline - Clock::now() : std::chrono::nanoseconds::max();
      if (left <= std::chrono::nanoseconds::zero()) return 0;
      Readiness ready;
      ready.within = left;
      when_ready(ready);
      os::wait_readable(std::span(ready.descriptors).first(ready.count), ready.within);
    }
  }

  void when_ready(Readiness& ready) const noexcept override {
    ready.add(event_.descriptor());
    for (const Member& member : members_) {
      if (member.fetcher->in_flight() > 0) member.fetcher->when_ready(ready);
    }
  }

  void wake() noexcept override {
    if (!woken_.exchange(true, std::memory_order_acq_rel)) event_.raise();
  }
  StoreFigures figures() const noexcept override {
    StoreFigures sum;
    for (const Member& member : members_) sum += member.fetcher->figures();
    return sum;
  }

 private:
  Fetcher& member_of(const Backend* backend) {
    for (const Member& member : members_) {
      if (member.backend == backend) return *member.fetcher;
    }
    throw Error(ErrorKind::internal, "cannot submit a read: it lies in a store that this data set did not name");
  }

  std::vector<Member> members_;
  std::size_t depth_;
  std::size_t alignment_ = 1;
  std::size_t first_ = 0;
  os::Event event_;
  std::atomic<bool> woken_{false};
};

}  // namespace

std::unique_ptr<Fetcher> make_fetcher(const FetcherOptions& options, std::span<const Backend* const> backends,
                                      std::string* fallback_reason) {
  if (fallback_reason != nullptr) fallback_reason->clear();
  if (backends.empty()) return make_fetcher(options, fallback_reason);
  std::vector<CombinedFetcher::Member> members;
  for (const Backend* const backend : backends) {
    const Backend* const known = backend == &local_files() ? nullptr : backend;
    const bool is_there =
        std::any_of(members.begin(), members.end(), [&](const auto& member) { return member.backend == known; });
    if (is_there) continue;
    std::string reason;
    if (known != nullptr && options.cache != nullptr) {
      members.push_back({known, make_cached_fetcher(*known, options, &reason)});
    } else {
      members.push_back({known, (known != nullptr ? *known : local_files()).make_fetcher(options, &reason)});
    }
    if (fallback_reason != nullptr && !reason.empty()) *fallback_reason = reason;
  }
  if (members.size() == 1) return std::move(members.front().fetcher);
  std::size_t depth = members.front().fetcher->room();
  for (const auto& member : members) depth = std::min(depth, member.fetcher->room());
  return std::make_unique<CombinedFetcher>(std::move(members), depth);
}

}  // namespace stoker::storage
