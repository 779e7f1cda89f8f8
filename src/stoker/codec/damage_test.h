// Test tools: files built byte by byte, and damage done on purpose.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/codec/codec.h"
#include "stoker/codec/inflate.h"

namespace stoker::codec {

// Grows by what is put at its end.
class File {
 public:
  File& text(std::string_view text) {
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  template <typename T>
  File& little(T value) {
    std::byte raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
    return *this;
  }
  File& big32(std::uint32_t value) { return little(__builtin_bswap32(value)); }
  File& bytes(Bytes more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }
  File& bytes(std::initializer_list<int> more) {
    for (const int b : more) bytes_.push_back(static_cast<std::byte>(b));
    return *this;
  }
  File& cut(std::size_t size) {
    bytes_.erase(bytes_.begin() + static_cast<std::ptrdiff_t>(size), bytes_.end());
    return *this;
  }
  File& zeros(std::size_t count) {
    bytes_.insert(bytes_.end(), count, std::byte{0});
    return *this;
  }
  std::size_t size() const { return bytes_.size(); }
  std::byte& operator[](std::size_t i) { return bytes_[i]; }
  // NOLINTNEXTLINE: a file is read as bytes everywhere
  operator Bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// A file of tests/formats; make.py there made it.
inline File golden(const char* name) {
  std::ifstream in(std::string(STOKER_FORMATS_FOLDER) + "/" + name, std::ios::binary);
  return File().text(std::string(std::istreambuf_iterator<char>(in), {}));
}

// A deflate stream of stored blocks, with or without the zlib wrapper.
inline File deflate_stored(Bytes content, bool zlib) {
  File file;
  if (zlib) file.bytes({0x78, 0x01});
  std::size_t at = 0;
  do {
    const std::size_t count = std::min<std::size_t>(65535, content.size() - at);
    file.bytes({at + count == content.size() ? 1 : 0});
    file.little(static_cast<std::uint16_t>(count)).little(static_cast<std::uint16_t>(~count));
    file.bytes(content.subspan(at, count));
    at += count;
  } while (at < content.size());
  if (zlib) {
    std::uint32_t a = 1, b = 0;
    for (const std::byte x : content) {
      a = (a + static_cast<std::uint32_t>(x)) % 65521;
      b = (b + a) % 65521;
    }
    file.big32(b << 16 | a);
  }
  return file;
}

// Hands `use` each beginning of `file`, shortest first, in memory of exactly that size so that ASan sees every step
// beyond.
template <typename Use>
void at_every_truncation(Bytes file, const Use& use) {
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::vector<std::byte> part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    use(Bytes(part));
  }
}

// Of what tests try one after another, such as flipped bits or sizes. The release build tries each; under a sanitizer,
// which decodes about ten times slower, it is every third.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint32_t kEvery = 3;
#else
constexpr std::uint32_t kEvery = 1;
#endif

template <typename Use>
void at_every_flipped_bit(Bytes file, const Use& use) {
  std::vector<std::byte> copy(file.begin(), file.end());
  for (std::size_t bit = 0; bit < copy.size() * 8; bit += kEvery) {
    copy[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    use(Bytes(copy));
    copy[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

// The whole image, or what went wrong. Memory is bounded, so that a damaged size cannot hurt the test.
struct Image {
  Result result;
  ImageInfo info;
  std::vector<std::uint8_t> bytes;   // unless deep
  std::vector<std::uint16_t> words;  // with deep
};

inline Image decode_region(Bytes file, const ImageOptions& options, const Rect* region) {
  static Budget budget(64 << 20);
  Scratch scratch(&budget);
  Image image;
  const Media media = sniff(file);
  image.result = probe_image(media, file, image.info);
  if (!image.result.ok()) return image;
  const Rect all{0, 0, image.info.width, image.info.height};
  const Rect wanted = region != nullptr ? *region : all;
  const Rect decoded = decoded_region(media, options, wanted);
  Pixels pixels{nullptr,
                0,
                decoded.width,
                decoded.height,
                output_channels(image.info, options),
                options.deep ? DType::u16 : DType::u8};
  const std::uint64_t size = std::uint64_t{decoded.width} * decoded.height * pixels.channels;
  if (size > (16 << 20)) {
    image.result = failed(Code::too_large, "too large for a test");
    return image;
  }
  if (options.deep) {
    image.words.assign(size, 0xABCD);
    pixels.data = reinterpret_cast<std::byte*>(image.words.data());
  } else {
    image.bytes.assign(size, 0xAB);
    pixels.data = reinterpret_cast<std::byte*>(image.bytes.data());
  }
  pixels.stride_bytes = pixels.row_bytes();
  image.result = decode_image(media, file, options, wanted, pixels, scratch);
  return image;
}

inline Image decode(Bytes file, const ImageOptions& options = {}) {
  return decode_region(file, options, nullptr);
}
inline Image decode(Bytes file, const ImageOptions& options, const Rect& region) {
  return decode_region(file, options, &region);
}

}  // namespace stoker::codec
