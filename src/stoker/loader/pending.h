// A batch that is being made, and the pieces of work it is cut into. Private to the engine.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/codec/codec.h"
#include "stoker/dataset/order.h"
#include "stoker/loader/byte_room.h"
#include "stoker/loader/loader.h"
#include "stoker/loader/recipe.h"
#include "stoker/loader/slabs.h"
#include "stoker/meter/ledger.h"
#include "stoker/storage/failure.h"

namespace stoker::loader {

struct Row {
  std::uint64_t position = 0;  // global, in the epoch
  std::uint64_t index = 0;     // in the data set; changes when the sample is replaced, as do id and label
  std::uint64_t id = 0;
  dataset::Label label = {};
  std::uint64_t length = 0;  // true frames or bytes, where rows have lengths
  // Where rows are packed: where it begins, and the bytes that were measured for it.
  std::uint64_t place = 0, room = 0;
  bool valid = true;
  bool skipped = false;
  // Its bytes are there, though others of its unit may still be on their way (RowTimes::read_ns waits for those). By
  // std::atomic_ref: the I/O thread sets it, the watchdog asks.
  bool arrived = false;
};

struct Pending {
  std::uint64_t serial = 0;
  std::uint64_t epoch = 0, step = 0;
  std::uint64_t position_after = 0;
  dataset::BatchRange range;
  std::vector<std::uint64_t> given;  // the samples, where the consumer gave the order; else empty
  std::vector<Row> rows;
  std::vector<meter::RowTimes> times;
  std::atomic<std::uint64_t> rows_left{0};
  std::atomic<bool> abandoned{false};

  // Under Signals::mutex.
  std::uint64_t rows_unmeasured = 0;
  std::uint64_t length = 0;  // of the longest row, where it varies; of all together, where rows are packed
  Slab* slab = nullptr;
  std::uint64_t kept = 0;  // rows that are handed out, once ready: all but the skipped ones
  bool ready = false;
  std::vector<struct Unit*> parked;  // read, but waiting for a slab

  std::mutex errors_mutex;
  std::deque<SampleError> errors;                          // without names, which are long: see named() in error_list.h
  std::optional<std::pair<std::uint64_t, Error>> failure;  // the first row that ends the run, and why
};

// Why a row's bytes are not there.
struct ReadFault {
  int error_number = 0;                             // of a system call; 0: none
  std::shared_ptr<const storage::Failure> failure;  // of anything else; null: none
  bool size_changed = false;
  bool too_large = false;
  std::uint64_t actual_bytes = 0;
  std::uint32_t part = 0;      // of a row with several parts: the first that failed
  std::uint64_t too_long = 0;  // the length of a row that no batch has room for

  bool is_any() const noexcept { return error_number != 0 || failure || size_changed || too_large || too_long != 0; }
};

// One part of a row that has several, while it is read and until the row is made.
struct alignas(64) Part {
  struct Unit* unit = nullptr;
  std::uint32_t number = 0;
  codec::Bytes bytes;
};

// Consecutive rows of one batch: read together, handed over together. One row where decoding is the cost.
struct alignas(64) Unit {
  static constexpr std::uint32_t kMaxRows = 32;

  Pending* pending = nullptr;     // null: not in use. Changed under Signals::mutex
  struct Sweep* sweep = nullptr;  // where its bytes are, if it has no block of its own
  std::uint32_t first_row = 0, rows = 0;
  ByteRoom::Block block;
  std::uint64_t block_bytes = 0;
  std::uint32_t reads_left = 0;  // only the I/O thread that claimed it
  bool measured = false;
  bool in_place = false;  // read straight into the slab
  bool has_fault = false;
  std::array<codec::Bytes, kMaxRows> bytes;
  std::array<ReadFault, kMaxRows> faults;
  std::vector<Part> parts;  // of its only row, where rows have several; as many as were reserved at most
};

// A bit in the tags of reads that are not one row's: of a sweep, or of a part.
inline constexpr std::uint64_t kReadTag = Unit::kMaxRows;

// Units that were read and wait for a worker, first in first out. Holds at most as many as were reserved; allocates
// nothing.
class UnitQueue {
 public:
  void reserve(std::size_t units) { ring_.assign(units + 1, nullptr); }
  bool empty() const noexcept { return first_ == next_; }
  std::size_t size() const noexcept { return (next_ + ring_.size() - first_) % ring_.size(); }
  void push(Unit* unit) noexcept {
    ring_[next_] = unit;
    next_ = (next_ + 1) % ring_.size();
  }
  Unit* pop() noexcept {
    if (empty()) return nullptr;
    return ring_[std::exchange(first_, (first_ + 1) % ring_.size())];
  }

 private:
  std::vector<Unit*> ring_;
  std::size_t first_ = 0, next_ = 0;
};

}  // namespace stoker::loader
