#include "stoker/os/mapping.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/mman.h>
#include <sys/resource.h>

#include "stoker/base/error.h"
#include "stoker/os/fault.h"

namespace stoker::os {
namespace {
constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14
constexpr std::uintptr_t kPage = 4096;
constexpr std::size_t kAskAtOnce = 128 << 10;  // the kernel may cut one request to its read-ahead, by default this

// From the page that has the first byte to the end.
std::span<const std::byte> whole_pages(std::span<const std::byte> bytes) noexcept {
  const std::size_t before = reinterpret_cast<std::uintptr_t>(bytes.data()) % kPage;
  return {bytes.data() - before, bytes.size() + before};
}

}  // namespace

Mapping Mapping::try_map(int fd, std::size_t bytes, int& error_number) noexcept {
  Mapping mapping;
  error_number = 0;
  if (bytes == 0) return mapping;
  Fault fault;
  while (fault_now(Call::mmap, fault)) {
    if (fault.error_number == EINTR || fault.error_number == 0) continue;
    error_number = fault.error_number;
    return mapping;
  }
  void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    error_number = errno;
    return mapping;
  }
  mapping.data_ = static_cast<const std::byte*>(at);
  mapping.size_ = bytes;
  return mapping;
}

Mapping::Mapping(int fd, std::size_t bytes, std::string_view name) {
  int error_number = 0;
  *this = try_map(fd, bytes, error_number);
  if (error_number != 0) throw system_error(error_number, "map", name);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void Mapping::advise(Advice advice) const noexcept {
  if (data_ == nullptr) return;
  int kernel_word = MADV_NORMAL;
  switch (advice) {
    case Advice::normal:
      kernel_word = MADV_NORMAL;
      break;
    case Advice::random:
      kernel_word = MADV_RANDOM;
      break;
    case Advice::sequential:
      kernel_word = MADV_SEQUENTIAL;
      break;
    case Advice::will_need:
      kernel_word = MADV_WILLNEED;
      break;
  }
  (void)::madvise(const_cast<std::byte*>(data_), size_, kernel_word);  // only advice: a refusal changes nothing
}

bool Mapping::populate() const noexcept {
  return populate(0, size_);
}

bool Mapping::populate(std::size_t offset, std::size_t bytes) const noexcept {
  return populate_pages({data_ + offset, bytes});
}

bool populate_pages(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return true;
  const std::span<const std::byte> pages = whole_pages(bytes);
  while (::madvise(const_cast<std::byte*>(pages.data()), pages.size(), kPopulateRead) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    return errno == EINVAL;  // an older kernel: nothing is known
  }
  return true;
}

void read_pages_soon(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;
  const std::span<const std::byte> pages = whole_pages(bytes);
  for (std::size_t at = 0; at < pages.size(); at += kAskAtOnce) {
    const std::size_t count = std::min(kAskAtOnce, pages.size() - at);
    (void)::madvise(const_cast<std::byte*>(pages.data() + at), count, MADV_WILLNEED);  // only advice
  }
}

std::int64_t page_faults_that_waited() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_majflt;
}

}  // namespace stoker::os
