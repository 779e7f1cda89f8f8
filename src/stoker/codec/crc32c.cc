#include "stoker/codec/crc32c.h"

#include <array>

#include "stoker/codec/byte_order.h"

namespace stoker::codec {
namespace {

constexpr std::uint32_t kCastagnoli = 0x82F63B78;

using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

// Table k has the sums of a byte that k zero bytes follow.
constexpr CrcTables make_crc_tables() noexcept {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? kCastagnoli : 0);
    tables[0][byte] = sum;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr CrcTables kCrcTables = make_crc_tables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(Bytes bytes) noexcept {
  std::uint64_t sum = ~std::uint32_t{0};
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) sum = __builtin_ia32_crc32di(sum, little64(at));
  auto low = static_cast<std::uint32_t>(sum);
  for (; left > 0; --left, ++at) low = __builtin_ia32_crc32qi(low, static_cast<unsigned char>(*at));
  return ~low;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(Bytes bytes) noexcept {
  std::uint32_t sum = ~std::uint32_t{0};
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    const std::uint64_t word = little64(at) ^ sum;
    sum = 0;
    for (std::size_t k = 0; k < 8; ++k) sum ^= kCrcTables[7 - k][word >> 8 * k & 0xFF];
  }
  for (; left > 0; --left, ++at) sum = sum >> 8 ^ kCrcTables[0][(sum ^ static_cast<std::uint32_t>(*at)) & 0xFF];
  return ~sum;
}

std::uint32_t crc32c(Bytes bytes) noexcept {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_by_instruction(bytes);
#endif
  return crc32c_by_table(bytes);
}

}  // namespace stoker::codec
