// From one epoch to the next, and the end.
//
// To leave an epoch: nothing more is planned; what is in flight is abandoned; every unit that is out comes back. Reads
// cannot be recalled, so the consumer waits for them. It may give up waiting; the loader then stands where it stood,
// and the next call waits again.
//
// To end: all threads are told to stop, the consumer leaves, the threads are joined, the reads in flight are cancelled,
// and only then their memory goes.
#include <algorithm>
#include <system_error>
#include <utility>

#include "stoker/loader/engine.h"
#include "stoker/os/thread.h"

namespace stoker::loader {

void Loader::Engine::start_epoch(std::uint64_t epoch, std::uint64_t position, const Interrupted& interrupted) {
  refuse_after_fork();
  const Consuming consuming(*this);
  if (seek_) seek_->save_soon();
  enter_epoch(epoch, position, interrupted);
}

void Loader::Engine::enter_epoch(std::uint64_t epoch, std::uint64_t position, const Interrupted& interrupted) {
  const dataset::Order order = make_order(epoch, position);
  start_threads();
  bool prefetched = false;  // the I/O threads work for that place already
  {
    const std::scoped_lock plan(plan_mutex_);
    const std::scoped_lock lock(mutex_);
    const bool follows = position == 0 && epoch == epoch_ + 1 && step_ == order_->steps() && plan_epoch_ >= epoch;
    const bool is_there = epoch == epoch_ && position == position_ && !asked_;
    prefetched = !paused_ && !fatal_ && (follows || is_there);
  }
  if (!prefetched) drain(interrupted);
  {
    const std::scoped_lock lock(mutex_);
    order_.emplace(order);
    epoch_ = epoch, step_ = 0, position_ = position, epoch_errors_ = 0;
    returned_ns_ = 0;
    asked_ = false;
  }
  if (!prefetched) plan_from_here();
}

// Nothing more is read. Takes back what was planned and had no room to be read.
void Loader::Engine::stop_planning() {
  const std::scoped_lock plan(plan_mutex_);
  const std::scoped_lock lock(mutex_);
  paused_ = true;
  draining_ = true;
  if (stalled_ != nullptr) free_unit_locked(*std::exchange(stalled_, nullptr));
  if (plan_sweep_ != nullptr) {
    for (Unit* const unit : plan_sweep_->units) free_unit_locked(*unit);
    free_sweeps_.push_back(std::exchange(plan_sweep_, nullptr));
  }
  plan_pending_ = nullptr;
}

// Throws away what is in flight. Throws Error if it does not end; then the next call goes on with it.
void Loader::Engine::drain(const Interrupted& interrupted) {
  stop_planning();
  std::unique_lock lock(mutex_);
  for (Pending* const pending : pendings_) {
    pending->abandoned = true;
    for (Unit* const unit : std::exchange(pending->parked, {})) queue_.push(unit), queued_rows_ += unit->rows;
  }
  work_cv_.notify_all();
  Watch watch(*this, interrupted);
  while (units_out_ > 0) {
    if (broken_) throw *broken_;  // the thread that would end them is gone
    if (closed_) throw Error(ErrorKind::usage, "the loader was closed while an epoch began");
    wait_locked(lock, watch);
  }
  release_pendings_locked(lock);
  fatal_.reset();
}

// Reading goes on from the consumer's place.
void Loader::Engine::plan_from_here() {
  {
    const std::scoped_lock plan(plan_mutex_);
    const std::scoped_lock lock(mutex_);
    plan_order_.emplace(*order_);
    plan_epoch_ = epoch_;
    plan_step_ = step_;
    plan_serial_ = serial_;
    sweep_most_ = std::min(sweep_bytes_, first_sweep_bytes_);
    paused_ = false;
    draining_ = false;
  }
  wake_readers();
}

void Loader::Engine::close(const Interrupted& interrupted) {
  const std::thread::id caller = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  if (!std::exchange(closed_, true)) {
    stopping_ = true;
    // A thread joins the others, so that this one can give up waiting.
    try {
      closer_ = os::start_thread([this, caller] { end_threads(caller); });
    } catch (const std::system_error&) {
      lock.unlock();
      end_threads(caller);
      lock.lock();
    }
  }
  Watch watch(*this, interrupted);
  while (!ended_) {
    ended_cv_.wait_for(lock, kAskEvery);
    if (!ended_) ask_locked(lock, watch);
  }
  std::thread closer = std::move(closer_);
  lock.unlock();
  if (closer.joinable()) closer.join();
}

void Loader::Engine::leave_closing() {
  const std::scoped_lock lock(mutex_);
  if (closer_.joinable()) closer_.detach();
}

// `caller` called close(), perhaps from inside its own next().
void Loader::Engine::end_threads(std::thread::id caller) {
  io_cv_.notify_all();
  work_cv_.notify_all();
  consumer_cv_.notify_all();
  std::unique_lock lock(mutex_);
  // A next() in another thread may be decoding; it ends at the next sample. It may also be starting the threads.
  ended_cv_.wait(lock, [&] { return consumer_ == std::thread::id() || consumer_ == caller; });
  if (started_) {
    lock.unlock();
    join_threads();
    lock.lock();
  }
  ended_ = true;
  ended_cv_.notify_all();
}

void Loader::Engine::join_threads() {
  const auto join = [](Thread& thread) {
    if (thread.thread.joinable()) thread.thread.join();  // not so if it could not be started
  };
  const auto now_ends = [this](Ending ending) {
    const std::scoped_lock lock(mutex_);
    ending_ = ending;
    for (Pending* const pending : pendings_) {
      for (Unit* const unit : std::exchange(pending->parked, {})) free_unit_locked(*unit);
    }
    while (Unit* const unit = queue_.pop()) free_unit_locked(*unit);
    queued_rows_ = 0;
  };
  pool_->forget_on_release();
  working_->stop();
  for (auto& io : io_threads_) io->fetcher->wake();
  now_ends(Ending::reads);
  for (auto& io : io_threads_) join(*io);
  now_ends(Ending::workers);
  for (auto& worker : workers_) join(*worker);  // a worker may still wake a fetcher
  now_ends(Ending::reads);
  for (auto& io : io_threads_) io->fetcher.reset();  // ends what is in flight before its memory goes
  now_ends(Ending::others);
  if (seek_) seek_->finish_saving();

  std::unique_lock lock(mutex_);
  if (ram_ && !ram_->problem().empty()) notes_.push_back(ram_->problem());
  if (seek_ && !seek_->problem().empty()) notes_.push_back(seek_->problem());
  room_.reset();
  sweeps_.clear();
  for (auto& worker : workers_) working_->give_back(worker->space);
  working_->give_back(consumer_worker_->space);
  working_->unmap_free();
  std::unique_ptr<storage::RamStore> ram = std::move(ram_);
  release_pendings_locked(lock);
  lock.unlock();
  ram.reset();  // joins a thread that may be reading
}

// Gives the batches in the making and their slabs back.
void Loader::Engine::release_pendings_locked(std::unique_lock<std::mutex>& lock) {
  for (Pending* const pending : std::exchange(pendings_, {})) {
    free_pendings_.push_back(pending);
    Slab* const slab = std::exchange(pending->slab, nullptr);
    if (slab == nullptr) continue;
    --slabs_filling_;
    lock.unlock();  // release() calls back, and may ask Python for the stream
    pool_->release(slab);
    lock.lock();
  }
  ready_batches_ = 0;
  ready_depth_.change(meter::now_ns(), 0);
}

}  // namespace stoker::loader
