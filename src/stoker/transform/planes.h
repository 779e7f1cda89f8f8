// An image whose channels lie one after another, and the two buffers in which augmentations change it in turn: bytes of
// 8-bit images, floats of 16-bit ones. Private to this folder; one thread each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "stoker/transform/take.h"

namespace stoker::transform {

template <typename E>
struct PlanesOf {
  E* data = nullptr;
  std::uint32_t width = 0, height = 0, channels = 0;

  std::size_t plane() const noexcept { return std::size_t{width} * height; }
  std::size_t bytes() const noexcept { return plane() * channels * sizeof(E); }
  E* channel(std::uint32_t c) const noexcept { return data + c * plane(); }
  E* row(std::uint32_t c, std::uint32_t y) const noexcept { return channel(c) + std::size_t{y} * width; }
};

// The image is in one buffer; an operation that cannot work in place writes into the other one and turns them.
template <typename E>
class CanvasOf {
 public:
  using Image = PlanesOf<E>;

  // `room` is the largest image, in elements, that either buffer will hold. False: the scratch has no room.
  bool take_from(Scratch& scratch, std::size_t room) noexcept {
    image_.data = take<E>(scratch, room + kSlack);
    spare_ = take<E>(scratch, room + kSlack);
    return image_.data != nullptr && spare_ != nullptr;
  }
  static std::uint64_t bytes_for(std::uint64_t room) noexcept {
    return 2 * Scratch::rounded((room + kSlack) * sizeof(E));
  }

  Image& image() noexcept { return image_; }
  void shape(std::uint32_t width, std::uint32_t height, std::uint32_t channels) noexcept {
    image_ = {image_.data, width, height, channels};
  }
  // An image of that shape in the other buffer; what it holds is not defined.
  Image spare(std::uint32_t width, std::uint32_t height, std::uint32_t channels) const noexcept {
    return {spare_, width, height, channels};
  }
  Image spare() const noexcept { return spare(image_.width, image_.height, image_.channels); }
  // `made`, which lies in the other buffer, becomes the image.
  void turn(const Image& made) noexcept { spare_ = std::exchange(image_, made).data; }

 private:
  static constexpr std::size_t kSlack = 64;  // that kernels may write behind the image

  Image image_;
  E* spare_ = nullptr;
};

using Planes = PlanesOf<std::uint8_t>;
using Canvas = CanvasOf<std::uint8_t>;
using FloatPlanes = PlanesOf<float>;
using FloatCanvas = CanvasOf<float>;

}  // namespace stoker::transform
