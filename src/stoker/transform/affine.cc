#include "stoker/transform/affine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <type_traits>
#include <utility>

namespace stoker::transform {
namespace {

double radians(double degrees) noexcept {
  return degrees * (std::numbers::pi / 180.0);
}

// Python's round(value, 15): through the decimal digits, rounded correctly both ways.
double round_15(double value) noexcept {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, 15).ptr;
  std::from_chars(digits, end, value);
  return value;
}

// FLOOR and COORD of Pillow's Geometry.c.
std::int64_t floor_of(double value) noexcept {
  return value >= 0.0 ? static_cast<std::int64_t>(value) : static_cast<std::int64_t>(std::floor(value));
}
std::int64_t coordinate(double value) noexcept {
  return value < 0.0 ? -1 : static_cast<std::int64_t>(std::min(value, 1e9));
}

template <typename E>
void fill(const PlanesOf<E>& image, const Action& action) noexcept {
  for (std::uint32_t c = 0; c < image.channels; ++c)
    std::fill_n(image.channel(c), image.plane(), static_cast<E>(action.fill[c]));
}

// ---- nearest neighbours

// affine_fixed: 16.16 fixed point. The pixels of a row whose source lies inside the image are one run.
template <typename E>
void warp_fixed(const PlanesOf<E>& from, const AffineMatrix& a, const PlanesOf<E>& into) noexcept {
  const auto fixed = [](double value) { return floor_of(value * 65536.0 + 0.5); };
  const std::int64_t step_x = fixed(a[0]), step_y = fixed(a[3]), down_x = fixed(a[1]), down_y = fixed(a[4]);
  std::int64_t row_x = fixed(a[2] + a[0] * 0.5 + a[1] * 0.5), row_y = fixed(a[5] + a[3] * 0.5 + a[4] * 0.5);
  const std::int64_t end_x = std::int64_t{from.width} << 16, end_y = std::int64_t{from.height} << 16;
  for (std::uint32_t y = 0; y < into.height; ++y, row_x += down_x, row_y += down_y) {
    const auto inside = [&](std::int64_t x) {
      const std::int64_t at_x = row_x + x * step_x, at_y = row_y + x * step_y;
      return at_x >= 0 && at_x < end_x && at_y >= 0 && at_y < end_y;
    };
    std::int64_t first = 0, end = into.width;
    while (first < end && !inside(first)) ++first;
    while (end > first && !inside(end - 1)) --end;
    std::int64_t xx = row_x + first * step_x, yy = row_y + first * step_y;
    const std::size_t source_plane = from.plane(), target_plane = into.plane();
    E* out = into.row(0, y) + first;
    for (std::int64_t x = first; x < end; ++x, ++out, xx += step_x, yy += step_y) {
      const E* const in =
          from.data + static_cast<std::size_t>(yy >> 16) * from.width + static_cast<std::size_t>(xx >> 16);
      for (std::uint32_t c = 0; c < from.channels; ++c) out[c * target_plane] = in[c * source_plane];
    }
  }
}

// ImagingScaleAffine: no turn and no shear. Positions are summed up, as there.
template <typename E>
Result warp_scale(const PlanesOf<E>& from, const AffineMatrix& a, const PlanesOf<E>& into, Scratch& scratch) noexcept {
  std::int32_t* const columns = take<std::int32_t>(scratch, into.width);
  if (columns == nullptr) return kNoRoom;
  std::uint32_t first = into.width, end = 0;
  double at = a[2] + a[0] * 0.5;
  for (std::uint32_t x = 0; x < into.width; ++x, at += a[0]) {
    const std::int64_t column = coordinate(at);
    columns[x] = 0;
    if (column < 0 || column >= from.width) continue;
    columns[x] = static_cast<std::int32_t>(column);
    first = std::min(first, x);
    end = x + 1;
  }
  double down = a[5] + a[4] * 0.5;
  for (std::uint32_t y = 0; y < into.height; ++y, down += a[4]) {
    const std::int64_t row = coordinate(down);
    if (row < 0 || row >= from.height) continue;
    for (std::uint32_t c = 0; c < from.channels; ++c) {
      const E* const in = from.row(c, static_cast<std::uint32_t>(row));
      E* const out = into.row(c, y);
      for (std::uint32_t x = first; x < end; ++x) out[x] = in[columns[x]];
    }
  }
  return {};
}

// Far outside of what 16.16 holds: ImagingTransformAffine in double.
template <typename E>
void warp_far(const PlanesOf<E>& from, const AffineMatrix& a, const PlanesOf<E>& into) noexcept {
  double row_x = a[2] + a[1] * 0.5 + a[0] * 0.5, row_y = a[5] + a[4] * 0.5 + a[3] * 0.5;
  for (std::uint32_t y = 0; y < into.height; ++y, row_x += a[1], row_y += a[4]) {
    double xx = row_x, yy = row_y;
    for (std::uint32_t x = 0; x < into.width; ++x, xx += a[0], yy += a[3]) {
      const std::int64_t at_x = coordinate(xx), at_y = coordinate(yy);
      if (at_x < 0 || at_x >= from.width || at_y < 0 || at_y >= from.height) continue;
      for (std::uint32_t c = 0; c < from.channels; ++c)
        into.row(c, y)[x] = from.row(c, static_cast<std::uint32_t>(at_y))[at_x];
    }
  }
}

bool fits_fixed(const AffineMatrix& a, double x, double y) noexcept {
  return std::abs(x * a[0] + y * a[1] + a[2]) < 32768.0 && std::abs(x * a[3] + y * a[4] + a[5]) < 32768.0;
}

// ---- weighted neighbours

std::uint32_t clipped(std::int64_t at, std::uint32_t size) noexcept {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(at, 0, std::int64_t{size} - 1));
}

