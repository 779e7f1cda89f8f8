#include "stoker/transform/deep_actions.h"

#include <algorithm>
#include <cassert>
#include <type_traits>

#include "stoker/transform/affine.h"
#include "stoker/transform/pad_crop.h"

namespace stoker::transform {
namespace {

void mirror(const FloatPlanes& image, bool is_vertical) noexcept {
  for (std::uint32_t c = 0; c < image.channels; ++c) {
    if (is_vertical) {
      for (std::uint32_t y = 0; y < image.height / 2; ++y)
        std::swap_ranges(image.row(c, y), image.row(c, y) + image.width, image.row(c, image.height - 1 - y));
      continue;
    }
    for (std::uint32_t y = 0; y < image.height; ++y) std::reverse(image.row(c, y), image.row(c, y) + image.width);
  }
}

}  // namespace

bool moves_pixels(const Op& op) noexcept {
  return std::visit(
      [](const auto& what) {
        using T = std::decay_t<decltype(what)>;
        if constexpr (requires { what.ops; }) {
          return std::all_of(what.ops.begin(), what.ops.end(), moves_pixels);
        } else {
          return std::is_same_v<T, HorizontalFlip> || std::is_same_v<T, VerticalFlip> || std::is_same_v<T, Pad> ||
                 std::is_same_v<T, RandomCrop> || std::is_same_v<T, RandomRotation> ||
                 std::is_same_v<T, RandomAffine> || std::is_same_v<T, RandomPerspective> ||
                 std::is_same_v<T, RandomZoomOut>;
        }
      },
      op.what);
}

void DeepActionRunner::act(const Action& action) noexcept {
  if (!result_.ok() || warp(canvas_, action, scratch_, result_)) return;
  switch (action.what) {
    case Act::flip_x:
    case Act::flip_y:
      return mirror(canvas_.image(), action.what == Act::flip_y);
    case Act::pad_crop:
      return void(result_ = pad_and_crop(canvas_, action));
    default:
      assert(false && "DeepActionRunner: the compiler has let another action through");
  }
}

}  // namespace stoker::transform
