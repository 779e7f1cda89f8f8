// The lock that the parts of one engine share, and whom to wake. Safe from any thread.
//
// The order of locks, for the whole engine:
//   1. Planner::mutex_                 what is read next
//   2. Signals::mutex                  what is in flight: units, queues, batches, workers, figures
//   3. one of ByteRoom, GivenOrder, SlabPool, WorkingMemory, SeekStore, RamStore, Pending::errors_mutex
// A thread that holds one takes only those below it. SlabPool and WorkingMemory call back into the engine without any
// of these. Nothing is locked while decoding, while waiting for I/O, or while the caller's own code runs; but for the
// start of the threads, which opens the stores (a saved seek index is read) under Signals::mutex before any thread
// exists. Locks inside one class (SlabPool's callbacks, SeekStore's rows, the device's provider) are taken last.
//
// A method whose name ends with `_locked` is called with Signals::mutex held.
//
// The consumer (the thread inside next() or start_epoch()) waits on `consumer` only, whatever it waits for. The
// thread that makes a batch ready, queues a unit, retires the last unit, stores a failure or closes the loader
// notifies it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "stoker/base/error.h"

namespace stoker::loader {

struct Signals {
  std::mutex mutex;
  std::condition_variable readers;   // I/O threads without room wait here: see reader_bell.h
  std::condition_variable workers;   // workers wait here for a unit
  std::condition_variable consumer;  // the consumer waits here
  std::condition_variable ended;     // close() waits here: for the consumer, and for the threads to end

  std::atomic<bool> stopping{false};       // every thread ends; changed with `mutex` held
  std::atomic<std::uint64_t> progress{0};  // grows whenever something moves
  std::optional<Error> broken;             // a thread could not be started, or has failed: for good. `mutex`

  // A thread ends with `error`. The first error is kept.
  void fail_for_good(Error error) noexcept {
    {
      const std::scoped_lock lock(mutex);
      if (!broken) broken = std::move(error);
    }
    consumer.notify_all();
  }
};

}  // namespace stoker::loader
