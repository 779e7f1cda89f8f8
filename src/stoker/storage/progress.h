// How one read proceeds through short answers, for reads through the page cache and past it (O_DIRECT, whole blocks
// only).
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker::storage {

inline constexpr std::uint64_t kBlock = 4096;  // of O_DIRECT: at least the logical block of any disk in use

constexpr std::uint64_t block_floor(std::uint64_t bytes) noexcept {
  return bytes / kBlock * kBlock;
}
constexpr std::uint64_t block_ceil(std::uint64_t bytes) noexcept {
  return block_floor(bytes + kBlock - 1);
}

struct Progress {
  std::uint64_t start = 0;  // file offset of the first byte of the buffer
  std::uint64_t head = 0;   // bytes of the buffer before those asked for
  std::uint64_t need = 0;   // bytes of the buffer that must be there in the end, head included
  std::uint64_t want =
      0;  // bytes of the buffer to ask the kernel for; one or more beyond `need` shows a file that grew
  std::uint64_t done = 0;
  bool direct = false;

  static constexpr Progress whole_file(std::uint64_t bytes, bool direct) noexcept {
    return {0, 0, bytes, direct ? block_ceil(bytes + 1) : bytes + 1, 0, direct};
  }
  static constexpr Progress range(std::uint64_t offset, std::uint64_t bytes, bool direct) noexcept {
    if (!direct) return {offset, 0, bytes, bytes, 0, false};
    const std::uint64_t head = offset % kBlock;
    return {offset - head, head, head + bytes, block_ceil(head + bytes), 0, true};
  }

  // Where in the buffer the next answer goes. O_DIRECT repeats a block that came in part.
  constexpr std::uint64_t resume() const noexcept { return direct ? block_floor(done) : done; }
  constexpr std::uint64_t remaining() const noexcept { return want - resume(); }

  // What an answer of `got` bytes becomes when a test wants it short. O_DIRECT is short by whole blocks.
  constexpr std::uint64_t shortened(std::uint64_t got, std::int64_t short_bytes) const noexcept {
    if (short_bytes < 0) return got;
    const auto limit = static_cast<std::uint64_t>(short_bytes);
    const std::uint64_t most = direct ? block_ceil(limit) : limit;
    return got < most ? got : most;
  }

  enum class Next { more, full, ended };
  // After an answer of `got` bytes to a read of remaining() bytes at resume().
  constexpr Next advance(std::uint64_t got) noexcept {
    const std::uint64_t before = done;
    if (resume() + got > done) done = resume() + got;
    if (done >= need) return Next::full;
    return done > before ? Next::more : Next::ended;
  }
};

}  // namespace stoker::storage
