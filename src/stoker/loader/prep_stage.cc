// The prep stage: workers turn the bytes of each row into its place in the slab; what cannot be is dealt with by
// policy.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/loader/engine.h"

namespace stoker::loader {
namespace {

constexpr std::uint32_t kReplacements = 16;    // tries for a stand-in before the row becomes zeros
constexpr std::size_t kLargeBatch = 8 * kMiB;  // with those that lie ready, more than caches hold
constexpr RowResult kNoRoomToRead{failed(Code::no_memory, "no working memory to read it"), "read"};
constexpr RowResult kUnreadable{failed(Code::io, "it cannot be read"), "read"};
constexpr RowResult kTooLong{failed(Code::too_large, "its row is longer than a batch may be"), "transform"};

RowResult not_read(const storage::WholeRead& read) {
  return read.state == storage::WholeRead::State::no_room ? kNoRoomToRead : kUnreadable;
}

ErrorKind kind_of(const RowResult& verdict) {
  switch (verdict.result.code) {
    case Code::unsupported:
    case Code::mismatch:
      return ErrorKind::unsupported;
    case Code::too_large:
    case Code::no_memory:
      return ErrorKind::unavailable;
    default:
      return ErrorKind::corrupt;
  }
}

OptionName other_policies() {
  return option("on_error", {"skip", "replace", "zero"});
}

Error error_of_row(const BadRow& bad, const Text& message) {
  if (!bad.is_skippable) return Error(bad.kind, message, bad.hint);
  const Text hint = bad.hint.empty() ? format_text("use {} to go on without it", other_policies()) : bad.hint;
  return Error(bad.kind, message, hint).about("on_error");
}

}  // namespace

Unit* Loader::Engine::pop_locked() {
  Unit* const unit = queue_.pop();
  if (unit == nullptr) return nullptr;
  queued_rows_ -= unit->rows;
  bytes_depth_.change(meter::now_ns(), queued_rows_);
  assign_slabs_locked();
  return unit;
}

void Loader::Engine::work_loop(Worker& self, int number) {
  std::int64_t now = meter::now_ns();
  while (true) {
    Unit* unit = nullptr;
    {
      std::unique_lock lock(mutex_);
      work_cv_.wait(lock, [&] {
        return stopping_ || (number < active_workers_ && !queue_.empty()) ||
               (working_->is_wanted() && self.space.arena.size() != 0);
      });
      if (stopping_) return;
      working_->give_way(self.space);
      if (number < active_workers_) unit = pop_locked();
    }
    const std::int64_t started = meter::now_ns();
    self.counters.input_wait_ns.add(started - now);
    now = started;
    if (unit == nullptr) continue;
    if (!process(*unit, self)) return;
    const std::int64_t ended = meter::now_ns();
    self.counters.busy_ns.add(ended - now);
    now = ended;
  }
}

// False: it failed for good. The unit is not retired then, so the engine cannot be drained any more.
bool Loader::Engine::process(Unit& unit, Worker& self) noexcept {
  try {
    process_rows(unit, self);
    return true;
  } catch (const std::exception& error) {
    if (stopping_) return false;  // it was waiting for memory
    fail_for_good(Error(ErrorKind::internal, std::string("a worker failed: ") + error.what()));
    return false;
  }
}

void Loader::Engine::fail_for_good(Error error) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (!broken_) broken_ = std::move(error);
  }
  consumer_cv_.notify_all();
}

void Loader::Engine::process_rows(Unit& unit, Worker& self) {
  Pending& pending = *unit.pending;
  if (pending.abandoned.load(std::memory_order_relaxed)) {
    retire(unit);
  } else if (recipe_.varies() && !unit.measured) {
    measure_rows(unit, self);
  } else {
    make_rows(unit, self);
    self.counters.items.add(static_cast<std::int64_t>(unit.rows));
    rows_finished(pending, unit.rows);  // before retire: a unit that is out keeps its batch from being recycled
    retire(unit);
  }
}

