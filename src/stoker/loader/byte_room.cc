#include "stoker/loader/byte_room.h"

#include <algorithm>

#include "stoker/base/round.h"

namespace stoker::loader {

ByteRoom::ByteRoom(std::size_t bytes, std::size_t max_blocks, Reuse reuse, std::size_t align)
    : reuse_(reuse), align_(align), max_blocks_(max_blocks), arena_(bytes), pieces_(2 * max_blocks + 1) {
  spare_.reserve(pieces_.size());
  for (std::size_t i = pieces_.size(); i-- > 1;) spare_.push_back(static_cast<std::uint32_t>(i));
  pieces_[0].bytes = free_bytes_ = arena_.size();
  add_free(0);
}

ByteRoom::Block ByteRoom::take(std::size_t bytes) {
  const std::size_t need = round_up(std::max<std::size_t>(bytes, 1), align_);
  const std::scoped_lock lock(mutex_);
  if (blocks_ == max_blocks_ || need > free_bytes_ || need >= too_much_) return {};
  const std::uint32_t number = find(need);
  if (number == kNone) {
    if (reuse_ == Reuse::anywhere) too_much_ = need;
    return {};
  }
  remove_free(number);
  Piece& piece = pieces_[number];
  if (piece.bytes > need) {
    const std::uint32_t rest = spare_.back();
    spare_.pop_back();
    pieces_[rest] = {piece.at + need, piece.bytes - need, number, piece.after};
    if (piece.after != kNone) pieces_[piece.after].before = rest;
    piece.after = rest;
    piece.bytes = need;
    add_free(rest);
  }
  free_bytes_ -= need;
  ++blocks_;
  if (reuse_ == Reuse::in_order) {
    (oldest_ == kNone ? oldest_ : pieces_[newest_].next_free) = number;
    newest_ = number;
    head_ = piece.at + need;
  }
  return {arena_.data() + piece.at, number};
}

void ByteRoom::give_back(const Block& block) {
  const std::scoped_lock lock(mutex_);
  if (reuse_ == Reuse::anywhere) return release(block.piece);
  pieces_[block.piece].returned = true;
  while (oldest_ != kNone && pieces_[oldest_].returned) {
    const std::uint32_t next = pieces_[oldest_].next_free;
    release(oldest_);
    oldest_ = next;
  }
  if (blocks_ == 0) head_ = 0;
}

bool ByteRoom::is_empty() const {
  const std::scoped_lock lock(mutex_);
  return blocks_ == 0;
}

std::uint32_t ByteRoom::find(std::size_t need) const {
  std::uint32_t at_the_start = kNone;
  for (std::uint32_t number = first_free_; number != kNone; number = pieces_[number].next_free) {
    const Piece& piece = pieces_[number];
    if (piece.bytes < need) continue;
    if (reuse_ == Reuse::anywhere || piece.at == head_) return number;
    if (piece.at == 0) at_the_start = number;  // round the end, unless there is room behind the newest
  }
  return at_the_start;
}

// A block becomes free, together with the free pieces on both sides of it.
void ByteRoom::release(std::uint32_t number) {
  Piece& piece = pieces_[number];
  free_bytes_ += piece.bytes;
  --blocks_;
  if (piece.after != kNone && pieces_[piece.after].free) {
    remove_free(piece.after);
    absorb(number, piece.after);
  }
  std::uint32_t merged = number;
  if (piece.before != kNone && pieces_[piece.before].free) {
    merged = piece.before;
    absorb(merged, number);
  } else {
    add_free(number);
  }
  if (pieces_[merged].bytes >= too_much_) too_much_ = kNoLimit;
}

void ByteRoom::absorb(std::uint32_t number, std::uint32_t next) {
  Piece& piece = pieces_[number];
  piece.bytes += pieces_[next].bytes;
  piece.after = pieces_[next].after;
  if (piece.after != kNone) pieces_[piece.after].before = number;
  spare_.push_back(next);
}

void ByteRoom::add_free(std::uint32_t number) {
  Piece& piece = pieces_[number];
  piece.free = true;
  piece.returned = false;
  piece.previous_free = kNone;
  piece.next_free = first_free_;
  if (first_free_ != kNone) pieces_[first_free_].previous_free = number;
  first_free_ = number;
}

void ByteRoom::remove_free(std::uint32_t number) {
  Piece& piece = pieces_[number];
  if (piece.previous_free != kNone) pieces_[piece.previous_free].next_free = piece.next_free;
  if (piece.next_free != kNone) pieces_[piece.next_free].previous_free = piece.previous_free;
  if (first_free_ == number) first_free_ = piece.next_free;
  piece.free = false;
  piece.previous_free = piece.next_free = kNone;
}

}  // namespace stoker::loader
