#include "stoker/loader/recipe.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/codec/exif.h"
#include "stoker/codec/whole.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/transform/copy.h"

namespace stoker::loader {
namespace {

using codec::Bytes;
using codec::Media;

// Until one can be read: the first ones, then, where bad samples do not end the run, some all over the data set.
constexpr std::uint64_t kFirstLooks = 16, kMostLooks = 256;
constexpr std::uint32_t kMaxViews = 64;
constexpr Result kNoRoom = failed(Code::no_memory, "no working memory for it");

Verdict bad(Result result, const char* stage = "decode") noexcept {
  return {result, stage};
}

// Operations that only pictures have: with one of them, rows of a uint8 or uint16 .npy are pictures.
bool wants_pictures(const transform::Ops& ops) {
  return std::any_of(ops.begin(), ops.end(), [](const transform::Op& op) {
    return !std::holds_alternative<transform::ToFloat>(op.what) &&
           !std::holds_alternative<transform::PadOrTrim>(op.what) &&
           !std::holds_alternative<transform::Resample>(op.what) && !std::holds_alternative<transform::Mono>(op.what);
  });
}

constexpr std::size_t kArraysNamed = 4;

// Names the arrays that are left out of a file of several; empty where there is one.
std::string note_on_arrays(const std::string& name, Media media, Bytes bytes) {
  std::array<std::string_view, kArraysNamed> names;
  const std::size_t count = codec::list_arrays(media, bytes, names);
  if (count < 2) return {};
  std::string others;
  for (std::size_t i = 1; i < std::min(count, kArraysNamed); ++i)
    others += fmt::format("{}`{}`", others.empty() ? "" : ", ", names[i]);
  if (count > kArraysNamed) others += fmt::format(" and {} more", count - kArraysNamed);
  return fmt::format("`{}` holds {} arrays: only the first, `{}`, is loaded; left out: {}", name, count, names[0],
                     others);
}

std::uint64_t product(std::span<const std::uint64_t> dims) {
  std::uint64_t n = 1;
  for (const std::uint64_t d : dims) n *= d;
  return n;
}

}  // namespace

Recipe::Recipe(const dataset::Dataset& dataset, const LoaderOptions& options) {
  if (options.decode == Decode::none) {
    if (!options.transform.empty()) {
      throw Error(ErrorKind::usage,
                  "a transform cannot follow a decoder of your own: its result is not known to Stoker",
                  "transform in your decode function, or in batch_transform");
    }
    outputs_.push_back({.name = "data", .dtype = DType::u8, .shape = {0}, .views = 1, .view_bytes = 0, .varies = true});
    varies_ = has_lengths_ = true;
    return;
  }
  transform::Input input;
  look(dataset, options, input);
  plan_ = transform::Plan::compile(options.transform, input, options.output);
  outputs_.assign(plan_->outputs().begin(), plan_->outputs().end());
  if (outputs_.size() > kMaxOutputs || plan_->view_count() > kMaxViews) {
    throw Error(ErrorKind::usage, fmt::format("Views has {} groups and {} views; the most are {} and {}",
                                              outputs_.size(), plan_->view_count(), kMaxOutputs, kMaxViews));
  }
  varies_ = outputs_.front().varies;
  if (input.kind == SampleKind::audio) first_length_ = plan_->output_frames(first_length_, input.rate_hz);
  has_lengths_ = input.kind == SampleKind::audio;
  is_copy_ = input.kind == SampleKind::array && rows_of_array_ && plan_->array_is_copy();
  is_heavy_ = input.kind == SampleKind::image;
  image_options_.deep = plan_->deep();
  if (input.kind == SampleKind::image) {
    // The decoded picture, its resized rows, and libjpeg's own working memory, for the first sample.
    const std::uint64_t picture = std::uint64_t{input.width} * input.height * input.channels;
    scratch_estimate_ = (exif_orientation_ ? 4 : 3) * picture * (image_options_.deep ? 2 : 1);
  }
}

void Recipe::look(const dataset::Dataset& dataset, const LoaderOptions& options, transform::Input& input) {
  image_options_.color = options.color;
  keeps_bits_ = options.color == codec::Color::keep && options.output.dtype != DType::u8;
  image_options_.fast = options.decode == Decode::fast;
  exif_orientation_ = options.exif_orientation;
  if (dataset.facts().array) {
    const codec::ArrayInfo& whole = *dataset.facts().array;
    rows_of_array_ = true;
    row_ = whole;
    row_.rank = static_cast<std::uint8_t>(whole.rank - 1);
    for (std::size_t i = 0; i + 1 < whole.rank; ++i) row_.shape[i] = whole.shape[i + 1];
    row_.data_bytes = product(row_.dims()) * size_of(row_.dtype);
    input.dtype = row_.dtype;
    input.shape.assign(row_.dims().begin(), row_.dims().end());
    input.kind = SampleKind::array;
    const bool flat = row_.rank == 2 || (row_.rank == 3 && (row_.shape[2] == 1 || row_.shape[2] == 3));
    if (flat && (row_.dtype == DType::u8 || row_.dtype == DType::u16) && wants_pictures(options.transform)) {
      input.kind = SampleKind::image;
      input.height = static_cast<std::uint32_t>(row_.shape[0]);
      input.width = static_cast<std::uint32_t>(row_.shape[1]);
      input.channels = row_.rank == 3 ? static_cast<std::uint8_t>(row_.shape[2]) : 1;
      input.bits = row_.dtype == DType::u16 ? 16 : 8;
      input.keeps_bits = true;
      row_pixels_ = {nullptr, 0, input.width, input.height, input.channels, row_.dtype};
      row_pixels_.stride_bytes = row_pixels_.row_bytes();
    }
    return;
  }
  std::string first_problem;
  bool is_limit_too_low = false;
  Budget budget(options.memory_limit);  // nothing else is held yet
  Scratch scratch(&budget);
  const std::uint64_t looks =
      std::min(dataset.size(), options.on_error == OnError::raise ? kFirstLooks : kMostLooks);
  for (std::uint64_t look = 0; look < looks; ++look) {
    const std::uint64_t i =
        look < kFirstLooks ? look
                           : kFirstLooks + (look - kFirstLooks) * (dataset.size() - kFirstLooks) / (looks - kFirstLooks);
    scratch.reset();
    const storage::WholeRead sample = dataset::read_sample(dataset, i, scratch);
    Result result;
    if (sample.state == storage::WholeRead::State::no_room) {
      result = failed(Code::no_memory, "it is larger than memory_limit");
    } else if (!sample.ok()) {
      result = failed(Code::io, sample.failure.text.c_str());
    } else {
      codec::Head head;
      result = codec::probe(sample.bytes, head, scratch);
      const Media media = head.media;
      const std::optional<SampleKind> kind = codec::kind_of(media);
      if (kind) input.kind = *kind;
      if (kind == SampleKind::image) {
        const codec::ImageInfo& info = head.image;
        input.width = info.width, input.height = info.height;
        if (exif_orientation_ && codec::exchanges_sides(codec::exif_orientation(media, sample.bytes))) {
          std::swap(input.width, input.height);
        }
        input.bits = info.bits;
        input.keeps_bits = options.color == codec::Color::keep;
        input.channels = codec::output_channels(info, image_options_);
        seekable_mcus_ = codec::seekable_mcus(sample.bytes);
      } else if (kind == SampleKind::audio) {
        const codec::AudioInfo& info = head.audio;
        input.audio_channels = info.channels, input.rate_hz = info.rate_hz;
        first_length_ = info.frames;
        first_bytes_ = std::max<std::uint64_t>(1, sample.bytes.size());
      } else if (kind == SampleKind::array) {
        const codec::ArrayInfo& info = head.array;
        input.dtype = info.dtype;
        input.shape.assign(info.dims().begin(), info.dims().end());
        row_ = info;
        npz_note_ = note_on_arrays(dataset.name(i), media, sample.bytes);
      }
    }
    look_bytes_ = budget.peak_bytes();
    if (result.ok()) return;
    is_limit_too_low |= result.code == Code::no_memory;
    if (first_problem.empty()) first_problem = fmt::format("`{}`: {}", dataset.name(i), result.cause);
  }
  if (dataset.size() == 0) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot tell what `{}` holds: no sample of it is selected", dataset.facts().address),
                "select at least one sample");
  }
  throw Error(
      ErrorKind::corrupt,
      fmt::format("cannot tell what `{}` holds: none of {} samples can be read; {}", dataset.facts().address, looks,
                  first_problem),
      is_limit_too_low ? "raise memory_limit: it does not hold one sample" : "look at it with `stoker inspect`");
}

