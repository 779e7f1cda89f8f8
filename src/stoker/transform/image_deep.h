// Makes a view of a 16-bit image, whose values are floats from the first geometry to the store: geometry, operations
// that move pixels, further geometry, and the store into the slot. Private to the image*.cc files.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/transform/deep.h"
#include "stoker/transform/image_program.h"

namespace stoker::transform {

// `offset` is that of the chain's Window, in stored units; 0 where there is none.
Result make_deep_view(const ImageProgram& plan, const Draw& draw, const DeepPart& source, double offset,
                      std::byte* slot, Scratch& scratch) noexcept;

}  // namespace stoker::transform
