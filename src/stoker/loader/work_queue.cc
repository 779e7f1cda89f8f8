#include "stoker/loader/work_queue.h"

namespace stoker::loader {

WorkQueue::WorkQueue(std::size_t units, bool is_inline, int active, Signals& signals)
    : signals_(signals), is_inline_(is_inline), active_(active) {
  queue_.reserve(units);
  depth_.start(meter::now_ns(), 0);
}

void WorkQueue::push_locked(Unit& unit) noexcept {
  queue_.push(&unit);
  rows_ += unit.rows;
}

Unit* WorkQueue::pop_locked() noexcept {
  Unit* const unit = queue_.pop();
  if (unit != nullptr) rows_ -= unit->rows;
  return unit;
}

void WorkQueue::wake(bool all_may_work) noexcept {
  if (is_inline_) {
    signals_.consumer.notify_all();
  } else if (all_may_work) {
    signals_.workers.notify_one();
  } else {
    signals_.workers.notify_all();  // one might be a worker that has been told to rest, and the work would lie
  }
}

}  // namespace stoker::loader
