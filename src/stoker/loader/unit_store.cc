#include "stoker/loader/unit_store.h"

namespace stoker::loader {

UnitStore::UnitStore(const Job& job, WorkQueue& work, ReaderBell& bell, Signals& signals)
    : signals_(signals), bell_(bell), work_(work), sweep_bytes_(job.memory.sweep) {
  // The rows of a batch whose length varies wait for each other; all others end without those behind them.
  room_ = std::make_unique<ByteRoom>(job.memory.ring, job.memory.max_units + 1,
                                     job.recipe.varies() ? ByteRoom::Reuse::in_order : ByteRoom::Reuse::anywhere,
                                     job.reads_direct() ? 4096 : 64);
  for (std::uint64_t i = 0; i < job.memory.sweep_count; ++i) {
    sweeps_.push_back(std::make_unique<Sweep>(sweep_bytes_));
    free_sweeps_.push_back(sweeps_.back().get());
  }
  for (std::uint64_t i = 0; i < job.memory.max_units; ++i) {
    units_.push_back(std::make_unique<Unit>());
    if (job.many_parts) units_.back()->parts.reserve(job.dataset->facts().most_parts);
    units_.back()->in_place = job.in_place;
    free_units_.push_back(units_.back().get());
  }
}

Unit* UnitStore::take(Pending& pending, std::uint64_t first_row) {
  Unit* unit = nullptr;
  {
    const std::scoped_lock lock(signals_.mutex);
    if (free_units_.empty()) return nullptr;
    unit = free_units_.back();
    free_units_.pop_back();
    ++out_;
    unit->pending = &pending;
    unit->first_row = static_cast<std::uint32_t>(first_row);
  }
  unit->sweep = nullptr;
  unit->rows = 0;
  unit->block = {};
  unit->block_bytes = 0;
  unit->reads_left = 0;
  unit->measured = false;
  unit->has_fault = false;
  return unit;
}

bool UnitStore::take_room(Unit& unit) {
  if (unit.block_bytes == 0) return true;
  unit.block = room_->take(unit.block_bytes);
  return unit.block.data != nullptr;
}

Sweep* UnitStore::take_sweep() {
  const std::scoped_lock lock(signals_.mutex);
  if (free_sweeps_.empty()) return nullptr;
  Sweep* const sweep = free_sweeps_.back();
  free_sweeps_.pop_back();
  sweep->clear();
  return sweep;
}

void UnitStore::retire(Unit& unit) {
  if (unit.block.data != nullptr) room_->give_back(unit.block);
  const bool sweep_is_free = unit.sweep != nullptr && leave(*unit.sweep);
  bool drained = false, wake = unit.block.data != nullptr || unit.in_place || sweep_is_free;
  {
    const std::scoped_lock lock(signals_.mutex);
    free_locked(unit);
    drained = out_ == 0;
    // A unit alone is no room for a read. While workers have more to do, readers sleep until there are some: a wake per
    // unit takes the core from a worker each time (rows in memory: 15 % of all CPU).
    wake = wake || work_.size_locked() <= work_.workers_locked() || free_units_.size() % (units_.size() / 4 + 1) == 0;
  }
  signals_.progress.fetch_add(1, std::memory_order_relaxed);
  if (drained) signals_.consumer.notify_all();
  if (wake) bell_.ring();
}

bool UnitStore::leave(Sweep& sweep) {
  if (sweep.users.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  const std::scoped_lock lock(signals_.mutex);
  free_locked(sweep);
  return true;
}

void UnitStore::free_locked(Unit& unit) noexcept {
  unit.pending = nullptr;
  free_units_.push_back(&unit);
  --out_;
}

std::uint64_t UnitStore::memory_bytes_locked() const noexcept {
  return room_ ? room_->capacity() + sweeps_.size() * sweep_bytes_ : 0;
}

void UnitStore::drop_memory_locked() noexcept {
  room_.reset();
  sweeps_.clear();
}

}  // namespace stoker::loader
