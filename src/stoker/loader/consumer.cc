// The consumer's side: handing batches out in order, and accounting for its time.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/base/utf8.h"
#include "stoker/loader/engine.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kAdjustEvery = 16;     // batches
constexpr std::uint64_t kMostListed = 10'000;  // bad samples

std::int64_t load_time(const std::int64_t& time) noexcept {
  return std::atomic_ref(const_cast<std::int64_t&>(time)).load(std::memory_order_relaxed);
}

SampleError error_of(const dataset::Loss& loss) {
  SampleError error;
  error.name = loss.name;
  error.stage = "list";
  error.cause =
      loss.bytes == 0 ? loss.cause : fmt::format("{}; {} bytes are lost", loss.cause, format_count(loss.bytes));
  if (loss.bytes != 0) error.offset = static_cast<std::int64_t>(loss.offset);
  error.action = name(OnError::skip);
  return error;
}

class HandedBatch final : public Batch {
 public:
  HandedBatch(std::shared_ptr<SlabPool> pool, Slab* slab, dataset::DatasetPtr dataset, const Recipe& recipe,
              const Pending& pending, std::uint64_t batch_size)
      : pool_(std::move(pool)),
        slab_(slab),
        dataset_(std::move(dataset)),
        size_(pending.kept),
        epoch_(pending.epoch),
        step_(pending.step),
        first_position_(pending.range.first),
        layout_(lay_out(recipe, batch_size, pending.length)),
        label_count_(recipe.label_count()),
        has_lengths_(recipe.facts().has_lengths) {
    for (std::size_t o = 0; o < recipe.outputs().size(); ++o) {
      Tensor made = make_tensor(recipe, o, pending.length);
      if (recipe.outputs()[o].is_coords) {
        coords_ = std::move(made);
      } else {
        tensors_.push_back(std::move(made));
      }
    }
    for (const Row& row : pending.rows) {
      if (row.skipped) skipped_positions_.push_back(row.position);
    }
  }
  ~HandedBatch() override {
    if (slab_ != nullptr) pool_->release(slab_);
  }
  HandedBatch(const HandedBatch&) = delete;
  HandedBatch& operator=(const HandedBatch&) = delete;

  std::uint64_t size() const noexcept override { return size_; }
  std::uint64_t epoch() const noexcept override { return epoch_; }
  std::uint64_t step() const noexcept override { return step_; }
  std::span<const Tensor> tensors() const noexcept override { return tensors_; }
  dataset::LabelKind label_kind() const noexcept override { return dataset_->facts().label_kind; }
  const Tensor* coords() const noexcept override { return coords_ ? &*coords_ : nullptr; }
  std::uint64_t label_count() const noexcept override { return label_count_; }
  std::span<std::int64_t> labels() const noexcept override { return at<std::int64_t>(layout_.labels, label_count_); }
  std::span<float> real_labels() const noexcept override {
    if (label_kind() != dataset::LabelKind::real) return {};
    return at<float>(layout_.real_labels, label_count_);
  }
  std::span<std::int64_t> ids() const noexcept override { return at<std::int64_t>(layout_.ids); }
  std::span<std::int64_t> indices() const noexcept override { return at<std::int64_t>(layout_.indices); }
  std::span<std::int64_t> lengths() const noexcept override {
    if (!has_lengths_) return {};
    return at<std::int64_t>(layout_.lengths);
  }
  std::span<std::uint8_t> valid() const noexcept override { return at<std::uint8_t>(layout_.valid); }
  std::string name_of(std::uint64_t row) const override {
    return dataset_->name(static_cast<std::uint64_t>(indices()[row]));
  }
  std::uint64_t position_of(std::uint64_t row) const noexcept override {
    std::uint64_t position = first_position_ + row;
    for (const std::uint64_t skipped : skipped_positions_) position += skipped <= position;
    return position;
  }
  std::uint64_t slab_bytes() const noexcept override { return slab_ == nullptr ? 0 : slab_->arena.size(); }

 private:
  template <typename T>
  std::span<T> at(std::size_t offset, std::uint64_t per_row = 1) const noexcept {
    if (slab_ == nullptr) return {};
    return {reinterpret_cast<T*>(slab_->arena.data() + offset), size_ * per_row};
  }

