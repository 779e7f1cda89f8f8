#include "stoker/storage/s3/session.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/random.h"
#include "stoker/storage/interruption.h"
#include "stoker/storage/s3/retry.h"

namespace stoker::storage::s3 {
namespace {

constexpr std::size_t kIdleLanes = 8;
constexpr std::size_t kIdleClients = 16;
constexpr int kKeysPerPage = 1000;
constexpr int kTriesOfQuestions = 5;  // somebody waits for the answer: give up sooner than an epoch does
constexpr int kTriesOfWrites = 10;
constexpr int kRegionsTried = 3;

double uniform_now() {
  const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return Random(now, 0, 0).uniform();
}

Error error_of(const Failure& failure, std::string_view operation, std::string_view address, int tries) {
  return Error(failure.kind,
               fmt::format("cannot {} `{}`: {}{}", operation, address, failure.text,
                           tries > 1 ? fmt::format(" ({} tries)", tries) : ""),
               failure.hint);
}

std::string without_double_slashes(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c != '/' || (!out.empty() && out.back() != '/')) out += c;
  }
  return out;
}

// A hint that names what lies at `address`, after a search there found nothing. Empty: nothing is known.
std::string prefixes_text(std::string_view address, const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 8;
  if (names.empty()) return {};
  std::string list;
  for (std::size_t i = 0; i < std::min(kNamed, names.size()); ++i) {
    list += fmt::format("{}`{}/`", i == 0 ? "" : ", ", names[i]);
  }
  return fmt::format("`{}` has the prefix{} {}{}", address, names.size() == 1 ? "" : "es", list,
                     names.size() > kNamed ? fmt::format(" and {} more", names.size() - kNamed) : "");
}

// Objects whose store does not list them in order: kept in one piece, then sorted.
class UnsortedObjects {
 public:
  void add(const ListedObject& object) {
    rows_.push_back({text_.size(), static_cast<std::uint32_t>(object.key.size()),
                     static_cast<std::uint32_t>(object.version.size()), object.bytes});
    text_ += object.key;
    text_ += object.version;
  }
  template <typename Use>
  void use_sorted(const Use& use) {
    std::sort(rows_.begin(), rows_.end(), [&](const Row& a, const Row& b) { return key(a) < key(b); });
    for (const Row& row : rows_) {
      if (!use(key(row), row.bytes, std::string_view(text_).substr(row.at + row.key_bytes, row.version_bytes))) return;
    }
  }

 private:
  struct Row {
    std::uint64_t at;
    std::uint32_t key_bytes, version_bytes;
    std::uint64_t bytes;
  };
  std::string_view key(const Row& row) const { return std::string_view(text_).substr(row.at, row.key_bytes); }

  std::string text_;
  std::vector<Row> rows_;
};

}  // namespace

Session::Session(Settings settings, CredentialWorld world)
    : settings_(std::move(settings)), keeper_(std::move(world)) {}

void Session::parse(std::string_view name, Place& place) const {
  is_web() ? parse_web_place(settings_.web_scheme, name, place) : parse_place(name, place);
}

std::string Session::address(const Place& place) const {
  return is_web() ? fmt::format("{}://{}/{}", settings_.web_scheme, place.bucket, place.key)
                  : address_of(place.bucket, place.key);
}

Endpoint Session::endpoint(const std::string& bucket) const {
  if (is_web()) return web_endpoint(settings_.web_scheme, bucket);
  std::string region = settings_.region;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = regions_.find(bucket); found != regions_.end()) region = found->second;
  }
  return make_endpoint(settings_.endpoint_url, region, bucket, settings_.style);
}

void Session::learn_region(const std::string& bucket, const std::string& region) {
  const std::scoped_lock lock(mutex_);
  regions_[bucket] = region;
  region_changes_.fetch_add(1, std::memory_order_relaxed);
}

std::shared_ptr<const Credentials> Session::keys() {
  return settings_.anonymous ? nullptr : keeper_.current();
}

std::shared_ptr<const Credentials> Session::other_keys(const std::shared_ptr<const Credentials>& refused) {
  return settings_.anonymous ? nullptr : keeper_.after_refusal(refused);
}

HttpRequest Session::request(const Endpoint& endpoint, std::shared_ptr<const Credentials> keys) const {
  HttpRequest request;
  request.credentials = std::move(keys);
  request.region = endpoint.region;
  request.ca_bundle = settings_.ca_bundle;
  request.connect_timeout = settings_.connect_timeout;
  request.stall_timeout = settings_.stall_timeout;
  request.requester_pays = settings_.requester_pays;
  request.follows_redirects = is_web();
  return request;
}

