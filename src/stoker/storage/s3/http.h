// HTTP requests on libcurl: what is asked, what came back, and a client that waits for the answer. The fetcher, which
// waits for many answers at once, sends the same requests (s3/fetcher.cc).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::storage::s3 {

struct Credentials;

struct HttpRequest {
  enum class Method : std::uint8_t { get, head, put, post, remove };

  Method method = Method::get;
  std::string url;                                 // path and query are encoded, the query is sorted
  std::vector<std::string> headers;                // "Name: value"
  std::string range;                               // "bytes=0-99"; empty: all
  std::string if_match;                            // a version that the object must have, without quotes; empty: any
  std::string body;                                // of put and post
  std::shared_ptr<const Credentials> credentials;  // null: the request is not signed
  std::string region;                              // for the signature
  std::string ca_bundle;                           // a file; empty: what libcurl was compiled with
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds stall_timeout{30'000};
  bool without_proxy = false;
  bool requester_pays = false;
  bool follows_redirects = false;  // of requests without a signature, which is for one host
  bool wants_body = true;          // false: the body of a 200 or 206 goes elsewhere
};

struct HttpReply {
  int status = 0;  // 0: no answer came, `broken` says why
  std::string etag, bucket_region, date, location;
  std::optional<std::uint64_t> content_length;
  std::optional<std::uint64_t> range_first, range_last, total_bytes;  // of Content-Range
  std::chrono::seconds retry_after{0};
  std::string body;           // at most kMostBody
  std::string broken;         // what libcurl says of a connection that failed, or empty
  int curl_code = 0;          // 0: the exchange is complete
  bool is_too_large = false;  // the body was longer than kMostBody, and is cut off

  static constexpr std::size_t kMostBody = 64 << 20;

  bool is_complete() const noexcept { return curl_code == 0; }
  void clear();
  void take_header(std::string_view line);  // one line, with its end
};

using Send = std::function<HttpReply(const HttpRequest&)>;

// Sends one request at a time and keeps its connections. Belongs to one thread.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;

  // Never throws for what a server does. Throws Error where the user interrupts the wait (storage/interruption.h).
  HttpReply send(const HttpRequest& request);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Whether the same request may succeed when it is sent again, judged by the code of libcurl alone.
bool may_pass(int curl_code) noexcept;

}  // namespace stoker::storage::s3
