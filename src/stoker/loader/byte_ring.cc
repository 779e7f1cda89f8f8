#include "stoker/loader/byte_ring.h"

namespace stoker::loader {

ByteRing::ByteRing(std::size_t bytes, std::size_t max_blocks, std::size_t align)
    : align_(align), arena_(bytes), entries_(max_blocks) {}

ByteRing::Block ByteRing::take(std::size_t bytes) {
  const std::size_t need = (bytes + align_ - 1) / align_ * align_;
  const std::scoped_lock lock(mutex_);
  if (next_ - first_ == entries_.size()) return {};
  if (first_ == next_) head_ = tail_ = 0;
  std::size_t at = head_;
  if (first_ == next_ || head_ > tail_) {
    // In use is [tail, head): free are [head, end) and [0, tail).
    if (arena_.size() - head_ < need) {
      if (first_ == next_ || tail_ <= need)
        return {};  // `<=`: head must not catch up with tail while blocks are in use
      at = 0;
    }
  } else if (tail_ - head_ <= need) {
    return {};
  }
  const Block block{arena_.data() + at, next_};
  head_ = at + need;
  entries_[next_ % entries_.size()] = {head_, false};
  ++next_;
  return block;
}

void ByteRing::give_back(const Block& block) {
  const std::scoped_lock lock(mutex_);
  entries_[block.ticket % entries_.size()].free = true;
  while (first_ != next_ && entries_[first_ % entries_.size()].free) {
    tail_ = entries_[first_ % entries_.size()].end;
    ++first_;
  }
}

bool ByteRing::is_empty() const {
  const std::scoped_lock lock(mutex_);
  return first_ == next_;
}

}  // namespace stoker::loader
