#include "stoker/storage/hand_over.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "stoker/base/error.h"

namespace stoker::storage {

os::Arena HandOver::take_room(std::uint64_t bytes) noexcept {
  if (bytes == 0) return {};
  const std::uint64_t need = os::Arena::rounded(bytes);
  {
    const std::scoped_lock lock(mutex_);
    if (need > limit_ - std::min(limit_, held_)) return {};
    held_ += need;
  }
  try {
    return os::Arena(bytes);
  } catch (const Error&) {  // the machine has less memory than the limit says
    const std::scoped_lock lock(mutex_);
    held_ -= need;
    return {};
  }
}

void HandOver::give_back(os::Arena room) noexcept {
  const std::scoped_lock lock(mutex_);
  held_ -= room.size();
}

void HandOver::keep(const Source& source, os::Arena room, std::uint64_t sample_bytes) {
  if (sample_bytes == 0) return give_back(std::move(room));
  auto bytes = std::make_shared<os::Arena>(std::move(room));
  const std::scoped_lock lock(mutex_);
  kept_.insert_or_assign(&source, Kept{std::move(bytes), sample_bytes});
}

bool HandOver::copy_from(const std::shared_ptr<os::Arena>& bytes, std::uint64_t offset, std::span<std::byte> into) {
  if (!bytes || offset > bytes->size() || into.size() > bytes->size() - offset) return false;
  if (!into.empty()) std::memcpy(into.data(), bytes->data() + offset, into.size());
  return true;
}

bool HandOver::copy(const Source& source, std::uint64_t offset, std::span<std::byte> into) const {
  std::shared_ptr<os::Arena> bytes;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = kept_.find(&source);
    if (found != kept_.end()) bytes = found->second.bytes;
  }
  return copy_from(bytes, offset, into);
}

bool HandOver::hand_out(const Source& source, std::uint64_t offset, std::span<std::byte> into,
                        std::uint64_t first_used) {
  std::shared_ptr<os::Arena> bytes;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = kept_.find(&source);
    if (found == kept_.end()) return false;
    Kept& kept = found->second;
    bytes = kept.bytes;
    kept.sample_bytes_left -= std::min(kept.sample_bytes_left, first_used);
    if (kept.sample_bytes_left == 0) {
      held_ -= bytes->size();
      kept_.erase(found);
    }
  }
  return copy_from(bytes, offset, into);
}

os::Arena HandOver::take(const Source& source) {
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(&source);
  if (found == kept_.end() || found->second.bytes.use_count() > 1) return {};
  os::Arena bytes = std::move(*found->second.bytes);
  held_ -= bytes.size();
  kept_.erase(found);
  return bytes;
}

void HandOver::shrink(std::uint64_t most_bytes) {
  const std::scoped_lock lock(mutex_);
  while (held_ > most_bytes && !kept_.empty()) {
    held_ -= kept_.begin()->second.bytes->size();
    kept_.erase(kept_.begin());
  }
}

std::uint64_t HandOver::held_bytes() const noexcept {
  const std::scoped_lock lock(mutex_);
  return held_;
}

}  // namespace stoker::storage
