// Ctrl-C for a thread that waits for a store. A server may accept a request and never answer, so every wait asks now
// and then whether the user still wants the answer. The question is in force for a thread, like a lock, because the
// waits lie deep: a page of a listing, the header of an array, the keys of an instance.
//
//   the thread of the user       makes an Interruption, and puts it in force with an InterruptionScope
//   threads that work for it     share it: InterruptionScope(interruption_in_force() of the thread that started them)
//   threads of a running loader  have none; the loader stops them in its own way
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace stoker::storage {

class Interruption {
 public:
  // `asked` returns true once the user wants the work to end. Only the thread that makes the object calls it: Python
  // answers its main thread alone.
  explicit Interruption(std::function<bool()> asked);
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  bool is_raised();                   // asks, on the thread that may; any thread
  bool was_raised() const noexcept {  // does not ask; any thread
    return raised_.load(std::memory_order_relaxed);
  }
  void raise() noexcept {  // any thread
    raised_.store(true, std::memory_order_relaxed);
  }

 private:
  std::function<bool()> asked_;
  std::thread::id asker_;
  std::atomic<bool> raised_{false};
};

// Puts `interruption` in force for this thread while the scope lives. Null: nothing interrupts its waits, as when it
// cleans up after an interruption.
class InterruptionScope {
 public:
  explicit InterruptionScope(Interruption* interruption) noexcept;
  ~InterruptionScope();
  InterruptionScope(const InterruptionScope&) = delete;
  InterruptionScope& operator=(const InterruptionScope&) = delete;

 private:
  Interruption* const before_;
};

inline constexpr std::chrono::milliseconds kAskEvery{100};  // how long a wait may last without asking

Interruption* interruption_in_force() noexcept;             // of this thread; null: none
void check_interruption();                                  // throws Error(unavailable, "interrupted")
void pause_interruptibly(std::chrono::nanoseconds length);  // the same, meanwhile

}  // namespace stoker::storage
