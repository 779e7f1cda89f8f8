// How reading stays in bounds: each call of run() starts with at least kStripBytes in the window, or with all that
// there is and kSlackBytes of zeros behind it; and it stops at the first MCU that ends among those zeros. Bits are
// counted, so that zeros taken for data are noticed.
#include "stoker/codec/jpeg/entropy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "stoker/codec/byte_order.h"

namespace stoker::codec::jpeg {
namespace {

constexpr std::size_t kBlockBits = (16 + kMaxDcSize) + 63 * (16 + kMaxAcSize);
constexpr std::size_t kStripBytes = kMaxStripBlocks * kBlockBits / 8 + 64;
constexpr std::size_t kSlackBytes = kMaxMcuBlocks * kBlockBits / 8 + 64;
static_assert(kStripBytes + kSlackBytes < EntropyDecoder::kWindowBytes / 2);

constexpr unsigned kBad = 255;  // instead of the last coefficient's index

// Copies what lies before the first 0xFF of `count` bytes and returns its length. May write up to 15 bytes more.
static_assert(kSlackBytes >= 16);
inline std::size_t copy_to_ff(const std::byte* from, std::size_t count, std::byte* into) noexcept {
  std::size_t i = 0;
#if defined(__x86_64__)
  const __m128i ff = _mm_set1_epi8(-1);
  for (; i + 16 <= count; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + i), bytes);
    const unsigned found = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, ff)));
    if (found != 0) return i + static_cast<std::size_t>(std::countr_zero(found));
  }
#endif
  for (; i < count && from[i] != std::byte{0xFF}; ++i) into[i] = from[i];
  return i;
}

// Counted in bytes, 255 at a time: that many fit, and sixteen are compared at once.
std::size_t count_ff(const std::byte* at, const std::byte* end) noexcept {
  std::size_t total = 0;
  while (at != end) {
    const std::byte* const stop = at + std::min<std::ptrdiff_t>(255, end - at);
    std::uint8_t found = 0;
    for (; at != stop; ++at) found = static_cast<std::uint8_t>(found + (*at == std::byte{0xFF} ? 1 : 0));
    total += found;
  }
  return total;
}

}  // namespace

EntropyDecoder::EntropyDecoder(Bytes data, const McuLayout& layout, std::span<std::byte> window) noexcept
    : layout_(layout),
      has_means_(layout.mean_only[0] || layout.mean_only[1] || layout.mean_only[2]),
      scan_(data),
      data_(data),
      window_(window.data()),
      window_end_(window.data()),
      bits_{window.data()},
      measured_(window.data()) {}

void EntropyDecoder::start_at(std::size_t offset) noexcept {
  data_ = scan_.subspan(offset);
  marker_found_ = data_ended_ = false;
  window_end_ = window_;
  bits_ = {window_};
  measured_ = window_;
  measured_offset_ = offset;
}

// Each FF in the window is two bytes in the scan.
void EntropyDecoder::measure_to(const std::byte* at) noexcept {
  measured_offset_ += static_cast<std::size_t>(at - measured_) + count_ff(measured_, at);
  measured_ = at;
}

bool EntropyDecoder::note(Checkpoint& place) noexcept {
  // The byte that has the next bit; it is in the window, see fill_window().
  const std::byte* const at = bits_.next - (bits_.count + 7) / 8;
  if (at > window_end_) return false;
  measure_to(at);
  if (measured_offset_ > 0xFFFFFFFF) return false;
  place.byte = static_cast<std::uint32_t>(measured_offset_);
  place.bit = static_cast<std::uint8_t>((8 - bits_.count % 8) % 8);
  for (std::size_t i = 0; i < 3; ++i) place.predictor[i] = static_cast<std::int16_t>(predictor_[i]);
  return true;
}

// Most jumps are short, from the end of a crop's row to the beginning of its next: the window has that place already.
bool EntropyDecoder::skip_to(std::size_t offset) noexcept {
  if (offset < measured_offset_) return false;
  const std::byte* at = measured_;
  for (std::size_t left = offset - measured_offset_; left != 0;) {
    const std::size_t step = std::max<std::size_t>(left / 2, 1);  // at most `left` bytes of the scan, if each is FF
    if (step > static_cast<std::size_t>(window_end_ - at)) return false;
    const std::size_t bytes = step + count_ff(at, at + step);
    if (bytes > left) return false;  // the middle of an FF 00
    at += step;
    left -= bytes;
  }
  bits_ = {at};
  measured_ = at;
  measured_offset_ = offset;
  return true;
}

