// A store of objects in memory for tests, found as memory://bucket/name: requests take as long as a test says, fail,
// end too early, or wait until they are let go. It stands for a network: one thread has many requests in flight.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/os/event.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/direct_source.h"
#include "stoker/storage/failure.h"

namespace stoker::storage {

class MemoryStore final : public Backend {
 public:
  using Clock = std::chrono::steady_clock;

  explicit MemoryStore(std::string scheme = "memory") : scheme_(std::move(scheme)), added_(*this) {}

  std::string address(std::string_view name) const { return fmt::format("{}://{}", scheme_, name); }

  // The objects; a second put() under one name is a new version.
  void put(const std::string& name, std::string bytes) {
    const std::scoped_lock lock(mutex_);
    ++puts_;
    objects_[name] = {std::move(bytes), tells_versions_ ? fmt::format("v{}", puts_) : std::string()};
  }

  std::string version(const std::string& name) const {  // empty: no such object
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(name);
    return found != objects_.end() ? found->second.version : std::string();
  }

  // How requests go from now on. Each takes between a half and one and a half times `usual`.
  void set_latency(std::chrono::nanoseconds usual) { usual_ns_ = usual.count(); }
  // Nothing is answered before `count` requests were in flight at once, or half a minute has passed.
  void await_in_flight(std::uint64_t count) {
    awaited_ = count;
    awaited_until_ = Clock::now() + std::chrono::seconds(30);
  }
  void tell_no_versions() { tells_versions_ = false; }  // as web servers without ETags do
  void refuse_listings() { can_list_ = false; }         // as web servers do
  void forbid_listings() { may_list_ = false; }         // as keys without s3:ListBucket
  void fail(const std::string& name, Failure failure) {
    const std::scoped_lock lock(mutex_);
    failures_[name] = std::move(failure);
  }
  void forgive() {  // everything that was to fail
    const std::scoped_lock lock(mutex_);
    failures_.clear();
    cut_.clear();
  }
  void cut_short(const std::string& name, std::uint64_t bytes) {  // its bodies end after so many bytes
    const std::scoped_lock lock(mutex_);
    cut_[name] = bytes;
  }
  void hold(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    held_.insert(name);
  }
  void let_go() {
    const std::scoped_lock lock(mutex_);
    held_.clear();
    for (os::Event* const waiting : waiting_) waiting->raise();
  }

  std::uint64_t requests() const { return requests_; }  // asked for so far
  std::uint64_t answered() const { return answered_; }
  std::uint64_t sent_bytes() const { return sent_; }
  std::uint64_t most_in_flight() const { return most_in_flight_; }

  std::string_view scheme() const noexcept override { return scheme_; }
  ReadAdvice advice() const noexcept override { return {.join = false}; }
  std::unique_ptr<Source> open(std::string_view name, Storage) const override {
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(std::string(name));
    if (found == objects_.end()) {
      throw Error(ErrorKind::not_found, fmt::format("cannot open `{}`: no such object", address(name)));
    }
    return std::make_unique<Opened>(*this, found->first, found->second);
  }
  bool can_list() const noexcept override { return can_list_; }
  void list(std::string_view name, const Take& take) const override {
    if (!can_list_) throw Error(ErrorKind::unsupported, "this store does not list");
    if (!may_list_) throw Error(ErrorKind::permission, "these keys may not list");
    const std::string folder = name.empty() || name.ends_with('/') ? std::string(name) : fmt::format("{}/", name);
    const std::scoped_lock lock(mutex_);
    for (auto at = objects_.lower_bound(folder); at != objects_.end() && at->first.starts_with(folder); ++at) {
      if (!take({at->first, at->second.bytes.size(), at->second.version})) return;
    }
  }
  std::unique_ptr<ObjectWriter> create(std::string_view name) const override {
    return std::make_unique<Created>(*this, std::string(name));
  }
  void remove(std::string_view name) const override {
    const std::scoped_lock lock(mutex_);
    objects_.erase(std::string(name));
  }
  std::unique_ptr<Fetcher> make_fetcher(const FetcherOptions& options, std::string* fallback_reason) const override {
    if (fallback_reason != nullptr) fallback_reason->clear();
    return std::make_unique<StoreFetcher>(*this, options.depth);
  }

 private:
  struct Held {
    std::string bytes, version;
  };

  struct Wanted {
    std::string name;
    std::optional<std::string> version;
    std::uint64_t offset = 0;
    std::span<std::byte> into;  // of exactly the bytes wanted
  };
  struct Answer {
    FetchCode code = FetchCode::ok;
    Failure failure;
    std::uint64_t actual_bytes = 0;
  };

  static Answer failed(ErrorKind kind, std::string text, bool may_retry) {
    Answer answer;
    answer.code = FetchCode::failed;
    answer.failure.kind = kind;
    answer.failure.text = std::move(text);
    answer.failure.may_retry = may_retry;
    return answer;
  }

