// A small S3 server for tests, in this process: objects, ranges, If-Match, paged listings, and every kind of fault on
// demand. While it lives, the environment leads s3:// addresses to it. It checks no signatures: tests/s3 runs against a
// server that does.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stoker/base/ascii.h"
#include "stoker/base/hash.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/s3/address.h"
#include "stoker/storage/s3/backend.h"

namespace stoker::storage {

class S3Store {
 public:
  // What becomes of one request. The first that is queued for a name is used up by the next request for it.
  struct Fault {
    int status = 0;         // 0: the usual answer
    std::string code{};     // of the error
    std::string headers{};  // more of them, each with its \r\n
    std::int64_t cut = -1;  // the connection closes after so many bytes of the body
    bool reset = false;     // it is reset instead
    bool hold = false;      // and waits there until let_go()
    std::string etag{};     // in place of the object's own; W/ before it makes it a weak one
    bool ignores_range = false;
    std::int64_t range_bytes = -1;  // the server sends this many bytes of a range; -1: all
  };
  struct Seen {
    std::string method, path, query, range, if_match, authorization, token, payer, body_hash;
  };

  S3Store() {
    set("AWS_ACCESS_KEY_ID", "test-key");
    set("AWS_SECRET_ACCESS_KEY", "test-secret");
    set("AWS_EC2_METADATA_DISABLED", "true");
    set("AWS_CONFIG_FILE", "/dev/null");
    set("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    set("AWS_REGION", "us-east-1");
    for (const char* const variable : {"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_NO_SIGN_REQUEST",
                                       "AWS_MAX_ATTEMPTS", "AWS_REQUEST_PAYER"}) {
      set(variable, "");
    }
    start();
  }
  ~S3Store() {
    stop();
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }
  S3Store(const S3Store&) = delete;
  S3Store& operator=(const S3Store&) = delete;

  const Backend& backend() const noexcept { return s3::s3_objects(); }
  std::string address(std::string_view name) const { return fmt::format("s3://{}", name); }
  // Until this store ends.
  void set(const char* variable, const std::string& value) {
    const char* const old = std::getenv(variable);
    before_.try_emplace(variable, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    value.empty() ? ::unsetenv(variable) : ::setenv(variable, value.c_str(), 1);
  }

  // Ends all connections and refuses new ones, until start(). The port stays the same.
  void stop() {
    const int listening = listening_.exchange(-1);
    if (listening < 0) return;
    ::shutdown(listening, SHUT_RDWR);
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
      for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    }
    changed_.notify_all();
    acceptor_.join();
    ::close(listening);
    threads_.clear();
  }
  void start() {
    const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    ::setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(port_);
    socklen_t size = sizeof at;
    if (::bind(listening, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(listening, 1024) != 0 ||
        ::getsockname(listening, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
      std::abort();
    }
    port_ = ntohs(at.sin_port);
    set("AWS_ENDPOINT_URL_S3", fmt::format("http://127.0.0.1:{}", port_));
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = false;
    }
    listening_ = listening;
    acceptor_ = std::thread([this, listening] { accept_all(listening); });
  }

  // The objects, as bucket/key; a second put() under one name is a new version.
  void put(const std::string& name, std::string bytes) {
    const std::scoped_lock lock(mutex_);
    objects_[name] = {std::move(bytes), fmt::format("v{}", ++puts_)};
    buckets_.insert(name.substr(0, name.find('/')));
  }
  std::string version(const std::string& name) const {  // empty: no such object
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(name);
    return found != objects_.end() ? found->second.version : std::string();
  }
  std::optional<std::string> bytes_of(const std::string& name) const {
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(name);
    return found == objects_.end() ? std::nullopt : std::optional(found->second.bytes);
  }
  std::size_t open_uploads() const {
    const std::scoped_lock lock(mutex_);
    return uploads_.size();
  }
  void remove(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    objects_.erase(name);
  }

  // How requests go from now on. Each takes between a half and one and a half times `usual`.
  void set_latency(std::chrono::nanoseconds usual) { usual_ns_ = usual.count(); }
  void set_page(std::size_t keys) { page_keys_ = keys; }
  void repeat_pages() { repeats_pages_ = true; }  // each has the first keys again, and a token of its own
  void repeat_keys() { repeats_keys_ = true; }    // each twice, on the same page
  void hold(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    held_.insert(name);
  }
  void hold_after(std::uint64_t requests) { answered_first_ = requests; }  // the later ones are never answered
  void let_go() {
    {
      const std::scoped_lock lock(mutex_);
      held_.clear();
      ++let_go_;
    }
    changed_.notify_all();
  }
  void fail(const std::string& name, Fault fault, int times = 1) {
    const std::scoped_lock lock(mutex_);
    for (int i = 0; i < times; ++i) faults_[name].push_back(fault);
  }
  void forgive() {
    const std::scoped_lock lock(mutex_);
    faults_.clear();
    refused_key_.clear();
  }
  void refuse_key(std::string access_key, std::string code) {
    const std::scoped_lock lock(mutex_);
    refused_key_ = std::move(access_key);
    refused_code_ = std::move(code);
  }
  void set_region(std::string region) {  // requests signed for another one are sent there
    const std::scoped_lock lock(mutex_);
    region_ = std::move(region);
  }

  std::uint64_t requests() const { return requests_; }
  std::uint64_t answered() const { return answered_; }
  std::uint64_t most_in_flight() const { return most_in_flight_; }
  std::uint64_t connections() const { return connections_; }
  std::vector<Seen> seen() const {
    const std::scoped_lock lock(mutex_);
    return seen_;
  }

 private:
  struct Held {
    std::string bytes, version;
  };

  void accept_all(int listening) {
    for (;;) {
      const int socket = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) return;
      const int yes = 1;
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      ++connections_;
      const std::scoped_lock lock(mutex_);
      if (stopping_) {
        ::close(socket);
        return;
      }
      sockets_.insert(socket);
      threads_.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    std::string buffered;
    while (answer_next(socket, buffered)) {
    }
    {
      const std::scoped_lock lock(mutex_);
      sockets_.erase(socket);
    }
    ::close(socket);
  }

  static bool send_all(int socket, std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  static std::string header_of(std::string_view head, std::string_view name) {
    for (std::size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
      const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
      if (line.size() > name.size() && to_lower(line.substr(0, name.size())) == name && line[name.size()] == ':') {
        std::string_view value = line.substr(name.size() + 1);
        while (value.starts_with(' ')) value.remove_prefix(1);
        return std::string(value);
      }
    }
    return {};
  }

  // False: the connection is over.
  bool answer_next(int socket, std::string& buffered) {
    std::size_t end = 0;
    while ((end = buffered.find("\r\n\r\n")) == std::string::npos) {
      char some[4096];
      const ssize_t got = ::recv(socket, some, sizeof some, 0);
      if (got <= 0) return false;
      buffered.append(some, static_cast<std::size_t>(got));
    }
    const std::string head = buffered.substr(0, end + 2);
    buffered.erase(0, end + 4);
    const std::string length = header_of(head, "content-length");
    const std::size_t body_bytes = length.empty() ? 0 : std::stoull(length);
    while (buffered.size() < body_bytes) {
      char some[65536];
      const ssize_t got = ::recv(socket, some, sizeof some, 0);
      if (got <= 0) return false;
      buffered.append(some, static_cast<std::size_t>(got));
    }
    const std::string sent = buffered.substr(0, body_bytes);
    buffered.erase(0, body_bytes);
    Seen seen;
    const std::size_t space = head.find(' '), second = head.find(' ', space + 1);
    seen.method = head.substr(0, space);
    std::string target = head.substr(space + 1, second - space - 1);
    if (const std::size_t mark = target.find('?'); mark != std::string::npos) {
      seen.query = target.substr(mark + 1);
      target.resize(mark);
    }
    seen.path = decoded(target);
    seen.range = header_of(head, "range");
    seen.if_match = header_of(head, "if-match");
    seen.authorization = header_of(head, "authorization");
    seen.token = header_of(head, "x-amz-security-token");
    seen.payer = header_of(head, "x-amz-request-payer");
    seen.body_hash = header_of(head, "x-amz-content-sha256");
    const std::string name = seen.path.substr(1);

    const std::uint64_t number = ++requests_;
    const std::uint64_t in_flight = ++in_flight_;
    for (std::uint64_t most = most_in_flight_; most < in_flight;) {
      if (most_in_flight_.compare_exchange_weak(most, in_flight)) break;
    }
    const auto due = std::chrono::steady_clock::now() + latency(number);
    Fault fault;
    std::uint64_t let_go_before = 0;
    {
      std::unique_lock lock(mutex_);
      let_go_before = let_go_;
      seen_.push_back(seen);
      changed_.wait_until(lock, due, [&] { return stopping_; });
      changed_.wait(lock, [&] { return stopping_ || (!held_.contains(name) && number <= answered_first_); });
      if (const auto found = faults_.find(name); found != faults_.end() && !found->second.empty()) {
        fault = found->second.front();
        found->second.pop_front();
      }
    }
    std::string answer_head, body;
    make_answer(seen, name, sent, fault, answer_head, body);
    --in_flight_;
    ++answered_;
    if (fault.cut >= 0 || fault.reset || fault.hold) return spoil(socket, fault, let_go_before, answer_head, body);
    if (seen.method == "HEAD") body.clear();
    return send_all(socket, answer_head + "\r\n" + body);
  }

  // Sends a part of the answer.
  bool spoil(int socket, const Fault& fault, std::uint64_t let_go_before, const std::string& head,
             const std::string& body) {
    const std::size_t whole = head.size() + 2 + body.size();
    const std::size_t part = fault.cut >= 0 ? head.size() + 2 + static_cast<std::size_t>(fault.cut) : 0;
    send_all(socket, (head + "\r\n" + body).substr(0, std::min(part, whole)));
    if (fault.hold) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || let_go_ != let_go_before; });
    }
    if (fault.reset) {
      const linger now{1, 0};
      ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    return false;
  }

  static std::string error_xml(std::string_view code, std::string_view more = {}) {
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>as told by the test"
        "</Message>{}</Error>",
        code, more);
  }