bool EntropyDecoder::resume(const Checkpoint& place) noexcept {
  if (place.byte > scan_.size() || place.bit > 7) return false;
  if (!skip_to(place.byte)) start_at(place.byte);
  fill_window();
  bits_.buffer = __builtin_bswap64(load<std::uint64_t>(bits_.next)) << place.bit;
  bits_.count = 56u - place.bit;
  bits_.next += 7;
  for (std::size_t i = 0; i < 3; ++i) predictor_[i] = place.predictor[i];
  return true;
}

void EntropyDecoder::fill_window() noexcept {
  if (marker_found_ || data_ended_ || window_end_ - bits_.next >= static_cast<std::ptrdiff_t>(kStripBytes)) return;
  // The last eight bytes are in the buffer, but note() may still name one of them.
  const std::byte* const keep_from = bits_.next - std::min<std::ptrdiff_t>(8, bits_.next - window_);
  measure_to(std::max(measured_, keep_from));
  const std::size_t kept = static_cast<std::size_t>(window_end_ - keep_from);
  std::memmove(window_, keep_from, kept);
  bits_.next = window_ + (bits_.next - keep_from);
  measured_ = window_ + (measured_ - keep_from);
  window_end_ = window_ + kept;
  std::size_t room = kWindowBytes - kSlackBytes - kept;
  while (room > 0) {
    const std::size_t reach = std::min(room, data_.size());
    const std::size_t count = copy_to_ff(data_.data(), reach, window_end_);
    window_end_ += count;
    room -= count;
    data_ = data_.subspan(count);
    if (data_.empty() || (count < reach && data_.size() == 1)) {
      data_ended_ = true;
      break;
    }
    if (count == reach) continue;
    if (data_[1] == std::byte{0xFF}) {  // may be followed by a marker, or by data
      data_ended_ = true;
      break;
    }
    if (data_[1] != std::byte{0}) {
      marker_found_ = true;
      break;
    }
    *window_end_++ = std::byte{0xFF};
    --room;
    data_ = data_.subspan(2);
  }
  if (marker_found_ || data_ended_) std::memset(window_end_, 0, kSlackBytes);
}

bool EntropyDecoder::restart(std::uint32_t number) noexcept {
  if (!is_at_marker() || !marker_found_ || data_[1] != static_cast<std::byte>(0xD0 + number % 8)) return false;
  start_at(scan_.size() - data_.size() + 2);
  predictor_ = {};
  return true;
}

bool EntropyDecoder::is_at_marker() const noexcept {
  const std::ptrdiff_t left = (window_end_ - bits_.next) * 8 + static_cast<std::ptrdiff_t>(bits_.count);
  return (marker_found_ || data_ended_) && left >= 0 && left < 8;
}

bool EntropyDecoder::has_margin() const noexcept {
  return !data_ended_ || window_end_ - bits_.next >= 64;
}

