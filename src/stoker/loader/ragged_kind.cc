#include "stoker/loader/ragged_kind.h"

#include <cstring>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/round.h"

namespace stoker::loader {

RaggedKind::RaggedKind(const FirstSample& first, const LoaderOptions& options)
    : members_(find_members(first, options)) {
  if (!options.transform.empty() || options.output.dtype) {
    const char* const refused = options.transform.empty() ? "dtype" : "transform";
    throw Error(ErrorKind::usage,
                format_text("{} does not go with {}", option(refused), option("shapes", name(options.shapes))),
                "transform them in batch_transform")
        .about(refused);
  }
  facts_.kind = SampleKind::array;
  facts_.outputs.push_back({.name = "data", .dtype = DType::u8, .shape = {0}, .varies = true});
  facts_.description = "arrays as they are stored, each of its own shape";
  facts_.varies = facts_.has_lengths = facts_.packs_rows = true;
  facts_.first_bytes = std::max<std::size_t>(1, first.bytes.size());
  std::uint64_t length = 0;
  if (const RowResult result = measure(first.bytes, length); result.result.ok()) facts_.first_length = length;
}

RowResult RaggedKind::measure(codec::Bytes bytes, std::uint64_t& length) const noexcept {
  const codec::Media media = codec::sniff(bytes);
  Scratch scratch;
  std::uint64_t total = round_up(members_.size() * sizeof(RaggedHead), kRaggedAlign);
  for (const ArrayMember& member : members_) {
    codec::ArrayInfo info;
    scratch.reset();
    if (const Result result = probe_member(member, media, bytes, info, scratch); !result.ok()) return bad(result);
    total += round_up(info.data_bytes, kRaggedAlign);
  }
  length = total;
  return {};
}

RowResult RaggedKind::make(codec::Bytes bytes, const SampleKey&, const Slot& slot, std::uint64_t& length,
                           Scratch& scratch, SeekStore*) const noexcept {
  const codec::Media media = codec::sniff(bytes);
  std::uint64_t at = round_up(members_.size() * sizeof(RaggedHead), kRaggedAlign);
  if (at > slot.length) return bad(failed(Code::too_large, "longer than its row of the batch"));
  std::memset(slot.outputs[0], 0, at);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Scratch::Mark mark = scratch.mark();
    codec::ArrayInfo info;
    if (const Result result = probe_member(members_[i], media, bytes, info, scratch); !result.ok()) return bad(result);
    if (info.data_bytes > slot.length || at > slot.length - info.data_bytes)
      return bad(failed(Code::too_large, "longer than its row of the batch"));
    RaggedHead head;
    head.dtype = static_cast<std::int64_t>(info.dtype);
    head.rank = info.rank;
    for (std::size_t axis = 0; axis < info.rank; ++axis) head.shape[axis] = static_cast<std::int64_t>(info.shape[axis]);
    std::memcpy(slot.outputs[0] + i * sizeof head, &head, sizeof head);
    if (!scratch.expect(info.deflated ? Scratch::rounded(info.member_bytes) : 0)) return bad(kNoRoom);
    const Result result = codec::decode_array(media, bytes, info, slot.outputs[0] + at, scratch);
    if (!result.ok()) return bad(result);
    scratch.rewind(mark);
    at += round_up(info.data_bytes, kRaggedAlign);
  }
  length = at;
  return {};
}

}  // namespace stoker::loader