// Learns how long each row is; the unit then waits until the whole batch is measured and has a slab.
void Loader::Engine::measure_rows(Unit& unit, Worker& self) {
  Pending& pending = *unit.pending;
  std::uint64_t longest = 0;
  for (std::uint32_t i = 0; i < unit.rows; ++i) {
    ReadFault& fault = unit.faults[i];
    std::uint64_t length = 0;
    const auto measure = [&](codec::Bytes bytes) {
      const RowResult verdict = recipe_.measure(bytes, length);
      return verdict.result.ok() && !fits_batch(length) ? kTooLong : verdict;
    };
    const RowResult verdict = with_bytes(unit, i, self, measure);
    if (!verdict.result.ok()) {  // it fails again, with its name, when it is made
      if (verdict.result.code == Code::too_large) {
        fault.too_long = length;
        unit.has_fault = true;
      }
      length = 0;
      // The batch has room for the stand-in, so that the same one fits whatever else is in the batch.
      if (options_.on_error == OnError::replace &&
          !try_replacements(pending.epoch, pending.rows[unit.first_row + i].position, self,
                            [&](std::uint64_t, codec::Bytes other) { return measure(other); })) {
        length = 0;
      }
    }
    longest = std::max(longest, length);
  }
  unit.measured = true;
  const std::scoped_lock lock(mutex_);
  if (pending.abandoned) {
    queue_.push(&unit);
    queued_rows_ += unit.rows;
    work_cv_.notify_all();  // this worker may have been told to rest
    return;
  }
  pending.parked.push_back(&unit);
  pending.length = std::max(pending.length, longest);
  pending.rows_unmeasured -= unit.rows;
  if (pending.rows_unmeasured == 0) assign_slabs_locked();
}

Slot Loader::Engine::slot_of(const Pending& pending, std::uint64_t row) const noexcept {
  const SlabLayout layout = lay_out(recipe_, options_.batch_size, pending.length);
  Slot slot;
  slot.length = pending.length;
  slot.past_cache = layout.total >= kLargeBatch;
  for (std::size_t o = 0; o < recipe_.outputs().size(); ++o) {
    slot.outputs[o] = pending.slab->arena.data() + layout.outputs[o] + row * layout.row_bytes[o];
  }
  return slot;
}

RowResult Loader::Engine::make_row(const Pending& pending, std::uint64_t row, std::uint64_t index, codec::Bytes bytes,
                                   std::uint64_t& length, Worker& self) {
  const Row& place = pending.rows[row];
  SampleKey key{options_.seed, pending.epoch, place.index == index ? place.id : dataset_->id(index), {}};
  recipe_.read_values(*dataset_, index, key);
  return recipe_.make(bytes, key, slot_of(pending, row), length, self.space.scratch, seek_.get());
}

// Runs make() in as much working memory as it turns out to want, if one sample may have so much. Waiting for it does
// not depend on the sample, and giving up does not depend on the others: see working_memory.h.
template <typename Make>
RowResult Loader::Engine::make_with_room(Worker& self, const Make& make) {
  working_->give_way(self.space);
  self.space.scratch.reset();
  RowResult verdict = make();
  while (verdict.result.code == Code::no_memory) {
    const std::uint64_t wanted = self.space.scratch.wanted_bytes();
    if (wanted == 0 || wanted > working_->most_bytes()) break;
    working_->provide(self.space, wanted);
    verdict = make();
  }
  return verdict;
}

// The file changed its size since it was listed: as it is now is what counts. A special file has content and size 0.
bool Loader::Engine::is_stale(const Unit& unit, std::uint32_t i) const noexcept {
  const storage::Location location = dataset_->location(unit.pending->rows[unit.first_row + i].index);
  const ReadFault& fault = unit.faults[i];
  return fault.size_changed && !many_parts_ && location.is_file() && (location.bytes != 0 || fault.actual_bytes != 0);
}

// take(bytes) of a unit's row, with room. Code::io: the bytes could not be read, and the row's fault says why.
template <typename Take>
RowResult Loader::Engine::with_bytes(Unit& unit, std::uint32_t i, Worker& self, const Take& take) {
  const bool stale = is_stale(unit, i);
  if (unit.faults[i].is_any() && !stale) return kUnreadable;
  return make_with_room(self, [&] {
    if (many_parts_) {
      codec::Bytes whole;
      return join_parts(unit.parts, self.space.scratch, whole) ? take(whole) : kNoRoomToRead;
    }
    if (!stale) return take(unit.bytes[i]);
    const std::uint64_t index = unit.pending->rows[unit.first_row + i].index;
    const storage::WholeRead again = dataset::read_sample(*dataset_, index, self.space.scratch);
    if (again.ok()) return take(again.bytes);
    if (again.state == storage::WholeRead::State::failed) {
      unit.faults[i] = {};
      unit.faults[i].failure = std::make_shared<storage::Failure>(again.failure);
    }
    return not_read(again);
  });
}

