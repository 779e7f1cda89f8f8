// The life of a fetch:
//   submitted -> queued -> on the wire -> finished
//                  ^            |
//                  +-- waiting <+   it failed in a way that may pass; it goes on behind the bytes it has
// One that waits long for its first byte is asked for a second time (a hedge). Whichever answers first fills the
// buffer, and the other is cancelled: only one of them ever writes.
#include "stoker/storage/s3/fetcher.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/random.h"
#include "stoker/storage/s3/answer_check.h"
#include "stoker/storage/s3/line.h"
#include "stoker/storage/s3/object_source.h"
#include "stoker/storage/s3/retry.h"

namespace stoker::storage::s3 {
namespace {

using FetchClock = std::chrono::steady_clock;

constexpr std::uint64_t kProgress = 256 << 10;  // a try that brought this number of bytes does not count as failed
constexpr auto kLook = std::chrono::milliseconds(5);  // how often slow requests are looked for
// Requests that begin between two looks at the sockets: the first ones are under way while the others still connect.
constexpr std::size_t kAtOnce = 32;
constexpr int kMostRefreshes = 3;
constexpr int kMostRegions = 3;
constexpr std::size_t kNowhere = ~std::size_t{0};

struct Try;

// One fetch. Slots and tries are used again, with the memory of their texts.
struct Slot {
  std::uint64_t tag = 0;
  Place place;
  std::string version;  // that it must have; of the first answer where none was asked for
  std::uint64_t offset = 0;
  std::span<std::byte> into;  // of exactly the bytes wanted
  std::uint64_t received = 0;
  std::uint64_t received_before = 0;  // the most that was there when a try began
  std::uint64_t object_bytes = 0;     // of the whole object; 0: not known
  int tries = 0, refreshes = 0, regions = 0;
  FetchClock::time_point due{};  // of one that waits
  Try* first = nullptr;
  Try* second = nullptr;  // the hedge
  bool was_hedged = false;
  bool is_unmatched = false;  // the store refused If-Match: only the tag of the answer tells whether it is the version

  void reset() {
    place.bucket.clear();
    place.key.clear();
    version.clear();
    received = received_before = object_bytes = 0;
    tries = refreshes = regions = 0;
    first = second = nullptr;
    was_hedged = is_unmatched = false;
  }
};

// One request on the wire.
struct Try {
  std::unique_ptr<Transfer> transfer;
  std::size_t at = kNowhere;  // in trying_
  Slot* slot = nullptr;
  std::uint64_t from = 0;  // bytes of the slot that were there when it began
  FetchClock::time_point began{};
  FetchClock::time_point moved{};  // when it brought the last byte, or began
  std::shared_ptr<const Credentials> keys;
  std::string origin, region;
  bool has_answered = false;
  bool is_cancelled = false;    // a rival was first
  bool is_conditional = false;  // it has If-Match
  // What is wrong with an answer whose status is good.
  FetchCode problem = FetchCode::ok;
  Failure failure;
  std::uint64_t actual_bytes = 0;
};

class S3Fetcher final : public Fetcher {
 public:
  S3Fetcher(std::shared_ptr<Session> session, std::size_t depth)
      : session_(std::move(session)),
        lane_(session_->take_lane()),
        depth_(std::clamp<std::size_t>(depth, 1, kMaxDepth)),
        control_(depth_),
        policy_{.most_tries = session_->settings().most_tries},
        random_(static_cast<std::uint64_t>(FetchClock::now().time_since_epoch().count()),
                reinterpret_cast<std::uintptr_t>(this), 0) {
    lane_->keep_connections(depth_ + depth_ / 8 + 4);
    (void)lane_->take_wake();
    request_ = session_->request({}, nullptr);
    request_.wants_body = false;
    request_.stall_timeout = {};  // give_up_stalled() is more exact
  }

