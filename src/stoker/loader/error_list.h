// The bad samples of a loader: the first of them listed, all counted, and compared with max_errors. Not synchronised:
// the engine makes every call with Signals::mutex held.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/dataset/dataset.h"
#include "stoker/loader/loader.h"

namespace stoker::loader {

// Errors are kept without names, which are long: ten thousand paths would take more memory than the batches.
SampleError named(const dataset::Dataset& dataset, SampleError error);

class ErrorList {
 public:
  static constexpr std::uint64_t kMostListed = 10'000;

  // What the data set could not list counts from the start. Borrows the data set. `list_bytes`: of the list, at most.
  ErrorList(const dataset::Dataset& dataset, double max_errors, std::uint64_t list_bytes) noexcept;

  void epoch_entered() noexcept { in_epoch_ = 0; }

  // The error that ends the run if a batch with these errors is one too many for its epoch.
  std::optional<Error> too_many(std::uint64_t epoch, const std::deque<SampleError>& errors) const;
  // The errors of a batch that is handed out, or that ends the run. True, once: the list is full from now on.
  bool add(std::deque<SampleError> errors, bool is_handed_out);

  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t listed() const noexcept { return errors_.size(); }
  std::vector<SampleError> all() const;  // with names: what could not be listed, then bad samples as they came

 private:
  const dataset::Dataset& dataset_;
  const double max_errors_;
  const std::uint64_t list_bytes_;
  std::deque<SampleError> errors_;
  std::uint64_t bytes_ = 0, count_ = 0, in_epoch_ = 0;
  bool is_full_ = false;
};

// What could not be listed is lost in every epoch: throws Error where that alone is more than max_errors.
void check_losses(const dataset::Dataset& dataset, double max_errors);

}  // namespace stoker::loader
