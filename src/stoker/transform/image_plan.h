// Operations on images, compiled once for a data set: output shapes are known, impossible combinations are refused, and
// each sample runs as crop, resize and one fused store (flip, normalise, convert, lay out) straight into its slot of
// the batch; augmentations change the resized rows in between. Immutable; safe from any thread; each thread brings its
// own Scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/pixels.h"
#include "stoker/base/random.h"
#include "stoker/base/result.h"
#include "stoker/base/scratch.h"
#include "stoker/transform/action.h"
#include "stoker/transform/ops.h"
#include "stoker/transform/output.h"
#include "stoker/transform/pass_times.h"

namespace stoker::transform {

// The data set's first image. Later ones that differ where it matters fail one by one (Code::mismatch).
struct ImageInput {
  std::uint32_t width = 0, height = 0;
  std::uint8_t channels = 3;  // after colour conversion
  std::uint8_t bits = 8;      // 8 or 16
  bool keeps_bits = false;    // 16 bits stay 16; else only Window, ToFloat or dtype u16 take more than 8
};

// What chance decided for one view of one sample. Filled by ImagePlan::draw; trivially copyable.
struct Draw {
  Rect crop;      // source pixels that the view needs (what a decoder must deliver, at least)
  Rect steps[4];  // steps[i] of the image so far is resized to sizes[i]; the one after the last resize is kept
  std::uint32_t sizes[4][2] = {};  // width, height
  bool flip = false;
  // CenterCrop pads an image that is smaller than the crop: `inside` is the part of the view that shows the image.
  bool is_padded = false;
  bool pads_after_window = false;  // the padding is 0 after Window, else the window's value of 0
  Rect inside;
  std::uint64_t key = 0;                   // of the streams from which augmentations and what follows them are drawn
  std::uint32_t width = 0, height = 0;     // of what reaches the first augmentation
  float window_low = 0, window_scale = 0;  // in Hounsfield units: (v - offset - low) * scale is in [0, 1]
};

// Where pixels in memory lie in the image, which may have been made smaller: pixel (i, j) shows what lies from
// (x + i * scale, y + j * scale) on.
struct Placement {
  std::int64_t x = 0, y = 0;
  std::uint32_t scale = 1;
};

struct ImageProgram;

class ImagePlan {
 public:
  // Throws Error(usage) with one sentence naming the operation that cannot be.
  static ImagePlan compile(const Ops& ops, const ImageInput& input, const OutputOptions& options = {});

  const ImageInput& input() const noexcept { return input_; }
  std::span<const Output> outputs() const noexcept { return outputs_; }
  std::uint32_t view_count() const noexcept { return view_count_; }
  bool deep() const noexcept { return deep_; }  // the decoder must give 16 bits
  std::string describe() const;                 // one line for people
  // What runs together over the pixels, of each output. apply and apply_fast time them by their place in this list.
  std::vector<Pass> passes() const;
  std::size_t pass_count() const noexcept;
  // Columns of the index that the operations read. apply() takes their values for the sample, in this order.
  std::span<const IndexColumn> columns() const noexcept { return columns_; }

  // Draws view `view` of a width x height image. `random` must be Random(seed, epoch, sample id, view).
  Result draw(std::uint32_t view, std::uint32_t width, std::uint32_t height, Random& random, Draw& draw) const noexcept;
  // Hands over what the augmentations of that view do, in order, as draw and apply do it.
  Result list_actions(std::uint32_t view, const Draw& draw, ActionSink& sink) const noexcept;
  // Takes from `scratch` and leaves it taken: reset it after the last view of the sample.
  // `source` holds the rectangle `region` of the image, which contains draw.crop. `values` are those of columns(), 0
  // where the index has none. Writes outputs()[..].view_bytes bytes at `slot`.
  Result apply(std::uint32_t view, const Draw& draw, const Pixels& source, const Rect& region,
               std::span<const double> values, std::byte* slot, Scratch& scratch) const noexcept;

  // At most what apply takes from the scratch; or apply_fast, of an image that a decoder made smaller by `scale`.
  std::uint64_t working_bytes(std::uint32_t view, const Draw& draw, std::uint32_t scale = 1) const noexcept;

  // ---- 8 bits, with approximations
  // The most by which a decoder may make the image smaller (8, 4, 2 or 1): the view shrinks it by at least as much.
  std::uint32_t most_scale(std::uint32_t view, const Draw& draw) const noexcept;
  // The source pixels that apply_fast needs, at least, of an image that is made smaller: draw.crop and a little more.
  Rect crop_at(std::uint32_t view, const Draw& draw, std::uint32_t scale) const noexcept;
  // As apply, but the first resize is a plain bilinear one where that leaves out little. `source` holds crop_at().
  Result apply_fast(std::uint32_t view, const Draw& draw, const Pixels& source, const Placement& placement,
                    std::byte* slot, Scratch& scratch) const noexcept;

 private:
  struct Compiled;  // in image_program.h
  const ImageProgram& program_of(std::uint32_t view) const noexcept;
  std::uint32_t value_of(const IndexColumn& column);  // its number among the values

  ImageInput input_;
  std::vector<Output> outputs_;
  std::vector<IndexColumn> columns_;
  std::uint32_t view_count_ = 1;
  bool deep_ = false;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace stoker::transform
