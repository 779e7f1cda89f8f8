// What stands before the scan of a JPEG file, for the files that baseline.h decodes itself. Pure; safe from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stoker/codec/codec.h"

namespace stoker::codec::jpeg {

// A code as a DHT segment gives it: how many codes of each length, and their symbols in the order of the codes.
struct HuffmanCode {
  std::array<std::uint8_t, 16> counts{};
  std::array<std::uint8_t, 256> symbols{};
  bool defined = false;
};

struct QuantTable {
  std::array<std::int16_t, 64> values{};  // in natural order: row by row
  bool defined = false;
};

struct Component {
  std::uint8_t id = 0;
  std::uint8_t h = 1, v = 1;  // blocks per MCU
  std::uint8_t quant = 0, dc = 0, ac = 0;
};

struct Frame {
  std::uint32_t width = 0, height = 0;
  std::uint8_t components = 0;  // 1, or 3 for Y, Cb and Cr; Cb and Cr have one block per MCU
  std::array<Component, 3> component{};
  std::array<QuantTable, 4> quant{};
  std::array<HuffmanCode, 4> dc{}, ac{};
  std::uint32_t restart_interval = 0;  // in MCUs; 0: none
  std::size_t scan_offset = 0;         // of the first byte of entropy-coded data

  std::uint32_t h() const noexcept { return component[0].h; }
  std::uint32_t v() const noexcept { return component[0].v; }
};

// Reads up to the scan. False for everything but: Huffman-coded, sequential, 8 bits, one scan, gray or YCbCr in 4:4:4,
// 4:2:2, 4:4:0 or 4:2:0, every table there, and nothing at which libjpeg would warn.
bool read_headers(Bytes bytes, Frame& frame) noexcept;

// Whether the only markers in the entropy-coded data `scan` are RST0 to RST7, where `has_restarts`, and an EOI follows.
// Pillow and libjpeg then take the file, whatever else is damaged. Looks at every byte, at the speed of memchr.
bool ends_properly(Bytes scan, bool has_restarts) noexcept;

// Natural position of the k-th coefficient in zigzag order. The entries beyond 63 are 0: see entropy.cc.
extern const std::array<std::uint8_t, 256> kNaturalOrder;

}  // namespace stoker::codec::jpeg
