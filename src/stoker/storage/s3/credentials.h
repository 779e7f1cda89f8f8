// Who signs requests: keys from the places where Amazon's tools look, refreshed before they expire.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "stoker/storage/s3/http.h"
#include "stoker/storage/s3/settings.h"

namespace stoker::storage::s3 {

using WallTime = std::chrono::system_clock::time_point;

// Never printed, never logged.
struct Credentials {
  std::string access_key, secret_key, session_token;
  std::optional<WallTime> expires;
  std::string origin;  // for messages: "the environment", "profile `train`"
};

// What the chain of credentials needs of the world. Tests bring their own.
struct CredentialWorld {
  Environment environment;
  Send send;
  std::function<WallTime()> now;
  // Its output. Throws Error, also where the user interrupts this thread (storage/interruption.h).
  std::function<std::string(const std::string& command)> run;

  static CredentialWorld real();
};

// Looks in this order: the environment, web identity (also of the profile), the profile's keys, its credential_process,
// the container, the instance. The first that is configured decides. Throws Error: it is configured and fails, or
// none is.
Credentials find_credentials(const CredentialWorld& world);

// The keys of a session. Safe from many threads.
class CredentialKeeper {
 public:
  explicit CredentialKeeper(CredentialWorld world) : world_(std::move(world)) {}

  // Looks them up at first, and again some minutes before they expire. While one thread refreshes keys that are still
  // good, the others go on with them. Throws Error as find_credentials(), and where the user interrupts this thread.
  std::shared_ptr<const Credentials> current();
  // After the store refused `used`: other ones, if there are any by now; else null.
  std::shared_ptr<const Credentials> after_refusal(const std::shared_ptr<const Credentials>& used);

 private:
  // One thread at a time looks keys up. A lookup may run a program for a minute, so waiting for a turn is
  // interruptible.
  class Turn;

  std::shared_ptr<const Credentials> held() const;
  std::shared_ptr<const Credentials> look_up();  // in a turn

  CredentialWorld world_;
  mutable std::mutex mutex_;  // of held_ and is_looking_up_
  std::condition_variable turn_ended_;
  bool is_looking_up_ = false;
  std::shared_ptr<const Credentials> held_;
  WallTime tried_{};  // when a refresh of keys that are still good failed; changes in a turn
};

// "2026-11-17T18:00:00Z", with or without a fraction; none: it is no time.
std::optional<WallTime> parse_iso_time(std::string_view text);

}  // namespace stoker::storage::s3
