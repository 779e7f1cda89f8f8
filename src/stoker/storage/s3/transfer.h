// One exchange on a handle of libcurl that is used again and again. Belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "stoker/storage/s3/http.h"

namespace stoker::storage::s3 {

class Transfer {
 public:
  // Takes a piece of the body of a 200 or 206, where the request does not want it in the reply. False: stop.
  using Sink = std::function<bool(const HttpReply& reply, std::span<const std::byte> piece)>;

  Transfer();
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Everything that the next exchange needs. The request may go away afterwards.
  void prepare(const HttpRequest& request, Sink sink = {});
  void* handle() const noexcept { return handle_; }  // a CURL*
  HttpReply& reply() noexcept { return reply_; }
  void finish(int curl_code);  // fills in what the reply lacks

 private:
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);

  void* handle_;
  void* headers_ = nullptr;  // a curl_slist*
  HttpReply reply_;
  Sink sink_;
  bool wants_body_ = true;
  std::string request_body_;
  std::array<char, 256> error_{};  // CURL_ERROR_SIZE
};

// Initializes libcurl, once per process. The names and TLS sessions that it looked up are shared by all handles.
void start_curl();

}  // namespace stoker::storage::s3
