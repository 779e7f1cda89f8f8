// A store as one environment reaches it: endpoints, regions, keys, and connections that are kept between uses.
// Safe from many threads. A session does not survive a fork: the child makes its own.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/os/fork.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/s3/credentials.h"
#include "stoker/storage/s3/lane.h"
#include "stoker/storage/s3/listing.h"
#include "stoker/storage/s3/parallel_list.h"
#include "stoker/storage/s3/settings.h"
#include "stoker/storage/s3/verdict.h"

namespace stoker::storage::s3 {

class Session {
 public:
  Session(Settings settings, CredentialWorld world);

  const Settings& settings() const noexcept { return settings_; }
  bool is_web() const noexcept { return !settings_.web_scheme.empty(); }  // files of web servers, not S3
  void parse(std::string_view name,
             Place& place) const;                 // `name` is an address without its scheme. Throws Error(usage)
  std::string address(const Place& place) const;  // for messages
  Endpoint endpoint(const std::string& bucket) const;
  void learn_region(const std::string& bucket, const std::string& region);
  // An endpoint is good until this changes.
  std::uint64_t region_changes() const noexcept { return region_changes_.load(std::memory_order_relaxed); }
  std::shared_ptr<const Credentials> keys();  // null: anonymous. Throws Error
  // Other keys than those that were refused, or null. Throws Error.
  std::shared_ptr<const Credentials> other_keys(const std::shared_ptr<const Credentials>& refused);
  // A request with everything but its URL and range.
  HttpRequest request(const Endpoint& endpoint, std::shared_ptr<const Credentials> keys) const;

  // These wait for their answer, and try again what may pass. They throw Error.
  void list(const Place& place, const Backend::Take& take);
  struct Found {
    std::uint64_t bytes = 0;
    std::string version;
  };
  Found find(const Place& place);

  // Writes or removes an object, or takes a step of a multipart upload. The body goes with every try.
  struct Writing {
    HttpRequest::Method method = HttpRequest::Method::put;
    Place place;
    std::string query{};
    std::string body{};
  };
  HttpReply write(const Writing& writing);

  bool is_forked() const noexcept { return os::fork_generation() != generation_; }
  void refuse_after_fork() const;  // throws Error(usage)

  // Lanes with warm connections.
  std::unique_ptr<Lane> take_lane();
  void give_back(std::unique_ptr<Lane> lane) noexcept;

 private:
  struct Question {
    Place place;
    std::string query;
    std::string range;
    std::string operation;  // "list", "open", "write"
    bool lists = false;
    const Writing* writing = nullptr;
  };
  HttpReply ask(const Question& question);
  HttpReply send(const HttpRequest& request);
  ListPage ask_page(const Place& place, const PageQuestion& question);  // `place` is for messages
  Error nothing_below(const Place& place);
  std::optional<Found> find_by_head(const Place& place);  // none: ask in another way

  std::uint64_t generation_ = os::fork_generation();
  Settings settings_;
  CredentialKeeper keeper_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> regions_;  // by bucket, where it differs from the settings'
  std::atomic<std::uint64_t> region_changes_{0};
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<HttpClient> clients_;
};

}  // namespace stoker::storage::s3
