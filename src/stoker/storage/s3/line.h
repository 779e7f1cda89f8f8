// What waits its turn in a fetcher: first in, first out. Keeps its memory.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace stoker::storage::s3 {

template <typename T>
class Line {
 public:
  bool empty() const noexcept { return next_ == items_.size(); }
  std::size_t size() const noexcept { return items_.size() - next_; }
  void push(T item) {
    if (next_ > items_.size() / 2 && next_ >= 64) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(next_));
      next_ = 0;
    }
    items_.push_back(std::move(item));
  }
  T pop() {
    T item = std::move(items_[next_++]);
    if (empty()) {
      items_.clear();
      next_ = 0;
    }
    return item;
  }

 private:
  std::vector<T> items_;
  std::size_t next_ = 0;
};

}  // namespace stoker::storage::s3
