#include "stoker/loader/given_order.h"

#include <utility>

namespace stoker::loader {

void GivenOrder::restart(std::uint64_t position) {
  const std::scoped_lock lock(mutex_);
  batches_.clear();
  position_ = position;
  steps_ = 0;
  ended_ = false;
}

void GivenOrder::add(std::vector<std::uint64_t> indices) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t count = indices.size();
  batches_.push_back({position_, std::move(indices)});
  position_ += count;
  ++steps_;
}

void GivenOrder::end() {
  const std::scoped_lock lock(mutex_);
  ended_ = true;
}

bool GivenOrder::is_ended() const {
  const std::scoped_lock lock(mutex_);
  return ended_;
}

std::uint64_t GivenOrder::steps() const {
  const std::scoped_lock lock(mutex_);
  return steps_;
}

std::optional<GivenOrder::Batch> GivenOrder::take() {
  const std::scoped_lock lock(mutex_);
  if (batches_.empty()) return std::nullopt;
  Batch batch = std::move(batches_.front());
  batches_.pop_front();
  return batch;
}

bool GivenOrder::is_over() const {
  const std::scoped_lock lock(mutex_);
  return ended_ && batches_.empty();
}

}  // namespace stoker::loader
