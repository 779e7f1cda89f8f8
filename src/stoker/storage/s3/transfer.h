// One exchange on a handle of libcurl that is used again and again. Belongs to one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/storage/s3/http.h"
#include "stoker/storage/s3/signature.h"

struct curl_slist;

namespace stoker::storage::s3 {

class Transfer {
 public:
  // Takes a piece of the body of a 200 or 206, where the request does not want it in the reply. False: stop.
  using Sink = std::function<bool(const HttpReply& reply, std::span<const std::byte> piece)>;

  Transfer();
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Everything that the next exchange needs; signed where the request has credentials. The request may go away
  // afterwards. Allocates nothing where the last exchange was like it, apart from what libcurl does.
  void prepare(const HttpRequest& request, Signer& signer, Sink sink = {});
  void* handle() const noexcept { return handle_; }  // a CURL*
  HttpReply& reply() noexcept { return reply_; }
  void finish(int curl_code);  // fills in what the reply lacks

 private:
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);

  void set_method(const HttpRequest& request);
  void set_headers(const HttpRequest& request, Signer& signer);
  void add_line(std::string_view name, std::string_view value, std::string_view end = {});

  // What libcurl was told once and keeps.
  struct Kept {
    HttpRequest::Method method = HttpRequest::Method::get;
    std::chrono::milliseconds connect_timeout{-1}, stall_timeout{-1};
    bool without_proxy = false, follows_redirects = false;
    std::string ca_bundle;
  };

  void* handle_;
  Kept kept_;
  std::vector<std::string>
      lines_;  // of the header, the first line_count_ of them; the others are kept for their memory
  std::size_t line_count_ = 0;
  std::vector<curl_slist> nodes_;  // of lines_
  HttpReply reply_;
  Sink sink_;
  bool wants_body_ = true;
  std::string request_body_;
  std::array<char, 256> error_{};  // CURL_ERROR_SIZE
};

// Initializes libcurl, once per process. The names and TLS sessions that it looked up are shared by all handles.
void start_curl();

}  // namespace stoker::storage::s3
