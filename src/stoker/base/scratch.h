// Working memory for one thread: grows to the largest sample seen and is reused, so that steady state allocates
// nothing. Bytes come from a Budget. Not shared between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "stoker/base/budget.h"

namespace stoker {

class Scratch {
 public:
  // `budget` may be null (tests, tools) and must outlive the scratch otherwise.
  explicit Scratch(Budget* budget = nullptr) noexcept : budget_(budget) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { release(); }

  // Hands out `bytes` more, 64-byte aligned, uninitialised, valid until reset(). Empty when the budget refuses:
  // the sample then fails with Code::no_memory. A refused take leaves what was handed out before intact.
  std::span<std::byte> take(std::size_t bytes) noexcept;

  // Forgets everything handed out, keeps the memory; after a spill, merges it into one block for the next sample.
  void reset() noexcept;
  // A place to come back to: what was taken since is forgotten, as far as it lies in the same block.
  struct Mark {
    const void* block = nullptr;
    std::size_t used = 0;
  };
  Mark mark() const noexcept { return head_ == nullptr ? Mark{} : Mark{head_, head_->used}; }
  void rewind(const Mark& mark) noexcept {
    if (head_ != nullptr && head_ == mark.block) head_->used = mark.used;
  }

  // Gives the memory back.
  void release() noexcept;

  std::size_t capacity_bytes() const noexcept { return capacity_; }

 private:
  struct Block {
    Block* next;
    std::size_t size;
    std::size_t used;
  };
  Block* add_block(std::size_t bytes) noexcept;

  Budget* budget_;
  Block* head_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace stoker
