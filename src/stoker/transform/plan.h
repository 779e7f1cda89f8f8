// Operations compiled once for a data set: output shapes are known, impossible combinations are refused, and each
// sample runs as crop, resize and one fused store (flip, normalise, convert, lay out) straight into its slot of the
// batch. A Plan is immutable and safe from any thread; each thread brings its own Scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stoker/base/dtype.h"
#include "stoker/base/pixels.h"
#include "stoker/base/random.h"
#include "stoker/base/result.h"
#include "stoker/base/sample_kind.h"
#include "stoker/base/scratch.h"
#include "stoker/transform/ops.h"

namespace stoker::transform {

enum class Layout : std::uint8_t { nchw, nhwc, channels_last };  // channels_last: NCHW shape, NHWC strides

// What the data set's first sample is. Later samples that differ where it matters fail one by one (Code::mismatch).
struct Input {
  SampleKind kind = SampleKind::image;
  // image
  std::uint32_t width = 0, height = 0;
  std::uint8_t channels = 3;  // after colour conversion
  std::uint8_t bits = 8;      // 8 or 16, of the first sample
  bool keeps_bits = false;    // 16 bits stay 16; else only Window, ToFloat or dtype u16 take more than 8
  // audio
  std::uint32_t audio_channels = 1, rate_hz = 0;
  // array
  DType dtype = DType::u8;
  std::vector<std::uint64_t> shape;
};

struct OutputOptions {
  std::optional<DType> dtype;  // none: uint8 (uint16 where bits are kept) for pictures until something makes them
                               // float; float32 for sound (int16 is possible); as stored for arrays
  Layout layout = Layout::nchw;
};

// One tensor of the batch.
struct Output {
  std::string name;  // "data", or the name of the group of views
  DType dtype = DType::u8;
  std::vector<std::uint64_t> shape;  // of one view of one sample, logical order (C,H,W or H,W,C); without the batch
  Layout layout = Layout::nchw;      // how a picture lies in memory
  std::uint32_t views = 1;           // the tensor is [batch, shape...] for 1, else [batch, views, shape...]
  std::uint32_t first_view = 0;      // number of its first view, over all outputs
  std::size_t view_bytes = 0;        // of one view of one sample; 0 where frames are only known per batch
  bool varies = false;               // sound without PadOrTrim: the last dimension is the batch's longest
};

// What chance decided for one view of one sample. Filled by Plan::draw; trivially copyable.
struct Draw {
  Rect crop;      // source pixels that the view needs (what a decoder must deliver, at least)
  Rect steps[4];  // steps[i] of the picture so far is resized to sizes[i]; the one after the last resize is kept
  std::uint32_t sizes[4][2] = {};  // width, height
  bool flip = false;
  // CenterCrop pads an image that is smaller than the crop: `inside` is the part of the view that shows the image.
  bool is_padded = false;
  bool pads_after_window = false;  // the padding is 0 after Window, else the window's value of 0
  Rect inside;
  float window_low = 0, window_scale = 0;  // in Hounsfield units: (v - offset - low) * scale is in [0, 1]
};

// Where pixels in memory lie in the picture, which may have been made smaller: pixel (i, j) shows what lies from
// (x + i * scale, y + j * scale) on.
struct Placement {
  std::int64_t x = 0, y = 0;
  std::uint32_t scale = 1;
};

class Plan {
 public:
  // Throws Error(usage) with one sentence naming the operation that cannot be.
  static Plan compile(const Ops& ops, const Input& input, const OutputOptions& options = {});

  const Input& input() const noexcept { return input_; }
  std::span<const Output> outputs() const noexcept { return outputs_; }
  std::uint32_t view_count() const noexcept { return view_count_; }
  std::string describe() const;  // one line for people

  // ---- pictures
  bool deep() const noexcept { return deep_; }  // the decoder must give 16 bits
  // Draws view `view` of a width x height picture. `random` must be Random(seed, epoch, sample id, view).
  Result draw(std::uint32_t view, std::uint32_t width, std::uint32_t height, Random& random, Draw& draw) const noexcept;
  // Takes from `scratch` and leaves it taken: reset it after the last view of the sample.
  // `source` holds the rectangle `region` of the picture, which contains draw.crop. `offset` is the sample's hu_offset
  // (used when Window has none of its own). Writes outputs()[..].view_bytes bytes at `slot`.
  Result apply(std::uint32_t view, const Draw& draw, const Pixels& source, const Rect& region, double offset,
               std::byte* slot, Scratch& scratch) const noexcept;

  // At most what apply takes from the scratch; or apply_fast, of a picture that a decoder made smaller by `scale`.
  std::uint64_t working_bytes(std::uint32_t view, const Draw& draw, std::uint32_t scale = 1) const noexcept;

  // ---- pictures of 8 bits, with approximations
  // The most by which a decoder may make the picture smaller (8, 4, 2 or 1): the view shrinks it by at least as much.
  std::uint32_t most_scale(std::uint32_t view, const Draw& draw) const noexcept;
  // The source pixels that apply_fast needs, at least, of a picture that is made smaller: draw.crop and a little more.
  Rect crop_at(std::uint32_t view, const Draw& draw, std::uint32_t scale) const noexcept;
  // As apply, but the first resize is a plain bilinear one where that leaves out little. `source` holds crop_at().
  Result apply_fast(std::uint32_t view, const Draw& draw, const Pixels& source, const Placement& placement,
                    std::byte* slot, Scratch& scratch) const noexcept;

  // ---- sound
  // True when nothing but padding or trimming happens: the decoder may write straight into the slot as float32.
  bool audio_is_direct() const noexcept { return audio_is_direct_; }
  // The same for int16: 16-bit samples may be copied.
  bool audio_is_int16() const noexcept { return audio_is_int16_; }
  std::uint32_t output_channels() const noexcept { return output_channels_; }  // of the sound that leaves
  // Frames that leave for a sample that has `frames` at `rate_hz`; the PadOrTrim count where there is one.
  std::uint64_t output_frames(std::uint64_t frames, std::uint32_t rate_hz) const noexcept;
  Result check_audio(std::uint32_t channels, std::uint32_t rate_hz) const noexcept;  // mismatch, with the remedy
  // `source` is planar float32, channel c at source + c * channel_stride. Writes output_channels() rows of
  // `slot_frames` elements of the output dtype at `slot`, zero-padded; `written` is the count of true frames.
  // `channels` of this sample (Mono takes any number); 0: as many as the first sample has. Mono comes before Resample
  // whichever is named first: they commute, and one channel is less work.
  Result apply_audio(const float* source, std::size_t channel_stride, std::uint64_t frames, std::uint32_t rate_hz,
                     std::byte* slot, std::uint64_t slot_frames, std::uint64_t& written, Scratch& scratch,
                     std::uint32_t channels = 0) const noexcept;

  // At most what apply_audio takes from the scratch.
  std::uint64_t audio_working_bytes(std::uint64_t frames, std::uint32_t rate_hz, std::uint32_t channels) const noexcept;

  // ---- arrays
  bool array_is_copy() const noexcept { return array_is_copy_; }  // bytes go to the slot as they are
  Result apply_array(const std::byte* source, std::byte* slot) const noexcept;

  struct Compiled;  // private, in compiled.h

 private:
  Input input_;
  std::vector<Output> outputs_;
  std::uint32_t view_count_ = 1;
  bool deep_ = false;
  bool audio_is_direct_ = false, audio_is_int16_ = false;
  bool array_is_copy_ = false;
  std::uint32_t output_channels_ = 1;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace stoker::transform
