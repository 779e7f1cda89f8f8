#include "stoker/loader/array_kind.h"

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/transform/copy.h"

namespace stoker::loader {
namespace {

transform::ArrayInput input_of(const codec::ArrayInfo& info) {
  return {info.dtype, {info.dims().begin(), info.dims().end()}};
}

}  // namespace

ArrayKind::ArrayKind(const FirstSample& first, const LoaderOptions& options)
    : are_rows_(first.row.has_value()),
      members_(are_rows_ ? std::vector<ArrayMember>{{"", *first.row}} : find_members(first, options)) {
  if (are_rows_ && !options.arrays.empty())
    throw Error(ErrorKind::usage, format_text("{} does not go with one array of all samples", option("arrays")),
                "leave it out")
        .about("arrays");
  if (members_.size() > 1 && !options.transform.empty())
    throw Error(ErrorKind::usage, format_text("{} does not go with several {}", option("transform"), option("arrays")),
                "transform them in batch_transform")
        .about("transform");
  facts_.kind = SampleKind::array;
  for (const ArrayMember& member : members_) {
    plans_.push_back(transform::ArrayPlan::compile(options.transform, input_of(member.first), options.output));
    facts_.outputs.push_back(plans_.back().output());
    if (members_.size() > 1) facts_.outputs.back().name = member.name;
  }
  facts_.description = plans_.front().describe();
  facts_.is_copy = are_rows_ && plans_.front().is_copy();
}

RowResult ArrayKind::measure(codec::Bytes, std::uint64_t&) const noexcept {
  return {};  // rows do not vary
}

RowResult ArrayKind::make(codec::Bytes bytes, const SampleKey&, const Slot& slot, std::uint64_t&, Scratch& scratch,
                          SeekStore*) const noexcept {
  if (are_rows_) return make_row(bytes, slot);
  const codec::Media media = codec::sniff(bytes);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Scratch::Mark mark = scratch.mark();
    const RowResult made = make_array(i, media, bytes, slot, scratch);
    if (!made.result.ok()) return made;
    scratch.rewind(mark);
  }
  return {};
}

RowResult ArrayKind::make_row(codec::Bytes bytes, const Slot& slot) const noexcept {
  if (bytes.size() != members_[0].first.data_bytes)
    return bad(failed(Code::truncated, "the array ends inside this row"));
  if (facts_.is_copy && slot.past_cache) {
    transform::copy_past_cache(slot.outputs[0], bytes.data(), bytes.size());
    return {};
  }
  return bad(plans_[0].apply(bytes.data(), slot.outputs[0]), "transform");
}

RowResult ArrayKind::make_array(std::size_t member, codec::Media media, codec::Bytes bytes, const Slot& slot,
                                Scratch& scratch) const noexcept {
  codec::ArrayInfo info;
  if (const Result result = probe_member(members_[member], media, bytes, info, scratch); !result.ok())
    return bad(result);
  if (info.shape != members_[member].first.shape)
    return bad(failed(Code::mismatch, "its shape is not that of the first array, and the option `shapes` is equal"));
  std::byte* const into = slot.outputs[member];
  const std::uint64_t inflated_bytes = info.deflated ? Scratch::rounded(info.member_bytes) : 0;
  if (plans_[member].is_copy()) {
    if (!scratch.expect(inflated_bytes)) return bad(kNoRoom);
    return bad(codec::decode_array(media, bytes, info, into, scratch));
  }
  if (!scratch.expect(Scratch::rounded(info.data_bytes) + inflated_bytes)) return bad(kNoRoom);
  const std::span<std::byte> memory = scratch.take(info.data_bytes);
  if (memory.empty()) return bad(kNoRoom);
  const Result result = codec::decode_array(media, bytes, info, memory.data(), scratch);
  if (!result.ok()) return bad(result);
  return bad(plans_[member].apply(memory.data(), into), "transform");
}

}  // namespace stoker::loader
