// JPEG with the pixels that Pillow gives: by our own decoder where it is certain, else by libjpeg-turbo. That reports
// by longjmp, so between setjmp and the calls that may jump there are only plain structs: nothing here has a
// destructor. Its memory comes from the scratch (jpeg_memory.h). A new decompressor is made for each image, which
// takes a microsecond or two: a reused one keeps the tables of the image before, and a file that lacks its own would
// decode differently from one thread to the next.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

// jpeglib.h needs <cstdio> before it.
#include <jerror.h>
#include <jpeglib.h>

#include "stoker/base/round.h"
#include "stoker/codec/image.h"
#include "stoker/codec/jpeg/baseline.h"
#include "stoker/codec/jpeg/headers.h"
#include "stoker/codec/jpeg_memory.h"
#include "stoker/codec/table.h"

namespace stoker::codec {
namespace {

constexpr std::uint64_t kTableBytes = 192 << 10;  // of either decoder, with its buffers of fixed size
constexpr int kMaxScans = 500;  // of a progressive file; real ones have about ten, hostile ones millions

struct Job {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  JpegMemory memory;
  std::jmp_buf jump;
  Bytes bytes;
  Result verdict;
  bool has_all_rows;
  // What to do: a null `into` only probes.
  ImageInfo* info;
  const ImageOptions* options;
  const Rect* region;
  const Pixels* into;
  Scratch* scratch;
};

[[noreturn]] void fail(Job& job, Result verdict) noexcept {
  job.verdict = verdict;
  std::longjmp(job.jump, 1);
}

void require(Job& job, const Result& result) noexcept {
  if (!result.ok()) fail(job, result);
}

template <typename Pointer>
Job& job_of(Pointer jpeg) noexcept {
  return *static_cast<Job*>(jpeg->client_data);
}

std::uint64_t place(const Job& job) noexcept {
  return job.bytes.size() - job.source.bytes_in_buffer;
}

Result verdict_on(int message) noexcept {
  switch (message) {
    case JERR_OUT_OF_MEMORY:
      return failed(Code::no_memory, "no room to decode the image");
    case JERR_NO_SOI:
      return failed(Code::corrupt, "no JPEG header");
    case JERR_NO_IMAGE:
      return failed(Code::corrupt, "tables but no image");
    case JERR_EMPTY_IMAGE:
      return failed(Code::corrupt, "an image without pixels");
    case JERR_IMAGE_TOO_BIG:
      return failed(Code::too_large, "a side longer than 65500 pixels");
    case JERR_BAD_PRECISION:
      return failed(Code::unsupported, "samples that are not 8 bits wide");
    case JERR_SOF_UNSUPPORTED:
      return failed(Code::unsupported, "a lossless, hierarchical or other rare coding process");
    case JERR_CONVERSION_NOTIMPL:
      return failed(Code::unsupported, "a rare colour space");
    case JERR_CCIR601_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
      return failed(Code::unsupported, "a rare chroma sampling");
    case JERR_NO_HUFF_TABLE:
      return failed(Code::corrupt, "a huffman table is missing");
    case JERR_NO_QUANT_TABLE:
      return failed(Code::corrupt, "a quantisation table is missing");
    case JERR_BAD_HUFF_TABLE:
      return failed(Code::corrupt, "a damaged huffman table");
    case JERR_BAD_COMPONENT_ID:
      return failed(Code::corrupt, "a scan names a component that is not there");
    case JERR_BAD_LENGTH:
      return failed(Code::corrupt, "a segment of a wrong length");
    case JERR_BAD_PROGRESSION:
      return failed(Code::corrupt, "damaged progressive scan parameters");
    case JERR_SOI_DUPLICATE:
    case JERR_SOF_DUPLICATE:
    case JERR_SOS_NO_SOF:
      return failed(Code::corrupt, "segments in a wrong order");
    case JERR_UNKNOWN_MARKER:
      return failed(Code::corrupt, "an unknown marker");
    default:
      return failed(Code::corrupt, "damaged data");
  }
}

void on_error(j_common_ptr jpeg) noexcept {
  Job& job = job_of(jpeg);
  Result verdict = verdict_on(jpeg->err->msg_code);
  verdict.offset = place(job);
  fail(job, verdict);
}

void on_message(j_common_ptr jpeg, int level) noexcept {
  if (level >= 0) return;
  Job& job = job_of(jpeg);
  if (job.options != nullptr && job.options->strict) fail(job, failed(Code::corrupt, "damaged data", place(job)));
}

void no_output(j_common_ptr) noexcept {}
void no_action(j_decompress_ptr) noexcept {}

boolean on_end(j_decompress_ptr jpeg) noexcept {
  Job& job = job_of(jpeg);
  const bool may_end = job.has_all_rows && !job.options->strict;
  fail(job, may_end ? Result{} : failed(Code::truncated, "the data ends early", job.bytes.size()));
}

void on_skip(j_decompress_ptr jpeg, long count) noexcept {
  if (count <= 0) return;
  Job& job = job_of(jpeg);
  if (static_cast<std::size_t>(count) > job.source.bytes_in_buffer) on_end(jpeg);
  job.source.next_input_byte += count;
  job.source.bytes_in_buffer -= static_cast<std::size_t>(count);
}

void on_progress(j_common_ptr jpeg) noexcept {
  Job& job = job_of(jpeg);
  if (job.jpeg.input_scan_number > kMaxScans) fail(job, failed(Code::corrupt, "more than 500 scans", place(job)));
}

void start(Job& job) noexcept {
  jpeg_create_decompress(&job.jpeg);
  job.jpeg.client_data = &job;
  job.source.init_source = no_action;
  job.source.fill_input_buffer = on_end;
  job.source.skip_input_data = on_skip;
  job.source.resync_to_restart = jpeg_resync_to_restart;
  job.source.term_source = no_action;
  job.source.next_input_byte = reinterpret_cast<const JOCTET*>(job.bytes.data());
  job.source.bytes_in_buffer = job.bytes.size();
  job.jpeg.src = &job.source;
  job.progress.progress_monitor = on_progress;
  job.jpeg.progress = &job.progress;
}

// Sizes in whole MCUs.
struct Extents {
  std::uint64_t mcu_height, width, height, mcus;

