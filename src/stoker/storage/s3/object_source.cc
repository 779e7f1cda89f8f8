#include "stoker/storage/s3/object_source.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/storage/direct_source.h"
#include "stoker/storage/s3/fetcher.h"
#include "stoker/storage/s3/verdict.h"

namespace stoker::storage::s3 {
namespace {

constexpr std::uint64_t kPiece = 8 << 20;  // a larger read is several requests
constexpr std::size_t kReadDepth = 16;

}  // namespace

ObjectSource::ObjectSource(const Backend& backend, std::shared_ptr<Session> session, Place place, Session::Found found)
    : backend_(backend),
      session_(std::move(session)),
      place_(std::move(place)),
      found_(std::move(found)),
      address_(session_->address(place_)) {}

void ObjectSource::read(std::span<const Read> reads) const {
  std::vector<Fetch> fetches;
  for (const Read& read : reads) {
    check_range(address_, found_.bytes, read);
    for (std::uint64_t at = 0; at < read.into.size(); at += kPiece) {
      const std::uint64_t bytes = std::min<std::uint64_t>(kPiece, read.into.size() - at);
      Fetch fetch;
      fetch.where = Location::in_source(this, read.offset + at, bytes);
      fetch.into = read.into.subspan(at, bytes);
      fetch.tag = fetches.size();
      fetches.push_back(fetch);
    }
  }
  const std::unique_ptr<Fetcher> fetcher = make_s3_fetcher(session_, kReadDepth);
  std::size_t next = 0;
  std::array<Fetched, kReadDepth> out;
  while (next < fetches.size() || fetcher->in_flight() > 0) {
    const std::size_t count = std::min(fetcher->room(), fetches.size() - next);
    fetcher->submit(std::span(fetches).subspan(next, count));
    next += count;
    const std::size_t filled = fetcher->wait(out, std::chrono::nanoseconds::max());
    for (std::size_t i = 0; i < filled; ++i) {
      if (out[i].code == FetchCode::ok) continue;
      const Failure failure = out[i].code == FetchCode::failed ? out[i].why() : changed_object(found_.version, "");
      throw Error(
          failure.kind,
          fmt::format("cannot read `{}` at byte {}: {}", address_, fetches[out[i].tag].where.offset, failure.text),
          failure.hint);
    }
  }
}

}  // namespace stoker::storage::s3
