// Threads that work off a growing pile of tasks. The calling thread works too, and it alone calls Progress, at most
// every 100 ms. add and count may be called from inside tasks, on any thread; run from one thread, once.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/storage/interruption.h"

namespace stoker::dataset {

class Crew {
 public:
  // `threads` 0: the effective cores. `progress` may be empty and is borrowed.
  Crew(int threads, const Progress& progress);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void add(std::function<void()> task);
  // Tasks call this with the number of files dealt with since the last call, at least every few hundred files.
  // Throws when the run was interrupted or another task failed, so that long tasks end soon.
  void count(std::uint64_t files);
  // Returns when the pile is empty and every task has ended. Throws what the first failing task threw, or
  // Error(unavailable, "interrupted") when Progress said so.
  void run();

  // Cuts [0, count) into tasks of `grain`, and runs them.
  void run_in_parts(std::uint64_t count, std::uint64_t grain,
                    const std::function<void(std::uint64_t begin, std::uint64_t end)>& part);

 private:
  struct Stop {};  // thrown through a task that need not go on
  void work(bool is_caller);
  void fail(std::exception_ptr error);
  void report_progress();

  const int threads_;
  const Progress& progress_;
  storage::Interruption* const interruption_ = storage::interruption_in_force();  // of the caller: its helpers wait too
  std::thread::id caller_;
  std::chrono::steady_clock::time_point next_report_;
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<bool> stop_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> pile_;  // last in, first out: a scan goes deep before it goes wide
  std::size_t running_ = 0;
  std::exception_ptr error_;
};

}  // namespace stoker::dataset
