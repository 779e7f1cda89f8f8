// Samples of any kind as they are: the caller decodes them (Decode::none).
#pragma once

#include "stoker/loader/kind.h"

namespace stoker::loader {

class EncodedKind final : public Kind {
 public:
  explicit EncodedKind(const LoaderOptions& options);  // throws Error if there are transforms

  RowResult measure(codec::Bytes bytes, std::uint64_t& length) const noexcept override;
  RowResult make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t& length, Scratch& scratch,
                 SeekStore* seek) const noexcept override;
};

}  // namespace stoker::loader
