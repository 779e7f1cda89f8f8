// Bits of a FLAC frame, most significant first. Reads past the end give zeros and are noted. Private to this folder;
// one reader belongs to one thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "stoker/codec/media.h"

namespace stoker::codec::flac {

class BitReader {
 public:
  BitReader(Bytes bytes, std::uint64_t first_byte) noexcept
      : begin_(bytes.data()), at_(bytes.data() + first_byte), end_(bytes.data() + bytes.size()) {}

  bool ran_out() const noexcept { return ran_out_; }

  // Up to 32 bits.
  std::uint32_t take(std::uint32_t count) noexcept {
    if (count == 0) return 0;
    if (have_ < count && !fill(count)) return 0;
    const auto value = static_cast<std::uint32_t>(cache_ >> (64 - count));
    drop(count);
    return value;
  }

  std::int32_t take_signed(std::uint32_t count) noexcept {
    if (count == 0) return 0;
    return static_cast<std::int32_t>(take(count) << (32 - count)) >> (32 - count);
  }

  // Zeros before the next one, which is read too. Stops at the end of the bytes.
  std::uint32_t take_unary() noexcept {
    std::uint32_t zeros = 0;
    for (;;) {
      if (have_ == 0 && !fill(1)) return zeros;
      const auto leading = static_cast<std::uint32_t>(std::countl_zero(cache_));
      if (leading < have_) {
        drop(leading + 1);
        return zeros + leading;
      }
      zeros += have_;
      drop(have_);
    }
  }

  // `count` Rice codes with `parameter` low bits each, zigzag-decoded. False: the bytes end early, or a code does not
  // fit 32 bits.
  bool take_rice(std::int32_t* into, std::size_t count, std::uint32_t parameter) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      i += take_short_codes(into + i, count - i, parameter);
      if (i < count && !take_long_code(into[i], parameter)) return false;
    }
    return true;
  }

  // The byte that holds the next bit, after the rest of the current one is passed over. False: that rest is not zero.
  bool align(std::uint64_t& next_byte) noexcept {
    const std::uint32_t rest = have_ % 8;
    const bool is_zero = rest == 0 || take(rest) == 0;
    next_byte = static_cast<std::uint64_t>(at_ - begin_) - have_ / 8;
    return is_zero && !ran_out_;
  }

 private:
  static constexpr std::uint32_t kShort = 28;

  void drop(std::uint32_t count) noexcept {
    cache_ = count >= 64 ? 0 : cache_ << count;
    have_ -= count;
  }

  // At least 56 bits, where 8 more bytes can be loaded. Bits of the cache beyond have_ are those that follow, so that
  // loading them again changes nothing.
  void refill() noexcept {
    std::uint64_t more = 0;
    std::memcpy(&more, at_, 8);
    if constexpr (std::endian::native == std::endian::little) more = __builtin_bswap64(more);
    cache_ |= more >> have_;
    at_ += (63 - have_) >> 3;
    have_ |= 56;
  }

  bool fill(std::uint32_t wanted) noexcept {
    if (end_ - at_ >= 8) {
      refill();
      return true;
    }
    cache_ = have_ == 0 ? 0 : cache_ >> (64 - have_) << (64 - have_);
    while (have_ <= 56 && at_ < end_) {
      cache_ |= static_cast<std::uint64_t>(*at_++) << (56 - have_);
      have_ += 8;
    }
    if (have_ >= wanted) return true;
    ran_out_ = true;
    return false;
  }

  static std::int32_t unfold(std::uint32_t code) noexcept {
    return static_cast<std::int32_t>((code >> 1) ^ (0u - (code & 1)));
  }

  // Reads codes as long as they are short and lie in the middle of the bytes; gives their number. The state is kept in
  // registers meanwhile: `into` may alias the members.
  std::size_t take_short_codes(std::int32_t* into, std::size_t count, std::uint32_t parameter) noexcept {
    BitReader reader = *this;
    std::size_t done = 0;
    while (done + 2 <= count && reader.end_ - reader.at_ >= 8) {  // two codes of at most kShort bits per refill
      reader.refill();
      if (!reader.take_short_code(into[done], parameter)) break;
      ++done;
      if (!reader.take_short_code(into[done], parameter)) break;
      ++done;
    }
    *this = reader;
    return done;
  }

  bool take_short_code(std::int32_t& value, std::uint32_t parameter) noexcept {
    const auto zeros = static_cast<std::uint32_t>(std::countl_zero(cache_ | 1));
    const std::uint32_t bits = zeros + 1 + parameter;
    if (bits > kShort) return false;
    const auto code = static_cast<std::uint32_t>(cache_ >> (64 - bits));  // the one, then the low bits
    value = unfold(code + ((zeros - 1) << parameter));
    cache_ <<= bits;
    have_ -= bits;
    return true;
  }

  bool take_long_code(std::int32_t& value, std::uint32_t parameter) noexcept {
    const std::uint64_t high = take_unary();
    const std::uint64_t code = high << parameter | take(parameter);
    value = unfold(static_cast<std::uint32_t>(code));
    return !ran_out_ && code <= 0xFFFFFFFF;
  }

  const std::byte *begin_, *at_, *end_;
  std::uint64_t cache_ = 0;  // the next bits, from the top
  std::uint32_t have_ = 0;   // how many of them count
  bool ran_out_ = false;
};

}  // namespace stoker::codec::flac
