// A TIFF file of many pages, each one slice. Pages that lie uncompressed at equal distances are a plain volume. Others
// have chunks: a tile each, or a band of strips that lie together in the file.
#include <algorithm>
#include <charconv>
#include <exception>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/codec/tiff.h"
#include "stoker/dataset/volume_kinds.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/interruption.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kMostPages = 1 << 20;
constexpr std::uint64_t kBandBytes = 256 << 10;  // decoded: strips are often of 8 KiB, too little for one read

// Directories are small and lie anywhere: a block around the last place serves most reads.
class SourceInput final : public codec::TiffInput {
 public:
  explicit SourceInput(const storage::Source& source)
      : source_(source), block_bytes_(source.backend() != nullptr ? 1 << 20 : 16 << 10) {}

  std::uint64_t size_bytes() const noexcept override { return source_.size_bytes(); }
  bool read(std::uint64_t offset, std::span<std::byte> into) noexcept override {
    try {
      if (into.size() > block_bytes_ / 2) {
        const storage::Read one{offset, into};
        source_.read({&one, 1});
        return true;
      }
      if (offset < begin_ || offset + into.size() > begin_ + block_.size()) {
        block_.resize(std::min<std::uint64_t>(block_bytes_, source_.size_bytes() - offset));
        begin_ = offset;
        const storage::Read one{offset, block_};
        source_.read({&one, 1});
      }
      std::copy_n(block_.begin() + static_cast<std::ptrdiff_t>(offset - begin_), into.size(), into.begin());
      return true;
    } catch (...) {
      error_ = std::current_exception();
      block_.clear();
      return false;
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const storage::Source& source_;
  std::uint64_t block_bytes_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> block_;
  std::exception_ptr error_;
};

struct Segment {
  std::uint64_t offset = 0, bytes = 0;
};

struct TiffFile {
  codec::TiffForm form;
  std::uint64_t pages = 0;
  std::vector<Segment> segments;    // of all pages, one after another
  std::uint64_t imagej_images = 0;  // that the first page says to hold; 0: it says nothing
};

std::string describe(const codec::TiffForm& form) {
  return fmt::format("{} x {} {}{}", form.height, form.width, name(form.dtype),
                     form.samples > 1 ? fmt::format(" x {}", form.samples) : std::string());
}

// The number behind `word` in a description; 0: it is not there.
std::uint64_t number_behind(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return 0;
  std::uint64_t number = 0;
  std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
  return number;
}

std::string description_of(SourceInput& input, const codec::TiffPage& page) {
  std::string text(std::min<std::uint64_t>(page.description_bytes, 16 << 10), '\0');
  if (!text.empty() && !input.read(page.description, std::as_writable_bytes(std::span(text)))) text.clear();
  return text;
}

// Pages of several channels or times would be taken for slices.
void refuse_hyperstack(std::string_view name, std::string_view description) {
  const bool is_imagej = description.starts_with("ImageJ=");
  if (!is_imagej && description.find("<OME") == std::string_view::npos) return;
  const std::uint64_t channels = number_behind(description, is_imagej ? "\nchannels=" : " SizeC=\"");
  const std::uint64_t times = number_behind(description, is_imagej ? "\nframes=" : " SizeT=\"");
  const std::uint64_t slices = number_behind(description, is_imagej ? "\nslices=" : " SizeZ=\"");
  // One axis alone is that of the slices, whatever it is called: programs that write stacks do not agree on its name.
  if ((channels > 1) + (times > 1) + (slices > 1) < 2) return;
  throw Error(ErrorKind::unsupported,
              fmt::format("cannot read `{}` as a volume: {} says that it is a hyperstack of {} channels and {} times",
                          name, is_imagej ? "ImageJ" : "OME-TIFF", std::max<std::uint64_t>(1, channels),
                          std::max<std::uint64_t>(1, times)),
              "save each channel and time as a file of its own");
}

TiffFile read_pages(const storage::Source& source, std::string_view name) {
  SourceInput input(source);
  Scratch scratch;
  codec::TiffHeader header;
  TiffFile file;
  const auto check = [&](const Result& result, std::uint64_t page) {
    if (result.ok()) return;
    input.rethrow();
    if (page == 0) refuse_volume(name, result);
    refuse_volume(fmt::format("{}, page {}", name, page), result);
  };
  check(codec::read_tiff_header(input, header), 0);
  std::unordered_set<std::uint64_t> seen;
  std::uint64_t number = 0, first = 0;
  for (std::uint64_t at = header.first; at != 0;) {
    storage::check_interruption();
    ++number;
    if (!seen.insert(at).second) check(failed(Code::corrupt, "its directories lead back to an earlier page"), number);
    if (number > kMostPages) check(failed(Code::unsupported, "more than a million pages"), number);
    scratch.reset();
    codec::TiffPage page;
    check(codec::read_tiff_page(input, header, at, page, scratch), number);
    at = page.next;
    if (page.is_reduced) continue;
    if (file.pages == 0) {
      file.form = page.form;
      const std::string description = description_of(input, page);
      refuse_hyperstack(name, description);
      // ImageJ writes stacks above 4 GiB as one page, whose description says how many follow it without a directory.
      if (description.starts_with("ImageJ=")) file.imagej_images = number_behind(description, "\nimages=");
      first = number;
    } else if (page.form.width != file.form.width || page.form.height != file.form.height ||
               page.form.dtype != file.form.dtype || page.form.samples != file.form.samples) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("cannot read `{}` as a volume: page {} is {}, and page {} is {}", name, first,
                              describe(file.form), number, describe(page.form)),
                  "all pages of a volume have one size and one element type");
    } else if (page.form != file.form) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("cannot read `{}` as a volume: pages {} and {} are compressed or tiled in different ways",
                              name, first, number));
    }
    ++file.pages;
    for (std::size_t i = 0; i < page.offsets.size(); ++i) file.segments.push_back({page.offsets[i], page.bytes[i]});
  }
  if (file.pages == 0) check(failed(Code::corrupt, "a TIFF without pages"), 0);
  return file;
}

