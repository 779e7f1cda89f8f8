// What chance decides for one augmentation of one image: a list of actions. Every operation draws from a stream of its
// own, so that none shifts the numbers of another. Pure; from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "stoker/base/result.h"
#include "stoker/transform/action.h"
#include "stoker/transform/ops.h"

namespace stoker::transform {

// An augmentation, compiled: with the number of its stream, and so are those that it holds.
struct Augment {
  Op op;
  std::uint32_t stream = 0;
  std::vector<Augment> inner;
};

// Draws from the streams of `key`, which is the view's. `size` is that of the image so far, and becomes that of what
// leaves.
Result draw_actions(const Augment& augment, std::uint64_t key, ImageSize& size, ActionSink& sink) noexcept;

// True where every image keeps its size and its channels.
bool keeps_size(const Op& op) noexcept;

// True for the operations of augment_ops.h.
bool is_augmentation(const Op& op) noexcept;

}  // namespace stoker::transform
