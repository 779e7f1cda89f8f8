// The parts of an engine without its threads, for tests of one part at a time.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stoker/loader/batch_queue.h"
#include "stoker/loader/held_data_test.h"
#include "stoker/loader/job.h"
#include "stoker/loader/planner.h"
#include "stoker/loader/reader_bell.h"
#include "stoker/loader/row_bytes.h"
#include "stoker/loader/signals.h"
#include "stoker/loader/unit_store.h"
#include "stoker/loader/work_queue.h"
#include "stoker/storage/backend.h"

namespace stoker::loader {

// Rows of 100 frames; the test is the only worker.
inline LoaderOptions rows_of_100(std::uint64_t batch_size) {
  LoaderOptions options = batches_of(batch_size, 0);
  options.transform = transform::parse_ops("pad:100");
  options.io_threads = 1;
  return options;
}

struct EngineParts {
  EngineParts(dataset::DatasetPtr data, const LoaderOptions& options)
      : job(std::move(data), options),
        bell(signals),
        work(job.memory.max_units, job.is_inline, job.options.num_workers, signals),
        units(job, work, bell, signals),
        batches(job, work, bell, signals),
        fetcher(storage::make_fetcher({.depth = job.options.io_depth}, job.dataset->backends())),
        row_bytes(job, *fetcher, nullptr),
        planner(job, row_bytes, batches, units, signals) {}

  Signals signals;
  Job job;
  ReaderBell bell;
  WorkQueue work;
  UnitStore units;
  BatchQueue batches;
  std::unique_ptr<storage::Fetcher> fetcher;
  RowBytes row_bytes;
  Planner planner;

  // Batch `step` of epoch 0.
  Pending& open_batch(std::uint64_t step) {
    const dataset::Order order = job.make_order(0, 0);
    Pending* const pending = batches.open({.serial = step,
                                           .epoch = 0,
                                           .step = step,
                                           .position_after = order.position_after(step),
                                           .range = order.batch(step)});
    for (std::uint64_t i = 0; i < pending->rows.size(); ++i) {
      pending->rows[i].position = pending->range.first + i;
      pending->rows[i].index = pending->rows[i].id = order.sample(pending->range.first + i);
    }
    return *pending;
  }

  // All rows of a batch as one unit, whose bytes are `samples`.
  Unit& unit_of(Pending& pending, std::vector<std::string> samples) {
    Unit& unit = *units.take(pending, 0);
    for (const std::string& sample : kept_.emplace_back(std::move(samples))) {
      unit.faults[unit.rows] = {};
      unit.bytes[unit.rows++] = std::as_bytes(std::span(sample));
    }
    return unit;
  }

  Unit* next_unit() {
    const std::scoped_lock lock(signals.mutex);
    return batches.next_unit_locked();
  }

  // Null: the next batch is not ready.
  BatchPtr take_batch() {
    const std::scoped_lock lock(signals.mutex);
    const Pending* const front = batches.front_locked();
    if (front == nullptr || !front->ready) return nullptr;
    BatchPtr batch = batches.hand_out_front_locked();
    batches.drop_front_locked();
    batches.assign_slabs_locked();
    return batch;
  }

  std::uint64_t units_out() {
    const std::scoped_lock lock(signals.mutex);
    return units.out_locked();
  }

 private:
  std::deque<std::vector<std::string>> kept_;  // units borrow their bytes
};

}  // namespace stoker::loader
