// Which point to try next: all of them in order, or few of them by a small model. The search asks for a point, and the
// caller runs the trial and reports its row. So simulated, recorded and live trials are searched in the same way.
// Single-threaded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/tune/row.h"

namespace stoker::tune {

struct Limits {
  double cores = 0;              // 0: unknown
  std::uint64_t host_bytes = 0;  // 0: no limit known
  std::uint64_t device_bytes = 0;
};

struct SearchOptions {
  Grid grid = {};
  Limits limits = {};
  std::optional<double> effective_batch = {};  // batch_size x accumulate_steps must be this
  double tolerance = 0.02;
};

// What to run now.
struct Ask {
  Point point;
  std::string why = {};  // "probe", "workers up", "race, round 2", ...: for the log
  bool repeat = false;   // was tried before: a race, or a fault that is looked at again
};

// A user error stops the search, unless an earlier trial succeeded; then three in a row stop it. So do three hangs in a
// row that reported no progress.
class UserErrors {
 public:
  void add(const Row& row) noexcept {
    const bool is_error = row.status == Status::user_error;
    has_run_ |= row.status == Status::ok;
    in_a_row_ = is_error || row.is_unseen() ? in_a_row_ + 1 : 0;
    is_sure_ = in_a_row_ > 0 && (is_sure_ || is_error);
  }
  bool end_the_search() const noexcept { return in_a_row_ >= (has_run_ || !is_sure_ ? 3 : 1); }

 private:
  bool has_run_ = false, is_sure_ = false;
  int in_a_row_ = 0;
};

class Search {
 public:
  virtual ~Search() = default;
  virtual std::optional<Ask> next() = 0;  // none: done
  virtual void tell(const Row& row) = 0;  // of the point asked for last; also rows of an earlier, resumed run
  // Points that will not be tried, with the reason: rows with status pruned or skipped_memory.
  virtual std::vector<Row> left_out() const = 0;
  virtual std::uint64_t at_most() const = 0;  // trials that are still possible, for the time left
};

std::unique_ptr<Search> grid_search(const SearchOptions& options);
std::unique_ptr<Search> auto_search(SearchOptions options);

}  // namespace stoker::tune
