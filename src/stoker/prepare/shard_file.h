// A file that grows by appending, written past the page cache in large pieces by a thread of its own, so that the
// caller rarely waits for the disk. Falls back to plain writes where the file system refuses O_DIRECT.
// One thread appends. An error of the writing thread is thrown by the next call.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/os/arena.h"
#include "stoker/os/fd.h"

namespace stoker::prepare {

class ShardFile {
 public:
  static constexpr std::size_t kPiece = std::size_t{4} << 20;
  static constexpr std::size_t kPieces = 4;  // 16 MiB of memory

  // A new file, or one that is continued: `keep_bytes` of it stay, what lies beyond is cut off. Throws Error.
  explicit ShardFile(std::string path, std::uint64_t keep_bytes = 0);
  ~ShardFile();  // leaves the file as it is
  ShardFile(const ShardFile&) = delete;
  ShardFile& operator=(const ShardFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::uint64_t bytes() const noexcept { return bytes_; }  // appended so far, with what was kept

  void append(std::span<const std::byte> bytes);
  void append_zeros(std::uint64_t count);
  // Everything appended so far is on the disk when it returns, and the file is exactly as long.
  void sync();
  // Replaces the first bytes of the file, which must have been appended. For heads that say how much follows.
  void rewrite_start(std::span<const std::byte> bytes);

 private:
  struct Piece {
    os::Arena arena;
    std::uint64_t offset = 0;  // in the file, a multiple of the block
    std::size_t used = 0;
  };
  void write_loop();
  int write_piece(const Piece& piece) noexcept;  // 0 or the error number
  void hand_over();
  void drain();
  void check(int error_number, const char* operation) const;
  void check_locked() const;  // throws the error of the writing thread

  std::string path_;
  os::Fd fd_;
  bool direct_ = false;
  std::uint64_t bytes_ = 0;
  std::vector<Piece> pieces_;
  Piece* current_ = nullptr;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece*> free_, full_;
  bool writing_ = false, stopping_ = false;
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace stoker::prepare
