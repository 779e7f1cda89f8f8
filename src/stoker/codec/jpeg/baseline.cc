// MCU row by MCU row: entropy-decode all of it, transform the MCUs that the region needs into planes that hold two MCU
// rows, and give out the pixel rows that are complete. With vertical subsampling the last pixel row of an MCU row has
// to wait for the next one, whose first chroma row it is blended with. With `fast` nothing is blended; and where the
// image is also made smaller, a block becomes fewer samples, as libjpeg has it: as few as the scale says, but twice
// as many each way of Cb and Cr where they have half of both.
#include "stoker/codec/jpeg/baseline.h"

#include <algorithm>
#include <array>
#include <new>

#include "stoker/codec/image.h"
#include "stoker/codec/jpeg/entropy.h"
#include "stoker/codec/jpeg/headers.h"
#include "stoker/codec/jpeg/target.h"

namespace stoker::codec::jpeg {
namespace {

constexpr std::size_t kLeftPad = 32;  // keeps rows aligned, and has room for the sample left of the first

std::uint32_t divided_up(std::uint32_t value, std::uint32_t by) noexcept {
  return (value + by - 1) / by;
}

// How many samples there are of what.
struct Sampling {
  bool blended;                       // chroma is interpolated, else repeated
  std::array<std::uint32_t, 3> side;  // of a component's block, in samples: 8 unless the image is made smaller
  std::uint32_t h, v;                 // luma samples for one chroma sample, each way
  std::uint32_t width, height;        // of the decoded image

  Sampling(const Frame& frame, bool fast, std::uint32_t scale) noexcept
      : blended(!fast),
        h(frame.h()),
        v(frame.v()),
        width(divided_up(frame.width, scale)),
        height(divided_up(frame.height, scale)) {
    side.fill(8 / scale);
    if (scale > 1 && h == 2 && v == 2) {
      side[1] = side[2] = 2 * side[0];
      h = v = 1;
    }
  }
};

// The MCUs, along one axis, that give the samples [first, end) of `size`; `factor` is 2 if chroma has half as many, and
// has `side` of them in an MCU.
struct Span {
  std::uint32_t first, end;
};
Span mcus_for(std::uint32_t first, std::uint32_t end, std::uint32_t size, std::uint32_t factor, std::uint32_t side,
              bool blended) noexcept {
  std::uint32_t low = first / factor, high = (end - 1) / factor;
  if (factor == 2 && blended) {  // interpolation needs a neighbour
    if (low > 0) --low;
    if (high + 1 < divided_up(size, 2)) ++high;
  }
  return {low / side, high / side + 1};
}

// Two MCU rows of one component; only the columns that the region needs.
struct Plane {
  std::uint8_t* first = nullptr;
  std::size_t stride = 0;
  std::uint32_t rows = 0;  // a power of two

  std::uint8_t* row(std::uint32_t y) const noexcept { return first + (y & (rows - 1)) * stride; }
};

class Decoder {
 public:
  // `region` is of the decoded image.
  Decoder(const Frame& frame, const Sampling& sampling, Color color, const Rect& region, const Pixels& into,
          SeekIndex* index, const Kernels& kernels) noexcept
      : frame_(frame),
        sampling_(sampling),
        color_(color),
        region_(region),
        into_(into),
        index_(index),
        kernels_(kernels),
        mcus_across_(divided_up(frame.width, 8 * frame.h())),
        mcus_down_(divided_up(frame.height, 8 * frame.v())),
        columns_(mcus_for(region.x, region.x + region.width, sampling.width, sampling.h, sampling.side[1],
                          sampling.blended)),
        rows_(mcus_for(region.y, region.y + region.height, sampling.height, sampling.v, sampling.side[1],
                       sampling.blended)) {}

  bool prepare(Scratch& scratch) noexcept;
  bool run(Bytes data) noexcept;

 private:
  bool build_tables(Scratch& scratch) noexcept;
  bool go_to(EntropyDecoder& entropy, std::uint32_t target) noexcept;
  std::uint32_t begin_strip(EntropyDecoder& entropy, std::uint32_t limit) noexcept;
  void transform_strip(std::uint32_t mcu_row, std::uint32_t first_mcu, std::size_t mcus) noexcept;
  void repeat_edges(std::uint32_t mcu_row) noexcept;
  void give_row(std::uint32_t y) noexcept;
  const std::uint8_t* blended_row(std::size_t component, std::uint32_t y) noexcept;

