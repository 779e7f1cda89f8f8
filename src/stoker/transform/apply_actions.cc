#include "stoker/transform/apply_actions.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "stoker/transform/affine.h"
#include "stoker/transform/blur.h"
#include "stoker/transform/box_blur.h"
#include "stoker/transform/histogram.h"
#include "stoker/transform/pad_crop.h"

namespace stoker::transform {
namespace {

void flip_rows(const Planes& image) noexcept {
  for (std::uint32_t c = 0; c < image.channels; ++c) {
    for (std::uint32_t y = 0; y < image.height / 2; ++y) {
      std::swap_ranges(image.row(c, y), image.row(c, y) + image.width, image.row(c, image.height - 1 - y));
    }
  }
}

// Eight bytes from each end at a time.
void reverse_row(std::uint8_t* first, std::uint8_t* end) noexcept {
  for (; end - first >= 16; first += 8, end -= 8) {
    std::uint64_t left = 0, right = 0;
    std::memcpy(&left, first, 8);
    std::memcpy(&right, end - 8, 8);
    left = __builtin_bswap64(left), right = __builtin_bswap64(right);
    std::memcpy(first, &right, 8);
    std::memcpy(end - 8, &left, 8);
  }
  std::reverse(first, end);
}

void flip_columns(const Planes& image) noexcept {
  for (std::uint32_t c = 0; c < image.channels; ++c) {
    for (std::uint32_t y = 0; y < image.height; ++y) reverse_row(image.row(c, y), image.row(c, y) + image.width);
  }
}

void erase_bytes(const Planes& image, const Action& action) noexcept {
  const auto figure = [&](std::size_t i) { return static_cast<std::uint32_t>(action.figures[i]); };
  for (std::uint32_t c = 0; c < image.channels; ++c) {
    const auto value = static_cast<std::uint8_t>(static_cast<std::int32_t>(action.figures[4 + c]));
    for (std::uint32_t y = 0; y < figure(3); ++y)
      std::memset(image.row(c, figure(1) + y) + figure(0), value, figure(2));
  }
}

}  // namespace

ImageSize size_after(const Action& action, const ImageSize& size) noexcept {
  switch (action.what) {
    case Act::gray:
      return {size.width, size.height, static_cast<std::uint32_t>(action.figures[0])};
    case Act::rotate: {
      const Rotation rotation = rotation_of(action.figures, size.width, size.height);
      return {rotation.width, rotation.height, size.channels};
    }
    case Act::pad_crop:
      return {static_cast<std::uint32_t>(action.figures[6]), static_cast<std::uint32_t>(action.figures[7]),
              size.channels};
    default:
      return size;
  }
}

std::uint64_t action_bytes(const Action& action, const ImageSize& size) noexcept {
  if (action.what == Act::blur) {
    return blur_bytes(size.width, static_cast<std::uint32_t>(action.figures[0]),
                      static_cast<std::uint32_t>(action.figures[1]));
  }
  if (action.what == Act::mix_start) return ChainMix::bytes_for(size);
  if (action.what == Act::affine || action.what == Act::rotate || action.what == Act::matrix)
    return Scratch::rounded(std::uint64_t{size_after(action, size).width} * sizeof(std::int32_t));
  return 0;
}

void ActionRunner::add_table(const ByteTable& table) noexcept {
  for (std::uint32_t c = 0; c < canvas_.image().channels; ++c) pending_.add(c, table);
}

void ActionRunner::flush() noexcept {
  apply_tables(pending_, canvas_.image());
  pending_.is_used = false;
}

Result ActionRunner::finish() noexcept {
  flush();
  return result_;
}

void ActionRunner::act(const Action& action) noexcept {
  if (!result_.ok()) return;
  const double figure = action.figures[0];
  switch (action.what) {
    case Act::brightness:
      return add_table(blend_table(0, figure));
    case Act::invert:
      return add_table(invert_table());
    case Act::posterize:
      return add_table(posterize_table(static_cast<std::uint32_t>(figure)));
    case Act::solarize:
      return add_table(solarize_table(figure));
    case Act::solarize_add:
      return add_table(solarize_add_table(static_cast<std::uint32_t>(figure)));
    default:
      flush();
      change(action);
  }
}

// What looks at more than one byte at a time.
void ActionRunner::change(const Action& action) noexcept {
  Planes& image = canvas_.image();
  const bool has_colour = image.channels == 3;
  const double figure = action.figures[0];
  switch (action.what) {
    case Act::flip_x:
      return flip_columns(image);
    case Act::flip_y:
      return flip_rows(image);
    case Act::contrast:
      return add_table(blend_table(mean_gray(image), figure));
    case Act::saturation:
      if (has_colour) saturate(image, figure);
      return;
    case Act::hue:
      if (has_colour) turn_hue(image, figure);
      return;
    case Act::gray: {
      const auto channels = static_cast<std::uint32_t>(figure);
      if (has_colour) {
        make_gray(image, channels == 3);
      } else if (channels == 3) {
        for (std::size_t c = 1; c < 3; ++c) std::memcpy(image.data + c * image.plane(), image.data, image.plane());
      }
      image.channels = channels;
      return;
    }
    case Act::autocontrast:
    case Act::equalize:
      for (std::uint32_t c = 0; c < image.channels; ++c) {
        const auto find = action.what == Act::equalize ? equalize_table : autocontrast_table;
        pending_.add(c, find(image.channel(c), image.plane()));
      }
      return;
    case Act::sharpness:
      return sharpen(canvas_, figure);
    case Act::blur: {
      const Scratch::Mark mark = scratch_.mark();
      result_ = gaussian_blur(canvas_, static_cast<std::uint32_t>(figure),
                              static_cast<std::uint32_t>(action.figures[1]), action.figures[2], scratch_);
      return scratch_.rewind(mark);
    }
    case Act::box_blur:
      return box_blur(canvas_, figure);
    case Act::rotate:
    case Act::affine:
    case Act::matrix:
    case Act::perspective:
      warp(canvas_, action, scratch_, result_);
      return;
    case Act::pad_crop:
      return void(result_ = pad_and_crop(canvas_, action));
    case Act::erase:
      return erase_bytes(image, action);
    case Act::mix_start:
      return void(result_ = mix_.start(image, figure, scratch_));
    case Act::mix_chain:
      return action.figures[1] != 0 ? mix_.finish(image, figure, scratch_) : mix_.add(image, figure);
    default:
      return;  // of single bytes: act() has them
  }
}

}  // namespace stoker::transform
