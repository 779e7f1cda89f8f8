#include "stoker/os/listener.h"

#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "stoker/base/error.h"

namespace stoker::os {
namespace {

using namespace std::chrono_literals;

Fd visit(std::uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return socket;
}

TEST(Listener, HearsAVisitorAndAnswers) {
  Listener listener(0);
  const Fd guest = visit(listener.port());
  const Fd visitor = listener.next(1s);
  ASSERT_TRUE(tell(guest.get(), "who are you?\n\nmore"));
  EXPECT_EQ(hear(visitor.get(), "\n\n", 100), "who are you?\n\n");
  ASSERT_TRUE(tell(visitor.get(), "a listener\n"));
  EXPECT_EQ(hear(guest.get(), "\n", 100), "a listener\n");
}

TEST(Listener, DoesNotWaitForASilentVisitorNorForOneThatTalksOnAndOn) {
  Listener listener(0);
  const Fd silent = visit(listener.port());
  EXPECT_EQ(hear(listener.next(20ms).get(), "\n", 100), "");
  const Fd talker = visit(listener.port());
  const Fd visitor = listener.next(1s);
  ASSERT_TRUE(tell(talker.get(), std::string(5000, 'x')));
  EXPECT_EQ(hear(visitor.get(), "\n", 100), "");
}

TEST(Listener, IsWokenFromAnotherThread) {
  Listener listener(0);
  std::thread waker([&] { listener.wake(); });
  EXPECT_FALSE(listener.next(1s));
  waker.join();
}

TEST(Listener, NamesAPortThatIsTaken) {
  const Listener first(0);
  try {
    const Listener second(first.port());
    FAIL() << "two listeners on one port";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "cannot listen on `127.0.0.1:" + std::to_string(first.port()) + "`: Address already in use");
    EXPECT_EQ(error.hint(), "another port, or 0 for any that is free");
  }
}

}  // namespace
}  // namespace stoker::os
