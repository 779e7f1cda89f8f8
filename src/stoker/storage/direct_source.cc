// Reads are cut into pieces of at most kPiece bytes. A piece whose offset and buffer both lie on blocks is read in
// place, the others through a bounce buffer. Rings and bounce buffers wait in a pool of the process for the next call.
#include "stoker/storage/direct_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/os/arena.h"
#include "stoker/os/fault.h"
#include "stoker/os/fd.h"
#include "stoker/os/fork.h"
#include "stoker/os/ring.h"
#include "stoker/storage/progress.h"

namespace stoker::storage {
namespace {

constexpr std::size_t kPiece = 256 * 1024;
constexpr unsigned kDepth = 8;
constexpr std::size_t kIdleBenches = 8;  // 2 MiB each

// What one call works with.
struct Bench {
  os::Ring ring;  // empty where io_uring is refused
  os::Arena bounce{kPiece * kDepth};
  std::uint64_t generation = os::fork_generation();

  Bench() {
    int refused = 0;
    ring = os::Ring::try_make(kDepth, refused);
  }
};

class Pool {
 public:
  std::unique_ptr<Bench> take() {
    {
      const std::lock_guard lock(mutex_);
      while (!idle_.empty()) {
        std::unique_ptr<Bench> bench = std::move(idle_.back());
        idle_.pop_back();
        if (bench->generation == os::fork_generation()) return bench;
      }
    }
    return std::make_unique<Bench>();
  }
  void put_back(std::unique_ptr<Bench> bench) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kIdleBenches) idle_.push_back(std::move(bench));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Bench>> idle_;
};

Pool& pool() {
  static Pool* const pool = new Pool;  // never destroyed: threads may read until the very end
  return *pool;
}

struct Piece {
  Progress progress;
  std::byte* buffer = nullptr;   // on a block
  std::byte* copy_to = nullptr;  // null: read in place
  std::size_t copy_bytes = 0;
};

class DirectSource final : public Source {
 public:
  DirectSource(std::string path, os::Fd fd, std::uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  std::string_view name() const noexcept override { return path_; }
  std::uint64_t size_bytes() const noexcept override { return size_; }
  int descriptor() const noexcept override { return fd_.get(); }
  bool is_direct() const noexcept override { return true; }
  ReadAdvice advice() const noexcept override { return {.join = true, .in_place = false}; }

  void read(std::span<const Read> reads) const override {
    for (const Read& read : reads) check_range(path_, size_, read);
    std::unique_ptr<Bench> bench = pool().take();
    if (bench->ring) {
      read_through_ring(*bench, reads);
    } else {
      Cutter cutter(reads);
      while (std::optional<Piece> piece = cutter.next(bench->bounce.data())) finish(*piece);
    }
    pool().put_back(std::move(bench));  // one that saw an error goes instead
  }

 private:
  // Cuts reads into pieces, one at a time.
  class Cutter {
   public:
    explicit Cutter(std::span<const Read> reads) : reads_(reads) {}

    std::optional<Piece> next(std::byte* bounce) {
      while (index_ < reads_.size() && done_ == reads_[index_].into.size()) ++index_, done_ = 0;
      if (index_ == reads_.size()) return std::nullopt;
      const Read& read = reads_[index_];
      std::byte* const to = read.into.data() + done_;
      const std::uint64_t offset = read.offset + done_;
      const std::size_t left = read.into.size() - done_;
      Piece piece;
      std::size_t bytes = 0;
      if (offset % kBlock == 0 && reinterpret_cast<std::uintptr_t>(to) % kBlock == 0 && left >= kBlock) {
        bytes = std::min<std::size_t>(block_floor(left), kPiece);
        piece.buffer = to;
      } else {
        bytes = std::min<std::size_t>(left, kPiece - offset % kBlock);
        piece.buffer = bounce;
        piece.copy_to = to;
        piece.copy_bytes = bytes;
      }
      piece.progress = Progress::range(offset, bytes, true);
      done_ += bytes;
      return piece;
    }

   private:
    std::span<const Read> reads_;
    std::size_t index_ = 0;
    std::size_t done_ = 0;
  };

  static void deliver(const Piece& piece) {
    if (piece.copy_to != nullptr) std::memcpy(piece.copy_to, piece.buffer + piece.progress.head, piece.copy_bytes);
  }

  Error ended(const Piece& piece) const {
    return Error(ErrorKind::corrupt,
                 fmt::format("cannot read `{}` at byte {}: the file had {} bytes when it was opened and is shorter now",
                             path_, piece.progress.start + piece.progress.done, size_),
                 "do not change files while they are read: open it again");
  }

  // Reads what is missing of a piece, with plain system calls.
  void finish(Piece& piece) const {
    int tries_left = 100;
    for (;;) {
      Progress& progress = piece.progress;
      const std::uint64_t at = progress.resume();
      os::Fault fault;
      std::int64_t got = 0;
      if (os::fault_now(os::Call::read, fault) && fault.error_number != 0) {
        got = -fault.error_number;
      } else {
        got = ::pread(fd_.get(), piece.buffer + at, progress.remaining(), static_cast<off_t>(progress.start + at));
        if (got < 0) got = -errno;
      }
      if (got == -EINTR || (got == -EAGAIN && --tries_left > 0)) continue;
      if (got < 0) {
        throw system_error(static_cast<int>(-got), fmt::format("read at byte {} of", progress.start + at), path_);
      }
      const Progress::Next next =
          progress.advance(progress.shortened(static_cast<std::uint64_t>(got), fault.short_bytes));
      if (next == Progress::Next::full) return deliver(piece);
      if (next == Progress::Next::ended) throw ended(piece);
    }
  }

  // Order: queue pieces while there are free ones; wait; complete; after the first error only drain, then throw.
  void read_through_ring(Bench& bench, std::span<const Read> reads) const {
    Cutter cutter(reads);
    std::array<Piece, kDepth> pieces;
    std::array<unsigned, kDepth> free{};
    unsigned free_count = kDepth;
    for (unsigned i = 0; i < kDepth; ++i) free[i] = kDepth - 1 - i;
    std::exception_ptr error;
    bool exhausted = false;
    int tries_left = 1000;

    const auto complete = [&](unsigned index, std::int64_t result) {
      free[free_count++] = index;
      if (error) return;
      try {
        Piece& piece = pieces[index];
        if (result >= 0 && piece.progress.advance(static_cast<std::uint64_t>(result)) == Progress::Next::full) {
          deliver(piece);
        } else {
          finish(piece);  // short, interrupted or failed: says why, or reads the rest
        }
      } catch (...) {
        error = std::current_exception();
      }
    };

    for (;;) {
      while (!error && !exhausted && free_count > 0) {
        const unsigned index = free[free_count - 1];
        std::optional<Piece> piece = cutter.next(bench.bounce.data() + index * kPiece);
        if (!piece) {
          exhausted = true;
          break;
        }
        --free_count;
        pieces[index] = *piece;
        os::Fault fault;
        if (os::fault_now(os::Call::read, fault)) {
          if (fault.error_number != 0 && fault.error_number != EINTR && fault.error_number != EAGAIN) {
            free[free_count++] = index;
            error = std::make_exception_ptr(
                system_error(fault.error_number, fmt::format("read at byte {} of", piece->progress.start), path_));
            break;
          }
          complete(index, 0);  // the rest comes with plain calls
          continue;
        }
        io_uring_sqe* const sqe = bench.ring.sqe();
        io_uring_prep_read(sqe, fd_.get(), piece->buffer, static_cast<unsigned>(piece->progress.want),
                           piece->progress.start);
        sqe->user_data = index;
      }
      if (free_count == kDepth) break;
      const int result = bench.ring.submit_and_wait(std::chrono::nanoseconds::max());
      if (result < 0 && result != -EINTR && (--tries_left == 0 || (result != -EAGAIN && result != -EBUSY))) {
        if (!error) error = std::make_exception_ptr(system_error(-result, "read through io_uring", path_));
        if (tries_left <= 0) break;
      }
      bench.ring.take_completions([&](std::uint64_t index, int got) { complete(static_cast<unsigned>(index), got); });
    }
    if (error) std::rethrow_exception(error);
  }

  std::string path_;
  os::Fd fd_;
  std::uint64_t size_;
};

bool refuses_direct(int error_number) {
  return error_number == EINVAL || error_number == EOPNOTSUPP;
}

}  // namespace

void check_range(std::string_view name, std::uint64_t size_bytes, const Read& read) {
  if (read.offset <= size_bytes && read.into.size() <= size_bytes - read.offset) return;
  throw Error(ErrorKind::corrupt,
              fmt::format("cannot read {} bytes at byte {} of `{}`: it has {} bytes", read.into.size(), read.offset,
                          name, size_bytes),
              "the index and the data do not belong together: make them again");
}

std::unique_ptr<Source> open_direct_source(const std::string& path) {
  int error_number = 0;
  os::Fd fd = os::try_open(AT_FDCWD, path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_DIRECT, error_number);
  if (refuses_direct(error_number)) return nullptr;
  if (!fd) throw system_error(error_number, "open", path);
  const std::uint64_t size = os::file_size(fd.get(), path);
  (void)::fcntl(fd.get(), F_SETFL, O_RDONLY | O_DIRECT);  // from here on waiting is right: it is no pipe
  // Some file systems take the flag and refuse the first read.
  alignas(kBlock) std::array<std::byte, kBlock> probe;
  if (const std::int64_t got = os::read_some(fd.get(), probe, 0); got < 0 && refuses_direct(static_cast<int>(-got))) {
    return nullptr;
  }
  return std::make_unique<DirectSource>(path, std::move(fd), size);
}

}  // namespace stoker::storage
