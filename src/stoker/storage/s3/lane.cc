#include "stoker/storage/s3/lane.h"

#include <algorithm>
#include <array>

#include <curl/curl.h>

#include "stoker/base/error.h"
#include "stoker/storage/interruption.h"

namespace stoker::storage::s3 {
namespace {

CURLM* multi_of(void* multi) noexcept {
  return static_cast<CURLM*>(multi);
}

}  // namespace

Lane::Lane() : multi_((start_curl(), curl_multi_init())) {
  if (multi_ == nullptr) throw Error(ErrorKind::unavailable, "cannot start libcurl: out of memory");
  CURLM* const multi = multi_of(multi_);
  curl_multi_setopt(
      multi, CURLMOPT_SOCKETFUNCTION,
      static_cast<curl_socket_callback>([](CURL* easy, curl_socket_t socket, int what, void* self, void* of_socket) {
        return on_socket(easy, socket, what, self, of_socket);
      }));
  curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION,
                    static_cast<curl_multi_timer_callback>([](CURLM* handle, long milliseconds, void* self) {
                      return on_timer(handle, milliseconds, self);
                    }));
  curl_multi_setopt(multi, CURLMOPT_TIMERDATA, this);
  poller_.watch(event_.descriptor(), true, false);
}

Lane::~Lane() {
  free_.clear();
  curl_multi_cleanup(multi_of(multi_));
}

void Lane::keep_connections(std::size_t most) {
  curl_multi_setopt(multi_of(multi_), CURLMOPT_MAXCONNECTS, static_cast<long>(most));
}

std::unique_ptr<Transfer> Lane::take_transfer() {
  if (free_.empty()) return std::make_unique<Transfer>();
  std::unique_ptr<Transfer> transfer = std::move(free_.back());
  free_.pop_back();
  return transfer;
}

void Lane::recycle(std::unique_ptr<Transfer> transfer) {
  free_.push_back(std::move(transfer));
}

void Lane::start(Transfer& transfer, void* owner) {
  curl_easy_setopt(static_cast<CURL*>(transfer.handle()), CURLOPT_PRIVATE, owner);
  const CURLMcode code = curl_multi_add_handle(multi_of(multi_), static_cast<CURL*>(transfer.handle()));
  if (code != CURLM_OK) throw Error(ErrorKind::unavailable, curl_multi_strerror(code));
}

void Lane::cancel(Transfer& transfer) {
  curl_multi_remove_handle(multi_of(multi_), static_cast<CURL*>(transfer.handle()));
}

void Lane::step(std::chrono::nanoseconds timeout) {
  std::array<os::Poller::Ready, 64> ready;
  if (interruption_in_force() != nullptr) {
    check_interruption();
    timeout = std::min<std::chrono::nanoseconds>(timeout, kAskEvery);
  }
  const std::size_t count = poller_.wait(ready, std::min(timeout, until_timer()));
  int running = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const os::Poller::Ready& one = ready[i];
    if (one.descriptor == event_.descriptor()) {
      woken_ = event_.take() || woken_;
      continue;
    }
    const int what = (one.readable ? CURL_CSELECT_IN : 0) | (one.writable ? CURL_CSELECT_OUT : 0) |
                     (one.failed ? CURL_CSELECT_ERR : 0);
    curl_multi_socket_action(multi_of(multi_), one.descriptor, what, &running);
  }
  if (timer_ <= Clock::now()) {
    timer_ = Clock::time_point::max();
    curl_multi_socket_action(multi_of(multi_), CURL_SOCKET_TIMEOUT, 0, &running);
  }
}

Lane::Finished Lane::next_finished() {
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_of(multi_), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const int code = message->data.result;
    CURL* const easy = message->easy_handle;
    void* owner = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &owner);
    curl_multi_remove_handle(multi_of(multi_), easy);  // `message` is gone from here on
    return {owner, code};
  }
  return {};
}

void Lane::wake() noexcept {
  event_.raise();
}

bool Lane::take_wake() noexcept {
  return std::exchange(woken_, false);
}

std::chrono::nanoseconds Lane::until_timer() const noexcept {
  if (timer_ == Clock::time_point::max()) return std::chrono::nanoseconds::max();
  return std::max<std::chrono::nanoseconds>(timer_ - Clock::now(), std::chrono::nanoseconds::zero());
}

int Lane::on_socket(void*, int descriptor, int what, void* self, void*) {
  Lane& lane = *static_cast<Lane*>(self);
  if (what == CURL_POLL_REMOVE) {
    lane.poller_.forget(descriptor);
  } else {
    lane.poller_.watch(descriptor, (what & CURL_POLL_IN) != 0, (what & CURL_POLL_OUT) != 0);
  }
  return 0;
}

int Lane::on_timer(void*, long milliseconds, void* self) {
  Lane& lane = *static_cast<Lane*>(self);
  lane.timer_ = milliseconds < 0 ? Clock::time_point::max() : Clock::now() + std::chrono::milliseconds(milliseconds);
  return 0;
}

}  // namespace stoker::storage::s3