  Tensor make_tensor(const Recipe& recipe, std::size_t o, std::uint64_t length) const {
    const transform::Output& output = recipe.outputs()[o];
    Tensor tensor;
    tensor.name = output.name;
    tensor.dtype = output.dtype;
    tensor.data = slab_ == nullptr ? nullptr : slab_->arena.data() + layout_.outputs[o];
    tensor.shape.push_back(static_cast<std::int64_t>(size_));
    if (output.views > 1) tensor.shape.push_back(output.views);
    for (const std::uint64_t d : output.shape) tensor.shape.push_back(static_cast<std::int64_t>(d));
    if (output.varies) tensor.shape.back() = static_cast<std::int64_t>(length);
    tensor.strides.resize(tensor.shape.size());
    std::int64_t stride = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
      tensor.strides[i] = stride;
      stride *= std::max<std::int64_t>(1, tensor.shape[i]);
    }
    if (output.layout == transform::Layout::channels_last && output.shape.size() == 3) {
      const std::size_t c = tensor.shape.size() - 3;
      tensor.strides[c] = 1;
      tensor.strides[c + 2] = tensor.shape[c];
      tensor.strides[c + 1] = tensor.shape[c] * tensor.shape[c + 2];
    }
    return tensor;
  }

  std::shared_ptr<SlabPool> pool_;
  Slab* slab_;  // null for a batch without rows
  dataset::DatasetPtr dataset_;
  std::uint64_t size_, epoch_, step_, first_position_;
  std::vector<std::uint64_t> skipped_positions_;  // ascending
  SlabLayout layout_;
  std::uint64_t label_count_;
  bool has_lengths_;
  std::vector<Tensor> tensors_;
  std::optional<Tensor> coords_;
};

}  // namespace

Text SampleError::message() const {
  return format_text("cannot {} `{}`{}{}: {}", stage, name, is_sample() ? fmt::format(" (sample {})", index) : "",
                     offset >= 0 ? fmt::format(" at byte {}", offset) : "", cause);
}

Loader::Engine::Consuming::Consuming(Engine& engine) : engine_(engine) {
  const std::scoped_lock lock(engine_.mutex_);
  if (engine_.consumer_ != std::thread::id()) {
    throw Error(ErrorKind::usage, "another thread is using this loader", "one thread consumes a loader");
  }
  engine_.consumer_ = std::this_thread::get_id();
}

Loader::Engine::Consuming::~Consuming() {
  {
    const std::scoped_lock lock(engine_.mutex_);
    engine_.consumer_ = {};
  }
  engine_.ended_cv_.notify_all();
}

Loader::Engine::Watch::Watch(const Engine& engine, const Interrupted& asks)
    : interrupted(asks),
      asked_ns(meter::now_ns()),
      progress_ns(asked_ns),
      progress(engine.progress_.load(std::memory_order_relaxed)) {}

// A turn of the consumer's wait: decodes a unit where num_workers is 0, else sleeps until something happens. The caller
// looks at what it waits for before each turn.
void Loader::Engine::wait_locked(std::unique_lock<std::mutex>& lock, Watch& watch) {
  if (Unit* const unit = inline_ ? pop_locked() : nullptr) {
    lock.unlock();
    const std::int64_t started = meter::now_ns();
    process(*unit, *consumer_worker_);
    consumer_worker_->counters.busy_ns.add(meter::now_ns() - started);
    lock.lock();
  } else if (consumer_cv_.wait_for(lock, pool_->waits_for_device() ? std::chrono::milliseconds(1) : kAskEvery) ==
             std::cv_status::timeout) {
    assign_slabs_locked();  // a pinned slab may be free now
  }
  ask_locked(lock, watch);
}

// Throws if the caller gives up, or if nothing has moved for too long.
void Loader::Engine::ask_locked(std::unique_lock<std::mutex>& lock, Watch& watch) {
  const std::int64_t now = meter::now_ns();
  if (now - watch.asked_ns < std::chrono::nanoseconds(kAskEvery).count()) return;
  watch.asked_ns = now;
  if (watch.interrupted) {
    lock.unlock();
    const bool give_up = watch.interrupted();
    lock.lock();
    if (give_up) throw Error(ErrorKind::unavailable, "interrupted");
  }
  check_progress_locked(watch, now);
}

