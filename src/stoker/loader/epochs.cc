// From one epoch to the next, and the end.
//
// To leave an epoch: nothing more is planned; what is in flight is abandoned; every unit that is out comes back. Reads
// cannot be recalled, so the consumer waits for them. It may give up waiting; the loader then stands where it stood,
// and the next call waits again.
//
// To end: all threads are told to stop, the consumer leaves, the threads are joined, the reads in flight are cancelled,
// and only then their memory goes.
#include <optional>
#include <system_error>
#include <utility>

#include "stoker/loader/engine.h"
#include "stoker/os/thread.h"

namespace stoker::loader {

void Loader::Engine::start_epoch(std::uint64_t epoch, std::uint64_t position, const Interrupted& interrupted) {
  refuse_after_fork();
  const Consuming consuming(*this);
  if (parts_ && parts_->seek) parts_->seek->save_soon();
  enter_epoch(epoch, position, interrupted);
}

void Loader::Engine::enter_epoch(std::uint64_t epoch, std::uint64_t position, const Interrupted& interrupted) {
  const dataset::Order order = job_.make_order(epoch, job_.is_given() ? 0 : position);
  start_threads();
  const std::optional<std::uint64_t> planned = parts_->planner.epoch();
  bool prefetched = false;  // the I/O threads work for that place already
  {
    const std::scoped_lock lock(signals_.mutex);
    const bool follows = position == 0 && epoch == epoch_ + 1 && step_ == order_.steps() && planned >= epoch;
    const bool is_there = epoch == epoch_ && position == position_ && !asked_;
    const bool reordered = std::exchange(order_changed_, false);
    prefetched = planned && !parts_->batches.fatal_locked() && (follows || is_there) && !job_.is_given() && !reordered;
  }
  if (!prefetched) drain(interrupted);
  {
    const std::scoped_lock lock(signals_.mutex);
    if (job_.hand_over && step_ > 0) job_.hand_over->clear();  // one epoch has taken what it needs
    order_ = order;
    epoch_ = epoch, step_ = 0, position_ = position;
    errors_.epoch_entered();
    figures_.epoch_entered();
    asked_ = false;
  }
  given_.restart(position);
  if (!prefetched) plan_from_here();
}

// Throws away what is in flight. Throws Error if it does not end; then the next call goes on with it.
void Loader::Engine::drain(const Interrupted& interrupted) {
  {
    const std::scoped_lock lock(signals_.mutex);
    draining_ = true;
  }
  parts_->planner.stop();
  std::unique_lock lock(signals_.mutex);
  parts_->batches.abandon_locked();
  Watch watch = this->watch(interrupted);
  while (parts_->units.out_locked() > 0) {
    if (signals_.broken) throw *signals_.broken;  // the thread that would end them is gone
    if (closed_) throw Error(ErrorKind::usage, "the loader was closed while an epoch began");
    wait_locked(lock, watch);
  }
  parts_->batches.release_locked(lock);
  lock.unlock();
  if (parts_->chunk_reader) parts_->chunk_reader->forget();
}

// Reading goes on from the consumer's place.
void Loader::Engine::plan_from_here() {
  parts_->planner.set_end(end_serial_);
  parts_->planner.start(order_, epoch_, step_, serial_);
  {
    const std::scoped_lock lock(signals_.mutex);
    draining_ = false;
  }
  parts_->bell.ring();
}

void Loader::Engine::close(const Interrupted& interrupted) {
  const std::thread::id caller = std::this_thread::get_id();
  std::unique_lock lock(signals_.mutex);
  if (!std::exchange(closed_, true)) {
    signals_.stopping = true;
    // A thread joins the others, so that this one can give up waiting.
    try {
      closer_ = os::start_thread([this, caller] { end_threads(caller); });
    } catch (const std::system_error&) {
      lock.unlock();
      end_threads(caller);
      lock.lock();
    }
  }
  Watch watch = this->watch(interrupted);
  while (!ended_) {
    signals_.ended.wait_for(lock, Watch::kAskEvery);
    if (!ended_) ask_locked(lock, watch);
  }
  std::thread closer = std::move(closer_);
  lock.unlock();
  if (closer.joinable()) closer.join();
}

void Loader::Engine::leave_closing() {
  const std::scoped_lock lock(signals_.mutex);
  if (closer_.joinable()) closer_.detach();
}

// `caller` called close(), perhaps from inside its own next().
void Loader::Engine::end_threads(std::thread::id caller) {
  signals_.readers.notify_all();
  signals_.workers.notify_all();
  signals_.consumer.notify_all();
  std::unique_lock lock(signals_.mutex);
  // A next() in another thread may be decoding; it ends at the next sample. It may also be starting the threads.
  signals_.ended.wait(lock, [&] { return consumer_ == std::thread::id() || consumer_ == caller; });
  if (parts_) {
    lock.unlock();
    join_threads();
    lock.lock();
  }
  ended_ = true;
  signals_.ended.notify_all();
}

void Loader::Engine::join_threads() {
  Parts& parts = *parts_;
  const auto now_ends = [&](Ending ending) {
    const std::scoped_lock lock(signals_.mutex);
    ending_ = ending;
    parts.batches.unpark_locked();
    while (Unit* const unit = parts.work.pop_locked()) parts.units.free_locked(*unit);
  };
  parts.batches.pool().forget_on_release();
  parts.prep.stop_waiting();
  if (parts.chunk_reader) parts.chunk_reader->stop_waiting();
  parts.fetch.wake();
  now_ends(Ending::reads);
  parts.fetch.join();
  now_ends(Ending::workers);
  parts.prep.join();  // a worker may still wake a fetcher
  now_ends(Ending::reads);
  parts.fetch.cancel_reads();
  now_ends(Ending::others);
  if (parts.seek) parts.seek->finish_saving();

  std::unique_lock lock(signals_.mutex);
  if (parts.ram && !parts.ram->problem().empty()) job_.notes.push_back(parts.ram->problem());
  if (parts.seek && !parts.seek->problem().empty()) job_.notes.push_back(parts.seek->problem());
  parts.units.drop_memory_locked();
  parts.prep.drop_memory_locked();
  std::unique_ptr<storage::RamStore> ram = std::move(parts.ram);
  parts.batches.release_locked(lock);
  lock.unlock();
  ram.reset();  // joins a thread that may be reading
}

}  // namespace stoker::loader