  explicit Extents(const jpeg_decompress_struct& jpeg) noexcept
      : mcu_height(8u * jpeg.max_v_samp_factor),
        width(round_up(jpeg.image_width, 8u * jpeg.max_h_samp_factor)),
        height(round_up(jpeg.image_height, mcu_height)),
        mcus(width / (8u * jpeg.max_h_samp_factor) * (height / mcu_height)) {}
};

// At most what libjpeg, or our own decoder, takes from the scratch: tables, samples of a few MCU rows and, for many
// scans, all coefficients (16 bits each).
std::uint64_t working_bytes(jpeg_decompress_struct& jpeg) noexcept {
  const Extents extents(jpeg);
  std::uint64_t coefficients = 0;
  for (int i = 0; jpeg_has_multiple_scans(&jpeg) != FALSE && i < jpeg.num_components; ++i) {
    const jpeg_component_info& component = jpeg.comp_info[i];
    coefficients += extents.width * extents.height * 2 * component.h_samp_factor * component.v_samp_factor /
                    (jpeg.max_h_samp_factor * jpeg.max_v_samp_factor);
    coefficients += (extents.height / 8 + 16) * sizeof(void*);
  }
  return extents.width * extents.mcu_height * jpeg.num_components * 8 + coefficients + kTableBytes;
}

// Refuses what cannot be a whole image.
void check_data(Job& job) noexcept {
  const jpeg_decompress_struct& jpeg = job.jpeg;
  // Huffman codes have at least one bit: one per block in a progressive DC scan, two in a sequential one.
  const std::uint64_t least_bits = Extents(jpeg).mcus * (jpeg.progressive_mode ? 1 : 2);
  if (!jpeg.arith_code && job.source.bytes_in_buffer < least_bits / 8) {
    fail(job, failed(Code::truncated, "less data than the image's size needs", place(job)));
  }
}

void read_header(Job& job, ImageInfo& info) noexcept {
  jpeg_read_header(&job.jpeg, TRUE);
  const int components = job.jpeg.num_components;
  if (components != 1 && components != 3 && components != 4) {
    fail(job, failed(Code::unsupported, "neither 1, 3 nor 4 components", place(job)));
  }
  info.width = job.jpeg.image_width;
  info.height = job.jpeg.image_height;
  info.channels = static_cast<std::uint8_t>(components);
  info.bits = 8;
  if (std::uint64_t{info.width} * info.height > kMaxPixels) {
    fail(job, failed(Code::too_large, "more than 2^30 pixels", place(job)));
  }
  info.working_bytes = working_bytes(job.jpeg);
}

// Pillow's conversion. `from` is as Adobe stores it, that is inverted: 255 - ink.
void cmyk_to_rgb(const std::byte* from, std::uint32_t count, std::byte* into) noexcept {
  for (std::uint32_t i = 0; i < count; ++i, from += 4, into += 3) {
    const int white = static_cast<std::uint8_t>(from[3]);
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - static_cast<std::uint8_t>(from[c])) * white + 128;
      into[c] = static_cast<std::byte>(std::max(0, white - (((product >> 8) + product) >> 8)));
    }
  }
}