BatchPtr Loader::Engine::next(const Interrupted& interrupted) {
  refuse_after_fork();
  const std::int64_t called = meter::now_ns();
  const Consuming consuming(*this);  // close() waits for it
  std::unique_lock lock(mutex_);
  if (closed_) throw Error(ErrorKind::usage, "the loader is closed", "make a new one");
  if (broken_) throw *broken_;
  if (!started_) {
    lock.unlock();
    enter_epoch(epoch_, position_, interrupted);
    lock.lock();
  }
  if (run_started_ns_ == 0) run_started_ns_ = called;
  const std::int64_t compute = returned_ns_ != 0 ? called - returned_ns_ : 0;
  compute_ns_ += compute;
  run_ended_ns_ = called;
  returned_ns_ = 0;
  asked_ = true;
  if (step_ == order_->steps()) return nullptr;
  if (draining_) {
    lock.unlock();
    drain(interrupted);
    plan_from_here();
    lock.lock();
  }

  Watch watch(*this, interrupted);
  while (true) {
    Pending* const front = front_locked();
    if (front != nullptr && front->serial == serial_ && front->ready) break;
    if (broken_) throw *broken_;
    if (fatal_) throw *fatal_;
    if (closed_) throw Error(ErrorKind::usage, "the loader was closed while a batch was awaited");
    check_consumer_locked();
    wait_locked(lock, watch);
  }
  Pending& pending = *pendings_.front();
  if (!pending.failure) check_error_limit_locked(pending);
  if (pending.failure) {
    list_errors_locked(pending);
    throw pending.failure->second;
  }
  BatchPtr batch = deliver_locked(pending);
  const std::int64_t now = meter::now_ns();
  const meter::WaitSplit wait = meter::split_wait(called, now, pending.times);
  wait_ += wait;
  run_ended_ns_ = returned_ns_ = now;
  if (first_batch_ns_ == 0) first_batch_ns_ = now - constructed_ns_;
  pendings_.pop_front();
  free_pendings_.push_back(&pending);
  adjust_workers_locked(wait, compute);
  assign_slabs_locked();
  lock.unlock();
  wake_readers();
  return batch;
}

BatchPtr Loader::Engine::deliver_locked(Pending& pending) {
  Slab* const slab = std::exchange(pending.slab, nullptr);
  auto batch = std::make_shared<HandedBatch>(pool_, slab, dataset_, recipe_, pending, options_.batch_size);
  if (slab != nullptr) --slabs_filling_;
  ready_depth_.change(meter::now_ns(), --ready_batches_);
  ++serial_;
  ++step_;
  position_ = pending.position_after;
  ++batches_;
  samples_ += pending.kept;
  for (std::size_t o = 0; o < recipe_.outputs().size(); ++o) {
    decoded_bytes_ += pending.kept * recipe_.row_bytes(o, pending.length);
  }
  epoch_errors_ += pending.errors.size();
  list_errors_locked(pending);
  return batch;
}

void Loader::Engine::list_errors_locked(Pending& pending) {
  error_count_ += pending.errors.size();
  for (SampleError& error : std::exchange(pending.errors, {})) {
    const std::uint64_t bytes = sizeof(SampleError) + error.cause.capacity();
    if (said_listed_ || errors_.size() == kMostListed || errors_bytes_ + bytes > allowance_.list_of_errors_bytes) {
      if (!std::exchange(said_listed_, true)) {
        notes_.push_back(
            fmt::format("only the first {} bad samples are listed; all are counted", format_count(errors_.size())));
      }
      continue;
    }
    errors_bytes_ += bytes;
    errors_.push_back(std::move(error));
  }
}

// Names are looked up when somebody reads them: ten thousand paths would take more memory than the batches.
SampleError Loader::Engine::named(SampleError error) const {
  error.name = dataset_->name(error.index);
  return error;
}

double Loader::Engine::allowed_errors() const noexcept {
  if (options_.max_errors >= 1) return options_.max_errors;
  return std::max(1.0, std::floor(options_.max_errors * static_cast<double>(dataset_->size())));
}

