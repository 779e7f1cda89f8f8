#include "stoker/storage/fetcher.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/storage/fetcher_rules.h"
#include "stoker/storage/plain_fetcher.h"
#include "stoker/storage/progress.h"
#include "stoker/storage/ring_fetcher.h"

namespace stoker::storage {

std::size_t FetcherRules::alignment() const noexcept {
  return storage_ == Storage::direct ? kBlock : 1;
}

std::size_t FetcherRules::buffer_bytes(std::uint64_t bytes) const noexcept {
  switch (storage_) {
    case Storage::buffered:
    case Storage::mmap:
    case Storage::ram:
    case Storage::automatic:
      return bytes + 1;  // one more shows a file that grew
    case Storage::direct:
      return block_ceil(bytes + 1) + kBlock;
  }
  return bytes;
}

void FetcherRules::check(std::span<const Fetch> fetches, std::size_t room) const {
  if (fetches.size() > room) {
    throw Error(ErrorKind::internal, fmt::format("cannot submit {} reads: there is room for {}", fetches.size(), room));
  }
  for (const Fetch& fetch : fetches) {
    const Location& where = fetch.where;
    const bool has_view = where.source != nullptr && !where.source->view().empty();
    const bool direct = where.source != nullptr ? where.source->is_direct() : storage_ == Storage::direct;
    std::uint64_t least = where.bytes;
    if (direct) {
      least = where.source != nullptr ? block_ceil(where.offset % kBlock + where.bytes) : block_ceil(where.bytes + 1);
    } else if (where.source == nullptr) {
      least = where.bytes + 1;
    }
    if ((where.name == nullptr) == (where.source == nullptr)) {
      throw Error(ErrorKind::internal, "cannot submit a read: it names neither a file nor a source, or both");
    }
    if (where.backend != nullptr) {
      throw Error(ErrorKind::internal, "cannot submit a read: objects of a store are not files");
    }
    if (!has_view && fetch.into.size() < least) {
      throw Error(ErrorKind::internal,
                  fmt::format("cannot submit a read of {} bytes: its buffer has {}", where.bytes, fetch.into.size()));
    }
    if (!has_view && direct && reinterpret_cast<std::uintptr_t>(fetch.into.data()) % kBlock != 0) {
      throw Error(ErrorKind::internal, "cannot submit a direct read: its buffer is not aligned");
    }
  }
}

bool refuses_direct(int error_number) noexcept {
  return error_number == EINVAL || error_number == EOPNOTSUPP;
}

Fetched failed_fetch(const Fetch& fetch, int error_number) noexcept {
  return {fetch.tag, FetchCode::failed, error_number, 0, {}, {}};
}

Fetched failed_fetch(const Fetch& fetch, Failure failure) {
  return {fetch.tag, FetchCode::failed, 0, 0, {}, std::make_shared<const Failure>(std::move(failure))};
}

Fetched whole_fetch(const Fetch& fetch, std::span<const std::byte> data) noexcept {
  return {fetch.tag, FetchCode::ok, 0, fetch.where.bytes, data, {}};
}

Fetched size_changed_fetch(const Fetch& fetch, std::int64_t actual_bytes) noexcept {
  return {fetch.tag, FetchCode::size_changed, 0, actual_bytes < 0 ? 0 : static_cast<std::uint64_t>(actual_bytes), {},
          {}};
}

bool fetch_without_descriptor(const Fetch& fetch, Fetched& fetched) noexcept {
  const Source& source = *fetch.where.source;
  const std::uint64_t size = source.size_bytes();
  if (fetch.where.offset > size || fetch.where.bytes > size - fetch.where.offset) {
    fetched = size_changed_fetch(fetch, static_cast<std::int64_t>(size));
  } else if (fetch.where.bytes == 0) {
    fetched = whole_fetch(fetch, {});
  } else if (const auto view = source.view(); !view.empty()) {
    fetched = whole_fetch(fetch, view.subspan(fetch.where.offset, fetch.where.bytes));
    if (!fetch.into.empty() && fetch.where.bytes > 0) {
      std::memcpy(fetch.into.data(), fetched.data.data(), fetch.where.bytes);
      fetched.data = fetch.into.first(fetch.where.bytes);
    }
  } else if (source.descriptor() >= 0) {
    return false;
  } else {
    try {
      const Read read{fetch.where.offset, fetch.into.first(fetch.where.bytes)};
      source.read({&read, 1});
      fetched = whole_fetch(fetch, read.into);
    } catch (const std::exception& error) {
      fetched = failed_fetch(fetch, failure_of(error));
    }
  }
  return true;
}

std::unique_ptr<Fetcher> make_fetcher(const FetcherOptions& options, std::string* fallback_reason) {
  std::string reason;
  std::unique_ptr<Fetcher> fetcher;
  if (options.storage != Storage::mmap && options.allow_io_uring) fetcher = try_make_ring_fetcher(options, reason);
  if (fallback_reason != nullptr) *fallback_reason = reason;
  if (fetcher != nullptr) return fetcher;
  return make_plain_fetcher(options);
}

}  // namespace stoker::storage
