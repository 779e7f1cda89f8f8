// Signs requests for S3 (AWS Signature Version 4, in headers). libcurl can sign too, but it derives the key of the day
// for every request, which costs 6 to 20 us of CPU time. A Signer keeps that key. A Signer belongs to
// one thread.
#pragma once

#include <string>
#include <string_view>

#include "stoker/base/sha256.h"
#include "stoker/storage/s3/credentials.h"

namespace stoker::storage::s3 {

struct Signable {
  std::string_view method = "GET";
  std::string_view url = {};    // path and query are encoded, the query is sorted
  std::string_view range = {};  // the value of the header Range; empty: none
  bool requester_pays = false;
  std::string_view body = {};
};

class Signer {
 public:
  // Lines of the form "Name: value", good until the next call; empty: not to be sent.
  struct Headers {
    std::string date, body_hash, payer, token, authorization;
  };

  const Headers& sign(const Signable& request, const Credentials& keys, std::string_view region, WallTime now);

 private:
  void derive_key(const Credentials& keys, std::string_view region);

  Headers headers_;
  std::string secret_, region_;  // that key_ was derived from, with day_
  std::string day_, scope_;      // "20260101", "20260101/us-east-1/s3/aws4_request"
  std::string stamp_;            // "20260101T123456Z" of second_
  std::int64_t second_ = -1;
  HmacKey key_{std::string_view()};
  std::string canonical_, to_sign_;  // kept for their memory
};

}  // namespace stoker::storage::s3
