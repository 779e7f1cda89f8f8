#include "stoker/transform/weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "stoker/transform/take.h"

namespace stoker::transform {
namespace {

double support_of(Filter filter) noexcept {
  switch (filter) {
    case Filter::lanczos:
      return 3.0;
    case Filter::bicubic:
      return 2.0;
    case Filter::box:
      return 0.5;
    case Filter::bilinear:
    case Filter::nearest:
      break;
  }
  return 1.0;
}

struct BoxWeight {
  double operator()(double x) const noexcept { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }
};
struct Triangle {
  double operator()(double x) const noexcept {
    x = std::fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
  }
};
struct Cubic {
  double operator()(double x) const noexcept {
    constexpr double a = -0.5;
    x = std::fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
  }
};

struct Lanczos {
  static double sinc(double x) noexcept {
    if (x == 0.0) return 1.0;
    x *= std::numbers::pi;
    return std::sin(x) / x;
  }
  double operator()(double x) const noexcept { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }
};

struct Scale {
  double begin, scale, stretch, support;

  Scale(const Extent& in, std::uint32_t out, Filter filter) noexcept
      : begin(in.begin), scale(in.length / out), stretch(std::max(scale, 1.0)), support(support_of(filter) * stretch) {}

  double center(std::uint32_t at) const noexcept { return begin + (at + 0.5) * scale; }
  std::uint32_t start(std::uint32_t at) const noexcept {
    return static_cast<std::uint32_t>(std::max(0, static_cast<int>(center(at) - support + 0.5)));
  }
  // Inputs of one output, at most; and room for their weights.
  std::uint32_t most_taps() const noexcept { return static_cast<std::uint32_t>(std::ceil(support)) * 2 + 1; }
  std::uint32_t stride() const noexcept { return (most_taps() + 3) / 4 * 4; }
  std::uint32_t end(std::uint32_t at, std::uint32_t in) const noexcept {
    return std::min(in, static_cast<std::uint32_t>(static_cast<int>(center(at) + support + 0.5)));
  }
};

void to_weight(double value, std::int32_t& weight) noexcept {
  weight = static_cast<std::int32_t>((value < 0 ? -0.5 : 0.5) + value * (1 << kPrecision));
}
void to_weight(double value, double& weight) noexcept {
  weight = value;
}
void to_weight(double value, float& weight) noexcept {
  weight = static_cast<float>(value);
}

template <typename Shape, typename K>
void fill_weights(Shape shape, const Scale& scale, std::uint32_t in, std::uint32_t out, std::uint32_t first,
                  bool mirrored, Axis<K>& axis, double* line) noexcept {
  const double shrink = 1.0 / scale.stretch;
  for (std::uint32_t i = 0; i < axis.count; ++i) {
    const std::uint32_t at = mirrored ? out - 1 - (first + i) : first + i;
    const double center = scale.center(at);
    const std::uint32_t start = scale.start(at);
    const std::uint32_t end = scale.end(at, in);
    const std::uint32_t taps = end > start ? end - start : 0;
    double sum = 0;
    for (std::uint32_t t = 0; t < taps; ++t) {
      line[t] = shape((static_cast<int>(t + start) - center + 0.5) * shrink);
      sum += line[t];
    }
    if (sum != 0.0) {
      for (std::uint32_t t = 0; t < taps; ++t) line[t] /= sum;
    }
    K* const k = axis.k + std::size_t{i} * axis.stride;
    for (std::uint32_t t = 0; t < taps; ++t) to_weight(line[mirrored ? taps - 1 - t : t], k[t]);
    for (std::uint32_t t = taps; t < axis.stride; ++t) k[t] = 0;
    axis.start[i] = taps == 0 ? 0 : mirrored ? in - end : start;
    axis.taps[i] = taps;
  }
}

}  // namespace

// Pillow adds up the step; so do we, to meet its rounding.
void nearest_inputs(std::uint32_t in, std::uint32_t out, std::uint32_t first, std::uint32_t count, bool mirrored,
                    std::uint32_t* into) noexcept {
  const double step = static_cast<double>(in) / out;
  const std::uint32_t from = mirrored ? out - first - count : first;
  double at = step * 0.5;
  for (std::uint32_t i = 0; i < from; ++i) at += step;
  for (std::uint32_t i = 0; i < count; ++i, at += step) {
    const std::uint32_t column = std::min(in - 1, static_cast<std::uint32_t>(at));
    into[mirrored ? count - 1 - i : i] = mirrored ? in - 1 - column : column;
  }
}

Reach reach(const Extent& extent, std::uint32_t out, Filter filter, std::uint32_t first, std::uint32_t count,
            bool mirrored) noexcept {
  const std::uint32_t in = extent.size;
  if (in == out && extent.is_whole()) return {first, count};
  const std::uint32_t low = mirrored ? out - first - count : first;
  std::uint32_t begin = 0, end = 0;
  if (filter == Filter::nearest) {
    // One pixel of slack on both sides covers the rounding of the added-up step.
    const double step = static_cast<double>(in) / out;
    begin = static_cast<std::uint32_t>(std::max(0.0, (low + 0.5) * step - 1));
    end = std::min(in, static_cast<std::uint32_t>((low + count - 0.5) * step) + 2);
  } else {
    const Scale scale(extent, out, filter);
    begin = std::min(scale.start(low), in - 1);
    end = std::max(scale.end(low + count - 1, in), begin + 1);
  }
  return {mirrored ? in - end : begin, end - begin};
}

std::size_t axis_bytes(const Extent& in, std::uint32_t out, Filter filter, std::uint32_t count,
                       std::size_t weight_bytes) noexcept {
  const Scale scale(in, out, filter);
  return 2 * Scratch::rounded(count * sizeof(std::uint32_t)) +
         Scratch::rounded(std::size_t{count} * scale.stride() * weight_bytes) +
         Scratch::rounded(scale.most_taps() * sizeof(double));
}

template <typename K>
bool make_axis(const Extent& extent, std::uint32_t out, Filter filter, std::uint32_t first, std::uint32_t count,
               bool mirrored, Axis<K>& axis, Scratch& scratch) noexcept {
  const std::uint32_t in = extent.size;
  const Scale scale(extent, out, filter);
  axis.count = count;
  axis.stride = scale.stride();
  axis.start = take<std::uint32_t>(scratch, count);
  axis.taps = take<std::uint32_t>(scratch, count);
  axis.k = take<K>(scratch, std::size_t{count} * axis.stride);
  double* const line = take<double>(scratch, scale.most_taps());
  if (axis.start == nullptr || axis.taps == nullptr || axis.k == nullptr || line == nullptr) return false;
  switch (filter) {
    case Filter::box:
      fill_weights(BoxWeight{}, scale, in, out, first, mirrored, axis, line);
      break;
    case Filter::lanczos:
      fill_weights(Lanczos{}, scale, in, out, first, mirrored, axis, line);
      break;
    case Filter::bicubic:
      fill_weights(Cubic{}, scale, in, out, first, mirrored, axis, line);
      break;
    case Filter::bilinear:
    case Filter::nearest:
      fill_weights(Triangle{}, scale, in, out, first, mirrored, axis, line);
      break;
  }
  return true;
}

template bool make_axis(const Extent&, std::uint32_t, Filter, std::uint32_t, std::uint32_t, bool, Axis<std::int32_t>&,
                        Scratch&) noexcept;
template bool make_axis(const Extent&, std::uint32_t, Filter, std::uint32_t, std::uint32_t, bool, Axis<double>&,
                        Scratch&) noexcept;
template bool make_axis(const Extent&, std::uint32_t, Filter, std::uint32_t, std::uint32_t, bool, Axis<float>&,
                        Scratch&) noexcept;

}  // namespace stoker::transform
