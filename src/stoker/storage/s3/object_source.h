// An open object of a store. Also knows what a fetcher asks for.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "stoker/storage/s3/session.h"
#include "stoker/storage/source.h"

namespace stoker::storage::s3 {

class ObjectSource final : public Source {
 public:
  ObjectSource(const Backend& backend, std::shared_ptr<Session> session, Place place, Session::Found found);

  std::string_view name() const noexcept override { return address_; }
  std::uint64_t size_bytes() const noexcept override { return found_.bytes; }
  void read(std::span<const Read> reads) const override;
  ReadAdvice advice() const noexcept override { return {.join = true}; }
  const Backend* backend() const noexcept override { return &backend_; }
  std::string_view version() const noexcept override { return found_.version; }

  const Place& place() const noexcept { return place_; }

 private:
  const Backend& backend_;
  std::shared_ptr<Session> session_;
  Place place_;
  Session::Found found_;
  std::string address_;
};

}  // namespace stoker::storage::s3
