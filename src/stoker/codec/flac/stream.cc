#include "stoker/codec/flac/stream.h"

#include <algorithm>
#include <cstring>

#include "stoker/codec/byte_order.h"

namespace stoker::codec::flac {
namespace {

constexpr std::size_t kInfoBytes = 34, kLongestHeader = 16;
constexpr std::uint64_t kSearchEnd = 16 << 10;  // bytes that are scanned one by one rather than halved once more
constexpr std::uint64_t kTail = 4 << 20;        // where the last frame is looked for; it cannot be longer than 3 MB
constexpr int kMostTries = 64;                  // candidates whose CRC is computed: a hostile file may have very many

constexpr std::uint32_t at(Bytes bytes, std::uint64_t i) noexcept {
  return static_cast<std::uint32_t>(bytes[i]);
}

// Tables for one byte, and for a byte with 1 to 7 zero bytes behind it.
struct Tables {
  std::uint8_t crc8[256];
  std::uint16_t crc16[8][256];

  constexpr Tables() noexcept : crc8(), crc16() {
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t small = i, large = i << 8;
      for (int bit = 0; bit < 8; ++bit) {
        small = (small << 1) ^ ((small & 0x80) != 0 ? 0x07u : 0u);
        large = (large << 1) ^ ((large & 0x8000) != 0 ? 0x8005u : 0u);
      }
      crc8[i] = static_cast<std::uint8_t>(small);
      crc16[0][i] = static_cast<std::uint16_t>(large);
    }
    for (int behind = 1; behind < 8; ++behind) {
      for (std::uint32_t i = 0; i < 256; ++i) {
        const std::uint32_t before = crc16[behind - 1][i];
        crc16[behind][i] = static_cast<std::uint16_t>((before << 8) ^ crc16[0][before >> 8]);
      }
    }
  }
};
constexpr Tables kTables;

// A number of 1 to 7 bytes, coded as UTF-8 codes characters. Gives the count of bytes; 0: it is none.
std::uint32_t read_number(Bytes bytes, std::uint64_t& number) noexcept {
  if (bytes.empty()) return 0;
  const std::uint32_t first = at(bytes, 0);
  if (first < 0x80) {
    number = first;
    return 1;
  }
  std::uint32_t count = 0;
  while (count < 8 && (first & (0x80u >> count)) != 0) ++count;
  if (count < 2 || count > 7 || bytes.size() < count) return 0;
  number = count == 7 ? 0 : first & (0x7Fu >> count);
  for (std::uint32_t i = 1; i < count; ++i) {
    const std::uint32_t more = at(bytes, i);
    if ((more & 0xC0) != 0x80) return 0;
    number = number << 6 | (more & 0x3F);
  }
  return count;
}

bool begins_frame(Bytes bytes, std::uint64_t place) noexcept {
  return bytes.size() - place >= 2 && bytes[place] == std::byte{0xFF} && (at(bytes, place + 1) & 0xFE) == 0xF8;
}

// The first place from `from` on and before `end` that has a valid header; `end` where there is none.
std::uint64_t next_header(Bytes bytes, std::uint64_t from, std::uint64_t end, const Stream& stream,
                          FrameHeader& header) noexcept {
  while (from < end) {
    const void* const found = std::memchr(bytes.data() + from, 0xFF, end - from);
    if (found == nullptr) return end;
    from = static_cast<std::uint64_t>(static_cast<const std::byte*>(found) - bytes.data());
    if (begins_frame(bytes, from) && read_frame_header(bytes, from, stream, header).ok()) return from;
    ++from;
  }
  return end;
}

}  // namespace

std::uint8_t crc8(Bytes bytes) noexcept {
  std::uint8_t sum = 0;
  for (const std::byte b : bytes) sum = kTables.crc8[sum ^ static_cast<std::uint8_t>(b)];
  return sum;
}

std::uint16_t crc16(Bytes bytes) noexcept {
  std::uint32_t sum = 0;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    const auto byte = [&](std::size_t k) { return static_cast<std::uint8_t>(bytes[i + k]); };
    sum = kTables.crc16[7][(sum >> 8) ^ byte(0)] ^ kTables.crc16[6][(sum & 0xFF) ^ byte(1)] ^
          kTables.crc16[5][byte(2)] ^ kTables.crc16[4][byte(3)] ^ kTables.crc16[3][byte(4)] ^
          kTables.crc16[2][byte(5)] ^ kTables.crc16[1][byte(6)] ^ kTables.crc16[0][byte(7)];
  }
  for (; i < bytes.size(); ++i) {
    sum = ((sum << 8) & 0xFFFF) ^ kTables.crc16[0][(sum >> 8) ^ static_cast<std::uint8_t>(bytes[i])];
  }
  return static_cast<std::uint16_t>(sum);
}

