#include "stoker/transform/patch_warp.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "stoker/transform/wide.h"

namespace stoker::transform {
namespace {

// Calls take(T{}) with an unsigned type of that size.
template <typename Take>
void with_element(std::size_t element, const Take& take) noexcept {
  switch (element) {
    case 1:
      return take(std::uint8_t{});
    case 2:
      return take(std::uint16_t{});
    case 4:
      return take(std::uint32_t{});
    default:
      assert(element == 8 && "with_element: no such size");
      return take(std::uint64_t{});
  }
}

using Matrix4 = std::array<std::array<double, 4>, 4>;

Matrix4 identity() noexcept {
  Matrix4 m{};
  for (std::size_t i = 0; i < 4; ++i) m[i][i] = 1;
  return m;
}
Matrix4 product(const Matrix4& a, const Matrix4& b) noexcept {
  Matrix4 out{};
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      for (std::size_t k = 0; k < 4; ++k) out[i][j] += a[i][k] * b[k][j];
    }
  }
  return out;
}

// The place along one axis of `size` voxels that a place outside shows; grid_sample's, without zeros.
double moved_inside(double at, std::uint32_t size, Beyond beyond) noexcept {
  if (beyond == Beyond::reflection) {
    const double span = size, from_face = std::abs(at + 0.5), rest = std::fmod(from_face, span);
    const bool is_even = std::fmod(std::floor(from_face / span), 2.0) == 0;
    at = (is_even ? rest : span - rest) - 0.5;
  }
  return std::clamp(at, 0.0, static_cast<double>(size - 1));
}

// Where the voxels of one row of the result come from: start + x * step.
struct RowPath {
  double start[3], step[3];

  double at(std::size_t axis, std::uint32_t x) const noexcept { return start[axis] + x * step[axis]; }
};
RowPath path_of(const PatchEdges& edges, const PatchMatrix& matrix, std::uint32_t z, std::uint32_t y) noexcept {
  const auto middle = [&](std::size_t axis) { return (edges[axis] - 1) / 2.0; };
  RowPath path;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto& row = matrix[axis];
    path.start[axis] = row[0] * (z - middle(0)) + row[1] * (y - middle(1)) - row[2] * middle(2) + row[3] + middle(axis);
    path.step[axis] = row[2];
  }
  return path;
}

// The voxels of a row whose eight neighbours all lie in the patch; those of a straight line are one run.
struct Run {
  std::uint32_t first, end;
};
Run inner_run(const RowPath& path, const PatchEdges& edges) noexcept {
  const auto is_inside = [&](std::uint32_t x) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double at = path.at(axis, x);
      if (!(at >= 0 && at < edges[axis] - 1.0)) return false;
    }
    return true;
  };
  Run run{0, edges[2]};
  while (run.first < run.end && !is_inside(run.first)) ++run.first;
  while (run.end > run.first && !is_inside(run.end - 1)) --run.end;
  return run;
}

float between(float low, float high, float share) noexcept {
  return low + (high - low) * share;
}

