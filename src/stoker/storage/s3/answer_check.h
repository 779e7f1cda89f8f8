// Whether the headers of an answer promise the bytes that were asked for. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/storage/failure.h"
#include "stoker/storage/s3/http.h"

namespace stoker::storage::s3 {

struct WantedBytes {
  const std::string& version;      // that the object must have; empty: any
  bool must_tell_version = false;  // an answer without a tag is of no use
  std::uint64_t offset = 0;        // in the object
  std::uint64_t received = 0;      // of `bytes`: the request asked for those behind them
  std::uint64_t bytes = 0;
  std::uint64_t object_bytes = 0;  // of the whole object; 0: not known
};

struct AnswerCheck {
  enum class Promise : std::uint8_t {
    as_asked,
    from_the_start,  // the whole object comes, and not what is behind `received`
    other_size,      // the object has `actual_bytes`
    other_version,   // `failure` says so
    unusable,        // `failure` says why
  };
  Promise promise = Promise::as_asked;
  std::uint64_t actual_bytes = 0;
  Failure failure = {};
};

// Of an answer with status 200 or 206.
AnswerCheck check_answer(const HttpReply& reply, const WantedBytes& wanted);

// A store that does not do what it said.
Failure broken_promise(std::string text);

}  // namespace stoker::storage::s3
