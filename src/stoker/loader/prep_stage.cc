#include "stoker/loader/prep_stage.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "stoker/base/hash.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/loader/error_list.h"
#include "stoker/os/thread.h"

namespace stoker::loader {
namespace {

constexpr std::uint32_t kReplacements = 16;  // tries for a stand-in before the row becomes zeros
constexpr RowResult kNoRoomToRead{failed(Code::no_memory, "no working memory to read it"), "read"};
constexpr RowResult kUnreadable{failed(Code::io, "it cannot be read"), "read"};
constexpr RowResult kTooLong{failed(Code::too_large, "its row is longer than a batch may be"), "transform"};

RowResult not_read(const storage::WholeRead& read) {
  return read.state == storage::WholeRead::State::no_room ? kNoRoomToRead : kUnreadable;
}

// The row as one run of bytes: as it lies, or copied to `scratch`. False: it has no room for the copy.
bool join_parts(std::span<const Part> parts, Scratch& scratch, codec::Bytes& whole) {
  std::size_t total = 0;
  const std::byte* first = nullptr;
  bool is_one_run = true;
  for (const Part& part : parts) {
    if (part.bytes.empty()) continue;
    if (first == nullptr) first = part.bytes.data();
    is_one_run = is_one_run && part.bytes.data() == first + total;
    total += part.bytes.size();
  }
  if (is_one_run) {
    whole = {first, total};
    return true;
  }
  const std::span<std::byte> into = scratch.take(total);
  if (into.size() != total) return false;
  std::size_t at = 0;
  for (const Part& part : parts) {
    if (!part.bytes.empty()) std::memcpy(into.data() + at, part.bytes.data(), part.bytes.size());
    at += part.bytes.size();
  }
  whole = into;
  return true;
}

}  // namespace

PrepStage::PrepStage(const Job& job, WorkQueue& work, BatchQueue& batches, UnitStore& units, SeekStore* seek,
                     Chunks chunks, Signals& signals)
    : job_(job),
      work_(work),
      batches_(batches),
      units_(units),
      seek_(seek),
      chunks_(chunks),
      signals_(signals),
      working_(job.memory.working, job.memory.allowance.working_bytes, [this] {
        { const std::scoped_lock lock(signals_.mutex); }  // a thread about to sleep has not looked yet, or sleeps
        signals_.workers.notify_all();
      }) {}

void PrepStage::add_workers_locked(int workers) {
  while (static_cast<int>(workers_.size()) < workers) {
    const int number = static_cast<int>(workers_.size());
    auto worker = std::make_unique<Worker>();
    worker->thread = os::start_thread([this, &self = *worker, number] {
      (void)os::bind_thread(job_.numa_cpus);
      loop(self, number);
    });
    workers_.push_back(std::move(worker));
    work_.add_worker_locked();
  }
}

void PrepStage::work_inline(Unit& unit) noexcept {
  const std::int64_t started = meter::now_ns();
  process(unit, consumer_);
  consumer_.counters.busy_ns.add(meter::now_ns() - started - std::exchange(consumer_.waits, {}).ns);
}

void PrepStage::join() {
  for (auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

void PrepStage::drop_memory_locked() noexcept {
  for (auto& worker : workers_) working_.give_back(worker->space);
  working_.give_back(consumer_.space);
  working_.unmap_free();
}

void PrepStage::add_to(meter::StageTotals& totals) const noexcept {
  for (const auto& worker : workers_) totals.add(worker->counters);
  totals.add(consumer_.counters);
}

void PrepStage::loop(Worker& self, int number) {
  std::int64_t now = meter::now_ns();
  while (true) {
    Unit* unit = nullptr;
    {
      std::unique_lock lock(signals_.mutex);
      signals_.workers.wait(lock, [&] {
        return signals_.stopping || (number < work_.active_locked() && !work_.is_empty_locked()) ||
               (working_.is_wanted() && self.space.arena.size() != 0);
      });
      if (signals_.stopping) return;
      working_.give_way(self.space);
      if (number < work_.active_locked()) unit = batches_.next_unit_locked();
    }
    const std::int64_t started = meter::now_ns();
    self.counters.input_wait_ns.add(started - now);
    now = started;
    if (unit == nullptr) continue;
    if (!process(*unit, self)) return;
    const std::int64_t ended = meter::now_ns();
    const std::int64_t waited = std::exchange(self.waits, {}).ns;
    self.counters.input_wait_ns.add(waited);
    self.counters.busy_ns.add(ended - now - waited);
    now = ended;
  }
}

// False: it failed for good. The unit is not retired then, so the engine cannot be drained any more.
bool PrepStage::process(Unit& unit, Worker& self) noexcept {
  try {
    process_rows(unit, self);
    return true;
  } catch (const std::exception& error) {
    if (signals_.stopping) return false;  // it was waiting for memory
    signals_.fail_for_good(Error(ErrorKind::internal, std::string("a worker failed: ") + error.what()));
    return false;
  }
}

void PrepStage::process_rows(Unit& unit, Worker& self) {
  Pending& pending = *unit.pending;
  if (pending.abandoned.load(std::memory_order_relaxed)) {
    units_.retire(unit);
  } else if (job_.recipe.varies() && !unit.measured) {
    measure_rows(unit, self);
  } else {
    make_rows(unit, self);
    self.counters.items.add(static_cast<std::int64_t>(unit.rows));
    batches_.rows_finished(pending, unit.rows);
    units_.retire(unit);  // last: a unit that is out keeps its batch from being recycled
  }
}

// Learns how long each row is; the unit then waits until the whole batch is measured and has a slab.
void PrepStage::measure_rows(Unit& unit, Worker& self) {
  Pending& pending = *unit.pending;
  std::uint64_t longest = 0;
  for (std::uint32_t i = 0; i < unit.rows; ++i) {
    ReadFault& fault = unit.faults[i];
    std::uint64_t length = 0;
    const auto measure = [&](codec::Bytes bytes) {
      const RowResult verdict = job_.recipe.measure(bytes, length);
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
      if (job_.options.on_error == OnError::replace &&
          !try_replacements(pending.epoch, pending.rows[unit.first_row + i].position, self,
                            [&](std::uint64_t, codec::Bytes other) { return measure(other); })) {
        length = 0;
      }
    }
    pending.rows[unit.first_row + i].room = length;
    longest = std::max(longest, length);
  }
  batches_.unit_measured(unit, longest);
}

RowResult PrepStage::make_row(const Pending& pending, std::uint64_t row, std::uint64_t index, codec::Bytes bytes,
                              std::uint64_t& length, Worker& self) {
  const Row& place = pending.rows[row];
  SampleKey key;
  key.seed = job_.options.seed;
  key.epoch = pending.epoch;
  key.id = place.index == index ? place.id : job_.dataset->id(index);
  // A given order may hold a sample twice in an epoch: each time is another draw. Where patches lie was decided by id.
  if (job_.is_given() && !job_.many_parts) key.id = mix(key.id, place.position);
  job_.recipe.read_values(*job_.dataset, index, key);
  if (job_.many_parts) {
    dataset::locate_parts(*job_.dataset, index, {key.seed, key.epoch, key.id}, self.parts);
    key.parts = self.parts;
    key.part_bytes = self.part_bytes;
    key.base_index = job_.dataset->base_index(index);
    key.chunks = chunks_;
    key.waits = &self.waits;
  }
  return job_.recipe.make(bytes, key, batches_.slot_of(pending, row), length, self.space.scratch, seek_);
}

// Runs make() in as much working memory as it turns out to want, if one sample may have so much. Waiting for it does
// not depend on the sample, and giving up does not depend on the others: see working_memory.h.
template <typename Make>
RowResult PrepStage::make_with_room(Worker& self, const Make& make) {
  working_.give_way(self.space);
  self.space.scratch.reset();
  RowResult verdict = make();
  while (verdict.result.code == Code::no_memory) {
    const std::uint64_t wanted = self.space.scratch.wanted_bytes();
    if (wanted == 0 || wanted > working_.most_bytes()) break;
    working_.provide(self.space, wanted);
    verdict = make();
  }
  return verdict;
}

// The file changed its size since it was listed: as it is now is what counts. A special file has content and size 0.
bool PrepStage::is_stale(const Unit& unit, std::uint32_t i) const noexcept {
  const storage::Location location = job_.dataset->location(unit.pending->rows[unit.first_row + i].index);
  const ReadFault& fault = unit.faults[i];
  return fault.size_changed && !job_.many_parts && location.is_file() &&
         (location.bytes != 0 || fault.actual_bytes != 0);
}

// take(bytes) of a unit's row, with room. Code::io: the bytes could not be read, and the row's fault says why.
template <typename Take>
RowResult PrepStage::with_bytes(Unit& unit, std::uint32_t i, Worker& self, const Take& take) {
  const bool stale = is_stale(unit, i);
  if (unit.faults[i].is_any() && !stale) return kUnreadable;
  return make_with_room(self, [&] {
    self.part_bytes.clear();
    if (job_.recipe.facts().takes_parts) {
      for (const Part& part : unit.parts) self.part_bytes.push_back(part.bytes);
      return take({});
    }
    if (job_.many_parts) {
      codec::Bytes whole;
      return join_parts(unit.parts, self.space.scratch, whole) ? take(whole) : kNoRoomToRead;
    }
    if (!stale) return take(unit.bytes[i]);
    const std::uint64_t index = unit.pending->rows[unit.first_row + i].index;
    const storage::WholeRead again = dataset::read_sample(*job_.dataset, index, self.space.scratch);
    if (again.ok()) return take(again.bytes);
    if (again.state == storage::WholeRead::State::failed) {
      unit.faults[i] = {};
      unit.faults[i].failure = std::make_shared<storage::Failure>(again.failure);
    }
    return not_read(again);
  });
}

void PrepStage::make_rows(Unit& unit, Worker& self) {
  Pending& pending = *unit.pending;
  for (std::uint32_t i = 0; i < unit.rows; ++i) {
    const std::uint64_t row = unit.first_row + i;
    Row& place = pending.rows[row];
    const RowResult verdict = with_bytes(unit, i, self, [&](codec::Bytes bytes) {
      if (unit.in_place) return RowResult{};  // already there
      return make_row(pending, row, place.index, bytes, place.length, self);
    });
    if (!verdict.result.ok() && signals_.stopping) {
      // Its chunks did not come because the loader closes: that is no fault of the sample.
    } else if (verdict.result.code == Code::io) {
      row_failed(pending, row, describe_unread(job_, place.index, unit.faults[i]), self);
    } else if (!verdict.result.ok()) {
      row_failed(pending, row, describe_unmade(job_, verdict, self.space.scratch.wanted_bytes()), self);
    }
    if (const std::int64_t until = std::exchange(self.waits.until_ns, 0); until != 0) {
      std::atomic_ref(pending.times[row].read_ns).store(until, std::memory_order_relaxed);
    }
    std::atomic_ref(pending.times[row].done_ns).store(meter::now_ns(), std::memory_order_relaxed);
    signals_.progress.fetch_add(1, std::memory_order_relaxed);
  }
}

bool PrepStage::fits_batch(std::uint64_t length) const noexcept {
  return !job_.recipe.varies() || job_.slab_bytes_for(length) <= job_.memory.allowance.batch_bytes;
}

void PrepStage::make_zero(Pending& pending, std::uint64_t row) {
  const Slot slot = batches_.slot_of(pending, row);
  for (std::size_t o = 0; o < job_.recipe.outputs().size(); ++o) {
    std::memset(slot.outputs[o], 0, job_.recipe.row_bytes(o, slot.length));
  }
  pending.rows[row].valid = false;
  pending.rows[row].length = 0;
}

void PrepStage::row_failed(Pending& pending, std::uint64_t row, BadRow bad, Worker& self) {
  Row& place = pending.rows[row];
  SampleError& error = bad.error;
  error.index = place.index;
  error.id = place.id;
  error.epoch = pending.epoch;
  error.position = place.position;

  // A machine out of descriptors or memory says nothing about the sample: no policy hides it.
  const OnError policy = bad.ends_the_run ? OnError::raise : job_.options.on_error;
  error.action = name(policy);
  switch (policy) {
    case OnError::raise: {
      const std::scoped_lock lock(pending.errors_mutex);
      if (!pending.failure || row < pending.failure->first) {
        pending.failure.emplace(row, error_of_row(bad, named(*job_.dataset, error).message()));
      }
      make_zero(pending, row);
      break;
    }
    case OnError::skip:
      place.skipped = true;
      break;
    case OnError::replace:
      if (!replace_row(pending, row, self)) {
        make_zero(pending, row);
        error.action = "zero";
      }
      break;
    case OnError::zero:
      make_zero(pending, row);
      break;
  }
  const std::scoped_lock lock(pending.errors_mutex);
  pending.errors.push_back(std::move(error));
}

// Offers the stand-ins for a position in their order until one is taken. False: none was.
bool PrepStage::try_replacements(std::uint64_t epoch, std::uint64_t position, Worker& self, const TakeSample& take) {
  const dataset::Order order = job_.make_order(epoch, 0);
  for (std::uint32_t attempt = 0; attempt < kReplacements; ++attempt) {
    const std::uint64_t index = order.replacement(position, attempt);
    const RowResult verdict = make_with_room(self, [&] {
      Scratch& scratch = self.space.scratch;
      self.part_bytes.clear();  // a stand-in is read whole
      const storage::WholeRead sample =
          dataset::read_row(*job_.dataset, index, {job_.options.seed, epoch, job_.dataset->id(index)}, scratch);
      if (!sample.ok()) return not_read(sample);
      // Where its bytes are mapped it could do with less, but which one is taken must not depend on the storage.
      const storage::Source* const source = job_.dataset->location(index).source;
      const bool is_mapped = !job_.many_parts && source != nullptr && !source->view().empty();
      if (is_mapped && scratch.take(sample.bytes.size()).empty()) return kNoRoomToRead;
      return take(index, sample.bytes);
    });
    if (verdict.result.ok()) return true;
  }
  return false;
}

bool PrepStage::replace_row(Pending& pending, std::uint64_t row, Worker& self) {
  Row& place = pending.rows[row];
  return try_replacements(pending.epoch, place.position, self, [&](std::uint64_t index, codec::Bytes bytes) {
    std::uint64_t length = 0;
    RowResult verdict = job_.recipe.varies() ? job_.recipe.measure(bytes, length) : RowResult{};
    if (verdict.result.ok() && length > batches_.slot_of(pending, row).length)
      verdict.result = failed(Code::too_large, "longer than its batch");
    if (verdict.result.ok()) verdict = make_row(pending, row, index, bytes, place.length, self);
    if (verdict.result.ok()) {
      place.index = index;
      place.id = job_.dataset->id(index);
      place.label = job_.dataset->label(index);
    }
    return verdict;
  });
}

}  // namespace stoker::loader
