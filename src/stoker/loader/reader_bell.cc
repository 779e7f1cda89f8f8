#include "stoker/loader/reader_bell.h"

namespace stoker::loader {

void ReaderBell::wake() noexcept {
  signals_.readers.notify_all();
  for (Reader* const reader : readers_) {
    if (reader->refused.exchange(false, std::memory_order_relaxed)) reader->fetcher->wake();
  }
}

void ReaderBell::ring() noexcept {
  {
    const std::scoped_lock lock(signals_.mutex);
    ++rings_;
  }
  wake();
}

void ReaderBell::ring_locked() noexcept {
  ++rings_;
  wake();
}

void ReaderBell::wait(std::uint64_t rings, std::chrono::milliseconds timeout) {
  std::unique_lock lock(signals_.mutex);
  signals_.readers.wait_for(lock, timeout, [&] { return signals_.stopping || rings_ != rings; });
}

}  // namespace stoker::loader