Result read_stream(Bytes bytes, Stream& stream) noexcept {
  if (bytes.size() < 8 + kInfoBytes) return failed(Code::truncated, "shorter than a FLAC header", bytes.size());
  if (std::memcmp(bytes.data(), "fLaC", 4) != 0) return failed(Code::corrupt, "no FLAC signature", 0);
  if ((at(bytes, 4) & 0x7F) != 0 || (big32(&bytes[4]) & 0xFFFFFF) != kInfoBytes) {
    return failed(Code::corrupt, "the first block is not STREAMINFO", 4);
  }
  stream.least_block = big16(&bytes[8]), stream.most_block = big16(&bytes[10]);
  const std::uint64_t packed = std::uint64_t{big32(&bytes[18])} << 32 | big32(&bytes[22]);
  stream.rate_hz = static_cast<std::uint32_t>(packed >> 44);
  stream.channels = static_cast<std::uint32_t>(packed >> 41 & 7) + 1;
  stream.bits = static_cast<std::uint32_t>(packed >> 36 & 31) + 1;
  stream.samples = packed & 0xFFFFFFFFF;
  std::memcpy(stream.md5.data(), &bytes[26], stream.md5.size());
  if (stream.rate_hz == 0) return failed(Code::corrupt, "a sample rate of 0 Hz", 18);
  if (stream.most_block < 16 || stream.least_block > stream.most_block) {
    return failed(Code::corrupt, "STREAMINFO has impossible block sizes", 8);
  }
  if (stream.bits < 4) return failed(Code::corrupt, "fewer than 4 bits per sample", 20);
  if (stream.bits > 24) return failed(Code::unsupported, "more than 24 bits per sample", 20);

  std::uint64_t place = 4;
  for (bool is_last = false; !is_last;) {
    if (bytes.size() - place < 4) return failed(Code::truncated, "ends between two metadata blocks", bytes.size());
    const std::uint32_t head = big32(&bytes[place]);
    is_last = (head >> 31) != 0;
    if ((head >> 24 & 0x7F) == 127) return failed(Code::corrupt, "an invalid metadata block", place);
    if (bytes.size() - place - 4 < (head & 0xFFFFFF)) {
      return failed(Code::truncated, "a metadata block goes beyond the end", place);
    }
    place += 4 + (head & 0xFFFFFF);
  }
  stream.first_frame = place;
  // The shortest frame has a header of 6 bytes, one byte and a sample per channel, and a sum of 2 bytes.
  const std::uint64_t least_frame = 8 + stream.channels * (8 + stream.bits) / 8;
  if (stream.samples / stream.most_block > (bytes.size() - place) / least_frame) {
    return failed(Code::truncated, "the file is too short for the samples that its header claims", bytes.size());
  }
  return {};
}

