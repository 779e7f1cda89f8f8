// The ceiling over reading objects of S3: libcurl's multi interface driven by epoll, on one thread, with signatures and
// nothing else. It knows its keys beforehand, and copies each body into a buffer.
// usage: bare_s3_loop FILE_OF_URLS DEPTH EPOCHS BYTES
//   BYTES: the largest object. Requests are signed if AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are set.
// Says "ready", waits for a line, works, prints one line of JSON, as the contestants of bench/peers do.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <curl/curl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "contestant.h"

namespace {

struct Request {
  CURL* easy = nullptr;
  std::unique_ptr<char[]> body;  // of most_bytes; touched only as far as bodies reach
  std::size_t received = 0, most_bytes = 0;
};

class Loop {
 public:
  Loop(std::size_t depth, std::size_t most_bytes) : multi_(curl_multi_init()), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Loop::on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Loop::on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(depth));
    const char* const key = std::getenv("AWS_ACCESS_KEY_ID");
    const char* const secret = std::getenv("AWS_SECRET_ACCESS_KEY");
    headers_ = curl_slist_append(
        nullptr, "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    for (std::size_t i = 0; i < depth; ++i) {
      auto request = std::make_unique<Request>();
      request->body.reset(new char[most_bytes]);
      request->most_bytes = most_bytes;
      request->easy = curl_easy_init();
      curl_easy_setopt(request->easy, CURLOPT_PRIVATE, request.get());
      curl_easy_setopt(request->easy, CURLOPT_WRITEFUNCTION, &Loop::on_body);
      curl_easy_setopt(request->easy, CURLOPT_WRITEDATA, request.get());
      curl_easy_setopt(request->easy, CURLOPT_BUFFERSIZE, 128L << 10);
      curl_easy_setopt(request->easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
      curl_easy_setopt(request->easy, CURLOPT_PATH_AS_IS, 1L);
      curl_easy_setopt(request->easy, CURLOPT_FAILONERROR, 1L);
      if (key != nullptr && secret != nullptr) {
        curl_easy_setopt(request->easy, CURLOPT_HTTPHEADER, headers_);
        curl_easy_setopt(request->easy, CURLOPT_AWS_SIGV4, "aws:amz:us-east-1:s3");
        curl_easy_setopt(request->easy, CURLOPT_USERNAME, key);
        curl_easy_setopt(request->easy, CURLOPT_PASSWORD, secret);
      }
      requests_.push_back(std::move(request));
    }
  }

  // Fetches every URL once; the sum of their bytes, or -1 if one failed.
  long long epoch(const std::vector<std::string>& urls) {
    std::size_t next = 0, done = 0;
    long long bytes = 0;
    for (auto& request : requests_) {
      if (next < urls.size()) start(*request, urls[next++]);
    }
    while (done < urls.size()) {
      step();
      int left = 0;
      while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        if (message->data.result != CURLE_OK) return -1;
        Request* request = nullptr;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
        curl_multi_remove_handle(multi_, message->easy_handle);
        bytes += static_cast<long long>(request->received);
        ++done;
        if (next < urls.size()) start(*request, urls[next++]);
      }
    }
    return bytes;
  }

 private:
  void start(Request& request, const std::string& url) {
    request.received = 0;
    curl_easy_setopt(request.easy, CURLOPT_URL, url.c_str());
    curl_multi_add_handle(multi_, request.easy);
  }

  void step() {
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), static_cast<int>(timeout_ms_));
    int running = 0;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const int what = ((event.events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                       ((event.events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                       ((event.events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0);
      curl_multi_socket_action(multi_, event.data.fd, what, &running);
    }
    if (count == 0 || timeout_ms_ == 0) {
      timeout_ms_ = -1;
      curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
    }
  }

  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void*) {
    epoll_event event{};
    event.events = ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0u) | ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0u);
    event.data.fd = socket;
    const int epoll = static_cast<Loop*>(self)->epoll_;
    if (what == CURL_POLL_REMOVE) {
      epoll_ctl(epoll, EPOLL_CTL_DEL, socket, nullptr);
    } else if (epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) != 0) {
      epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event);
    }
    return 0;
  }
  static int on_timer(CURLM*, long milliseconds, void* self) {
    static_cast<Loop*>(self)->timeout_ms_ = milliseconds;
    return 0;
  }
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self) {
    Request& request = *static_cast<Request*>(self);
    const std::size_t bytes = size * count;
    if (bytes > request.most_bytes - request.received) return 0;
    std::memcpy(request.body.get() + request.received, data, bytes);
    request.received += bytes;
    return bytes;
  }

  CURLM* multi_;
  int epoll_;
  long timeout_ms_ = 0;
  curl_slist* headers_ = nullptr;
  std::vector<std::unique_ptr<Request>> requests_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto number = [&](int i) { return static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)); };
  std::vector<std::string> urls;
  std::ifstream list(argv[1]);
  for (std::string line; std::getline(list, line);) urls.push_back(line);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  bare::wait_for_go();

  double cpu_before = bare::cpu_seconds();
  const auto first = std::chrono::steady_clock::now();
  auto started = first;
  Loop loop(number(2), number(4));
  std::mt19937 random(42);
  std::string epochs;
  for (std::size_t epoch = 0; epoch < number(3); ++epoch) {
    std::shuffle(urls.begin(), urls.end(), random);
    const long long bytes = loop.epoch(urls);
    if (bytes < 0) return 1;
    const auto now = std::chrono::steady_clock::now();
    std::array<char, 200> text{};
    std::snprintf(text.data(), text.size(),
                  "%s{\"items\": %zu, \"bytes\": %lld, \"seconds\": %.6f, \"cpu_seconds\": %.6f}",
                  epoch == 0 ? "" : ", ", urls.size(), bytes, std::chrono::duration<double>(now - started).count(),
                  bare::cpu_seconds() - cpu_before);
    epochs += text.data();
    started = now;
    cpu_before = bare::cpu_seconds();
  }
  const double seconds = std::chrono::duration<double>(started - first).count();
  std::printf(
      "{\"items\": %zu, \"epochs\": [%s], \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"memory_bytes\": %zu, "
      "\"versions\": "
      "{}}\n",
      urls.size(), epochs.c_str(), seconds, bare::cpu_seconds(), bare::peak_memory_bytes());
  return 0;
}
