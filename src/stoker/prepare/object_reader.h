// Reads samples that are files or objects of their own, whole, with many requests in flight: how a copy gets its bytes.
// One thread. Memory is bounded; objects above kPieceBytes come in pieces, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/prepare/pace.h"
#include "stoker/storage/backend.h"

namespace stoker::prepare {

struct ReadItem {
  const dataset::Dataset* data = nullptr;
  std::uint64_t index = 0;
  std::uint64_t bytes = 0;  // of the file or object, as it is now
};

struct ReadHandlers {
  // Some bytes of an item. `is_last`: all of them have come. What it throws ends the reading.
  std::function<void(std::size_t item, std::uint64_t offset, std::span<const std::byte> bytes, bool is_last)> take;
  // The item cannot be read, and no more of it comes. Failures that concern all items are thrown instead.
  std::function<void(std::size_t item, const storage::Failure& why)> fail;
  std::function<bool()> keep_going;  // asked several times a second
};

struct ReaderOptions {
  std::uint64_t memory_bytes = std::uint64_t{256} << 20;  // of requests in flight; one larger request passes alone
  std::size_t depth = 256;                                // requests in flight
  std::uint64_t max_rate = 0;                             // bytes per second; 0: no limit
};

inline constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;

// How many requests an object of this size takes.
constexpr std::uint64_t requests_for(std::uint64_t bytes) noexcept {
  return bytes <= kPieceBytes ? 1 : (bytes + kPieceBytes - 1) / kPieceBytes;
}

// False: keep_going() ended it. `backends` as in dataset::Dataset::backends(). Throws Error.
bool read_objects(std::span<const ReadItem> items, std::span<const storage::Backend* const> backends,
                  const ReaderOptions& options, const ReadHandlers& handlers);

}  // namespace stoker::prepare
