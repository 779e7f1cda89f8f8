#include "stoker/loader/batch_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/base/random.h"
#include "stoker/base/units.h"
#include "stoker/loader/handed_batch.h"
#include "stoker/loader/slab_layout.h"

namespace stoker::loader {
namespace {

constexpr std::uint32_t kMixStream = 0x6d6978;  // of random numbers; views count from 0
constexpr std::size_t kLargeBatch = 8 * kMiB;   // with those that lie ready, more than caches hold

// Where each row of a measured batch begins, and what they take together.
void pack_rows(Pending& pending) noexcept {
  pending.length = 0;
  for (Row& row : pending.rows) row.place = std::exchange(pending.length, pending.length + packed_bytes(row.room));
}

}  // namespace

BatchQueue::BatchQueue(const Job& job, WorkQueue& work, ReaderBell& bell, Signals& signals)
    : job_(job), work_(work), bell_(bell), signals_(signals) {
  const auto on_release = [this] {
    {
      const std::scoped_lock lock(signals_.mutex);
      assign_slabs_locked();
    }
    signals_.consumer.notify_all();
  };
  pool_ = std::make_shared<SlabPool>(job.memory.slabs, job.device, on_release, job.options.shared_region);
  const std::uint64_t most = job.memory_facts.demand.batch_size;
  for (std::uint64_t i = 0; i < job.memory.max_pendings; ++i) {
    all_.push_back(std::make_unique<Pending>());
    all_.back()->rows.reserve(most);
    all_.back()->times.reserve(most);
    all_.back()->parked.reserve(most / job.memory.unit_rows + 1);
    free_.push_back(all_.back().get());
  }
  depth_.start(meter::now_ns(), 0);
}

void BatchQueue::begin(std::uint64_t epoch) {
  const std::scoped_lock lock(signals_.mutex);
  epoch_ = epoch;
}

bool BatchQueue::is_far_ahead_locked(std::uint64_t epoch) const noexcept {
  return epoch > epoch_ + 1 && pendings_.size() > job_.options.prefetch_factor;
}

bool BatchQueue::is_far_ahead(std::uint64_t epoch) {
  const std::scoped_lock lock(signals_.mutex);
  return is_far_ahead_locked(epoch);
}

Pending* BatchQueue::open(const Place& place) {
  const std::scoped_lock lock(signals_.mutex);
  if (free_.empty()) return nullptr;
  if (is_far_ahead_locked(place.epoch)) return nullptr;
  Pending* const pending = free_.back();
  free_.pop_back();
  pending->serial = place.serial;
  pending->epoch = place.epoch;
  pending->step = place.step;
  pending->range = place.range;
  pending->given = place.given != nullptr ? std::move(*place.given) : std::vector<std::uint64_t>();
  pending->position_after = place.position_after;
  pending->rows.assign(place.range.count, {});
  pending->times.assign(place.range.count, {});
  pending->rows_left = place.range.count;
  pending->rows_unmeasured = place.range.count;
  pending->abandoned = false;
  pending->length = 0;
  pending->kept = 0;
  pending->ready = false;
  pending->errors.clear();
  pending->failure.reset();
  pendings_.push_back(pending);
  assign_slabs_locked();
  if (place.range.count == 0) {  // a rank without a share of the last step
    make_ready_locked(*pending);
    signals_.consumer.notify_all();
  }
  return pending;
}

bool BatchQueue::has_slab(const Pending& pending) {
  const std::scoped_lock lock(signals_.mutex);
  return pending.slab != nullptr;
}

Slot BatchQueue::slot_of(const Pending& pending, std::uint64_t row) const noexcept {
  const SlabLayout layout = lay_out(job_.recipe, job_.options.batch_size, pending.length);
  Slot slot;
  slot.length = pending.length;
  slot.past_cache = layout.total >= kLargeBatch;
  for (std::size_t o = 0; o < job_.recipe.outputs().size(); ++o) {
    slot.outputs[o] = pending.slab->arena.data() + layout.outputs[o] + row * layout.row_bytes[o];
  }
  if (job_.recipe.packs_rows()) {
    slot.length = pending.rows[row].room;
    slot.outputs[0] += pending.rows[row].place;
  }
  return slot;
}

void BatchQueue::unit_read(Unit& unit, std::int64_t now_ns) {
  Pending& pending = *unit.pending;
  bool all_may_work = true;
  {
    const std::scoped_lock lock(signals_.mutex);
    all_may_work = work_.all_may_work_locked();
    const bool must_measure = job_.recipe.varies() && !unit.measured;
    if (!must_measure && pending.slab == nullptr && !pending.abandoned) {
      pending.parked.push_back(&unit);
      assign_slabs_locked();
      return;
    }
    work_.push_locked(unit);
    work_.note_depth_locked(now_ns);
  }
  work_.wake(all_may_work);
}

std::uint64_t BatchQueue::slab_bytes_of(const Pending& pending) const noexcept {
  return job_.recipe.packs_rows() ? job_.packed_slab_bytes(pending.length) : job_.slab_bytes_for(pending.length);
}

// A slab that is made for one batch should fit later ones, which may be longer.
std::uint64_t BatchQueue::roomy_bytes_of(const Pending& pending) const noexcept {
  if (!job_.recipe.varies()) return 0;
  const std::uint64_t most = job_.slab_bytes_for(job_.recipe.length_of(job_.dataset->facts().largest_bytes));
  return job_.recipe.packs_rows() ? std::min(most, 2 * slab_bytes_of(pending)) : most;
}

void BatchQueue::unit_measured(Unit& unit, std::uint64_t longest) {
  Pending& pending = *unit.pending;
  const std::scoped_lock lock(signals_.mutex);
  unit.measured = true;
  if (pending.abandoned) {
    work_.push_locked(unit);
    signals_.workers.notify_all();  // this worker may have been told to rest
    return;
  }
  pending.parked.push_back(&unit);
  pending.length = std::max(pending.length, longest);
  pending.rows_unmeasured -= unit.rows;
  if (pending.rows_unmeasured != 0) return;
  if (job_.recipe.packs_rows()) pack_rows(pending);
  assign_slabs_locked();
}

Unit* BatchQueue::next_unit_locked() {
  Unit* const unit = work_.pop_locked();
  if (unit == nullptr) return nullptr;
  work_.note_depth_locked(meter::now_ns());
  assign_slabs_locked();
  return unit;
}

void BatchQueue::rows_finished(Pending& pending, std::uint64_t count) {
  if (pending.rows_left.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  if (pending.abandoned.load(std::memory_order_relaxed)) return;
  close(pending);
}

void BatchQueue::make_ready_locked(Pending& pending) {
  pending.ready = true;
  depth_.change(meter::now_ns(), ++ready_);
}

// Every row is there: takes the skipped ones out, writes labels and ids, and tells the consumer.
void BatchQueue::close(Pending& pending) {
  const Recipe& recipe = job_.recipe;
  std::byte* const base = pending.slab->arena.data();
  const SlabLayout layout = lay_out(recipe, job_.options.batch_size, pending.length);
  auto* const labels = reinterpret_cast<std::int64_t*>(base + layout.labels);
  auto* const real_labels = reinterpret_cast<float*>(base + layout.real_labels);
  auto* const ids = reinterpret_cast<std::int64_t*>(base + layout.ids);
  auto* const indices = reinterpret_cast<std::int64_t*>(base + layout.indices);
  auto* const lengths = reinterpret_cast<std::int64_t*>(base + layout.lengths);
  auto* const places = reinterpret_cast<std::int64_t*>(base + layout.places);
  auto* const valid = reinterpret_cast<std::uint8_t*>(base + layout.valid);
  const std::size_t label_count = recipe.label_count();
  std::uint64_t to = 0;
  for (std::uint64_t from = 0; from < pending.rows.size(); ++from) {
    const Row& row = pending.rows[from];
    if (row.skipped) continue;
    if (to != from && !recipe.packs_rows()) {
      for (std::size_t o = 0; o < recipe.outputs().size(); ++o) {
        std::byte* const rows = base + layout.outputs[o];
        std::memcpy(rows + to * layout.row_bytes[o], rows + from * layout.row_bytes[o], layout.row_bytes[o]);
      }
    }
    for (std::size_t c = 0; c < label_count; ++c) {
      const dataset::Label label = label_count == 1 ? row.label : job_.dataset->label_at(row.index, c);
      labels[to * label_count + c] = label.integer;
      real_labels[to * label_count + c] = label.real;
    }
    ids[to] = static_cast<std::int64_t>(row.id);
    indices[to] = static_cast<std::int64_t>(row.index);
    lengths[to] = static_cast<std::int64_t>(row.length);
    places[to] = static_cast<std::int64_t>(row.place);
    valid[to] = row.valid ? 1 : 0;
    ++to;
  }
  pending.kept = to;
  if (recipe.mix() && to != 0) {
    // Drawn by the place of the batch in the epoch, so that it depends on neither workers nor resumes.
    Random random(job_.options.seed, pending.epoch, pending.range.first, kMixStream);
    const transform::Output& output = recipe.outputs()[0];
    const transform::MixDraw draw =
        transform::draw_mix(*recipe.mix(), random, recipe.facts().width, recipe.facts().height);
    transform::mix_rows(draw, output, base + layout.outputs[0], to);
    transform::mix_labels(*recipe.mix(), draw, {labels, to}, reinterpret_cast<float*>(base + layout.soft_labels));
  }
  std::sort(pending.errors.begin(), pending.errors.end(),
            [](const SampleError& a, const SampleError& b) { return a.position < b.position; });
  {
    const std::scoped_lock lock(signals_.mutex);
    make_ready_locked(pending);
  }
  signals_.consumer.notify_all();
}

// Slabs go to batches in their order, at most prefetch_factor + 1 at a time to batches not yet handed out.
void BatchQueue::assign_slabs_locked() {
  if (signals_.stopping) return;
  bool more_work = false;
  for (Pending* pending : pendings_) {
    if (pending->slab != nullptr) continue;
    if (pending->range.count == 0 && pending->ready) continue;
    if (pending->abandoned) continue;
    if (job_.recipe.varies() && pending->rows_unmeasured != 0) break;
    // Not before there is something to put into it and somebody who would otherwise be idle: a fast consumer then
    // needs fewer slabs, which stay in the cache (rows of 150 KB: 1.6 times the rate with three slabs instead of five).
    if (!job_.in_place &&
        (pending->parked.empty() || work_.size_locked() >= static_cast<std::size_t>(job_.max_workers))) {
      break;
    }
    if (slabs_filling_ > job_.options.prefetch_factor) break;
    Slab* slab = nullptr;
    try {
      slab = pool_->acquire(slab_bytes_of(*pending), roomy_bytes_of(*pending));
    } catch (const Error& error) {
      if (!fatal_) fatal_ = error;
      signals_.consumer.notify_all();
    }
    if (slab == nullptr) break;
    pending->slab = slab;
    ++slabs_filling_;
    for (Unit* const unit : pending->parked) work_.push_locked(*unit);
    more_work = more_work || !pending->parked.empty() || job_.in_place;
    pending->parked.clear();
  }
  if (!more_work) return;
  work_.note_depth_locked(meter::now_ns());
  signals_.workers.notify_all();
  if (job_.is_inline) signals_.consumer.notify_all();
  if (job_.in_place) bell_.ring_locked();
}

BatchPtr BatchQueue::hand_out_front_locked() {
  Pending& pending = *pendings_.front();
  Slab* const slab = std::exchange(pending.slab, nullptr);
  BatchPtr batch = hand_out(pool_, slab, job_.dataset, job_.recipe, pending, job_.options.batch_size);
  if (slab != nullptr) --slabs_filling_;
  depth_.change(meter::now_ns(), --ready_);
  return batch;
}

void BatchQueue::drop_front_locked() {
  epoch_ = pendings_.front()->epoch;
  free_.push_back(pendings_.front());
  pendings_.pop_front();
}

void BatchQueue::check_room_locked() {
  const Pending* const front = front_locked();
  if (front == nullptr || front->slab != nullptr || slabs_filling_ != 0) return;
  if (job_.recipe.varies() && front->rows_unmeasured != 0) return;
  const std::uint64_t need = slab_bytes_of(*front);
  if (need > pool_->limit_bytes()) {
    throw Error(ErrorKind::unavailable,
                format_text("batch {} needs {}, more than the {} that {} {} leaves for batches", front->step,
                            format_bytes(need), format_bytes(pool_->limit_bytes()), option("memory_limit"),
                            format_bytes(job_.options.memory_limit)),
                format_text("raise {}, or lower {}", option("memory_limit"), option("batch_size")))
        .about("memory_limit");
  }
  if (!pool_->is_exhausted(need)) return;
  throw Error(
      ErrorKind::unavailable,
      format_text("no room for the next batch: the consumer still holds {} batches ({} of {} {})", pool_->count(),
                  format_bytes(pool_->used_bytes()), option("memory_limit"), format_bytes(job_.options.memory_limit)),
      format_text("drop each batch before asking for many more, copy what you keep ({} does it), or raise {}",
                  option("copy", "True"), option("memory_limit")))
      .about("memory_limit");
}

void BatchQueue::abandon_locked() {
  for (Pending* const pending : pendings_) pending->abandoned = true;
  unpark_locked();
  signals_.workers.notify_all();
}

void BatchQueue::unpark_locked() {
  for (Pending* const pending : pendings_) {
    for (Unit* const unit : std::exchange(pending->parked, {})) work_.push_locked(*unit);
  }
}

void BatchQueue::release_locked(std::unique_lock<std::mutex>& lock) {
  for (Pending* const pending : std::exchange(pendings_, {})) {
    free_.push_back(pending);
    Slab* const slab = std::exchange(pending->slab, nullptr);
    if (slab == nullptr) continue;
    --slabs_filling_;
    lock.unlock();
    pool_->release(slab);
    lock.lock();
  }
  ready_ = 0;
  depth_.change(meter::now_ns(), 0);
  fatal_.reset();
}

std::uint64_t BatchQueue::slabs_held_locked() const {
  return pool_->count() - slabs_filling_ - pool_->free_count();
}

}  // namespace stoker::loader
