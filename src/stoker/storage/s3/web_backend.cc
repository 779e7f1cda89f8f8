#include "stoker/storage/s3/web_backend.h"

#include <map>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/os/fork.h"
#include "stoker/storage/s3/certificates.h"
#include "stoker/storage/s3/fetcher.h"
#include "stoker/storage/s3/object_source.h"
#include "stoker/storage/s3/session.h"

namespace stoker::storage::s3 {
namespace {

struct WebSessions {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Session>> by_settings;
};

std::shared_ptr<Session> web_session(std::string_view scheme) {
  Settings settings;
  settings.web_scheme = scheme;
  settings.anonymous = true;
  settings.ca_bundle = trusted_certificates(process_environment);
  static os::PerProcess<WebSessions> sessions;
  WebSessions& all = sessions.get();
  const std::scoped_lock lock(all.mutex);
  std::shared_ptr<Session>& session = all.by_settings[fmt::format("{} {}", scheme, settings.ca_bundle)];
  if (!session) session = std::make_shared<Session>(settings, CredentialWorld::real());
  return session;
}

class WebBackend final : public Backend {
 public:
  explicit WebBackend(std::string_view scheme) : scheme_(scheme) {}

  std::string_view scheme() const noexcept override { return scheme_; }
  ReadAdvice advice() const noexcept override { return {.join = false}; }
  bool can_list() const noexcept override { return false; }

  std::unique_ptr<Source> open(std::string_view name, Storage) const override {
    const std::shared_ptr<Session> session = web_session(scheme_);
    Place place;
    session->parse(name, place);
    if (place.key.empty()) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot open `{}://{}`: it names a server, and no file", scheme_, name));
    }
    Session::Found found = session->find(place);
    return std::make_unique<ObjectSource>(*this, session, std::move(place), std::move(found));
  }
  void list(std::string_view name, const Take&) const override {
    Place place;
    parse_web_place(scheme_, name, place);
    throw Error(ErrorKind::unsupported,
                fmt::format("cannot list `{}://{}`: web servers do not tell which files they have", scheme_, name),
                "give the address of a .csv with a column `path` that names them, a .pack or .tar shards; or a list of "
                "samples");
  }
  std::unique_ptr<Fetcher> make_fetcher(const FetcherOptions& options, std::string* fallback_reason) const override {
    if (fallback_reason != nullptr) fallback_reason->clear();
    return make_s3_fetcher(web_session(scheme_), options.depth);
  }

 private:
  std::string_view scheme_;
};

}  // namespace

const Backend& http_files() noexcept {
  static const WebBackend backend("http");
  return backend;
}

const Backend& https_files() noexcept {
  static const WebBackend backend("https");
  return backend;
}

}  // namespace stoker::storage::s3
