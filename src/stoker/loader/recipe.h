// How one sample's bytes become its row of the batch: codec and transform put together for a data set, once.
// Immutable but for its notes; safe from any thread (one Scratch each).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "stoker/base/scratch.h"
#include "stoker/dataset/dataset.h"
#include "stoker/loader/options.h"
#include "stoker/loader/seek_store.h"
#include "stoker/transform/plan.h"

namespace stoker::loader {

inline constexpr std::size_t kMaxOutputs = 8;

// Where the row of one sample lies: one address per output.
struct Slot {
  std::array<std::byte*, kMaxOutputs> outputs{};
  std::uint64_t length = 0;  // elements of the last dimension, where it varies with the batch
  bool past_cache = false;   // the batch is larger than caches: what is only copied goes past them
};

// What chance and the index know of a sample.
struct SampleKey {
  std::uint64_t seed = 0, epoch = 0, id = 0;
  double hu_offset = 0;
};

struct Verdict {
  Result result;
  const char* stage = "decode";  // "decode" or "transform"
};

class Recipe {
 public:
  // Looks at the first samples (reads up to 16 files) to learn what the data set holds. Throws Error.
  Recipe(const dataset::Dataset& dataset, const LoaderOptions& options);

  std::span<const transform::Output> outputs() const noexcept { return outputs_; }
  const transform::Plan* plan() const noexcept { return plan_ ? &*plan_ : nullptr; }
  bool varies() const noexcept { return varies_; }      // row length is known per batch only
  bool is_copy() const noexcept { return is_copy_; }    // bytes may be read straight into the slot
  bool is_heavy() const noexcept { return is_heavy_; }  // decoding costs far more than handing over
  std::uint64_t scratch_estimate() const noexcept {
    return scratch_estimate_;
  }                                                             // bytes one worker needs for a usual sample
  std::uint64_t look_bytes() const noexcept { return look_bytes_; }  // most memory that the first look held
  std::uint64_t length_of(std::uint64_t bytes) const noexcept;  // about, of the row of a sample of so many bytes
  std::uint64_t row_bytes(std::size_t output, std::uint64_t length) const noexcept;  // of one sample
  bool has_lengths() const noexcept { return has_lengths_; }
  // MCUs of the first picture, if it is a JPEG file whose places can be noted; else 0.
  std::uint32_t seekable_mcus() const noexcept { return seekable_mcus_; }

  // Arrays of .npz files that are not loaded, said once; grows while samples are made.
  std::vector<std::string> notes() const;

  // The row length of a sample, where it varies.
  Verdict measure(codec::Bytes bytes, std::uint64_t& length) const noexcept;
  // Writes the row; `length` is the true count of frames or bytes where rows have lengths. `seek` may be null.
  Verdict make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t& length, Scratch& scratch,
               SeekStore* seek) const noexcept;

 private:
  void look(const dataset::Dataset& dataset, const LoaderOptions& options, transform::Input& input);
  Verdict make_image(codec::Bytes bytes, const SampleKey& key, const Slot& slot, Scratch& scratch,
                     SeekStore* seek) const noexcept;
  Verdict make_audio(codec::Bytes bytes, const Slot& slot, std::uint64_t& length, Scratch& scratch) const noexcept;
  Verdict make_array(codec::Bytes bytes, const Slot& slot, Scratch& scratch) const noexcept;

  std::optional<transform::Plan> plan_;
  std::vector<transform::Output> outputs_;
  codec::ImageOptions image_options_;
  bool exif_orientation_ = false;
  bool keeps_bits_ = false;                            // pictures of 8 and of 16 bits do not mix
  bool rows_of_array_ = false;                         // samples are rows of one .npy: no header of their own
  codec::ArrayInfo row_;                               // then: dtype and shape of a row
  Pixels row_pixels_;                                  // rows used as pictures
  std::string npz_note_;                               // of the first sample
  mutable std::atomic<bool> left_arrays_out_ = false;  // of another sample
  bool varies_ = false, is_copy_ = false, is_heavy_ = false, has_lengths_ = false;
  std::uint64_t scratch_estimate_ = 0, look_bytes_ = 0;
  std::uint64_t first_length_ = 1, first_bytes_ = 1;  // of the first sound: frames that leave, and its file
  std::uint32_t seekable_mcus_ = 0;
};

}  // namespace stoker::loader
