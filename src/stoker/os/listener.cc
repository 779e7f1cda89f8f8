#include "stoker/os/listener.h"

#include <cerrno>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "stoker/base/error.h"

namespace stoker::os {

Listener::Listener(std::uint16_t port) {
  const std::string name = fmt::format("127.0.0.1:{}", port);
  const auto check = [&](bool fine) {
    if (fine) return;
    const Error error = system_error(errno, "listen on", name);
    throw Error(error.kind(), error.text(), "another port, or 0 for any that is free");
  };
  socket_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  check(static_cast<bool>(socket_));
  const int on = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  check(::listen(socket_.get(), 16) == 0);
  socklen_t size = sizeof address;
  check(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  check(static_cast<bool>(wake_));
}

Fd Listener::next(std::chrono::milliseconds patience) noexcept {
  for (;;) {
    pollfd ready[2] = {{.fd = socket_.get(), .events = POLLIN, .revents = 0},
                       {.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    if (::poll(ready, 2, -1) < 0 && errno != EINTR) return {};
    if (ready[1].revents != 0) return {};
    if (ready[0].revents == 0) continue;
    Fd visitor(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!visitor) {
      // Out of descriptors, or the visitor has left again: the queue would stay readable, so do not spin.
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) ::poll(&ready[1], 1, 100);
      continue;
    }
    const timeval limit = {.tv_sec = patience.count() / 1000, .tv_usec = patience.count() % 1000 * 1000};
    ::setsockopt(visitor.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(visitor.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return visitor;
  }
}

void Listener::wake() noexcept {
  const std::uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) return;  // full: it was woken before
}

std::string hear(int visitor, std::string_view end, std::size_t most) {
  std::string said;
  const auto started = std::chrono::steady_clock::now();
  char bytes[2048];
  while (said.size() <= most && std::chrono::steady_clock::now() - started < std::chrono::seconds(5)) {
    const ssize_t got = ::recv(visitor, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    said.append(bytes, static_cast<std::size_t>(got));
    if (const std::size_t at = said.find(end); at != std::string::npos) return said.substr(0, at + end.size());
  }
  return {};
}

bool tell(int visitor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t sent = ::send(visitor, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  ::shutdown(visitor, SHUT_WR);
  return true;
}

NoSignals::NoSignals() noexcept {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

NoSignals::~NoSignals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace stoker::os
