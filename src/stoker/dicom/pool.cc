#include "stoker/dicom/pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/os/event.h"

namespace stoker::dicom {

bool WorkerPool::send_to(Worker& worker, std::size_t depth) {
  if (waiting_.empty() || worker.sent.size() >= depth) return false;
  const std::uint64_t memory = waiting_.front().memory_bytes;
  if (sent_ > 0 && sent_memory_ + memory > limits_.memory_bytes) return false;
  if (worker.process == nullptr) worker.process = std::make_unique<os::WorkerProcess>(command_);
  if (worker.sent.empty()) worker.since = Clock::now();
  worker.sent.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  ++sent_;
  sent_memory_ += memory;
  // Where it reads no more, the end of its answers shows in poll().
  (void)worker.process->send(worker.sent.back().line);
  return true;
}

void WorkerPool::send() {
  while (workers_.size() < std::min(limits_.workers, workers_.size() + waiting_.size())) workers_.emplace_back();
  for (std::size_t depth = 1; depth <= kDepth; ++depth) {
    for (Worker& worker : workers_) (void)send_to(worker, depth);
  }
}

void WorkerPool::take_answers(Worker& worker, std::vector<Answer>& answers) {
  std::vector<std::string> lines;
  const bool goes_on = worker.process->receive(lines);
  for (std::string& line : lines) {
    if (worker.sent.empty()) throw Error(ErrorKind::internal, "a decoding process answered without being asked");
    has_answered_ = true;
    answers.push_back({worker.sent.front().id, Json::parse(line, "the answer of a decoding process"), ""});
    --sent_;
    sent_memory_ -= worker.sent.front().memory_bytes;
    worker.sent.pop_front();
    worker.since = Clock::now();
  }
  if (!goes_on) replace(worker, false, answers);
}

void WorkerPool::replace(Worker& worker, bool was_slow, std::vector<Answer>& answers) {
  if (was_slow) worker.process->kill();
  const os::Ended ended = worker.process->wait();
  worker.process.reset();
  if (!has_answered_ && ended.signal == 0) {
    throw Error(ErrorKind::internal,
                fmt::format("the decoding process `{}` ends at once, with code {}", command_[0], ended.code));
  }
  for (std::size_t i = worker.sent.size(); i > 0; --i) {
    Request& request = worker.sent[i - 1];
    --sent_;
    sent_memory_ -= request.memory_bytes;
    if (i > 1) {
      waiting_.push_front(std::move(request));
    } else if (was_slow) {
      answers.push_back(
          {request.id, nullptr, fmt::format("decoding it took more than {}", format_duration(limits_.time))});
    } else if (ended.signal != 0) {
      answers.push_back({request.id, nullptr, fmt::format("decoding it crashed ({})", ::strsignal(ended.signal))});
    } else {
      answers.push_back({request.id, nullptr, fmt::format("decoding it ended the process with code {}", ended.code)});
    }
  }
  worker.sent.clear();
}

void WorkerPool::poll(std::chrono::milliseconds time, std::vector<Answer>& answers) {
  send();
  std::vector<int> descriptors;
  for (const Worker& worker : workers_) {
    if (worker.process != nullptr) descriptors.push_back(worker.process->descriptor());
  }
  os::wait_readable(descriptors, time);
  for (Worker& worker : workers_) {
    if (worker.process == nullptr) continue;
    take_answers(worker, answers);
    if (!worker.sent.empty() && Clock::now() - worker.since > limits_.time) replace(worker, true, answers);
  }
  send();
}

}  // namespace stoker::dicom
