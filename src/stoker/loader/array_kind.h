// Arrays: files of one array each, or of several by name, or rows of one large array. All have the dtype and shape of
// the first.
#pragma once

#include <vector>

#include "stoker/loader/array_members.h"
#include "stoker/loader/kind.h"
#include "stoker/transform/array_plan.h"

namespace stoker::loader {

class ArrayKind final : public Kind {
 public:
  ArrayKind(const FirstSample& first, const LoaderOptions& options);  // throws Error

  RowResult measure(codec::Bytes bytes, std::uint64_t& length) const noexcept override;
  RowResult make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t& length, Scratch& scratch,
                 SeekStore* seek) const noexcept override;

 private:
  RowResult make_row(codec::Bytes bytes, const Slot& slot) const noexcept;
  RowResult make_array(std::size_t member, codec::Media media, codec::Bytes bytes, const Slot& slot,
                       Scratch& scratch) const noexcept;

  const bool are_rows_;                     // of one array: they have no header of their own
  const std::vector<ArrayMember> members_;  // one output each
  std::vector<transform::ArrayPlan> plans_;
};

}  // namespace stoker::loader
