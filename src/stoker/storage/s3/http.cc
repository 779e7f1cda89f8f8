#include "stoker/storage/s3/http.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <utility>

#include <curl/curl.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/os/fork.h"
#include "stoker/storage/interruption.h"
#include "stoker/storage/s3/credentials.h"
#include "stoker/storage/s3/transfer.h"

namespace stoker::storage::s3 {
namespace {

constexpr long kBufferBytes = 64 << 10;  // that libcurl receives into at once, one for each request in flight
constexpr std::size_t kMostErrorBody = 64 << 10;
constexpr long kMostRedirects = 5;

// Looked-up names and TLS sessions, shared by all handles of the process: 256 handles that start at once would
// otherwise look up one name 256 times.
class CurlShare {
 public:
  CurlShare() : share_(curl_share_init()) {
    if (share_ == nullptr) throw Error(ErrorKind::unavailable, "cannot start libcurl: out of memory");
    curl_share_setopt(share_, CURLSHOPT_LOCKFUNC,
                      static_cast<curl_lock_function>([](CURL*, curl_lock_data data, curl_lock_access, void* self) {
                        static_cast<CurlShare*>(self)->mutexes_[data].lock();
                      }));
    curl_share_setopt(share_, CURLSHOPT_UNLOCKFUNC,
                      static_cast<curl_unlock_function>([](CURL*, curl_lock_data data, void* self) {
                        static_cast<CurlShare*>(self)->mutexes_[data].unlock();
                      }));
    curl_share_setopt(share_, CURLSHOPT_USERDATA, this);
    curl_share_setopt(share_, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
    curl_share_setopt(share_, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  }
  ~CurlShare() { curl_share_cleanup(share_); }  // of a thread that was second to make one; the other is never destroyed
  CurlShare(const CurlShare&) = delete;
  CurlShare& operator=(const CurlShare&) = delete;
  CURLSH* get() const noexcept { return share_; }

 private:
  CURLSH* share_;
  std::array<std::mutex, CURL_LOCK_DATA_LAST> mutexes_;
};

// Lives until the process ends: handles of threads that end late still use it. A child made by fork() gets its own:
// that of its parent may be locked.
CurlShare& shared_data() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw Error(ErrorKind::unavailable, "cannot start libcurl: out of memory");
  static os::PerProcess<CurlShare> shares;
  return shares.get();
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

bool is_same_name(std::string_view name, std::string_view lower) noexcept {
  return name.size() == lower.size() && ends_with_any_case(name, lower);
}

std::string_view word_of(HttpRequest::Method method) noexcept {
  switch (method) {
    case HttpRequest::Method::get:
      break;
    case HttpRequest::Method::head:
      return "HEAD";
    case HttpRequest::Method::put:
      return "PUT";
    case HttpRequest::Method::post:
      return "POST";
    case HttpRequest::Method::remove:
      return "DELETE";
  }
  return "GET";
}

CURL* curl_of(void* handle) noexcept {
  return static_cast<CURL*>(handle);
}

}  // namespace

void start_curl() {
  (void)shared_data();
}

void HttpReply::clear() {
  status = 0;
  curl_code = 0;
  is_too_large = false;
  for (std::string* const text : {&etag, &bucket_region, &date, &location, &body, &broken}) text->clear();
  content_length = range_first = range_last = total_bytes = std::nullopt;
  retry_after = {};
}

void HttpReply::take_header(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // the first line of an answer, also of one after a 100
    clear();
    const std::size_t space = std::min(line.find(' '), line.size());
    status = number_in<int>(line.substr(std::min(space + 1, line.size()), 3)).value_or(0);
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = line.substr(0, colon);
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
  if (is_same_name(name, "etag")) {
    etag = value;
  } else if (is_same_name(name, "content-length")) {
    content_length = number_in<std::uint64_t>(value);
  } else if (is_same_name(name, "content-range")) {  // "bytes 0-99/1234", "bytes */1234"
    const std::size_t slash = value.find('/'), dash = value.find('-');
    if (!value.starts_with("bytes ") || slash == std::string_view::npos) return;
    total_bytes = number_in<std::uint64_t>(value.substr(slash + 1));
    if (dash >= slash) return;
    range_first = number_in<std::uint64_t>(value.substr(6, dash - 6));
    range_last = number_in<std::uint64_t>(value.substr(dash + 1, slash - dash - 1));
  } else if (is_same_name(name, "x-amz-bucket-region")) {
    bucket_region = value;
  } else if (is_same_name(name, "retry-after")) {
    retry_after = std::chrono::seconds(std::clamp(number_in<long>(value).value_or(0), 0L, 3600L));
  } else if (is_same_name(name, "date")) {
    date = value;
  } else if (is_same_name(name, "location")) {
    location = value;
  }
}

bool may_pass(int curl_code) noexcept {
  switch (curl_code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_AGAIN:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

Transfer::Transfer() : handle_((start_curl(), curl_easy_init())) {
  if (handle_ == nullptr) throw Error(ErrorKind::unavailable, "cannot start libcurl: out of memory");
  CURL* const curl = curl_of(handle_);
  curl_easy_setopt(curl, CURLOPT_SHARE, shared_data().get());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);  // a signature is for one host
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMostRedirects);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kBufferBytes);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "stoker");
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error_.data());
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
  static_assert(CURL_ERROR_SIZE == 256);
}

