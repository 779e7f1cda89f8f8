#include "stoker/dataset/crew.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/os/cpu.h"

namespace stoker::dataset {
namespace {

constexpr auto kReportEvery = std::chrono::milliseconds(100);
constexpr int kMaxThreads = 256;

}  // namespace

Crew::Crew(int threads, const Progress& progress)
    : threads_(std::clamp(threads > 0 ? threads : os::effective_cores().whole(), 1, kMaxThreads)),
      progress_(progress),
      caller_(std::this_thread::get_id()),
      next_report_(std::chrono::steady_clock::now() + kReportEvery) {}

void Crew::add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    pile_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void Crew::count(std::uint64_t files) {
  seen_.fetch_add(files, std::memory_order_relaxed);
  if (std::this_thread::get_id() == caller_) report_progress();
  if (stop_.load(std::memory_order_relaxed)) throw Stop{};
}

void Crew::report_progress() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_report_) return;
  next_report_ = now + kReportEvery;
  if (progress_ && !progress_(seen_.load(std::memory_order_relaxed))) {
    throw Error(ErrorKind::unavailable, "interrupted");
  }
}

void Crew::fail(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    stop_.store(true, std::memory_order_relaxed);
  }
  changed_.notify_all();
}

void Crew::work(bool is_caller) {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (pile_.empty() && running_ != 0 && !stop_.load(std::memory_order_relaxed)) {
      if (!is_caller) {
        changed_.wait(lock);
        continue;
      }
      changed_.wait_for(lock, kReportEvery);
      lock.unlock();
      try {
        report_progress();
      } catch (...) {
        fail(std::current_exception());
      }
      lock.lock();
    }
    if (pile_.empty() || stop_.load(std::memory_order_relaxed)) break;
    std::function<void()> task = std::move(pile_.back());
    pile_.pop_back();
    ++running_;
    lock.unlock();
    try {
      task();
    } catch (const Stop&) {
    } catch (...) {
      fail(std::current_exception());
    }
    task = nullptr;
    lock.lock();
    if (--running_ == 0 && pile_.empty()) changed_.notify_all();
  }
}

void Crew::run() {
  std::vector<std::jthread> threads;
  for (int i = 1; i < threads_; ++i) {
    try {
      threads.emplace_back([this] {
        const storage::InterruptionScope interruptible(interruption_);
        work(false);
      });
    } catch (const std::system_error&) {
      break;  // out of threads: those that started do the work
    }
  }
  work(true);
  threads.clear();
  pile_.clear();
  if (error_) std::rethrow_exception(error_);
}

void Crew::run_in_parts(std::uint64_t count, std::uint64_t grain,
                        const std::function<void(std::uint64_t begin, std::uint64_t end)>& part) {
  std::atomic<std::uint64_t> next{0};
  for (int i = 0; i < threads_; ++i) {
    add([&] {
      for (std::uint64_t begin; (begin = next.fetch_add(grain, std::memory_order_relaxed)) < count;) {
        part(begin, std::min(count, begin + grain));
      }
    });
  }
  run();
}

}  // namespace stoker::dataset
