#include "stoker/loader/image_kind.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/codec/exif.h"

namespace stoker::loader {
namespace {

constexpr std::uint32_t kMaxViews = 64;
constexpr std::uint64_t kTimedOneIn = 16;  // samples: two readings of the clock for each pass take about 0.1 us
// Elements of a row of an array that is made in microseconds, so that handing over each on its own would cost as much:
// 32 x 32 RGB, cropped and flipped, takes 2 us.
constexpr std::uint64_t kSmallRow = 16 * 1024;

// What the codec is asked for, but for the depth: the plan decides that.
codec::ImageOptions decoding(const LoaderOptions& options) {
  codec::ImageOptions decoding;
  decoding.color = options.color;
  decoding.fast = options.decode == Decode::fast;
  return decoding;
}

transform::ImageInput input_of_row(const codec::ArrayInfo& row) {
  transform::ImageInput input;
  input.height = static_cast<std::uint32_t>(row.shape[0]);
  input.width = static_cast<std::uint32_t>(row.shape[1]);
  input.channels = row.rank == 3 ? static_cast<std::uint8_t>(row.shape[2]) : 1;
  input.bits = row.dtype == DType::u16 ? 16 : 8;
  input.keeps_bits = true;
  return input;
}

transform::ImageInput input_of_file(const FirstSample& first, const LoaderOptions& options) {
  const codec::ImageInfo& info = first.head.image;
  transform::ImageInput input;
  input.width = info.width, input.height = info.height;
  if (options.exif_orientation && codec::exchanges_sides(codec::exif_orientation(first.head.media, first.bytes))) {
    std::swap(input.width, input.height);
  }
  input.bits = info.bits;
  input.keeps_bits = options.color == codec::Color::keep;
  input.channels = codec::output_channels(info, decoding(options));
  return input;
}

// The smallest rectangle that holds both.
Rect around(const Rect& a, const Rect& b) noexcept {
  const std::uint32_t x = std::min(a.x, b.x), y = std::min(a.y, b.y);
  return {x, y, std::max(a.x + a.width, b.x + b.width) - x, std::max(a.y + a.height, b.y + b.height) - y};
}

}  // namespace

// What every view drew. Zeroing room for kMaxViews took longer than drawing the one view that most jobs have, so each
// is constructed when its view draws.
class ViewDraws {
 public:
  ViewDraws() noexcept {}  // NOLINT: leaves `all_` as it is
  transform::Draw& construct(std::uint32_t view) noexcept { return *std::construct_at(&all_[view]); }
  const transform::Draw& operator[](std::uint32_t view) const noexcept { return all_[view]; }

 private:
  static_assert(std::is_trivially_destructible_v<transform::Draw>);
  union {
    transform::Draw all_[kMaxViews];
  };
};

struct ImageKind::Sample {
  codec::Bytes bytes;
  codec::Media media;
  codec::ImageInfo info;
  codec::Orientation orientation = codec::Orientation::upright;
  std::uint32_t width = 0, height = 0;  // upright, as views see it

  ViewDraws draws;
  bool fast = false;             // views are made with approximations
  std::uint32_t scale = 1;       // the decoder makes the image smaller by this
  Rect region;                   // upright: what some view needs
  std::uint64_t view_bytes = 0;  // of the scratch: each view takes its working memory again

