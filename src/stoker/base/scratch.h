// Working memory for one thread: the pieces that making one sample needs, handed out one after another and forgotten
// together. It either grows to the largest sample seen and is reused (tools, tests; a Budget may bound it), or it lies
// in memory that its owner gives it and takes back (the loader). Not shared between threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

  // From now on it hands out `memory` and nothing else, until work_in() or release(). The caller keeps the memory
  // alive. Forgets everything handed out.
  void work_in(std::span<std::byte> memory) noexcept;

  // Hands out `bytes` more, 64-byte aligned, uninitialised, valid until reset(). Empty when there is no room: the
  // sample then fails with Code::no_memory. A refused take leaves what was handed out before intact.
  std::span<std::byte> take(std::size_t bytes) noexcept;

  // Says in advance that the sample takes `bytes` more in all, so that it fails before any work is done. False: there
  // is less room in the memory that the owner gave.
  [[nodiscard]] bool expect(std::size_t bytes) noexcept;

  // The memory to work in that would have had room for what was refused since the last reset(). 0: nothing was refused.
  std::size_t wanted_bytes() const noexcept { return wanted_; }

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

  // Gives the memory back; what the owner gave is only forgotten.
  void release() noexcept;

  std::size_t capacity_bytes() const noexcept { return capacity_; }

  // What a take of `bytes` really takes.
  static constexpr std::size_t rounded(std::size_t bytes) noexcept {
    return (std::max<std::size_t>(bytes, 1) + kAlign - 1) / kAlign * kAlign;
  }

 private:
  static constexpr std::size_t kAlign = 64;
  struct Block {
    Block* next;
    std::size_t size;
    std::size_t used;
  };
  Block* add_block(std::size_t bytes) noexcept;
  std::size_t room() const noexcept { return head_ == nullptr ? 0 : head_->size - head_->used; }
  void refuse(std::size_t bytes) noexcept;

  Budget* budget_;
  Block* head_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t wanted_ = 0;
  bool is_given_ = false;  // the memory belongs to the owner
};

}  // namespace stoker