  ~S3Fetcher() override {
    if (session_->is_forked()) {
      // The sockets are the parent's: ending them here would say good-bye to its servers.
      (void)lane_.release();
      for (const std::unique_ptr<Try>& one : tries_) (void)one->transfer.release();
      return;
    }
    while (!trying_.empty()) drop(*trying_.back());
    for (const std::unique_ptr<Try>& one : tries_) lane_->recycle(std::move(one->transfer));
    session_->give_back(std::move(lane_));
  }

  std::size_t alignment() const noexcept override { return 1; }
  std::size_t buffer_bytes(std::uint64_t bytes) const noexcept override { return bytes; }
  bool reads_in_place(const Source&) const noexcept override { return true; }
  std::size_t room() const noexcept override { return depth_ - in_flight(); }
  std::size_t in_flight() const noexcept override { return open_slots() + finished_.size(); }

  void submit(std::span<const Fetch> fetches) override {
    session_->refuse_after_fork();
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
    for (const Fetch& fetch : fetches) accept(fetch);
    start_more(FetchClock::now());
  }

  std::size_t wait(std::span<Fetched> out, std::chrono::nanoseconds timeout) override {
    session_->refuse_after_fork();
    const bool is_bounded = timeout < std::chrono::hours(24 * 365);
    FetchClock::time_point now = FetchClock::now();
    const FetchClock::time_point deadline = is_bounded ? now + timeout : FetchClock::time_point::max();
    for (;;) {
      const bool may_sleep = finished_.empty() && open_slots() > 0 && !out.empty();
      std::chrono::nanoseconds nap{};
      if (may_sleep) nap = std::min(until_due(now), is_bounded ? deadline - now : std::chrono::nanoseconds::max());
      lane_->step(nap);
      begun_ = 0;
      now = FetchClock::now();
      for (Lane::Finished one = lane_->next_finished(); one.owner != nullptr; one = lane_->next_finished()) {
        settle(*static_cast<Try*>(one.owner), one.curl_code, now);
      }
      drop_rivals();
      start_more(now);
      const std::size_t filled = hand_out(out);
      const bool is_woken = lane_->take_wake();
      if (filled > 0 || is_woken || out.empty() || in_flight() == 0 || now >= deadline) return filled;
    }
  }

  void when_ready(Readiness& ready) const noexcept override {
    ready.add(lane_->descriptor());
    ready.add(std::min(lane_->until_timer(), until_due(FetchClock::now())));
    if (!finished_.empty()) ready.add(std::chrono::nanoseconds::zero());
  }

  void wake() noexcept override { lane_->wake(); }
  StoreFigures figures() const noexcept override { return counters_.read(); }

 private:
  void accept(const Fetch& fetch) {
    const Location& where = fetch.where;
    const auto* const object = dynamic_cast<const ObjectSource*>(where.source);
    if (object == nullptr && (where.source != nullptr || where.name == nullptr)) {
      throw Error(ErrorKind::internal, "cannot submit a read: it is not of an object of S3");
    }
    Slot& slot = take_slot();
    slot.tag = fetch.tag;
    slot.offset = where.offset;
    slot.into = fetch.into.first(where.bytes);
    if (object != nullptr) {
      const std::uint64_t size = object->size_bytes();
      const bool is_inside = where.offset <= size && where.bytes <= size - where.offset;
      if (!is_inside || where.bytes == 0) {
        is_inside ? finish_ok(slot) : finish_changed(slot, size);
        return release(slot);
      }
      slot.place = object->place();
      slot.version = object->version();
      slot.object_bytes = size;
    } else {
      try {
        session_->parse(where.name, slot.place);
      } catch (const Error& error) {
        finish_failed(slot, failure_of(error), 0);
        return release(slot);
      }
      if (where.version != nullptr) slot.version = where.version;
      slot.object_bytes = where.object_bytes;
    }
    queue_.push(&slot);
  }

