#include "stoker/codec/jpeg/huffman.h"

#include <algorithm>

namespace stoker::codec::jpeg {
namespace {

// Hands `use` each code in order: its bits, its value and its symbol. False as `use`, or if the code does not exist.
template <typename Use>
bool each_code(const HuffmanCode& code, LongCodes& long_codes, const Use& use) noexcept {
  std::uint32_t next = 0;
  std::size_t index = 0;
  long_codes.symbols = code.symbols;
  for (std::uint32_t bits = 1; bits <= 16; ++bits) {
    const std::uint32_t count = code.counts[bits - 1];
    long_codes.offset[bits] = static_cast<std::int32_t>(index) - static_cast<std::int32_t>(next);
    // A code of ones alone is not allowed.
    if (count != 0 && next + count >= 1u << bits) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!use(bits, next++, code.symbols[index++])) return false;
    }
    long_codes.limit[bits] = next << (16 - bits);
    next <<= 1;
  }
  return true;
}

// A value of `size` bits is itself if its first bit is 1, else less by 2^size - 1. The bits before it are the code's.
std::int16_t base_of(std::uint32_t code, std::uint32_t size, bool negative) noexcept {
  const std::uint32_t sign = negative ? 1 - (1u << size) : 0;
  return static_cast<std::int16_t>(sign - (code << size));
}

std::uint8_t shift_of(std::uint32_t bits) noexcept {
  return static_cast<std::uint8_t>((64 - bits) & 63);
}

}  // namespace

bool build(const HuffmanCode& code, DcTable& table) noexcept {
  table.entry.fill({0, 0, 0});
  return each_code(code, table.long_codes, [&](std::uint32_t bits, std::uint32_t value, std::uint32_t size) noexcept {
    if (size > kMaxDcSize) return false;
    const std::uint32_t seen = bits + (size != 0 ? 1 : 0);  // the sign has to be seen
    if (seen > DcTable::kBits) return true;
    const std::uint32_t span = 1u << (DcTable::kBits - seen);
    auto* at = &table.entry[value << (DcTable::kBits - bits)];
    for (const bool negative : {true, false}) {
      if (negative && size == 0) continue;
      const auto total = static_cast<std::uint8_t>(bits + size);
      at = std::fill_n(at, span, DcTable::Entry{total, shift_of(total), base_of(value, size, negative)});
    }
    return true;
  });
}

bool build(const HuffmanCode& code, AcTable& table) noexcept {
  constexpr int kBits = AcTable::kBits;
  table.entry.fill({0, AcTable::kLong, 0, 0, 0});
  table.bits.fill(0);
  const bool known =
      each_code(code, table.long_codes, [&](std::uint32_t bits, std::uint32_t value, std::uint32_t symbol) noexcept {
        const std::uint32_t run = symbol >> 4, size = symbol & 15;
        if (size > kMaxAcSize || (size == 0 && run != 0 && run != 15)) return false;
        const std::uint32_t seen = bits + (size != 0 ? 1 : 0);
        if (seen > kBits) return true;
        const std::uint32_t span = 1u << (kBits - seen);
        const auto total = static_cast<std::uint8_t>(bits + size);
        const auto advance = static_cast<std::uint8_t>(symbol == 0 ? AcTable::kEnd : run + 1);
        std::size_t at = std::size_t{value} << (kBits - bits);
        std::fill_n(&table.bits[at], span << (seen - bits), total);
        for (const bool negative : {true, false}) {
          if (negative && size == 0) continue;
          std::fill_n(&table.entry[at], span,
                      AcTable::Entry{shift_of(total), advance, base_of(value, size, negative), 0, 0});
          at += span;
        }
        return true;
      });
  if (!known) return false;
  // What follows in the same bits, where all of it is there.
  const std::array<std::uint8_t, 1 << kBits> single = table.bits;
  for (std::size_t i = 0; i < table.entry.size(); ++i) {
    AcTable::Entry& first = table.entry[i];
    const std::uint32_t bits = single[i];
    if (bits == 0 || bits >= kBits || first.advance == AcTable::kEnd) continue;
    const std::size_t next = (i << bits) & (table.entry.size() - 1);
    const std::uint32_t more = single[next];
    if (more == 0 || bits + more > kBits) continue;
    const AcTable::Entry& second = table.entry[next];
    const auto value = static_cast<std::int16_t>((next >> (kBits - more)) + static_cast<std::size_t>(second.base));
    if (value < -128 || value > 127) continue;
    first.advance2 = second.advance;
    first.value2 = static_cast<std::int8_t>(value);
    table.bits[i] = static_cast<std::uint8_t>(bits + more);
  }
  return true;
}

}  // namespace stoker::codec::jpeg
