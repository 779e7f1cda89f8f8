// Arrays: files of one array each, or rows of one large array. All have the dtype and shape of the first.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "stoker/loader/kind.h"
#include "stoker/transform/array_plan.h"

namespace stoker::loader {

class ArrayKind final : public Kind {
 public:
  ArrayKind(const FirstSample& first, const LoaderOptions& options);  // throws Error

  std::vector<std::string> notes() const override;  // arrays of files of several, which are not loaded
  RowResult measure(codec::Bytes bytes, std::uint64_t& length) const noexcept override;
  RowResult make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t& length, Scratch& scratch,
                 SeekStore* seek) const noexcept override;

 private:
  RowResult make_row(codec::Bytes bytes, const Slot& slot) const noexcept;
  RowResult make_file(codec::Bytes bytes, const Slot& slot, Scratch& scratch) const noexcept;

  const bool are_rows_;           // of one array: they have no header of their own
  const codec::ArrayInfo first_;  // dtype and shape of each
  transform::ArrayPlan plan_;
  std::string note_;                                   // on the first file
  mutable std::atomic<bool> left_arrays_out_ = false;  // of another file
};

}  // namespace stoker::loader