struct NearestTap {
  template <typename E>
  static void pixel(const PlanesOf<E>& from, double xin, double yin, E* out, std::size_t plane) noexcept {
    const auto x = static_cast<std::uint32_t>(xin), y = static_cast<std::uint32_t>(yin);
    for (std::uint32_t c = 0; c < from.channels; ++c) out[c * plane] = from.row(c, y)[x];
  }
};

// Differences of neighbours are computed in their own type, as Pillow's macros do: floats lose bits there.
struct BilinearTap {
  template <typename E>
  static void pixel(const PlanesOf<E>& from, double xin, double yin, E* out, std::size_t plane) noexcept {
    xin -= 0.5, yin -= 0.5;
    const std::int64_t x = floor_of(xin), y = floor_of(yin);
    const double dx = xin - static_cast<double>(x), dy = yin - static_cast<double>(y);
    const std::uint32_t x0 = clipped(x, from.width), x1 = clipped(x + 1, from.width);
    const std::uint32_t y0 = clipped(y, from.height), y1 = clipped(y + 1, from.height);
    const bool has_next = y + 1 >= 0 && y + 1 < from.height;
    for (std::uint32_t c = 0; c < from.channels; ++c) {
      const E* const top = from.row(c, y0);
      const double upper = top[x0] + (top[x1] - top[x0]) * dx;
      double lower = upper;
      if (has_next) {
        const E* const bottom = from.row(c, y1);
        lower = bottom[x0] + (bottom[x1] - bottom[x0]) * dx;
      }
      out[c * plane] = static_cast<E>(upper + (lower - upper) * dy);
    }
  }
};

