#include "stoker/prepare/compare.h"

#include "stoker/base/error.h"
#include "stoker/base/hash.h"

namespace stoker::prepare {

std::vector<std::uint64_t> find_differing(const dataset::DatasetPtr& source,
                                          const std::shared_ptr<const dataset::Packed>& pack, const Content& content,
                                          const std::vector<std::pair<std::uint64_t, std::uint64_t>>& pairs,
                                          const PackOptions& options,
                                          const std::function<bool(std::uint64_t, std::uint64_t)>& keep_going) {
  std::vector<std::uint64_t> differing;
  if (pairs.empty()) return differing;
  std::vector<PackPlan::Loose> loose;
  loose.reserve(pairs.size());
  for (const auto& pair : pairs) loose.push_back({pair.first, PackPlan::kNone});
  PackOptions reading = options;
  reading.on_error = loader::OnError::skip;  // a bad sample is one that differs
  reading.seek_index = false;
  Payloads payloads(source, pack, content, loose, 0, reading);
  std::uint64_t done = 0;
  const auto go_on = [&] { return keep_going(done, pairs.size()); };
  Payload payload;
  while (payloads.next(payload, go_on)) {
    const std::uint64_t wanted = pack->row(pairs[done].second).xxh3;
    const bool same = payload.fault.empty() && payload.xxh3.value_or(hash_bytes(payload.bytes)) == wanted;
    if (!same) differing.push_back(payload.position);
    ++done;
  }
  if (payloads.interrupted() || !go_on()) throw Error(ErrorKind::unavailable, "interrupted");
  return differing;
}

}  // namespace stoker::prepare