// What could not be listed is lost in every epoch: it is in the list once, and counts against max_errors.
void Loader::Engine::count_losses() {
  error_count_ = losses();
  if (options_.max_errors == 0 || losses() == 0 || static_cast<double>(losses()) <= allowed_errors()) return;
  throw Error(ErrorKind::corrupt,
              format_text("{} parts of the data set could not be listed, more than {} allows ({}); the first: {}",
                          losses(), option("max_errors", fmt::format("{}", options_.max_errors)),
                          format_count(static_cast<std::uint64_t>(allowed_errors())),
                          dataset_->facts().losses.front().message()),
              format_text("`stoker check` names all of them; raise {} only if they are expected", option("max_errors")))
      .about("max_errors");
}

// Turns one bad sample too many into the batch's failure.
void Loader::Engine::check_error_limit_locked(Pending& pending) {
  if (options_.max_errors == 0 || pending.errors.empty()) return;
  const double allowed = allowed_errors();
  const std::uint64_t count = losses() + epoch_errors_ + pending.errors.size();
  if (static_cast<double>(count) <= allowed) return;
  pending.failure.emplace(
      0, Error(ErrorKind::corrupt,
               format_text("{} bad samples in epoch {}, more than {} allows ({}); the last: {}", count, pending.epoch,
                           option("max_errors", fmt::format("{}", options_.max_errors)),
                           format_count(static_cast<std::uint64_t>(allowed)), named(pending.errors.back()).message()),
               format_text("look at the list of errors; raise {} only if they are expected", option("max_errors")))
             .about("max_errors"));
}

// Everything the pool may hold is in the consumer's hands: waiting would never end.
void Loader::Engine::check_consumer_locked() {
  const Pending* const front = front_locked();
  if (front == nullptr || front->slab != nullptr || slabs_filling_ != 0) return;
  if (recipe_.varies() && front->rows_unmeasured != 0) return;
  const std::uint64_t need = slab_bytes_for(front->length);
  if (need > pool_->limit_bytes()) {
    throw Error(ErrorKind::unavailable,
                format_text("batch {} needs {}, more than the {} that {} {} leaves for batches", front->step,
                            format_bytes(need), format_bytes(pool_->limit_bytes()), option("memory_limit"),
                            format_bytes(options_.memory_limit)),
                format_text("raise {}, or lower {}", option("memory_limit"), option("batch_size")))
        .about("memory_limit");
  }
  if (!pool_->is_exhausted(need)) return;
  throw Error(
      ErrorKind::unavailable,
      format_text("no room for the next batch: the consumer still holds {} batches ({} of {} {})", pool_->count(),
                  format_bytes(pool_->used_bytes()), option("memory_limit"), format_bytes(options_.memory_limit)),
      format_text("drop each batch before asking for many more, copy what you keep ({} does it), or raise {}",
                  option("copy", "True"), option("memory_limit")))
      .about("memory_limit");
}

void Loader::Engine::check_progress_locked(Watch& watch, std::int64_t now) const {
  const std::uint64_t progress = progress_.load(std::memory_order_relaxed);
  if (progress != watch.progress) {
    watch.progress = progress;
    watch.progress_ns = now;
    return;
  }
  const std::int64_t idle = now - watch.progress_ns;
  if (options_.timeout.count() <= 0 || idle < options_.timeout.count()) return;
  const Delay delay = delay_locked();
  throw Error(ErrorKind::unavailable,
              fmt::format("no progress for {}: {}", format_duration(std::chrono::nanoseconds(idle)), delay.text),
              delay.hint);
}