  Answer answer(const Wanted& wanted) const {
    const std::scoped_lock lock(mutex_);
    if (const auto found = failures_.find(wanted.name); found != failures_.end()) {
      return {FetchCode::failed, found->second, 0};
    }
    const auto found = objects_.find(wanted.name);
    if (found == objects_.end()) return failed(ErrorKind::not_found, "no such object", false);
    const auto& [bytes, version] = found->second;
    if (wanted.version && *wanted.version != version) {
      return failed(ErrorKind::corrupt,
                    fmt::format("it changed since it was listed: version {} then, {} now", *wanted.version, version),
                    false);
    }
    if (wanted.offset > bytes.size() || wanted.into.size() > bytes.size() - wanted.offset) {
      return {FetchCode::size_changed, {}, bytes.size()};
    }
    if (const auto cut = cut_.find(wanted.name); cut != cut_.end() && cut->second < wanted.into.size()) {
      return failed(ErrorKind::unavailable,
                    fmt::format("the body ended after {} of {} bytes", cut->second, wanted.into.size()), true);
    }
    if (!wanted.into.empty()) std::memcpy(wanted.into.data(), bytes.data() + wanted.offset, wanted.into.size());
    return {};
  }

  bool awaits_more() const { return most_in_flight_ < awaited_ && Clock::now() < awaited_until_; }
  bool is_held(const std::string& name) const {
    const std::scoped_lock lock(mutex_);
    return held_.contains(name);
  }

  std::chrono::nanoseconds latency(std::uint64_t request) const {
    const std::int64_t usual = usual_ns_;
    if (usual == 0) return {};
    return std::chrono::nanoseconds(usual / 2 +
                                    static_cast<std::int64_t>(mix(request, 1) % static_cast<std::uint64_t>(usual)));
  }

  // Fails where fail() was told so, when it is finished.
  class Created final : public ObjectWriter {
   public:
    Created(const MemoryStore& store, std::string name) : store_(store), name_(std::move(name)) {}
    void write(std::span<const std::byte> bytes) override {
      bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    void finish() override {
      const std::scoped_lock lock(store_.mutex_);
      if (const auto found = store_.failures_.find(name_); found != store_.failures_.end()) {
        throw Error(found->second.kind,
                    fmt::format("cannot write `{}`: {}", store_.address(name_), found->second.text));
      }
      store_.objects_[name_] = {std::move(bytes_), fmt::format("v{}", ++store_.puts_)};
    }

   private:
    const MemoryStore& store_;
    std::string name_, bytes_;
  };

  class Opened final : public Source {
   public:
    Opened(const MemoryStore& store, std::string name, const Held& held)
        : store_(store),
          object_(std::move(name)),
          address_(store.address(object_)),
          version_(held.version),
          size_(held.bytes.size()) {}

    std::string_view name() const noexcept override { return address_; }
    std::uint64_t size_bytes() const noexcept override { return size_; }
    const Backend* backend() const noexcept override { return &store_; }
    ReadAdvice advice() const noexcept override { return store_.advice(); }
    const std::string& object() const noexcept { return object_; }
    std::string_view version() const noexcept override { return version_; }
    void read(std::span<const Read> reads) const override {
      for (const Read& read : reads) check_range(address_, size_, read);
      for (const Read& read : reads) {
        const Answer answer = store_.answer({object_, version_, read.offset, read.into});
        if (answer.code == FetchCode::failed) {
          throw Error(answer.failure.kind, fmt::format("cannot read `{}`: {}", address_, answer.failure.text),
                      answer.failure.hint);
        }
        if (answer.code == FetchCode::size_changed) {
          throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: it is shorter than it was", address_));
        }
      }
    }

   private:
    const MemoryStore& store_;
    std::string object_, address_, version_;
    std::uint64_t size_;
  };

  class StoreFetcher final : public Fetcher {
   public:
    StoreFetcher(const MemoryStore& store, std::size_t depth) : store_(store), depth_(depth) {
      const std::scoped_lock lock(store_.mutex_);
      store_.waiting_.insert(&event_);
    }
    ~StoreFetcher() override {
      const std::scoped_lock lock(store_.mutex_);
      store_.waiting_.erase(&event_);
      store_.in_flight_ -= requests_.size();
    }

    std::size_t alignment() const noexcept override { return 1; }
    std::size_t buffer_bytes(std::uint64_t bytes) const noexcept override { return bytes; }
    bool reads_in_place(const Source&) const noexcept override { return true; }
    std::size_t room() const noexcept override { return depth_ - requests_.size(); }
    std::size_t in_flight() const noexcept override { return requests_.size(); }