std::uint64_t Recipe::length_of(std::uint64_t bytes) const noexcept {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) / static_cast<double>(first_bytes_) *
                                    static_cast<double>(first_length_));
}

std::vector<std::string> Recipe::notes() const {
  std::vector<std::string> notes;
  if (!npz_note_.empty()) {
    notes.push_back(npz_note_);
  } else if (left_arrays_out_.load(std::memory_order_relaxed)) {
    notes.emplace_back("some .npz files hold several arrays: only the first of each is loaded");
  }
  return notes;
}

std::uint64_t Recipe::row_bytes(std::size_t output, std::uint64_t length) const noexcept {
  const transform::Output& o = outputs_[output];
  if (!o.varies) return std::uint64_t{o.views} * o.view_bytes;
  const std::uint64_t channels = plan_ && plan_->output_channels() > 1 ? plan_->output_channels() : 1;
  return channels * length * size_of(o.dtype);
}

Verdict Recipe::measure(Bytes bytes, std::uint64_t& length) const noexcept {
  if (!plan_) {
    length = bytes.size();
    return {};
  }
  codec::AudioInfo info;
  if (const Result result = codec::probe_audio(codec::sniff(bytes), bytes, info); !result.ok()) return bad(result);
  if (const Result result = plan_->check_audio(info.channels, info.rate_hz); !result.ok())
    return bad(result, "transform");
  length = plan_->output_frames(info.frames, info.rate_hz);
  return {};
}

