#include "stoker/storage/s3/answer_check.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stoker/storage/s3/listing.h"
#include "stoker/storage/s3/verdict.h"

namespace stoker::storage::s3 {
namespace {

using Promise = AnswerCheck::Promise;

AnswerCheck other_size(std::uint64_t actual_bytes) {
  return {.promise = Promise::other_size, .actual_bytes = actual_bytes};
}

AnswerCheck unusable(std::string text) {
  return {.promise = Promise::unusable, .failure = broken_promise(std::move(text))};
}

}  // namespace

Failure broken_promise(std::string text) {
  Failure failure;
  failure.kind = ErrorKind::corrupt;
  failure.text = std::move(text);
  return failure;
}

AnswerCheck check_answer(const HttpReply& reply, const WantedBytes& wanted) {
  const std::uint64_t first = wanted.offset + wanted.received, end = wanted.offset + wanted.bytes;
  const std::string_view tag = unquoted_tag(reply.etag);
  const bool is_other = !wanted.version.empty() && !tag.empty() && !is_same_tag(tag, wanted.version);
  if (is_other || (wanted.must_tell_version && tag.empty())) {
    return {.promise = Promise::other_version, .failure = changed_object(wanted.version, std::string(tag))};
  }
  if (wanted.bytes == 0) {
    if (reply.content_length.value_or(0) == 0) return {};
    return other_size(*reply.content_length);
  }
  if (reply.range_first) {  // also of a 200: some servers send the range, and not the status
    if (*reply.range_first != first || !reply.range_last || *reply.range_last >= end) {
      return unusable("the store answered with another range than was asked for");
    }
    const std::uint64_t total = reply.total_bytes.value_or(0);
    if (total != 0 && wanted.object_bytes != 0 && total != wanted.object_bytes) return other_size(total);
    if (*reply.range_last + 1 == end) return {};
    if (total < end) return other_size(total != 0 ? total : *reply.range_last + 1);
    return unusable(fmt::format("the store answered with bytes {} to {} of the {} to {} that were asked for",
                                *reply.range_first, *reply.range_last, first, end - 1));
  }
  if (reply.status == 200 && reply.content_length) {
    const std::uint64_t total = *reply.content_length;
    if (total < end || (wanted.object_bytes != 0 && total != wanted.object_bytes)) return other_size(total);
    if (wanted.offset == 0 && total == end) return {.promise = Promise::from_the_start};
  }
  return unusable("the store does not answer requests for a range");
}

}  // namespace stoker::storage::s3
