#include "stoker/prepare/object_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/round.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/os/event.h"
#include "stoker/os/fd.h"

namespace stoker::prepare {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::nanoseconds kAsk = std::chrono::milliseconds(100);  // how often keep_going() is asked

class ObjectReading {
 public:
  ObjectReading(std::span<const ReadItem> items, std::span<const storage::Backend* const> backends,
                const ReaderOptions& options, const ReadHandlers& handlers)
      : items_(items),
        options_(options),
        handlers_(handlers),
        pace_(options.max_rate),
        fetcher_(storage::make_fetcher({.depth = options.depth, .io_batch = 32}, backends)) {}

  bool run() {
    std::array<storage::Fetched, 64> finished;
    while (next_ < items_.size() || fetcher_->in_flight() > 0) {
      if (!handlers_.keep_going()) return false;
      const std::chrono::nanoseconds pause = submit();
      if (fetcher_->in_flight() == 0) {
        if (pause.count() > 0) os::wait_readable({}, std::min(pause, kAsk));
        continue;
      }
      const std::size_t count = fetcher_->wait(finished, pause.count() > 0 ? std::min(pause, kAsk) : kAsk);
      for (std::size_t i = 0; i < count; ++i) finish(finished[i]);
    }
    return true;
  }

 private:
  struct Request {
    std::size_t item = 0;
    std::uint64_t offset = 0, bytes = 0;
    std::unique_ptr<std::byte[]> memory;
    std::size_t capacity = 0;
  };
  struct Pieces {
    std::uint64_t left = 0;  // bytes that have not come
    std::uint64_t out = 0;   // requests in flight
    bool is_bad = false;
  };

  // Sends what may be sent now. Gives how long the pace has the next request wait, or 0.
  std::chrono::nanoseconds submit() {
    while (next_ < items_.size() && fetcher_->room() > 0) {
      const Clock::time_point now = Clock::now();
      if (const std::chrono::nanoseconds pause = pace_.wait(now); pause.count() > 0) return pause;
      const ReadItem& item = items_[next_];
      storage::Location where = item.data->locate(item.index, text_);
      if (where.name == nullptr) {
        fail(next_, storage::failure_of(ENAMETOOLONG));
        step_over();
        continue;
      }
      if (where.is_file() && item.bytes > kPieceBytes) {
        if (fetcher_->in_flight() > 0) return {};  // it is read by this thread, which must not starve the others
        read_large_file(where, item.bytes);
        return {};
      }
      if (item.bytes == 0 && where.is_file()) {  // an object of 0 bytes is asked for: it may be missing
        handlers_.take(next_, 0, {}, true);
        step_over();
        continue;
      }
      const std::uint64_t bytes = std::min(item.bytes - offset_, where.is_file() ? item.bytes : kPieceBytes);
      where.offset = offset_;
      where.bytes = bytes;
      const std::size_t align = std::max<std::size_t>(64, fetcher_->alignment());
      const std::size_t capacity = round_up(fetcher_->buffer_bytes(bytes), align) + align;
      if (held_bytes_ + capacity > options_.memory_bytes && fetcher_->in_flight() > 0) return {};
      if (bytes < item.bytes) {
        Pieces& pieces = pieces_[next_];
        if (offset_ == 0) pieces.left = item.bytes;
        ++pieces.out;
      }
      const std::uint64_t tag =
          take_slot({next_, offset_, bytes, std::make_unique_for_overwrite<std::byte[]>(capacity), capacity});
      storage::Fetch fetch = storage::fetch_of(where, tag).value();
      std::byte* const memory = requests_[tag].memory.get();
      const std::size_t skip = (align - reinterpret_cast<std::uintptr_t>(memory) % align) % align;
      fetch.into = {memory + skip, capacity - align};
      held_bytes_ += capacity;
      fetcher_->submit({&fetch, 1});
      pace_.count(bytes, now);
      offset_ += bytes;
      if (offset_ == item.bytes) step_over();
    }
    return {};
  }

  void step_over() noexcept {
    ++next_;
    offset_ = 0;
  }

