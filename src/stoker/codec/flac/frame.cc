#include "stoker/codec/flac/frame.h"

#include <algorithm>
#include <array>
#include <utility>

#include "stoker/codec/byte_order.h"
#include "stoker/codec/flac/bits.h"

namespace stoker::codec::flac {
namespace {

constexpr std::uint32_t kMostOrder = 32;

// Values of a damaged frame may leave the range of int32: they wrap, and the sum of the frame then differs.
std::int32_t add(std::int32_t a, std::int64_t b) noexcept {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

// Residuals in x[Order...] become samples. The sums need at most 25 + 15 + 5 bits. The newest sample is the only one on
// the critical path, so it stays in a register.
template <std::uint32_t Order>
void predict(std::int32_t* x, std::size_t count, const std::int64_t* coefficients, std::uint32_t shift) noexcept {
  std::int64_t c[Order];
  for (std::uint32_t j = 0; j < Order; ++j) c[j] = coefficients[j];
  std::int64_t newest = x[Order - 1];
  for (std::size_t i = Order; i < count; ++i) {
    std::int64_t sum = 0;
    for (std::uint32_t j = Order - 1; j >= 1; --j) sum += c[j] * x[i - 1 - j];
    sum += c[0] * newest;
    x[i] = add(x[i], sum >> shift);
    newest = x[i];
  }
}

using Predict = void (*)(std::int32_t*, std::size_t, const std::int64_t*, std::uint32_t) noexcept;

template <std::uint32_t... Orders>
constexpr std::array<Predict, sizeof...(Orders)> predictors(std::integer_sequence<std::uint32_t, Orders...>) noexcept {
  return {predict<Orders + 1>...};
}
constexpr std::array kPredict = predictors(std::make_integer_sequence<std::uint32_t, kMostOrder>());

Result read_residual(BitReader& bits, std::uint32_t samples, std::uint32_t order, std::int32_t* into,
                     std::uint64_t place) noexcept {
  const std::uint32_t method = bits.take(2), partition_order = bits.take(4);
  if (method > 1) return failed(Code::corrupt, "an unknown coding of residuals", place);
  const std::uint32_t partition = samples >> partition_order;
  if (partition << partition_order != samples || partition < order) {
    return failed(Code::corrupt, "partitions of residuals that do not fit the frame", place);
  }
  const std::uint32_t parameter_bits = method == 0 ? 4 : 5, escape = (1u << parameter_bits) - 1;
  std::uint32_t at = order;
  for (std::uint32_t p = 0; p < 1u << partition_order; ++p) {
    const std::uint32_t parameter = bits.take(parameter_bits), end = (p + 1) * partition;
    if (parameter == escape) {
      const std::uint32_t width = bits.take(5);
      for (; at < end; ++at) into[at] = bits.take_signed(width);
    } else if (!bits.take_rice(into + at, end - at, parameter)) {
      return bits.ran_out() ? failed(Code::truncated, "a frame ends early", place)
                            : failed(Code::corrupt, "a residual of more than 32 bits", place);
    }
    at = end;
    if (bits.ran_out()) return failed(Code::truncated, "a frame ends early", place);
  }
  return {};
}

void predict_fixed(std::uint32_t order, std::int32_t* x, std::size_t count) noexcept {
  constexpr std::int64_t kCoefficients[5][4] = {{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}};
  if (order != 0) kPredict[order - 1](x, count, kCoefficients[order], 0);
}

Result read_subframe(BitReader& bits, std::uint32_t samples, std::uint32_t depth, std::int32_t* into,
                     std::uint64_t place) noexcept {
  const std::uint32_t head = bits.take(8), type = head >> 1 & 63;
  if ((head & 0x80) != 0) return failed(Code::corrupt, "a damaged subframe", place);
  std::uint32_t wasted = 0;  // low bits that are zero in all samples
  if ((head & 1) != 0) wasted = bits.take_unary() + 1;
  if (wasted >= depth) return failed(Code::corrupt, "a subframe without a single bit per sample", place);
  depth -= wasted;

  if (type == 0) {
    std::fill_n(into, samples, bits.take_signed(depth));
  } else if (type == 1) {
    for (std::uint32_t i = 0; i < samples; ++i) into[i] = bits.take_signed(depth);
  } else {
    const bool is_fixed = type >= 8 && type <= 12;
    if (!is_fixed && type < 32) return failed(Code::corrupt, "an unknown kind of subframe", place);
    const std::uint32_t order = is_fixed ? type - 8 : type - 31;
    if (order > samples) return failed(Code::corrupt, "a predictor longer than its frame", place);
    for (std::uint32_t i = 0; i < order; ++i) into[i] = bits.take_signed(depth);
    std::int64_t coefficients[kMostOrder];
    std::uint32_t shift = 0;
    if (!is_fixed) {
      const std::uint32_t precision = bits.take(4) + 1;
      const std::int32_t places = bits.take_signed(5);
      if (precision == 16 || places < 0) return failed(Code::corrupt, "an impossible predictor", place);
      shift = static_cast<std::uint32_t>(places);
      for (std::uint32_t i = 0; i < order; ++i) coefficients[i] = bits.take_signed(precision);
    }
    if (const Result result = read_residual(bits, samples, order, into, place); !result.ok()) return result;
    if (is_fixed) {
      predict_fixed(order, into, samples);
    } else {
      kPredict[order - 1](into, samples, coefficients, shift);
    }
  }
  if (bits.ran_out()) return failed(Code::truncated, "a frame ends early", place);
  if (wasted != 0) {
    for (std::uint32_t i = 0; i < samples; ++i) {
      into[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(into[i]) << wasted);
    }
  }
  return {};
}

void unmix(Mix mix, std::uint32_t samples, std::int32_t* first, std::int32_t* second) noexcept {
  switch (mix) {
    case Mix::none:
      return;
    case Mix::left_side:
      for (std::uint32_t i = 0; i < samples; ++i) second[i] = add(first[i], -std::int64_t{second[i]});
      return;
    case Mix::right_side:
      for (std::uint32_t i = 0; i < samples; ++i) first[i] = add(first[i], second[i]);
      return;
    case Mix::mid_side:
      for (std::uint32_t i = 0; i < samples; ++i) {
        const auto side = static_cast<std::uint32_t>(second[i]);
        const std::uint32_t middle = static_cast<std::uint32_t>(first[i]) << 1 | (side & 1);
        first[i] = static_cast<std::int32_t>(middle + side) >> 1;
        second[i] = static_cast<std::int32_t>(middle - side) >> 1;
      }
      return;
  }
}

}  // namespace

Result decode_frame(Bytes bytes, std::uint64_t place, const Stream& stream, std::int32_t* into, FrameHeader& header,
                    std::uint64_t& next) noexcept {
  if (const Result result = read_frame_header(bytes, place, stream, header); !result.ok()) return result;
  BitReader bits(bytes, place + header.bytes);
  for (std::uint32_t c = 0; c < stream.channels; ++c) {
    const bool is_side = (header.mix == Mix::left_side && c == 1) || (header.mix == Mix::right_side && c == 0) ||
                         (header.mix == Mix::mid_side && c == 1);
    const Result result = read_subframe(bits, header.samples, stream.bits + (is_side ? 1 : 0),
                                        into + std::size_t{c} * stream.most_block, place);
    if (!result.ok()) return result;
  }
  std::uint64_t end = 0;
  if (!bits.align(end)) return failed(Code::corrupt, "a frame does not end in zero bits", place);
  if (bytes.size() - end < 2) return failed(Code::truncated, "a frame ends early", place);
  if (kChecksSums && crc16(bytes.subspan(place, end - place)) != big16(&bytes[end])) {
    return failed(Code::corrupt, "the CRC of a frame differs", place);
  }
  next = end + 2;
  if (header.mix != Mix::none) unmix(header.mix, header.samples, into, into + stream.most_block);
  return {};
}

}  // namespace stoker::codec::flac