// Of inner runs: a block of voxels at a time, so that the loops become vectors.
struct LinearRun {
  STOKER_KERNEL void run(const float* from, std::uint32_t row, std::uint32_t plane, const RowPath* path,
                         std::uint32_t first, std::uint32_t end, float* to) noexcept {
    constexpr std::uint32_t kBlock = 16;
    const double start_z = path->start[0], start_y = path->start[1], start_x = path->start[2];
    const double step_z = path->step[0], step_y = path->step[1], step_x = path->step[2];
    for (std::uint32_t x = first; x < end; x += kBlock) {
      const std::uint32_t here = std::min(kBlock, end - x);
      std::int32_t place[kBlock];
      float share_z[kBlock], share_y[kBlock], share_x[kBlock];
      for (std::uint32_t i = 0; i < kBlock; ++i) {
        // Those beyond the run are computed as its last one.
        const double number = static_cast<double>(static_cast<std::int32_t>(x + std::min(i, here - 1)));
        const double at_z = start_z + number * step_z, at_y = start_y + number * step_y,
                     at_x = start_x + number * step_x;
        const auto z = static_cast<std::int32_t>(at_z), y = static_cast<std::int32_t>(at_y),
                   column = static_cast<std::int32_t>(at_x);
        share_z[i] = static_cast<float>(at_z - z);
        share_y[i] = static_cast<float>(at_y - y);
        share_x[i] = static_cast<float>(at_x - column);
        place[i] = z * static_cast<std::int32_t>(plane) + y * static_cast<std::int32_t>(row) + column;
      }
      float values[kBlock];
      for (std::uint32_t i = 0; i < kBlock; ++i) {
        const float* const top = from + place[i];
        const float* const bottom = top + plane;
        const float fx = share_x[i], fy = share_y[i];
        const float a = top[0] + (top[1] - top[0]) * fx, b = top[row] + (top[row + 1] - top[row]) * fx;
        const float c = bottom[0] + (bottom[1] - bottom[0]) * fx,
                    d = bottom[row] + (bottom[row + 1] - bottom[row]) * fx;
        const float upper = a + (b - a) * fy, lower = c + (d - c) * fy;
        values[i] = upper + (lower - upper) * share_z[i];
      }
      std::memcpy(to + x, values, here * sizeof(float));
    }
  }
};

// Of one voxel anywhere.
float linear_at(const float* from, const PatchEdges& edges, const std::array<double, 3>& place,
                Beyond beyond) noexcept {
  std::int64_t low[3];
  float share[3];
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double at = beyond == Beyond::zeros ? place[axis] : moved_inside(place[axis], edges[axis], beyond);
    if (!(at > -1 && at < edges[axis])) return 0;
    low[axis] = static_cast<std::int64_t>(std::floor(at));
    share[axis] = static_cast<float>(at - static_cast<double>(low[axis]));
  }
  const auto value = [&](std::int64_t z, std::int64_t y, std::int64_t x) {
    if (z < 0 || y < 0 || x < 0 || z >= edges[0] || y >= edges[1] || x >= edges[2]) return 0.0F;
    return from[(static_cast<std::size_t>(z) * edges[1] + static_cast<std::size_t>(y)) * edges[2] +
                static_cast<std::size_t>(x)];
  };
  const auto plane = [&](std::int64_t z) {
    const float upper = between(value(z, low[1], low[2]), value(z, low[1], low[2] + 1), share[2]);
    return between(upper, between(value(z, low[1] + 1, low[2]), value(z, low[1] + 1, low[2] + 1), share[2]), share[1]);
  };
  return between(plane(low[0]), plane(low[0] + 1), share[0]);
}

}  // namespace

void AxisTurn::rotate(std::size_t first, std::size_t second, std::uint32_t quarters) noexcept {
  if (quarters == 2) {
    flip(first);
    flip(second);
  } else if (quarters != 0) {
    std::swap(from[first], from[second]);
    std::swap(mirrored[first], mirrored[second]);
    flip(quarters == 1 ? first : second);
  }
}

bool AxisTurn::changes_nothing() const noexcept {
  return from == std::array<std::uint8_t, 3>{0, 1, 2} && mirrored == std::array<bool, 3>{};
}

