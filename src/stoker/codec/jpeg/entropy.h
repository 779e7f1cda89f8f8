// Entropy-coded data to quantized coefficients, a few MCUs at a time. One decoder per image and thread; it borrows
// the data, the tables and its window until the last call. Every call says false as soon as anything in the data is not
// certain to mean the same to libjpeg; the decoder is of no use then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "stoker/codec/jpeg/huffman.h"
#include "stoker/codec/jpeg/target.h"
#include "stoker/codec/seek_index.h"

namespace stoker::codec::jpeg {

inline constexpr std::size_t kMaxMcuBlocks = 6;
inline constexpr std::size_t kMaxStripBlocks = 48;  // in one call; few enough to stay in the first cache

// Which tables the blocks of an MCU use, in their order.
struct McuLayout {
  std::size_t blocks = 0;
  std::array<std::uint8_t, kMaxMcuBlocks> component{};
  std::array<const DcTable*, 3> dc{};  // by component
  std::array<const AcTable*, 3> ac{};
  std::array<bool, 3> mean_only{};  // of this component's blocks, only the first coefficient is wanted
};

struct alignas(32) Block {
  std::int16_t coefficient[64];  // in natural order
};

class EntropyDecoder {
 public:
  static constexpr std::size_t kWindowBytes = 24 << 10;

  // `data` begins with the scan's first byte; `window` has kWindowBytes.
  EntropyDecoder(Bytes data, const McuLayout& layout, std::span<std::byte> window) noexcept;

  // The next `mcus` MCUs, of at most kMaxStripBlocks blocks. `last` gets for each block an index, in zigzag order,
  // beyond which there are only zeros. Of a block of which only the mean is wanted, nothing else is written.
  bool decode(std::size_t mcus, Block* blocks, std::uint8_t* last) noexcept;
  bool skip(std::size_t mcus) noexcept;

  // Goes on after the marker RST0 + (`number` mod 8), which must come next.
  bool restart(std::uint32_t number) noexcept;
  // All data up to the next marker is used up.
  bool is_at_marker() const noexcept;
  // Where the decoder is, and going on from there. False if the place cannot be told, or cannot be.
  bool note(Checkpoint& place) noexcept;
  bool resume(const Checkpoint& place) noexcept;
  // As far as the decoder went, libjpeg too finds enough data: it reads ahead a little.
  bool has_margin() const noexcept;

 private:
  struct Bits {
    const std::byte* next;     // the first byte that is not wholly in `buffer`
    std::uint64_t buffer = 0;  // the next bits, from the top
    std::uint32_t count = 0;   // of bits that are in the buffer for certain; there may be up to seven more
  };

  template <bool kStore, bool kMeans = false>
  STOKER_JPEG_FAST bool run(std::size_t mcus, Block* blocks, std::uint8_t* last) noexcept;
  template <bool kStore>
  STOKER_JPEG_FAST static unsigned decode_block(Bits& bits, const DcTable& dc, const AcTable& ac,
                                                std::int32_t& predictor, std::int16_t* block) noexcept;
  void fill_window() noexcept;
  void start_at(std::size_t offset) noexcept;
  bool skip_to(std::size_t offset) noexcept;  // within the window; false: it is not there
  void measure_to(const std::byte* at) noexcept;

  const McuLayout& layout_;
  const bool has_means_;
  const Bytes scan_;
  Bytes data_;               // what is not in the window yet
  std::byte* const window_;  // data without the zeros that are stuffed behind each FF
  std::byte* window_end_;
  bool marker_found_ = false, data_ended_ = false;  // behind the window's end; ended: without a marker
  Bits bits_;
  std::array<std::int32_t, 3> predictor_{};
  const std::byte* measured_;        // in the window
  std::size_t measured_offset_ = 0;  // of that byte in the scan
};

}  // namespace stoker::codec::jpeg
