// The order of an epoch where the consumer gives it, batch by batch: Shuffle::How::given. The consumer adds batches a
// few steps before it takes them, the planner takes them as it goes. Safe from any thread: it has a lock of its own,
// the last one in the order of locks (signals.h).
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace stoker::loader {

class GivenOrder {
 public:
  struct Batch {
    std::uint64_t position = 0;  // of its first sample in the epoch
    std::vector<std::uint64_t> indices;
  };

  // The consumer. Forgets what was given: the epoch begins, or goes on, at this position.
  void restart(std::uint64_t position);
  void add(std::vector<std::uint64_t> indices);
  void end();  // no batch follows those that were added
  bool is_ended() const;
  std::uint64_t steps() const;  // added since restart()

  // The planner. None: nothing more was added yet, or ever will be.
  std::optional<Batch> take();
  bool is_over() const;  // ended, and all was taken

 private:
  mutable std::mutex mutex_;
  std::deque<Batch> batches_;   // added and not taken
  std::uint64_t position_ = 0;  // after all that was added
  std::uint64_t steps_ = 0;
  bool ended_ = false;
};

}  // namespace stoker::loader
