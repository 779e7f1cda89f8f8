// Does the actions that move pixels to the image of a float canvas, in order: flips, warps and padding. 16-bit images
// pass through here, before or after Window. One thread each.
#pragma once

#include "stoker/base/result.h"
#include "stoker/transform/action.h"
#include "stoker/transform/ops.h"
#include "stoker/transform/planes.h"

namespace stoker::transform {

// Whether 16-bit images take the operation and all that it holds.
bool moves_pixels(const Op& op) noexcept;

class DeepActionRunner final : public ActionSink {
 public:
  DeepActionRunner(FloatCanvas& canvas, Scratch& scratch) noexcept : canvas_(canvas), scratch_(scratch) {}

  void act(const Action& action) noexcept override;
  Result result() const noexcept { return result_; }  // the first thing that went wrong, if any

 private:
  FloatCanvas& canvas_;
  Scratch& scratch_;
  Result result_;
};

}  // namespace stoker::transform
