// Images: every view of a sample is cropped, resized and stored straight into the row; only what some view needs is
// decoded. Rows of a uint8 or uint16 array are images too, where an operation asks for images.
#pragma once

#include "stoker/loader/kind.h"
#include "stoker/transform/image_plan.h"

namespace stoker::loader {

class ImageKind final : public Kind {
 public:
  // Whether the operations take rows of an array of this dtype and shape for images.
  static bool takes(const codec::ArrayInfo& row, const transform::Ops& ops) noexcept;

  ImageKind(const FirstSample& first, const LoaderOptions& options);  // throws Error

  RowResult measure(codec::Bytes bytes, std::uint64_t& length) const noexcept override;
  RowResult make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t& length, Scratch& scratch,
                 SeekStore* seek) const noexcept override;
  std::vector<transform::Pass> passes() const override;

 private:
  struct Sample;  // what becomes known of one image while its row is made

  // The steps of make(), in order.
  Result read_head(Sample& sample) const noexcept;
  Result draw_views(const SampleKey& key, Sample& sample) const noexcept;
  void choose_scale(Sample& sample) const noexcept;
  void choose_region(Sample& sample) const noexcept;
  Result take_row(Sample& sample, Scratch& scratch) const noexcept;  // of an array: it lies there as it is
  Result decode(Sample& sample, Scratch& scratch, SeekStore* seek) const noexcept;
  Result turn_upright(Sample& sample, Scratch& scratch) const noexcept;
  Result apply_views(const Sample& sample, const SampleKey& key, const Slot& slot, Scratch& scratch) const noexcept;

  std::uint64_t most_bytes(const Sample& sample) const noexcept;

  codec::ImageOptions options_;
  bool exif_orientation_ = false;
  bool keeps_bits_ = false;  // images of 8 and of 16 bits do not mix
  Pixels row_pixels_;        // rows of an array: their shape; no channels: images are files
  transform::ImagePlan plan_;
  mutable transform::PassTimes decoding_;  // one pass: from bytes to pixels
  mutable transform::PassTimes transforming_;
};

}  // namespace stoker::loader
