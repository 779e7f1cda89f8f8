#include "stoker/dicom/values.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace stoker::dicom {
namespace {

// The stored value at `index`, sign-extended from its highest stored bit.
template <typename Word>
std::int32_t stored_value(const std::byte* at, std::size_t index, const StoredAs& as) noexcept {
  Word word;
  if constexpr (sizeof(Word) == 1) {
    word = std::to_integer<Word>(at[as.are_pairs_swapped ? index ^ 1 : index]);
  } else {
    std::memcpy(&word, at + index * sizeof(Word), sizeof(Word));
    if (as.is_big_endian) word = __builtin_bswap16(word);
  }
  const std::uint32_t unused = 32 - as.bits_stored;
  const std::uint32_t high = std::uint32_t{word} << unused;
  return as.is_signed ? static_cast<std::int32_t>(high) >> unused : static_cast<std::int32_t>(high >> unused);
}

// Both bounds of what comes out are kept instead of a test for each value, so that the loop vectorizes.
struct Range {
  std::int32_t low = 0, high = 0;
  bool fits() const noexcept { return low >= 0 && high <= 65535; }
};

template <typename Word>
Range add_whole(const std::byte* at, const StoredAs& as, std::int32_t shift, std::uint16_t* out, std::size_t count) {
  Range range{65535, 0};
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t value = stored_value<Word>(at, i, as) + shift;
    range.low = value < range.low ? value : range.low;
    range.high = value > range.high ? value : range.high;
    out[i] = static_cast<std::uint16_t>(value);
  }
  return range;
}

template <typename Word>
std::string rescale_words(const std::byte* at, const StoredAs& as, double slope, double intercept, std::uint16_t* out,
                          std::size_t count) {
  const auto value_of = [&](std::size_t i) { return slope * stored_value<Word>(at, i, as) + intercept; };
  const bool is_whole = slope == 1 && std::fabs(intercept) <= 1e6 && intercept == std::trunc(intercept);
  if (is_whole && add_whole<Word>(at, as, static_cast<std::int32_t>(intercept) + kHuOffset, out, count).fits())
    return "";
  for (std::size_t i = 0; i < count; ++i) {
    const double shifted = std::nearbyint(value_of(i)) + kHuOffset;
    if (!(shifted >= 0 && shifted <= 65535)) {
      return fmt::format("the value {:g} of pixel {} is outside -32768 to 32767", value_of(i), i);
    }
    out[i] = static_cast<std::uint16_t>(shifted);
  }
  return "";
}

}  // namespace

StoredAs stored_as(const Header& header) noexcept {
  const bool swaps = header.syntax.packing == Packing::native && header.syntax.is_big_endian;
  return {.bits_allocated = header.bits_allocated,
          .bits_stored = header.bits_stored,
          .is_signed = header.is_signed,
          .is_big_endian = swaps,
          .are_pairs_swapped = swaps && header.are_pixels_words && header.bits_allocated == 8};
}

std::string rescale(Bytes stored, const StoredAs& as, double slope, double intercept, std::uint16_t* out,
                    std::size_t count) {
  const bool is_byte = as.bits_allocated == 8;
  if (as.bits_stored == 0 || as.bits_stored > as.bits_allocated || (!is_byte && as.bits_allocated != 16)) {
    return "its pixels have neither 8 nor 16 bits";
  }
  std::size_t needed = count * (is_byte ? 1 : 2);
  if (as.are_pairs_swapped) needed += count % 2;
  if (stored.size() < needed) return "it has too few bytes of pixel data";
  return is_byte ? rescale_words<std::uint8_t>(stored.data(), as, slope, intercept, out, count)
                 : rescale_words<std::uint16_t>(stored.data(), as, slope, intercept, out, count);
}

}  // namespace stoker::dicom
