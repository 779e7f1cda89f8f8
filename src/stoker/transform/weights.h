// Which pixels of one axis a resize takes, and with which weights: Pillow's. Private to this folder; from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stoker/base/scratch.h"
#include "stoker/transform/ops.h"

namespace stoker::transform {

// Pillow's fixed point for 8 bits: two bits of head room for filters with negative lobes.
inline constexpr int kPrecision = 32 - 8 - 2;

// Weights of one axis for the outputs that are kept: output i is the sum of k[i * stride + t] * input[start[i] + t].
template <typename K>
struct Axis {
  std::uint32_t count = 0, stride = 0;
  std::uint32_t* start = nullptr;
  std::uint32_t* taps = nullptr;
  K* k = nullptr;
};

// The part of an axis of `size` pixels that is resized: all of it unless said otherwise. As Pillow's resize(box=).
struct Extent {
  std::uint32_t size;
  double begin = 0, length = size;

  Extent(std::uint32_t whole) noexcept : size(whole) {}  // NOLINT: a number of pixels is an extent
  Extent(std::uint32_t of, double from, double pixels) noexcept : size(of), begin(from), length(pixels) {}
  bool is_whole() const noexcept { return begin == 0 && length == size; }
};

// Of all the outputs of an axis that goes from `in` to `out` pixels, those from `first` on are wanted. `mirrored`: as
// if the axis, which is then whole, were turned round before and after. K is std::int32_t (fixed point),
// double or float. False: no room.
template <typename K>
bool make_axis(const Extent& in, std::uint32_t out, Filter filter, std::uint32_t first, std::uint32_t count,
               bool mirrored, Axis<K>& axis, Scratch& scratch) noexcept;

extern template bool make_axis(const Extent&, std::uint32_t, Filter, std::uint32_t, std::uint32_t, bool,
                               Axis<std::int32_t>&, Scratch&) noexcept;
extern template bool make_axis(const Extent&, std::uint32_t, Filter, std::uint32_t, std::uint32_t, bool, Axis<double>&,
                               Scratch&) noexcept;
extern template bool make_axis(const Extent&, std::uint32_t, Filter, std::uint32_t, std::uint32_t, bool, Axis<float>&,
                               Scratch&) noexcept;

// At most what make_axis takes from the scratch, for weights of `weight_bytes` each.
std::size_t axis_bytes(const Extent& in, std::uint32_t out, Filter filter, std::uint32_t count,
                       std::size_t weight_bytes) noexcept;

// Filter::nearest: the input of each output.
void nearest_inputs(std::uint32_t in, std::uint32_t out, std::uint32_t first, std::uint32_t count, bool mirrored,
                    std::uint32_t* into) noexcept;

struct Reach {
  std::uint32_t first, count;
};

// The inputs that the wanted outputs depend on.
Reach reach(const Extent& in, std::uint32_t out, Filter filter, std::uint32_t first, std::uint32_t count,
            bool mirrored) noexcept;

}  // namespace stoker::transform