  std::size_t take_slot(Request request) {
    if (free_.empty()) {
      requests_.push_back(std::move(request));
      return requests_.size() - 1;
    }
    const std::size_t slot = free_.back();
    free_.pop_back();
    requests_[slot] = std::move(request);
    return slot;
  }

  void finish(const storage::Fetched& fetched) {
    Request request = std::move(requests_[fetched.tag]);
    free_.push_back(fetched.tag);
    held_bytes_ -= request.capacity;
    const auto pieces = pieces_.find(request.item);
    const bool is_piece = pieces != pieces_.end();
    if (is_piece) --pieces->second.out;
    if (!is_piece || !pieces->second.is_bad) {
      if (fetched.code == storage::FetchCode::ok) {
        if (is_piece) pieces->second.left -= request.bytes;
        handlers_.take(request.item, request.offset, fetched.data, !is_piece || pieces->second.left == 0);
      } else {
        storage::Failure why;
        if (fetched.code == storage::FetchCode::failed) {
          why = fetched.why();
        } else {
          why.kind = ErrorKind::corrupt;
          why.text = dataset::size_changed_cause(items_[request.item].bytes, fetched.actual_bytes);
        }
        if (is_piece) pieces->second.is_bad = true;
        if (request.item == next_) step_over();  // the pieces that were not asked for yet
        fail(request.item, why);
      }
    }
    if (is_piece && pieces->second.out == 0 && request.item != next_) pieces_.erase(pieces);
  }

  void fail(std::size_t item, const storage::Failure& why) {
    if (why.ends_the_run) {
      const ReadItem& read = items_[item];
      throw Error(why.kind, fmt::format("cannot read `{}`: {}", read.data->name(read.index), why.text), why.hint);
    }
    handlers_.fail(item, why);
  }

  // A fetcher reads files whole. One that is larger than a piece would take too much memory.
  void read_large_file(const storage::Location& where, std::uint64_t bytes) {
    const std::size_t item = next_;
    step_over();
    int error_number = 0;
    const os::Fd fd = os::try_open(where.directory, where.name, O_RDONLY, error_number);
    if (!fd) return fail(item, storage::failure_of(error_number));
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(kPieceBytes);
    for (std::uint64_t offset = 0; offset < bytes;) {
      while (pace_.wait(Clock::now()).count() > 0) {
        if (!handlers_.keep_going()) return;
        os::wait_readable({}, std::min(pace_.wait(Clock::now()), kAsk));
      }
      if (!handlers_.keep_going()) return;  // run() asks again, and ends
      const std::int64_t got = os::read_some(
          fd.get(), {memory.get(), static_cast<std::size_t>(std::min(kPieceBytes, bytes - offset))}, offset);
      if (got < 0) return fail(item, storage::failure_of(static_cast<int>(-got)));
      if (got == 0) {
        storage::Failure why;
        why.kind = ErrorKind::corrupt;
        why.text = dataset::size_changed_cause(bytes, offset);
        return fail(item, why);
      }
      pace_.count(static_cast<std::uint64_t>(got), Clock::now());
      handlers_.take(item, offset, {memory.get(), static_cast<std::size_t>(got)},
                     offset + static_cast<std::uint64_t>(got) == bytes);
      offset += static_cast<std::uint64_t>(got);
    }
  }

  std::span<const ReadItem> items_;
  const ReaderOptions& options_;
  const ReadHandlers& handlers_;
  Pace pace_;
  std::size_t next_ = 0;
  std::uint64_t offset_ = 0;  // in the next item
  std::uint64_t held_bytes_ = 0;
  std::unordered_map<std::size_t, Pieces> pieces_;
  std::vector<Request> requests_;
  std::vector<std::size_t> free_;
  std::array<char, storage::kLocationText> text_;
  std::unique_ptr<storage::Fetcher> fetcher_;  // the last: it goes before the memory that it reads into
};

}  // namespace

bool read_objects(std::span<const ReadItem> items, std::span<const storage::Backend* const> backends,
                  const ReaderOptions& options, const ReadHandlers& handlers) {
  return ObjectReading(items, backends, options, handlers).run();
}

}  // namespace stoker::prepare
