// How long the passes over an image take, for people who ask which operation is dear. A pass is what runs together over
// the pixels: the operations of one pass are fused. Any thread adds and reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stoker::transform {

struct Pass {
  std::string output;                   // the group of views; "data": there is one output; empty: before all of them
  std::vector<std::string> operations;  // in their order
  bool is_whole = false;                // it needs the whole image in memory; else it goes row by row
  // Of the first pass of an output: what its passes take together, at most, for an image like the first one.
  std::uint64_t scratch_bytes = 0;

  // What was measured.
  std::uint64_t images = 0;  // that were timed
  std::int64_t ns = 0;       // of all of them
};

// Sums of times, one for each pass.
class PassTimes {
 public:
  explicit PassTimes(std::size_t count);

  void add(std::size_t pass, std::int64_t ns) noexcept;  // a pass that does not exist counts for nothing
  void tell(std::vector<Pass>& passes) const noexcept;   // fills in what was measured

  // While it lives, the timers of its thread add to `times`. Null: they do nothing.
  class Here {
   public:
    explicit Here(PassTimes* times) noexcept;
    ~Here();
    Here(const Here&) = delete;
    Here& operator=(const Here&) = delete;
  };

 private:
  struct Sum {
    std::atomic<std::uint64_t> images{0};
    std::atomic<std::int64_t> ns{0};
  };
  std::size_t count_;
  std::unique_ptr<Sum[]> sums_;
};

// Times one pass, from here to the end of its life.
class PassTimer {
 public:
  explicit PassTimer(std::size_t pass) noexcept;
  ~PassTimer();
  PassTimer(const PassTimer&) = delete;
  PassTimer& operator=(const PassTimer&) = delete;

 private:
  std::size_t pass_;
  std::int64_t began_ns_;  // 0: nobody wants to know
};

}  // namespace stoker::transform
