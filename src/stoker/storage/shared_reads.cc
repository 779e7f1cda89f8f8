#include "stoker/storage/shared_reads.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stoker/os/thread.h"
#include "stoker/storage/direct_source.h"
#include "stoker/storage/interruption.h"

namespace stoker::storage {
namespace {

Error fetch_error(const Source& source, std::uint64_t offset, const Fetched& fetched) {
  if (fetched.code == FetchCode::size_changed) {
    return Error(ErrorKind::corrupt,
                 fmt::format("cannot read `{}`: it was {} bytes long when it was opened and is {} now", source.name(),
                             source.size_bytes(), fetched.actual_bytes));
  }
  const Failure failure = fetched.why();
  return Error(failure.kind, fmt::format("cannot read `{}` at byte {}: {}", source.name(), offset, failure.text),
               failure.hint);
}

}  // namespace

SharedReads::~SharedReads() {
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
    if (fetcher_) fetcher_->wake();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SharedReads::start_locked() {
  if (thread_.joinable()) return;
  fetcher_ = backend_.make_fetcher({.depth = depth_}, nullptr);
  flying_.resize(std::max<std::size_t>(1, std::min(depth_, fetcher_->room())));
  try {
    thread_ = os::start_thread([this] { run(); });
  } catch (const std::system_error& error) {
    fetcher_.reset();
    throw Error(ErrorKind::unavailable,
                fmt::format("cannot start a thread that reads from the store: {}", error.code().message()));
  }
}

void SharedReads::read(const Source& source, std::uint64_t offset, std::span<std::byte> into,
                       const std::function<void()>& meanwhile) {
  check_range(source.name(), source.size_bytes(), {offset, into});
  if (into.empty()) return;
  Call call;
  std::unique_lock lock(mutex_);
  start_locked();
  if (broken_) throw *broken_;
  for (std::uint64_t at = 0; at < into.size(); at += kPiece) {
    queue_.push_back(
        {&source, offset + at, into.subspan(at, std::min<std::uint64_t>(kPiece, into.size() - at)), &call});
    ++call.left;
  }
  fetcher_->wake();
  changed_.notify_all();
  if (meanwhile) {
    lock.unlock();
    meanwhile();
    lock.lock();
  }
  await_locked(lock, call);
  if (call.error) throw *call.error;
}

// Until all pieces are settled: their buffers are the caller's.
void SharedReads::await_locked(std::unique_lock<std::mutex>& lock, Call& call) {
  const auto is_done = [&] { return call.left == 0; };
  Interruption* const interruption = interruption_in_force();
  while (interruption != nullptr && !is_interrupted_ && !call.done.wait_for(lock, kAskEvery, is_done)) {
    lock.unlock();
    const bool is_raised = interruption->is_raised();
    lock.lock();
    if (!is_raised || !fetcher_) continue;
    is_interrupted_ = true;
    fetcher_->wake();
  }
  call.done.wait(lock, is_done);
}

void SharedReads::settle_locked(Piece& piece, std::optional<Error> error) {
  Call& call = *std::exchange(piece.call, nullptr);
  if (error && !call.error) call.error = std::move(error);
  if (--call.left == 0) call.done.notify_all();  // with the lock: the call is gone once its thread has it
}

void SharedReads::loop() {
  std::vector<Fetch> fetches;
  std::vector<Fetched> finished(flying_.size());
  for (;;) {
    fetches.clear();
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock,
                    [&] { return is_ending_ || is_interrupted_ || !queue_.empty() || fetcher_->in_flight() > 0; });
      if (is_ending_) return;
      if (is_interrupted_) throw Error(ErrorKind::unavailable, "interrupted");
      for (std::size_t slot = 0; slot < flying_.size() && !queue_.empty(); ++slot) {
        if (flying_[slot].call != nullptr) continue;
        const Piece& piece = flying_[slot] = queue_.front();
        queue_.pop_front();
        Fetch& fetch = fetches.emplace_back();
        fetch.where = Location::in_source(piece.source, piece.offset, piece.into.size());
        fetch.into = piece.into;
        fetch.tag = slot;
      }
    }
    if (!fetches.empty()) fetcher_->submit(fetches);
    const std::size_t count = fetcher_->wait(finished, std::chrono::nanoseconds::max());
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      Piece& piece = flying_[finished[i].tag];
      std::optional<Error> error;
      if (finished[i].code != FetchCode::ok) error = fetch_error(*piece.source, piece.offset, finished[i]);
      settle_locked(piece, std::move(error));
    }
  }
}

// Nothing is fetched any more. The buffers of those who wait are theirs again.
void SharedReads::fail_all(const Error& error) {
  const std::scoped_lock lock(mutex_);
  broken_ = error;
  fetcher_.reset();
  for (Piece& piece : flying_) {
    if (piece.call != nullptr) settle_locked(piece, error);
  }
  for (Piece& piece : queue_) settle_locked(piece, error);
  queue_.clear();
}

void SharedReads::run() noexcept {
  try {
    loop();
  } catch (const Error& error) {
    fail_all(error);
  } catch (const std::exception& error) {
    fail_all(Error(ErrorKind::internal, fmt::format("a thread that reads from a store failed: {}", error.what())));
  }
}

}  // namespace stoker::storage