void Session::refuse_after_fork() const {
  if (!is_forked()) return;
  throw Error(ErrorKind::usage, "these connections to S3 were made in another process: they did not survive the fork",
              "open the data set in the process that uses it (after fork, or with the `spawn` start method)");
}

// On a connection that is there already, if one is free.
HttpReply Session::send(const HttpRequest& request) {
  refuse_after_fork();
  std::optional<HttpClient> client;
  {
    const std::scoped_lock lock(mutex_);
    if (!clients_.empty()) {
      client.emplace(std::move(clients_.back()));
      clients_.pop_back();
    }
  }
  if (!client) client.emplace();
  HttpReply reply = client->send(request);
  const std::scoped_lock lock(mutex_);
  if (clients_.size() < kIdleClients) clients_.push_back(std::move(*client));
  return reply;
}

HttpReply Session::ask(const Question& question) {
  const RetryPolicy policy{
      .most_tries = std::min(settings_.most_tries, question.writing != nullptr ? kTriesOfWrites : kTriesOfQuestions)};
  std::shared_ptr<const Credentials> keys = this->keys();
  bool has_refreshed = false;
  int regions = 0;
  for (int tries = 1;; ++tries) {
    const Endpoint endpoint = this->endpoint(question.place.bucket);
    HttpRequest request = this->request(endpoint, keys);
    request.url = endpoint.url(question.lists ? std::string_view() : question.place.key);
    if (!question.query.empty()) request.url += "?" + question.query;
    request.range = question.range;
    if (question.writing != nullptr) {
      request.method = question.writing->method;
      request.body = question.writing->body;
    }
    HttpReply reply = send(request);
    if (reply.is_complete() && reply.status == 416) return reply;
    Asked asked{question.place.bucket, question.place.key,          endpoint.origin,
                endpoint.region,       keys ? keys->origin : "",    "",
                question.lists,        question.writing != nullptr, is_web()};
    const Verdict verdict = judge(reply, asked);
    switch (verdict.next) {
      case Next::accept:
        return reply;
      case Next::refresh:
        if (!std::exchange(has_refreshed, true)) {
          if (auto others = other_keys(keys)) {
            keys = std::move(others);
            continue;
          }
        }
        break;
      case Next::ask_other_region:
        if (++regions <= kRegionsTried) {
          learn_region(question.place.bucket, verdict.region);
          continue;
        }
        break;
      case Next::retry:
        if (policy.may_try_again(tries)) {
          pause_interruptibly(policy.pause(tries, uniform_now(), reply.retry_after));
          continue;
        }
        break;
      case Next::fail:
        break;
    }
    throw error_of(verdict.failure, question.operation, address(question.place), tries);
  }
}

HttpReply Session::write(const Writing& writing) {
  const bool removes = writing.method == HttpRequest::Method::remove;
  Question question{writing.place, writing.query, "", removes ? "remove" : "write", false};
  question.writing = &writing;
  return ask(question);
}

ListPage Session::ask_page(const Place& place, const PageQuestion& question) {
  const std::string query =
      page_query(question.prefix, question.delimiter, question.token, kKeysPerPage, question.start_after);
  const std::string address = address_of(place.bucket, place.key);
  ListPage page = parse_page(ask({place, query, "", "list", true}).body, address);
  if (!page.next.empty() && page.next == question.token) {
    throw Error(ErrorKind::corrupt, fmt::format("cannot list `{}`: the store gives the same page twice", address));
  }
  return page;
}

void Session::list(const Place& place, const Backend::Take& take) {
  const bool is_sorted = endpoint(place.bucket).lists_in_order;
  const std::string address = address_of(place.bucket, place.key);
  const auto refuse = [&](std::string_view cause) {
    throw Error(ErrorKind::corrupt, fmt::format("cannot list `{}`: {}", address, cause));
  };
  UnsortedObjects unsorted;
  std::string name, last;
  bool is_empty = true;
  // A key that comes twice would double its sample, and with it the weight that it has in training.
  const auto give = [&](std::string_view key, std::uint64_t bytes, std::string_view version) {
    if (key == last) refuse(fmt::format("the store lists the key `{}` twice", key));
    if (key < last) refuse("the store lists its keys out of order");
    last = key;
    name = place.bucket;
    name.append("/").append(key);
    return take({name, bytes, version});
  };
  const AskPage ask_one = [&](const PageQuestion& question) { return ask_page(place, question); };
  const UsePage use = [&](ListPage& page) {
    for (const ListedObject& object : page.objects) {
      if (!object.key.starts_with(place.key)) refuse("the answer has an object that is not below it");
      is_empty = false;
      if (object.key.ends_with('/')) continue;  // the mark of a folder
      if (!is_sorted) {
        unsorted.add(object);
      } else if (!give(object.key, object.bytes, object.version)) {
        return false;
      }
    }
    return true;
  };
  list_in_parallel(ask_one, place.key, is_sorted, use, address);
  if (is_empty) throw nothing_below(place);
  unsorted.use_sorted(give);
}

