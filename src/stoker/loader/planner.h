// Which rows are read next: claims units and sweeps in global order, and takes room for their bytes in that order. So
// a row that waits for room waits for earlier batches only, and nothing can wait forever. Safe from any thread; has a
// lock of its own, which comes before Signals::mutex (signals.h).
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "stoker/dataset/order.h"
#include "stoker/loader/batch_queue.h"
#include "stoker/loader/given_order.h"
#include "stoker/loader/job.h"
#include "stoker/loader/row_bytes.h"
#include "stoker/loader/unit_store.h"

namespace stoker::loader {

class Planner {
 public:
  static constexpr std::uint64_t kNoEnd = ~std::uint64_t{0};

  // Plans nothing until start(). Borrows all. `given`: where the order comes from the consumer; else null.
  Planner(const Job& job, const RowBytes& row_bytes, BatchQueue& batches, UnitStore& units, Signals& signals,
          GivenOrder* given = nullptr) noexcept;
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // The next rows, with room for their bytes. Null: there is no room now, or nothing is planned.
  Unit* claim();
  // The same for many rows that are read together. A sweep that could be larger waits, unless nothing else is under
  // way: small ones would join little.
  Sweep* claim_sweep();

  // Plans from step `step` of `order` on, and the epochs after it. The first batch gets this serial number.
  void start(const dataset::Order& order, std::uint64_t epoch, std::uint64_t step, std::uint64_t serial);
  // Opens no batch from this serial number on. Another number replaces it.
  void set_end(std::uint64_t serial);
  // Nothing more is claimed. Takes back what was planned and had no room to be read.
  void stop();
  // The epoch of the rows that are planned now; none: stopped.
  std::optional<std::uint64_t> epoch();

 private:
  bool open_batch();
  bool open_given_batch();
  bool is_last_epoch() const noexcept;  // nothing is planned beyond it
  bool is_at_end() const;               // no further batch is planned
  bool has_row();
  std::uint64_t sample_at(std::uint64_t position) const noexcept;  // of the next row
  const Row& plan_row(std::uint64_t position, std::uint64_t index);
  Unit* plan_unit();
  bool admit(Unit& unit);
  bool extend(Sweep& sweep);

  const Job& job_;
  const RowBytes& row_bytes_;
  BatchQueue& batches_;
  UnitStore& units_;
  Signals& signals_;
  GivenOrder* const given_;  // null: the order is computed

  std::mutex mutex_;  // for all below
  bool stopped_ = true;
  std::optional<dataset::Order> order_;
  std::uint64_t epoch_ = 0, step_ = 0, serial_ = 0;
  std::uint64_t end_ = kNoEnd;
  std::optional<GivenOrder::Batch> taken_;  // of the given order, but there was no place for it
  Pending* pending_ = nullptr;              // whose rows are next
  std::uint64_t row_ = 0;
  Unit* stalled_ = nullptr;  // planned, but there was no room
  Sweep* sweep_ = nullptr;   // being filled
  std::uint64_t sweep_most_ = 0;
};

}  // namespace stoker::loader
