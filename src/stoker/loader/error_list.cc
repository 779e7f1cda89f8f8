#include "stoker/loader/error_list.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/base/utf8.h"

namespace stoker::loader {
namespace {

SampleError error_of(const dataset::Loss& loss) {
  SampleError error;
  error.name = loss.name;
  error.stage = "list";
  error.cause =
      loss.bytes == 0 ? loss.cause : fmt::format("{}; {} bytes are lost", loss.cause, format_count(loss.bytes));
  if (loss.bytes != 0) error.offset = static_cast<std::int64_t>(loss.offset);
  error.action = name(OnError::skip);
  return error;
}

// Per epoch, where max_errors is set.
double allowed_errors(const dataset::Dataset& dataset, double max_errors) noexcept {
  if (max_errors >= 1) return max_errors;
  return std::max(1.0, std::floor(max_errors * static_cast<double>(dataset.size())));
}

std::uint64_t losses_of(const dataset::Dataset& dataset) noexcept {
  return dataset.facts().losses.size();
}

}  // namespace

Text SampleError::message() const {
  return format_text("cannot {} `{}`{}{}: {}", stage, name, is_sample() ? fmt::format(" (sample {})", index) : "",
                     offset >= 0 ? fmt::format(" at byte {}", offset) : "", cause);
}

SampleError named(const dataset::Dataset& dataset, SampleError error) {
  error.name = dataset.name(error.index);
  return error;
}

void check_losses(const dataset::Dataset& dataset, double max_errors) {
  const std::uint64_t losses = losses_of(dataset);
  const double allowed = allowed_errors(dataset, max_errors);
  if (max_errors == 0 || losses == 0 || static_cast<double>(losses) <= allowed) return;
  throw Error(ErrorKind::corrupt,
              format_text("{} parts of the data set could not be listed, more than {} allows ({}); the first: {}",
                          losses, option("max_errors", fmt::format("{}", max_errors)),
                          format_count(static_cast<std::uint64_t>(allowed)), dataset.facts().losses.front().message()),
              format_text("`stoker check` names all of them; raise {} only if they are expected", option("max_errors")))
      .about("max_errors");
}

ErrorList::ErrorList(const dataset::Dataset& dataset, double max_errors, std::uint64_t list_bytes) noexcept
    : dataset_(dataset), max_errors_(max_errors), list_bytes_(list_bytes), count_(losses_of(dataset)) {}

std::optional<Error> ErrorList::too_many(std::uint64_t epoch, const std::deque<SampleError>& errors) const {
  if (max_errors_ == 0 || errors.empty()) return {};
  const double allowed = allowed_errors(dataset_, max_errors_);
  const std::uint64_t count = losses_of(dataset_) + in_epoch_ + errors.size();
  if (static_cast<double>(count) <= allowed) return {};
  return Error(ErrorKind::corrupt,
               format_text("{} bad samples in epoch {}, more than {} allows ({}); the last: {}", count, epoch,
                           option("max_errors", fmt::format("{}", max_errors_)),
                           format_count(static_cast<std::uint64_t>(allowed)), named(dataset_, errors.back()).message()),
               format_text("look at the list of errors; raise {} only if they are expected", option("max_errors")))
      .about("max_errors");
}

bool ErrorList::add(std::deque<SampleError> errors, bool is_handed_out) {
  if (is_handed_out) in_epoch_ += errors.size();
  count_ += errors.size();
  bool is_full_now = false;
  for (SampleError& error : errors) {
    const std::uint64_t bytes = sizeof(SampleError) + error.cause.capacity();
    if (is_full_ || errors_.size() == kMostListed || bytes_ + bytes > list_bytes_) {
      is_full_now = is_full_now || !std::exchange(is_full_, true);
      continue;
    }
    bytes_ += bytes;
    errors_.push_back(std::move(error));
  }
  return is_full_now;
}

std::vector<SampleError> ErrorList::all() const {
  std::vector<SampleError> all;
  const std::vector<dataset::Loss>& lost = dataset_.facts().losses;
  const std::size_t losses = std::min<std::uint64_t>(lost.size(), kMostListed);
  all.reserve(losses + errors_.size());
  for (std::size_t i = 0; i < losses; ++i) all.push_back(error_of(lost[i]));
  for (const SampleError& error : errors_) all.push_back(named(dataset_, error));
  return all;
}

}  // namespace stoker::loader