Loader::Engine::Delay Loader::Engine::delay_locked() const {
  if (closed_ || draining_) {
    // Every unit that is out has to end: the oldest is named. close() ends the reads first, and then the workers.
    const Unit* oldest = nullptr;
    for (const auto& unit : unit_pool_) {
      if (unit->pending == nullptr) continue;
      const bool read = load_time(unit->pending->times[unit->first_row].read_ns) != 0;
      if (closed_ && ending_ != (read ? Ending::workers : Ending::reads)) continue;
      const auto place = [](const Unit& out) { return std::pair(out.pending->serial, out.first_row); };
      if (oldest == nullptr || place(*unit) < place(*oldest)) oldest = unit.get();
    }
    const char* const waits = closed_ ? "close() waits" : "the next epoch waits";
    if (oldest != nullptr) return delay_of_row(*oldest->pending, oldest->first_row, waits);
    return {fmt::format("{} for a thread to end", waits), "`timeout` sets how long to wait"};
  }
  const Pending* const front = front_locked();
  if (front == nullptr) return {"nothing was being read", "`timeout` sets how long to wait"};
  const auto first_without = [&](std::int64_t meter::RowTimes::*time) {
    std::uint64_t row = 0;
    while (row < front->times.size() && load_time(front->times[row].*time) != 0) ++row;
    return row;
  };
  // The rows of a batch whose length varies wait for one another before any is decoded.
  std::uint64_t row = front->slab == nullptr ? first_without(&meter::RowTimes::read_ns) : front->times.size();
  if (row == front->times.size()) row = first_without(&meter::RowTimes::done_ns);
  if (row == front->times.size()) return {"a batch is complete and not marked so", ""};
  return delay_of_row(*front, row, fmt::format("batch {} waits", front->step).c_str());
}

Loader::Engine::Delay Loader::Engine::delay_of_row(const Pending& pending, std::uint64_t row, const char* waits) const {
  const bool read = load_time(pending.times[row].read_ns) != 0;
  const std::uint64_t index = make_order(pending.epoch, 0).sample(pending.range.first + row);
  return {
      fmt::format("{} for `{}` (sample {}) in stage {}", waits, dataset_->name(index), index, read ? "prep" : "fetch"),
      read ? "look whether the workers get CPU time and whether that file is unusually large; `timeout` sets how "
             "long to wait"
           : "look at the storage under that file; `timeout` sets how long to wait"};
}

// Fewer workers while the consumer is the limit, more when it waits for them. Batches never change, only who makes
// them.
void Loader::Engine::adjust_workers_locked(const meter::WaitSplit& wait, std::int64_t compute_ns) {
  if (!auto_workers_) return;
  window_wait_ += wait;
  window_compute_ns_ += compute_ns;
  if (++window_batches_ < kAdjustEvery) return;
  const double total = static_cast<double>(std::max<std::int64_t>(1, window_compute_ns_ + window_wait_.total_ns()));
  const double waiting = static_cast<double>(window_wait_.total_ns()) / total;
  const double prep = static_cast<double>(window_wait_.prep_ns) / total;
  if (prep > 0.02 && active_workers_ < max_workers_) {
    active_workers_ = max_workers_;
    work_cv_.notify_all();
  } else if (waiting < 0.005 && active_workers_ > 1 && ready_batches_ >= options_.prefetch_factor) {
    --active_workers_;
    work_cv_.notify_all();  // the one that rests may just have been woken for work
  }
  window_wait_ = {};
  window_compute_ns_ = 0;
  window_batches_ = 0;
}

State Loader::Engine::state() const {
  const std::scoped_lock lock(mutex_);
  State state{epoch_, position_, options_.seed, options_.shuffle, dataset_->size(), dataset_->facts().fingerprint};
  if (step_ == order_->steps()) ++state.epoch, state.position = 0;
  return state;
}

void Loader::Engine::check_state(const State& state) const {
  if (state.size != dataset_->size() || state.fingerprint != dataset_->facts().fingerprint) {
    throw Error(ErrorKind::usage,
                fmt::format("the saved state belongs to another data set ({} samples; this one has {})", state.size,
                            dataset_->size()),
                "resume with the data set the state was saved with, or start a new run");
  }
  if (state.seed != options_.seed || state.shuffle != options_.shuffle) {
    throw Error(ErrorKind::usage,
                fmt::format("the saved state has seed {} and shuffle {}, this loader seed {} and shuffle {}",
                            state.seed, text(state.shuffle), options_.seed, text(options_.shuffle)),
                format_text("make the loader with the same {} and {}", option("seed"), option("shuffle")))
        .about(state.seed != options_.seed ? "seed" : "shuffle");
  }
  static_cast<void>(make_order(state.epoch, state.position));  // throws if the position lies beyond the data set
}