  // Writing: whole objects, and uploads in parts.
  template <typename Say>
  void take_write(const Seen& seen, const std::string& name, const std::string& sent, const Say& say) {
    const std::string id = parameter(seen.query, "uploadId"), part = parameter(seen.query, "partNumber");
    if (!id.empty() && !uploads_.contains(id)) return say(404, error_xml("NoSuchUpload"), "");
    if (seen.method == "PUT" && id.empty()) {
      objects_[name] = {sent, fmt::format("v{}", ++puts_)};
      return say(200, "", fmt::format("ETag: \"v{}\"\r\n", puts_));
    }
    if (seen.method == "PUT") {
      uploads_[id][std::stoi(part)] = sent;
      return say(200, "", fmt::format("ETag: \"part-{}-{}\"\r\n", part, hash_text(sent)));
    }
    if (seen.method == "DELETE") {
      id.empty() ? objects_.erase(name) : uploads_.erase(id);
      return say(204, "", "");
    }
    if (id.empty()) {
      const std::string made = fmt::format("upload {}", ++uploads_made_);
      uploads_[made];
      return say(200, fmt::format("<R xmlns=\"x\"><UploadId>{}</UploadId></R>", made), "");
    }
    std::string whole, list = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
    for (const auto& [number, bytes] : uploads_[id]) {
      whole += bytes;
      list += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>&quot;part-{}-{}&quot;</ETag></Part>", number, number,
                          hash_text(bytes));
    }
    if (sent != list + "</CompleteMultipartUpload>") return say(400, error_xml("InvalidPart"), "");
    objects_[name] = {std::move(whole), fmt::format("v{}", ++puts_)};
    uploads_.erase(id);
    say(200, "<R><ETag>x</ETag></R>", "");
  }

