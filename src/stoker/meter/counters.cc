#include "stoker/meter/counters.h"

#include <algorithm>

namespace stoker::meter {

void StageTotals::add(const StageCounters& counters) noexcept {
  busy_s += static_cast<double>(counters.busy_ns.value()) * 1e-9;
  input_wait_s += static_cast<double>(counters.input_wait_ns.value()) * 1e-9;
  room_wait_s += static_cast<double>(counters.room_wait_ns.value()) * 1e-9;
  items += static_cast<std::uint64_t>(counters.items.value());
  bytes += static_cast<std::uint64_t>(counters.bytes.value());
}

void DepthMeter::start(std::int64_t at_ns, std::uint64_t depth) noexcept {
  *this = DepthMeter();
  started_ns_ = changed_ns_ = at_ns;
  depth_ = least_ = most_ = depth;
}

void DepthMeter::change(std::int64_t at_ns, std::uint64_t depth) noexcept {
  const std::int64_t span = std::max<std::int64_t>(0, at_ns - changed_ns_);
  area_ += static_cast<double>(span) * static_cast<double>(depth_);
  if (depth_ == 0) empty_ns_ += span;
  changed_ns_ = at_ns;
  depth_ = depth;
  least_ = std::min(least_, depth);
  most_ = std::max(most_, depth);
}

DepthMeter::Depth DepthMeter::read(std::int64_t at_ns) const noexcept {
  DepthMeter now = *this;
  now.change(at_ns, depth_);
  const double span = static_cast<double>(std::max<std::int64_t>(1, at_ns - started_ns_));
  return {now.area_ / span, least_, most_, static_cast<double>(now.empty_ns_) / span, depth_};
}

}  // namespace stoker::meter