struct BicubicTap {
  template <typename V>
  static double cubic(V v1, V v2, V v3, V v4, double d) noexcept {
    const double p1 = v2, p2 = -v1 + v3, p3 = 2 * (v1 - v2) + v3 - v4, p4 = -v1 + v2 - v3 + v4;
    return p1 + d * (p2 + d * (p3 + d * p4));
  }
  template <typename E>
  static void pixel(const PlanesOf<E>& from, double xin, double yin, E* out, std::size_t plane) noexcept {
    xin -= 0.5, yin -= 0.5;
    const std::int64_t x = floor_of(xin), y = floor_of(yin);
    const double dx = xin - static_cast<double>(x), dy = yin - static_cast<double>(y);
    std::uint32_t columns[4];
    for (std::int64_t i = 0; i < 4; ++i) columns[i] = clipped(x - 1 + i, from.width);
    for (std::uint32_t c = 0; c < from.channels; ++c) {
      double rows[4];
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t at = y - 1 + i;
        if (i > 0 && (at < 0 || at >= from.height)) {
          rows[i] = rows[i - 1];
          continue;
        }
        const E* const in = from.row(c, clipped(at, from.height));
        rows[i] = cubic(in[columns[0]], in[columns[1]], in[columns[2]], in[columns[3]], dx);
      }
      const double value = cubic(rows[0], rows[1], rows[2], rows[3], dy);
      if constexpr (std::is_integral_v<E>) {
        out[c * plane] = static_cast<E>(value <= 0.0 ? 0.0 : value >= 255.0 ? 255.0 : value);
      } else {
        out[c * plane] = static_cast<E>(value);
      }
    }
  }
};

// ImagingGenericTransform. `place(x, y)` gives the source of the middle of a pixel.
template <typename Tap, typename E, typename Place>
void warp_each(const PlanesOf<E>& from, const PlanesOf<E>& into, const Place& place) noexcept {
  for (std::uint32_t y = 0; y < into.height; ++y) {
    E* const out = into.row(0, y);
    for (std::uint32_t x = 0; x < into.width; ++x) {
      const auto [xin, yin] = place(x + 0.5, y + 0.5);
      if (!(xin >= 0.0 && xin < from.width && yin >= 0.0 && yin < from.height)) continue;
      Tap::pixel(from, xin, yin, out + x, into.plane());
    }
  }
}

template <typename E, typename Place>
void warp_by(Filter filter, const PlanesOf<E>& from, const PlanesOf<E>& into, const Place& place) noexcept {
  if (filter == Filter::nearest) return warp_each<NearestTap>(from, into, place);
  if (filter == Filter::bilinear) return warp_each<BilinearTap>(from, into, place);
  warp_each<BicubicTap>(from, into, place);
}

// Image.transpose by 90, 180 or 270 degrees counter-clockwise.
template <typename E>
void turn_quarters(const PlanesOf<E>& from, std::uint32_t quarters, const PlanesOf<E>& into) noexcept {
  for (std::uint32_t c = 0; c < from.channels; ++c) {
    for (std::uint32_t y = 0; y < into.height; ++y) {
      E* const out = into.row(c, y);
      for (std::uint32_t x = 0; x < into.width; ++x) {
        const std::uint32_t from_x = quarters == 1 ? from.width - 1 - y : quarters == 2 ? from.width - 1 - x : y;
        const std::uint32_t from_y = quarters == 1 ? x : quarters == 2 ? from.height - 1 - y : from.height - 1 - x;
        out[x] = from.row(c, from_y)[from_x];
      }
    }
  }
}

}  // namespace

AffineMatrix affine_matrix(const std::array<double, 8>& figures) noexcept {
  const auto [angle, tx, ty, scale, shear_x, shear_y, cx, cy] = figures;
  const double rot = radians(angle), sx = radians(shear_x), sy = radians(shear_y);
  const double a = std::cos(rot - sy) / std::cos(sy);
  const double b = -std::cos(rot - sy) * std::tan(sx) / std::cos(sy) - std::sin(rot);
  const double c = std::sin(rot - sy) / std::cos(sy);
  const double d = -std::sin(rot - sy) * std::tan(sx) / std::cos(sy) + std::cos(rot);
  AffineMatrix m = {d / scale, -b / scale, 0.0 / scale, -c / scale, a / scale, 0.0 / scale};
  m[2] += m[0] * (-cx - tx) + m[1] * (-cy - ty);
  m[5] += m[3] * (-cx - tx) + m[4] * (-cy - ty);
  m[2] += cx;
  m[5] += cy;
  return m;
}