void turn_patch(const std::byte* from, const PatchEdges& edges, std::size_t element, const AxisTurn& turn,
                std::byte* to) noexcept {
  const std::ptrdiff_t strides[3] = {static_cast<std::ptrdiff_t>(edges[1]) * edges[2], edges[2], 1};
  std::ptrdiff_t step[3], origin = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::ptrdiff_t stride = strides[turn.from[axis]];
    step[axis] = turn.mirrored[axis] ? -stride : stride;
    if (turn.mirrored[axis]) origin += stride * (std::ptrdiff_t{edges[axis]} - 1);
  }
  with_element(element, [&]<typename T>(T) {
    const T* const source = reinterpret_cast<const T*>(from) + origin;
    T* out = reinterpret_cast<T*>(to);
    for (std::uint32_t z = 0; z < edges[0]; ++z) {
      for (std::uint32_t y = 0; y < edges[1]; ++y, out += edges[2]) {
        const T* const row = source + z * step[0] + y * step[1];
        if (step[2] == 1) {
          std::memcpy(out, row, edges[2] * sizeof(T));
          continue;
        }
        for (std::uint32_t x = 0; x < edges[2]; ++x) out[x] = row[x * step[2]];
      }
    }
  });
}

PatchMatrix matrix_of(const PatchAffine& affine) noexcept {
  Matrix4 m = identity();
  constexpr std::size_t kPlanes[3][2] = {{1, 2}, {2, 0}, {0, 1}};  // what turns around z, y and x
  for (std::size_t axis = 0; axis < 3; ++axis) {
    Matrix4 turn = identity();
    const auto [first, second] = kPlanes[axis];
    const double sine = std::sin(affine.rotate[axis]), cosine = std::cos(affine.rotate[axis]);
    turn[first][first] = turn[second][second] = cosine;
    turn[first][second] = -sine;
    turn[second][first] = sine;
    m = product(m, turn);
  }
  Matrix4 shear = identity(), shift = identity(), scale = identity();
  for (std::size_t i = 0, k = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      if (i != j) shear[i][j] = affine.shear[k++];
    }
    shift[i][3] = affine.translate[i];
    scale[i][i] = affine.scale[i];
  }
  m = product(product(product(m, shear), shift), scale);
  PatchMatrix rows;
  std::copy_n(m.begin(), 3, rows.begin());
  return rows;
}

void resample_linear(const float* from, const PatchEdges& edges, const PatchMatrix& matrix, Beyond beyond,
                     float* to) noexcept {
  for (std::uint32_t z = 0; z < edges[0]; ++z) {
    for (std::uint32_t y = 0; y < edges[1]; ++y, to += edges[2]) {
      const RowPath path = path_of(edges, matrix, z, y);
      const Run run = inner_run(path, edges);
      const auto outer = [&](std::uint32_t first, std::uint32_t end) {
        for (std::uint32_t x = first; x < end; ++x)
          to[x] = linear_at(from, edges, {path.at(0, x), path.at(1, x), path.at(2, x)}, beyond);
      };
      outer(0, run.first);
      if (run.end > run.first)
        run_kernel<LinearRun>(from, edges[2], edges[1] * edges[2], &path, run.first, run.end, to);
      outer(run.end, edges[2]);
    }
  }
}

void resample_nearest(const std::byte* from, const PatchEdges& edges, std::size_t element, const PatchMatrix& matrix,
                      Beyond beyond, std::byte* to) noexcept {
  with_element(element, [&]<typename T>(T) {
    const T* const source = reinterpret_cast<const T*>(from);
    T* out = reinterpret_cast<T*>(to);
    for (std::uint32_t z = 0; z < edges[0]; ++z) {
      for (std::uint32_t y = 0; y < edges[1]; ++y, out += edges[2]) {
        const RowPath path = path_of(edges, matrix, z, y);
        for (std::uint32_t x = 0; x < edges[2]; ++x) {
          std::size_t place = 0;
          bool is_inside = true;
          for (std::size_t axis = 0; axis < 3; ++axis) {
            const double at = path.at(axis, x);
            const double near = std::nearbyint(beyond == Beyond::zeros ? at : moved_inside(at, edges[axis], beyond));
            is_inside = is_inside && near >= 0 && near < edges[axis];
            if (is_inside) place = place * edges[axis] + static_cast<std::size_t>(near);
          }
          out[x] = is_inside ? source[place] : T{0};
        }
      }
    }
  });
}

}  // namespace stoker::transform
