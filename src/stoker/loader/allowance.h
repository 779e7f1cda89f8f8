// What one sample and one batch may need, out of memory_limit. A pure function of the data set and of the options that
// shape a batch. The number of workers, the storage and what is in flight do not enter: a sample that fits, fits
// always.
#pragma once

#include <cstdint>
#include <functional>

namespace stoker::loader {

struct Demand {
  std::uint64_t limit_bytes = 0;    // memory_limit
  std::uint64_t batch_size = 1;     // at most as many as there are samples
  std::uint64_t batch_bytes = 0;    // of one slab; where rows vary: of a batch of usual rows
  std::uint64_t list_bytes = 0;     // the data set's own list
  std::uint64_t usual_bytes = 0;    // of an encoded sample: half are larger
  std::uint64_t largest_bytes = 0;  // of the largest one
  std::uint32_t most_parts = 1;     // of a row
  bool in_place = false;            // samples are read straight into the batch
  bool decodes = true;              // samples need working memory
  bool varies = false;              // the length of a row is known only when all of its batch has been read
};

struct Allowance {
  bool is_enough = false;                  // there is room for two batches and for one usual sample
  std::uint64_t fixed_bytes = 0;           // list, plans, threads and libraries
  std::uint64_t plan_bytes = 0;            // of them: batches and units in the making
  std::uint64_t list_of_errors_bytes = 0;  // of them
  std::uint64_t encoded_bytes = 0;         // of one sample, at most
  std::uint64_t ring_bytes = 0;            // what holding such a sample takes; where rows vary, a batch of them
  std::uint64_t working_bytes = 0;         // of one sample, at most
  std::uint64_t batch_bytes = 0;           // of one slab, at most
  std::uint64_t spare_bytes = 0;           // for going faster: nobody's share depends on it
};

Allowance allow(const Demand& demand) noexcept;

// The least limit from demand.limit_bytes on with an allowance that `suits`, to within a thousandth; 0: there is none.
std::uint64_t enough_limit(const Demand& demand, const std::function<bool(const Allowance&)>& suits);

// How many batches and units may be in the making within Allowance::plan_bytes.
struct PlanCounts {
  std::uint64_t pendings = 0, units = 0;
};
PlanCounts plans_within(std::uint64_t plan_bytes, const Demand& demand) noexcept;

// What reading with O_DIRECT takes beyond Allowance::ring_bytes.
std::uint64_t direct_bytes(const Demand& demand) noexcept;

// What starting threads takes beyond those that Allowance::fixed_bytes counts in.
std::uint64_t thread_bytes(std::uint64_t threads) noexcept;

}  // namespace stoker::loader
