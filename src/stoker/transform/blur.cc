#include "stoker/transform/blur.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stoker/transform/colour.h"
#include "stoker/transform/wide.h"

namespace stoker::transform {
namespace {

// _get_gaussian_kernel1d of torchvision, in float32 as there.
void gaussian_weights(std::uint32_t size, double sigma, float* weights) noexcept {
  const float half = static_cast<float>(size - 1) * 0.5F, width = static_cast<float>(sigma);
  float sum = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const float x = (static_cast<float>(i) - half) / width;
    weights[i] = std::exp(-0.5F * (x * x));
    sum += weights[i];
  }
  for (std::uint32_t i = 0; i < size; ++i) weights[i] /= sum;
}

// The place inside [0, size) that a place up to size - 1 outside shows.
std::uint32_t reflected(std::int64_t at, std::uint32_t size) noexcept {
  if (at < 0) at = -at;
  if (at >= size) at = 2 * (std::int64_t{size} - 1) - at;
  return static_cast<std::uint32_t>(at);
}

// line[x] += weight * row[x].
struct AddRow {
  STOKER_KERNEL void run(const std::uint8_t* __restrict row, std::size_t count, float weight,
                         float* __restrict line) noexcept {
    for (std::size_t x = 0; x < count; ++x) line[x] += weight * static_cast<float>(row[x]);
  }
};

// out[x] = round(sum of weights[k] * line[x + k]), a block of outputs at a time.
struct AcrossRow {
  STOKER_KERNEL void run(const float* __restrict line, std::size_t count, const float* __restrict weights,
                         std::uint32_t taps, std::uint8_t* __restrict out) noexcept {
    constexpr std::size_t kBlock = 32;
    for (std::size_t first = 0; first < count; first += kBlock) {
      float sums[kBlock] = {};
      const std::size_t here = std::min(kBlock, count - first);
      if (here == kBlock) {
        for (std::uint32_t k = 0; k < taps; ++k) {
          for (std::size_t x = 0; x < kBlock; ++x) sums[x] += weights[k] * line[first + x + k];
        }
      } else {
        for (std::uint32_t k = 0; k < taps; ++k) {
          for (std::size_t x = 0; x < here; ++x) sums[x] += weights[k] * line[first + x + k];
        }
      }
      for (std::size_t x = 0; x < here; ++x) {
        // Halves to even, by the rounding of an addition.
        constexpr float kWhole = 8388608.0F;
        out[first + x] = static_cast<std::uint8_t>(static_cast<std::int32_t>((sums[x] + kWhole) - kWhole));
      }
    }
  }
};

// ImagingFilter3x3 with (1, 1, 1, 1, 5, 1, 1, 1, 1) / 13 of the inner pixels of one row.
struct SmoothRow {
  STOKER_KERNEL void run(const std::uint8_t* __restrict above, const std::uint8_t* __restrict here,
                         const std::uint8_t* __restrict below, std::size_t width,
                         std::uint8_t* __restrict out) noexcept {
    constexpr float kSide = 1.0F / 13.0F, kMiddle = 5.0F / 13.0F;
    for (std::size_t x = 1; x + 1 < width; ++x) {
      float sum = 0.5F;
      sum += static_cast<float>(below[x - 1]) * kSide + static_cast<float>(below[x]) * kSide +
             static_cast<float>(below[x + 1]) * kSide;
      sum += static_cast<float>(here[x - 1]) * kSide + static_cast<float>(here[x]) * kMiddle +
             static_cast<float>(here[x + 1]) * kSide;
      sum += static_cast<float>(above[x - 1]) * kSide + static_cast<float>(above[x]) * kSide +
             static_cast<float>(above[x + 1]) * kSide;
      out[x] = static_cast<std::uint8_t>(static_cast<std::int32_t>(std::min(std::max(sum, 0.0F), 255.0F)));
    }
  }
};

}  // namespace

std::uint64_t blur_bytes(std::uint32_t width, std::uint32_t kernel_width, std::uint32_t kernel_height) noexcept {
  return Scratch::rounded((std::uint64_t{width} + kernel_width) * sizeof(float)) +
         Scratch::rounded(kernel_width * sizeof(float)) + Scratch::rounded(kernel_height * sizeof(float));
}

Result gaussian_blur(Canvas& canvas, std::uint32_t kernel_width, std::uint32_t kernel_height, double sigma,
                     Scratch& scratch) noexcept {
  const Planes from = canvas.image(), into = canvas.spare();
  const std::uint32_t left = kernel_width / 2, above = kernel_height / 2;
  if (left >= from.width || above >= from.height)
    return failed(Code::mismatch, "image is too small for the kernel of GaussianBlur: choose a smaller kernel_size");
  float* const line = take<float>(scratch, std::size_t{from.width} + kernel_width);
  float* const across = take<float>(scratch, kernel_width);
  float* const down = take<float>(scratch, kernel_height);
  if (line == nullptr || across == nullptr || down == nullptr) return kNoRoom;
  gaussian_weights(kernel_width, sigma, across);
  gaussian_weights(kernel_height, sigma, down);
  for (std::uint32_t c = 0; c < from.channels; ++c) {
    for (std::uint32_t y = 0; y < from.height; ++y) {
      float* const inside = line + left;
      std::fill_n(inside, from.width, 0.0F);
      for (std::uint32_t k = 0; k < kernel_height; ++k) {
        const std::uint32_t source = reflected(std::int64_t{y} + k - above, from.height);
        run_kernel<AddRow>(static_cast<const std::uint8_t*>(from.row(c, source)), std::size_t{from.width}, down[k],
                           inside);
      }
      for (std::uint32_t k = 1; k <= left; ++k) {
        inside[-static_cast<std::ptrdiff_t>(k)] = inside[k];
        inside[from.width - 1 + k] = inside[from.width - 1 - k];
      }
      run_kernel<AcrossRow>(static_cast<const float*>(line), std::size_t{from.width}, static_cast<const float*>(across),
                            kernel_width, into.row(c, y));
    }
  }
  canvas.turn(into);
  return {};
}

void sharpen(Canvas& canvas, double factor) noexcept {
  const Planes image = canvas.image(), smooth = canvas.spare();
  if (image.width < 3 || image.height < 3) return;  // Pillow's filter copies such an image
  for (std::uint32_t c = 0; c < image.channels; ++c) {
    std::memcpy(smooth.row(c, 0), image.row(c, 0), image.width);
    std::memcpy(smooth.row(c, image.height - 1), image.row(c, image.height - 1), image.width);
    for (std::uint32_t y = 1; y + 1 < image.height; ++y) {
      const std::uint8_t* const row = image.row(c, y);
      std::uint8_t* const out = smooth.row(c, y);
      out[0] = row[0];
      out[image.width - 1] = row[image.width - 1];
      run_kernel<SmoothRow>(row - image.width, row, row + image.width, std::size_t{image.width}, out);
    }
  }
  blend(smooth, image, factor);
}

}  // namespace stoker::transform
