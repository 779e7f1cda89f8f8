// An object that is written to S3: one PUT where it is small, a multipart
// upload otherwise. Several parts are on their way at once, each on a thread of
// its own, and each is tried again where that may help.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "stoker/storage/object_writer.h"
#include "stoker/storage/s3/address.h"
#include "stoker/storage/s3/session.h"

namespace stoker::storage::s3 {

class Upload final : public ObjectWriter {
 public:
  Upload(std::shared_ptr<Session> session, Place place);
  ~Upload() override;  // aborts a multipart upload that was not finished: the
                       // store keeps no parts
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  void write(std::span<const std::byte> bytes) override;
  void finish() override;

 private:
  HttpReply begin();
  void send_part();
  void wait_for_oldest();
  void abort() noexcept;

  // Amazon takes 10,000 parts of an object: parts grow with their number, so
  // that 5 TB fit.
  std::size_t part_bytes() const noexcept;

  std::shared_ptr<Session> session_;
  Place place_;
  std::string id_;  // of the multipart upload; empty: there is none
  std::uint64_t total_bytes_ = 0;
  std::string buffer_;  // the part that is being filled
  std::deque<std::future<std::string>> on_the_way_;
  std::vector<std::string> tags_;  // of the parts that arrived, in order
};

}  // namespace stoker::storage::s3
