#include "stoker/dataset/tar_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "stoker/base/units.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kFileWindow = 16 * kKiB;   // a label, its header and the next header, mostly
constexpr std::uint64_t kStoreWindow = 64 * kKiB;  // the same; fewer bytes do not come sooner
constexpr std::uint64_t kGrowth = 4;
constexpr std::uint64_t kStep = 32 * kMiB;  // of a whole shard: several requests at a time
// A request to a store takes as long as about this number of bytes: reading over a smaller member is cheaper.
constexpr std::uint64_t kJump = kMiB;

}  // namespace

TarWindow::TarWindow(const storage::Source& source, const Store& store)
    : source_(source),
      store_(store),
      least_(source.backend() == nullptr ? kFileWindow : kStoreWindow),
      most_(source.backend() == nullptr ? kFileWindow : std::max(store.most_bytes, kStoreWindow)),
      size_(least_) {
  if (source.backend() != nullptr && source.view().empty() && store_.hand_over != nullptr) {
    whole_ = store_.hand_over->take_room(source.size_bytes());
  }
}

TarWindow::~TarWindow() {
  if (whole_.size() > 0) store_.hand_over->give_back(std::move(whole_));
}

void TarWindow::read(std::uint64_t offset, std::span<std::byte> into, const std::function<void()>& meanwhile) {
  if (store_.reads != nullptr) return store_.reads->read(source_, offset, into, meanwhile);
  const storage::Read read{offset, into};
  source_.read({&read, 1});
}

std::span<const std::byte> TarWindow::bytes(std::uint64_t offset, std::uint64_t count) {
  if (const auto view = source_.view(); !view.empty()) return view.subspan(offset, count);
  if (whole_.size() > 0) {
    while (filled_ < offset + count) {
      const std::uint64_t step = std::min(kStep, source_.size_bytes() - filled_);
      // New memory costs more than copying into it. This thread has nothing else to do, and the first byte is not here
      // yet.
      read(filled_, whole_.bytes().subspan(filled_, step), [&] { whole_.populate(filled_, step); });
      filled_ += step;
    }
    return whole_.bytes().subspan(offset, count);
  }
  if (offset < at_ || offset + count > at_ + filled_) move_to(offset, count);
  return std::span(window_).subspan(offset - at_, count);
}

void TarWindow::move_to(std::uint64_t offset, std::uint64_t count) {
  const std::uint64_t end = at_ + filled_;
  size_ = offset >= at_ && offset <= end + kJump ? std::min(kGrowth * size_, most_) : least_;
  // What both windows have is not read again.
  const std::uint64_t kept = offset >= at_ && offset < end ? end - offset : 0;
  if (kept > 0) std::memmove(window_.data(), window_.data() + (offset - at_), kept);
  at_ = offset;
  filled_ = kept;
  const std::uint64_t bytes = std::min(std::max(count, size_), source_.size_bytes() - offset);
  window_.resize(bytes);
  read(offset + kept, std::span(window_).subspan(kept));
  filled_ = bytes;
}

void TarWindow::keep(std::uint64_t sample_bytes) {
  if (whole_.size() == 0 || filled_ < source_.size_bytes()) return;
  store_.hand_over->keep(source_, std::exchange(whole_, {}), sample_bytes);
}

}  // namespace stoker::dataset