void Loader::Engine::make_rows(Unit& unit, Worker& self) {
  Pending& pending = *unit.pending;
  for (std::uint32_t i = 0; i < unit.rows; ++i) {
    const std::uint64_t row = unit.first_row + i;
    Row& place = pending.rows[row];
    const RowResult verdict = with_bytes(unit, i, self, [&](codec::Bytes bytes) {
      if (unit.in_place) return RowResult{};  // already there
      return make_row(pending, row, place.index, bytes, place.length, self);
    });
    if (verdict.result.code == Code::io) {
      row_failed(pending, row, describe(place.index, unit.faults[i]), self);
    } else if (!verdict.result.ok()) {
      row_failed(pending, row, describe(verdict, self), self);
    }
    std::atomic_ref(pending.times[row].done_ns).store(meter::now_ns(), std::memory_order_relaxed);
    progress_.fetch_add(1, std::memory_order_relaxed);
  }
}

bool Loader::Engine::fits_batch(std::uint64_t length) const noexcept {
  return !recipe_.varies() || slab_bytes_for(length) <= allowance_.batch_bytes;
}

// Says what a sample needs that it cannot have, and the memory_limit with which it could. `batch_bytes`: its batch will
// need so much besides.
void Loader::Engine::explain_need(BadRow& bad, std::string_view what, std::uint64_t bytes,
                                  std::uint64_t Allowance::*share, std::uint64_t batch_bytes) const {
  const std::uint64_t enough = enough_limit(demand(), [&](const Allowance& allowance) {
    return allowance.*share >= bytes && allowance.batch_bytes >= batch_bytes;
  });
  bad.error.cause =
      format_text("{} needs {}, more than the {} that {} {} leaves for it", what, format_bytes(bytes),
                  format_bytes(allowance_.*share), option("memory_limit"), format_bytes(options_.memory_limit));
  bad.kind = ErrorKind::unavailable;
  if (enough == 0) return;
  const std::string limit = fmt::format("{}MiB", (enough + kMiB - 1) / kMiB);
  bad.error.cause = format_text("{}; {} is enough", bad.error.cause, option("memory_limit", limit));
  bad.hint = format_text("raise {} to {}, or use {}", option("memory_limit"), limit, other_policies());
}

BadRow Loader::Engine::describe(std::uint64_t index, const ReadFault& fault) const {
  BadRow bad;
  SampleError& error = bad.error;
  error.stage = "read";
  if (fault.too_large) {
    const std::uint64_t batch_bytes = recipe_.varies() ? slab_bytes_for(recipe_.length_of(fault.actual_bytes)) : 0;
    explain_need(bad, "reading it", fault.actual_bytes, &Allowance::encoded_bytes, batch_bytes);
  } else if (fault.too_long != 0) {
    error.stage = "transform";
    explain_need(bad, fmt::format("a batch of {} rows of its length", format_count(options_.batch_size)),
                 slab_bytes_for(fault.too_long), &Allowance::batch_bytes);
  } else if (fault.size_changed && many_parts_) {
    error.cause =
        fmt::format("it lies beyond the end of its file, which has {} bytes", format_count(fault.actual_bytes));
  } else if (fault.size_changed) {
    error.cause = dataset::size_changed_cause(dataset_->location(index).bytes, fault.actual_bytes);
  } else {
    const storage::Failure failure = fault.failure ? *fault.failure : storage::failure_of(fault.error_number);
    error.cause = failure.text;
    bad.kind = failure.kind;
    bad.ends_the_run = failure.ends_the_run;
    if (failure.ends_the_run || !failure.hint.empty()) {
      bad.hint = failure.hint;
      bad.is_skippable = false;
    }
  }
  if (many_parts_ && fault.too_long == 0 && !fault.too_large) {
    error.cause = format_text("part {}: {}", fault.part + 1, error.cause);
  }
  return bad;
}

BadRow Loader::Engine::describe(const RowResult& verdict, const Worker& self) const {
  BadRow bad;
  SampleError& error = bad.error;
  error.stage = verdict.stage;
  error.cause = cause_of(verdict.result);
  if (verdict.result.offset != kNoOffset) error.offset = static_cast<std::int64_t>(verdict.result.offset);
  bad.kind = kind_of(verdict);
  if (const std::uint64_t wanted = self.space.scratch.wanted_bytes();
      verdict.result.code == Code::no_memory && wanted != 0) {
    explain_need(bad, "working memory for it", wanted, &Allowance::working_bytes);
  }
  return bad;
}