    void submit(std::span<const Fetch> fetches) override {
      if (fetches.size() > room()) throw Error(ErrorKind::internal, "cannot submit so many reads");
      for (const Fetch& fetch : fetches) {
        if (fetch.into.size() < fetch.where.bytes) throw Error(ErrorKind::internal, "cannot submit: a buffer is small");
      }
      for (const Fetch& fetch : fetches) {
        const Location& where = fetch.where;
        Request request;
        request.tag = fetch.tag;
        request.bytes = where.bytes;
        request.wanted.offset = where.offset;
        request.wanted.into = fetch.into.first(where.bytes);
        if (const auto* const opened = dynamic_cast<const Opened*>(where.source)) {
          request.wanted.name = opened->object();
          request.wanted.version = opened->version();
        } else {
          request.wanted.name = where.name;
          if (where.version != nullptr) request.wanted.version = where.version;
        }
        const std::uint64_t in_flight = ++store_.in_flight_;
        std::uint64_t most = store_.most_in_flight_;
        while (most < in_flight && !store_.most_in_flight_.compare_exchange_weak(most, in_flight)) {
        }
        StoreCounters::add(counters_.requests);
        request.due = Clock::now() + store_.latency(++store_.requests_);
        requests_.push_back(std::move(request));
      }
    }

    std::size_t wait(std::span<Fetched> out, std::chrono::nanoseconds timeout) override {
      const bool bounded = timeout < std::chrono::hours(24);
      const Clock::time_point deadline = bounded ? Clock::now() + timeout : Clock::time_point::max();
      for (;;) {
        const bool woken = event_.take() && woken_.exchange(false);
        const std::size_t filled = finish(out);
        if (filled > 0 || woken || out.empty() || requests_.empty() || Clock::now() >= deadline) return filled;
        Readiness ready;
        when_ready(ready);
        if (bounded) ready.within = std::min<std::chrono::nanoseconds>(ready.within, deadline - Clock::now());
        os::wait_readable(std::span(ready.descriptors).first(ready.count), ready.within);
      }
    }

    void when_ready(Readiness& ready) const noexcept override {
      ready.add(event_.descriptor());
      const Clock::time_point now = Clock::now();
      for (const Request& request : requests_) {
        if (store_.awaits_more()) {
          ready.within = std::min<std::chrono::nanoseconds>(ready.within, std::chrono::milliseconds(5));
        } else if (!store_.is_held(request.wanted.name)) {
          ready.within = std::min<std::chrono::nanoseconds>(ready.within, request.due - now);
        }
      }
    }

    void wake() noexcept override {
      woken_ = true;
      event_.raise();
    }
    StoreFigures figures() const noexcept override { return counters_.read(); }

   private:
    struct Request {
      std::uint64_t tag = 0;
      Wanted wanted;
      Clock::time_point due;
      std::uint64_t bytes = 0;
    };

    std::size_t finish(std::span<Fetched> out) {
      const Clock::time_point now = Clock::now();
      std::size_t filled = 0;
      for (std::size_t i = 0; i < requests_.size() && filled < out.size();) {
        const Request& request = requests_[i];
        if (request.due > now || store_.awaits_more() || store_.is_held(request.wanted.name)) {
          ++i;
          continue;
        }
        Answer answer = store_.answer(request.wanted);
        Fetched& fetched = out[filled++];
        fetched = {};
        fetched.tag = request.tag;
        fetched.code = answer.code;
        fetched.actual_bytes = answer.actual_bytes;
        if (answer.code == FetchCode::ok) {
          fetched.data = request.wanted.into;
          StoreCounters::add(counters_.store_bytes, request.bytes);
          store_.sent_ += request.bytes;
          fetched.actual_bytes = request.bytes;
        } else if (answer.code == FetchCode::failed) {
          fetched.failure = std::make_shared<const Failure>(std::move(answer.failure));
        }
        requests_[i] = std::move(requests_.back());
        requests_.pop_back();
        --store_.in_flight_;
        ++store_.answered_;
      }
      return filled;
    }

    const MemoryStore& store_;
    std::size_t depth_;
    std::vector<Request> requests_;
    StoreCounters counters_;
    os::Event event_;
    std::atomic<bool> woken_{false};
  };

  std::string scheme_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Held> objects_;
  std::map<std::string, Failure> failures_;
  std::map<std::string, std::uint64_t> cut_;
  std::set<std::string> held_;
  mutable std::uint64_t puts_ = 0;
  mutable std::set<os::Event*> waiting_;
  std::atomic<std::int64_t> usual_ns_{0};
  std::uint64_t awaited_ = 0;  // set before requests are made
  Clock::time_point awaited_until_;
  bool can_list_ = true, may_list_ = true, tells_versions_ = true;
  mutable std::atomic<std::uint64_t> requests_{0}, answered_{0}, in_flight_{0}, most_in_flight_{0}, sent_{0};
  AddedBackend added_;
};

}  // namespace stoker::storage