Error Session::nothing_below(const Place& place) {
  const std::string address = address_of(place.bucket, place.key);
  if (place.key.empty()) {
    return Error(ErrorKind::not_found, fmt::format("cannot list `{}`: the bucket is empty", address));
  }
  if (std::string single = without_double_slashes(place.key); single != place.key) {
    while (single.ends_with('/')) single.pop_back();
    return Error(ErrorKind::not_found, fmt::format("cannot list `{}`: no key begins with `{}`", address, place.key),
                 fmt::format("the address has a double slash, which is part of the key: did you mean `{}`?",
                             address_of(place.bucket, single)));
  }
  std::string_view wanted = place.key;
  while (wanted.ends_with('/')) wanted.remove_suffix(1);
  const std::size_t parent = wanted.rfind('/') + 1;  // npos + 1 is 0
  std::vector<std::string> names;
  bool is_object = false;
  try {
    const Place above{place.bucket, std::string(wanted.substr(0, parent))};
    const ListPage page = ask_page(above, {above.key, "/", "", ""});  // the first page is enough for a hint
    for (const ListedObject& object : page.objects) is_object = is_object || object.key == wanted;
    for (const std::string& prefix : page.prefixes) names.push_back(prefix.substr(parent, prefix.size() - parent - 1));
  } catch (const Error&) {
    names.clear();
  }
  const std::string message = fmt::format("cannot list `{}`: no key begins with `{}`", address, place.key);
  if (is_object) {
    return Error(
        ErrorKind::not_found, message,
        fmt::format("`{}` is one object; a data set is the prefix above it", address_of(place.bucket, wanted)));
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string near = nearest(wanted.substr(parent), candidates.data(), candidates.size());
  const std::string above = address_of(place.bucket, wanted.substr(0, parent));
  if (!near.empty()) return Error(ErrorKind::not_found, message, fmt::format("did you mean `{}{}`?", above, near));
  return Error(ErrorKind::not_found, message, prefixes_text(above, names));
}

std::optional<Session::Found> Session::find_by_head(const Place& place) {
  const Endpoint endpoint = this->endpoint(place.bucket);
  HttpRequest request = this->request(endpoint, nullptr);
  request.method = HttpRequest::Method::head;
  request.url = endpoint.url(place.key);
  const HttpReply reply = send(request);
  if (!reply.is_complete() || reply.status != 200 || !reply.content_length) return std::nullopt;
  return Found{*reply.content_length, std::string(unquoted_tag(reply.etag))};
}

Session::Found Session::find(const Place& place) {
  // A web server that knows no ranges would answer the request below with the whole file.
  if (is_web()) {
    if (const std::optional<Found> found = find_by_head(place)) return *found;
  }
  // The first byte, not HEAD: an answer to HEAD says nothing about why it is refused.
  const HttpReply reply = ask({place, "", "bytes=0-0", "open", false});
  Found found{reply.total_bytes.value_or(0), std::string(unquoted_tag(reply.etag))};
  if (reply.status == 416) return {reply.total_bytes.value_or(0), ""};
  if (reply.status == 200 && !reply.total_bytes) found.bytes = reply.content_length.value_or(reply.body.size());
  return found;
}

std::unique_ptr<Lane> Session::take_lane() {
  refuse_after_fork();
  {
    const std::scoped_lock lock(mutex_);
    if (!lanes_.empty()) {
      std::unique_ptr<Lane> lane = std::move(lanes_.back());
      lanes_.pop_back();
      return lane;
    }
  }
  return std::make_unique<Lane>();
}

void Session::give_back(std::unique_ptr<Lane> lane) noexcept {
  const std::scoped_lock lock(mutex_);
  if (lanes_.size() < kIdleLanes) lanes_.push_back(std::move(lane));
}

}  // namespace stoker::storage::s3
