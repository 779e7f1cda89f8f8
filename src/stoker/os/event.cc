#include "stoker/os/event.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "stoker/base/error.h"

namespace stoker::os {

Event Event::try_make(int& error_number) noexcept {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  error_number = fd < 0 ? errno : 0;
  return Event(fd < 0 ? Fd() : Fd(fd));
}

Event::Event() {
  int error_number = 0;
  *this = try_make(error_number);
  if (error_number != 0) throw system_error(error_number, "make", "an eventfd");
}

void Event::raise() noexcept {
  const std::uint64_t one = 1;
  while (::write(fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

bool Event::take() noexcept {
  std::uint64_t count = 0;
  for (;;) {
    if (::read(fd_.get(), &count, sizeof count) == sizeof count) return true;
    if (errno != EINTR) return false;
  }
}

void wait_readable(std::span<const int> descriptors, std::chrono::nanoseconds timeout) noexcept {
  constexpr auto kLongest = std::chrono::hours(1);
  std::array<pollfd, 16> polled{};
  nfds_t count = 0;
  for (const int descriptor : descriptors) {
    if (descriptor >= 0 && count < polled.size()) polled[count++] = {descriptor, POLLIN, 0};
  }
  const std::chrono::nanoseconds wait = std::clamp<std::chrono::nanoseconds>(timeout, {}, kLongest);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wait);
  const timespec time{static_cast<time_t>(seconds.count()), static_cast<long>((wait - seconds).count())};
  (void)::ppoll(polled.data(), count, &time, nullptr);
}

}  // namespace stoker::os
