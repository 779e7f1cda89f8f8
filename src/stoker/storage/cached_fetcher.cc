// The way of a request: look it up in the cache. A hit is read from its file and checked. A claim goes to the store,
// then to the writer of the cache, then to the caller. What another one fetches is looked up again, now and then. A
// file that is missing or damaged is dropped, and its request starts over.
#include "stoker/storage/cached_fetcher.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/os/event.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/cache_writer.h"
#include "stoker/storage/object_cache.h"

namespace stoker::storage {
namespace {

using Clock = std::chrono::steady_clock;
using Found = ObjectCache::Found;

// Requests that one lock of the table serves: it costs two system calls.
constexpr std::size_t kLookedUpTogether = 32;

// Says nothing about the file, and may be over soon.
bool is_want_of_means(const Fetched& fetched) noexcept {
  const int number = fetched.error_number;
  return fetched.code == FetchCode::failed && (number == EMFILE || number == ENFILE || number == ENOMEM);
}

class CachedFetcher final : public Fetcher {
 public:
  CachedFetcher(std::shared_ptr<ObjectCache> cache, std::string identity, std::unique_ptr<Fetcher> store,
                std::unique_ptr<Fetcher> files)
      : cache_(std::move(cache)),
        identity_(std::move(identity)),
        writer_(cache_->writer()),
        store_(std::move(store)),
        files_(std::move(files)),
        requests_(std::min(store_->room(), files_->room())) {
    for (std::size_t slot = requests_.size(); slot-- > 0;) free_.push_back(slot);
  }

  ~CachedFetcher() override {
    store_.reset();
    if (writer_ != nullptr) writer_->cancel(inbox_);
    for (const Request& request : requests_) {
      if (request.state == State::fetching && request.has_claim) cache_->release(request.lookup.key);
    }
  }

  std::size_t alignment() const noexcept override { return std::max(store_->alignment(), files_->alignment()); }
  std::size_t buffer_bytes(std::uint64_t bytes) const noexcept override {
    return std::max(store_->buffer_bytes(bytes), files_->buffer_bytes(bytes));
  }
  bool reads_in_place(const Source& source) const noexcept override { return store_->reads_in_place(source); }
  bool direct_refused() const noexcept override { return files_->direct_refused(); }
  bool reads_one_by_one() const noexcept override { return store_->reads_one_by_one(); }
  std::size_t room() const noexcept override { return free_.size(); }
  std::size_t in_flight() const noexcept override { return requests_.size() - free_.size(); }

  void submit(std::span<const Fetch> fetches) override {
    if (fetches.size() > room()) {
      throw Error(ErrorKind::internal,
                  fmt::format("cannot submit {} reads: there is room for {}", fetches.size(), room()));
    }
    for (const Fetch& fetch : fetches) {
      if (fetch.into.size() < fetch.where.bytes) {
        throw Error(ErrorKind::internal, fmt::format("cannot submit a read of {} bytes: its buffer has {}",
                                                     fetch.where.bytes, fetch.into.size()));
      }
    }
    for (const Fetch& fetch : fetches) {
      const std::size_t slot = free_.back();
      free_.pop_back();
      Request& request = requests_[slot];
      request.fetch = fetch;
      keep_text(request.fetch.where.name, request.name);
      keep_text(request.fetch.where.version, request.version);
      request.has_claim = request.was_dropped = false;
      request.asked = {};
      const auto key = cache_key(fetch.where, identity_);
      request.is_cacheable = key.has_value();
      if (key) {
        request.lookup = {*key, fetch.where.bytes, fetch.use, Found::outside, 0};
        asking_.push_back(slot);
      } else {
        ask_store(slot);
      }
    }
    if (asking_.size() < kLookedUpTogether) return;  // wait() does it
    look();
    send();
  }

