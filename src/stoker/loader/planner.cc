#include "stoker/loader/planner.h"

#include <algorithm>
#include <utility>

namespace stoker::loader {

Planner::Planner(const Job& job, const RowBytes& row_bytes, BatchQueue& batches, UnitStore& units, Signals& signals,
                 GivenOrder* given) noexcept
    : job_(job), row_bytes_(row_bytes), batches_(batches), units_(units), signals_(signals), given_(given) {}

void Planner::start(const dataset::Order& order, std::uint64_t epoch, std::uint64_t step, std::uint64_t serial) {
  const std::scoped_lock plan(mutex_);
  order_.emplace(order);
  epoch_ = epoch;
  step_ = step;
  serial_ = serial;
  sweep_most_ = std::min(job_.memory.sweep, job_.memory.first_sweep);
  stopped_ = false;
  batches_.begin(epoch);
}

void Planner::set_end(std::uint64_t serial) {
  const std::scoped_lock plan(mutex_);
  end_ = serial;
}

void Planner::stop() {
  const std::scoped_lock plan(mutex_);
  const std::scoped_lock lock(signals_.mutex);
  stopped_ = true;
  if (stalled_ != nullptr) units_.free_locked(*std::exchange(stalled_, nullptr));
  if (sweep_ != nullptr) {
    for (Unit* const unit : sweep_->units) units_.free_locked(*unit);
    units_.free_locked(*std::exchange(sweep_, nullptr));
  }
  pending_ = nullptr;
  taken_.reset();
}

std::optional<std::uint64_t> Planner::epoch() {
  const std::scoped_lock plan(mutex_);
  return stopped_ ? std::optional<std::uint64_t>{} : epoch_;
}

bool Planner::is_last_epoch() const noexcept {
  return job_.options.epochs != 0 && epoch_ + 1 >= job_.options.epochs;
}

bool Planner::is_at_end() const {
  if (given_ != nullptr) return serial_ >= end_ || (!taken_ && given_->is_over());
  return serial_ >= end_ || (step_ == order_->steps() && is_last_epoch());
}

// Opens the next batch of the plan, if there may be one more.
bool Planner::open_batch() {
  if (serial_ >= end_) return false;
  if (given_ != nullptr) return open_given_batch();
  while (step_ == order_->steps()) {
    if (is_last_epoch()) return false;
    dataset::Order next = job_.make_order(epoch_ + 1, 0);
    if (next.steps() == 0) return false;
    order_.emplace(next);
    ++epoch_;
    step_ = 0;
  }
  Pending* const pending = batches_.open({.serial = serial_,
                                          .epoch = epoch_,
                                          .step = step_,
                                          .position_after = order_->position_after(step_),
                                          .range = order_->batch(step_)});
  if (pending == nullptr) return false;
  ++serial_;
  ++step_;
  pending_ = pending;
  row_ = 0;
  return true;
}

// The same of the next batch that the consumer gave.
bool Planner::open_given_batch() {
  if (!taken_) taken_ = given_->take();
  if (!taken_) return false;
  const std::uint64_t count = taken_->indices.size();
  Pending* const pending = batches_.open({.serial = serial_,
                                          .epoch = epoch_,
                                          .step = step_,
                                          .position_after = taken_->position + count,
                                          .range = {taken_->position, count, count},
                                          .given = &taken_->indices});
  if (pending == nullptr) return false;
  taken_.reset();
  ++serial_;
  ++step_;
  pending_ = pending;
  row_ = 0;
  return true;
}

std::uint64_t Planner::sample_at(std::uint64_t position) const noexcept {
  return given_ != nullptr ? pending_->given[row_] : order_->sample(position);
}

// Whether the plan has a next row now.
bool Planner::has_row() {
  while (pending_ == nullptr || row_ == pending_->range.count) {
    if (!open_batch()) return false;
  }
  return true;
}

// All that the data set knows of a row, looked up once: in a shuffled order each look is a cache miss.
const Row& Planner::plan_row(std::uint64_t position, std::uint64_t index) {
  Row& row = pending_->rows[row_];
  row.position = position;
  row.valid = row_ < pending_->range.valid;
  row.index = index;
  row.id = job_.dataset->id(index);
  row.label = job_.dataset->label(index);
  return row;
}

// The next rows of the plan as a unit without room yet.
Unit* Planner::plan_unit() {
  if (!has_row()) return nullptr;
  Pending& pending = *pending_;
  Unit* const unit = units_.take(pending, row_);
  if (unit == nullptr) return nullptr;
  while (row_ < pending.range.count && unit->rows < job_.memory.unit_rows) {
    const std::uint64_t position = pending.range.first + row_;
    const Row& row = plan_row(position, sample_at(position));
    const RowBytes::Need need = row_bytes_.need_of(row, pending.epoch);
    ReadFault fault;
    // Wherever it lies: every storage gives the same rows.
    fault.too_large = need.bytes > job_.memory.allowance.encoded_bytes;
    if (unit->rows > 0 && !fault.too_large && unit->block_bytes + need.room > job_.memory.unit) break;
    if (unit->rows > 0 && job_.in_place && (unit->rows + 1) * need.bytes > job_.memory.unit) break;
    if (fault.too_large) {
      unit->has_fault = true;
      fault.actual_bytes = need.bytes;
    } else {
      unit->block_bytes += need.room;
    }
    unit->faults[unit->rows] = fault;
    unit->bytes[unit->rows] = {};
    ++unit->rows;
    ++row_;
  }
  return unit;
}

// Takes room for the unit's bytes: in the room for encoded bytes, or in the batch's slab.
bool Planner::admit(Unit& unit) {
  return unit.in_place ? batches_.has_slab(*unit.pending) : units_.take_room(unit);
}

Unit* Planner::claim() {
  const std::scoped_lock plan(mutex_);
  if (stopped_) return nullptr;
  Unit* const unit = stalled_ != nullptr ? std::exchange(stalled_, nullptr) : plan_unit();
  if (unit == nullptr) return nullptr;
  if (!admit(*unit)) {
    stalled_ = unit;
    return nullptr;
  }
  return unit;
}

// Adds the next rows of the plan. True: it is full, or its window ends.
bool Planner::extend(Sweep& sweep) {
  while (has_row()) {
    Pending& pending = *pending_;
    Unit* unit = nullptr;
    for (; row_ < pending.range.count; ++row_) {
      const std::uint64_t position = pending.range.first + row_;
      const std::uint64_t window = order_->window(position);
      if (sweep.is_empty()) sweep.epoch = pending.epoch, sweep.window = window;
      const bool is_mixed = job_.memory_facts.window_rows != 0;
      if (window != sweep.window || (pending.epoch != sweep.epoch && is_mixed)) return true;
      const std::uint64_t index = sample_at(position);
      const storage::Location where = job_.dataset->location(index);
      const storage::Range range = where.range();
      const codec::Bytes held = row_bytes_.resident(index, where);
      const bool too_large = range.bytes > job_.memory.allowance.encoded_bytes;
      const bool fits = too_large || (!held.empty() && sweep.is_empty()) || sweep.has_room(range, sweep_most_);
      if (!fits) return true;
      if (unit == nullptr || unit->rows == job_.memory.unit_rows) {
        unit = units_.take(pending, row_);
        if (unit == nullptr) return false;
        unit->sweep = &sweep;
        sweep.units.push_back(unit);
      }
      plan_row(position, index);
      const std::uint32_t row = unit->rows++;
      unit->bytes[row] = held;
      unit->faults[row] = {};
      if (too_large) {
        unit->faults[row].too_large = true;
        unit->faults[row].actual_bytes = range.bytes;
        unit->has_fault = true;
      } else if (!held.empty()) {
        sweep.skip(range);
      } else {
        sweep.add(*unit, row, range);
        ++unit->reads_left;
      }
    }
  }
  // It cannot grow before the consumer goes on, or at all.
  const bool is_over = is_at_end() && (pending_ == nullptr || row_ == pending_->range.count);
  return !sweep.is_empty() && (is_over || batches_.is_far_ahead(epoch_));
}

Sweep* Planner::claim_sweep() {
  const std::scoped_lock plan(mutex_);
  if (stopped_) return nullptr;
  if (sweep_ == nullptr) sweep_ = units_.take_sweep();
  if (sweep_ == nullptr) return nullptr;
  if (!extend(*sweep_)) {
    const std::scoped_lock lock(signals_.mutex);
    if (sweep_->is_empty() || units_.out_locked() > sweep_->units.size()) return nullptr;
  }
  // The first ones are small, so that the first batch does not wait for what comes after it.
  sweep_most_ = std::min(2 * sweep_most_, job_.memory.sweep);
  Sweep* const sweep = std::exchange(sweep_, nullptr);
  sweep->arrange();
  sweep->users.store(static_cast<std::uint32_t>(sweep->units.size()) + 1, std::memory_order_relaxed);
  return sweep;
}

}  // namespace stoker::loader
