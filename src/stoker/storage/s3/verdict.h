// What an answer of the store means: done, try again, get other keys, ask in another region, or a failure with its
// remedy. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "stoker/storage/failure.h"
#include "stoker/storage/s3/http.h"

namespace stoker::storage::s3 {

enum class Next : std::uint8_t {
  accept,
  retry,             // `failure` says why, should there be no more tries
  refresh,           // the keys have expired, or are not known any more
  ask_other_region,  // Verdict::region
  fail,
};

struct Verdict {
  Next next = Next::accept;
  bool is_throttled = false;  // the store asks for fewer requests
  Failure failure;
  std::string region;
};

// What the request was about, for messages.
struct Asked {
  std::string bucket, key;
  std::string host;         // the endpoint's origin
  std::string region;       // it was signed for
  std::string keys_origin;  // where its keys came from; empty: it was not signed
  std::string version;      // that the object had to have; empty: any
  bool lists = false;       // a listing, which needs another permission than an object
  bool writes = false;      // so does writing
  bool is_web = false;      // a file of a web server
};

Verdict judge(const HttpReply& reply, const Asked& asked);

// Of an object that is not the one that was listed; `now` may be empty.
Failure changed_object(const std::string& then, const std::string& now);

}  // namespace stoker::storage::s3
