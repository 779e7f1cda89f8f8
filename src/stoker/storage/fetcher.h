// Many reads in flight from one thread: whole small files (open, read, close), ranges of open sources, objects of a
// store.
// This is how the loader gets its bytes. One Fetcher belongs to one thread; make as many as there are I/O threads.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "stoker/storage/failure.h"
#include "stoker/storage/location.h"
#include "stoker/storage/next_use.h"
#include "stoker/storage/source.h"
#include "stoker/storage/store_figures.h"

namespace stoker::storage {

struct Fetch {
  // What to read. The text of the location is borrowed until submit() returns. A file must be exactly `where.bytes`
  // long.
  Location where;
  // At least buffer_bytes(where.bytes), aligned to alignment(). If the source has a view it may be empty, and the
  // answer then lies in the view; otherwise the bytes are copied, at once, by the caller's thread.
  std::span<std::byte> into;
  std::uint64_t tag = 0;  // comes back in Fetched
  NextUse use{};          // for a cache that has to choose what to keep
};

// Whether the bytes lie in the view of their source: a fetch of them needs no room.
inline bool has_view(const Location& where) noexcept {
  return where.source != nullptr && !where.source->view().empty();
}

// The fetch of a location that a data set gave, still without room. None: the text of its name had no room in the
// buffer, so no system call would take it; the sample fails with ENAMETOOLONG.
inline std::optional<Fetch> fetch_of(const Location& where, std::uint64_t tag) noexcept {
  if (where.has_name() && where.name == nullptr) return std::nullopt;
  return Fetch{.where = where, .into = {}, .tag = tag};
}

enum class FetchCode : std::uint8_t {
  ok,
  failed,        // why() says why
  size_changed,  // the file is now shorter or longer than `where.bytes`; actual_bytes says how long, where known
};

struct Fetched {
  std::uint64_t tag = 0;
  FetchCode code = FetchCode::ok;
  int error_number = 0;  // of the system call that failed; 0: `failure` says what it was
  std::uint64_t actual_bytes = 0;
  std::span<const std::byte> data;         // `where.bytes` long, inside `into` or inside the source's view
  std::shared_ptr<const Failure> failure;  // null: error_number says all

  Failure why() const { return failure ? *failure : failure_of(error_number); }  // of one that failed
};

// When a fetcher has something to do again, for a caller that waits for several of them: once one of the descriptors
// can be read, or after `within`.
struct Readiness {
  static constexpr std::size_t kMost = 16;
  static constexpr std::chrono::nanoseconds kLook = std::chrono::milliseconds(1);

  std::array<int, kMost> descriptors{};
  std::size_t count = 0;
  std::chrono::nanoseconds within = std::chrono::nanoseconds::max();

  void add(int descriptor) noexcept {
    if (count < kMost) {
      descriptors[count++] = descriptor;
    } else {
      add(kLook);  // there are too many to wait for: look now and then
    }
  }
  void add(std::chrono::nanoseconds at_most) noexcept { within = at_most < within ? at_most : within; }
};

class Fetcher {
 public:
  virtual ~Fetcher() = default;

  virtual std::size_t alignment() const noexcept = 0;                        // of Fetch::into
  virtual std::size_t buffer_bytes(std::uint64_t bytes) const noexcept = 0;  // that Fetch::into must have
  // The same reads may go straight into place without slack (a batch slot): ranges of buffered or mapped sources.
  virtual bool reads_in_place(const Source& source) const noexcept = 0;

  // Whether whole files asked for with O_DIRECT come through the page cache, because the file system refuses the flag.
  virtual bool direct_refused() const noexcept { return false; }

  // Reads wait for the disk one after another, in the thread of the fetcher: more threads keep more reads in flight.
  virtual bool reads_one_by_one() const noexcept { return false; }

  virtual std::size_t room() const noexcept = 0;       // how many more may be submitted now
  virtual std::size_t in_flight() const noexcept = 0;  // submitted and not yet returned by wait()
  virtual void submit(std::span<const Fetch> fetches) = 0;
  // Blocks until something finished, wake() was called, `timeout` has passed or nothing is in flight; returns how
  // many entries of `out` were filled. Never throws for a failing file: that is a Fetched. A wake() that came while
  // nobody waited ends the next wait. What submit() took starts, at the latest, here.
  virtual std::size_t wait(std::span<Fetched> out, std::chrono::nanoseconds timeout) = 0;
  // After a wait() without a result: adds what the next result is announced by. A wake() is announced too, or ends the
  // next wait().
  virtual void when_ready(Readiness& ready) const noexcept = 0;
  // Ends a wait() early. This and figures() are the only calls allowed from another thread.
  virtual void wake() noexcept = 0;
  virtual StoreFigures figures() const noexcept { return {}; }  // so far
};

class ObjectCache;

inline constexpr std::size_t kMaxDepth = 8192;

struct FetcherOptions {
  Storage storage = Storage::buffered;
  std::size_t depth = 128;               // requests in flight; at most kMaxDepth
  std::size_t io_batch = 32;             // requests handed to the kernel at once
  bool allow_io_uring = true;            // false: plain system calls, one after another
  std::shared_ptr<ObjectCache> cache{};  // where objects of stores are kept; null: nowhere
};

// For local files; see backend.h for all others. Falls back to plain system calls where io_uring is refused;
// `fallback_reason` (if given) then says why, else is empty.
std::unique_ptr<Fetcher> make_fetcher(const FetcherOptions& options, std::string* fallback_reason = nullptr);

}  // namespace stoker::storage
