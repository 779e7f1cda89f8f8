// An image mixed with what chains of actions make of it, as AugMix does: float32 sums, which lose their fraction at the
// end, as torchvision's. Private to this folder; one thread each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/base/result.h"
#include "stoker/transform/action.h"
#include "stoker/transform/planes.h"

namespace stoker::transform {

class ChainMix {
 public:
  // Keeps a copy of the image, and starts the sum with its share. Takes bytes_for() from the scratch.
  Result start(const Planes& image, double share, Scratch& scratch) noexcept;
  // Adds the share of what a chain made of the image, which has the same size, and puts the copy back.
  void add(const Planes& image, double share) noexcept;
  // Adds the last one. The sum becomes the image, and the scratch is given back.
  void finish(const Planes& image, double share, Scratch& scratch) noexcept;

  static std::uint64_t bytes_for(const ImageSize& size) noexcept;

 private:
  Scratch::Mark before_{};
  std::uint8_t* copy_ = nullptr;
  float* sum_ = nullptr;
};

}  // namespace stoker::transform