  std::size_t wait(std::span<Fetched> out, std::chrono::nanoseconds timeout) override {
    const bool bounded = timeout < std::chrono::hours(24 * 365);
    const Clock::time_point deadline = bounded ? Clock::now() + timeout : Clock::time_point::max();
    for (;;) {
      const bool went_on = go_on();
      const std::size_t filled = hand_out(out);
      const bool woken = woken_.load(std::memory_order_relaxed) && woken_.exchange(false, std::memory_order_acq_rel);
      if (woken) event_.take();
      if (filled > 0 || woken || out.empty() || in_flight() == 0) return filled;
      if (went_on) continue;  // what was sent starts there
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
    if (!asking_.empty() || !to_store_.empty()) ready.add(std::chrono::nanoseconds::zero());
    if (writing_ > 0) ready.add(inbox_.descriptor());
    if (!waiting_.empty()) ready.add(Readiness::kLook);
    if (files_->in_flight() > 0) files_->when_ready(ready);
    if (store_->in_flight() > 0) store_->when_ready(ready);
  }

  void wake() noexcept override {
    if (!woken_.exchange(true, std::memory_order_acq_rel)) event_.raise();
  }
  StoreFigures figures() const noexcept override {
    StoreFigures sum = counters_.read();
    return sum += store_->figures();
  }

 private:
  enum class State : std::uint8_t { none, reading, fetching, writing, waiting, done };

  struct Request {
    Fetch fetch;
    std::string name, version;  // what the location points to
    State state = State::none;
    bool is_cacheable = false, has_claim = false, was_dropped = false;
    ObjectCache::Lookup lookup;
    Clock::time_point asked;       // when it began to wait for another one
    std::unique_ptr<Source> file;  // of a hit that is read into a buffer without slack
    Fetched answer;
  };

  static void keep_text(const char*& text, std::string& copy) {
    if (text == nullptr) return;
    copy = text;
    text = copy.c_str();
  }

  void ask_store(std::size_t slot) {
    Request& request = requests_[slot];
    request.state = State::fetching;
    Fetch& fetch = to_store_.emplace_back(request.fetch);
    fetch.tag = slot;
  }

  // Looks up what is in asking_, and sends each request on its way.
  void look() {
    if (asking_.empty()) return;
    lookups_.clear();
    for (const std::size_t slot : asking_) lookups_.push_back(requests_[slot].lookup);
    cache_->look(lookups_);
    const std::vector<std::size_t> asked = std::exchange(asking_, {});
    for (std::size_t i = 0; i < asked.size(); ++i) {
      Request& request = requests_[asked[i]];
      request.lookup = lookups_[i];
      switch (request.lookup.found) {
        case Found::hit:
          ask_files(asked[i]);
          break;
        case Found::claimed:
          request.has_claim = true;
          ask_store(asked[i]);
          break;
        case Found::outside:
          ask_store(asked[i]);
          break;
        case Found::busy:
          wait_for_another(asked[i]);
          break;
      }
    }
  }

  void ask_files(std::size_t slot) {
    Request& request = requests_[slot];
    const CachedFile cached{request.lookup.key, request.lookup.bytes, request.lookup.checksum};
    Fetch fetch;
    fetch.into = request.fetch.into;
    fetch.tag = slot;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(fetch.into.data()) % files_->alignment() == 0;
    if (is_aligned && fetch.into.size() >= files_->buffer_bytes(cached.bytes)) {
      const std::string& name = names_.emplace_back(file_name(cached));
      fetch.where = Location::in_folder(cache_->directory(), name.c_str(), cached.bytes);
    } else {
      try {
        request.file = open_source(cache_->path_of(cached), Storage::buffered);
      } catch (const Error& error) {
        start_over(slot, error.kind() != ErrorKind::not_found, error.kind() != ErrorKind::unavailable);
        return;
      }
      fetch.where = Location::in_source(request.file.get(), 0, cached.bytes);
    }
    request.state = State::reading;
    to_files_.push_back(fetch);
  }

  void wait_for_another(std::size_t slot) {
    Request& request = requests_[slot];
    const Clock::time_point now = Clock::now();
    if (request.asked == Clock::time_point{}) request.asked = now;
    if (now - request.asked > kPatience) {
      ask_store(slot);
      return;
    }
    request.state = State::waiting;
    waiting_.push_back(slot);
  }

  // A hit that was none.
  void start_over(std::size_t slot, bool is_damaged, bool is_gone) {
    Request& request = requests_[slot];
    request.file.reset();
    if (is_gone) cache_->drop(request.lookup, is_damaged);
    if (is_gone && !std::exchange(request.was_dropped, true)) {
      asking_.push_back(slot);
    } else {
      ask_store(slot);
    }
  }

  void send() {
    if (!to_store_.empty()) store_->submit(to_store_);
    to_store_.clear();
    if (!to_files_.empty()) files_->submit(to_files_);
    to_files_.clear();
    names_.clear();
  }

  // Takes what finished, and sends on what goes on. Whether anything was sent.
  bool go_on() {
    bool moved = false;
    if (files_->in_flight() > 0) {
      const std::size_t count = files_->wait(finished_, std::chrono::nanoseconds::zero());
      for (std::size_t i = 0; i < count; ++i) settle_hit(finished_[i]);
      moved = moved || count > 0;
    }
    if (store_->in_flight() > 0) {
      const std::size_t count = store_->wait(finished_, std::chrono::nanoseconds::zero());
      for (std::size_t i = 0; i < count; ++i) settle_miss(finished_[i]);
      moved = moved || count > 0;
    }
    if (writing_ > 0) {
      for (const std::uint64_t slot : inbox_.take()) {
        --writing_;
        requests_[slot].state = State::done;
        done_.push_back(slot);
        moved = true;
      }
    }
    const Clock::time_point now = waiting_.empty() ? Clock::time_point{} : Clock::now();
    if (!waiting_.empty() && (moved || now >= next_look_)) {
      asking_.insert(asking_.end(), waiting_.begin(), waiting_.end());
      waiting_.clear();
      next_look_ = now + Readiness::kLook;
    }
    while (!asking_.empty()) look();  // a hit whose file cannot be opened asks again
    const bool sends = !to_store_.empty() || !to_files_.empty();
    send();
    return sends;
  }

  void settle_hit(Fetched& fetched) {
    const std::size_t slot = fetched.tag;
    Request& request = requests_[slot];
    const bool is_whole = fetched.code == FetchCode::ok && fetched.data.size() == request.lookup.bytes;
    if (is_whole && hash_bytes(fetched.data) == request.lookup.checksum) {
      StoreCounters::add(counters_.cache_hits);
      StoreCounters::add(counters_.cache_bytes, fetched.data.size());
      finish(slot, fetched);
      return;
    }
    const bool is_missing = fetched.code == FetchCode::failed && fetched.error_number == ENOENT;
    start_over(slot, !is_missing && !is_want_of_means(fetched), !is_want_of_means(fetched));
  }

  void settle_miss(Fetched& fetched) {
    const std::size_t slot = fetched.tag;
    Request& request = requests_[slot];
    if (request.is_cacheable) StoreCounters::add(counters_.cache_misses);
    if (!request.has_claim) return finish(slot, fetched);
    if (fetched.code == FetchCode::ok && writer_ != nullptr) {
      request.state = State::writing;  // the writer has the claim
      request.answer = fetched;
      request.answer.tag = request.fetch.tag;
      if (writer_->offer({request.lookup.key, fetched.data, request.lookup.use, &inbox_, slot})) {
        ++writing_;
        return;
      }
      cache_->note(
          format_text("the disk of {} is slower than the store: some objects are not cached when they first come",
                      option("cache_dir")));
    }
    cache_->release(request.lookup.key);
    finish(slot, fetched);
  }

  void finish(std::size_t slot, Fetched& fetched) {
    Request& request = requests_[slot];
    request.file.reset();
    request.answer = std::move(fetched);
    request.answer.tag = request.fetch.tag;
    request.state = State::done;
    done_.push_back(slot);
  }

  std::size_t hand_out(std::span<Fetched> out) {
    const std::size_t count = std::min(out.size(), done_.size());
    for (std::size_t i = 0; i < count; ++i) {
      Request& request = requests_[done_[i]];
      out[i] = std::exchange(request.answer, {});
      request.state = State::none;
      free_.push_back(done_[i]);
    }
    done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

  std::shared_ptr<ObjectCache> cache_;
  std::string identity_;  // of the store
  CacheWriter* writer_;
  std::unique_ptr<Fetcher> store_, files_;
  std::vector<Request> requests_;
  std::vector<std::size_t> free_, asking_, waiting_, done_;  // slots
  std::vector<ObjectCache::Lookup> lookups_;
  std::vector<Fetch> to_store_, to_files_;
  std::deque<std::string> names_;  // of files, until they are submitted
  std::vector<Fetched> finished_ = std::vector<Fetched>(64);
  CacheWriter::Inbox inbox_;
  std::size_t writing_ = 0;
  StoreCounters counters_;
  Clock::time_point next_look_;
  os::Event event_;
  std::atomic<bool> woken_{false};
};

}  // namespace

std::unique_ptr<Fetcher> make_cached_fetcher(const Backend& backend, const FetcherOptions& options,
                                             std::string* fallback_reason) {
  auto store = backend.make_fetcher(options, fallback_reason);
  auto files = make_fetcher(options);
  return std::make_unique<CachedFetcher>(options.cache, backend.identity(), std::move(store), std::move(files));
}

}  // namespace stoker::storage
