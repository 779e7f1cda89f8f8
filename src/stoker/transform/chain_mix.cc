#include "stoker/transform/chain_mix.h"

#include <cstring>

#include "stoker/transform/take.h"
#include "stoker/transform/wide.h"

namespace stoker::transform {
namespace {

struct StartShares {
  STOKER_KERNEL void run(const std::uint8_t* __restrict image, float* __restrict sum, std::size_t count,
                         float share) noexcept {
    for (std::size_t i = 0; i < count; ++i) sum[i] = share * static_cast<float>(image[i]);
  }
};

// Each product is rounded before it is added, as torch does it.
struct AddShares {
  STOKER_KERNEL void run(const std::uint8_t* __restrict image, float* __restrict sum, std::size_t count,
                         float share) noexcept {
    for (std::size_t i = 0; i < count; ++i) sum[i] = sum[i] + share * static_cast<float>(image[i]);
  }
};

struct DropFractions {
  STOKER_KERNEL void run(const float* __restrict sum, std::uint8_t* __restrict image, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) image[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(sum[i]));
  }
};

}  // namespace

std::uint64_t ChainMix::bytes_for(const ImageSize& size) noexcept {
  const std::uint64_t count = std::uint64_t{size.width} * size.height * size.channels;
  return Scratch::rounded(count) + Scratch::rounded(count * sizeof(float));
}

Result ChainMix::start(const Planes& image, double share, Scratch& scratch) noexcept {
  before_ = scratch.mark();
  copy_ = take<std::uint8_t>(scratch, image.bytes());
  sum_ = take<float>(scratch, image.bytes());
  if (copy_ == nullptr || sum_ == nullptr) return kNoRoom;
  std::memcpy(copy_, image.data, image.bytes());
  run_kernel<StartShares>(static_cast<const std::uint8_t*>(copy_), sum_, image.bytes(), static_cast<float>(share));
  return {};
}

void ChainMix::add(const Planes& image, double share) noexcept {
  run_kernel<AddShares>(static_cast<const std::uint8_t*>(image.data), sum_, image.bytes(), static_cast<float>(share));
  std::memcpy(image.data, copy_, image.bytes());
}

void ChainMix::finish(const Planes& image, double share, Scratch& scratch) noexcept {
  run_kernel<AddShares>(static_cast<const std::uint8_t*>(image.data), sum_, image.bytes(), static_cast<float>(share));
  run_kernel<DropFractions>(static_cast<const float*>(sum_), image.data, image.bytes());
  scratch.rewind(before_);
}

}  // namespace stoker::transform