  void make_answer(const Seen& seen, const std::string& name, const std::string& sent, const Fault& fault,
                   std::string& head, std::string& body) {
    const auto say = [&](int status, std::string text, const std::string& headers = {}) {
      body = std::move(text);
      head = fmt::format("HTTP/1.1 {} x\r\nContent-Length: {}\r\nDate: Tue, 17 Nov 2026 18:00:00 GMT\r\n{}", status,
                         body.size(), headers);
    };
    const std::scoped_lock lock(mutex_);
    if (fault.status != 0) return say(fault.status, error_xml(fault.code), fault.headers);
    if (!refused_key_.empty() && seen.authorization.find("Credential=" + refused_key_ + "/") != std::string::npos) {
      return say(403, error_xml(refused_code_));
    }
    if (!region_.empty() && seen.authorization.find("/" + region_ + "/s3/") == std::string::npos) {
      return say(301, error_xml("PermanentRedirect"), "x-amz-bucket-region: " + region_ + "\r\n");
    }
    const std::string bucket = name.substr(0, name.find('/'));
    if (!buckets_.contains(bucket)) return say(404, error_xml("NoSuchBucket"));
    if (seen.query.find("list-type=2") != std::string::npos) return say(200, listing(bucket, seen.query));
    if (seen.method != "GET" && seen.method != "HEAD") return take_write(seen, name, sent, say);
    const auto found = objects_.find(name);
    if (found == objects_.end()) return say(404, error_xml("NoSuchKey"));
    const auto& [bytes, version] = found->second;
    const bool is_weak = fault.etag.starts_with("W/");
    const std::string etag =
        fmt::format("{}\"{}\"", is_weak ? "W/" : "", fault.etag.empty() ? version : fault.etag.substr(is_weak ? 2 : 0));
    // A weak tag matches no If-Match (RFC 9110, 13.1.1).
    if (!seen.if_match.empty() && (is_weak || (fault.etag.empty() && seen.if_match != etag))) {
      return say(412, error_xml("PreconditionFailed"));
    }
    if (seen.range.empty() || fault.ignores_range) return say(200, bytes, "ETag: " + etag + "\r\n");
    const std::size_t dash = seen.range.find('-');
    const std::uint64_t first = std::stoull(seen.range.substr(6, dash - 6));
    std::uint64_t last = std::min<std::uint64_t>(std::stoull(seen.range.substr(dash + 1)), bytes.size() - 1);
    if (fault.range_bytes > 0) last = std::min(last, first + static_cast<std::uint64_t>(fault.range_bytes) - 1);
    if (first >= bytes.size()) {
      return say(416, error_xml("InvalidRange"), fmt::format("Content-Range: bytes */{}\r\n", bytes.size()));
    }
    say(206, bytes.substr(first, last - first + 1),
        fmt::format("ETag: {}\r\nContent-Range: bytes {}-{}/{}\r\n", etag, first, last, bytes.size()));
  }

