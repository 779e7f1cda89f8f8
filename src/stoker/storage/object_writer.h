// Writes one object of a store, piece by piece. The object appears under its
// name when finish() returns, whole. If the writer goes away before, nothing of
// it stays. Belongs to one thread.
#pragma once

#include <cstddef>
#include <span>

namespace stoker::storage {

class ObjectWriter {
 public:
  virtual ~ObjectWriter() = default;

  virtual void write(std::span<const std::byte> bytes) = 0;  // these throw Error
  virtual void finish() = 0;                                 // the last call
};

}  // namespace stoker::storage
