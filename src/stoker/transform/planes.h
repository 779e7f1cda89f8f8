// An 8-bit image whose channels lie one after another, and the two buffers in which augmentations change it in turn.
// Private to this folder; one thread each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "stoker/transform/take.h"

namespace stoker::transform {

struct Planes {
  std::uint8_t* data = nullptr;
  std::uint32_t width = 0, height = 0, channels = 0;

  std::size_t plane() const noexcept { return std::size_t{width} * height; }
  std::size_t bytes() const noexcept { return plane() * channels; }
  std::uint8_t* channel(std::uint32_t c) const noexcept { return data + c * plane(); }
  std::uint8_t* row(std::uint32_t c, std::uint32_t y) const noexcept { return channel(c) + std::size_t{y} * width; }
};

// The image is in one buffer; an operation that cannot work in place writes into the other one and turns them.
class Canvas {
 public:
  // `room` is the largest image, in bytes, that either buffer will hold. False: the scratch has no room.
  bool take_from(Scratch& scratch, std::size_t room) noexcept {
    image_.data = take<std::uint8_t>(scratch, room + kSlack);
    spare_ = take<std::uint8_t>(scratch, room + kSlack);
    return image_.data != nullptr && spare_ != nullptr;
  }
  static std::uint64_t bytes_for(std::uint64_t room) noexcept { return 2 * Scratch::rounded(room + kSlack); }

  Planes& image() noexcept { return image_; }
  void shape(std::uint32_t width, std::uint32_t height, std::uint32_t channels) noexcept {
    image_ = {image_.data, width, height, channels};
  }
  // An image of that shape in the other buffer; what it holds is not defined.
  Planes spare(std::uint32_t width, std::uint32_t height, std::uint32_t channels) const noexcept {
    return {spare_, width, height, channels};
  }
  Planes spare() const noexcept { return spare(image_.width, image_.height, image_.channels); }
  // `made`, which lies in the other buffer, becomes the image.
  void turn(const Planes& made) noexcept { spare_ = std::exchange(image_, made).data; }

 private:
  static constexpr std::size_t kSlack = 64;  // that kernels may write behind the image

  Planes image_;
  std::uint8_t* spare_ = nullptr;
};

}  // namespace stoker::transform
