// The bytes of one location, read at once by the calling thread: for tools, for looking at the first sample, and for
// replacing a bad one. The stream of batches does not use this; see storage/fetcher.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stoker/base/scratch.h"
#include "stoker/storage/failure.h"
#include "stoker/storage/location.h"

namespace stoker::storage {

struct WholeRead {
  enum class State : std::uint8_t {
    ok,
    no_room,  // `scratch` has no memory for it
    failed,   // `failure` says why
  };
  State state = State::ok;
  std::span<const std::byte> bytes;
  Failure failure;

  bool ok() const noexcept { return state == State::ok; }
};

// A range or an object is read as it is given. A file is read as it is now, whatever Location::bytes says.
// The bytes live in `scratch` until its next reset, or in the source's own memory.
WholeRead read_whole(const Location& location, Scratch& scratch);
// Fills `into` from the byte `first` on of a location that is not an object and has as many bytes. A file is read as it
// is now: fewer come where it has become shorter.
WholeRead read_part(const Location& location, std::uint64_t first, std::span<std::byte> into);
// The same into `bytes`, which grows as needed: never State::no_room.
WholeRead read_whole(const Location& location, std::vector<std::byte>& bytes);

}  // namespace stoker::storage
