// The consumer's side: handing batches out in order, and waiting for them.
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/loader/engine.h"

namespace stoker::loader {
namespace {

std::int64_t load_time(const std::int64_t& time) noexcept {
  return std::atomic_ref(const_cast<std::int64_t&>(time)).load(std::memory_order_relaxed);
}

// The first row of a batch that has no such time yet; the number of its rows if all have.
std::uint64_t first_without(const Pending& pending, std::int64_t meter::RowTimes::*time) noexcept {
  std::uint64_t row = 0;
  while (row < pending.times.size() && load_time(pending.times[row].*time) != 0) ++row;
  return row;
}

// The first row from `first` to `end` whose own bytes are missing: rows that are read together end together, and the
// others of them are not to blame. `first` where all are there.
std::uint64_t first_missing(const Pending& pending, std::uint64_t first, std::uint64_t end) noexcept {
  for (std::uint64_t row = first; row < end; ++row) {
    const bool has_arrived =
        std::atomic_ref(const_cast<bool&>(pending.rows[row].arrived)).load(std::memory_order_relaxed);
    if (load_time(pending.times[row].read_ns) == 0 && !has_arrived) return row;
    if (load_time(pending.times[first].read_ns) != 0) break;  // it waits for a worker
  }
  return first;
}

// "patch was 8x8x8 and is 4x4x4", for each setting of both whose value differs.
std::string changes_of(const std::vector<std::pair<std::string, std::string>>& then,
                       const std::vector<std::pair<std::string, std::string>>& now) {
  std::string text;
  for (const auto& [name, before] : then) {
    for (const auto& [other, after] : now) {
      if (other != name || after == before) continue;
      text += fmt::format("{}{} was {} and is {}", text.empty() ? "" : "; ", name, before, after);
    }
  }
  return text;
}

}  // namespace

Loader::Engine::Consuming::Consuming(Engine& engine) : engine_(engine) {
  const std::scoped_lock lock(engine_.signals_.mutex);
  if (engine_.consumer_ != std::thread::id()) {
    throw Error(ErrorKind::usage, "another thread is using this loader", "one thread consumes a loader");
  }
  engine_.consumer_ = std::this_thread::get_id();
}

Loader::Engine::Consuming::~Consuming() {
  {
    const std::scoped_lock lock(engine_.signals_.mutex);
    engine_.consumer_ = {};
  }
  engine_.signals_.ended.notify_all();
}

void Loader::Engine::check_open_locked() const {
  if (closed_) throw Error(ErrorKind::usage, "the loader is closed", "make a new one");
  if (signals_.broken) throw *signals_.broken;
}

Watch Loader::Engine::watch(const Interrupted& interrupted) const noexcept {
  return Watch(signals_.progress, job_.options.timeout, interrupted, meter::now_ns());
}

// A turn of the consumer's wait: decodes a unit where num_workers is 0, else sleeps until something happens. The caller
// looks at what it waits for before each turn.
void Loader::Engine::wait_locked(std::unique_lock<std::mutex>& lock, Watch& watch) {
  BatchQueue& batches = parts_->batches;
  if (Unit* const unit = job_.is_inline ? batches.next_unit_locked() : nullptr) {
    lock.unlock();
    parts_->prep.work_inline(*unit);
    lock.lock();
  } else if (signals_.consumer.wait_for(
                 lock, batches.pool().waits_for_device() ? std::chrono::milliseconds(1) : Watch::kAskEvery) ==
             std::cv_status::timeout) {
    batches.assign_slabs_locked();  // a pinned slab may be free now
  }
  ask_locked(lock, watch);
}

// Throws if the caller gives up, or if nothing has moved for too long.
void Loader::Engine::ask_locked(std::unique_lock<std::mutex>& lock, Watch& watch) {
  const std::int64_t now = meter::now_ns();
  if (!watch.is_due(now)) return;
  if (watch.can_ask()) {
    lock.unlock();
    const bool give_up = watch.gives_up();
    lock.lock();
    if (give_up) throw Error(ErrorKind::unavailable, "interrupted");
  }
  const std::chrono::nanoseconds idle = watch.too_long(now);
  if (idle.count() == 0) return;
  const Delay delay = delay_locked();
  throw Error(ErrorKind::unavailable, fmt::format("no progress for {}: {}", format_duration(idle), delay.text),
              delay.hint);
}

BatchPtr Loader::Engine::next(const Interrupted& interrupted) {
  refuse_after_fork();
  const std::int64_t called = meter::now_ns();
  const Consuming consuming(*this);  // close() waits for it
  std::unique_lock lock(signals_.mutex);
  check_open_locked();
  if (!parts_) {
    lock.unlock();
    enter_epoch(epoch_, position_, interrupted);
    lock.lock();
  }
  const std::int64_t compute = figures_.asked(called);
  asked_ = true;
  if (is_over()) return nullptr;
  if (job_.is_given() && step_ == given_.steps())
    throw Error(ErrorKind::usage, "cannot give a batch: the order of this epoch goes no further yet",
                "give the next batch of samples, or end the order");
  if (draining_) {
    lock.unlock();
    drain(interrupted);
    plan_from_here();
    lock.lock();
  }
  if (serial_ >= end_serial_) {  // more is wanted than was expected
    lock.unlock();
    end_planning_at(Planner::kNoEnd);
    lock.lock();
  }
  await_batch_locked(lock, interrupted);
  BatchQueue& batches = parts_->batches;
  Pending& pending = *batches.front_locked();
  check_batch_locked(pending);
  BatchPtr batch = batches.hand_out_front_locked();
  ++serial_;
  ++step_;
  position_ = pending.position_after;
  list_errors_locked(pending, true);
  std::uint64_t bytes = 0;
  for (std::size_t o = 0; o < job_.recipe.outputs().size(); ++o) {
    bytes += job_.recipe.packs_rows() ? pending.length : pending.kept * job_.recipe.row_bytes(o, pending.length);
  }
  const meter::WaitSplit wait = figures_.handed_out(
      {.called_ns = called, .now_ns = meter::now_ns(), .samples = pending.kept, .bytes = bytes}, pending.times);
  batches.drop_front_locked();
  if (auto_workers_) {
    WorkQueue& work = parts_->work;
    const int active = work.active_locked();
    meter::StageTotals prep;
    parts_->prep.add_to(prep);
    work.set_active_locked(auto_workers_->after_batch(active, {.wait = wait,
                                                               .compute_ns = compute,
                                                               .busy_ns = static_cast<std::int64_t>(prep.busy_s * 1e9),
                                                               .ready_batches = batches.ready_locked()}));
    // One that rests now may just have been woken for work.
    if (work.active_locked() != active) signals_.workers.notify_all();
  }
  batches.assign_slabs_locked();
  lock.unlock();
  parts_->bell.ring();
  return batch;
}

bool Loader::Engine::is_over() const {
  return job_.is_given() ? given_.is_ended() && step_ == given_.steps() : step_ == order_.steps();
}

void Loader::Engine::check_given() const {
  if (!job_.is_given())
    throw Error(ErrorKind::usage, "cannot take an order: this loader computes its own",
                "make it with Shuffle::How::given");
}

void Loader::Engine::give(std::vector<std::uint64_t> indices) {
  refuse_after_fork();
  check_given();
  if (indices.size() > job_.options.batch_size) {
    throw Error(ErrorKind::usage, format_text("cannot make a batch of {} samples: {} is {}", indices.size(),
                                              option("batch_size"), job_.options.batch_size))
        .about("batch_size");
  }
  const std::uint64_t size = job_.dataset->size();
  for (const std::uint64_t index : indices) {
    if (index >= size)
      throw Error(ErrorKind::usage,
                  fmt::format("the order holds sample {}, and the data set has samples 0 to {}", index, size - 1));
  }
  const Consuming consuming(*this);
  if (given_.is_ended()) throw Error(ErrorKind::usage, "cannot take a batch of samples: the order was ended");
  given_.add(std::move(indices));
  if (parts_) parts_->bell.ring();
}

void Loader::Engine::end_order() {
  refuse_after_fork();
  check_given();
  const Consuming consuming(*this);
  given_.end();
  if (parts_) parts_->bell.ring();
}

std::uint64_t Loader::Engine::steps_wanted() const {
  if (!job_.is_given() || given_.is_ended()) return 0;
  const std::uint64_t ahead = given_.steps() - step_, most = job_.steps_ahead();
  return ahead < most ? most - ahead : 0;
}

void Loader::Engine::expect_steps(std::uint64_t steps) {
  refuse_after_fork();
  const Consuming consuming(*this);
  end_planning_at(steps > Planner::kNoEnd - serial_ ? Planner::kNoEnd : serial_ + steps);
}

void Loader::Engine::end_planning_at(std::uint64_t serial) {
  end_serial_ = serial;
  if (!parts_) return;  // plan_from_here() says it
  parts_->planner.set_end(serial);
  parts_->bell.ring();
}

// Until the next batch is ready.
void Loader::Engine::await_batch_locked(std::unique_lock<std::mutex>& lock, const Interrupted& interrupted) {
  const BatchQueue& batches = parts_->batches;
  Watch watch = this->watch(interrupted);
  while (true) {
    const Pending* const front = batches.front_locked();
    if (front != nullptr && front->serial == serial_ && front->ready) return;
    if (signals_.broken) throw *signals_.broken;
    if (batches.fatal_locked()) throw *batches.fatal_locked();
    if (closed_) throw Error(ErrorKind::usage, "the loader was closed while a batch was awaited");
    parts_->batches.check_room_locked();
    wait_locked(lock, watch);
  }
}

// Throws what ends the run with this batch: on_error=raise, or one bad sample too many.
void Loader::Engine::check_batch_locked(Pending& pending) {
  if (!pending.failure) {
    if (std::optional<Error> error = errors_.too_many(pending.epoch, pending.errors)) {
      pending.failure.emplace(0, *std::move(error));
    }
  }
  if (!pending.failure) return;
  list_errors_locked(pending, false);
  throw pending.failure->second;
}

void Loader::Engine::list_errors_locked(Pending& pending, bool is_handed_out) {
  if (!errors_.add(std::exchange(pending.errors, {}), is_handed_out)) return;
  job_.notes.push_back(
      fmt::format("only the first {} bad samples are listed; all are counted", format_count(errors_.listed())));
}

Loader::Engine::Delay Loader::Engine::delay_locked() const {
  if (closed_ || draining_) return delay_of_drain_locked();
  const Pending* const front = parts_->batches.front_locked();
  if (front == nullptr) return {"nothing was being read", "`timeout` sets how long to wait"};
  // The rows of a batch whose length varies wait for one another before any is decoded.
  std::uint64_t row = front->slab == nullptr ? first_without(*front, &meter::RowTimes::read_ns) : front->times.size();
  if (row == front->times.size()) row = first_without(*front, &meter::RowTimes::done_ns);
  if (row == front->times.size()) return {"a batch is complete and not marked so", ""};
  return delay_of_row(*front, first_missing(*front, row, front->times.size()),
                      fmt::format("batch {} waits", front->step));
}

// Every unit that is out has to end: the oldest is named. close() ends the reads first, and then the workers.
Loader::Engine::Delay Loader::Engine::delay_of_drain_locked() const {
  const std::string waits = closed_ ? "close() waits" : "the next epoch waits";
  const Unit* oldest = nullptr;
  const auto place = [](const Unit& out) { return std::pair(out.pending->serial, out.first_row); };
  if (parts_) {
    for (const auto& unit : parts_->units.all_locked()) {
      if (unit->pending == nullptr) continue;
      const bool read = load_time(unit->pending->times[unit->first_row].read_ns) != 0;
      if (closed_ && ending_ != (read ? Ending::workers : Ending::reads)) continue;
      if (oldest == nullptr || place(*unit) < place(*oldest)) oldest = unit.get();
    }
  }
  if (oldest != nullptr) {
    const std::uint64_t first = oldest->first_row;
    return delay_of_row(*oldest->pending, first_missing(*oldest->pending, first, first + oldest->rows), waits);
  }
  return {fmt::format("{} for a thread to end", waits), "`timeout` sets how long to wait"};
}

Loader::Engine::Delay Loader::Engine::delay_of_row(const Pending& pending, std::uint64_t row,
                                                   const std::string& waits) const {
  const bool read = load_time(pending.times[row].read_ns) != 0;
  const std::uint64_t index =
      job_.is_given() ? pending.given[row] : job_.make_order(pending.epoch, 0).sample(pending.range.first + row);
  return {fmt::format("{} for `{}` (sample {}) in stage {}", waits, job_.dataset->name(index), index,
                      read ? "prep" : "fetch"),
          read ? "look whether the workers get CPU time and whether that file is unusually large; `timeout` sets how "
                 "long to wait"
               : "look at the storage under that file; `timeout` sets how long to wait"};
}

State Loader::Engine::state() const {
  const std::scoped_lock lock(signals_.mutex);
  const LoaderOptions& options = job_.options;
  const dataset::Facts& facts = job_.dataset->facts();
  State state{epoch_,        position_, options.seed, options.shuffle, job_.dataset->size(), facts.fingerprint,
              facts.settings};
  if (is_over()) ++state.epoch, state.position = 0;
  state.shuffle = job_.shuffle_of(state.epoch);
  return state;
}

void Loader::Engine::check_state(const State& state) const {
  const dataset::Dataset& dataset = *job_.dataset;
  const LoaderOptions& options = job_.options;
  if (state.size != dataset.size() || state.fingerprint != dataset.facts().fingerprint) {
    const std::string changes = changes_of(state.settings, dataset.facts().settings);
    throw Error(ErrorKind::usage,
                fmt::format("the saved state belongs to another data set ({} samples; this one has {}){}{}", state.size,
                            dataset.size(), changes.empty() ? "" : ": ", changes),
                "resume with the data set the state was saved with, or start a new run");
  }
  using How = dataset::Shuffle::How;
  const bool is_by_node = state.shuffle.how == How::nodes && options.shuffle.how == How::nodes &&
                          state.shuffle.nodes > 0 && state.shuffle.of_node > 0;  // the epoch goes on in its order
  if (state.seed != options.seed || (state.shuffle != options.shuffle && !is_by_node)) {
    throw Error(ErrorKind::usage,
                fmt::format("the saved state has seed {} and shuffle {}, this loader seed {} and shuffle {}",
                            state.seed, text(state.shuffle), options.seed, text(options.shuffle)),
                format_text("make the loader with the same {} and {}", option("seed"), option("shuffle")))
        .about(state.seed != options.seed ? "seed" : "shuffle");
  }
  // Throws if the position is beyond the data set. A given order may be longer than that.
  if (!job_.is_given()) static_cast<void>(job_.make_order(state.epoch, state.position));
}

void Loader::Engine::load_state(const State& state, const Interrupted& interrupted) {
  check_state(state);
  keep_order(state);
  start_epoch(state.epoch, state.position, interrupted);
}

bool Loader::Engine::keep_order(const State& state) {
  const bool differs =
      state.shuffle.how == dataset::Shuffle::How::nodes && state.position > 0 && state.shuffle != job_.options.shuffle;
  if (job_.keep_order(differs ? std::optional(Job::Kept{state.epoch, state.shuffle}) : std::nullopt)) {
    const std::scoped_lock lock(signals_.mutex);
    order_changed_ = true;
  }
  return differs;
}

dataset::Shuffle Loader::Engine::shuffle_of(std::uint64_t epoch) const {
  return job_.shuffle_of(epoch);
}

}  // namespace stoker::loader
