#include "stoker/loader/sweep.h"

#include <algorithm>
#include <tuple>

#include "stoker/base/units.h"
#include "stoker/storage/progress.h"

namespace stoker::loader {
namespace {

// Disks reach their full rate well below this, and rows should not wait for more than they need.
constexpr std::uint64_t kMostRead = 1 * kMiB;
// Headers of a tar lie between its members; reading them along is cheaper than another request.
constexpr std::uint64_t kLargestGap = 4 * kKiB;

std::uint64_t blocks_of(std::uint64_t offset, std::uint64_t bytes) noexcept {
  return storage::block_ceil(offset % storage::kBlock + bytes);
}

}  // namespace

Sweep::Sweep(std::uint64_t bytes) : arena_(bytes) {}

void Sweep::clear() noexcept {
  units.clear();
  pieces.clear();
  reads.clear();
  submitted = 0;
  used_ = 0;
}

bool Sweep::has_room(const storage::Range& range, std::uint64_t most) const noexcept {
  if (used_ == 0) return could_hold(range);
  const std::uint64_t need = used_ + blocks_of(range.offset, range.bytes);
  return need <= std::min<std::uint64_t>(most, arena_.size());
}

bool Sweep::could_hold(const storage::Range& range) const noexcept {
  return range.bytes <= arena_.size() && blocks_of(range.offset, range.bytes) <= arena_.size();
}

void Sweep::add(Unit& unit, std::uint32_t row, const storage::Range& range) {
  pieces.push_back({&unit, row, range});
  used_ += blocks_of(range.offset, range.bytes);
}

void Sweep::skip(const storage::Range& range) noexcept {
  used_ += blocks_of(range.offset, range.bytes);
}

void Sweep::arrange() {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.range.source, a.range.offset) < std::tie(b.range.source, b.range.offset);
  });
  std::uint64_t spare = arena_.size() - std::min<std::uint64_t>(used_, arena_.size());  // what gaps may take
  for (std::uint32_t i = 0; i < pieces.size(); ++i) {
    const storage::Range& range = pieces[i].range;
    const std::uint64_t end = range.offset + range.bytes;
    if (!reads.empty() && reads.back().source == range.source) {
      Read& last = reads.back();
      const std::uint64_t last_end = last.offset + last.bytes;
      const std::uint64_t gap = range.offset > last_end ? range.offset - last_end : 0;
      const std::uint64_t longer = std::max(end, last_end) - last.offset;
      if (gap <= std::min(kLargestGap, spare) && longer <= kMostRead) {
        spare -= gap;
        last.bytes = longer;
        ++last.pieces;
        continue;
      }
    }
    reads.push_back({range.source, range.offset, range.bytes, nullptr, 0, this, i, 1});
  }
  std::byte* at = arena_.data();
  for (Read& read : reads) {
    read.into = at;
    read.room = blocks_of(read.offset, read.bytes);
    at += read.room;
  }
}

}  // namespace stoker::loader
