// How much scratch an image's transforms take, known before anything is decoded. memory_test.cc compares it with what
// they take.
#include <algorithm>

#include "stoker/transform/image_chain.h"
#include "stoker/transform/image_program.h"
#include "stoker/transform/weights.h"

namespace stoker::transform {
namespace {

constexpr std::uint64_t kRounding = 16 * 64;  // of all pieces of one resize
constexpr std::uint64_t kRowSlack = 256;      // that kernels want behind a row

// Of one resize of elements of `element` bytes with weights of `weight` bytes.
std::uint64_t resize_bytes(const Resizing& r, std::uint64_t channels, std::uint64_t element, std::uint64_t weight,
                           bool deep) noexcept {
  const Rect need = needed(r);
  const std::uint64_t in_row = need.width * channels, out_row = r.keep.width * channels;
  const std::uint64_t lines = (out_row + in_row + kRowSlack) * (element + weight) + kRounding;
  if (r.filter == Filter::nearest) {
    return lines + 4 * (std::uint64_t{r.keep.width} + r.keep.height) + (deep ? in_row * need.height * 4 : 0);
  }
  const std::uint64_t across = axis_bytes(r.across(), r.out_width, r.filter, r.keep.width, weight);
  const std::uint64_t down = axis_bytes(r.down(), r.out_height, r.filter, r.keep.height, weight);
  // 16-bit images: a few rows of float, where to find the taps of each element, and the source rows of one output.
  if (deep) return across + down + 2 * lines + axis_bytes(r.down(), r.out_height, r.filter, 1, 8);
  std::uint64_t bytes = lines + 2 * across + down;  // 8 bits: the weights along rows once more, in halves
  if (element == 1 && (channels == 2 || channels == 4)) bytes += in_row * need.height;  // weighted by alpha
  const bool down_first = columns_first(r);
  if (down_first) bytes += in_row * r.keep.height * element;
  const std::uint64_t padded = (out_row + 4 + 63) / 64 * 64;
  return bytes + padded * (down_first ? r.keep.height : need.height) * element;
}

}  // namespace

std::uint64_t ImagePlan::working_bytes(std::uint32_t view, const Draw& draw, std::uint32_t scale) const noexcept {
  const ImageProgram& plan = program_of(view);
  return geometry_bytes(plan, draw, scale) + chain_bytes(plan, draw);
}

std::uint64_t geometry_bytes(const ImageProgram& plan, const Draw& draw, std::uint32_t scale) noexcept {
  const std::uint64_t channels = plan.channels;
  const Needs needs = needs_of(plan, draw);
  std::uint64_t bytes = plan.deep ? Scratch::rounded(draw.width * channels * sizeof(float)) : 0;
  if (draw.is_padded) bytes += Scratch::rounded(draw.width * channels * (plan.deep ? sizeof(float) : 1));
  for (std::uint32_t i = 0; i < plan.resizes; ++i) {
    Resizing r = needs.resizings[i];
    if (i == 0 && scale > 1) {
      r.in_width = r.in_width / scale + 2;  // the outermost pixels show a part each
      r.in_height = r.in_height / scale + 2;
      r.mirrored = false;
    }
    const bool deep = plan.takes_words && i == 0;
    const std::uint64_t element = plan.deep ? sizeof(float) : 1;
    bytes += resize_bytes(r, channels, element, deep ? 4 : plan.deep ? 8 : 4, deep);
    if (i + 1 < plan.resizes) bytes += Scratch::rounded(r.keep.width * channels * r.keep.height * element);
  }
  return bytes;
}

}  // namespace stoker::transform