// Where the pages lie, if they lie uncompressed and at equal distances.
struct PlainPages {
  std::uint64_t offset = 0, stride = 0;
};
std::optional<PlainPages> find_plain(const TiffFile& file) {
  if (file.form.packing != codec::TiffPacking::none || file.form.is_tiled) return std::nullopt;
  const std::uint64_t per_page = file.form.segments();
  PlainPages plain;
  for (std::uint64_t page = 0; page < file.pages; ++page) {
    const Segment* const segments = file.segments.data() + page * per_page;
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < per_page; ++i) {
      if (segments[i].offset != segments[0].offset + bytes) return std::nullopt;
      bytes += segments[i].bytes;
    }
    if (bytes < file.form.page_bytes()) return std::nullopt;
    if (page == 0) plain.offset = segments[0].offset;
    if (page == 1) {
      if (segments[0].offset < plain.offset + file.form.page_bytes()) return std::nullopt;
      plain.stride = segments[0].offset - plain.offset;
    }
    if (segments[0].offset != plain.offset + page * plain.stride) return std::nullopt;
  }
  return plain;
}

void describe_pages(const TiffFile& file, VolumeInfo& info) {
  info.dtype = file.form.dtype;
  info.extents = {file.pages, file.form.height, file.form.width};
  info.channels = file.form.samples;
  info.format = fmt::format("TIFF, {} page{}, {}{}", file.pages, file.pages == 1 ? "" : "s", name(file.form.packing),
                            file.form.is_tiled ? ", tiles" : "");
}

class TiffVolume final : public Volume {
 public:
  TiffVolume(std::string name, std::unique_ptr<storage::Source> source, TiffFile file)
      : name_(std::move(name)), source_(std::move(source)), file_(std::move(file)) {
    borrowed_ = source_.get();
    backend_ = source_->backend();
    info_.stored_bytes = source_->size_bytes();
    describe_pages(file_, info_);
    const codec::TiffForm& form = file_.form;
    band_ = strips_of_a_band();
    info_.chunk = {1, std::uint64_t{form.segment_height} * band_, form.segment_width};
    info_.working_bytes = codec::segment_working_bytes(form);
    if (info_.chunk_bytes() > codec::kMaxSegmentBytes) {
      refuse_volume(name_, failed(Code::too_large, "a strip or tile above 1 GiB"));
    }
  }

  const VolumeInfo& info() const noexcept override { return info_; }
  std::string_view name() const noexcept override { return name_; }

  storage::Location locate_chunk(std::uint64_t chunk, std::span<char>) const noexcept override {
    const std::span<const Segment> segments = segments_of(chunk);
    const Segment whole = cover(segments);
    return storage::Location::in_source(borrowed_, whole.offset, whole.bytes);
  }

