// Operations on audio, compiled once for a data set. Immutable; safe from any thread; each thread brings its own
// Scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "stoker/base/dtype.h"
#include "stoker/base/result.h"
#include "stoker/base/scratch.h"
#include "stoker/transform/ops.h"
#include "stoker/transform/output.h"

namespace stoker::transform {

// The data set's first sample. Later ones that differ fail one by one (Code::mismatch), unless Mono or Resample makes
// them alike.
struct AudioInput {
  std::uint32_t channels = 1, rate_hz = 0;
  std::uint64_t frames = 0;  // 0: not known
};

// What a sample's random draws depend on: nothing else.
struct AudioChance {
  std::uint64_t seed = 0, epoch = 0, id = 0;
};

// Frames [first, first + count) of a file.
struct AudioWindow {
  std::uint64_t first = 0, count = 0;
};

struct AudioProgram;  // the operations, in audio_program.h

class AudioPlan {
 public:
  // Throws Error(usage) with one sentence naming the operation that cannot be.
  static AudioPlan compile(const Ops& ops, const AudioInput& input, const OutputOptions& options = {});

  const AudioInput& input() const noexcept { return input_; }
  const Output& output() const noexcept { return output_; }
  std::string describe() const;  // one line for people

  // True when nothing but padding or trimming happens: the decoder may write window() straight into the slot as
  // float32.
  bool is_direct() const noexcept { return is_direct_; }
  // The same for int16: 16-bit samples may be copied.
  bool is_int16() const noexcept { return is_int16_; }
  std::uint32_t output_channels() const noexcept;
  std::uint64_t output_rows() const noexcept;  // channels, times the bands of a spectrogram
  bool has_spectrogram() const noexcept;
  std::uint32_t output_rate_hz() const noexcept;  // of the first sample, or of Resample
  // Frames that leave for a sample that has `frames` at `rate_hz`, or steps of its spectrogram; the count of PadOrTrim
  // or RandomTrim where there is one.
  std::uint64_t output_frames(std::uint64_t frames, std::uint32_t rate_hz) const noexcept;
  Result check(std::uint32_t channels, std::uint32_t rate_hz) const noexcept;  // mismatch, with the remedy

  // The part of a sample that has to be decoded: `apply` takes that part for the whole.
  AudioWindow window(std::uint64_t frames, std::uint32_t rate_hz, const AudioChance& chance) const noexcept;

  // `source` is planar float32, channel c at source + c * channel_stride. Writes output_rows() rows of
  // `slot_frames` elements of the output dtype at `slot`, zero-padded; `written` is the count of true frames or steps.
  // `channels` of this sample (Mono takes any number); 0: as many as the first sample has. Mono comes before Resample
  // whichever is named first: they commute, and one channel is less work.
  Result apply(const float* source, std::size_t channel_stride, std::uint64_t frames, std::uint32_t rate_hz,
               std::byte* slot, std::uint64_t slot_frames, std::uint64_t& written, Scratch& scratch,
               std::uint32_t channels = 0, const AudioChance& chance = {}) const noexcept;
  // At most what apply takes from the scratch.
  std::uint64_t working_bytes(std::uint64_t frames, std::uint32_t rate_hz, std::uint32_t channels) const noexcept;

 private:
  Result make_spectrogram(const float* wave, std::size_t wave_stride, std::uint64_t frames, std::uint64_t true_frames,
                          std::byte* slot, std::uint64_t slot_steps, std::uint64_t& written, Scratch& scratch,
                          const AudioChance& chance) const noexcept;

  AudioInput input_;
  Output output_;
  bool is_direct_ = false, is_int16_ = false;
  std::shared_ptr<const AudioProgram> program_;
};

}  // namespace stoker::transform