void Loader::Engine::load_state(const State& state, const Interrupted& interrupted) {
  check_state(state);
  start_epoch(state.epoch, state.position, interrupted);
}

Stats Loader::Engine::stats() const {
  const std::scoped_lock lock(mutex_);
  Stats stats;
  stats.samples = samples_;
  stats.batches = stats.steps = batches_;
  stats.decoded_bytes = decoded_bytes_;
  stats.running_s = static_cast<double>(run_ended_ns_ - run_started_ns_) * 1e-9;
  stats.compute_s = static_cast<double>(compute_ns_) * 1e-9;
  stats.wait = wait_;
  stats.first_batch_s = static_cast<double>(first_batch_ns_) * 1e-9;
  for (const auto& io : io_threads_) stats.fetch.add(io->counters);
  for (const auto& worker : workers_) stats.prep.add(worker->counters);
  if (consumer_worker_) stats.prep.add(consumer_worker_->counters);
  const auto minus = [](meter::StageTotals& a, const meter::StageTotals& b) {
    a.busy_s -= b.busy_s, a.input_wait_s -= b.input_wait_s, a.room_wait_s -= b.room_wait_s;
    a.items -= b.items, a.bytes -= b.bytes;
  };
  minus(stats.fetch, fetch_base_);
  minus(stats.prep, prep_base_);
  stats.encoded_bytes = stats.fetch.bytes;
  const std::int64_t now = meter::now_ns();
  stats.ready = ready_depth_.read(now);
  stats.bytes_ready = bytes_depth_.read(now);
  stats.num_workers = inline_ ? 0 : active_workers_;
  stats.io_threads = options_.io_threads;
  stats.memory_limit = options_.memory_limit;
  if (pool_) {
    const std::uint64_t room_size = room_ ? room_->capacity() + sweeps_.size() * sweep_bytes_ : 0;
    const SeekStore::Figures seek = seek_ ? seek_->figures() : SeekStore::Figures{};
    stats.seek_files = seek.files;
    stats.seek_bytes = seek.memory_bytes;
    const storage::RamStore::Figures ram = ram_ ? ram_->figures() : storage::RamStore::Figures{};
    stats.ram_bytes = ram.held_bytes;
    const std::uint64_t kept = allowance_.fixed_bytes + room_size + seek.memory_bytes + ram.memory_bytes;
    stats.memory_used = pool_->used_bytes() + working_->used_bytes() + kept;
    stats.memory_peak = std::max(pool_->peak_bytes() + working_->peak_bytes() + kept, recipe_.look_bytes());
    stats.slabs = pool_->count();
    stats.slabs_held = stats.slabs - slabs_filling_ - pool_->free_count();
    stats.slab_bytes = pool_->used_bytes();
  }
  stats.errors = error_count_;
  return stats;
}

void Loader::Engine::reset_stats() {
  const Stats now = stats();
  const std::scoped_lock lock(mutex_);
  const auto plus = [](meter::StageTotals& a, const meter::StageTotals& b) {
    a.busy_s += b.busy_s, a.input_wait_s += b.input_wait_s, a.room_wait_s += b.room_wait_s;
    a.items += b.items, a.bytes += b.bytes;
  };
  plus(fetch_base_, now.fetch);
  plus(prep_base_, now.prep);
  samples_ = batches_ = decoded_bytes_ = 0;
  compute_ns_ = 0;
  run_started_ns_ = run_ended_ns_ = 0;
  wait_ = {};
  const std::int64_t at = meter::now_ns();
  ready_depth_.start(at, ready_batches_);
  bytes_depth_.start(at, queued_rows_);
}

std::vector<SampleError> Loader::Engine::errors() const {
  std::vector<SampleError> all;
  const std::scoped_lock lock(mutex_);
  const std::vector<dataset::Loss>& lost = dataset_->facts().losses;
  all.reserve(std::min<std::uint64_t>(lost.size(), kMostListed) + errors_.size());
  for (std::size_t i = 0; i < std::min<std::uint64_t>(lost.size(), kMostListed); ++i) all.push_back(error_of(lost[i]));
  for (const SampleError& error : errors_) all.push_back(named(error));
  return all;
}

}  // namespace stoker::loader