  static std::string parameter(std::string_view query, std::string_view name) {
    while (!query.empty()) {
      const std::string_view one = query.substr(0, query.find('&'));
      if (one.starts_with(name) && one.substr(name.size()).starts_with('='))
        return decoded(one.substr(name.size() + 1));
      query.remove_prefix(std::min(one.size() + 1, query.size()));
    }
    return {};
  }
  static std::string decoded(std::string_view text) {
    std::string plain(text);
    for (std::size_t at = 0; (at = plain.find('+', at)) != std::string::npos; at += 3) plain.replace(at, 1, "%2B");
    return s3::decode_key(plain);
  }

  std::string listing(const std::string& bucket, std::string_view query) const {
    const std::string prefix = parameter(query, "prefix"), delimiter = parameter(query, "delimiter");
    const std::string token = s3::decode_key(parameter(query, "continuation-token"));
    const std::string after = repeats_pages_ ? std::string() : token;
    std::string last, rows;
    std::set<std::string> prefixes;
    std::size_t count = 0;
    bool is_truncated = false;
    for (const auto& [name, object] : objects_) {
      if (!name.starts_with(bucket + "/")) continue;
      const std::string key = name.substr(bucket.size() + 1);
      if (!key.starts_with(prefix) || (!after.empty() && key <= after)) continue;
      if (count == page_keys_) {
        is_truncated = true;
        break;
      }
      const std::size_t slash = delimiter.empty() ? std::string::npos : key.find(delimiter, prefix.size());
      if (slash != std::string::npos) {
        prefixes.insert(key.substr(0, slash + 1));
        continue;
      }
      ++count;
      const std::string row =
          fmt::format("<Contents><Key>{}</Key><ETag>&quot;{}&quot;</ETag><Size>{}</Size></Contents>",
                      s3::encode_path(key), object.version, object.bytes.size());
      rows += repeats_keys_ ? row + row : row;
      last = key;
    }
    if (repeats_pages_) {
      is_truncated = true;
      last = token + "x";
    }
    for (const std::string& one : prefixes) {
      rows += fmt::format("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", s3::encode_path(one));
    }
    return fmt::format(
        "<?xml version=\"1.0\"?><ListBucketResult "
        "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><EncodingType>url</EncodingType>"
        "<IsTruncated>{}</IsTruncated>{}{}</ListBucketResult>",
        is_truncated, rows,
        is_truncated ? fmt::format("<NextContinuationToken>{}</NextContinuationToken>", s3::encode_path(last)) : "");
  }

  std::chrono::nanoseconds latency(std::uint64_t request) const {
    const std::int64_t usual = usual_ns_;
    if (usual == 0) return {};
    return std::chrono::nanoseconds(usual / 2 +
                                    static_cast<std::int64_t>(mix(request, 1) % static_cast<std::uint64_t>(usual)));
  }

  std::map<std::string, std::optional<std::string>> before_;  // variables that set() changed
  std::uint16_t port_ = 0;
  std::atomic<int> listening_{-1};
  std::thread acceptor_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::uint64_t let_go_ = 0;
  std::set<int> sockets_;
  std::list<std::jthread> threads_;
  std::map<std::string, Held> objects_;
  std::set<std::string> buckets_;
  std::map<std::string, std::deque<Fault>> faults_;
  std::map<std::string, std::map<int, std::string>> uploads_;  // parts by id and number
  std::uint64_t uploads_made_ = 0;
  std::set<std::string> held_;
  std::string refused_key_, refused_code_, region_;
  std::vector<Seen> seen_;
  std::uint64_t puts_ = 0;
  std::atomic<std::size_t> page_keys_{1000};
  std::atomic<bool> repeats_pages_{false}, repeats_keys_{false};
  std::atomic<std::uint64_t> answered_first_{UINT64_MAX};
  std::atomic<std::int64_t> usual_ns_{0};
  std::atomic<std::uint64_t> requests_{0}, answered_{0}, in_flight_{0}, most_in_flight_{0}, connections_{0};
};

}  // namespace stoker::storage