  Pixels pixels;                   // upright
  transform::Placement placement;  // of the pixels in the image
};

bool ImageKind::takes(const codec::ArrayInfo& row, const transform::Ops& ops) noexcept {
  const bool is_flat = row.rank == 2 || (row.rank == 3 && (row.shape[2] == 1 || row.shape[2] == 3));
  if (!is_flat || (row.dtype != DType::u8 && row.dtype != DType::u16)) return false;
  return std::any_of(ops.begin(), ops.end(), [](const transform::Op& op) {  // one that only images have
    return !std::holds_alternative<transform::ToFloat>(op.what) && !transform::is_for_audio(op);
  });
}

ImageKind::ImageKind(const FirstSample& first, const LoaderOptions& options)
    : options_(decoding(options)),
      exif_orientation_(options.exif_orientation),
      keeps_bits_(options.color == codec::Color::keep && options.output.dtype != DType::u8),
      plan_(transform::ImagePlan::compile(
          options.transform, first.row ? input_of_row(*first.row) : input_of_file(first, options), options.output)),
      decoding_(1),
      transforming_(plan_.pass_count()) {
  const transform::ImageInput& input = plan_.input();
  const auto outputs = plan_.outputs();
  if (outputs.size() > kMaxOutputs || plan_.view_count() > kMaxViews) {
    throw Error(ErrorKind::usage, fmt::format("Views has {} groups and {} views; the most are {} and {}",
                                              outputs.size(), plan_.view_count(), kMaxOutputs, kMaxViews));
  }
  options_.deep = plan_.deep();
  if (first.row) {
    row_pixels_ = {nullptr, 0, input.width, input.height, input.channels, first.row->dtype};
    row_pixels_.stride_bytes = row_pixels_.row_bytes();
  } else {
    facts_.seekable_mcus = codec::seekable_mcus(first.bytes);
  }
  facts_.kind = SampleKind::image;
  facts_.outputs.assign(outputs.begin(), outputs.end());
  facts_.description = plan_.describe();
  facts_.columns.assign(plan_.columns().begin(), plan_.columns().end());
  const std::uint64_t image = std::uint64_t{input.width} * input.height * input.channels;
  facts_.is_heavy = !first.row || image > kSmallRow;
  const transform::Output& output = outputs.front();
  const std::size_t rows_at = output.layout == transform::Layout::nhwc ? 0 : 1;
  facts_.height = static_cast<std::uint32_t>(output.shape[rows_at]);
  facts_.width = static_cast<std::uint32_t>(output.shape[rows_at + 1]);
  facts_.channels = input.channels;
  // The decoded image, its resized rows, and libjpeg's own working memory, for the first sample.
  facts_.scratch_estimate = (exif_orientation_ ? 4 : 3) * image * (options_.deep ? 2 : 1);
}

std::vector<transform::Pass> ImageKind::passes() const {
  const transform::ImageInput& input = plan_.input();
  const std::uint64_t pixels = std::uint64_t{input.width} * input.height * input.channels;
  const bool is_row = row_pixels_.channels != 0;
  std::vector<transform::Pass> all(1);
  all[0].operations = {is_row ? "read" : "decode"};
  all[0].scratch_bytes = is_row ? 0 : pixels * (options_.deep ? 2 : 1);
  decoding_.tell(all);
  std::vector<transform::Pass> made = plan_.passes();
  transforming_.tell(made);
  all.insert(all.end(), made.begin(), made.end());
  return all;
}

RowResult ImageKind::measure(codec::Bytes, std::uint64_t&) const noexcept {
  return {};  // rows do not vary
}

RowResult ImageKind::make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t&, Scratch& scratch,
                          SeekStore* seek) const noexcept {
  const bool is_row = row_pixels_.channels != 0;
  Sample sample;
  sample.bytes = bytes;
  if (const Result result = read_head(sample); !result.ok()) return bad(result);
  // Every view draws before anything is decoded, so that only what some view needs is.
  if (const Result result = draw_views(key, sample); !result.ok()) return bad(result, "transform");
  choose_scale(sample);
  choose_region(sample);
  const bool is_timed = (key.id ^ key.epoch) % kTimedOneIn == 0;  // other samples in the next epoch
  RowResult row;
  {
    const transform::PassTimes::Here here(is_timed ? &decoding_ : nullptr);
    const transform::PassTimer timer(0);
    row = is_row ? bad(take_row(sample, scratch), "transform") : bad(decode(sample, scratch, seek));
  }
  const transform::PassTimes::Here here(is_timed ? &transforming_ : nullptr);
  if (row.result.ok()) row = bad(apply_views(sample, key, slot, scratch), "transform");
  if (row.result.code == Code::no_memory) row.most_bytes = most_bytes(sample);
  return row;
}

// The working memory that is enough whatever is drawn: for the whole image, and for views of all of it.
std::uint64_t ImageKind::most_bytes(const Sample& sample) const noexcept {
  const Rect whole{0, 0, sample.width, sample.height};
  std::uint64_t view_bytes = sample.view_bytes;
  for (std::uint32_t view = 0; view < plan_.view_count(); ++view) {
    transform::Draw draw = sample.draws[view];
    draw.crop = draw.steps[0] = whole;
    view_bytes = std::max(view_bytes, plan_.working_bytes(view, draw));
  }
  if (row_pixels_.channels != 0) return view_bytes;
  Pixels pixels = sample.pixels;
  pixels.width = sample.width, pixels.height = sample.height;
  const std::uint64_t pixel_bytes = Scratch::rounded(pixels.row_bytes() * pixels.height);
  const bool turns = sample.orientation != codec::Orientation::upright;
  return pixel_bytes + std::max(sample.info.working_bytes, (turns ? pixel_bytes : 0) + view_bytes);
}

Result ImageKind::read_head(Sample& sample) const noexcept {
  if (row_pixels_.channels != 0) {
    sample.info.width = row_pixels_.width, sample.info.height = row_pixels_.height;
  } else {
    sample.media = codec::sniff(sample.bytes);
    if (const Result result = codec::probe_image(sample.media, sample.bytes, sample.info); !result.ok()) return result;
    if ((options_.deep || keeps_bits_) && sample.info.bits != plan_.input().bits) {
      return failed(Code::mismatch, "another number of bits per channel than the first image", Remedy::one_color);
    }
    if (exif_orientation_) sample.orientation = codec::exif_orientation(sample.media, sample.bytes);
  }
  sample.width = sample.info.width, sample.height = sample.info.height;
  if (codec::exchanges_sides(sample.orientation)) std::swap(sample.width, sample.height);
  return {};
}

Result ImageKind::draw_views(const SampleKey& key, Sample& sample) const noexcept {
  for (std::uint32_t view = 0; view < plan_.view_count(); ++view) {
    Random random(key.seed, key.epoch, key.id, view);
    const Result result = plan_.draw(view, sample.width, sample.height, random, sample.draws.construct(view));
    if (!result.ok()) return result;
  }
  return {};
}

