#include "stoker/prepare/shard_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>

#include "stoker/os/sync.h"
#include "stoker/os/write_all.h"
#include "stoker/os/write_at.h"
#include "stoker/storage/progress.h"

namespace stoker::prepare {

using storage::block_ceil;
using storage::block_floor;
using storage::kBlock;

ShardFile::ShardFile(std::string path, std::uint64_t keep_bytes) : path_(std::move(path)), bytes_(keep_bytes) {
  int error_number = 0;
  const int flags = O_RDWR | O_CREAT | (keep_bytes == 0 ? O_TRUNC : 0);
  fd_ = os::try_open(AT_FDCWD, path_.c_str(), flags | O_DIRECT, error_number);
  direct_ = static_cast<bool>(fd_);
  if (!direct_ && error_number == EINVAL) fd_ = os::try_open(AT_FDCWD, path_.c_str(), flags, error_number);
  check(error_number, "write");
  pieces_.resize(kPieces);
  for (Piece& piece : pieces_) {
    piece.arena = os::Arena(kPiece);
    free_.push_back(&piece);
  }
  if (keep_bytes > 0) {
    check(os::set_file_size(fd_.get(), keep_bytes), "cut");
    // Whole blocks only can be written: the last one is taken back.
    const std::uint64_t from = block_floor(keep_bytes);
    if (from < keep_bytes) {
      const os::Fd plain = os::open_file(path_, O_RDONLY);
      current_ = free_.front();
      free_.pop_front();
      current_->offset = from;
      current_->used = keep_bytes - from;
      os::read_exactly(plain.get(), {current_->arena.data(), current_->used}, from, path_);
    }
  }
  thread_ = std::thread([this] { write_loop(); });
}

ShardFile::~ShardFile() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ShardFile::check(int error_number, const char* operation) const {
  if (error_number != 0) throw system_error(error_number, operation, path_);
}

void ShardFile::check_locked() const {
  if (error_) throw *error_;
}

int ShardFile::write_piece(const Piece& piece) noexcept {
  const std::size_t whole = direct_ ? block_ceil(piece.used) : piece.used;
  for (std::size_t done = 0; done < whole;) {
    const std::int64_t written =
        os::write_some_at(fd_.get(), {piece.arena.data() + done, whole - done}, piece.offset + done);
    if (written < 0) return static_cast<int>(-written);
    if (written == 0) return ENOSPC;
    // A short O_DIRECT write may end inside a block: that block is written again.
    const auto count = static_cast<std::size_t>(written);
    done += direct_ && done + count < whole ? std::max<std::size_t>(block_floor(count), 0) : count;
    if (direct_ && count < kBlock && done < whole) return ENOSPC;
  }
  return 0;
}

void ShardFile::write_loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !full_.empty(); });
    if (full_.empty()) return;
    Piece* const piece = full_.front();
    full_.pop_front();
    writing_ = true;
    const bool broken = error_.has_value();
    lock.unlock();
    const int error_number = broken ? 0 : write_piece(*piece);
    lock.lock();
    writing_ = false;
    if (error_number != 0 && !error_) error_ = system_error(error_number, "write", path_);
    free_.push_back(piece);
    changed_.notify_all();
  }
}

void ShardFile::hand_over() {
  const std::scoped_lock lock(mutex_);
  check_locked();
  full_.push_back(std::exchange(current_, nullptr));
  changed_.notify_all();
}

void ShardFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (current_ == nullptr) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !free_.empty(); });
      check_locked();
      current_ = free_.front();
      free_.pop_front();
      current_->offset = bytes_;
      current_->used = 0;
    }
    const std::size_t count = std::min(bytes.size(), kPiece - current_->used);
    std::memcpy(current_->arena.data() + current_->used, bytes.data(), count);
    current_->used += count;
    bytes_ += count;
    bytes = bytes.subspan(count);
    if (current_->used == kPiece) hand_over();
  }
}

void ShardFile::append_zeros(std::uint64_t count) {
  static constexpr std::byte kZeros[4096] = {};
  while (count > 0) {
    const std::uint64_t some = std::min<std::uint64_t>(count, sizeof kZeros);
    append({kZeros, some});
    count -= some;
  }
}

void ShardFile::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return full_.empty() && !writing_; });
  check_locked();
}

void ShardFile::sync() {
  drain();
  if (current_ != nullptr && current_->used > 0) {
    if (direct_) std::memset(current_->arena.data() + current_->used, 0, block_ceil(current_->used) - current_->used);
    check(write_piece(*current_), "write");
    // What fills whole blocks need not be written again.
    const std::size_t whole = block_floor(current_->used);
    if (whole > 0) {
      std::memmove(current_->arena.data(), current_->arena.data() + whole, current_->used - whole);
      current_->offset += whole;
      current_->used -= whole;
    }
  }
  check(os::set_file_size(fd_.get(), bytes_), "write");
  check(os::sync_file(fd_.get()), "write to the disk");
}

void ShardFile::rewrite_start(std::span<const std::byte> bytes) {
  sync();
  int error_number = 0;
  const os::Fd plain = os::try_open(AT_FDCWD, path_.c_str(), O_WRONLY, error_number);
  check(error_number, "write");
  check(os::write_all(plain.get(), bytes), "write");  // from the start of the file: it was just opened
  check(os::sync_file(plain.get()), "write to the disk");
}

}  // namespace stoker::prepare
