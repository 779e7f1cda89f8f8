#include "stoker/os/poller.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/epoll.h>

#include "stoker/base/error.h"

namespace stoker::os {

Poller::Poller() : fd_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!fd_) throw system_error(errno, "make", "an epoll descriptor");
}

bool Poller::watch(int descriptor, bool for_reading, bool for_writing) noexcept {
  if (descriptor < 0) return false;
  epoll_event event{};
  event.events = (for_reading ? EPOLLIN : 0u) | (for_writing ? EPOLLOUT : 0u);
  event.data.fd = descriptor;
  const auto number = static_cast<std::size_t>(descriptor);
  if (watched_.size() <= number) watched_.resize(number + 1);
  if (watched_[number] && ::epoll_ctl(fd_.get(), EPOLL_CTL_MOD, descriptor, &event) == 0) return true;
  watched_[number] = ::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0 ||
                     (errno == EEXIST && ::epoll_ctl(fd_.get(), EPOLL_CTL_MOD, descriptor, &event) == 0);
  return watched_[number];
}

void Poller::forget(int descriptor) noexcept {
  (void)::epoll_ctl(fd_.get(), EPOLL_CTL_DEL, descriptor, nullptr);  // a closed descriptor has left already
  if (static_cast<std::size_t>(descriptor) < watched_.size()) watched_[static_cast<std::size_t>(descriptor)] = false;
}

std::size_t Poller::wait(std::span<Ready> out, std::chrono::nanoseconds timeout) noexcept {
  constexpr auto kLongest = std::chrono::hours(1);
  std::array<epoll_event, 64> events;
  const auto most = static_cast<int>(std::min(out.size(), events.size()));
  if (most == 0) return 0;
  const std::chrono::nanoseconds wait = std::clamp<std::chrono::nanoseconds>(timeout, {}, kLongest);
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(wait);
  const int count = ::epoll_wait(fd_.get(), events.data(), most, static_cast<int>(milliseconds.count()));
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    out[static_cast<std::size_t>(i)] = {event.data.fd, (event.events & EPOLLIN) != 0, (event.events & EPOLLOUT) != 0,
                                        (event.events & (EPOLLERR | EPOLLHUP)) != 0};
  }
  return static_cast<std::size_t>(std::max(count, 0));
}

}  // namespace stoker::os
