#include "stoker/storage/read_whole.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/os/fd.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/source.h"

namespace stoker::storage {
namespace {

WholeRead failed(Failure failure) {
  WholeRead read;
  read.state = WholeRead::State::failed;
  read.failure = std::move(failure);
  return read;
}

WholeRead done(std::span<const std::byte> bytes) {
  WholeRead read;
  read.bytes = bytes;
  return read;
}

// `take(bytes)` gives memory; less than asked for: there is none.
template <typename Take>
WholeRead read_range(const Source& source, std::uint64_t offset, std::uint64_t bytes, const Take& take) {
  const std::span<std::byte> into = take(bytes);
  if (into.size() != bytes) return {WholeRead::State::no_room, {}, {}};
  try {
    const Read read{offset, into};
    source.read({&read, 1});
  } catch (const std::exception& error) {
    return failed(failure_of(error));
  }
  return done(into);
}

// At most `most` bytes from `first` on.
template <typename Take>
WholeRead read_file_now(const Location& location, const Take& take, std::uint64_t first = 0,
                        std::uint64_t most = ~std::uint64_t{0}) {
  if (location.name == nullptr) return failed(failure_of(ENAMETOOLONG));
  int error_number = 0;
  // Opening a pipe must not wait for a writer.
  const os::Fd fd = os::try_open(location.directory, location.name, O_RDONLY | O_NONBLOCK, error_number);
  if (!fd) return failed(failure_of(error_number));
  const std::int64_t size = os::file_size(fd.get());
  if (size < 0) {
    Failure failure = failure_of(static_cast<int>(-size));
    if (size == -ENOTSUP) failure.text = "it is not a regular file";
    return failed(std::move(failure));
  }
  const auto there = static_cast<std::uint64_t>(size);
  const auto bytes = static_cast<std::size_t>(std::min(there - std::min(there, first), most));
  const std::span<std::byte> into = take(bytes);
  if (into.size() != bytes) return {WholeRead::State::no_room, {}, {}};
  std::size_t at = 0;
  while (at < bytes) {
    const std::int64_t got = os::read_some(fd.get(), into.subspan(at), first + at);
    if (got < 0) return failed(failure_of(static_cast<int>(-got)));
    if (got == 0) break;
    at += static_cast<std::size_t>(got);
  }
  return done(into.first(at));
}

template <typename Take>
WholeRead read_object(const Location& location, const Take& take) {
  if (location.name == nullptr) return failed(failure_of(ENAMETOOLONG));
  try {
    const std::unique_ptr<Fetcher> fetcher = location.backend->make_fetcher({.depth = 1}, nullptr);
    const std::size_t need = fetcher->buffer_bytes(location.bytes);
    Fetch fetch;
    fetch.where = location;
    fetch.into = take(need);
    if (fetch.into.size() != need) return {WholeRead::State::no_room, {}, {}};
    fetcher->submit({&fetch, 1});
    Fetched fetched;
    while (fetcher->wait({&fetched, 1}, std::chrono::nanoseconds::max()) == 0) {
    }
    if (fetched.code == FetchCode::ok) return done(fetched.data);
    if (fetched.code == FetchCode::failed) return failed(fetched.why());
    Failure failure;
    failure.kind = ErrorKind::corrupt;
    failure.text =
        fmt::format("it was {} bytes long when it was listed and is {} now", location.bytes, fetched.actual_bytes);
    return failed(std::move(failure));
  } catch (const std::exception& error) {
    return failed(failure_of(error));
  }
}

template <typename Take>
WholeRead read_with(const Location& location, const Take& take) {
  if (location.source != nullptr) return read_range(*location.source, location.offset, location.bytes, take);
  return location.backend != nullptr ? read_object(location, take) : read_file_now(location, take);
}

}  // namespace

WholeRead read_whole(const Location& location, Scratch& scratch) {
  if (location.source != nullptr) {
    const std::span<const std::byte> view = location.source->view();
    if (!view.empty() && location.offset <= view.size() && location.bytes <= view.size() - location.offset) {
      return done(view.subspan(location.offset, location.bytes));
    }
  }
  return read_with(location, [&](std::size_t bytes) { return scratch.take(bytes); });
}

WholeRead read_part(const Location& location, std::uint64_t first, std::span<std::byte> into) {
  const auto take = [&](std::size_t count) { return into.first(count); };
  if (location.source != nullptr) return read_range(*location.source, location.offset + first, into.size(), take);
  return read_file_now(location, take, first, into.size());
}

WholeRead read_whole(const Location& location, std::vector<std::byte>& bytes) {
  WholeRead read = read_with(location, [&](std::size_t count) {
    bytes.resize(count);
    return std::span<std::byte>(bytes);
  });
  if (read.ok() && read.bytes.size() < bytes.size()) {  // a fetcher asked for slack, or the file became shorter
    if (!read.bytes.empty()) std::memmove(bytes.data(), read.bytes.data(), read.bytes.size());
    bytes.resize(read.bytes.size());
    read.bytes = bytes;
  }
  return read;
}

}  // namespace stoker::storage
