// Bytes to arrays. Pure functions: no I/O, no threads, no exceptions; hostile bytes give a Result that names what is
// wrong. Memory that a decoder needs beyond its output comes from the caller's Scratch, and is asked for before it is
// touched; what a file claims of its size is never allocated elsewhere. Two exceptions of a fixed size: the 20 KB that
// libjpeg allocates to read headers, gone when the call returns, and one libdeflate decompressor of 12 KB per
// thread. libwebp allocates too: as much is taken from the Scratch meanwhile (webp.cc). Safe from any thread (one
// Scratch each). Decoders never reset the Scratch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "stoker/base/dtype.h"
#include "stoker/base/pixels.h"
#include "stoker/base/result.h"
#include "stoker/base/scratch.h"
#include "stoker/codec/media.h"
#include "stoker/codec/seek_index.h"

namespace stoker::codec {

// ---- images

enum class Color : std::uint8_t {
  rgb,   // as Pillow's convert("RGB")
  gray,  // as Pillow's convert("L")
  keep,  // as stored, as Pillow opens it: 1, 2, 3 or 4 channels; palettes become what they index (RGBA if any is
         // transparent)
};

// What a file says of itself, without decoding it.
struct ImageInfo {
  std::uint32_t width = 0, height = 0;
  std::uint8_t channels = 0;        // as stored, with palette expanded
  std::uint8_t bits = 8;            // 8 or 16 per channel (1, 2, 4 bits count as 8)
  std::uint64_t working_bytes = 0;  // of the Scratch: the most that decode_image takes, whatever the region
};

struct ImageOptions {
  Color color = Color::rgb;
  bool deep = false;        // give u16: 16-bit files as they are, 8-bit files widened without scaling
  bool fast = false;        // approximations allowed
  std::uint32_t scale = 1;  // with fast, jpeg only: decode at 1/scale (1, 2, 4, 8)
  bool strict = false;  // jpeg data that libjpeg only warns of is corrupt; otherwise it decodes, as it does in Pillow
};

inline constexpr std::uint64_t kMaxPixels = std::uint64_t{1} << 30;  // more is refused before memory is touched

Result probe_image(Media media, Bytes bytes, ImageInfo& info) noexcept;

// Channels that decode_image will give for this file and these options.
std::uint8_t output_channels(const ImageInfo& info, const ImageOptions& options) noexcept;

// Where `region` lies in the decoded image: the same, but for a jpeg decoded at 1/scale (rounded outwards).
Rect decoded_region(Media media, const ImageOptions& options, const Rect& region) noexcept;

// Decodes the rectangle `region` of the image (in source pixels; all of it must lie inside) into `into`, whose
// width and height must be those of decoded_region, and channels and dtype those of the options. Every pixel of `into`
// is written on ok. 8-bit output of 16-bit files is as Pillow's: the high byte, but gray is clipped to 255 (ask for
// `deep`). Rows below the region are not looked at where the format allows (jpeg), so damage there goes unseen.
// `index`, if there is one, is used and extended where that is possible (jpeg); its places become empty if they turned
// out to be of no use for this file.
Result decode_image(Media media, Bytes bytes, const ImageOptions& options, const Rect& region, const Pixels& into,
                    Scratch& scratch, SeekIndex* index = nullptr) noexcept;

// ---- audio

enum class SampleFormat : std::uint8_t { u8, s16, s24, s32, f32, f64 };

struct AudioInfo {
  std::uint32_t channels = 0, rate_hz = 0;
  std::uint64_t frames = 0;
  std::uint64_t data_offset = 0;  // of the first frame in the file, where they lie there as `format` says; else 0
  SampleFormat format = SampleFormat::s16;  // the narrowest of these that holds a sample
  std::uint64_t working_bytes = 0;          // of the Scratch: the most that decode_audio takes
};

Result probe_audio(Media media, Bytes bytes, AudioInfo& info) noexcept;

// Frames [first, first + frames) as float32 in [-1, 1) (soundfile's scaling), channel c at into + c * channel_stride.
Result decode_audio(Media media, Bytes bytes, const AudioInfo& info, std::uint64_t first, std::uint64_t frames,
                    float* into, std::size_t channel_stride, Scratch& scratch) noexcept;

// Compares what the file says of all its samples together, such as their MD5, with the samples: for tools that check.
// Ok where a format says nothing.
Result verify_audio(Media media, Bytes bytes, const AudioInfo& info, Scratch& scratch) noexcept;

// ---- arrays

struct ArrayInfo {
  DType dtype = DType::u8;
  std::uint8_t rank = 0;
  std::array<std::uint64_t, 8> shape{};
  std::uint64_t data_offset = 0;  // npy: of the first element in the file; npz: of the member's data in the file
  std::uint64_t data_bytes = 0;   // of the elements, decoded
  bool swap_bytes = false;        // npy: the elements are big-endian; only with ByteOrders::any
  // npz only: how the member is stored
  std::uint64_t stored_bytes = 0;
  bool deflated = false;
  std::uint64_t member_bytes = 0;  // header and elements, inflated
  std::uint32_t crc32 = 0;         // of the member, inflated

  std::span<const std::uint64_t> dims() const noexcept { return {shape.data(), rank}; }
};

Result probe_array(Media media, Bytes bytes, ArrayInfo& info, Scratch& scratch) noexcept;
// Writes info.data_bytes bytes.
Result decode_array(Media media, Bytes bytes, const ArrayInfo& info, std::byte* into, Scratch& scratch) noexcept;

enum class ByteOrders : std::uint8_t { little, any };

// The header of an .npy file is enough (`file_bytes` is the true length). Only C order. "V2" is read as bfloat16, which
// is how numpy writes the arrays of ml_dtypes.
Result probe_npy(Bytes bytes, std::uint64_t file_bytes, ArrayInfo& info,
                 ByteOrders orders = ByteOrders::little) noexcept;
// `member` names the array ("image" finds image.npy); empty takes the first one.
Result probe_npz(Bytes bytes, std::string_view member, ArrayInfo& info, Scratch& scratch) noexcept;
// The same of any media whose files may hold several arrays, and as probe_array of one that holds one.
Result probe_member(Media media, Bytes bytes, std::string_view member, ArrayInfo& info, Scratch& scratch) noexcept;
// The names of the arrays in a file that may hold several, in its order, as many as fit into `names`. They borrow from
// `bytes`. Returns the count of all; 0 for a file that cannot be read and for media that hold one array without a name.
std::size_t list_arrays(Media media, Bytes bytes, std::span<std::string_view> names) noexcept;

}  // namespace stoker::codec
