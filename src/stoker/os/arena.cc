#include "stoker/os/arena.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/base/round.h"
#include "stoker/base/units.h"
#include "stoker/os/fault.h"
#include "stoker/os/shared_region.h"

namespace stoker::os {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14

std::size_t page_size() noexcept {
  static const std::size_t size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

std::size_t Arena::rounded(std::size_t bytes) noexcept {
  if (bytes > SIZE_MAX - 2 * kHugePage) return bytes;  // mmap will refuse it
  return round_up(bytes, bytes >= kHugePage ? kHugePage : page_size());
}

std::size_t Arena::within(std::size_t bytes) noexcept {
  const std::size_t unit = bytes >= kHugePage ? kHugePage : page_size();
  return bytes / unit * unit;
}

Arena::Arena(std::size_t bytes) : Arena(bytes, nullptr) {}

Arena::Arena(std::size_t bytes, std::shared_ptr<SharedRegion> shared) {
  if (bytes == 0) return;
  const std::size_t size = rounded(bytes);
  const std::size_t slack = size >= kHugePage ? kHugePage : 0;
  Fault fault;
  int error_number = 0;
  void* mapped = MAP_FAILED;
  if (fault_now(Call::mmap, fault) && fault.error_number != 0 && fault.error_number != EINTR) {
    error_number = fault.error_number;
  } else if (size > SIZE_MAX - 2 * kHugePage) {
    error_number = ENOMEM;
  } else {
    if (shared) offset_ = shared->take(size, slack != 0 ? kHugePage : page_size());
    mapped = ::mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) error_number = errno;
  }
  if (error_number != 0) throw system_error(error_number, "allocate", fmt::format("{} of memory", format_bytes(size)));

  auto* data = static_cast<std::byte*>(mapped);
  if (slack != 0) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const std::size_t before = round_up(address, kHugePage) - address;
    if (before != 0) ::munmap(data, before);
    data += before;
    if (slack != before) ::munmap(data + size, slack - before);
  }
  if (shared && ::mmap(data, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, shared->fd(),
                       static_cast<off_t>(offset_)) == MAP_FAILED) {
    error_number = errno;
    ::munmap(data, size);
    throw system_error(error_number, "map", fmt::format("{} of shared memory", format_bytes(size)));
  }
  if (slack != 0) (void)::madvise(data, size, MADV_HUGEPAGE);  // a kernel without huge pages gives small ones
  data_ = data;
  size_ = size;
  shared_ = std::move(shared);
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      shared_(std::move(other.shared_)),
      offset_(other.offset_) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(shared_, other.shared_);
  std::swap(offset_, other.offset_);
  return *this;
}

Arena::~Arena() {
  if (data_ == nullptr) return;
  ::munmap(data_, size_);
  if (shared_) shared_->give_back(offset_, size_);
}

void Arena::populate(std::size_t offset, std::size_t bytes) noexcept {
  const std::size_t end = std::min(size_, offset + std::min(bytes, SIZE_MAX - offset));
  // One huge page at a time: a call holds the lock that mapping memory, in any thread, waits for.
  for (std::size_t at = offset / kHugePage * kHugePage; at < end; at += kHugePage) {
    if (::madvise(data_ + at, std::min(kHugePage, size_ - at), kPopulateWrite) != 0) return;
  }
}

void Arena::touch() noexcept {
  if (data_ == nullptr || ::madvise(data_, size_, kPopulateWrite) == 0) return;
  for (std::size_t at = 0; at < size_; at += page_size()) {
    volatile std::byte* const byte = data_ + at;
    *byte = *byte;
  }
}

}  // namespace stoker::os