Transfer::~Transfer() {
  curl_easy_cleanup(curl_of(handle_));
}

void Transfer::prepare(const HttpRequest& request, Signer& signer, Sink sink) {
  CURL* const curl = curl_of(handle_);
  reply_.clear();
  error_[0] = '\0';
  sink_ = std::move(sink);
  wants_body_ = request.wants_body;

  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  set_method(request);
  if (kept_.ca_bundle != request.ca_bundle) {
    kept_.ca_bundle = request.ca_bundle;
    curl_easy_setopt(curl, CURLOPT_CAINFO, request.ca_bundle.c_str());
  }
  if (kept_.connect_timeout != request.connect_timeout) {
    kept_.connect_timeout = request.connect_timeout;
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
  }
  if (kept_.stall_timeout != request.stall_timeout) {
    kept_.stall_timeout = request.stall_timeout;
    const auto stall = std::chrono::ceil<std::chrono::seconds>(request.stall_timeout);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(stall.count()));
  }
  if (kept_.without_proxy != request.without_proxy) {
    kept_.without_proxy = request.without_proxy;
    curl_easy_setopt(curl, CURLOPT_NOPROXY, request.without_proxy ? "*" : nullptr);
  }
  if (kept_.follows_redirects != request.follows_redirects || request.follows_redirects) {
    kept_.follows_redirects = request.follows_redirects;
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, request.follows_redirects ? 1L : 0L);
    // From https nothing leads back to http.
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, request.url.starts_with("https:") ? "https" : "http,https");
  }
  set_headers(request, signer);
}

void Transfer::set_method(const HttpRequest& request) {
  using Method = HttpRequest::Method;
  if (request.method == Method::get && kept_.method == Method::get) return;
  kept_.method = request.method;
  request_body_ = request.body;
  CURL* const curl = curl_of(handle_);
  curl_easy_setopt(curl, CURLOPT_NOBODY, 0L);
  curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
  const bool is_named = request.method == Method::put || request.method == Method::remove;
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, is_named ? word_of(request.method).data() : nullptr);
  if (request.method == Method::head) {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  } else if (request.method == Method::post || request.method == Method::put) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(request_body_.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request_body_.c_str());
    curl_easy_setopt(curl, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);  // do not wait for stores that never say "continue"
  }
}

void Transfer::add_line(std::string_view name, std::string_view value, std::string_view end) {
  if (line_count_ == lines_.size()) lines_.emplace_back();
  lines_[line_count_++].assign(name).append(value).append(end);
}