  Slot& take_slot() {
    if (free_slots_.empty()) {
      slots_.push_back(std::make_unique<Slot>());
      free_slots_.push_back(slots_.back().get());
    }
    Slot& slot = *free_slots_.back();
    free_slots_.pop_back();
    slot.reset();
    return slot;
  }
  std::size_t open_slots() const noexcept { return slots_.size() - free_slots_.size(); }

  // ---- finishing

  void finish(Fetched fetched) { finished_.push(std::move(fetched)); }
  void finish_ok(const Slot& slot) { finish({slot.tag, FetchCode::ok, 0, slot.into.size(), slot.into, {}}); }
  void finish_changed(const Slot& slot, std::uint64_t actual_bytes) {
    finish({slot.tag, FetchCode::size_changed, 0, actual_bytes, {}, {}});
  }
  void finish_failed(const Slot& slot, Failure failure, int tries) {
    if (tries > 1) failure.text += fmt::format(" ({} tries)", tries);
    finish({slot.tag, FetchCode::failed, 0, 0, {}, std::make_shared<const Failure>(std::move(failure))});
  }
  // Forgets a slot whose answer is in finished_, and what is still on the wire for it.
  void release(Slot& slot) {
    for (Try* const one : {slot.first, slot.second}) {
      if (one != nullptr) drop(*one);
    }
    free_slots_.push_back(&slot);
  }
  std::size_t hand_out(std::span<Fetched> out) {
    const std::size_t count = std::min(out.size(), finished_.size());
    for (std::size_t i = 0; i < count; ++i) out[i] = finished_.pop();
    return count;
  }

  // ---- on the wire

  std::chrono::nanoseconds until_due(FetchClock::time_point now) const noexcept {
    if (may_begin()) return std::chrono::nanoseconds::zero();
    std::chrono::nanoseconds least = std::chrono::nanoseconds::max();
    for (const Slot* const slot : waiting_) least = std::min<std::chrono::nanoseconds>(least, slot->due - now);
    if (!trying_.empty() && hedges_.patience()) least = std::min<std::chrono::nanoseconds>(least, kLook);
    if (!trying_.empty()) {
      least = std::min<std::chrono::nanoseconds>(least, std::max(may_stall_, looked_ + kLook) - now);
    }
    return std::max(least, std::chrono::nanoseconds::zero());
  }

  bool may_begin() const noexcept { return trying_.size() < control_.limit() && !(urgent_.empty() && queue_.empty()); }

  void start_more(FetchClock::time_point now) {
    for (std::size_t i = 0; i < waiting_.size();) {
      if (waiting_[i]->due > now) {
        ++i;
        continue;
      }
      urgent_.push_back(waiting_[i]);
      waiting_[i] = waiting_.back();
      waiting_.pop_back();
    }
    for (; begun_ < kAtOnce && may_begin(); ++begun_) {
      Slot* const slot = urgent_.empty() ? queue_.pop() : urgent_.back();
      if (!urgent_.empty()) urgent_.pop_back();
      begin(*slot, now);
    }
    if (now - looked_ < kLook) return;
    looked_ = now;
    give_up_stalled(now);
    hedge(now);
  }

  // A request that brings no byte for long is over, as if its connection had broken.
  void give_up_stalled(FetchClock::time_point now) {
    if (now < may_stall_) return;
    const std::chrono::nanoseconds most = session_->settings().stall_timeout;
    may_stall_ = now + most;
    for (std::size_t i = 0; i < trying_.size(); ++i) {
      Try& one = *trying_[i];
      if (one.is_cancelled || now - one.moved < most) {
        if (!one.is_cancelled) may_stall_ = std::min(may_stall_, one.moved + most);
        continue;
      }
      lane_->cancel(*one.transfer);
      settle(one, CURLE_OPERATION_TIMEDOUT, now);
      i = kNowhere;  // the list has changed: from the start
    }
  }

  void begin(Slot& slot, FetchClock::time_point now) {
    slot.received_before = std::max(slot.received_before, slot.received);
    ++slot.tries;
    try {
      slot.first = send(slot, now);
    } catch (const Error& error) {  // no keys
      Failure failure = failure_of(error);
      failure.ends_the_run = true;
      finish_failed(slot, std::move(failure), slot.tries);
      release(slot);
    }
  }