void Loader::Engine::row_failed(Pending& pending, std::uint64_t row, BadRow bad, Worker& self) {
  Row& place = pending.rows[row];
  SampleError& error = bad.error;
  error.index = place.index;
  error.id = place.id;
  error.epoch = pending.epoch;
  error.position = place.position;

  const auto make_zero = [&] {
    const Slot slot = slot_of(pending, row);
    for (std::size_t o = 0; o < recipe_.outputs().size(); ++o) {
      std::memset(slot.outputs[o], 0, recipe_.row_bytes(o, pending.length));
    }
    place.valid = false;
    place.length = 0;
  };
  // A machine out of descriptors or memory says nothing about the sample: no policy hides it.
  const OnError policy = bad.ends_the_run ? OnError::raise : options_.on_error;
  error.action = name(policy);
  switch (policy) {
    case OnError::raise: {
      const std::scoped_lock lock(pending.errors_mutex);
      if (!pending.failure || row < pending.failure->first) {
        pending.failure.emplace(row, error_of_row(bad, named(error).message()));
      }
      make_zero();
      break;
    }
    case OnError::skip:
      place.skipped = true;
      break;
    case OnError::replace:
      if (!replace_row(pending, row, self)) {
        make_zero();
        error.action = "zero";
      }
      break;
    case OnError::zero:
      make_zero();
      break;
  }
  const std::scoped_lock lock(pending.errors_mutex);
  pending.errors.push_back(std::move(error));
}

// Offers the stand-ins for a position in their order until one is taken. False: none was.
bool Loader::Engine::try_replacements(std::uint64_t epoch, std::uint64_t position, Worker& self,
                                      const TakeSample& take) {
  const dataset::Order order = make_order(epoch, 0);
  for (std::uint32_t attempt = 0; attempt < kReplacements; ++attempt) {
    const std::uint64_t index = order.replacement(position, attempt);
    const RowResult verdict = make_with_room(self, [&] {
      Scratch& scratch = self.space.scratch;
      const storage::WholeRead sample =
          dataset::read_row(*dataset_, index, {options_.seed, epoch, dataset_->id(index)}, scratch);
      if (!sample.ok()) return not_read(sample);
      // Where its bytes are mapped it could do with less, but which one is taken must not depend on the storage.
      const storage::Source* const source = dataset_->location(index).source;
      const bool is_mapped = !many_parts_ && source != nullptr && !source->view().empty();
      if (is_mapped && scratch.take(sample.bytes.size()).empty()) return kNoRoomToRead;
      return take(index, sample.bytes);
    });
    if (verdict.result.ok()) return true;
  }
  return false;
}

bool Loader::Engine::replace_row(Pending& pending, std::uint64_t row, Worker& self) {
  Row& place = pending.rows[row];
  return try_replacements(pending.epoch, place.position, self, [&](std::uint64_t index, codec::Bytes bytes) {
    std::uint64_t length = 0;
    RowResult verdict = recipe_.varies() ? recipe_.measure(bytes, length) : RowResult{};
    if (verdict.result.ok() && length > pending.length)
      verdict.result = failed(Code::too_large, "longer than its batch");
    if (verdict.result.ok()) verdict = make_row(pending, row, index, bytes, place.length, self);
    if (verdict.result.ok()) {
      place.index = index;
      place.id = dataset_->id(index);
      place.label = dataset_->label(index);
    }
    return verdict;
  });
}

// Gives the unit's room and the unit back.
void Loader::Engine::retire(Unit& unit) {
  if (unit.block.data != nullptr) room_->give_back(unit.block);
  const bool sweep_is_free = unit.sweep != nullptr && leave(*unit.sweep);
  bool drained = false, wake = unit.block.data != nullptr || unit.in_place || sweep_is_free;
  {
    const std::scoped_lock lock(mutex_);
    free_unit_locked(unit);
    drained = units_out_ == 0;
    // A unit alone is no room for a read. While workers have more to do, readers sleep until there are some: a wake per
    // unit takes the core from a worker each time (rows in memory: 15 % of all CPU).
    wake = wake || queue_.size() <= workers_.size() || free_units_.size() % (unit_pool_.size() / 4 + 1) == 0;
  }
  progress_.fetch_add(1, std::memory_order_relaxed);
  if (drained) consumer_cv_.notify_all();
  if (wake) wake_readers();
}

