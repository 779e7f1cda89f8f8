// How a stored image has to be turned to stand upright: the Exif orientation, and the turning. As Pillow's
// ImageOps.exif_transpose. Pure; safe from any thread.
#pragma once

#include <cstdint>

#include "stoker/codec/codec.h"

namespace stoker::codec {

// As Exif numbers them. An upright image's pixel (x, y) is the stored image's pixel (a, b), where (a, b) is (x, y),
// exchanged if the sides are exchanged, and then counted from the other end of either side.
enum class Orientation : std::uint8_t {
  upright = 1,
  mirrored = 2,
  half_turn = 3,
  mirrored_half_turn = 4,
  transposed = 5,
  quarter_turn = 6,  // the stored image has to be turned clockwise
  transversed = 7,
  three_quarter_turn = 8,
};

// What the file says: the Exif block of a JPEG, PNG or WebP, else the XMP block of a JPEG or WebP. Upright where it
// says nothing, or nothing that makes sense.
Orientation exif_orientation(Media media, Bytes bytes) noexcept;

constexpr bool exchanges_sides(Orientation orientation) noexcept {
  return orientation >= Orientation::transposed;
}

// Where the rectangle of the upright image lies in the stored one, which is width x height.
Rect stored_rect(Orientation orientation, const Rect& upright, std::uint32_t width, std::uint32_t height) noexcept;

// The upper left corner, in the upright image, of a rectangle of the stored one. It may lie outside the image.
struct Corner {
  std::int64_t x = 0, y = 0;
};
struct StoredArea {
  std::int64_t left = 0, top = 0, right = 0, bottom = 0;
};
Corner upright_corner(Orientation orientation, const StoredArea& area, std::uint32_t width,
                      std::uint32_t height) noexcept;

// `into` has the stored image's sides (exchanged where they are), channels and dtype, and memory of its own.
void turn_upright(Orientation orientation, const Pixels& stored, const Pixels& into) noexcept;

}  // namespace stoker::codec
