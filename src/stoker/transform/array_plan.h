// Operations on arrays, compiled once for a data set. Immutable; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stoker/base/dtype.h"
#include "stoker/base/result.h"
#include "stoker/transform/ops.h"
#include "stoker/transform/output.h"

namespace stoker::transform {

// The data set's first array. Every other one has this dtype and shape.
struct ArrayInput {
  DType dtype = DType::u8;
  std::vector<std::uint64_t> shape;
};

class ArrayPlan {
 public:
  // Throws Error(usage) with one sentence naming the operation that cannot be.
  static ArrayPlan compile(const Ops& ops, const ArrayInput& input, const OutputOptions& options = {});

  const ArrayInput& input() const noexcept { return input_; }
  const Output& output() const noexcept { return output_; }
  std::string describe() const;  // one line for people

  bool is_copy() const noexcept { return is_copy_; }  // bytes go to the slot as they are
  // `source` is one array as stored. Writes output().view_bytes bytes at `slot`.
  Result apply(const std::byte* source, std::byte* slot) const noexcept;

 private:
  ArrayInput input_;
  Output output_;
  DType from_ = DType::u8, to_ = DType::u8;
  float divisor_ = 1;
  std::uint64_t count_ = 1;  // of elements
  bool is_copy_ = false;
};

}  // namespace stoker::transform