void Transfer::set_headers(const HttpRequest& request, Signer& signer) {
  line_count_ = 0;
  for (const std::string& line : request.headers) add_line(line, {});
  if (!request.range.empty()) add_line("Range: ", request.range);
  if (!request.if_match.empty()) add_line("If-Match: \"", request.if_match, "\"");
  if (!request.body.empty())
    add_line("Content-Type: application/octet-stream", {});  // else libcurl says that it is a form
  if (request.credentials) {
    const Signer::Headers& headers =
        signer.sign({.method = word_of(request.method),
                     .url = request.url,
                     .range = request.range,
                     .requester_pays = request.requester_pays,
                     .body = request.body},
                    *request.credentials, request.region, std::chrono::system_clock::now());
    for (const std::string* const line :
         {&headers.date, &headers.body_hash, &headers.payer, &headers.token, &headers.authorization}) {
      if (!line->empty()) add_line(*line, {});
    }
  } else if (request.requester_pays) {
    add_line("x-amz-request-payer: requester", {});
  }
  nodes_.resize(line_count_);
  for (std::size_t i = 0; i < line_count_; ++i) {
    nodes_[i] = {lines_[i].data(), i + 1 < line_count_ ? &nodes_[i + 1] : nullptr};
  }
  curl_easy_setopt(curl_of(handle_), CURLOPT_HTTPHEADER, line_count_ == 0 ? nullptr : nodes_.data());
}

void Transfer::finish(int curl_code) {
  reply_.curl_code = curl_code;
  if (curl_code == CURLE_OK) return;
  const char* const text = error_[0] != '\0' ? error_.data() : curl_easy_strerror(static_cast<CURLcode>(curl_code));
  reply_.broken = text;
}

std::size_t Transfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  static_cast<Transfer*>(self)->reply_.take_header({data, size * count});
  return size * count;
}

std::size_t Transfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  const std::size_t bytes = size * count;
  HttpReply& reply = transfer.reply_;
  const bool is_good = reply.status == 200 || reply.status == 206;
  if (is_good && !transfer.wants_body_) {
    return transfer.sink_ && transfer.sink_(reply, std::as_bytes(std::span(data, bytes))) ? bytes : 0;
  }
  if (!is_good) {  // the rest of a long page about an error is read and dropped
    reply.body.append(data, std::min(bytes, kMostErrorBody - std::min(kMostErrorBody, reply.body.size())));
    return bytes;
  }
  if (bytes > HttpReply::kMostBody - reply.body.size()) {
    reply.is_too_large = true;
    return 0;
  }
  reply.body.append(data, bytes);
  return bytes;
}

struct HttpClient::Parts {
  // Not curl_easy_perform: that cannot be left while it waits.
  struct Close {
    void operator()(CURLM* multi) const noexcept { curl_multi_cleanup(multi); }
  };
  std::unique_ptr<CURLM, Close> multi;  // owns the connections, and goes after the transfer
  Transfer transfer;
  Signer signer;

  Parts() : multi((start_curl(), curl_multi_init())) {
    if (!multi) throw Error(ErrorKind::unavailable, "cannot start libcurl: out of memory");
  }
  // The code of libcurl.
  int perform() {
    CURL* const easy = curl_of(transfer.handle());
    if (curl_multi_add_handle(multi.get(), easy) != CURLM_OK) return CURLE_FAILED_INIT;
    const Leave leave{multi.get(), easy};
    for (int running = 1; running > 0;) {
      if (curl_multi_perform(multi.get(), &running) != CURLM_OK) return CURLE_FAILED_INIT;
      if (running == 0) break;
      check_interruption();
      (void)curl_multi_poll(multi.get(), nullptr, 0, static_cast<int>(kAskEvery.count()), nullptr);
    }
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi.get(), &left)) {
      if (message->msg == CURLMSG_DONE && message->easy_handle == easy) return message->data.result;
    }
    return CURLE_FAILED_INIT;
  }

 private:
  struct Leave {
    CURLM* multi;
    CURL* easy;
    ~Leave() { curl_multi_remove_handle(multi, easy); }
  };
};

HttpClient::HttpClient() : parts_(std::make_unique<Parts>()) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;

HttpReply HttpClient::send(const HttpRequest& request) {
  parts_->transfer.prepare(request, parts_->signer);
  parts_->transfer.finish(parts_->perform());
  return std::move(parts_->transfer.reply());
}

}  // namespace stoker::storage::s3
