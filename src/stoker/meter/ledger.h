// Where the consumer's time went: compute (between batches) and wait, with wait split by what the next batch still
// lacked. Not synchronised: written by the consumer's thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stoker::meter {

// When the bytes of a row had been read, and when the row was finished (monotonic nanoseconds).
struct RowTimes {
  std::int64_t read_ns = 0;
  std::int64_t done_ns = 0;
};

struct WaitSplit {
  std::int64_t fetch_ns = 0;    // the oldest missing sample's bytes had not arrived
  std::int64_t prep_ns = 0;     // they had: it was waiting for a worker or being decoded
  std::int64_t handoff_ns = 0;  // every sample was finished, the batch was not yet delivered

  std::int64_t total_ns() const noexcept { return fetch_ns + prep_ns + handoff_ns; }
  WaitSplit& operator+=(const WaitSplit& other) noexcept;
};

// Each instant of the wait [from_ns, to_ns) is charged to the stage in which the oldest missing row was at that
// instant.
WaitSplit split_wait(std::int64_t from_ns, std::int64_t to_ns, std::span<const RowTimes> rows) noexcept;

enum class Bound : std::uint8_t { compute, fetch, prep, handoff };

struct Verdict {
  Bound bound = Bound::compute;
  double share = 0;           // of the running time lost to that stage
  double gain = 1;            // how many times faster, if that stage were free
  std::string_view severity;  // "fine" below 5 %, "moderate" to 20 %, "severe" above
};

std::string_view name(Bound bound) noexcept;          // "prep_bound"
std::string_view general_name(Bound bound) noexcept;  // case A's words: "io_bound", "compute_bound"

// `compute_ns` is the time the consumer spent between batches, or the part of it that was its step. `other_ns` is the
// rest of the running time, so that shares and gain are of the whole.
Verdict judge(std::int64_t compute_ns, const WaitSplit& wait, std::int64_t other_ns = 0) noexcept;

}  // namespace stoker::meter