  Try* send(Slot& slot, FetchClock::time_point now) {
    std::shared_ptr<const Credentials> keys = session_->keys();
    const Endpoint& endpoint = endpoint_of(slot.place.bucket);
    Try& one = take_try();
    one.slot = &slot;
    one.from = slot.received;
    one.began = one.moved = now;
    one.keys = keys;
    one.origin = endpoint.origin;
    one.region = endpoint.region;
    one.has_answered = one.is_cancelled = false;
    one.problem = FetchCode::ok;
    one.actual_bytes = 0;
    request_.credentials = std::move(keys);
    request_.region = endpoint.region;
    endpoint.write_url(slot.place.key, request_.url);
    request_.range.clear();
    if (!slot.into.empty()) {
      fmt::format_to(std::back_inserter(request_.range), "bytes={}-{}", slot.offset + slot.received,
                     slot.offset + slot.into.size() - 1);
    }
    request_.if_match.clear();
    // A weak tag never matches. Nor does a strong one of a listing whose objects are served with weak tags.
    if (!slot.version.starts_with("W/") && !slot.is_unmatched && !tags_are_weak_) request_.if_match = slot.version;
    one.is_conditional = !request_.if_match.empty();
    one.transfer->prepare(request_, lane_->signer(),
                          [this, self = &one](const HttpReply& reply, std::span<const std::byte> piece) {
                            return take(*self, reply, piece);
                          });
    lane_->start(*one.transfer, &one);
    StoreCounters::add(counters_.requests);
    if (trying_.empty()) may_stall_ = now + session_->settings().stall_timeout;
    one.at = trying_.size();
    trying_.push_back(&one);
    return &one;
  }

  Try& take_try() {
    if (free_tries_.empty()) {
      tries_.push_back(std::make_unique<Try>());
      tries_.back()->transfer = lane_->take_transfer();
      free_tries_.push_back(tries_.back().get());
    }
    Try& one = *free_tries_.back();
    free_tries_.pop_back();
    return one;
  }

  const Endpoint& endpoint_of(const std::string& bucket) {
    const std::uint64_t changes = session_->region_changes();
    if (bucket != endpoint_bucket_ || changes != endpoint_changes_) {
      endpoint_ = session_->endpoint(bucket);
      endpoint_bucket_ = bucket;
      endpoint_changes_ = changes;
    }
    return endpoint_;
  }

  void hedge(FetchClock::time_point now) {
    const std::optional<Duration> patience = hedges_.patience();
    if (!patience) return;
    for (std::size_t i = 0; i < trying_.size() && hedges_.patience(); ++i) {
      const Try& one = *trying_[i];
      Slot& slot = *one.slot;
      if (one.has_answered || one.is_cancelled || slot.was_hedged || now - one.began < *patience) continue;
      slot.was_hedged = true;
      hedges_.hedged();
      StoreCounters::add(counters_.doubled);
      try {
        slot.second = send(slot, now);
      } catch (const Error&) {
        return;  // the first one is still on its way
      }
    }
  }

  // Takes a request off the wire, and forgets it.
  void drop(Try& one) {
    lane_->cancel(*one.transfer);
    forget(one);
  }
  void forget(Try& one) {
    Slot& slot = *one.slot;
    if (slot.first == &one) slot.first = std::exchange(slot.second, nullptr);
    if (slot.second == &one) slot.second = nullptr;
    trying_.back()->at = one.at;
    trying_[one.at] = trying_.back();
    trying_.pop_back();
    one.at = kNowhere;
    free_tries_.push_back(&one);
  }
  void drop_rivals() {
    while (!rivals_.empty()) {
      Try* const one = rivals_.back();
      rivals_.pop_back();
      if (one->at != kNowhere && one->is_cancelled) drop(*one);
    }
  }

