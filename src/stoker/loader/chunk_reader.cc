#include "stoker/loader/chunk_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "stoker/os/thread.h"

namespace stoker::loader {
namespace {

constexpr std::size_t kChunksAtOnce = 64;
constexpr std::size_t kMostBlocks = 1024;  // chunks that are read or being read
constexpr auto kLongestWait = std::chrono::seconds(1);

std::size_t capacity_within(std::uint64_t limit_bytes) noexcept {
  const std::uint64_t beside = kMostBlocks * ByteRoom::kBytesPerBlock + kChunksAtOnce * storage::kLocationText;
  return os::Arena::within(limit_bytes - std::min(limit_bytes, beside));
}

std::shared_ptr<const storage::Failure> why_not(const storage::Fetched& fetched, std::uint64_t listed_bytes) {
  if (fetched.code == storage::FetchCode::failed) return std::make_shared<storage::Failure>(fetched.why());
  storage::Failure failure;
  failure.kind = ErrorKind::corrupt;
  failure.text =
      fmt::format("it was {} bytes long when it was listed and is {} now", listed_bytes, fetched.actual_bytes);
  return std::make_shared<storage::Failure>(std::move(failure));
}

}  // namespace

// A patch asks when it is planned and when it is made, so what was asked for longer ago belongs to no patch that is
// still to come: another patch has decoded that chunk, or its own had to be given up.
ChunkReader::ChunkReader(std::unique_ptr<storage::Fetcher> fetcher, std::uint64_t limit_bytes, std::uint64_t rows_ahead)
    : limit_bytes_(limit_bytes),
      old_after_(2 * rows_ahead + kChunksAtOnce),
      fetcher_(std::move(fetcher)),
      room_(capacity_within(limit_bytes), kMostBlocks, ByteRoom::Reuse::anywhere),
      thread_(os::start_thread([this] { run(); })) {}

ChunkReader::~ChunkReader() {
  stop_waiting();
  thread_.join();
}

void ChunkReader::stop_waiting() {
  const std::scoped_lock lock(mutex_);
  stopping_ = true;
  wake_locked();
  finished_.notify_all();
}

void ChunkReader::wake_locked() {
  if (is_fetching_) {
    fetcher_->wake();
  } else {
    asked_.notify_one();
  }
}

void ChunkReader::ask(std::span<const Wanted> chunks) {
  const std::scoped_lock lock(mutex_);
  ++asks_;
  for (const Wanted& wanted : chunks) {
    const auto [at, added] = entries_.try_emplace(wanted.key);
    at->second.is_dropped = false;
    at->second.asked = asks_;
    if (!added) continue;
    at->second.volume = wanted.volume;
    at->second.key = wanted.key;
    queue_.push_back(wanted.key);
  }
  if (!queue_.empty()) wake_locked();
}

ChunkReader::Taken ChunkReader::take(const ChunkKey& key) {
  Taken taken;
  std::unique_lock lock(mutex_);
  while (true) {
    const auto found = entries_.find(key);
    if (stopping_) taken.state_ = has_failed_ ? Taken::State::missing : Taken::State::stopped;
    if (stopping_ || found == entries_.end()) return taken;
    Entry& entry = found->second;
    if (entry.state == Entry::State::wanted && is_full_) {  // room might come only after patches behind this one
      entries_.erase(found);
      return taken;
    }
    if (entry.state != Entry::State::done) {
      taken.has_waited_ = true;
      finished_.wait(lock);
      continue;
    }
    taken.reader_ = this;
    taken.block_ = entry.block;
    taken.bytes_ = entry.bytes;
    taken.failure_ = std::move(entry.failure);
    taken.state_ = taken.failure_         ? Taken::State::failed
                   : taken.bytes_.empty() ? Taken::State::absent
                                          : Taken::State::read;
    entries_.erase(found);
    return taken;
  }
}

void ChunkReader::forget() {
  const std::scoped_lock lock(mutex_);
  queue_.clear();
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = at->second;
    if (entry.state == Entry::State::reading) {
      entry.is_dropped = true;
      ++at;
      continue;
    }
    if (entry.block.data != nullptr) room_.give_back(entry.block);
    at = entries_.erase(at);
  }
}

