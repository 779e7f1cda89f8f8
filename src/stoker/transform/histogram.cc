#include "stoker/transform/histogram.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stoker::transform {
namespace {

using Histogram = std::array<std::uint64_t, 256>;

// Four counts side by side: neighbours of the same value do not wait for one another.
Histogram histogram_of(const std::uint8_t* plane, std::size_t count) noexcept {
  std::array<std::array<std::uint32_t, 256>, 4> counts{};
  Histogram all{};
  constexpr std::size_t kPiece = std::size_t{1} << 30;  // counts fit 32 bits
  for (std::size_t first = 0; first < count; first += kPiece) {
    const std::size_t end = std::min(count, first + kPiece);
    std::size_t i = first;
    for (; i + 4 <= end; i += 4) {
      ++counts[0][plane[i]], ++counts[1][plane[i + 1]], ++counts[2][plane[i + 2]], ++counts[3][plane[i + 3]];
    }
    for (; i < end; ++i) ++counts[0][plane[i]];
    for (std::size_t v = 0; v < 256; ++v) {
      for (auto& each : counts) all[v] += std::exchange(each[v], 0);
    }
  }
  return all;
}

ByteTable identity_table() noexcept {
  ByteTable table;
  for (std::size_t v = 0; v < 256; ++v) table[v] = static_cast<std::uint8_t>(v);
  return table;
}

}  // namespace

ByteTable autocontrast_table(const std::uint8_t* plane, std::size_t count) noexcept {
  const Histogram histogram = histogram_of(plane, count);
  std::int32_t low = 0, high = 255;
  while (low < 255 && histogram[static_cast<std::size_t>(low)] == 0) ++low;
  while (high > 0 && histogram[static_cast<std::size_t>(high)] == 0) --high;
  if (high <= low) return identity_table();
  ByteTable table;
  const double scale = 255.0 / (high - low), offset = -low * scale;
  for (std::size_t v = 0; v < 256; ++v) {
    const auto value = static_cast<std::int32_t>(static_cast<double>(v) * scale + offset);
    table[v] = static_cast<std::uint8_t>(std::clamp(value, 0, 255));
  }
  return table;
}

ByteTable equalize_table(const std::uint8_t* plane, std::size_t count) noexcept {
  const Histogram histogram = histogram_of(plane, count);
  const auto values = std::count_if(histogram.begin(), histogram.end(), [](std::uint64_t n) { return n != 0; });
  if (values <= 1) return identity_table();
  std::size_t last = 255;
  while (histogram[last] == 0) --last;
  const std::uint64_t step = (count - histogram[last]) / 255;
  if (step == 0) return identity_table();
  ByteTable table;
  std::uint64_t n = step / 2;
  for (std::size_t v = 0; v < 256; ++v) {
    table[v] = static_cast<std::uint8_t>(std::min<std::uint64_t>(n / step, 255));
    n += histogram[v];
  }
  return table;
}

}  // namespace stoker::transform