  // Whether the answer's headers promise what was asked for. Called before the first byte of its body.
  bool check_headers(Try& one, const HttpReply& reply) {
    Slot& slot = *one.slot;
    AnswerCheck check = check_answer(reply, {.version = slot.version,
                                             .must_tell_version = slot.is_unmatched,
                                             .offset = slot.offset,
                                             .received = one.from,
                                             .bytes = slot.into.size(),
                                             .object_bytes = slot.object_bytes});
    if (slot.is_unmatched && check.promise != AnswerCheck::Promise::other_version) tags_are_weak_ = true;
    switch (check.promise) {
      case AnswerCheck::Promise::as_asked:
        return true;
      case AnswerCheck::Promise::from_the_start:
        slot.received = one.from = 0;
        return true;
      case AnswerCheck::Promise::other_size:
        one.problem = FetchCode::size_changed;
        one.actual_bytes = check.actual_bytes;
        return false;
      case AnswerCheck::Promise::other_version:
      case AnswerCheck::Promise::unusable:
        break;
    }
    return fails(one, std::move(check.failure));
  }
  static bool fails(Try& one, Failure failure) {
    one.problem = FetchCode::failed;
    one.failure = std::move(failure);
    return false;
  }

  // A piece of the body of a good answer. Runs inside libcurl.
  bool take(Try& one, const HttpReply& reply, std::span<const std::byte> piece) {
    if (one.is_cancelled) return false;
    Slot& slot = *one.slot;
    if (!one.has_answered) {
      one.has_answered = true;
      hedges_.answered(FetchClock::now() - one.began);
      if (!check_headers(one, reply)) return false;
      if (slot.version.empty()) slot.version = unquoted_tag(reply.etag);
      for (Try* const rival : {slot.first, slot.second}) {
        if (rival == nullptr || rival == &one) continue;
        rival->is_cancelled = true;
        rivals_.push_back(rival);
      }
    }
    if (piece.size() > slot.into.size() - slot.received) {
      return fails(one, broken_promise("the store sent more bytes than were asked for"));
    }
    std::memcpy(slot.into.data() + slot.received, piece.data(), piece.size());
    slot.received += piece.size();
    StoreCounters::add(counters_.store_bytes, piece.size());
    one.moved = FetchClock::now();
    return true;
  }

  // A request has ended, well or not.
  void settle(Try& one, int curl_code, FetchClock::time_point now) {
    Slot& slot = *one.slot;
    one.transfer->finish(curl_code);
    if (one.is_cancelled) return forget(one);
    drop_rivals();  // from here on, a second request of this slot is one that may still answer
    const HttpReply& reply = one.transfer->reply();
    const bool is_good = reply.status == 200 || reply.status == 206;
    if (is_good && curl_code == CURLE_OK && slot.into.empty() && one.problem == FetchCode::ok)
      check_headers(one, reply);
    if (one.problem == FetchCode::size_changed) return end_changed(one);
    if (one.problem == FetchCode::failed) return end_failed(one, one.failure, 0);
    if (is_good && curl_code == CURLE_OK && slot.received == slot.into.size()) {
      control_.finished(now, now - one.began);
      finish_ok(slot);
      forget(one);
      return release(slot);
    }
    if (reply.status == 416 && curl_code == CURLE_OK) {
      if (slot.is_unmatched) return end_failed(one, changed_object(slot.version, ""), 0);
      one.actual_bytes = reply.total_bytes.value_or(0);
      return end_changed(one);
    }
    Verdict verdict = judge(reply, {slot.place.bucket, slot.place.key, one.origin, one.region,
                                    one.keys ? one.keys->origin : "", slot.version, false, false, session_->is_web()});
    if (is_good) {
      verdict.next = curl_code == CURLE_OK || may_pass(curl_code) ? Next::retry : Next::fail;
      verdict.failure.may_retry = verdict.next == Next::retry;
      verdict.failure.text = fmt::format("the body ended after {} of {} bytes{}", slot.received, slot.into.size(),
                                         reply.broken.empty() ? "" : fmt::format(": {}", reply.broken));
    }
    if (slot.first != nullptr && slot.second != nullptr) return forget(one);  // its rival may still answer
    if (reply.status == 412 && one.is_conditional) {  // it changed, or its tag is weak: the tag of an answer tells
      slot.is_unmatched = true;
      --slot.tries;
      forget(one);
      urgent_.push_back(&slot);
      return;
    }
    if (verdict.is_throttled) control_.throttled(now);
    go_on(one, std::move(verdict), now);
  }