void store_cmyk(std::byte* row, std::uint32_t count, Color color, DType dtype, std::byte* rgb,
                std::byte* into) noexcept {
  if (color == Color::keep) {
    for (std::size_t i = 0; i < std::size_t{count} * 4; ++i) row[i] ^= std::byte{255};
    return store_row({row, count, 4, false}, color, dtype, into);
  }
  cmyk_to_rgb(row, count, rgb);
  store_row({rgb, count, 3, false}, color, dtype, into);
}

// Leaves out what the region does not need, but for one MCU around it: the chroma of a pixel at the very edge would be
// interpolated differently there. Returns the column that the rows now begin with.
std::uint32_t narrow_to(Job& job, const Rect& region) noexcept {
  jpeg_decompress_struct& jpeg = job.jpeg;
  const std::uint32_t side = job.options->fast ? 8 / job.options->scale : 8;
  const std::uint32_t mcu_width = side * jpeg.max_h_samp_factor, mcu_height = side * jpeg.max_v_samp_factor;
  JDIMENSION left = region.x - std::min(region.x, mcu_width);
  JDIMENSION width = std::min(jpeg.output_width, region.x + region.width + mcu_width) - left;
  if (width < jpeg.output_width) {
    jpeg_crop_scanline(&jpeg, &left, &width);
  } else {
    left = 0;
  }
  const std::uint32_t whole_rows = region.y / mcu_height;
  if (whole_rows > 1) jpeg_skip_scanlines(&jpeg, (whole_rows - 1) * mcu_height);
  return left;
}

// Reads on to the end of the image, and refuses the file where Pillow does: the data ends before the last row, or a
// marker in the data cannot be understood. Behind the last row the end of the image may be missing.
void finish(Job& job, std::byte* row) noexcept {
  auto line = reinterpret_cast<JSAMPROW>(row);
  while (job.jpeg.output_scanline < job.jpeg.output_height) jpeg_read_scanlines(&job.jpeg, &line, 1);
  job.has_all_rows = true;
  jpeg_finish_decompress(&job.jpeg);
}