  const Frame& frame_;
  const Sampling sampling_;
  const Color color_;
  const Rect region_;
  const Pixels& into_;
  SeekIndex* const index_;
  const Kernels& kernels_;
  const std::uint32_t mcus_across_, mcus_down_;
  const Span columns_, rows_;  // what the region needs, in MCUs

  std::uint32_t mcu_ = 0;  // the next one, counted over all rows
  std::uint32_t restarts_ = 0, since_restart_ = 0;

  McuLayout layout_;
  std::array<Plane, 3> plane_;
  std::array<std::uint8_t*, 3> upsampled_{};  // a row each of the second and third component
  std::byte* rgb_ = nullptr;                  // a row, unless it is stored where it belongs at once
  std::span<std::byte> window_;
  Block* blocks_ = nullptr;
  std::array<std::uint8_t, kMaxStripBlocks> last_{};
};

template <typename T>
T* make(Scratch& scratch) noexcept {
  std::byte* const at = scratch.take(sizeof(T)).data();
  return at == nullptr ? nullptr : new (at) T;
}

bool Decoder::build_tables(Scratch& scratch) noexcept {
  for (std::size_t i = 0; i < frame_.components; ++i) {
    const Component& component = frame_.component[i];
    for (std::size_t j = 0; j < i; ++j) {
      if (frame_.component[j].dc == component.dc) layout_.dc[i] = layout_.dc[j];
      if (frame_.component[j].ac == component.ac) layout_.ac[i] = layout_.ac[j];
    }
    if (layout_.dc[i] == nullptr) {
      auto* const table = make<DcTable>(scratch);
      if (table == nullptr || !build(frame_.dc[component.dc], *table)) return false;
      layout_.dc[i] = table;
    }
    if (layout_.ac[i] == nullptr) {
      auto* const table = make<AcTable>(scratch);
      if (table == nullptr || !build(frame_.ac[component.ac], *table)) return false;
      layout_.ac[i] = table;
    }
    layout_.mean_only[i] = sampling_.side[i] == 1;
    for (int block = 0; block < component.h * component.v; ++block) {
      layout_.component[layout_.blocks++] = static_cast<std::uint8_t>(i);
    }
  }
  return true;
}

bool Decoder::prepare(Scratch& scratch) noexcept {
  if (!build_tables(scratch)) return false;
  bool granted = true;
  const auto take = [&](std::size_t size) noexcept {
    std::byte* const at = scratch.take(size).data();
    granted = granted && at != nullptr;
    return at;
  };
  for (std::size_t i = 0; i < frame_.components; ++i) {
    const Component& component = frame_.component[i];
    Plane& plane = plane_[i];
    plane.rows = 2u * sampling_.side[i] * component.v;
    plane.stride =
        kLeftPad + std::size_t{columns_.end - columns_.first} * component.h * sampling_.side[i] + kRowSlack + 32;
    plane.first = reinterpret_cast<std::uint8_t*>(take(plane.stride * plane.rows)) + kLeftPad;
    if (i > 0) upsampled_[i] = reinterpret_cast<std::uint8_t*>(take(std::size_t{region_.width} + 2 + kRowSlack));
  }
  const bool straight = frame_.components == 3 && color_ != Color::gray && into_.dtype == DType::u8;
  if (!straight) rgb_ = take(std::size_t{region_.width} * 3);
  window_ = {take(EntropyDecoder::kWindowBytes), EntropyDecoder::kWindowBytes};
  std::byte* const blocks = take(sizeof(Block) * kMaxStripBlocks);
  if (!granted) return false;
  blocks_ = new (blocks) Block[kMaxStripBlocks];
  return true;
}

bool Decoder::run(Bytes data) noexcept {
  EntropyDecoder entropy(data, layout_, window_);
  std::uint32_t y = region_.y;
  const std::uint32_t bottom = region_.y + region_.height;
  for (std::uint32_t row = rows_.first; row < rows_.end; ++row) {
    if (!go_to(entropy, row * mcus_across_ + columns_.first)) return false;
    for (std::uint32_t mcu = columns_.first; mcu < columns_.end;) {
      const std::uint32_t count = begin_strip(entropy, columns_.end - mcu);
      if (count == 0 || !entropy.decode(count, blocks_, last_.data())) return false;
      transform_strip(row, mcu, count);
      mcu += count;
    }
    if (sampling_.blended) repeat_edges(row);
    std::uint32_t complete = bottom;
    if (row + 1 < rows_.end) {
      complete =
          std::min(bottom, (row + 1) * sampling_.side[0] * frame_.v() - (sampling_.blended ? sampling_.v - 1 : 0));
    }
    for (; y < complete; ++y) give_row(y);
  }
  const bool whole = rows_.end == mcus_down_ && columns_.end == mcus_across_;
  return entropy.has_margin() && (!whole || entropy.is_at_marker());
}

// Passes over the MCUs before `target`, from the last known place before it.
bool Decoder::go_to(EntropyDecoder& entropy, std::uint32_t target) noexcept {
  if (index_ != nullptr) {
    const std::uint32_t places = std::min(target / index_->step, index_->known);
    const std::uint32_t place = places * index_->step;
    if (place > mcu_) {
      if (!entropy.resume(index_->places[places - 1])) return false;
      mcu_ = place;
      if (frame_.restart_interval != 0) {  // places are noted behind the restart marker
        restarts_ = place / frame_.restart_interval;
        since_restart_ = place % frame_.restart_interval;
      }
    }
  }
  while (mcu_ < target) {
    const std::uint32_t count = begin_strip(entropy, target - mcu_);
    if (count == 0 || !entropy.skip(count)) return false;
  }
  return true;
}

// How many MCUs to decode next, at most `limit`; 0: a restart marker is not where it should be.
std::uint32_t Decoder::begin_strip(EntropyDecoder& entropy, std::uint32_t limit) noexcept {
  const std::uint32_t interval = frame_.restart_interval;
  if (interval != 0 && since_restart_ == interval) {
    if (!entropy.restart(restarts_++)) return 0;
    since_restart_ = 0;
  }
  std::uint32_t count = std::min(limit, static_cast<std::uint32_t>(kMaxStripBlocks / layout_.blocks));
  if (interval != 0) count = std::min(count, interval - since_restart_);
  if (index_ != nullptr && index_->known < index_->places.size()) {
    const std::uint64_t next = (std::uint64_t{index_->known} + 1) * index_->step;
    if (mcu_ == next && entropy.note(index_->places[index_->known])) ++index_->known;
    count = std::min(count, index_->step - mcu_ % index_->step);
  }
  mcu_ += count;
  since_restart_ += count;
  return count;
}

void Decoder::transform_strip(std::uint32_t mcu_row, std::uint32_t first_mcu, std::size_t mcus) noexcept {
  std::size_t first_block = 0;  // of the component in the MCU
  for (std::size_t i = 0; i < frame_.components; ++i) {
    const Component& component = frame_.component[i];
    const std::int16_t* const quant = frame_.quant[component.quant].values.data();
    const std::size_t h = component.h, stride = plane_[i].stride, side = sampling_.side[i];
    Kernels::Transform* const transform = side == 8   ? kernels_.transform
                                          : side == 4 ? kernels_.transform_to_4
                                                      : kernels_.transform_to_2;
    for (std::size_t line = 0; line < component.v; ++line) {
      const auto top = static_cast<std::uint32_t>((std::size_t{mcu_row} * component.v + line) * side);
      std::uint8_t* into = plane_[i].row(top) + (first_mcu - columns_.first) * h * side;
      for (std::size_t column = 0; column < mcus * h; column += 2, into += 2 * side) {
        const bool paired = column + 1 < mcus * h;
        const std::size_t a = column / h * layout_.blocks + first_block + line * h + column % h;
        const std::size_t b = !paired ? a : h == 2 ? a + 1 : a + layout_.blocks;
        if (side == 1) {
          into[0] = mean_sample(blocks_[a].coefficient[0], quant[0]);
          if (paired) into[1] = mean_sample(blocks_[b].coefficient[0], quant[0]);
          continue;
        }
        transform(blocks_[a], blocks_[b], quant, std::max(last_[a], last_[b]), into, into + (paired ? side : 0),
                  stride);
      }
    }
    first_block += h * component.v;
  }
}

// What interpolation takes for the neighbours of the image's first and last column.
void Decoder::repeat_edges(std::uint32_t mcu_row) noexcept {
  if (frame_.components == 1 || frame_.h() == 1) return;
  const std::uint32_t width = divided_up(frame_.width, 2), left = columns_.first * 8;
  for (std::size_t i = 1; i < frame_.components; ++i) {
    for (std::uint32_t y = mcu_row * 8; y < mcu_row * 8 + 8; ++y) {
      std::uint8_t* const row = plane_[i].row(y);
      if (columns_.first == 0) row[-1] = row[0];
      if (columns_.end == mcus_across_) row[width - left] = row[width - left - 1];
    }
  }
}

const std::uint8_t* Decoder::blended_row(std::size_t component, std::uint32_t y) noexcept {
  const std::uint32_t h = frame_.h(), v = frame_.v();
  const std::uint32_t x = region_.x / h, near_y = y / v;
  const std::size_t count = (region_.x + region_.width - 1) / h - x + 1;
  const std::size_t offset = x - columns_.first * 8;
  const std::uint8_t* const near = plane_[component].row(near_y) + offset;
  std::uint8_t* const into = upsampled_[component];
  if (v == 1) {
    if (h == 1) return near;
    kernels_.double_row(near, count, into);
    return into + region_.x % 2;
  }
  const bool lower = y % 2 != 0;
  const std::uint32_t far_y =
      lower ? std::min(near_y + 1, divided_up(frame_.height, 2) - 1) : near_y - std::min(near_y, 1u);
  const std::uint8_t* const far = plane_[component].row(far_y) + offset;
  if (h == 1) {
    kernels_.blend(near, far, count, lower ? 2 : 1, into);
    return into;
  }
  kernels_.double_between(near, far, count, into);
  return into + region_.x % 2;
}

void Decoder::give_row(std::uint32_t y) noexcept {
  std::byte* const slot = into_.data + std::size_t{y - region_.y} * into_.stride_bytes;
  const std::uint8_t* const luma = plane_[0].row(y) + (region_.x - columns_.first * sampling_.side[0] * frame_.h());
  if (frame_.components == 1) {
    return store_row({reinterpret_cast<const std::byte*>(luma), region_.width, 1, false}, color_, into_.dtype, slot);
  }
  std::byte* const rgb = rgb_ != nullptr ? rgb_ : slot;
  auto* const into = reinterpret_cast<std::uint8_t*>(rgb);
  if (sampling_.blended) {
    kernels_.to_rgb(luma, blended_row(1, y), blended_row(2, y), region_.width, into);
  } else {
    const std::size_t offset = region_.x / sampling_.h - columns_.first * sampling_.side[1];
    const std::uint8_t* const cb = plane_[1].row(y / sampling_.v) + offset;
    const std::uint8_t* const cr = plane_[2].row(y / sampling_.v) + offset;
    if (sampling_.h == 1) {
      kernels_.to_rgb(luma, cb, cr, region_.width, into);
    } else {
      kernels_.to_rgb_repeated(luma, cb, cr, region_.x % 2, region_.width, into);
    }
  }
  if (rgb_ != nullptr) store_row({rgb, region_.width, 3, false}, color_, into_.dtype, slot);
}

std::uint32_t mcus_of(const Frame& frame) noexcept {
  return divided_up(frame.width, 8 * frame.h()) * divided_up(frame.height, 8 * frame.v());
}

// libjpeg's path refuses an image with less than two bits per MCU, wherever the region ends.
bool has_enough_data(const Frame& frame, std::size_t bytes) noexcept {
  return bytes >= std::uint64_t{mcus_of(frame)} * 2 / 8;
}

}  // namespace

bool decode_baseline(Bytes bytes, const ImageOptions& options, const Rect& region, const Pixels& into, Scratch& scratch,
                     SeekIndex* index, const Kernels& kernels) noexcept {
  if (!runs_fast_code()) return false;
  if (index != nullptr && (index->step == 0 || index->known > index->places.size())) return false;
  Frame frame;
  if (!read_headers(bytes, frame)) return false;
  const ImageInfo info{frame.width, frame.height, frame.components, 8};
  const Rect decoded = scaled_region(options, region);
  if (!check_request(info, options, region, decoded, into).ok()) return false;
  if (!has_enough_data(frame, bytes.size() - frame.scan_offset)) return false;
  // Pillow reads on to the end of the image, wherever the region lies. Places are noted only in files that passed.
  const bool has_passed = index != nullptr && index->known > 0;
  if (!has_passed && !ends_properly(bytes.subspan(frame.scan_offset), frame.restart_interval != 0)) return false;
  // libjpeg interpolates no chroma rows of one or two samples.
  if (!options.fast && frame.h() == 2 && frame.width <= 4) return false;

  const Scratch::Mark mark = scratch.mark();
  const Sampling sampling(frame, options.fast, options.fast ? options.scale : 1);
  Decoder decoder(frame, sampling, options.color, decoded, into, index, kernels);
  const bool done = decoder.prepare(scratch) && decoder.run(bytes.subspan(frame.scan_offset));
  scratch.rewind(mark);
  return done;
}

}  // namespace stoker::codec::jpeg

bool stoker::codec::can_seek() noexcept {
  return jpeg::runs_fast_code();
}

std::uint32_t stoker::codec::seekable_mcus(Bytes file) noexcept {
  jpeg::Frame frame;
  return jpeg::runs_fast_code() && jpeg::read_headers(file, frame) ? jpeg::mcus_of(frame) : 0;
}