Verdict Recipe::make(Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t& length, Scratch& scratch,
                     SeekStore* seek) const noexcept {
  if (!plan_) {
    if (bytes.size() > slot.length) return bad(failed(Code::too_large, "longer than its row of the batch"));
    std::memcpy(slot.outputs[0], bytes.data(), bytes.size());
    std::memset(slot.outputs[0] + bytes.size(), 0, slot.length - bytes.size());
    length = bytes.size();
    return {};
  }
  if (bytes.empty()) return bad(failed(Code::truncated, "the file is empty", 0));
  switch (plan_->input().kind) {
    case SampleKind::image:
      return make_image(bytes, key, slot, scratch, seek);
    case SampleKind::audio:
      return make_audio(bytes, slot, length, scratch);
    case SampleKind::array:
      return make_array(bytes, slot, scratch);
  }
  return {};
}

Verdict Recipe::make_image(Bytes bytes, const SampleKey& key, const Slot& slot, Scratch& scratch,
                           SeekStore* seek) const noexcept {
  Media media;
  codec::ImageInfo info;
  codec::Orientation orientation = codec::Orientation::upright;
  if (rows_of_array_) {
    info.width = row_pixels_.width, info.height = row_pixels_.height;
  } else {
    media = codec::sniff(bytes);
    if (const Result result = codec::probe_image(media, bytes, info); !result.ok()) return bad(result);
    if ((image_options_.deep || keeps_bits_) && info.bits != plan_->input().bits) {
      return bad(failed(Code::mismatch,
                        "another number of bits per channel than the first picture; use color=\"rgb\" or \"gray\""));
    }
    if (exif_orientation_) orientation = codec::exif_orientation(media, bytes);
  }

  // Every view draws first, so that only what some view needs is decoded. Views see the picture upright.
  std::uint32_t width = info.width, height = info.height;
  if (codec::exchanges_sides(orientation)) std::swap(width, height);
  const std::uint32_t views = plan_->view_count();
  std::array<transform::Draw, kMaxViews> draws;
  Rect region;
  for (std::uint32_t view = 0; view < views; ++view) {
    Random random(key.seed, key.epoch, key.id, view);
    const Result result = plan_->draw(view, width, height, random, draws[view]);
    if (!result.ok()) return bad(result, "transform");
  }
  codec::ImageOptions options = image_options_;
  const bool fast = options.fast && !options.deep;
  if (fast && codec::is_scaled(media)) {
    options.scale = 8;
    for (std::uint32_t view = 0; view < views; ++view) {
      options.scale = std::min(options.scale, plan_->most_scale(view, draws[view]));
    }
  }
  for (std::uint32_t view = 0; view < views; ++view) {
    const Rect crop = plan_->crop_at(view, draws[view], options.scale);
    if (view == 0) {
      region = crop;
    } else {
      const std::uint32_t right = std::max(region.x + region.width, crop.x + crop.width);
      const std::uint32_t bottom = std::max(region.y + region.height, crop.y + crop.height);
      region.x = std::min(region.x, crop.x), region.y = std::min(region.y, crop.y);
      region.width = right - region.x, region.height = bottom - region.y;
    }
  }

  std::uint64_t view_bytes = 0;  // each view takes its working memory anew
  for (std::uint32_t view = 0; view < views; ++view) {
    view_bytes = std::max(view_bytes, plan_->working_bytes(view, draws[view], fast ? options.scale : 1));
  }
  Pixels pixels;
  transform::Placement placement;
  if (rows_of_array_) {
    if (!scratch.expect(view_bytes)) return bad(kNoRoom, "transform");
    pixels = row_pixels_;
    pixels.data = const_cast<std::byte*>(bytes.data());  // read only from here on
    region = {0, 0, info.width, info.height};
  } else {
    const Rect stored = codec::stored_rect(orientation, region, info.width, info.height);
    const Rect decoded = codec::decoded_region(media, options, stored);
    pixels.width = decoded.width, pixels.height = decoded.height;
    pixels.channels = codec::output_channels(info, image_options_);
    if (pixels.channels != plan_->input().channels) {
      return bad(
          failed(Code::mismatch, "another number of channels than the first picture; use color=\"rgb\" or \"gray\""));
    }
    pixels.dtype = image_options_.deep ? DType::u16 : DType::u8;
    pixels.stride_bytes = pixels.row_bytes();
    const std::uint64_t pixel_bytes = Scratch::rounded(pixels.stride_bytes * pixels.height);
    const bool turns = orientation != codec::Orientation::upright;
    const std::uint64_t after_decoding = (turns ? pixel_bytes : 0) + view_bytes;
    if (!scratch.expect(pixel_bytes + std::max(info.working_bytes, after_decoding))) return bad(kNoRoom);
    const std::span<std::byte> memory = scratch.take(pixels.stride_bytes * pixels.height);
    if (memory.empty()) return bad(kNoRoom);
    pixels.data = memory.data();
    const Scratch::Mark decoding = scratch.mark();
    SeekStore::Lease lease;
    const bool crops = stored.width < info.width || stored.height < info.height;
    if (seek != nullptr && crops && codec::is_seekable(media)) seek->lease(bytes, lease);
    const Result result = codec::decode_image(media, bytes, options, stored, pixels, scratch, lease.index());
    if (!result.ok()) return bad(result);
    scratch.rewind(decoding);
    if (turns) {
      const Pixels from = pixels;
      if (codec::exchanges_sides(orientation)) std::swap(pixels.width, pixels.height);
      pixels.stride_bytes = pixels.row_bytes();
      pixels.data = scratch.take(pixels.stride_bytes * pixels.height).data();
      if (pixels.data == nullptr) return bad(kNoRoom);
      codec::turn_upright(orientation, from, pixels);
    }
    const std::int64_t scale = options.scale;
    const codec::Corner corner =
        codec::upright_corner(orientation,
                              {scale * decoded.x, scale * decoded.y, scale * (std::int64_t{decoded.x} + decoded.width),
                               scale * (std::int64_t{decoded.y} + decoded.height)},
                              info.width, info.height);
    placement = {corner.x, corner.y, options.scale};
  }

  const Scratch::Mark mark = scratch.mark();
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    const transform::Output& output = outputs_[o];
    for (std::uint32_t i = 0; i < output.views; ++i) {
      const std::uint32_t view = output.first_view + i;
      scratch.rewind(mark);
      std::byte* const into = slot.outputs[o] + i * output.view_bytes;
      const Result result = fast ? plan_->apply_fast(view, draws[view], pixels, placement, into, scratch)
                                 : plan_->apply(view, draws[view], pixels, region, key.hu_offset, into, scratch);
      if (!result.ok()) return bad(result, "transform");
    }
  }
  return {};
}