  Result decode_chunk(std::uint64_t chunk, codec::Bytes encoded, std::byte* into,
                      Scratch& scratch) const noexcept override {
    const codec::TiffForm& form = file_.form;
    const std::span<const Segment> segments = segments_of(chunk);
    const Segment whole = cover(segments);
    if (encoded.size() != whole.bytes) return failed(Code::truncated, "fewer bytes than the directory says");
    const std::uint64_t in_page = chunk % info_chunks_per_page();
    std::uint64_t row = in_page / form.across() * info_.chunk[1];
    for (const Segment& segment : segments) {
      const std::uint64_t left = form.is_tiled ? form.segment_height : form.height - row;
      const auto rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, form.segment_height));
      const codec::Bytes bytes =
          segment.bytes == 0 ? codec::Bytes() : encoded.subspan(segment.offset - whole.offset, segment.bytes);
      if (Result result = codec::decode_segment(form, rows, bytes, into, scratch); !result.ok()) {
        result.offset = segment.offset;
        return result;
      }
      into += form.segment_bytes();
      row += rows;
    }
    return {};
  }

  std::string chunk_name(std::uint64_t chunk) const override {
    const std::uint64_t page = chunk / info_chunks_per_page(), in_page = chunk % info_chunks_per_page();
    const char* const what = file_.form.is_tiled ? "tile" : band_ > 1 ? "band" : "strip";
    return fmt::format("{} {} of page {} of `{}`", what, in_page + 1, page + 1, name_);
  }
  std::span<const storage::Source* const> sources() const noexcept override { return {&borrowed_, 1}; }
  std::span<const storage::Backend* const> backends() const noexcept override {
    return {&backend_, backend_ != nullptr ? 1u : 0u};
  }
  std::uint64_t memory_bytes() const noexcept override { return file_.segments.capacity() * sizeof(Segment); }

 private:
  // The range that holds all of them; 0 bytes: none is there.
  static Segment cover(std::span<const Segment> segments) noexcept {
    std::uint64_t begin = ~std::uint64_t{0}, end = 0;
    for (const Segment& segment : segments) {
      if (segment.bytes == 0) continue;
      begin = std::min(begin, segment.offset);
      end = std::max(end, segment.offset + segment.bytes);
    }
    return end == 0 ? Segment{} : Segment{begin, end - begin};
  }

  // As many strips as make a band of kBandBytes, if every band lies together in the file.
  std::uint64_t strips_of_a_band() const noexcept {
    const codec::TiffForm& form = file_.form;
    if (form.is_tiled) return 1;
    const std::uint64_t per_page = form.segments();
    const std::uint64_t band =
        std::clamp<std::uint64_t>(kBandBytes / std::max<std::uint64_t>(form.segment_bytes(), 1), 1, per_page);
    if (band == 1) return 1;
    for (std::uint64_t page = 0; page < file_.pages; ++page) {
      for (std::uint64_t i = 0; i < per_page; i += band) {
        const std::span<const Segment> part =
            std::span(file_.segments).subspan(page * per_page + i, std::min(band, per_page - i));
        std::uint64_t bytes = 0;
        for (const Segment& segment : part) bytes += segment.bytes;
        if (cover(part).bytes > bytes + bytes / 8 + 512) return 1;
      }
    }
    return band;
  }

  std::uint64_t info_chunks_per_page() const noexcept { return info_.grid()[1] * info_.grid()[2]; }

  std::span<const Segment> segments_of(std::uint64_t chunk) const noexcept {
    const std::uint64_t per_page = file_.form.segments();
    const std::uint64_t page = chunk / info_chunks_per_page(), first = chunk % info_chunks_per_page() * band_;
    return std::span(file_.segments).subspan(page * per_page + first, std::min(band_, per_page - first));
  }

  std::string name_;
  std::unique_ptr<storage::Source> source_;
  const storage::Source* borrowed_ = nullptr;
  const storage::Backend* backend_ = nullptr;
  TiffFile file_;
  std::uint64_t band_ = 1;  // strips
  VolumeInfo info_;
};

}  // namespace

std::unique_ptr<Volume> open_tiff_volume(const std::string& address, const VolumeOptions& options) {
  std::unique_ptr<storage::Source> source = open_plain_source(address, options.storage);
  TiffFile file = read_pages(*source, address);
  std::optional<PlainPages> plain = find_plain(file);
  const std::uint64_t page_bytes = file.form.page_bytes();
  if (plain && file.pages == 1 && file.imagej_images > 1 &&
      (source->size_bytes() - plain->offset) / page_bytes >= file.imagej_images) {
    file.pages = file.imagej_images;
    plain->stride = page_bytes;
  }
  if (!plain) {
    // Strips and tiles of a mapped file would be read page by page; a fetcher reads them better.
    if (options.storage == storage::Storage::automatic && source->backend() == nullptr) {
      source = storage::open_source(address, storage::settle(options.storage, source->size_bytes()));
    }
    return std::make_unique<TiffVolume>(address, std::move(source), std::move(file));
  }
  PlainParts parts;
  parts.name = address;
  parts.info.stored_bytes = source->size_bytes();
  describe_pages(file, parts.info);
  parts.source = std::move(source);
  parts.offset = plain->offset;
  parts.page_stride_bytes = plain->stride;
  parts.swap_bytes = file.form.swap_bytes;
  return make_plain_volume(std::move(parts));
}

}  // namespace stoker::dataset