Result read_frame_header(Bytes bytes, std::uint64_t place, const Stream& stream, FrameHeader& header) noexcept {
  const Bytes rest = bytes.subspan(place, std::min<std::uint64_t>(bytes.size() - place, kLongestHeader));
  if (rest.size() < 6) return failed(Code::truncated, "the samples end early", bytes.size());
  if (!begins_frame(bytes, place)) return failed(Code::corrupt, "no frame begins where one should", place);
  const std::uint32_t block = at(rest, 2) >> 4, rate = at(rest, 2) & 15;
  const std::uint32_t layout = at(rest, 3) >> 4, depth = at(rest, 3) >> 1 & 7;
  std::uint64_t number = 0, used = 4;
  const std::uint32_t number_bytes = read_number(rest.subspan(4), number);
  if (number_bytes == 0 || (at(rest, 3) & 1) != 0) return failed(Code::corrupt, "a damaged frame header", place);
  used += number_bytes;

  const std::uint32_t block_bytes = block == 6 ? 1 : block == 7 ? 2 : 0;
  const std::uint32_t rate_bytes = rate == 12 ? 1 : rate == 13 || rate == 14 ? 2 : 0;
  if (rest.size() < used + block_bytes + rate_bytes + 1) {
    return failed(Code::truncated, "the samples end early", bytes.size());
  }
  const auto field = [&](std::uint32_t count) {
    const std::uint32_t value = count == 1 ? at(rest, used) : count == 2 ? big16(&rest[used]) : 0;
    used += count;
    return value;
  };
  const std::uint32_t block_field = field(block_bytes), rate_field = field(rate_bytes);
  if (kChecksSums && crc8(rest.first(used)) != at(rest, used))
    return failed(Code::corrupt, "the CRC of a frame header differs", place);
  header.bytes = static_cast<std::uint32_t>(used + 1);

  if (block == 0) return failed(Code::corrupt, "a damaged frame header", place);
  header.samples = block == 1                 ? 192
                   : block <= 5               ? 576u << (block - 2)
                   : block == 6 || block == 7 ? block_field + 1
                                              : 256u << (block - 8);
  if (header.samples > stream.most_block) {
    return failed(Code::corrupt, "a frame is longer than STREAMINFO says", place);
  }
  constexpr std::uint32_t kRates[] = {0,     88200, 176400, 192000, 8000, 16000, 22050, 24000,
                                      32000, 44100, 48000,  96000,  0,    0,     0,     0};
  const std::uint32_t hz = rate == 12   ? rate_field * 1000
                           : rate == 13 ? rate_field
                           : rate == 14 ? rate_field * 10
                           : rate == 0  ? stream.rate_hz
                                        : kRates[rate];
  if (hz != stream.rate_hz) return failed(Code::unsupported, "the sample rate changes within the file", place);
  if (layout > 10) return failed(Code::corrupt, "a damaged frame header", place);
  const std::uint32_t channels = layout < 8 ? layout + 1 : 2;
  if (channels != stream.channels) {
    return failed(Code::unsupported, "the number of channels changes within the file", place);
  }
  header.mix = layout < 8 ? Mix::none : static_cast<Mix>(layout - 7);
  constexpr std::uint32_t kBits[] = {0, 8, 12, 0, 16, 20, 24, 32};
  if ((depth == 0 ? stream.bits : kBits[depth]) != stream.bits) {
    return failed(Code::unsupported, "the bits per sample change within the file", place);
  }
  const bool counts_samples = (at(rest, 1) & 1) != 0;
  header.first = counts_samples ? number : number * stream.most_block;
  return {};
}

std::uint64_t find_frame(Bytes bytes, const Stream& stream, std::uint64_t first, std::uint64_t& sample) noexcept {
  std::uint64_t low = stream.first_frame, end = bytes.size();
  sample = 0;
  std::uint64_t sample_end = std::max<std::uint64_t>(stream.samples, 1);
  while (end - low > kSearchEnd && first - sample > stream.most_block) {
    // Frames have about equal sizes: look a little before the place that this would mean, and never at the ends.
    const double share = static_cast<double>(first - sample) / static_cast<double>(sample_end - sample);
    const double wanted = share * static_cast<double>(end - low) - static_cast<double>(kSearchEnd) / 2;
    const std::uint64_t step =
        std::clamp(static_cast<std::uint64_t>(std::max(wanted, 0.0)), (end - low) / 16, (end - low) - (end - low) / 16);
    FrameHeader header;
    const std::uint64_t found = next_header(bytes, low + step, end, stream, header);
    if (found < end && header.first >= sample && header.first <= first) {
      low = found;
      sample = header.first;
      continue;
    }
    if (found < end && header.first > first) sample_end = header.first;
    end = low + step;  // no wanted frame begins between it and the old end
  }
  // What is left is short: pass over the frames one by one.
  for (std::uint64_t from = low + 1; first - sample >= stream.least_block;) {
    FrameHeader header;
    const std::uint64_t found = next_header(bytes, from, bytes.size(), stream, header);
    if (found == bytes.size() || header.first > first) break;
    if (header.first > sample) low = found, sample = header.first;
    from = found + 1;
  }
  return low;
}

bool count_samples(Bytes bytes, const Stream& stream, std::uint64_t& samples) noexcept {
  samples = 0;
  const std::uint64_t size = bytes.size();
  if (stream.first_frame == size) return true;  // no frame at all
  const std::uint64_t least = size - stream.first_frame > kTail ? size - kTail : stream.first_frame;
  int tries = 0;
  for (std::uint64_t place = size; place-- > least && tries < kMostTries;) {
    FrameHeader header;
    if (!begins_frame(bytes, place) || !read_frame_header(bytes, place, stream, header).ok()) continue;
    ++tries;
    if (size - place < header.bytes + 2u || crc16(bytes.subspan(place)) != 0) continue;  // a sum over itself is 0
    samples = header.first + header.samples;
    return samples > header.first;
  }
  return false;
}

}  // namespace stoker::codec::flac