void decode(Job& job) noexcept {
  jpeg_decompress_struct& jpeg = job.jpeg;
  const ImageOptions& options = *job.options;
  const Pixels& into = *job.into;
  ImageInfo info;
  read_header(job, info);
  const Rect region = scaled_region(options, *job.region);
  require(job, check_request(info, options, *job.region, region, into));
  check_data(job);
  // Many scans are read to the end of the image before the first row is there.
  const bool must_finish = jpeg_has_multiple_scans(&jpeg) == FALSE &&
                           !jpeg::ends_properly(job.bytes.last(job.source.bytes_in_buffer), jpeg.restart_interval != 0);
  take_from_scratch(job.jpeg, job.memory, *job.scratch);

  jpeg.dct_method = JDCT_ISLOW;
  jpeg.out_color_space = info.channels == 1 ? JCS_GRAYSCALE : info.channels == 4 ? JCS_CMYK : JCS_RGB;
  if (options.fast) {
    jpeg.do_fancy_upsampling = FALSE;
    jpeg.scale_num = 1;
    jpeg.scale_denom = options.scale;
  }
  jpeg_start_decompress(&jpeg);

  const std::uint32_t left = narrow_to(job, region);
  const bool straight = region.width == jpeg.output_width && into.dtype == DType::u8 &&
                        into.channels == jpeg.output_components && info.channels != 4;
  const std::size_t row_bytes = std::size_t{jpeg.output_width} * 4;
  std::byte* const row = job.scratch->take(row_bytes).data();
  std::byte* const rgb = job.scratch->take(row_bytes).data();
  if (row == nullptr || rgb == nullptr) fail(job, failed(Code::no_memory, "no room for a row"));
  while (jpeg.output_scanline < region.y + region.height) {
    const std::uint32_t y = jpeg.output_scanline;
    const bool inside = y >= region.y;
    std::byte* const slot = inside ? into.data + std::size_t{y - region.y} * into.stride_bytes : nullptr;
    auto line = reinterpret_cast<JSAMPROW>(straight && inside ? slot : row);
    jpeg_read_scanlines(&jpeg, &line, 1);
    if (straight || !inside) continue;
    std::byte* const first = row + std::size_t{region.x - left} * info.channels;
    if (info.channels == 4) {
      store_cmyk(first, region.width, options.color, into.dtype, rgb, slot);
    } else {
      store_row({first, region.width, info.channels, false}, options.color, into.dtype, slot);
    }
  }
  if (must_finish) finish(job, row);
}

Result run(Job& job) noexcept {
  job.jpeg.err = jpeg_std_error(&job.errors);
  job.errors.error_exit = on_error;
  job.errors.emit_message = on_message;
  job.errors.output_message = no_output;
  job.jpeg.client_data = &job;
  if (setjmp(job.jump) == 0) {
    start(job);
    if (job.into == nullptr) {
      read_header(job, *job.info);
    } else {
      decode(job);
    }
  }
  give_back_own_memory(job.jpeg, job.memory);
  jpeg_destroy_decompress(&job.jpeg);
  return job.verdict;
}

}  // namespace

Result probe_jpeg(Bytes bytes, ImageInfo& info) noexcept {
  Job job{};
  job.bytes = bytes;
  job.info = &info;
  return run(job);
}

Result decode_by_libjpeg(Bytes bytes, const ImageOptions& options, const Rect& region, const Pixels& into,
                         Scratch& scratch) noexcept {
  Job job{};
  job.bytes = bytes;
  job.options = &options;
  job.region = &region;
  job.into = &into;
  job.scratch = &scratch;
  return run(job);
}

namespace {

Result decode_jpeg(Bytes bytes, const ImageOptions& options, const Rect& region, const Pixels& into, Scratch& scratch,
                   SeekIndex* index) noexcept {
  if (jpeg::decode_baseline(bytes, options, region, into, scratch, index)) return {};
  if (scratch.wanted_bytes() != 0) return failed(Code::no_memory, "no room to decode the image");
  if (index != nullptr) index->places = {}, index->known = 0;
  return decode_by_libjpeg(bytes, options, region, into, scratch);
}

}  // namespace

extern constinit const Codec kJpeg{
    .name = "jpeg",
    .title = "JPEG",
    .extensions = {"jpg", "jpeg", "jpe", "jfif"},
    .magic = {{{0, "\xFF\xD8\xFF"}}},
    .decoder = ImageCodec{probe_jpeg, decode_jpeg, orientation_of_jpeg, /*scales=*/true, /*seeks=*/true}};

}  // namespace stoker::codec
