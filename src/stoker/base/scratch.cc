#include "stoker/base/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace stoker {
namespace {
constexpr std::size_t kHeader = 64;
constexpr std::size_t kLeast = 256 * 1024;
constexpr std::size_t kMost = std::size_t{1} << 46;
}  // namespace

void Scratch::work_in(std::span<std::byte> memory) noexcept {
  release();
  is_given_ = true;
  wanted_ = 0;
  if (memory.size() < kHeader) return;
  head_ = new (memory.data()) Block{nullptr, memory.size(), kHeader};
  capacity_ = memory.size();
}

Scratch::Block* Scratch::add_block(std::size_t bytes) noexcept {
  if (is_given_) return nullptr;
  const std::size_t size = std::max(kLeast, (bytes + kHeader + 4095) / 4096 * 4096);
  if (budget_ != nullptr && !budget_->try_take(size)) return nullptr;
  void* memory = std::aligned_alloc(4096, size);
  if (memory == nullptr) {
    if (budget_ != nullptr) budget_->give_back(size);
    return nullptr;
  }
  head_ = new (memory) Block{head_, size, kHeader};
  capacity_ += size;
  return head_;
}

void Scratch::refuse(std::size_t bytes) noexcept {
  wanted_ = std::max(wanted_, (head_ == nullptr ? kHeader : head_->used) + bytes);
}

std::span<std::byte> Scratch::take(std::size_t bytes) noexcept {
  const std::size_t need = rounded(std::min(bytes, kMost));
  if (bytes > kMost || (room() < need && add_block(need) == nullptr)) {
    refuse(need);
    return {};
  }
  std::byte* const at = reinterpret_cast<std::byte*>(head_) + head_->used;
  head_->used += need;
  return {at, bytes};
}

bool Scratch::expect(std::size_t bytes) noexcept {
  if (!is_given_ || bytes <= room()) return true;
  refuse(std::min(bytes, kMost));
  return false;
}

void Scratch::reset() noexcept {
  wanted_ = 0;
  if (head_ == nullptr) return;
  if (head_->next != nullptr) {
    const std::size_t total = capacity_;
    release();
    (void)add_block(total - kHeader);  // refused: the next take asks again
    if (head_ == nullptr) return;
  }
  head_->used = kHeader;
}

void Scratch::release() noexcept {
  while (head_ != nullptr && !is_given_) {
    Block* const next = head_->next;
    if (budget_ != nullptr) budget_->give_back(head_->size);
    std::free(head_);
    head_ = next;
  }
  head_ = nullptr;
  capacity_ = 0;
}

}  // namespace stoker
