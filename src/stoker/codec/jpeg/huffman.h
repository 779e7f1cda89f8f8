// Tables for decoding Huffman codes many bits at a time. A value follows each code, and one look at the next bits gives
// both: where the value ends, and what to add to the bits up to there. Pure; safe from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stoker/codec/jpeg/headers.h"

namespace stoker::codec::jpeg {

inline constexpr int kMaxDcSize = 11, kMaxAcSize = 10;  // bits of a value; more is not baseline

// Finds codes that the tables are too short for, by comparing with the first code of the next length.
struct LongCodes {
  std::array<std::uint32_t, 17> limit{};  // by length: the next 16 bits of longer codes are not below this
  std::array<std::int32_t, 17> offset{};  // by length: index of a symbol minus its code
  std::array<std::uint8_t, 256> symbols{};

  struct Found {
    std::uint32_t bits;  // of the code; 0: there is no such code
    std::uint32_t symbol;
  };
  Found find(std::uint32_t next16) const noexcept {
    for (std::uint32_t bits = 1; bits <= 16; ++bits) {
      if (next16 >= limit[bits]) continue;
      const auto code = static_cast<std::int32_t>(next16 >> (16 - bits));
      return {bits, symbols[static_cast<std::size_t>(offset[bits] + code) & 255]};
    }
    return {0, 0};
  }
};

struct DcTable {
  static constexpr int kBits = 10;
  struct Entry {
    std::uint8_t bits;   // of code and value together; 0: use long_codes
    std::uint8_t shift;  // (64 - bits) mod 64
    std::int16_t base;   // (next bits >> shift) + base is the value, mod 2^16
  };
  std::array<Entry, 1 << kBits> entry;
  LongCodes long_codes;
};

// Gives up to two coefficients at once. An advance is the run of zeros and the coefficient after it.
struct AcTable {
  static constexpr int kBits = 10;
  static constexpr int kEnd = 80;    // the advance of the end-of-block code
  static constexpr int kLong = 160;  // the advance that sends to long_codes, with no bits
  struct alignas(8) Entry {
    std::uint8_t shift;  // (64 - bits of the first code and value) mod 64
    std::uint8_t advance;
    std::int16_t base;
    std::uint8_t advance2;  // 0: the entry has no second coefficient
    std::int8_t value2;
  };
  std::array<std::uint8_t, 1 << kBits> bits;  // of all that the entry gives
  std::array<Entry, 1 << kBits> entry;
  LongCodes long_codes;
};

// False if the code is one that libjpeg refuses or that baseline has no use for.
bool build(const HuffmanCode& code, DcTable& table) noexcept;
bool build(const HuffmanCode& code, AcTable& table) noexcept;

}  // namespace stoker::codec::jpeg