void ChunkReader::give_back(const ByteRoom::Block& block) {
  room_.give_back(block);
  const std::scoped_lock lock(mutex_);
  if (!queue_.empty()) wake_locked();
}

// Fills `fetches` with what there is room for; returns how many.
std::size_t ChunkReader::begin_reads_locked(std::span<storage::Fetch> fetches, std::span<char> texts) {
  const std::size_t most = std::min(fetcher_->room(), fetches.size());
  std::size_t count = 0;
  bool is_news = false;
  is_full_ = false;
  while (count < most && !queue_.empty()) {
    const auto found = entries_.find(queue_.front());
    if (found == entries_.end() || found->second.state != Entry::State::wanted) {
      queue_.pop_front();
      continue;
    }
    Entry& entry = found->second;
    const storage::Location where = entry.volume->locate_chunk(
        entry.key.chunk, texts.subspan(count * storage::kLocationText, storage::kLocationText));
    const std::optional<storage::Fetch> fetch = storage::fetch_of(where, reinterpret_cast<std::uintptr_t>(&entry));
    if (where.bytes == 0) {  // absent
      entry.state = Entry::State::done;
      is_news = true;
    } else if (!fetch || storage::has_view(where) || fetcher_->buffer_bytes(where.bytes) > room_.capacity()) {
      entries_.erase(found);  // the worker reads it, or says why it cannot
      is_news = true;
    } else {
      const std::size_t bytes = fetcher_->buffer_bytes(where.bytes);
      entry.block = room_.take(bytes);
      if (entry.block.data == nullptr) {
        if (drop_old_locked()) continue;
        is_full_ = is_news = true;
        break;
      }
      entry.state = Entry::State::reading;
      entry.bytes = {entry.block.data, where.bytes};
      fetches[count] = *fetch;
      fetches[count++].into = {entry.block.data, bytes};
    }
    queue_.pop_front();
  }
  if (is_news) finished_.notify_all();
  return count;
}

// Makes room; false: there is nothing to drop.
bool ChunkReader::drop_old_locked() {
  return std::erase_if(entries_, [&](const auto& pair) {
           const Entry& entry = pair.second;
           if (entry.state != Entry::State::done || entry.asked + old_after_ > asks_) return false;
           if (entry.block.data != nullptr) room_.give_back(entry.block);
           return true;
         }) > 0;
}

void ChunkReader::finish_locked(const storage::Fetched& fetched) {
  Entry& entry = *reinterpret_cast<Entry*>(fetched.tag);
  entry.state = Entry::State::done;
  counters_.items.add(1);
  if (fetched.code == storage::FetchCode::ok) {
    counters_.bytes.add(static_cast<std::int64_t>(fetched.data.size()));
    entry.bytes = fetched.data;
  } else {
    entry.failure = why_not(fetched, entry.bytes.size());
  }
  if (!entry.is_dropped) return;
  room_.give_back(entry.block);
  entries_.erase(entry.key);
}

void ChunkReader::run() noexcept {
  try {
    read_all();
  } catch (const std::exception&) {  // workers read for themselves from now on
    const std::scoped_lock lock(mutex_);
    stopping_ = has_failed_ = true;
    finished_.notify_all();
  }
}

void ChunkReader::read_all() {
  std::vector<char> texts(kChunksAtOnce * storage::kLocationText);
  std::array<storage::Fetch, kChunksAtOnce> fetches;
  std::array<storage::Fetched, kChunksAtOnce> finished;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::size_t count = begin_reads_locked(fetches, texts);
    if (count == 0 && fetcher_->in_flight() == 0) {
      asked_.wait(lock);
      continue;
    }
    is_fetching_ = true;
    lock.unlock();
    if (count > 0) fetcher_->submit({fetches.data(), count});
    const std::size_t ended = fetcher_->wait(finished, kLongestWait);
    lock.lock();
    is_fetching_ = false;
    for (std::size_t i = 0; i < ended; ++i) finish_locked(finished[i]);
    if (ended > 0) finished_.notify_all();
  }
}

}  // namespace stoker::loader
