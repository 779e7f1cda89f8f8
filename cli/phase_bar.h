// The bar of a job in phases: each phase has one of its own. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "terminal.h"

namespace stoker::cli {

class PhaseBar {
 public:
  explicit PhaseBar(const Face& face) : face_(face) {}

  // The bar of `phase`; it begins with the first call that names the phase.
  Bar& of(std::string_view phase, std::uint64_t total) {
    if (!bar_ || phase_ != phase) {
      phase_ = phase;
      bar_.reset();
      bar_.emplace(face_, phase_, total);
      began_ = std::chrono::steady_clock::now();
    }
    return *bar_;
  }
  double seconds() const {  // since the phase began
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  void clear() { bar_.reset(); }

 private:
  const Face& face_;
  std::optional<Bar> bar_;
  std::string phase_;
  std::chrono::steady_clock::time_point began_{};
};

}  // namespace stoker::cli
