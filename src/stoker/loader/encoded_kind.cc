#include "stoker/loader/encoded_kind.h"

#include <cstring>

#include "stoker/base/error.h"

namespace stoker::loader {

EncodedKind::EncodedKind(const LoaderOptions& options) {
  if (!options.transform.empty()) {
    throw Error(ErrorKind::usage, "a transform cannot follow a decoder of your own: its result is not known to Stoker",
                "transform in your decode function, or in batch_transform");
  }
  facts_.outputs.push_back({.name = "data", .dtype = DType::u8, .shape = {0}, .varies = true});
  facts_.description = "encoded bytes, decoded in Python";
  facts_.is_encoded = facts_.varies = facts_.has_lengths = facts_.packs_rows = true;
}

RowResult EncodedKind::measure(codec::Bytes bytes, std::uint64_t& length) const noexcept {
  length = bytes.size();
  return {};
}

RowResult EncodedKind::make(codec::Bytes bytes, const SampleKey&, const Slot& slot, std::uint64_t& length, Scratch&,
                            SeekStore*) const noexcept {
  if (bytes.size() > slot.length) return bad(failed(Code::too_large, "longer than its row of the batch"));
  std::memcpy(slot.outputs[0], bytes.data(), bytes.size());
  length = bytes.size();
  return {};
}

}  // namespace stoker::loader