PerspectiveMatrix perspective_matrix(const std::array<double, 8>& figures, std::uint32_t width,
                                     std::uint32_t height) noexcept {
  const long double right = width - 1.0L, bottom = height - 1.0L;
  const long double corners[4][2] = {{0, 0}, {right, 0}, {right, bottom}, {0, bottom}};
  long double m[8][9] = {};
  for (std::size_t i = 0; i < 4; ++i) {
    const long double x = figures[2 * i], y = figures[2 * i + 1];
    for (std::size_t axis = 0; axis < 2; ++axis) {
      long double* const row = m[2 * i + axis];
      const long double corner = corners[i][axis];
      row[3 * axis] = x, row[3 * axis + 1] = y, row[3 * axis + 2] = 1;
      row[6] = -corner * x, row[7] = -corner * y, row[8] = corner;
    }
  }
  for (std::size_t column = 0; column < 8; ++column) {  // Gauss-Jordan, with the largest pivot
    std::size_t best = column;
    for (std::size_t row = column + 1; row < 8; ++row) {
      if (std::abs(m[row][column]) > std::abs(m[best][column])) best = row;
    }
    std::swap(m[best], m[column]);
    const long double pivot = m[column][column];
    if (pivot == 0) return {1, 0, 0, 0, 1, 0, 0, 0};  // corners on one line: the image stays as it is
    for (std::size_t row = 0; row < 8; ++row) {
      if (row == column) continue;
      const long double share = m[row][column] / pivot;
      for (std::size_t i = column; i < 9; ++i) m[row][i] -= share * m[column][i];
    }
  }
  PerspectiveMatrix solved{};
  for (std::size_t i = 0; i < 8; ++i) solved[i] = static_cast<float>(static_cast<double>(m[i][8] / m[i][i]));
  return solved;
}

Rotation rotation_of(const std::array<double, 8>& figures, std::uint32_t width, std::uint32_t height) noexcept {
  double angle = std::fmod(figures[0], 360.0);
  if (angle < 0) angle += 360.0;
  const bool expand = figures[1] != 0, has_center = figures[2] != 0;
  Rotation rotation{4, {}, width, height};
  if (!has_center) {
    if (angle == 0 || angle == 360.0) return {0, {}, width, height};
    if (angle == 180) return {2, {}, width, height};
    if ((angle == 90 || angle == 270) && (expand || width == height)) return {angle == 90 ? 1u : 3u, {}, height, width};
  }
  const double w = width, h = height;
  const double cx = has_center ? figures[3] : w / 2, cy = has_center ? figures[4] : h / 2;
  const double turned = -radians(angle);
  AffineMatrix& m = rotation.matrix;
  m = {round_15(std::cos(turned)),  round_15(std::sin(turned)), 0.0,
       round_15(-std::sin(turned)), round_15(std::cos(turned)), 0.0};
  const auto at_x = [&](double x, double y) { return m[0] * x + m[1] * y + m[2]; };
  const auto at_y = [&](double x, double y) { return m[3] * x + m[4] * y + m[5]; };
  const double left = at_x(-cx, -cy), top = at_y(-cx, -cy);
  m[2] = left + cx;
  m[5] = top + cy;
  if (expand) {
    const double xs[4] = {at_x(0, 0), at_x(w, 0), at_x(w, h), at_x(0, h)};
    const double ys[4] = {at_y(0, 0), at_y(w, 0), at_y(w, h), at_y(0, h)};
    const double wider = std::ceil(*std::max_element(xs, xs + 4)) - std::floor(*std::min_element(xs, xs + 4));
    const double taller = std::ceil(*std::max_element(ys, ys + 4)) - std::floor(*std::min_element(ys, ys + 4));
    const double x = at_x(-(wider - w) / 2.0, -(taller - h) / 2.0), y = at_y(-(wider - w) / 2.0, -(taller - h) / 2.0);
    m[2] = x, m[5] = y;
    rotation.width = static_cast<std::uint32_t>(wider), rotation.height = static_cast<std::uint32_t>(taller);
  }
  return rotation;
}