// The loop has one branch per look into the table. An advance beyond the block ends it, whatever the cause;
// coefficients stored meanwhile with an index beyond 63 land in the place of the DC coefficient, which is stored last.
template <bool kStore>
[[gnu::always_inline]] inline unsigned EntropyDecoder::decode_block(Bits& state, const DcTable& dc, const AcTable& ac,
                                                                    std::int32_t& predictor,
                                                                    std::int16_t* block) noexcept {
  std::uint64_t buffer = state.buffer;
  std::uint32_t count = state.count;
  const std::byte* next = state.next;
#define STOKER_REFILL()                                              \
  do {                                                               \
    buffer |= __builtin_bswap64(load<std::uint64_t>(next)) >> count; \
    next += (63 - count) >> 3;                                       \
    count |= 56;                                                     \
  } while (false)

  STOKER_REFILL();
  {
    const DcTable::Entry entry = dc.entry[buffer >> (64 - DcTable::kBits)];
    std::int32_t difference;
    if (entry.bits != 0) [[likely]] {
      difference = static_cast<std::int16_t>(static_cast<std::uint32_t>(buffer >> entry.shift) +
                                             static_cast<std::uint32_t>(entry.base));
      buffer <<= entry.bits;
      count -= entry.bits;
    } else {
      const auto [bits, size] = dc.long_codes.find(static_cast<std::uint32_t>(buffer >> 48));
      if (bits == 0) return kBad;
      buffer <<= bits;
      difference = 0;
      if (size != 0) {
        const auto value = static_cast<std::int32_t>(buffer >> (64 - size));
        difference = static_cast<std::int64_t>(buffer) < 0 ? value : value + 1 - (1 << size);
        buffer <<= size;
      }
      count -= bits + size;
    }
    predictor += difference;
    if (predictor != static_cast<std::int16_t>(predictor)) return kBad;
  }

  unsigned k = 0;
  for (;;) {
    unsigned first = 0;  // index after the first of two coefficients
    std::uint64_t before = 0;
    const AcTable::Entry* entry = nullptr;
#define STOKER_LOOK()                                                                                              \
  do {                                                                                                             \
    const std::size_t index = buffer >> (64 - AcTable::kBits);                                                     \
    const std::uint32_t bits = ac.bits[index];                                                                     \
    entry = &ac.entry[index];                                                                                      \
    before = buffer;                                                                                               \
    buffer <<= bits & 63;                                                                                          \
    count -= bits;                                                                                                 \
    first = k + entry->advance;                                                                                    \
    k = first + entry->advance2;                                                                                   \
    if constexpr (kStore) {                                                                                        \
      block[kNaturalOrder[k]] = entry->value2;                                                                     \
      block[kNaturalOrder[first]] = static_cast<std::int16_t>(static_cast<std::uint32_t>(before >> entry->shift) + \
                                                              static_cast<std::uint32_t>(entry->base));            \
    }                                                                                                              \
  } while (false)

    do {
      STOKER_REFILL();
      STOKER_LOOK();
      if (k >= 63) break;
      STOKER_LOOK();
    } while (k < 63);

    if (first >= 63 && first < AcTable::kEnd) [[unlikely]] {
      if (first > 63) return kBad;
      // The block is full: what the entry gives beyond belongs to the next one.
      const std::uint32_t used = (64 - entry->shift) & 63;
      count += ac.bits[static_cast<std::size_t>(entry - ac.entry.data())] - used;
      buffer = before << used;
      k = 63;
      break;
    }
    if (first < AcTable::kLong) [[likely]] {
      if (k != 63) k -= AcTable::kEnd;  // wraps around if a run left the block, to an index that is none
      break;
    }
    k = first - AcTable::kLong;
    STOKER_REFILL();
    const auto [bits, symbol] = ac.long_codes.find(static_cast<std::uint32_t>(buffer >> 48));
    if (bits == 0) return kBad;
    buffer <<= bits;
    count -= bits;
    if (symbol == 0) break;
    const std::uint32_t size = symbol & 15;
    k += (symbol >> 4) + 1;
    if (k > 63) return kBad;
    if (size != 0) {
      if constexpr (kStore) {
        const auto value = static_cast<std::int32_t>(buffer >> (64 - size));
        block[kNaturalOrder[k]] =
            static_cast<std::int16_t>(static_cast<std::int64_t>(buffer) < 0 ? value : value + 1 - (1 << size));
      }
      buffer <<= size;
      count -= size;
    }
    if (k == 63) break;
  }
#undef STOKER_LOOK
#undef STOKER_REFILL
  if constexpr (kStore) block[0] = static_cast<std::int16_t>(predictor);
  state.buffer = buffer;
  state.count = count;
  state.next = next;
  return k;
}

template <bool kStore, bool kMeans>
bool EntropyDecoder::run(std::size_t mcus, Block* blocks, std::uint8_t* last) noexcept {
  fill_window();
  Bits bits = bits_;
  const std::byte* const end = window_end_;
  for (std::size_t mcu = 0; mcu < mcus; ++mcu) {
    for (std::size_t i = 0; i < layout_.blocks; ++i) {
      const std::size_t component = layout_.component[i];
      std::int16_t* block = nullptr;
      if constexpr (kMeans) {
        if (layout_.mean_only[component]) {
          std::int32_t& mean = predictor_[component];
          if (decode_block<false>(bits, *layout_.dc[component], *layout_.ac[component], mean, block) > 63) return false;
          blocks++->coefficient[0] = static_cast<std::int16_t>(mean);
          *last++ = 0;
          continue;
        }
      }
      if constexpr (kStore) {
        block = blocks->coefficient;
        // In pieces of one register: a whole block becomes a string instruction, which is slow to start.
        for (std::size_t at = 0; at < 64; at += 16) std::memset(block + at, 0, 32);
        ++blocks;
      }
      const unsigned k =
          decode_block<kStore>(bits, *layout_.dc[component], *layout_.ac[component], predictor_[component], block);
      if (k > 63) return false;
      if constexpr (kStore) *last++ = static_cast<std::uint8_t>(k);
    }
    if (bits.next > end + 8) return false;
  }
  bits_ = bits;
  return (end - bits.next) * 8 + static_cast<std::ptrdiff_t>(bits.count) >= 0;
}

bool EntropyDecoder::decode(std::size_t mcus, Block* blocks, std::uint8_t* last) noexcept {
  return has_means_ ? run<true, true>(mcus, blocks, last) : run<true>(mcus, blocks, last);
}

bool EntropyDecoder::skip(std::size_t mcus) noexcept {
  return run<false>(mcus, nullptr, nullptr);
}

}  // namespace stoker::codec::jpeg
