#include "stoker/transform/pass_times.h"

#include <algorithm>
#include <chrono>

namespace stoker::transform {
namespace {

constinit thread_local PassTimes* times_here = nullptr;

std::int64_t pass_clock_ns() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

PassTimes::PassTimes(std::size_t count) : count_(count), sums_(std::make_unique<Sum[]>(count)) {}

void PassTimes::add(std::size_t pass, std::int64_t ns) noexcept {
  if (pass >= count_) return;
  sums_[pass].images.fetch_add(1, std::memory_order_relaxed);
  sums_[pass].ns.fetch_add(ns, std::memory_order_relaxed);
}

void PassTimes::tell(std::vector<Pass>& passes) const noexcept {
  for (std::size_t i = 0; i < std::min(count_, passes.size()); ++i) {
    passes[i].images = sums_[i].images.load(std::memory_order_relaxed);
    passes[i].ns = sums_[i].ns.load(std::memory_order_relaxed);
  }
}

PassTimes::Here::Here(PassTimes* times) noexcept {
  times_here = times;
}
PassTimes::Here::~Here() {
  times_here = nullptr;
}

PassTimer::PassTimer(std::size_t pass) noexcept : pass_(pass), began_ns_(times_here != nullptr ? pass_clock_ns() : 0) {}
PassTimer::~PassTimer() {
  if (began_ns_ != 0 && times_here != nullptr) times_here->add(pass_, pass_clock_ns() - began_ns_);
}

}  // namespace stoker::transform
