// Worker processes that answer requests, each at its own pace. A process that ends is replaced, and the request that it
// worked on is blamed; a request that takes too long ends its process. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/os/worker_process.h"

namespace stoker::dicom {

struct Request {
  std::uint64_t id = 0;
  std::string line;
  std::uint64_t memory_bytes = 0;  // that answering it takes
};

struct Answer {
  std::uint64_t id = 0;
  Json json;            // null: there is none
  std::string failure;  // then one clause: "decoding it crashed (SIGSEGV)"
};

class WorkerPool {
 public:
  struct Limits {
    std::size_t workers = 1;
    std::uint64_t memory_bytes = ~std::uint64_t{0};  // of all requests that are worked on; one alone may exceed it
    std::chrono::milliseconds time{std::chrono::minutes(5)};  // of one request
  };

  // Processes start with the first request.
  WorkerPool(std::vector<std::string> command, const Limits& limits) : command_(std::move(command)), limits_(limits) {}

  void submit(Request request) { waiting_.push_back(std::move(request)); }
  std::size_t unanswered() const noexcept { return waiting_.size() + sent_; }

  // Sends what may be sent, waits at most `time` for answers, and appends them. Throws Error where no process starts.
  void poll(std::chrono::milliseconds time, std::vector<Answer>& answers);

 private:
  using Clock = std::chrono::steady_clock;
  // A second request lies in the pipe, so that a worker need not wait for us.
  static constexpr std::size_t kDepth = 2;

  struct Worker {
    std::unique_ptr<os::WorkerProcess> process;
    std::deque<Request> sent;  // the first one is worked on
    Clock::time_point since;
  };

  void send();
  bool send_to(Worker& worker, std::size_t depth);
  void take_answers(Worker& worker, std::vector<Answer>& answers);
  void replace(Worker& worker, bool was_slow, std::vector<Answer>& answers);

  std::vector<std::string> command_;
  Limits limits_;
  std::deque<Request> waiting_;
  std::vector<Worker> workers_;
  std::size_t sent_ = 0;
  std::uint64_t sent_memory_ = 0;
  bool has_answered_ = false;
};

}  // namespace stoker::dicom
