// Arrays whose shapes differ from file to file. Rows are packed one after another, as encoded bytes are: a row is a
// RaggedHead for each array, then the elements of each, which begin at multiples of kRaggedAlign from its start. The
// face makes arrays of them: as they lie, or padded to the largest of the batch.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stoker/loader/array_members.h"
#include "stoker/loader/kind.h"

namespace stoker::loader {

inline constexpr std::uint64_t kRaggedAlign = 64;

struct RaggedHead {
  std::int64_t dtype = 0;  // the number of the DType
  std::int64_t rank = 0;
  std::array<std::int64_t, 8> shape{};
};
static_assert(sizeof(RaggedHead) == 80);

class RaggedKind final : public Kind {
 public:
  RaggedKind(const FirstSample& first, const LoaderOptions& options);  // throws Error

  RowResult measure(codec::Bytes bytes, std::uint64_t& length) const noexcept override;
  RowResult make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t& length, Scratch& scratch,
                 SeekStore* seek) const noexcept override;

 private:
  const std::vector<ArrayMember> members_;
};

}  // namespace stoker::loader
