#include "stoker/storage/ram_store.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/round.h"
#include "stoker/base/units.h"
#include "stoker/os/fd.h"
#include "stoker/os/thread.h"

namespace stoker::storage {
namespace {

constexpr std::uint64_t kPage = 4096, kFillPiece = kMiB, kAhead = 16 * kMiB;

// kRefused: there is no room for it in the shared memory.
enum PieceState : std::uint8_t { kAbsent, kBeingWritten, kThere, kRefused };

// A shared segment: the bytes that are held, then the state of each file, then the files.
constexpr std::uint64_t kHeldBytes = 64;
static_assert(std::atomic<std::uint8_t>::is_always_lock_free && sizeof(std::atomic<std::uint8_t>) == 1);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace

void RamStore::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void RamStore::add(const Source& source, os::Arena whole) {
  wanted_ += source.size_bytes();
  const std::uint64_t most = source.descriptor() >= 0 ? left() / kPage * kPage : os::Arena::within(left());
  const std::uint64_t room = std::min(source.size_bytes(), most);
  if (room == 0 || !source.view().empty()) return;  // what has a view is in memory already
  auto part = std::make_unique<Part>();
  part->source = &source;
  part->room = room;
  memory_ += source.descriptor() >= 0 ? round_up(room, kPage) : os::Arena::rounded(room);
  room_ += room;
  if (whole.size() > 0 && room == source.size_bytes()) {
    part->copy = std::move(whole);
    part->bytes = part->copy.bytes().first(room);
    part->loaded.store(room, std::memory_order_release);
  }
  by_source_.emplace(&source, part.get());
  parts_.push_back(std::move(part));
}

bool RamStore::share_files(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& bytes_of,
                           const Sharing& sharing) {
  // The places follow from the sizes, so the sizes are part of the key.
  std::uint64_t total = 0, key = mix(sharing.key, count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t bytes = bytes_of(i);
    total += bytes;
    key = mix(key, bytes);
  }
  if (total == 0) return false;
  const std::uint64_t head = round_up(kHeldBytes + count, kPage);
  std::string why;
  shared_ =
      os::SharedSegment::attach({.folder = sharing.folder, .key = key, .head_bytes = head, .bytes = head + total}, why);
  if (!shared_) {
    note_ = format_text(
        "{}: this process holds a copy of its own, because it cannot share memory with the {} processes of this job on "
        "this machine: {}",
        option("storage", "ram"), sharing.processes, why);
    return false;
  }
  // All processes together hold the first files that fit the limits of all; this one writes at most what fits its own.
  const auto processes = static_cast<std::uint64_t>(sharing.processes);
  const std::uint64_t fit = std::min(count, left() / kBytesPerFile);
  most_written_ = left() - fit * kBytesPerFile;
  const std::uint64_t most = most_written_ >= total / processes + 1 ? total : most_written_ * processes;
  ends_.reserve(fit);
  std::uint64_t kept = 0;
  for (std::uint64_t i = 0; i < fit; ++i) {
    const std::uint64_t end = kept + bytes_of(i);
    if (end > most) break;
    ends_.push_back(kept = end);
  }
  wanted_ += total;
  room_ += kept;
  memory_ += ends_.size() * kBytesPerFile;
  share_ = kept / processes;
  std::byte* const at = shared_->bytes().data();
  files_held_ = reinterpret_cast<std::atomic<std::uint64_t>*>(at);
  states_ = reinterpret_cast<std::atomic<std::uint8_t>*>(at + kHeldBytes);
  file_bytes_ = at + head;
  return true;
}

void RamStore::add_files(std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& bytes_of,
                         const std::optional<Sharing>& sharing) {
  if (sharing && sharing->processes > 1 && share_files(count, bytes_of, *sharing)) return;
  const std::uint64_t fit = std::min(count, left() / kBytesPerFile);
  const std::uint64_t most = left() - fit * kBytesPerFile;
  std::uint64_t total = 0, kept = 0;
  ends_.reserve(fit);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t bytes = bytes_of(i);
    wanted_ += bytes;
    if (ends_.size() < i || i >= fit || os::Arena::rounded(total + bytes) > most) continue;
    total += bytes;
    ++kept;
    ends_.push_back(total);
  }
  if (total == 0) return;
  files_ = os::Arena(total);
  file_bytes_ = files_.data();
  own_states_ = std::make_unique<std::atomic<std::uint8_t>[]>(kept);
  states_ = own_states_.get();
  memory_ += files_.size() + kept * kBytesPerFile;
  room_ += total;
}

void RamStore::start() {
  if (parts_.empty()) return;
  try {
    thread_ = os::start_thread([this] { read_ahead(); });
  } catch (const std::exception& error) {  // everything is read from disk as it is needed
    problem_ =
        format_text("{}: nothing is read ahead: cannot start a thread: {}", option("storage", "ram"), error.what());
  }
}

void RamStore::read_ahead() {
  for (const auto& part : parts_) {
    try {
      load(*part);
    } catch (const std::exception& error) {
      const std::scoped_lock lock(problem_mutex_);
      if (problem_.empty())
        problem_ = format_text("{}: reading ahead ended: {}", option("storage", "ram"), error.what());
    }
    if (stopping_.load(std::memory_order_relaxed)) return;
  }
}

void RamStore::load(Part& part) {
  if (part.loaded.load(std::memory_order_relaxed) == part.room) return;
  if (part.source->descriptor() >= 0) {
    map(part);
  } else {
    copy(part);
  }
}

void RamStore::map(Part& part) {
  const std::string_view name = part.source->name();
  const int fd = part.source->descriptor();
  if (const std::int64_t size = os::file_size(fd);
      size < 0 || static_cast<std::uint64_t>(size) != part.source->size_bytes()) {
    throw Error(ErrorKind::corrupt, fmt::format("`{}` changed since it was opened", name));
  }
  part.mapping = os::Mapping(fd, part.room, name);
  part.bytes = part.mapping.bytes();
  std::uint64_t asked = 0, at = 0;
  while (at < part.room && !stopping_.load(std::memory_order_relaxed)) {
    // The disk is kept busy with what comes next while this piece is waited for.
    for (; asked < std::min(part.room, at + kAhead); asked += kFillPiece) {
      os::read_pages_soon(part.bytes.subspan(asked, std::min(kFillPiece, part.room - asked)));
    }
    const std::uint64_t bytes = std::min(kFillPiece, part.room - at);
    if (!part.mapping.populate(at, bytes)) throw system_error(EIO, "read", name);
    at += bytes;
    part.loaded.store(at, std::memory_order_release);
  }
}

void RamStore::copy(Part& part) {
  part.copy = os::Arena(part.room);
  part.bytes = part.copy.bytes().first(part.room);
  for (std::uint64_t at = 0; at < part.room && !stopping_.load(std::memory_order_relaxed);) {
    const Read read{at, part.copy.bytes().subspan(at, std::min(kFillPiece, part.room - at))};
    part.source->read({&read, 1});
    at += read.into.size();
    part.loaded.store(at, std::memory_order_release);
  }
}

std::span<const std::byte> RamStore::find(const Source& source, std::uint64_t offset,
                                          std::uint64_t bytes) const noexcept {
  const auto found = by_source_.find(&source);
  if (found == by_source_.end() || bytes == 0) return {};
  const Part& part = *found->second;
  const std::uint64_t loaded = part.loaded.load(std::memory_order_acquire);
  if (offset > loaded || bytes > loaded - offset) return {};
  return part.bytes.subspan(offset, bytes);
}

std::span<const std::byte> RamStore::find_file(std::uint64_t number, std::uint64_t bytes) const noexcept {
  if (number >= ends_.size() || bytes == 0) return {};
  const std::uint64_t begin = number == 0 ? 0 : ends_[number - 1];
  if (ends_[number] - begin != bytes || states_[number].load(std::memory_order_acquire) != kThere) return {};
  return {file_bytes_ + begin, bytes};
}

void RamStore::keep_file(std::uint64_t number, std::span<const std::byte> bytes) noexcept {
  if (number >= ends_.size() || bytes.empty()) return;
  const std::uint64_t begin = number == 0 ? 0 : ends_[number - 1];
  if (ends_[number] - begin != bytes.size()) return;  // it changed since the scan
  if (written_.fetch_add(bytes.size(), std::memory_order_relaxed) + bytes.size() > most_written_) {
    written_.fetch_sub(bytes.size(), std::memory_order_relaxed);
    return;
  }
  std::uint8_t expected = kAbsent;
  if (!states_[number].compare_exchange_strong(expected, kBeingWritten, std::memory_order_relaxed)) {
    written_.fetch_sub(bytes.size(), std::memory_order_relaxed);
    return;
  }
  if (shared_ &&
      !shared_->reserve(static_cast<std::uint64_t>(file_bytes_ - shared_->bytes().data()) + begin, bytes.size())) {
    written_.fetch_sub(bytes.size(), std::memory_order_relaxed);
    states_[number].store(kRefused, std::memory_order_relaxed);
    return;
  }
  std::memcpy(file_bytes_ + begin, bytes.data(), bytes.size());
  states_[number].store(kThere, std::memory_order_release);
  files_held_->fetch_add(bytes.size(), std::memory_order_relaxed);
}

RamStore::Figures RamStore::figures() const noexcept {
  // Processes with larger limits may hold more than this one will use.
  const std::uint64_t files = std::min(files_held_->load(std::memory_order_relaxed), room_);
  const std::uint64_t shared = shared_ ? std::max(share_, written_.load(std::memory_order_relaxed)) : 0;
  Figures figures{wanted_, room_, files, memory_ + shared};
  for (const auto& part : parts_) figures.held_bytes += part->loaded.load(std::memory_order_relaxed);
  return figures;
}

Text RamStore::problem() const {
  const std::scoped_lock lock(problem_mutex_);
  return problem_;
}

}  // namespace stoker::storage
