// What all fetchers share: how large and how aligned buffers must be, and how answers look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "stoker/storage/fetcher.h"

namespace stoker::storage {

class FetcherRules {
 public:
  explicit FetcherRules(Storage storage) noexcept : storage_(storage) {}

  Storage storage() const noexcept { return storage_; }
  std::size_t alignment() const noexcept;
  std::size_t buffer_bytes(std::uint64_t bytes) const noexcept;
  // Throws Error(internal) if the caller broke the contract of submit().
  void check(std::span<const Fetch> fetches, std::size_t room) const;

 private:
  Storage storage_;
};

bool refuses_direct(int error_number) noexcept;  // of open or read with O_DIRECT

Fetched failed_fetch(const Fetch& fetch, int error_number) noexcept;
Fetched failed_fetch(const Fetch& fetch, Failure failure);
Fetched whole_fetch(const Fetch& fetch, std::span<const std::byte> data) noexcept;
Fetched size_changed_fetch(const Fetch& fetch, std::int64_t actual_bytes) noexcept;  // below 0: unknown

// Answers a range that needs no descriptor: out of a view, or empty, or by Source::read. False: read the descriptor.
bool fetch_without_descriptor(const Fetch& fetch, Fetched& fetched) noexcept;

}  // namespace stoker::storage
