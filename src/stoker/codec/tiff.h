// TIFF and BigTIFF: the directory of a page, and its strips and tiles to elements. As codec.h says: no exceptions, no
// memory but the caller's, nothing is allocated by a claim of the file. Safe from any thread, with one Scratch each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "stoker/codec/codec.h"

namespace stoker::codec {

// Where the bytes of a file come from. Directories may lie anywhere in it.
class TiffInput {
 public:
  virtual ~TiffInput() = default;
  virtual std::uint64_t size_bytes() const noexcept = 0;
  // The range lies inside the file. False: it could not be read, and the input remembers why.
  virtual bool read(std::uint64_t offset, std::span<std::byte> into) noexcept = 0;
};

class TiffBytes final : public TiffInput {  // a file in memory
 public:
  explicit TiffBytes(Bytes bytes) noexcept : bytes_(bytes) {}
  std::uint64_t size_bytes() const noexcept override { return bytes_.size(); }
  bool read(std::uint64_t offset, std::span<std::byte> into) noexcept override;

 private:
  Bytes bytes_;
};

struct TiffHeader {
  bool swap_bytes = false;
  bool is_big = false;      // BigTIFF: offsets of 64 bits
  std::uint64_t first = 0;  // directory
};

enum class TiffPacking : std::uint8_t { none, lzw, deflate, packbits, zstd };
const char* name(TiffPacking packing) noexcept;

// How the elements of a page are stored: equal for all pages of a volume.
struct TiffForm {
  DType dtype = DType::u8;
  std::uint32_t width = 0, height = 0;
  std::uint16_t samples = 1;  // values of one pixel, which lie together
  TiffPacking packing = TiffPacking::none;
  std::uint8_t predictor = 1;  // 1: none, 2: differences along rows, 3: the same of the bytes of real numbers
  bool is_tiled = false;
  bool swap_bytes = false;
  // Of one segment: a tile, or a strip of rows. The last strip of a page may have fewer rows.
  std::uint32_t segment_width = 0, segment_height = 0;

  std::uint64_t pixel_bytes() const noexcept { return size_of(dtype) * samples; }
  std::uint64_t segment_row_bytes() const noexcept { return segment_width * pixel_bytes(); }
  std::uint64_t segment_bytes() const noexcept { return segment_row_bytes() * segment_height; }
  std::uint64_t page_bytes() const noexcept { return std::uint64_t{width} * height * pixel_bytes(); }
  std::uint64_t across() const noexcept { return (std::uint64_t{width} - 1) / segment_width + 1; }  // segments
  std::uint64_t down() const noexcept { return (std::uint64_t{height} - 1) / segment_height + 1; }
  std::uint64_t segments() const noexcept { return across() * down(); }
  friend bool operator==(const TiffForm&, const TiffForm&) = default;
};

struct TiffPage {
  TiffForm form;
  bool is_reduced = false;                               // a smaller copy of another page, or a mask
  std::span<const std::uint64_t> offsets, bytes;         // of the segments, row by row; in the Scratch
  std::uint64_t next = 0;                                // directory; 0: this is the last page
  std::uint64_t description = 0, description_bytes = 0;  // a text, where it lies in the file; 0 bytes: none
};

inline constexpr std::uint64_t kMaxSegmentBytes = std::uint64_t{1} << 30;  // decoded; larger ones are refused

Result read_tiff_header(TiffInput& input, TiffHeader& header) noexcept;
// `directory` is TiffHeader::first, or TiffPage::next.
Result read_tiff_page(TiffInput& input, const TiffHeader& header, std::uint64_t directory, TiffPage& page,
                      Scratch& scratch) noexcept;

// Decodes one segment of which `rows` rows are wanted into form.segment_bytes() bytes at `into`; the rows behind them
// may become anything. A segment without bytes is zeros.
Result decode_segment(const TiffForm& form, std::uint32_t rows, Bytes encoded, std::byte* into,
                      Scratch& scratch) noexcept;
std::uint64_t segment_working_bytes(const TiffForm& form) noexcept;  // the most that decode_segment takes
// The first page of a file in memory, which must have this form, into form.page_bytes() bytes at `into`.
Result decode_page(const TiffForm& form, Bytes file, std::byte* into, Scratch& scratch) noexcept;
std::uint64_t page_working_bytes(const TiffForm& form) noexcept;  // the most that decode_page takes

}  // namespace stoker::codec
