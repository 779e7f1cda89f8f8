#include "stoker/loader/array_kind.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/transform/copy.h"

namespace stoker::loader {
namespace {

constexpr std::size_t kArraysNamed = 4;

// Names the arrays that are left out of a file of several; empty where there is one.
std::string note_on(const FirstSample& first) {
  std::array<std::string_view, kArraysNamed> names;
  const std::size_t count = codec::list_arrays(first.head.media, first.bytes, names);
  if (count < 2) return {};
  std::string others;
  for (std::size_t i = 1; i < std::min(count, kArraysNamed); ++i)
    others += fmt::format("{}`{}`", others.empty() ? "" : ", ", names[i]);
  if (count > kArraysNamed) others += fmt::format(" and {} more", count - kArraysNamed);
  return fmt::format("`{}` holds {} arrays: only the first, `{}`, is loaded; left out: {}", first.name, count, names[0],
                     others);
}

transform::ArrayInput input_of(const codec::ArrayInfo& info) {
  return {info.dtype, {info.dims().begin(), info.dims().end()}};
}

}  // namespace

ArrayKind::ArrayKind(const FirstSample& first, const LoaderOptions& options)
    : are_rows_(first.row.has_value()),
      first_(are_rows_ ? *first.row : first.head.array),
      plan_(transform::ArrayPlan::compile(options.transform, input_of(first_), options.output)) {
  facts_.kind = SampleKind::array;
  facts_.outputs = {plan_.output()};
  facts_.description = plan_.describe();
  facts_.is_copy = are_rows_ && plan_.is_copy();
  if (!are_rows_) note_ = note_on(first);
}

std::vector<std::string> ArrayKind::notes() const {
  if (!note_.empty()) return {note_};
  if (!left_arrays_out_.load(std::memory_order_relaxed)) return {};
  return {"some .npz files hold several arrays: only the first of each is loaded"};
}

RowResult ArrayKind::measure(codec::Bytes, std::uint64_t&) const noexcept {
  return {};  // rows do not vary
}

RowResult ArrayKind::make(codec::Bytes bytes, const SampleKey&, const Slot& slot, std::uint64_t&, Scratch& scratch,
                          SeekStore*) const noexcept {
  return are_rows_ ? make_row(bytes, slot) : make_file(bytes, slot, scratch);
}

RowResult ArrayKind::make_row(codec::Bytes bytes, const Slot& slot) const noexcept {
  if (bytes.size() != first_.data_bytes) return bad(failed(Code::truncated, "the array ends inside this row"));
  if (facts_.is_copy && slot.past_cache) {
    transform::copy_past_cache(slot.outputs[0], bytes.data(), bytes.size());
    return {};
  }
  return bad(plan_.apply(bytes.data(), slot.outputs[0]), "transform");
}

RowResult ArrayKind::make_file(codec::Bytes bytes, const Slot& slot, Scratch& scratch) const noexcept {
  const codec::Media media = codec::sniff(bytes);
  codec::ArrayInfo info;
  if (const Result result = codec::probe_array(media, bytes, info, scratch); !result.ok()) return bad(result);
  if (!left_arrays_out_.load(std::memory_order_relaxed) && codec::list_arrays(media, bytes, {}) > 1)
    left_arrays_out_.store(true, std::memory_order_relaxed);
  if (info.dtype != first_.dtype || info.rank != first_.rank || info.shape != first_.shape) {
    return bad(failed(Code::mismatch, "its shape or dtype is not that of the first array"));
  }
  const std::uint64_t inflated_bytes = info.deflated ? Scratch::rounded(info.member_bytes) : 0;
  if (plan_.is_copy()) {
    if (!scratch.expect(inflated_bytes)) return bad(kNoRoom);
    return bad(codec::decode_array(media, bytes, info, slot.outputs[0], scratch));
  }
  if (!scratch.expect(Scratch::rounded(info.data_bytes) + inflated_bytes)) return bad(kNoRoom);
  const std::span<std::byte> memory = scratch.take(info.data_bytes);
  if (memory.empty()) return bad(kNoRoom);
  const Result result = codec::decode_array(media, bytes, info, memory.data(), scratch);
  if (!result.ok()) return bad(result);
  return bad(plan_.apply(memory.data(), slot.outputs[0]), "transform");
}

}  // namespace stoker::loader
