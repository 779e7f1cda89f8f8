#include "stoker/transform/pad_crop.h"

#include <algorithm>

namespace stoker::transform {
namespace {

constexpr std::int64_t kOutside = -1, kFill = -2;

// The place in the image that place `at` of the padded image shows, along one axis of `size` pixels.
std::int64_t source_of(std::int64_t at, std::uint32_t size, std::int64_t before, std::int64_t after,
                       Padding padding) noexcept {
  if (at < 0 || at >= before + size + after) return kOutside;
  at -= before;
  const std::int64_t last = std::int64_t{size} - 1;
  if (at >= 0 && at <= last) return at;
  switch (padding) {
    case Padding::constant:
      return kFill;
    case Padding::edge:
      return std::clamp<std::int64_t>(at, 0, last);
    case Padding::reflect: {  // numpy reflects as often as it must
      if (last == 0) return 0;
      const std::int64_t period = 2 * last;
      at = ((at % period) + period) % period;
      return at <= last ? at : period - at;
    }
    case Padding::symmetric: {
      const std::int64_t period = 2 * std::int64_t{size};
      at = ((at % period) + period) % period;
      return at <= last ? at : period - 1 - at;
    }
  }
  return kFill;
}

}  // namespace

template <typename E>
Result pad_and_crop(CanvasOf<E>& canvas, const Action& action) noexcept {
  const PlanesOf<E> from = canvas.image();
  const auto figure = [&](std::size_t i) { return static_cast<std::int64_t>(action.figures[i]); };
  const std::int64_t left = figure(0), top = figure(1), right = figure(2), bottom = figure(3), x = figure(4),
                     y = figure(5);
  const auto width = static_cast<std::uint32_t>(figure(6)), height = static_cast<std::uint32_t>(figure(7));
  const PlanesOf<E> into = canvas.spare(width, height, from.channels);
  // The columns that show the image itself are one run; the others are found one by one.
  const auto first = static_cast<std::uint32_t>(std::clamp<std::int64_t>(left - x, 0, width));
  const auto end = static_cast<std::uint32_t>(std::clamp<std::int64_t>(left + from.width - x, first, width));
  for (std::uint32_t c = 0; c < from.channels; ++c) {
    const auto fill = static_cast<E>(action.fill[c]);
    for (std::uint32_t row = 0; row < height; ++row) {
      E* const out = into.row(c, row);
      const std::int64_t source = source_of(y + row, from.height, top, bottom, action.padding);
      if (source == kOutside) {
        std::fill_n(out, width, E{0});
        continue;
      }
      const E* const in = source == kFill ? nullptr : from.row(c, static_cast<std::uint32_t>(source));
      const auto outer = [&](std::uint32_t column) {
        const std::int64_t at = source_of(x + column, from.width, left, right, action.padding);
        return at == kOutside ? E{0} : at == kFill || in == nullptr ? fill : in[at];
      };
      for (std::uint32_t column = 0; column < first; ++column) out[column] = outer(column);
      if (in == nullptr) {
        std::fill_n(out + first, end - first, fill);
      } else if (end > first) {
        std::copy_n(in + (x + first - left), end - first, out + first);
      }
      for (std::uint32_t column = end; column < width; ++column) out[column] = outer(column);
    }
  }
  canvas.turn(into);
  return {};
}

template Result pad_and_crop(CanvasOf<std::uint8_t>& canvas, const Action& action) noexcept;
template Result pad_and_crop(CanvasOf<float>& canvas, const Action& action) noexcept;

}  // namespace stoker::transform