void Loader::Engine::free_unit_locked(Unit& unit) {
  unit.pending = nullptr;
  free_units_.push_back(&unit);
  --units_out_;
}

void Loader::Engine::rows_finished(Pending& pending, std::uint64_t count) {
  if (pending.rows_left.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  if (pending.abandoned.load(std::memory_order_relaxed)) return;
  close_batch(pending);
}

// Every row is there: takes the skipped ones out, writes labels and ids, and tells the consumer.
void Loader::Engine::close_batch(Pending& pending) {
  std::byte* const base = pending.slab->arena.data();
  const SlabLayout layout = lay_out(recipe_, options_.batch_size, pending.length);
  auto* const labels = reinterpret_cast<std::int64_t*>(base + layout.labels);
  auto* const real_labels = reinterpret_cast<float*>(base + layout.real_labels);
  auto* const ids = reinterpret_cast<std::int64_t*>(base + layout.ids);
  auto* const indices = reinterpret_cast<std::int64_t*>(base + layout.indices);
  auto* const lengths = reinterpret_cast<std::int64_t*>(base + layout.lengths);
  auto* const valid = reinterpret_cast<std::uint8_t*>(base + layout.valid);
  const std::size_t label_count = recipe_.label_count();
  std::uint64_t to = 0;
  for (std::uint64_t from = 0; from < pending.rows.size(); ++from) {
    const Row& row = pending.rows[from];
    if (row.skipped) continue;
    if (to != from) {
      for (std::size_t o = 0; o < recipe_.outputs().size(); ++o) {
        std::byte* const rows = base + layout.outputs[o];
        std::memcpy(rows + to * layout.row_bytes[o], rows + from * layout.row_bytes[o], layout.row_bytes[o]);
      }
    }
    for (std::size_t c = 0; c < label_count; ++c) {
      const dataset::Label label = label_count == 1 ? row.label : dataset_->label_at(row.index, c);
      labels[to * label_count + c] = label.integer;
      real_labels[to * label_count + c] = label.real;
    }
    ids[to] = static_cast<std::int64_t>(row.id);
    indices[to] = static_cast<std::int64_t>(row.index);
    lengths[to] = static_cast<std::int64_t>(row.length);
    valid[to] = row.valid ? 1 : 0;
    ++to;
  }
  pending.kept = to;
  std::sort(pending.errors.begin(), pending.errors.end(),
            [](const SampleError& a, const SampleError& b) { return a.position < b.position; });
  {
    const std::scoped_lock lock(mutex_);
    pending.ready = true;
    ready_depth_.change(meter::now_ns(), ++ready_batches_);
  }
  consumer_cv_.notify_all();
}

// Slabs go to batches in their order, at most prefetch_factor + 1 at a time to batches not yet handed out.
void Loader::Engine::assign_slabs_locked() {
  if (stopping_) return;
  bool more_work = false;
  for (Pending* pending : pendings_) {
    if (pending->slab != nullptr) continue;
    if (pending->range.count == 0 && pending->ready) continue;
    if (pending->abandoned) continue;
    if (recipe_.varies() && pending->rows_unmeasured != 0) break;
    // Not before there is something to put into it and somebody who would otherwise be idle: a fast consumer then
    // needs fewer slabs, which stay in the cache (rows of 150 KB: 1.6 times the rate with three slabs instead of five).
    if (!in_place_ && (pending->parked.empty() || queue_.size() >= static_cast<std::size_t>(max_workers_))) break;
    if (slabs_filling_ > options_.prefetch_factor) break;
    Slab* slab = nullptr;
    try {
      slab = pool_->acquire(slab_bytes_for(pending->length));
    } catch (const Error& error) {
      if (!fatal_) fatal_ = error;
      consumer_cv_.notify_all();
    }
    if (slab == nullptr) break;
    pending->slab = slab;
    ++slabs_filling_;
    for (Unit* unit : pending->parked) queue_.push(unit), queued_rows_ += unit->rows;
    more_work = more_work || !pending->parked.empty() || in_place_;
    pending->parked.clear();
  }
  if (!more_work) return;
  bytes_depth_.change(meter::now_ns(), queued_rows_);
  work_cv_.notify_all();
  if (inline_) consumer_cv_.notify_all();
  if (in_place_) {
    ++admissions_;
    io_cv_.notify_all();
    for (auto& io : io_threads_) {
      if (io->refused.exchange(false, std::memory_order_relaxed)) io->fetcher->wake();
    }
  }
}

}  // namespace stoker::loader