// The most by which every view shrinks the image, where the decoder can do that.
void ImageKind::choose_scale(Sample& sample) const noexcept {
  sample.fast = options_.fast && !options_.deep;
  if (!sample.fast || !codec::is_scaled(sample.media)) return;
  sample.scale = 8;
  for (std::uint32_t view = 0; view < plan_.view_count(); ++view) {
    sample.scale = std::min(sample.scale, plan_.most_scale(view, sample.draws[view]));
  }
}

void ImageKind::choose_region(Sample& sample) const noexcept {
  for (std::uint32_t view = 0; view < plan_.view_count(); ++view) {
    const transform::Draw& draw = sample.draws[view];
    const Rect crop = plan_.crop_at(view, draw, sample.scale);
    sample.region = view == 0 ? crop : around(sample.region, crop);
    sample.view_bytes = std::max(sample.view_bytes, plan_.working_bytes(view, draw, sample.scale));
  }
}

Result ImageKind::take_row(Sample& sample, Scratch& scratch) const noexcept {
  if (!scratch.expect(sample.view_bytes)) return kNoRoom;
  sample.pixels = row_pixels_;
  sample.pixels.data = const_cast<std::byte*>(sample.bytes.data());  // read only from here on
  sample.region = {0, 0, sample.width, sample.height};
  return {};
}

Result ImageKind::decode(Sample& sample, Scratch& scratch, SeekStore* seek) const noexcept {
  const codec::ImageInfo& info = sample.info;
  codec::ImageOptions options = options_;
  options.scale = sample.scale;
  const Rect stored = codec::stored_rect(sample.orientation, sample.region, info.width, info.height);
  const Rect decoded = codec::decoded_region(sample.media, options, stored);
  Pixels& pixels = sample.pixels;
  pixels.width = decoded.width, pixels.height = decoded.height;
  pixels.channels = codec::output_channels(info, options);
  pixels.dtype = options.deep ? DType::u16 : DType::u8;
  pixels.stride_bytes = pixels.row_bytes();
  if (pixels.channels != plan_.input().channels) {
    return failed(Code::mismatch, "another number of channels than the first image", Remedy::one_color);
  }
  const std::uint64_t pixel_bytes = Scratch::rounded(pixels.stride_bytes * pixels.height);
  const bool turns = sample.orientation != codec::Orientation::upright;
  const std::uint64_t after_decoding = (turns ? pixel_bytes : 0) + sample.view_bytes;
  if (!scratch.expect(pixel_bytes + std::max(info.working_bytes, after_decoding))) return kNoRoom;
  pixels.data = scratch.take(pixels.stride_bytes * pixels.height).data();
  if (pixels.data == nullptr) return kNoRoom;

  const Scratch::Mark mark = scratch.mark();
  SeekStore::Lease lease;
  const bool crops = stored.width < info.width || stored.height < info.height;
  if (seek != nullptr && crops && codec::is_seekable(sample.media)) seek->lease(sample.bytes, lease);
  const Result result =
      codec::decode_image(sample.media, sample.bytes, options, stored, pixels, scratch, lease.index());
  if (!result.ok()) return result;
  scratch.rewind(mark);

  const std::int64_t scale = sample.scale;
  const codec::StoredArea area{scale * decoded.x, scale * decoded.y, scale * (std::int64_t{decoded.x} + decoded.width),
                               scale * (std::int64_t{decoded.y} + decoded.height)};
  const codec::Corner corner = codec::upright_corner(sample.orientation, area, info.width, info.height);
  sample.placement = {corner.x, corner.y, sample.scale};
  return turns ? turn_upright(sample, scratch) : Result{};
}

Result ImageKind::turn_upright(Sample& sample, Scratch& scratch) const noexcept {
  const Pixels from = sample.pixels;
  Pixels& pixels = sample.pixels;
  if (codec::exchanges_sides(sample.orientation)) std::swap(pixels.width, pixels.height);
  pixels.stride_bytes = pixels.row_bytes();
  pixels.data = scratch.take(pixels.stride_bytes * pixels.height).data();
  if (pixels.data == nullptr) return kNoRoom;
  codec::turn_upright(sample.orientation, from, pixels);
  return {};
}

Result ImageKind::apply_views(const Sample& sample, const SampleKey& key, const Slot& slot,
                              Scratch& scratch) const noexcept {
  const Scratch::Mark mark = scratch.mark();
  for (std::size_t o = 0; o < facts_.outputs.size(); ++o) {
    const transform::Output& output = facts_.outputs[o];
    for (std::uint32_t i = 0; i < output.views; ++i) {
      const std::uint32_t view = output.first_view + i;
      const transform::Draw& draw = sample.draws[view];
      std::byte* const into = slot.outputs[o] + i * output.view_bytes;
      scratch.rewind(mark);
      const Result result = sample.fast
                                ? plan_.apply_fast(view, draw, sample.pixels, sample.placement, into, scratch)
                                : plan_.apply(view, draw, sample.pixels, sample.region, key.values, into, scratch);
      if (!result.ok()) return result;
    }
  }
  return {};
}

}  // namespace stoker::loader