template <typename E>
static Result warp_affine(CanvasOf<E>& canvas, const AffineMatrix& a, std::uint32_t width, std::uint32_t height,
                          const Action& action, Scratch& scratch) noexcept {
  const PlanesOf<E> from = canvas.image(), into = canvas.spare(width, height, from.channels);
  fill(into, action);
  if (action.filter != Filter::nearest) {
    warp_by(action.filter, from, into, [&](double x, double y) {
      return std::pair{a[0] * x + a[1] * y + a[2], a[3] * x + a[4] * y + a[5]};
    });
  } else if (a[1] == 0 && a[3] == 0) {
    const Scratch::Mark mark = scratch.mark();
    if (const Result result = warp_scale(from, a, into, scratch); !result.ok()) return result;
    scratch.rewind(mark);
  } else if (fits_fixed(a, 0, 0) && fits_fixed(a, width, height) && fits_fixed(a, 0, height) &&
             fits_fixed(a, width, 0)) {
    warp_fixed(from, a, into);
  } else {
    warp_far(from, a, into);
  }
  canvas.turn(into);
  return {};
}

template <typename E>
static void warp_perspective(CanvasOf<E>& canvas, const PerspectiveMatrix& a, const Action& action) noexcept {
  const PlanesOf<E> from = canvas.image(), into = canvas.spare();
  fill(into, action);
  warp_by(action.filter, from, into, [&](double x, double y) {
    return std::pair{(a[0] * x + a[1] * y + a[2]) / (a[6] * x + a[7] * y + 1),
                     (a[3] * x + a[4] * y + a[5]) / (a[6] * x + a[7] * y + 1)};
  });
  canvas.turn(into);
}

template <typename E>
static Result rotate(CanvasOf<E>& canvas, const Action& action, Scratch& scratch) noexcept {
  const PlanesOf<E> from = canvas.image();
  const Rotation rotation = rotation_of(action.figures, from.width, from.height);
  if (rotation.quarters == 0) return {};
  if (rotation.quarters == 4)
    return warp_affine(canvas, rotation.matrix, rotation.width, rotation.height, action, scratch);
  const PlanesOf<E> into = canvas.spare(rotation.width, rotation.height, from.channels);
  turn_quarters(from, rotation.quarters, into);
  canvas.turn(into);
  return {};
}

template <typename E>
bool warp(CanvasOf<E>& canvas, const Action& action, Scratch& scratch, Result& result) noexcept {
  const std::uint32_t width = canvas.image().width, height = canvas.image().height;
  switch (action.what) {
    case Act::rotate:
      result = rotate(canvas, action, scratch);
      return true;
    case Act::affine:
      result = warp_affine(canvas, affine_matrix(action.figures), width, height, action, scratch);
      return true;
    case Act::matrix: {
      AffineMatrix matrix;
      std::copy_n(action.figures.begin(), matrix.size(), matrix.begin());
      result = warp_affine(canvas, matrix, width, height, action, scratch);
      return true;
    }
    case Act::perspective:
      warp_perspective(canvas, perspective_matrix(action.figures, width, height), action);
      return true;
    default:
      return false;
  }
}

template bool warp(CanvasOf<std::uint8_t>& canvas, const Action& action, Scratch& scratch, Result& result) noexcept;
template bool warp(CanvasOf<float>& canvas, const Action& action, Scratch& scratch, Result& result) noexcept;

}  // namespace stoker::transform
