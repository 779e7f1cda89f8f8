// The ledger of a pipeline of named stages (stoker.span in Python): how busy each stage is, how much lies between two
// of them, which one is the limit, and how far to widen it. Stages come in the order in which they began. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "stoker/base/json.h"

namespace stoker::measure {

// What one thread did in a stage between two times of the monotonic clock.
struct SpanWindow {
  std::string stage = {};
  int pid = 0, thread = 0;
  std::int64_t from_ns = 0, to_ns = 0;
  std::uint64_t calls = 0, items = 0;    // that left the stage
  std::uint64_t begun = 0;               // items that entered it
  std::int64_t busy_ns = 0, cpu_ns = 0;  // without the stages inside it; cpu: with the time ready without a core
};

// Sums of windows, in time slots that grow with the job: the memory stays the same.
class SpanTimes {
 public:
  void add(const SpanWindow& window);
  bool is_empty() const noexcept { return stages_.empty(); }

  struct Stage {
    std::int64_t first_ns = 0;
    std::uint64_t calls = 0, items = 0, begun = 0;
    std::int64_t busy_ns = 0, cpu_ns = 0;
    std::set<std::pair<int, int>> threads = {};
    std::map<std::int64_t, std::pair<std::uint64_t, std::uint64_t>> slots = {};  // slot: begun, finished
  };
  const std::map<std::string, Stage>& stages() const noexcept { return stages_; }
  std::int64_t from_ns() const noexcept { return from_ns_; }
  std::int64_t to_ns() const noexcept { return to_ns_; }
  std::int64_t slot_ns() const noexcept { return slot_ns_; }

 private:
  std::map<std::string, Stage> stages_;
  std::int64_t from_ns_ = 0, to_ns_ = 0, slot_ns_ = 100'000'000;
};

struct StageFacts {
  std::string name = {};
  std::uint64_t threads = 0, items = 0;
  double busy_share = 0;        // of the time of its threads
  double cpu_share = 0;         // of its busy time: computing, or ready to
  double per_s = 0;             // items that it handled
  double per_thread_per_s = 0;  // that one thread handles when it is never kept waiting
  double capacity_per_s = 0;    // of all its threads
  bool shares_threads = false;  // the same threads run other stages too
};

struct QueueFacts {
  std::string from = {}, to = {};
  double mean = 0, most = 0, last = 0;                    // items
  std::vector<std::pair<double, double>> over_time = {};  // seconds since the start, items
};

struct StageLedger {
  double seconds = 0;
  std::vector<StageFacts> stages = {};
  std::vector<QueueFacts> queues = {};
  std::optional<std::size_t> limit = {};  // none: no stage is at work all the time
  std::string bound = {};                 // "fetch_bound", "prep_bound", "handoff_bound", "compute_bound"
  double gain = 1;                        // how many times faster if the limit were free
  std::uint64_t widen_to = 0;             // threads of the limit that reach the next one; 0: widening does not help
  std::string headline = {};
  std::vector<std::string> why = {}, advice = {}, notes = {};
};

// `cores` of the machine; 0: not known. The last stage is the one that is to be fed.
StageLedger stage_ledger(const SpanTimes& times, double cores);
Json to_json(const StageLedger& ledger);
// A table with its head, for people.
std::vector<std::vector<std::string>> stage_table(const StageLedger& ledger);

}  // namespace stoker::measure
