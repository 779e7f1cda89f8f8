#include "stoker/storage/s3/backend.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/os/fork.h"
#include "stoker/storage/s3/fetcher.h"
#include "stoker/storage/s3/object_source.h"
#include "stoker/storage/s3/session.h"
#include "stoker/storage/s3/upload.h"

namespace stoker::storage::s3 {
namespace {

// Everything that decides how S3 is reached. A program that changes one of them gets another session.
constexpr std::array<const char*, 30> kVariables = {
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "HOME",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_STS",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_NO_SIGN_REQUEST",
    "AWS_REQUEST_PAYER",
    "AWS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "SSL_CERT_FILE",
    "AWS_MAX_ATTEMPTS",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "STOKER_S3_STALL_TIMEOUT",
};

struct Sessions {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Session>> by_environment;
};

std::shared_ptr<Session> session_now() {
  std::string key;
  for (const char* const variable : kVariables) key += process_environment(variable).value_or("") + '\n';
  static os::PerProcess<Sessions> sessions;
  Sessions& all = sessions.get();
  const std::scoped_lock lock(all.mutex);
  std::shared_ptr<Session>& session = all.by_environment[key];
  if (!session) session = std::make_shared<Session>(load_settings(process_environment), CredentialWorld::real());
  return session;
}

Place object_place(std::string_view name) {
  Place place = parse_place(name);
  if (place.key.empty()) {
    throw Error(ErrorKind::usage, fmt::format("cannot open `s3://{}`: it names a bucket, and no object", name));
  }
  return place;
}

class S3Backend final : public Backend {
 public:
  std::string_view scheme() const noexcept override { return "s3"; }
  // Amazon's bucket names are unique; those of another service are unique below its address.
  std::string identity() const override {
    const std::string& endpoint = session_now()->settings().endpoint_url;
    return endpoint.empty() ? "s3" : fmt::format("s3 {}", endpoint);
  }
  ReadAdvice advice() const noexcept override { return {.join = false}; }
  std::vector<std::string> notes() const override { return session_now()->settings().notes; }

  std::unique_ptr<Source> open(std::string_view name, Storage) const override {
    const std::shared_ptr<Session> session = session_now();
    Place place = object_place(name);
    Session::Found found = session->find(place);
    return std::make_unique<ObjectSource>(*this, session, std::move(place), std::move(found));
  }
  void list(std::string_view name, const Take& take) const override {
    Place place = parse_place(name);
    if (!place.key.empty() && !place.key.ends_with('/')) place.key += '/';
    session_now()->list(place, take);
  }
  std::unique_ptr<ObjectWriter> create(std::string_view name) const override {
    return std::make_unique<Upload>(session_now(), object_place(name));
  }
  void remove(std::string_view name) const override {
    (void)session_now()->write({.method = HttpRequest::Method::remove, .place = object_place(name)});
  }
  std::unique_ptr<Fetcher> make_fetcher(const FetcherOptions& options, std::string* fallback_reason) const override {
    if (fallback_reason != nullptr) fallback_reason->clear();
    return make_s3_fetcher(session_now(), options.depth);
  }
};

}  // namespace

const Backend& s3_objects() noexcept {
  static const S3Backend backend;
  return backend;
}

}  // namespace stoker::storage::s3
