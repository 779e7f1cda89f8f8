#include "stoker/loader/use_forecast.h"

#include <algorithm>

#include "stoker/base/hash.h"

namespace stoker::loader {
namespace {

// Neither the rank nor the number of ranks is part of it: the global sequence does not depend on them. That of
// shuffle=nodes depends on the nodes.
std::uint64_t number_of_order(const Job& job) {
  const dataset::Dataset& data = *job.dataset;
  if (data.stored_count() < data.size() || job.many_parts) return 0;
  const dataset::Shuffle& shuffle = job.options.shuffle;
  if (shuffle.how == dataset::Shuffle::How::given) return 0;  // the consumer has not said it yet
  std::uint64_t number = mix(data.facts().fingerprint, data.size());
  for (const std::uint64_t part :
       {job.options.seed, static_cast<std::uint64_t>(shuffle.how), shuffle.block, shuffle.window}) {
    number = mix(number, part);
  }
  if (shuffle.how == dataset::Shuffle::How::nodes) number = mix(mix(number, shuffle.nodes), shuffle.of_node);
  return number == 0 ? 1 : number;
}

}  // namespace

UseForecast::UseForecast(const Job& job) : job_(job), order_(number_of_order(job)) {}

storage::NextUse UseForecast::of(std::uint64_t epoch, std::uint64_t position, std::uint64_t index) {
  if (order_ == 0) return {};
  if (!next_ || next_epoch_ != epoch + 1) {
    next_epoch_ = epoch + 1;
    next_.emplace(job_.make_order(next_epoch_, 0));
  }
  const std::uint64_t size = job_.dataset->size();
  // Padding repeats the start of an epoch at its end.
  return {order_, epoch * size + std::min(position, size - 1), next_epoch_ * size + next_->position_of(index)};
}

}  // namespace stoker::loader
