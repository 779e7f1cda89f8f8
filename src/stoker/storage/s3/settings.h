// How S3 is reached: what the environment and the files of Amazon's tools say, read once per session.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stoker/storage/s3/address.h"
#include "stoker/storage/s3/profile.h"

namespace stoker::storage::s3 {

// A variable of the environment; none where it is not set or empty. Tests bring their own.
using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_environment(const char* name);

struct Settings {
  std::string web_scheme;  // "http" or "https": plain files of web servers, not S3; empty: S3
  std::string region = "us-east-1";
  std::string endpoint_url;  // empty: Amazon
  Style style = Style::automatic;
  bool anonymous = false;
  bool requester_pays = false;
  std::string ca_bundle;  // a file; empty: what libcurl was compiled with
  int most_tries = 25;    // of a request that may succeed later, the first one included: about 100 seconds
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds stall_timeout{30'000};  // without a byte

  std::string profile = "default";
  Section profile_settings;
  std::vector<std::string> notes;  // for the user, such as a credentials file that others can read
};

// Throws Error: AWS_PROFILE names a profile that is nowhere, a file cannot be read, a setting makes no sense.
Settings load_settings(const Environment& environment);

}  // namespace stoker::storage::s3