Verdict Recipe::make_audio(Bytes bytes, const Slot& slot, std::uint64_t& length, Scratch& scratch) const noexcept {
  codec::AudioInfo info;
  const Media media = codec::sniff(bytes);
  if (const Result result = codec::probe_audio(media, bytes, info); !result.ok()) return bad(result);
  if (const Result result = plan_->check_audio(info.channels, info.rate_hz); !result.ok())
    return bad(result, "transform");
  const std::uint64_t room = varies_ ? slot.length : plan_->output_frames(info.frames, info.rate_hz);
  if (plan_->audio_is_direct()) {
    length = std::min(info.frames, room);
    float* const into = reinterpret_cast<float*>(slot.outputs[0]);
    if (const Result result = codec::decode_audio(media, bytes, info, 0, length, into, room); !result.ok())
      return bad(result);
    for (std::uint32_t c = 0; c < info.channels; ++c) {
      std::memset(into + c * room + length, 0, (room - length) * sizeof(float));
    }
    return {};
  }
  if (plan_->audio_is_int16() && info.format == codec::SampleFormat::s16 && info.channels == 1 &&
      info.data_offset != 0) {
    length = std::min(info.frames, room);
    std::memcpy(slot.outputs[0], bytes.data() + info.data_offset, length * 2);
    std::memset(slot.outputs[0] + length * 2, 0, (room - length) * 2);
    return {};
  }
  const std::uint64_t decoded_bytes = info.frames * info.channels * sizeof(float);
  const std::uint64_t transform_bytes = plan_->audio_working_bytes(info.frames, info.rate_hz, info.channels);
  if (!scratch.expect(Scratch::rounded(decoded_bytes) + transform_bytes)) return bad(kNoRoom);
  const std::span<std::byte> memory = scratch.take(decoded_bytes);
  if (memory.empty()) return bad(kNoRoom);
  float* const planar = reinterpret_cast<float*>(memory.data());
  if (const Result result = codec::decode_audio(media, bytes, info, 0, info.frames, planar, info.frames);
      !result.ok()) {
    return bad(result);
  }
  return bad(plan_->apply_audio(planar, info.frames, info.frames, info.rate_hz, slot.outputs[0], room, length, scratch,
                                info.channels),
             "transform");
}