  void go_on(Try& one, Verdict verdict, FetchClock::time_point now) {
    Slot& slot = *one.slot;
    const std::chrono::seconds asked_for = one.transfer->reply().retry_after;
    switch (verdict.next) {
      case Next::refresh:
        try {
          if (++slot.refreshes <= kMostRefreshes && session_->other_keys(one.keys)) {
            forget(one);
            --slot.tries;
            urgent_.push_back(&slot);
            return;
          }
        } catch (const Error& error) {
          verdict.failure.text += fmt::format("; {}", error.message());
          if (!error.hint().empty()) verdict.failure.hint = error.hint();
        }
        return end_failed(one, std::move(verdict.failure), slot.tries);
      case Next::ask_other_region:
        if (++slot.regions > kMostRegions) return end_failed(one, std::move(verdict.failure), slot.tries);
        session_->learn_region(slot.place.bucket, verdict.region);
        forget(one);
        --slot.tries;
        urgent_.push_back(&slot);
        return;
      case Next::retry:
        if (slot.received >= slot.received_before + kProgress) slot.tries = 0;
        if (!policy_.may_try_again(slot.tries)) return end_failed(one, std::move(verdict.failure), slot.tries);
        slot.due = now + policy_.pause(slot.tries, random_.uniform(), asked_for);
        slot.was_hedged = false;
        StoreCounters::add(counters_.retries);
        forget(one);
        waiting_.push_back(&slot);
        return;
      case Next::accept:
      case Next::fail:
        return end_failed(one, std::move(verdict.failure), slot.tries);
    }
  }

  void end_changed(Try& one) {
    Slot& slot = *one.slot;
    finish_changed(slot, one.actual_bytes);
    forget(one);
    release(slot);
  }
  void end_failed(Try& one, Failure failure, int tries) {
    Slot& slot = *one.slot;
    finish_failed(slot, std::move(failure), tries);
    forget(one);
    release(slot);
  }

  std::shared_ptr<Session> session_;
  std::unique_ptr<Lane> lane_;
  std::size_t depth_;
  DepthControl control_;
  HedgeControl hedges_;
  RetryPolicy policy_;
  Random random_;
  StoreCounters counters_;
  FetchClock::time_point looked_{};
  FetchClock::time_point may_stall_{};  // no request can have stalled before
  std::size_t begun_ = 0;               // requests since the last look at the sockets
  bool tags_are_weak_ = false;          // of this store: If-Match is left out, and the tag of each answer compared
  HttpRequest request_;                 // the one being made
  Endpoint endpoint_;                   // of endpoint_bucket_
  std::string endpoint_bucket_;
  std::uint64_t endpoint_changes_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_slots_;
  std::vector<std::unique_ptr<Try>> tries_;
  std::vector<Try*> free_tries_;
  Line<Slot*> queue_;
  std::vector<Slot*> urgent_;  // before those in queue_
  std::vector<Slot*> waiting_;
  std::vector<Try*> trying_;
  std::vector<Try*> rivals_;  // to be cancelled once libcurl has returned
  Line<Fetched> finished_;
};

}  // namespace

std::unique_ptr<Fetcher> make_s3_fetcher(std::shared_ptr<Session> session, std::size_t depth) {
  return std::make_unique<S3Fetcher>(std::move(session), depth);
}

}  // namespace stoker::storage::s3
