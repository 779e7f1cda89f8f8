#include "stoker/base/scratch.h"

#include <algorithm>
#include <cstdlib>

namespace stoker {
namespace {
constexpr std::size_t kAlign = 64;
constexpr std::size_t kHeader = 64;
constexpr std::size_t kLeast = 256 * 1024;

constexpr std::size_t rounded(std::size_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}
}  // namespace

Scratch::Block* Scratch::add_block(std::size_t bytes) noexcept {
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

std::span<std::byte> Scratch::take(std::size_t bytes) noexcept {
  if (bytes > (std::size_t{1} << 46)) return {};
  const std::size_t need = rounded(std::max<std::size_t>(bytes, 1));
  if (head_ == nullptr || head_->size - head_->used < need) {
    if (add_block(need) == nullptr) return {};
  }
  std::byte* const at = reinterpret_cast<std::byte*>(head_) + head_->used;
  head_->used += need;
  return {at, bytes};
}

void Scratch::reset() noexcept {
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
  while (head_ != nullptr) {
    Block* const next = head_->next;
    if (budget_ != nullptr) budget_->give_back(head_->size);
    std::free(head_);
    head_ = next;
  }
  capacity_ = 0;
}

}  // namespace stoker