Verdict Recipe::make_array(Bytes bytes, const Slot& slot, Scratch& scratch) const noexcept {
  if (rows_of_array_) {
    if (bytes.size() != row_.data_bytes) return bad(failed(Code::truncated, "the array ends inside this row"));
    if (is_copy_ && slot.past_cache) {
      transform::copy_past_cache(slot.outputs[0], bytes.data(), bytes.size());
      return {};
    }
    return bad(plan_->apply_array(bytes.data(), slot.outputs[0]), "transform");
  }
  const Media media = codec::sniff(bytes);
  codec::ArrayInfo info;
  Result result = codec::probe_array(media, bytes, info, scratch);
  if (!result.ok()) return bad(result);
  if (!left_arrays_out_.load(std::memory_order_relaxed) && codec::list_arrays(media, bytes, {}) > 1)
    left_arrays_out_.store(true, std::memory_order_relaxed);
  if (info.dtype != row_.dtype || info.rank != row_.rank || info.shape != row_.shape) {
    return bad(failed(Code::mismatch, "its shape or dtype is not that of the first array"));
  }
  const std::uint64_t inflated_bytes = info.deflated ? Scratch::rounded(info.member_bytes) : 0;
  if (plan_->array_is_copy()) {
    if (!scratch.expect(inflated_bytes)) return bad(kNoRoom);
    return bad(codec::decode_array(media, bytes, info, slot.outputs[0], scratch));
  }
  if (!scratch.expect(Scratch::rounded(info.data_bytes) + inflated_bytes)) return bad(kNoRoom);
  const std::span<std::byte> memory = scratch.take(info.data_bytes);
  if (memory.empty()) return bad(kNoRoom);
  result = codec::decode_array(media, bytes, info, memory.data(), scratch);
  if (!result.ok()) return bad(result);
  return bad(plan_->apply_array(memory.data(), slot.outputs[0]), "transform");
}

}  // namespace stoker::loader
