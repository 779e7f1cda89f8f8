// Audio: rows of frames, as long as PadOrTrim says or as the longest of the batch.
#pragma once

#include "stoker/loader/kind.h"
#include "stoker/transform/audio_plan.h"

namespace stoker::loader {

class AudioKind final : public Kind {
 public:
  AudioKind(const FirstSample& first, const LoaderOptions& options);  // throws Error

  // True if the operations cannot make anything of so few frames. Such a sample is bad, and says nothing of the others.
  static bool is_too_short(const FirstSample& first, const LoaderOptions& options);  // throws Error

  RowResult measure(codec::Bytes bytes, std::uint64_t& length) const noexcept override;
  RowResult make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t& length, Scratch& scratch,
                 SeekStore* seek) const noexcept override;

 private:
  RowResult probe(codec::Bytes bytes, codec::Media& media, codec::AudioInfo& info) const noexcept;

  transform::AudioPlan plan_;
};

}  // namespace stoker::loader
