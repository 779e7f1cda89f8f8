#include "stoker/dataset/order.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"

namespace stoker::dataset {
namespace {

// Separates the keys of the epoch's order from those of the stand-ins.
constexpr std::uint64_t kOrderKey = 0x6F72646572;
constexpr std::uint64_t kReplacementKey = 0x7265706C616365;

OrderOptions checked(const OrderOptions& options, std::uint64_t start) {
  if (options.batch_size == 0)
    throw Error(ErrorKind::usage, "cannot make batches of 0 samples: batch_size is at least 1");
  if (options.world_size == 0)
    throw Error(ErrorKind::usage, "cannot share batches among 0 ranks: world_size is at least 1");
  if (options.rank >= options.world_size) {
    throw Error(ErrorKind::usage, fmt::format("cannot take part as rank {} of {}: ranks count from 0 to world_size - 1",
                                              options.rank, options.world_size));
  }
  if (options.batch_size > Permutation::kMaxSize / options.world_size) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot make batches of {} samples on {} ranks: the most is 2^48 together",
                            options.batch_size, options.world_size));
  }
  if (start > options.size) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot start at position {}: the data set has {} samples", start, options.size),
                "the state belongs to a larger data set");
  }
  return options;
}

}  // namespace

Order::Order(const OrderOptions& options, std::uint64_t epoch, std::uint64_t start)
    : options_(checked(options, start)),
      epoch_(epoch),
      start_(start),
      steps_(0),
      permutation_(options.size, mix(mix(options.seed, kOrderKey), epoch)) {
  const std::uint64_t left = options_.size - start_;
  const std::uint64_t per_step = options_.batch_size * options_.world_size;
  steps_ = left / per_step;
  if (left % per_step != 0 && options_.last_batch != LastBatch::drop) ++steps_;
}

BatchRange Order::batch(std::uint64_t step) const noexcept {
  const std::uint64_t per_step = options_.batch_size * options_.world_size;
  const std::uint64_t first = start_ + step * per_step;
  const std::uint64_t left = options_.size - first;
  if (left >= per_step) {
    return {first + options_.rank * options_.batch_size, options_.batch_size, options_.batch_size};
  }
  if (options_.last_batch == LastBatch::pad) {
    const std::uint64_t begin = options_.rank * options_.batch_size;
    const std::uint64_t own = begin < left ? std::min(options_.batch_size, left - begin) : 0;
    return {first + begin, options_.batch_size, own};
  }
  const std::uint64_t base = left / options_.world_size, extra = left % options_.world_size;
  const std::uint64_t own = base + (options_.rank < extra ? 1 : 0);
  return {first + options_.rank * base + std::min(options_.rank, extra), own, own};
}

std::uint64_t Order::position_after(std::uint64_t step) const noexcept {
  const std::uint64_t per_step = options_.batch_size * options_.world_size;
  return std::min(start_ + (step + 1) * per_step, options_.size);
}

std::uint64_t Order::sample(std::uint64_t position) const noexcept {
  if (position >= options_.size) position = options_.size == 0 ? 0 : position % options_.size;
  return options_.shuffle ? permutation_(position) : position;
}

std::uint64_t Order::replacement(std::uint64_t position, std::uint32_t attempt) const noexcept {
  const std::uint64_t others = options_.size < 2 ? 0 : options_.size - 1;
  if (others == 0) return 0;
  const std::uint64_t bad = sample(position);
  // A permutation of the other samples, so that no try repeats one before all were tried.
  const std::uint64_t key = mix(mix(mix(options_.seed, kReplacementKey), epoch_), position % options_.size);
  const std::uint64_t other = Permutation(others, key)(attempt % others);
  return other < bad ? other : other + 1;
}

}  // namespace stoker::dataset
