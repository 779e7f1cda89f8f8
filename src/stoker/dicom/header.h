// What a DICOM file says of its image: ids, size, geometry, rescaling, and where the pixel data lie. Own parser, pure
// functions over bytes; safe from any thread. Hostile bytes give a Result. Names of patients are never read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stoker/base/result.h"

namespace stoker::dicom {

using Bytes = std::span<const std::byte>;

// Of one slice. Multi-frame files have one for each frame.
struct FrameFacts {
  std::optional<std::array<double, 3>> position;       // ImagePositionPatient: x, y, z of the first pixel, mm
  std::optional<std::array<double, 6>> orientation;    // ImageOrientationPatient: along a row, along a column
  std::optional<std::array<double, 2>> pixel_spacing;  // mm between rows, between columns
  std::optional<double> slope, intercept;              // value = slope * stored + intercept
  std::optional<double> window_center, window_width;   // the first pair
};

// The ways in which pixels are stored.
enum class Packing : std::uint8_t {
  native,        // as they are
  encapsulated,  // JPEG, JPEG-LS, JPEG 2000, RLE: fragments that GDCM decodes
  refused,       // what we do not decode: video, HTJ2K, JPEG XL, unknown ones
};

struct TransferSyntax {
  std::string uid;   // empty: the file names none
  std::string name;  // "JPEG 2000 lossless"; of an unknown one the uid
  Packing packing = Packing::native;
  bool is_explicit = true, is_big_endian = false, is_deflated = false;
};
TransferSyntax transfer_syntax(std::string_view uid);

struct Header {
  TransferSyntax syntax;
  std::string sop_class, sop_instance, patient, study, series, modality, image_type, photometric;
  std::optional<std::int64_t> instance;  // InstanceNumber
  std::uint32_t rows = 0, columns = 0, frames = 1, samples = 1;
  const char* unreadable = nullptr;  // an attribute that says what pixels mean, and whose value makes no sense
  std::uint32_t bits_allocated = 0, bits_stored = 0, high_bit = 0;
  bool is_signed = false;
  bool has_pixels = false;        // (7FE0,0010)
  bool has_float_pixels = false;  // (7FE0,0008) or (7FE0,0009)
  bool has_modality_lut = false;
  bool has_burned_in_text = false;  // as BurnedInAnnotation says
  bool is_directory = false;        // a DICOMDIR
  bool is_bare = false;             // it has no element behind the file's meta information
  bool are_pixels_words = false;    // OW: bytes of 8-bit pixels are swapped in pairs where the file is big-endian
  FrameFacts facts;                 // of every frame, where `per_frame` is empty
  std::vector<FrameFacts> per_frame;
  std::uint64_t pixels_at = 0;     // first byte of the value; of a deflated file: after inflating
  std::uint64_t pixels_bytes = 0;  // native: of the value

  const FrameFacts& facts_of(std::uint32_t frame) const noexcept {
    return frame < per_frame.size() ? per_frame[frame] : facts;
  }
  std::uint64_t frame_bytes() const noexcept { return std::uint64_t{rows} * columns * samples * (bits_allocated / 8); }
};

inline constexpr std::size_t kSniffedBytes = 144;
// Whether the first kSniffedBytes of a file look like DICOM: "DICM" behind 128 bytes, or a plausible first element.
bool looks_like_dicom(Bytes first) noexcept;

// Reads `file` up to the pixel data. Where `file` is only the first part of it (`is_whole` false), `truncated` means
// that more is needed. `inflated` gets the data set of a deflated file, which must be whole.
Result read_header(Bytes file, bool is_whole, Header& header, std::vector<std::byte>& inflated);

}  // namespace stoker::dicom
